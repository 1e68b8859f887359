#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs that share a directory: the files of each have a number of their own, those of a run that is
# continued are put together again, and nothing mixes. Usage: test_earlier.sh TRIREME
program=$(realpath "$1")
. "$(dirname "$0")/cases.sh"

# A network and its checkpoints, of the same name: a has 6, b has 7 hidden.
train() { # a or b, steps, more: in `out`
    hidden=6 which=$1 steps=$2
    [ "$which" = b ] && hidden=7
    shift 2
    "$program" train mlp:hidden=$hidden --batch 8 --lanes 2 --threads 1 --metrics-every 1 \
        --ckpt "$which" --save-every 2 --steps "$steps" --out out "$@" >told 2>&1
}
files() { # what is there, without agent.json, exit and empty files
    (cd out && find . ! -name agent.json ! -name exit ! -empty -type f | cut -c3- |
        LC_ALL=C sort | tr '\n' ' ')
}
are() { # expected
    [ "$(files)" = "$1 " ] || { echo "has $(files)"; cat told; return 1; }
}
# What a run has written, by its network: title of run.json, steps of its metrics, its entries.
of() { # number or "", title, steps, entries
    python3 - "$@" <<'END2'
import json, sys
number, title, steps, entries = sys.argv[1:]
part = f".{number}" if number else ""
run = json.load(open(f"out/run{part}.json"))
lines = [json.loads(line) for line in open(f"out/metrics{part}.jsonl")]
assert run["title"] == title, run["title"]
assert [line["step"] for line in lines] == list(range(1, int(steps) + 1)), lines
assert f"model {title}\n" in run["plan"], run["plan"]
first = [(entry["first"], entry["last"], entry["exit"]) for entry in run["entries"]]
assert first == [tuple(entry) for entry in json.loads(entries)], first
assert all(entry["begin"] <= entry["end"] for entry in run["entries"])
END2
}
has() { # pattern, file
    grep -q -e "$1" "$2" || { cat "$2"; return 1; }
}
once() { # number of occurrences, pattern, file
    [ "$(grep -c -e "$2" "$3")" -eq "$1" ] || { cat "$3"; return 1; }
}

set_of() { # number with a dot, or nothing: the files of a run of two workers
    echo "agent$1.log metrics$1.jsonl run$1.json worker-0$1.log worker-1$1.log workers$1.series"
}
sorted() { echo "$@" | tr ' ' '\n' | LC_ALL=C sort | tr '\n' ' ' | sed 's/ $//'; }
one=$(set_of .1)

check 'a run of two workers' train a 4 -n 2
check 'has these files' are "$(set_of '')"
check 'run.json is its owner'\''s' test "$(stat -c %a out/run.json)" = 600
check 'another network' train b 4 -n 2
check 'says what it finds' once 1 '^trireme: out: the files of an earlier run have the number 1' \
    told
check 'all have one number' are "$(sorted $one $(set_of ''))"
check 'those of the first run' of 1 mlp:hidden=6 4 '[[1, 4, 0]]'
check 'and of this one' of '' mlp:hidden=7 4 '[[1, 4, 0]]'

# A mistake, which shows when the network is known; then without it.
check 'a mistake' sh -c "! '$program' train mlp:hidden=6 --batch 8 --lanes 2 --ckpt a --resume \
    --steps 8 --out out -n 2 --seed 9 >told 2>&1"
check 'the first is continued' train a 8 -n 2 --resume
check 'and says nothing of files' once 0 'an earlier run' told
check 'its files are one run again' of '' mlp:hidden=6 8 '[[1, 4, 0], [5, 8, 0]]'
check 'the second one is as it was' of 2 mlp:hidden=7 4 '[[1, 4, 0]]'

# One process, and hosts.
check 'a run of one process goes on with the second' train b 8 --resume
check 'with all steps' of '' mlp:hidden=7 8 '[[1, 4, 0], [5, 8, 0]]'
check 'its own log' once 1 '"event":"end"' out/run.log
check 'and those of workers' test -s out/agent.log -a -s out/worker-1.log
check 'a new one' train a 2 --ckpt c
check 'gives them a number' of 5 mlp:hidden=7 8 '[[1, 4, 0], [5, 8, 0]]'
check 'with a log' once 1 '"event":"end","step":2,"code":0' out/run.log
check 'that `trireme log` prints' sh -c "'$program' log out | grep -q '  run  end  step=2  code=0'"
check 'it has no other' test "$("$program" log out | grep -c '  run  ')" -eq \
    "$("$program" log out | wc -l)"
check 'a resumed run without a checkpoint' train b 2 --ckpt d --resume -n 2
check 'begins files of its own' of '' mlp:hidden=7 2 '[[1, 2, 0]]'
check 'also in another directory' train b 4 --ckpt d --resume -n 2 --out other
check 'whose first line is of one step' once 1 '^{"step":3,"epoch"' other/metrics.jsonl
for workers in '' '-n 2'; do
    check "what runs is not touched: $workers" sh -c "(flock 9; ! '$program' train linear \
        --steps 1 --out other $workers) 9<other/metrics.jsonl 2>told &&
        grep -q 'written by another run' told"
done
check 'nothing has moved' test ! -e other/metrics.1.jsonl -a ! -e other/agent.1.log

# What the user has there.
mkdir -p user/run.json
echo mine | tee user/profile user/hosts user/metrics.2.txt >user/worker-x.log
echo '{"step":1}' >user/metrics.jsonl
ln -s metrics.jsonl user/link
"$program" train linear --steps 1 --out user >told 2>&1
stay() { cd user && [ -s profile ] && [ -s hosts ] && [ -s metrics.2.txt ] && [ -s worker-x.log ]; }
check 'files of the user stay' eval '(stay)'
check 'and their folder is in the way' has '^trireme: cannot write .*run.json' told
finish
