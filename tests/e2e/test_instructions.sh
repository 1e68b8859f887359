#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Networks in f32 and bf16 have the same weights with every instruction set that the machine has,
# each with another number of threads or workers. If OTHER is given, a program that runs on another
# processor, its sets are compared with the plain one of this machine.
# Usage: test_instructions.sh TRIREME [OTHER 'MODEL OPTIONS'...]
program=$(realpath "$1")
other=$(realpath "${2:-$1}")
shift
[ $# -gt 0 ] && shift
[ $# -gt 0 ] || set -- linear mlp lenet5 cnn resnet18:form=small,classes=10,width=16 \
    resnet50:size=32,classes=10,width=16 gpt2-tiny:seq=16,vocab=300 bert-tiny:seq=32 \
    'lenet5 --amp O2' 'resnet18:form=small,classes=10,width=16 --amp O2' \
    'gpt2-tiny:seq=16,vocab=300 --amp O1'
. "$(dirname "$0")/cases.sh"

weights() { # program, instruction set, model, options: the hash of the weights after two steps
    TRIREME_ISA=$2 "$1" train $3 --data synthetic --batch 2 --steps 2 --optimizer momentum \
        --quiet --out run $4 >log 2>&1 || { cat log; return 1; }
    sed -n 's/.* weights=\([^ ]*\) .*/\1/p' log
}
same() { # model
    plain=$(weights "$program" plain "$1" '--threads 1') && [ -n "$plain" ] || return 1
    for how in 'plain --threads 2' 'avx2 --threads 2' 'avx512 --threads 3' \
        'avx512bf16 --threads 1' 'neon --threads 2' 'avx2 -n 2'; do
        isa=${how%% *}
        TRIREME_ISA=$isa "$other" doctor >/dev/null 2>&1 || continue
        got=$(weights "$other" "$isa" "$1" "${how#* }") || { echo "$how: $got"; return 1; }
        [ "$got" = "$plain" ] || { echo "plain: $plain, $how: $got"; return 1; }
    done
}

for model; do check "the same weights of $model" same "$model"; done
finish
