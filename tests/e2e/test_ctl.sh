#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# trireme top, ps and ctl: what they show of a run, the changes that they make, and that the run's
# result stays the same. Usage: test_ctl.sh path/to/trireme
program=$(realpath "$1")
. "${0%/*}/cases.sh"
work=$(pwd -P)
runs=
trap 'kill $runs 2>/dev/null; rm -rf "$work"' EXIT

until_it() { # command: repeats it until it succeeds, for a minute at most
    deadline=$(($(date +%s) + 60))
    until "$@"; do
        [ "$(date +%s)" -lt "$deadline" ] || return 1
        sleep 0.05
    done
}

row() { "$program" ps | grep " $work/$1 "; } # DIR: its row of ps
field() { row "$1" | awk -v n="$2" '{ print $n }'; }
step() { field "$1" 5 | cut -d/ -f1; }
is() { [ "$(field "$1" 7)" = "$2" ]; } # DIR STATE
past() { [ "$(step "$1")" -gt "$2" ]; }
goes_on() { from=$(step "$1"); until_it past "$1" "$from"; }

says() { # PATTERN COMMAND…: it succeeds and prints a line that matches
    pattern=$1
    shift
    "$@" >said.out 2>&1 && grep -q "$pattern" said.out || { cat said.out; false; }
}

fails() { # CODE PATTERN COMMAND…: it fails with this code and a matching line
    code=$1 pattern=$2
    shift 2
    "$@" >said.out 2>&1
    [ $? -eq "$code" ] && grep -q "$pattern" said.out || { cat said.out; false; }
}

ctl() { "$program" ctl "$@"; }
hash_of() { sed -n 's/.* weights=sha256:\([0-9a-f]*\) .*/\1/p' "$1"; }

begin() { # DIR OPTIONS…
    directory=$1
    shift
    "$program" train mlp:hidden=8 --batch 16 --lanes 4 --threads-per-worker 1 --quiet \
        --out "$directory" "$@" >"$directory.out" 2>"$directory.err" &
    pid=$!
    runs="$runs $pid"
}

# --- changes to one run ---

begin a -n 2 --steps 20000
first=$pid
check 'ps finds it' until_it is a running
[ "$failed" -eq 0 ] || { cat a.err; finish; } # no other run would end
check 'pause' says '^paused after step [1-9][0-9]*$' ctl a pause
paused=$(step a)
check 'top shows the run' says "^mlp:hidden=8  paused .* 2 workers\$" \
    env LC_ALL=C COLUMNS=80 "$program" top a --once
cp said.out page
check 'in a file it is whole' says ' OTH .* WAITS FOR   LANE .* PEAK .* STEP AT$' \
    "$program" top a --once
check 'its directory' grep -qx "$work/a" page
check 'its step' grep -q "^step $paused/20000 " page
check 'its rate' grep -q '^0.0 samples/s  0.00 steps/s  batch 16 in 4 lanes$' page
check 'its loss' grep -q '^loss [0-9.]* ' page
check 'who reports' grep -q '^  0     0\* ' page
check 'the other' grep -q '^  1     1  .* wait$' page
check 'in 80 columns' env LC_ALL=C awk "length > 80 { exit 1 }" page
check 'nobody reads it' fails 1 'cannot write to stdout' sh -c "trap '' PIPE
    { '$program' top a --once; echo \$? >&3; } 3>code | :; exit \$(cat code)"
check 'no step is done while it is paused' test "$(step a)" = "$paused"
check 'pause again' says "^already paused after step $paused\$" ctl a pause
check 'scale 1, paused' says "^scaled to 1 worker at step $paused\$" ctl a scale 1
check 'one worker is left' says '^mlp:hidden=8  paused .* 1 worker$' env NO_COLOR=1 "$program" top a
for n in 0 3; do
    check "scale $n" fails 1 "^trireme: scale $n: this run can have 1 to 2 workers; --most" \
        ctl a scale $n
