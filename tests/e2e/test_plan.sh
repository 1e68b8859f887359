#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A run takes the memory that its plan says: the peak of resident memory is at most the plan plus 2
# %, plus 64 MiB for the program and its libraries. Usage: test_plan.sh PROGRAM
program=$(realpath "$1")
. "$(dirname "$0")/cases.sh"

fits() { # model, options
    planned=$("$program" memory "$@" | sed -n 's/^ *\([0-9.]*\) MiB  in all$/\1/p')
    taken=$("$program" bench "$@" --steps 3 | sed -n 's/.* peak_rss_mib=\([0-9.]*\).*/\1/p')
    echo "$taken MiB taken, $planned MiB planned"
    [ -n "$planned" ] && [ -n "$taken" ] &&
        awk "BEGIN { exit !($taken + 0 <= $planned * 1.02 + 64) }"
}

plan_of() { check "$*" fits "$@"; }

plan_of linear --batch 16
plan_of lenet5 --batch 64 --optimizer adam
plan_of mlp:hidden=2048 --batch 128 --optimizer adamw
plan_of cnn --batch 64 --lanes 4 --threads 2
plan_of resnet18:form=small --batch 32 --optimizer momentum
plan_of resnet50:form=small --batch 16 --optimizer momentum --lanes 2 --threads 2

finish
