#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Allocations of the program fail, one in each run: the program reports it and exits with 1, or
# continues and gives the same results. Every third one does, with SLOW=1 each. Usage:
# test_memory.sh TRIREME NO_MEMORY.so
trireme=$(realpath "$1") shim=$(realpath "$2")
. "$(dirname "$0")/cases.sh"

step=3
[ -z "${SLOW:-}" ] || step=1

# The output without the seconds.
result() { sed 's/ seconds=.*//' "$1"; }

each_fails() { # a command
    FAIL_COUNT=count LD_PRELOAD=$shim "$@" >right 2>err || { cat err; return 1; }
    [ "$(cat count)" -gt 20 ] || { echo 'the library counts nothing'; return 1; }
    i=0 wrong=0
    while [ $i -lt "$(cat count)" ]; do
        i=$((i + step))
        FAIL_AT=$i LD_PRELOAD=$shim "$@" >out 2>err
        code=$?
        if [ $code -eq 0 ]; then
            [ "$(result out)" = "$(result right)" ] && continue
            echo "allocation $i fails: another result"
        elif [ $code -eq 1 ] && [ -s err ]; then
            continue
        else
            echo "allocation $i fails: exit code $code: $(head -c 200 err)"
        fi
        wrong=1
    done
    return $wrong
}

linear="train linear --steps 2 --batch 8 --device ref --quiet --out run"
check 'train' each_fails "$trireme" $linear --lanes 3 --optimizer adam --save weights --clip-norm 1
check 'stages' each_fails "$trireme" train linear --steps 1 --batch 8 --device ref --quiet \
    --lanes 3 --stages 2 --pipeline zero-bubble --zero 3
check 'load' each_fails "$trireme" $linear --load weights
check 'eval' each_fails "$trireme" eval linear --load weights --data synthetic:size=10 --batch 4 \
    --device ref
check 'dump' each_fails "$trireme" dump mlp:layers=1 --after phases
"$trireme" dump mlp:layers=1 --after train >mlp.tri
check 'textual graph' each_fails "$trireme" dump mlp.tri
split='explain mlp:layers=1,hidden=64 --batch 32'
check 'explain' each_fails "$trireme" $split --mesh model=2 --strategy channels
check 'explain as JSON' each_fails "$trireme" $split --mesh model=32 --unset batch --json
check 'explain stages' each_fails "$trireme" explain mlp:layers=1,hidden=8 --batch 8 --lanes 2 \
    --stages 2 --json
finish
