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
sed 's/"host":"[^"]*"/"host":"h7"/' long/run.json >other.json && mv other.json long/run.json
check 'of another machine' state 'it goes on, or was killed'

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
