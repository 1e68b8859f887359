#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The tables of `make bench`, with rows that are quick to measure, without PyTorch. Usage:
# test_bench.sh SOURCES BUILD
bench=$(realpath "$1")/bench/bench.py build=$(realpath "$2")
. "$(dirname "$0")/cases.sh"

run() {
    python3 "$bench" "$@" >out 2>err
    code=$?
}

run "$build" --no-peer --rows linear,start --rounds 2 --seconds 0.02
check 'it exits with 0' test "$code" -eq 0
check 'the speed of a network' \
    grep -q '^| linear model  *| 30.0 | [0-9.,]* steps/s (batch 16) |$' out
check 'the time to the first step' \
    grep -q '^| from exec .* | \*\*[0-9]* ms\*\* ([0-9]* to [0-9]*) |$' out
check 'no columns of PyTorch' sh -c "! grep -q ratio '$work/out'"

run "$build" --no-peer --rows linear,start --rounds 1 --seconds 0.02 --workers 2
check 'by two workers' \
    grep -q '^| linear model  *| 30.0 | [0-9.,]* steps/s (batch 16, lanes [24]) |$' out
check 'rows of training alone' sh -c "! grep -q 'from exec' '$work/out'"

run "$build" --no-peer --rows allreduce --rounds 1
check 'all-reduce, a line for each size' grep -q \
    '^| 100 MiB  *| 4.00 *| [0-9.,]* us, [0-9.]* GB/s *|$' out

run "$build/nowhere" --no-peer --rows linear --rounds 1
check 'a failure is reported in its row' \
    grep -q '^| linear model  *| 30.0 | not available: .*nowhere' out

run "$build" --rows lenet
check 'an unknown row' grep -q 'unknown row lenet; known: resnet50,' err
check 'exits with a failure' test "$code" -ne 0

finish
