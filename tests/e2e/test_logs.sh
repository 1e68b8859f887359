#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The output of runs with several workers, including after deaths: logs, metrics, printed lines.
# Usage: test_logs.sh TRIREME CRASH_DATA yes|no; no: no crashes
program=$(realpath "$1") data=$(realpath "$2") crashes=${3:-yes}
here=$(realpath "$(dirname "$0")")
. "$here/cases.sh"

# Starts `trireme run` with the arguments, kills its reporter several times, and waits for the end.
killed() { # directory, number of kills, arguments
    python3 "$here/kill_reporter.py" "$1" "$2" "$program" run -n 2 --out "$1" -- "$data" \
        --lanes 4 --steps "$3" >"$1.said" 2>&1 || { cat "$1.said"; return 1; }
}
json() { # all logs and metrics of a directory are JSON, and step numbers grow
    python3 - "$1" <<'END'
import glob, json, sys
for path in glob.glob(sys.argv[1] + '/*.log') + glob.glob(sys.argv[1] + '/*.jsonl'):
    text = open(path).read()
    assert not text or text.endswith('\n'), path
    rows = [json.loads(line) for line in text.splitlines()]
    if path.endswith('.log'):
        assert all({'time', 'level', 'event'} <= set(row) for row in rows), path
    else:
        steps = [row['step'] for row in rows if 'step' in row] # outputs.jsonl has none
        assert all(a < b for a, b in zip(steps, steps[1:])), steps
END
}
once() { # number of occurrences, or a pattern for it, pattern, file
    case $(grep -c -e "$2" "$3") in $1) ;; *) cat "$3"; return 1 ;; esac
}
has() { # pattern, file
    grep -q -e "$1" "$2" || { cat "$2"; return 1; }
}
none() { ! has "$@"; }

export TEST_SLOW=300
check 'a run whose reporter is killed twice' killed twice 2 400
check 'valid JSON, growing steps' json twice
check 'one line "done"' once 1 '^done steps=400 ' twice.said
check 'the head once' once 1 'lanes x' twice.said
check 'the first step is shown once' once 1 '^step 1/400 ' twice.said
check 'the last step is shown once' once 1 '^step 400/400 ' twice.said
check 'and in the metrics' once 1 '"step":400,' twice/metrics.jsonl
check 'they are one file' test ! -e twice/metrics.1.jsonl
check 'what each death cost' once 2 '"event":"recovered","worker":[01],"rank":[01],"cost":[0-9]' \
    twice/agent.log
run_json() { # number of deaths: each has a cost, and the run has ended
    python3 - "$1" <<'END'
import json, sys
run = json.load(open("twice/run.json"))
deaths = [fault for fault in run["faults"] if fault["kind"] == "death"]
assert run["deaths"] == len(deaths) == int(sys.argv[1]), run["faults"]
assert all(0 < death["cost"] < 60 and death["text"] for death in deaths), deaths
assert [(entry["first"], entry["last"], entry["exit"]) for entry in run["entries"]] == \
    [(1, 400, 0)], run["entries"]
assert {total["worker"] for total in run["totals"]} == {0, 1}, run["totals"]
END
}
check 'run.json has both deaths' run_json 2
for event in join compiled first-step leave; do
    check "worker 1 tells: $event" has "\"event\":\"$event\",\"worker\":1," twice/worker-1.log
done
check 'the takeover is reported' has '"event":"takeover".*"reporter":1' twice/worker-1.log

