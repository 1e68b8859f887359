#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What a change costs: applies each patch of this folder to a copy of the sources, builds that, uses
# what the patch adds, and counts the files that it touches. Usage: house.sh ROOT
root=$(realpath "$1")
here=$(dirname "$(realpath "$0")")
. "$here/../e2e/cases.sh"

patched() { # patch, options of the build
    mkdir "$1" && (cd "$root" && git ls-files -z | xargs -0 cp --parents -t "$work/$1") &&
        (cd "$1" && patch -p1 --quiet <"$here/$1.patch") &&
        meson setup "$1/build" "$1" -Dwidest=plain ${2-} >"$1.log" &&
        ninja -C "$1/build" src/trireme >>"$1.log" || { tail -n 20 "$1.log"; return 1; }
}

touches() { # patch, number of files
    n=$(grep -c '^+++ ' "$here/$1.patch")
    echo "$1.patch touches $n files"
    [ "$n" -eq "$2" ]
}

# An option with three words that belongs to the plan: the field, the row, its place in a plan, and
# the place of its effect.
option() {
    program=option/build/src/trireme
    set -- train mlp:hidden=8 --steps 1 --data synthetic --quiet
    $program train --help advanced | grep -q '^ *brick: of bricks' || return 1
    $program "$@" --house stone 2>&1 | grep 'it can be plain, brick or timber' || return 1
    $program "$@" --house brick --save-plan brick.txt 2>&1 | grep 'the house is of bricks' ||
        return 1
    grep '^house brick$' brick.txt || return 1
    $program "$@" --plan brick.txt 2>&1 | grep 'the house is of bricks' || return 1
    $program "$@" --plan brick.txt --house timber 2>&1 | grep 'house brick, but --house timber' ||
        return 1
    $program "$@" --ckpt ck >/dev/null 2>&1
    $program "$@" --ckpt ck --resume --house brick 2>&1 | grep '^+ house brick$'
}

# A region of the store: its row, and its user. Each worker counts its steps there, and the one that
# closes the run reads them all: also those of a worker whose place a spare has taken.
region() {
    program=region/build/src/trireme
    set -- train mlp:hidden=8 --steps 40 --data synthetic --lanes 2 --threads 1 -n 2
    $program "$@" --quiet 2>&1 | tee began | grep -E '^worker [01] began [1-9][0-9]* steps$'
    grep -q '^worker 0 began 40 steps$' began && [ "$(grep -c began began)" -eq 2 ] || return 1
    env TRIREME_POINT=1:300 $program "$@" --spares 1 2>&1 | tee began | grep 'worker 1 .*killed'
    grep '^worker 1 began [1-9]' began && [ "$(grep -c '^worker . began' began)" -eq 3 ]
}

check 'an option: it builds' patched option
check 'an option: it is parsed, refused, helped, planned and compared' option
check 'an option: files' touches option 4
check 'a region of the store: it builds' patched region -Dpoints=true
check 'a region of the store: workers write it, and find it after a death' region
check 'a region of the store: files' touches region 2
finish
