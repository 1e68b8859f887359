#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# One lane is the whole batch, whoever computes it: losses and updates that use results of the whole
# batch for each sample; and reductions per lane. Usage: test_across.sh TRIREME ACROSS.so
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
for loss in balance whiten memory contrast; do
    set -- "$network:loss=$loss,dropout=0.2" --steps 5 --batch 12 --lanes 1
    alone=$(hash_of "$@")
    check "$loss: two threads" same "$alone" "$@" --threads 2
    one_plan "$loss" "$alone" "$@"
    set -- "$@" --mesh data=2 --strategy split
    one_plan "$loss, samples split over seats" "$(hash_of "$@")" "$@"
done
for loss in balance whiten memory contrast; do
    check "$loss: several lanes are refused" refuses '4 lanes: .*; --lanes 1 ' \
        "$network:loss=$loss" --steps 1 --batch 12 --lanes 4
done

# Of each lane; 11 samples make lanes of 4, 4 and 3.
set -- "$network:loss=lanes,dropout=0.2" --steps 5 --batch 11 --lanes 3
alone=$(hash_of "$@")
check 'per lane: one thread' same "$alone" "$@" --threads 1
one_plan 'per lane' "$alone" "$@"
check 'per lane: three workers' same "$alone" "$@" -n 3
set -- "$@" --mesh data=2 --strategy split
one_plan 'per lane, samples split over seats' "$(hash_of "$@")" "$@"
first() { # result, arguments: of the first step
    result=$1
    shift
    "$program" train "$@" --out out.d --metrics-every 1 >out 2>&1 || { cat out >&2; return 1; }
    sed -n "1s/.*\"$result\":\([^,]*\),.*/\1/p" out.d/metrics.jsonl
}
near() { # two numbers
    python3 -c 'import sys; a, b = map(float, sys.argv[1:]); sys.exit(abs(a - b) > 3e-6 * abs(b))' \
        "$@" || { echo "$1 and $2"; return 1; }
}
loss() { # arguments: after 20 steps
    "$program" train "$@" --steps 20 --lr 0.1 --quiet 2>err | sed 's/.*loss=\([^ ]*\) .*/\1/'
}
for batch in 12 11 10; do
    check "per lane: as slices of the batch, $batch samples" near \
        "$(loss "$network:loss=lanes" --batch $batch --lanes 3)" \
        "$(loss "$network:loss=slices" --batch $batch --lanes 1)"
done

# Six samples and six that fill up the step, two lanes of these.
set -- "$network:loss=lanes" --data synthetic --sampler sequential --subset 0:6 --steps 1
for result in wrong top sum; do
    parts=$(first $result "$@" --batch 12 --lanes 4 --tail pad)
    [ $result = wrong ] || parts=$(python3 -c "print(2 * $parts)")
    check "per lane: $result without the padding" near "$parts" \
        "$(first $result "$@" --batch 6 --lanes 2)"
done
set -- "$network:loss=lanes" --data synthetic --subset 0:17 --steps 6 --batch 12 --lanes 3
for tail in pad keep; do
    check "per lane: --tail $tail, two workers" same "$(hash_of "$@" --tail $tail)" "$@" \
        --tail $tail -n 2
done
check 'of the whole batch, padding is refused' refuses 'none can be left out' \
    "$network:loss=balance" --data synthetic --subset 0:6 --batch 12 --lanes 1 --tail pad

set -- "$network:loss=lanes" --batch 12 --ckpt ckpt
hash_of "$@" --lanes 3 --steps 2 >/dev/null
check 'per lane: a resume with other lanes is refused' refuses \
    'made with --lanes 3 (this run has 4), which are part of the loss' "$@" --lanes 4 --steps 4 \
    --resume
check 'with the same it goes on' same "$(hash_of "$network:loss=lanes" --batch 12 --lanes 3 \
    --steps 4)" "$@" --lanes 3 --steps 4 --resume -n 2
marks() { # options: explain says so
    "$program" explain "$network:loss=lanes" --batch 12 --lanes 3 --full "$@" >out 2>&1 &&
        grep -q 'sum .*per lane$' out || { cat out; return 1; }
}
check 'explain: per lane, on a mesh' marks --mesh data=2 --strategy split
"$program" explain "$network:loss=lanes" --batch 12 --lanes 3 >out 2>&1
check 'and without' grep -A1 '^per lane, of its own samples: ' out
check 'explain --json' sh -c '"$0" explain "$1:loss=lanes" --batch 12 --mesh data=2 \
    --strategy split --json | grep -q "\"per_lane\": *true"' "$program" "$network"
check 'values that are not of samples are refused' refuses 'per_lane is for values of samples' \
    "$network:loss=weights" --batch 12 --lanes 3 --steps 1
check 'as is a parameter with a row per lane' refuses \
    'w is f32\[1,6\], and its new value, .*: results per lane .*a row for each of 3 lanes' \
    "$network:loss=rows" --batch 12 --lanes 3 --steps 1
finish
