#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Commands that once gave a wrong, lost or stuck run, or that a new user tried in vain, with what
# each finds today. Part of `make test-slow`. Usage: sharp.sh PROGRAM BUILD [ITEM...]
program=$(realpath "$1")
build=$(realpath "$2")
shift 2
here=$(dirname "$(realpath "$0")")
. "$here/e2e/cases.sh"

# ---- a: deadlocks and standstills

# ---- b: recomputation, fit, maybe

# ---- c: memory beyond the plan

# ---- d: beside other work

# ---- e: limits and defaults

# ---- f: resume

# ---- g: one lane is the whole batch

# ---- h: programs

for item in "${@:-a b c d e f g h}"; do
    for part in $item; do
        if command -v "item_$part" >/dev/null; then
            echo "---- $part"
            "item_$part"
        fi
    done
done
finish
