#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Checkpoints of every earlier format can be loaded.
# Usage: test_old_checkpoints.sh TRIREME GOLDEN
#
# GOLDEN/checkpoints/vN has a checkpoint of six steps that an early program of format N wrote,
# vN-last one that the last program of format N wrote; both plain and sealed:
#     words   what was trained, on the reference device, whose bits are the same everywhere
#     done    the beginning of that run's last line: steps, loss, hashes
#     plain, sealed, key
# Before the format (CHECKPOINT_FORMAT) changes, the program of the old format adds another one:
#     mkdir vN-last; cd vN-last; trireme ckpt key key; cp ../v1-last/words .
#     trireme train $(cat words) --steps 6 --quiet --ckpt plain
#     trireme train $(cat words) --steps 6 --quiet --ckpt sealed --ckpt-key key |
#         sed 's/ seconds.*//' >done
#     rm -r run
program=$(realpath "$1") golden=$(realpath "$2")
. "$(realpath "$(dirname "$0")")/cases.sh"

last_line() { # beginning of the last line, options: trains on from the checkpoint
    expected=$1
    shift
    "$program" train $words --quiet "$@" >last || return 1
    grep -q "^$expected seconds=" last || { cat last; return 1; }
}
shows() { # pattern, arguments of ckpt
    pattern=$1
    shift
    "$program" ckpt "$@" >shown || { cat shown; return 1; }
    grep -q "$pattern" shown || { cat shown; return 1; }
}

for version in "$golden"/checkpoints/v*; do
    v=${version##*/}
    rm -rf ./*
    cp -r "$version/." . && chmod -R u+w . && chmod 600 key
    words=$(cat words) end=$(cat done) number=${v%%-*} number=${number#v}
    weights=${end##* weights=} weights=${weights%% *}
    for kind in plain sealed; do
        keyed=
        [ $kind = plain ] || keyed='--ckpt-key key'
        said=': intact$'
        [ "${v%-last} $kind" != 'v1 plain' ] || said=': intact; format 1: .* unchecked$'
        check "$v $kind: whole" shows "$said" verify $kind $keyed
        check "$v $kind: shown" shows "^weights $weights\$" show $kind $keyed
        check "$v $kind: its tensors are shown" shows 'f32\[3,4\] *fc1.weight$\|f32\[3,.*weight$' \
            show $kind $keyed
        check "$v $kind: says what is not compared" sh -c "'$program' train $words --quiet \
            --steps 6 --ckpt $kind --resume $keyed 2>&1 |
            grep -q 'has format $number, without network and plan: .* not be compared'"
        check "$v $kind: has the weights that were written" last_line "$end" --steps 6 \
            --ckpt $kind --resume $keyed
        file=$(echo $kind/step-000000006/model.safetensors*)
        check "$v $kind: its weights can be loaded alone" "$program" train $words --steps 1 \
            --quiet --load $file $keyed
        "$program" train $words --steps 9 --quiet --ckpt $kind --resume $keyed |
            sed 's/ seconds.*//' >$kind.nine
    done
    check "$v: both go on" grep -q '^done steps=9 ' plain.nine
    check "$v: and the same way" cmp plain.nine sealed.nine
    # Delete this check for older checkpoints if a release changes the bits of the reference device.
    check "$v: as in one go" last_line "$(cat plain.nine)" --steps 9
done
check 'there are checkpoints' test $passed -gt 10
finish