# All logs as one.
log() { "$program" log "$@" >merged 2>&1 || { cat merged; return 1; }; }
all() { # pattern: all lines of merged have it, and there are some
    [ -s merged ] && ! grep -v -e "$1" merged
}
check 'the logs as one' log twice
check 'in the order of time' sh -c "cut -d' ' -f1 merged | LC_ALL=C sort -c"
check 'every line' test "$(wc -l <merged)" -eq "$(cat twice/*.log twice/*.out | wc -l)"
check 'the agent'\''s' has '^2.*Z  agent  start  worker=0  pid=' merged
check 'those of workers' has '^2.*Z  worker 1  first-step' merged
check 'of one worker' log twice --worker 1
check 'its own, and the agent'\''s about it' all '  worker 1  \|  worker=1'
check 'of an event' log twice --event death
check 'both deaths' once 2 '  agent  warning death  worker=' merged
check 'of a level' log twice --level warning
check 'no others' all '  \(warning\|error\) '
check 'with a text' log twice --grep takeover
check 'all have it' all ' takeover  '
check 'from a step on' log twice --since 400
check 'nothing earlier' none 'step=[1-9][0-9]\? \|first-step' merged
check 'a run that has ended is not followed' timeout 10 "$program" log twice --follow
mkdir -p two/h0 two/h1
echo '{"time":"1","level":"info","event":"end","code":0}' >two/h0/agent.log
echo '{"time":"0","level":"info","event":"start"}' >two/h1/agent.log
follows() { timeout 1 "$program" log two --follow >merged; [ $? -eq 124 ]; }
check 'one whose other host goes on is' follows
echo '{"time":"2","level":"info","event":"host-lost","host":"h1"}' >>two/h0/agent.log
echo '{"time":"3","level":"info","event":"end","code":0}' >>two/h0/agent.log
check 'but not if that is lost' timeout 10 "$program" log two --follow
mkdir odd
{
    printf '{"time":"2","level":"info","event":"a\\u001b[2J\\u009b","n":1}\n'
    printf '\033[31m\377\n{"cut'
} >odd/agent.log
check 'what is no log' log odd
check 'is escaped' sh -c "LC_ALL=C grep -q '^2  agent  a.x1b.2J.xc2.x9b  n=1\$' merged"
check 'with bytes that are no text' sh -c "LC_ALL=C grep -q '^agent  .x1b.31m.xff\$' merged"
check 'and what is being written waits' test "$(wc -l <merged)" -eq 2
refused() { # pattern, arguments
    said=$("$program" log $2 2>&1)
    [ $? -eq 2 ] && echo "$said" | grep -q -e "$1" || { echo "$said"; return 1; }
}
mkdir none
check 'a folder without a run' refused 'none has no log of a run' none
check 'no folder' sh -c "! '$program' log lost 2>said && grep -q '^trireme: lost: No such' said"
check 'a level that there is not' refused 'it can be info, warning or error' 'twice --level high'

# What workers print, but the reporter, which has the terminal, is between the lines of logs.
cat >says.sh <<END2
#!/bin/sh
echo "one of \$TRIREME_WORKER"
printf 'two \\033[2J \\303\\251 \\377\\n'
exec "$program" train linear --steps 3 --batch 8 --lanes 3 --threads 1 --quiet
END2
chmod +x says.sh
check 'workers that print' "$program" run -n 3 --out says -- ./says.sh
check 'with the logs' log says
check 'a line with a time' has '^2.*Z  worker 1  output  one of 1$' merged
printf 'worker 1  output  two \\x1b[2J \303\251 \\xff\n' >expected
check 'escaped' grep -qF "$(cat expected)" merged
check 'before the end' sh -c "sed -n '/output  one of 1/,\$p' merged | grep -q 'agent  end'"
check 'of one worker' log says --worker 2
check 'nothing of the other' none 'worker 1' merged
check 'output alone' log says --event output --grep two
check 'of both' once 2 '  output  two ' merged
check 'a level leaves it out' log says --level error
check 'all of it' none 'output' merged
printf 'no end' >>says/worker-1.out
check 'what nobody has noted' log says
check 'has no time' has '^worker 1  output  no end$' merged
sed -i 's/"bytes":[0-9]*/"bytes":1/' says/outputs.jsonl
check 'if notes are lost' log says
check 'all lines come nevertheless' once 2 '  output  two ' merged
printf 'of before\nhalf' >says/worker-1.out.old
check 'a run that was continued' log says --worker 1 --event output
check 'its earlier output is first' sh -c "head -n 1 merged | grep -q 'of before'"
check 'with its last line' once 1 'output  half$' merged
check 'the run of a version before' log "$here/../golden/runs/old"
check 'its death' has 'Z  agent  warning death  worker=1  pid=19477' merged

