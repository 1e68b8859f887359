#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Networks in f32 and bf16 have the weights that weights.txt lists, with every instruction set that
# the machine has, each with another number of threads or workers, from the same plan text. So they
# agree between processors and compilers, too. A change of the arithmetic (docs/arithmetic.md)
# changes the list: the output of a failed case has the new line.
# Usage: test_instructions.sh TRIREME ['MODEL OPTIONS'...]; without models, all of the list
program=$(realpath "$1")
list=$(realpath "$(dirname "$0")/weights.txt")
shift
. "$(dirname "$0")/cases.sh"

weights() { # instruction set, model, options: half the hash of the weights after two steps
    TRIREME_ISA=$1 "$program" train $2 --data synthetic --batch 2 --steps 2 --optimizer adamw \
        --clip-norm 1 --quiet --out run $3 >log 2>&1 || { cat log; return 1; }
    sed -n 's/.* weights=sha256:\(.\{32\}\).*/\1/p' log
}
same() { # model
    compared=0 plan=
    expected=$(awk -v model="$1" '$0 == $1 " " model { print $1 }' "$list")
    for how in 'plain --threads 1' 'avx2 --threads 2' 'avx2 --threads 3' 'avx2 -n 2' \
        'avx512 --threads 3' 'avx512bf16 --threads 2' 'amx --threads 2' 'amx -n 2' \
        'neon --threads 2'; do
        isa=${how%% *}
        TRIREME_ISA=$isa "$program" doctor 2>&1 | grep -q 'TRIREME_ISA=.*: this machine has' &&
            continue
        got=$(weights "$isa" "$1" "${how#* }") || { echo "$how: $got"; return 1; }
        text=$(TRIREME_ISA=$isa "$program" dump $1 --batch 2 --after fuse | sha256sum)
        [ "$text" = "${plan:=$text}" ] || { echo "$how: the plan's text differs"; return 1; }
        [ "$got" = "$expected" ] || { echo "$how, not $expected:"; echo "$got $1"; return 1; }
        compared=$((compared + 1))
    done
    [ $compared -gt 0 ] || { echo "this machine has none of these instruction sets"; return 1; }
}

# Tiles are fastest; Intel's other instruction for bf16 is slower than those for f32.
chooses() {
    grep -q GenuineIntel /proc/cpuinfo || return 0
    TRIREME_ISA=avx512bf16 "$program" doctor >asked || return 0
    "$program" doctor >chosen && grep -q 'kernels for avx512bf16:' asked &&
        grep -q 'kernels for amx:\|kernels for avx512, for bf16 too, as' chosen ||
        { cat asked chosen; return 1; }
}

if [ $# -eq 0 ]; then
    check 'the instruction set for bf16' chooses
    while read -r hash model; do check "the weights of $model" same "$model"; done <"$list"
else
    for model; do check "the weights of $model" same "$model"; done
fi
finish
