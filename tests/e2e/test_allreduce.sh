#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# trireme bench allreduce: its table, its errors, and the death of a process. Usage:
# test_allreduce.sh path/to/trireme
program=$(realpath "$1")
. "${0%/*}/cases.sh"

run() {
    timeout 120 "$program" bench allreduce "$@" >out 2>err
    code=$?
}

# The table has these sizes, with numbers.
table() {
    sizes=$(awk 'NR > 1 && NF == 4 && $2 >= 0 && $3 >= 0 && $4 >= 0 { print $1 }' out)
    [ "$(echo $sizes)" = "$*" ]
}

# --- the table ---

for n in 2 3 8; do
    run -n "$n" --bytes 4,1K,1004,68K
    check "$n processes end well" test "$code" -eq 0
    check "the table of $n" table 4 1024 1004 69632
done
head -n 1 out | grep -q '^ *bytes *time_us *alg_GB/s *bus_GB/s$'
check 'its head' test $? -eq 0
check 'nothing on stderr' test ! -s err
run --bytes=17M
check 'sizes larger than the caches' table 17825792

# --- errors ---

mistake() { # name, pattern, arguments
    name=$1 pattern=$2
    shift 2
    run "$@"
    check "$name: code" test "$code" -eq 2
    check "$name: message" grep -q "^trireme: .*$pattern" err
}
mistake 'too few' 'a whole number from 2 to 64' -n 1
mistake 'too many' 'a whole number from 2 to 64' -n 65
mistake 'no size' 'a list of sizes' --bytes 1K,,2K
mistake 'half a float' 'multiples of 4' --bytes 6
mistake 'too large' 'ranks with buffers of .* need .* MiB' --bytes 900G
mistake 'an extra argument' "one word too many: 'mlp'" mlp
TRIREME_BENCH_RANK=0:0 run
check 'an internal option' grep -q 'trireme sets it itself: unset it' err
"$program" bench --help >out
check 'help describes it' grep -q 'trireme bench allreduce' out
run --bytes 1K
"$program" bench allreduce --bytes 1K 2>err >/dev/full
check 'no space for the table' test $? -eq 1
check 'is reported' grep -q '^trireme: rank 0: cannot write to stdout: ' err

# --- death ---

# Starts a long all-reduce in the background and waits until its processes run: $starter, $ranks.
start() {
    sizes=$(awk 'BEGIN { for (i = 0; i < 100; i++) printf "16M,"; print "16M" }')
    : >out # set here, because the background process may do it too late
    "$program" bench allreduce -n 3 --bytes "$sizes" >out 2>err &
    starter=$!
    for _ in $(seq 100); do
        [ "$(wc -l <out)" -ge 2 ] && break
        sleep 0.1
    done
    ranks=$(cat "/proc/$starter/task/$starter/children")
}
# Waits until none of the processes runs any more; a zombie does not count.
gone() {
    for _ in $(seq 100); do
        left=0
        for p in $ranks; do
            grep -q '^State:	[^ZX]' "/proc/$p/status" 2>/dev/null && left=1
        done
        [ $left -eq 0 ] && return 0
        sleep 0.1
    done
    return 1
}

if [ -r "/proc/$$/task/$$/children" ]; then
    start
    check 'three processes' test "$(echo "$ranks" | wc -w)" -eq 3
    kill -9 "$(echo "$ranks" | cut -d ' ' -f 2)"
    wait "$starter"
    check 'one dies: code' test $? -eq 1
    check 'one dies: its rank' grep -q '^trireme: rank 1 was killed by signal 9' err
    check 'one dies: none is left' gone
    start
    kill -9 "$starter"
    wait "$starter" 2>/dev/null
    check 'their parent dies: none is left' gone
else
    echo 'ok death # skipped: no list of children in /proc'
fi

finish