# After the last step: in its callback, and between there and the end.
dies_last() {
    : >mark
    TEST_DIE=$work/mark "$program" run -n "$1" --out "last$1" -- "$data" --lanes 4 --steps 40 \
        >"last$1.said" 2>&1
    [ $? -eq 0 ] && [ ! -e mark ] || { cat "last$1.said"; return 1; }
}
unset TEST_SLOW
check 'a reporter that dies of the last callback' dies_last 2
check 'a single worker that dies of it' dies_last 1
# A program's actions after tri_close are lost with its reporter; so this program has none.
killed_at_end() {
    python3 "$here/kill_reporter.py" end 0 "$program" train mlp:hidden=8 \
        --batch 16 --lanes 4 -n 2 --out end --steps 40 >end.said 2>&1 ||
        { cat end.said; return 1; }
}
check 'a reporter killed at the end' killed_at_end
for run in last2 last1 end; do
    check "one line \"done\": $run" once 1 '^done steps=40 ' $run.said
    # Printing a line and noting it are two things: one killed between them prints it again.
    most=$([ $run = end ] && echo '[12]' || echo 1)
    check "one of the last step: $run" once "$most" '^step 40/40 ' $run.said
    check "one row of it: $run" once 1 '"step":40,' $run/metrics.jsonl
    check "JSON: $run" json $run
done

if [ "$crashes" = yes ]; then
    : >mark
    TEST_CRASH=$work/mark "$program" run -n 2 --out crash -- "$data" --lanes 4 --steps 40 \
        >crash.said 2>&1
    check 'a crash costs nothing' once 1 '^done steps=40 ' crash.said
    check 'its message names the trace' has 'signal 11.*crash/worker-[01]\.out' crash.said
    file=$(sed -n 's/.*signal 11.*see \(crash\/worker-[01]\).out.*/\1/p' crash.said)
    check 'step, lane and activity' has \
        '"event":"crash","worker":[01],"step":13,"lane":2,"at":"data","signal":"SIGSEGV",' \
        "$file.log"
    check 'a line about it in its output' has \
        '^trireme: worker [01], step 13, data 2: SIGSEGV at address 0x0; the calls' "$file.out"
    check 'a trace with the function' has 'follow_null' "$file.out"
    check 'no trace in the log' none 'follow_null' "$file.log"
    check 'JSON after a crash' json crash
    : >mark
    TEST_CRASH=$work/mark TEST_SLOW=300 "$program" run -n 1 --out ahead -- "$data" --lanes 4 \
        --steps 40 --data-threads 3 >ahead.said 2>&1
    check 'a crash of a thread that reads ahead' once 1 '^done steps=40 ' ahead.said
    check 'step and lane of its reading' has \
        '"event":"crash","worker":0,"step":13,"lane":2,"at":"data","signal":"SIGSEGV",' \
        ahead/worker-0.log

    # A callback that crashes: one report, with one process and with several workers.
    calls() { # name, exit code, -n or nothing
        what=$1 code=$2
        shift 2
        if [ $# -gt 0 ]; then set -- "$program" run "$@" --out calls --; fi
        TEST_CALL=$what "$@" "$data" --lanes 4 --steps 40 >"$what.said" 2>&1
        [ $? -eq "$code" ] || { cat "$what.said"; return 1; }
    }
    place='step 5, callback 2: SIGSEGV at address 0x0; the calls'
    check 'a callback crashes' calls null 139
    check 'step and callback' once 1 "^trireme: $place" null.said
    check 'a trace' has 'follow_null' null.said
    check 'a callback aborts' calls abort 134
    check 'step and callback of the abort' once 1 \
        '^trireme: step 5, callback 2: SIGABRT; the calls' abort.said
    check 'a stack that overflows' calls overflow 139
    check 'step and callback of the overflow' once 1 \
        '^trireme: step 5, callback 2: SIGSEGV at address' overflow.said
    check 'the program'\''s own handler' calls own 7
    check 'is kept' none 'callback 2' own.said
    TEST_LEFT=1 "$data" --steps 5 >left.said 2>&1
    check 'no handler after the run' none 'SIGSEGV at' left.said
    check 'a callback of several workers crashes' calls null 1 -n 2
    check 'one report of three crashes' once 1 "^trireme: worker [01], $place" null.said
    check 'one trace' once 1 'follow_null' null.said
    check 'in the log' has '"event":"crash".*"step":5,"callback":2,"at":"callback","signal"' \
        calls/worker-0.log
    check 'no core dump is mentioned' none 'retired\|the machine' null.said
fi
finish
