#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# One lane is the whole batch, whoever computes it: losses and updates that use results of the whole
# batch for each sample. Usage: test_across.sh TRIREME ACROSS.so
program=$(realpath "$1") network=$(realpath "$2")
. "$(dirname "$0")/cases.sh"
echo 'maybe * batch=data' >split

hash_of() { # arguments of train
    "$program" train "$@" --quiet >out 2>err </dev/null || { cat err >&2; return 1; }
    sed -n 's/.*weights=\(sha256:[0-9a-f]*\).*state=\([0-9a-f]*\).*/\1 \2/p' out
}
same() { # the hash that is wanted, arguments
    wanted=$1
    shift
    found=$(hash_of "$@")
    [ -n "$wanted" ] && [ "$wanted" = "$found" ] || { echo "'$wanted' and '$found'"; return 1; }
}
refuses() { # pattern, arguments: usage error with this message
    pattern=$1
    shift
    "$program" train "$@" --quiet >out 2>&1 </dev/null
    [ $? -eq 2 ] && grep -q -e "$pattern" out || { cat out; return 1; }
}

# What computes the same plan: the options after the network.
one_plan() { # name, hash, arguments
    kind=$1 wanted=$2
    shift 2
    check "$kind: two workers" same "$wanted" "$@" -n 2
    check "$kind: two stages, two workers, ZeRO" same "$wanted" "$@" --stages 2 -n 2 --zero 3
}
for loss in balance whiten memory; do
    set -- "$network:loss=$loss,dropout=0.2" --steps 5 --batch 12 --lanes 1
    alone=$(hash_of "$@")
    check "$loss: two threads" same "$alone" "$@" --threads 2
    one_plan "$loss" "$alone" "$@"
    set -- "$@" --mesh data=2 --strategy split
    one_plan "$loss, samples split over seats" "$(hash_of "$@")" "$@"
done
for loss in balance whiten memory; do
    check "$loss: several lanes are refused" refuses '4 lanes: .*; --lanes 1 ' \
        "$network:loss=$loss" --steps 1 --batch 12 --lanes 4
done
finish
