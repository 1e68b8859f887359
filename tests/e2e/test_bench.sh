#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The tables of `make bench`, with rows that are quick to measure, without PyTorch. Usage:
# test_bench.sh SOURCES BUILD
set -u
bench=$1/bench/bench.py build=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
passed=0 failed=0

check() { # name, command: it must succeed
    name=$1
    shift
    if "$@" >/dev/null; then
        passed=$((passed + 1))
        echo "ok $name"
    else
        failed=$((failed + 1))
        echo "not ok $name: $(cat "$work/out" "$work/err")"
    fi
}

run() {
    python3 "$bench" "$@" >"$work/out" 2>"$work/err"
    code=$?
}

run "$build" --no-peer --rows linear,start --rounds 2 --seconds 0.02
check 'it ends well' test "$code" -eq 0
check 'the speed of a network' \
    grep -q '^| linear model  *| 30.0 | [0-9.,]* steps/s (batch 16) |$' "$work/out"
check 'the time to the first step' \
    grep -q '^| from exec .* | \*\*[0-9]* ms\*\* ([0-9]* to [0-9]*) |$' "$work/out"
check 'no columns of PyTorch' sh -c "! grep -q ratio '$work/out'"

run "$build" --no-peer --rows linear,start --rounds 1 --seconds 0.02 --workers 2
check 'by two workers' \
    grep -q '^| linear model  *| 30.0 | [0-9.,]* steps/s (batch 16, lanes [24]) |$' "$work/out"
check 'rows of training alone' sh -c "! grep -q 'from exec' '$work/out'"

run "$build" --no-peer --rows allreduce --rounds 1
check 'all-reduce, a line for each size' grep -q \
    '^| 100 MiB  *| 4.00 *| [0-9.,]* us, [0-9.]* GB/s *|$' \
    "$work/out"

run "$build/nowhere" --no-peer --rows linear --rounds 1
check 'what cannot be run is told in its row' \
    grep -q '^| linear model  *| 30.0 | not available: .*nowhere' "$work/out"

run "$build" --rows lenet
check 'an unknown row' grep -q 'unknown row lenet; known: resnet50,' "$work/err"
check 'is a mistake' test "$code" -ne 0

echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