done
check 'resume' says "^resumed with step $((paused + 1))\$" ctl a resume
check 'it resumes' goes_on a
check 'resume again' says '^not paused; running' ctl a resume
for n in 2 1 2; do # and rests in between, so as not to end before
    check "scale $n" says "^scaled to $n worker.* at step [0-9]*\$" ctl a scale $n
    check "it goes on with $n" goes_on a
    check 'pause' says '^paused after step' ctl a pause
    check "$n in ps" test "$(field a 4)" = $n
    check 'resume' says '^resumed with step' ctl a resume
done
"$program" train mlp:hidden=8 --batch 16 --lanes 4 --threads 1 --steps 20000 --quiet --out plain \
    >plain.out
wait "$first"
check 'it exits with 0' test $? -eq 0
check 'the weights are those of one worker' test "$(hash_of a.out)" = "$(hash_of plain.out)"
check 'the weights are not empty' test -n "$(hash_of a.out)"

# --- audits ---

begin c -n 1 --spares 1 --audit 1 --steps 1000000
third=$pid
check 'audits are computing' \
    until_it says '^  1 spare  *[0-9][0-9]*  *[1-9]' "$program" top c --once
ctl c stop >stop.out
wait "$third"

# --- a stopped run ---

begin b -n 1 --spares 1 --steps 100000000
second=$pid
check 'another run' until_it is b running
check 'a spare in ps' test "$(field b 4)" = 1+1
check 'a spare in top' until_it says '^  1 spare  ' "$program" top b --once
if command -v script >/dev/null; then
    (TERM=xterm script -qec "'$program' top b" /dev/null </dev/null >screen 2>&1; echo "code=$?" \
        >>screen) &
    viewer=$!
    check 'the viewer on a terminal' until_it grep -q 'mlp:hidden=8' screen
fi
worker=$("$program" top b --once | awk '$1 == 0 { print $3 }')
# Stopped between two steps, a worker holds up none; then it is stopped again.
hangs_in_a_step() {
    kill -STOP "$worker"
    fails 1 "^trireme: pause is requested, but not done after 0.2 s: .*worker 0 (pid $worker)" \
        ctl b pause --timeout 0.2 && return
    kill -CONT "$worker"
    until_it is b paused && ctl b resume
    return 1
}
check 'a worker that hangs is shown' until_it hangs_in_a_step
check 'as stopped' says '^  0 .*  [01]   [01]   0   0  [0-9]* .* stopped, ' "$program" top b --once
kill -CONT "$worker"
check 'it pauses later' until_it is b paused
check 'stop, paused' says '^stopped after step [0-9]*$' ctl b stop
wait "$second"
check 'its code' test $? -eq 3
if command -v script >/dev/null; then
    wait "$viewer"
    check 'the viewer ends' grep -q '^code=0' screen
    check 'and reports how' grep -q 'mlp:hidden=8 stopped after step' screen
    check 'the terminal is restored' grep -q '\[?25h.*\[?1049l' screen
fi
check 'ps no longer lists it' test -z "$(row b)"

# --- mistakes ---

check 'it has ended' fails 1 '^trireme: the run in b has ended$' ctl b pause
check 'top of a run that has ended' fails 1 '^trireme: the run in b has ended$' "$program" top b
check 'no run' fails 1 '^trireme: there is no run in nowhere; `trireme ps`' "$program" top nowhere
check 'an unknown request' \
    fails 2 'unknown request paus; do you mean pause? There are pause, resume, stop, scale, c' ctl \
    b paus
check 'what a request does' fails 2 'unknown request save; do you mean checkpoint?' ctl b save
check 'a request before the directory' \
    fails 2 'the directory of the run comes before scale: trireme ctl DIR scale \[HOST=\]N' \
    ctl scale 2 b
check 'no request' fails 2 'ctl lacks its request' ctl b
check 'no number' fails 2 'scale lacks its number' ctl b scale
check 'a wrong number' fails 2 'scale two: expected the number of workers' ctl b scale two
check 'an extra argument' fails 2 "one word too many: '2'" ctl b stop 2
echo '{"pid":' >b/agent.json
check 'a damaged entry' fails 1 'b/agent.json is damaged' ctl b stop
: >b/agent.json
check 'an empty entry' fails 1 'b/agent.json is empty: the run is just starting' ctl b stop
echo '{"pid":1,"fd":3}' >b/agent.json
check "somebody else's" fails 1 'the run in b ' "$program" top b

finish
