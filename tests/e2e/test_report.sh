#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# trireme report on runs that have been, go on, or are none. What rules find is tested in
# unit/test_rules.c. Usage: test_report.sh path/to/trireme
program=$(realpath "$1")
here=$(realpath "$(dirname "$0")")
. "$here/cases.sh"
. "$here/expect.sh"

"$program" train lenet5 --steps 40 --lanes 2 -n 2 --quiet --out two >/dev/null || exit 1
"$program" train mlp:hidden=8 --steps 20 --batch 8 --quiet --out one >/dev/null || exit 1

expect 'workers' 0 'out:A step takes ' report two
expect 'one process' 0 'out:^A step takes .*; the process computes for ' report one
expect 'rules that found nothing' 0 'out:^Nothing found by: ' report one
expect 'how to get a profile' 0 'out:trireme profile one --steps 5' report one
expect 'the version before' 0 'out:waits for lanes 10 %, sums 21 %' \
    report "$here/../golden/runs/old"

agrees() { # the figures are those of the run's files, and shares add up
    "$program" report two --json | python3 -c '
import json, sys
report, run = json.load(sys.stdin), json.load(open("two/run.json"))
entry = run["entries"][0]
assert report["last"] == entry["last"] == 40 and report["title"] == "lenet5", report
assert -1e-3 < report["seconds"] - (entry["end"] - entry["begin"]) < 0.1, (report, entry)
# On a busy machine, one of them may never get to work.
assert len(report["workers"]) <= 2 and 80 <= sum(w["lanes"] for w in report["workers"]), report
for worker in report["workers"]:
    assert abs(sum(worker["shares"].values()) - 1) < 0.01, worker
rules = {f["rule"] for f in report["findings"]} | {*report["silent"], *report["without_profile"]}
assert len(rules) == 27, rules
assert report["sentence"].startswith(("A step takes ", "Communication is ")), report
assert "; workers compute for " in report["sentence"], report'
}
check 'JSON' agrees

# Runs that no rule's own test uses: what is no effect of something else, in its order.
recorded() { # run, rules
    "$program" report "$here/../golden/runs/$1" --json >found.json || return 1
    python3 - "$2" <<'END'
import json, sys
found = [f["rule"] for f in json.load(open("found.json"))["findings"]
         if not f["effect_of"] and not f["note"]]
sys.exit(None if found == sys.argv[1].split() else f"found: {found}")
END
}
check 'checkpoints before a callback' recorded callback-saves 'saving shared-core callback'
check 'a shared core before audits' recorded shared-audits 'shared-core auditing'
check 'nothing' recorded clean ''
check 'evaluations of a pipeline' recorded stages-evaluations 'evaluating'
check 'small sums before checkpoints' recorded sums-saves 'small-sums slow-worker saving'
check 'a slow link' recorded hosts-link 'link'

# A run that goes on, and the same one when it was killed.
"$program" train lenet5 --steps 100000 --quiet --out long >/dev/null 2>&1 &
pid=$!
begun() { for _ in $(seq 400); do [ -s long/metrics.jsonl ] && return; sleep 0.02; done; false; }
check 'a run has begun' begun
state() { "$program" report long | tr -s '\n ' ' ' | grep -q "; $1\."; } # lines are wrapped
check 'it goes on' state 'it goes on'
kill -9 "$pid"
wait "$pid" 2>/dev/null
check 'it was killed' state 'it was killed'
states() { "$program" report "$1" --json | tr -d ' \n' | grep -o '"state":"[^"]*"' | tr '\n' ' '; }
check 'its process, too' test "$(states long)" = '"state":"waskilled" '
sed 's/"host":"[^"]*"/"host":"h7"/' long/run.json >other.json && mv other.json long/run.json
check 'of another machine' state 'it goes on, or was killed'

# Ranks, seats and deaths are those of `trireme top`, also after a spare has taken over.
"$program" train lenet5 -n 2 --spares 1 --lanes 8 --mesh model=2 --strategy channels \
    --steps 100000 --quiet --out seats >/dev/null 2>&1 &
pid=$!
cat >places.py <<'END'
import json, subprocess, sys
def run(*words):
    return subprocess.run([sys.argv[1], *words], capture_output=True, text=True, check=True).stdout
report, rows = json.loads(run("report", "seats", "--json")), {}
for line in run("top", "seats", "--once").splitlines():
    words = line.replace("*", "").split()
    if words and words[0].isdigit():
        rows[int(words[0])] = words[1:3]
want = [["0", "0:0"], ["spare", "-"], ["1", "0:1"]]
places = report["places"]
said = [["spare" if p["rank"] is None else str(p["rank"]),
         "-" if p["seats"] is None else f'{p["replica"]}:{p["seats"]}'] for p in places]
states = [p["state"] for p in places]
ok = (said == want == [rows[i] for i in range(3)] and states == ["works", "spare", "works"] and
      [p["restarts"] for p in places] == [0, 1, 0])
sys.exit(None if ok else f"{said}, {states}; top: {rows}")
END
wait_for() { for _ in $(seq 400); do "$@" && return; sleep 0.05; done; false; }
worker() { grep -q first-step seats/worker-1.log; }
check 'two workers have begun' wait_for worker
kill -9 "$(sed -n 's/.*"start","worker":1,"pid":\([0-9]*\).*/\1/p' seats/agent.log | head -n 1)"
agree() { python3 places.py "$program" 2>places.txt; }
check 'a spare has taken over' wait_for agree || cat places.txt
kill "$pid"
wait "$pid"
ended='"state":"ended" '
check 'the run has ended' test "$(states seats)" = "$ended$ended$ended"
"$program" train mlp:hidden=8 -n 3 --lanes 4 --stages 4 --pipeline interleaved --steps 5 --quiet \
    --out staged >/dev/null || exit 1
stages() {
    "$program" report staged --json | tr -d ' \n' | grep -o '"stages":"[^"]*"' | tr '\n' ' '
}
check 'stages' test "$(stages)" = '"stages":"0,2" "stages":"1,3" "stages":"0,2" '

mkdir none later bad && echo '{"format":9}' >later/run.json && echo '{' >bad/run.json
mistake 'no run' 2 'err:^trireme: none has no files of a run (run.json, metrics.jsonl); DIR is' \
    report none
mistake 'no directory' 2 'err:^trireme: nowhere: No such file or directory' report nowhere
mistake 'a file' 2 'err:^trireme: one/run.json: Not a directory' report one/run.json
mistake 'a later version' 1 'err:later/run.json has format 9, of a later version' report later
expect 'no JSON' 0 'out:Files run.json that cannot be read: 1' report bad
printf 'not a series' >bad/workers.series
expect 'no series' 0 'out:Files workers.series that cannot be read: 1' report bad
cp -r two next && printf '\2' | dd of=next/workers.series bs=1 seek=8 conv=notrunc 2>/dev/null
mistake 'a later series' 1 'err:next/workers.series was written by a later version' report next
mistake 'no DIR' 2 'err:report' report
mistake 'two directories' 2 "err:report: one word too many: 'two'" report one two
mistake 'an unknown option' 2 'err:--jsn.*--json' report one --jsn
mistake 'no such profile' 2 'err:one: it has no profile' report one --profile 7
if [ "$(id -u)" -ne 0 ]; then
    chmod 0 one/run.json
    expect 'not readable' 0 'out:Files run.json that cannot be read: 1' report one
fi

finish
