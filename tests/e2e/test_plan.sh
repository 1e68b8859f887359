#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A run takes the memory that its plan says: the peak of resident memory is at most the plan plus 2
# %, plus 64 MiB for the program and its libraries. Usage: test_plan.sh PROGRAM
program=$1
passed=0 failed=0

check() { # model, options
    model=$1
    shift
    planned=$("$program" memory "$model" "$@" | sed -n 's/^ *\([0-9.]*\) MiB  in all$/\1/p')
    taken=$("$program" bench "$model" "$@" --steps 3 |
        sed -n 's/.* peak_rss_mib=\([0-9.]*\).*/\1/p')
    if [ -n "$planned" ] && [ -n "$taken" ] &&
        awk "BEGIN { exit !($taken + 0 <= $planned * 1.02 + 64) }"; then
        passed=$((passed + 1))
        echo "ok $model $*: $taken MiB taken, $planned MiB planned"
    else
        failed=$((failed + 1))
        echo "not ok $model $*: $taken MiB taken, $planned MiB planned"
    fi
}

check linear --batch 16
check lenet5 --batch 64 --optimizer adam
check mlp:hidden=2048 --batch 128 --optimizer adamw
check cnn --batch 64 --lanes 4 --threads 2
check resnet18:form=small --batch 32 --optimizer momentum
check resnet50:form=small --batch 16 --optimizer momentum --lanes 2 --threads 2

echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
