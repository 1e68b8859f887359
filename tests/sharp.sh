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

parallel() { # script, further arguments; in a folder of its own
    script=$here/parallel/$1
    shift
    python3 "$script" "$program" "$@" >"$work/parallel" || { cat "$work/parallel"; return 1; }
    sed 's/^/    /' "$work/parallel" >&3
}

item_a() {
    exec 3>&1
    PAIRS=${PAIRS:-600} check "scaled ${PAIRS:-600} times after kills, a mesh and stages" \
        parallel stages.py "scaled after kills"
    check "all workers wait: they are replaced, once" \
        parallel stalls.py "$build/tests/hang" "$build/tests/tamper" "all workers wait"
}

# ---- b: recomputation, fit, maybe

# What a run over a mesh says after a step, without its time.
weights() {
    "$program" train "$@" --data synthetic --steps 3 --quiet 2>&1 | sed 's/ seconds=.*//'
}

# A log_softmax that is rebuilt, because it is split along its axis.
same_again() {
    cat >soft.tri <<'END'
graph {batch=8}
%x = input() {name="x", type=f32, shape=[8,150,12]}
%w = param() {name="w", shape=[150,12], init="normal(0,1)"}
%a = log_softmax(%x) {axis=1} @ "soft"
%b = mul(%a, %w) @ "times"
%c = mul(%b, %b) @ "square"
%l = mean(%c) {axes=[0,1,2]}
loss "loss" %l
END
    echo 'maybe * seq=model' >seq.txt
    set -- soft.tri --mesh model=2 --strategy seq.txt
    first=$(weights "$@" --recompute none)
    echo "none: $first"
    case $first in 'done '*) ;; *) return 1 ;; esac
    for way in '--recompute full' '--recompute soft' '--recompute full --stages 2 --zero 3' \
        '--recompute * --stages 3 --zero 0 --lanes 1'; do
        # shellcheck disable=SC2086 # words
        found=$(set -f; weights "$@" $way)
        echo "$way: $found"
        [ "$found" = "$first" ] || return 1
    done
}

# Every factor that a network may have: what cannot be split so is left out.
skips() {
    for factor in batch rows features seq height width vocab in out x; do
        echo "maybe * $factor=model" >maybe.txt
        for seats in 2 5; do
            found=$(weights "$@" --lanes 1 --mesh model=$seats --strategy maybe.txt)
            echo "$factor over $seats: $found"
            case $found in
            done*) ;;
            *'nothing uses the axis'*) ;;
            *) return 1 ;;
            esac
        done
    done
}

outside() {
    cat >outside.tri <<'END'
graph {batch=8, mesh="2"}
%x = input() {name="x", type=f32, shape=[8,12]}
%w = param() {name="w", shape=[12,10], init="normal(0,1)"}
%v = tanh(%w) @ "squash"
%y = matmul(%x, %v)
%l = mean(%y) {axes=[0,1]}
shard "squash" "(2,1)"
loss "loss" %l
END
    found=$(weights outside.tri)
    echo "$found"
    case $found in *'squash (tanh f32[12,10]): it cannot be split'*) ;; *) return 1 ;; esac
}

# fit MODEL...: with the limit that `memory` prints for full recomputation fit runs, and so it does
# with the least that it says it needs.
fit() {
    full=$("$program" memory "$@" --recompute full |
        awk '/in all$|program itself/ { sum += $1 } END { print sum }')
    least=$("$program" train "$@" --steps 1 --quiet --recompute fit --memory-limit 1M 2>&1 |
        sed -n 's/.*does not fit: \([0-9,]*\) of.*/\1/p' | tr -d ,)
    echo "full $full MiB, at least $least MiB"
    for limit in "$full" "$least"; do
        "$program" train "$@" --steps 1 --quiet --recompute fit --memory-limit "${limit}M" ||
            return 1
    done
}

item_b() {
    yes 'the quick brown fox jumps over the lazy dog' | head -n 50000 >words.txt
    check 'fit: data that are held' fit gpt2-tiny:seq=64,vocab=256 --batch 8 --lanes 1 \
        --data text:words.txt
    check 'fit: steps of two shapes' fit gpt2-tiny:seq=64,vocab=256 --batch 16 --lanes 2 \
        --data synthetic:size=40 --tail keep
    check 'recomputation of a rebuilt operator' same_again
    for net in 'lenet5 --batch 4' 'bert-tiny:seq=16,layers=1 --batch 2' \
        'resnet18:form=small,width=4 --batch 2'; do
        # shellcheck disable=SC2086 # words
        check "maybe: $net" skips $net
    done
    check 'a shard outside of the lanes' outside
}

# ---- c: memory beyond the plan

# In a memory group of the limit, where one can be made; its peak must be below the limit.
within_the_limit() { # MiB, command
    limit=$1
    shift
    group=/sys/fs/cgroup/memory/trireme-sharp-$$
    if mkdir "$group" 2>/dev/null; then
        echo $((limit << 20)) >"$group/memory.limit_in_bytes"
        sh -c 'echo $$ >"$0/cgroup.procs" && exec "$@"' "$group" "$@"
        code=$?
        echo "peak $(($(cat "$group/memory.max_usage_in_bytes") >> 20)) of $limit MiB"
        until rmdir "$group" 2>/dev/null; do sleep 0.1; done
        return $code
    fi
    /usr/bin/time -f %M -o peak "$@" && echo "peak $(($(cat peak) >> 10)) of $limit MiB" &&
        [ "$(cat peak)" -le $((limit << 10)) ]
}

item_c() {
    check 'hashes of a large tensor' within_the_limit 640 "$program" train \
        mlp:hidden=6000,layers=4 --lanes 1 --batch 8 --threads 1 --steps 1 --memory-limit 640M
    cat said
    SLOW=1 python3 "$here/parallel/planned.py" "$program" >planned && code=0 || code=1
    cat planned
    check 'all families take what is planned' [ $code -eq 0 ]
}

# ---- d: beside other work

# Medians of five rounds of every form of parallelism, which may be twice the limits.
item_d() {
    SLOW=1 ROUNDS=5 TIMES=2 python3 "$here/parallel/beside.py" "$program" >beside &&
        code=0 || code=1
    cat beside
    check 'beside busy processes' [ $code -eq 0 ]
}

# ---- e: limits and defaults

item_e() {
    stages=$build/examples/two_stages
    check 'defaults count as not given' "$stages" synthetic 32 --steps 1 --batch 8 --lanes 2 \
        --stages 1 --pipeline 1f1b --steal late --chunks 2
    check 'audits with stages' python3 "$here/parallel/stages.py" "$program" audit
    check 'no stage is a reshape' sh -c "'$program' explain mlp --stages 2 --batch 8 --lanes 4 |
        grep -q '^  0 .*reshape, fc1.matmul'"
    check 'one rank is told' sh -c "'$program' train mlp --stages 2 --pipeline interleaved \
        --steps 1 --batch 8 --lanes 4 --quiet 2>&1 | grep -q 'makes one rank'"
    for case in 'many results' 'a long path' threads; do
        check "$case" python3 "$here/parallel/workers.py" "$program" "$build/tests/own_loop" \
            "$build/tests/tamper" "own loop: $case"
    done
}

# ---- f: resume
item_f() {
    # BERT's two phases
    words='--batch 8 --optimizer adamw --quiet --ckpt phases'
    check 'resume: 20 steps of short sequences' "$program" train bert-tiny:seq=32 $words --steps 20
    check 'resume: long sequences are another network' sh -c "! '$program' train bert-tiny:seq=64 \
        $words --steps 40 --resume 2>refused && cat refused && grep -q 'another network' refused"
    check 'resume: another dropout, too' sh -c "! '$program' train bert-tiny:seq=32,dropout=0.2 \
        $words --steps 40 --resume 2>refused && cat refused && grep -q 'another network' refused"
    check 'resume: --changed goes on' "$program" train bert-tiny:seq=64 $words --steps 40 \
        --resume --changed
    check 'resume: ckpt show has the network' sh -c "'$program' ckpt show phases |
        grep -q '^%0 = input.*shape=\[8,64\]'"
    # sealed checkpoints in compare, texts of strategies in plan show
    words='linear --batch 8 --quiet --save-every 2 --steps 4'
    "$program" ckpt key secret
    check 'compare: a run' "$program" train $words --ckpt plain
    check 'compare: the same run, sealed' "$program" train $words --ckpt sealed --ckpt-key secret
    check 'compare: sealed checkpoints' "$program" compare plain sealed --ckpt-key secret
    printf '[grain]\nmesh model=2\nstrategy a out=modle\n' >wrong
    check 'plan show: a wrong strategy' sh -c "! '$program' plan show wrong 2>refused &&
        grep 'no axis \"modle\"' refused"
}

# ---- g: one lane is the whole batch
g_hash() { # arguments of train
    "$program" train "$build/tests/across.so:loss=$@" --quiet 2>/dev/null |
        sed -n 's/.*weights=sha256:\([0-9a-f]*\) .*/\1/p'
}
g_all() { # one hash for all ways to compute the plan
    wanted=$(g_hash "$@")
    [ -n "$wanted" ] || return 1
    for ways in '-n 1' '-n 2' '-n 3 --zero 3' '--stages 2' '--stages 2 -n 2' '--threads 3' \
        '--stages 3 -n 3 --zero 2' '--recompute full -n 2'; do
        found=$(g_hash "$@" $ways)
        echo "$* $ways: $found"
        [ "$wanted" = "$found" ] || return 1
    done
}
g_deaths() { # the same with a kill of a worker every few milliseconds
    wanted=$(g_hash "$@")
    "$program" train "$build/tests/across.so:loss=$@" -n 3 --quiet >g.out 2>g.err &
    run=$!
    kills=0
    while kill -0 $run 2>/dev/null && [ $kills -lt 200 ]; do
        worker=$(pgrep -P $run | shuf -n 1)
        [ -z "$worker" ] || { kill -9 "$worker" && kills=$((kills + 1)); } 2>/dev/null
        sleep 0.02
    done
    wait $run
    found=$(sed -n 's/.*weights=sha256:\([0-9a-f]*\) .*/\1/p' g.out)
    echo "$* after $kills kills: $found"
    [ $kills -gt 0 ] && [ -n "$wanted" ] && [ "$wanted" = "$found" ]
}
item_g() {
    echo 'maybe * batch=data' >split
    for loss in balance whiten memory contrast lanes; do
        for mesh in '' '--mesh data=2 --strategy split' '--mesh data=3 --strategy split'; do
            check "one lane, $loss${mesh:+, $mesh}" g_all $loss,dropout=0.1 --batch 12 --steps 8 \
                --lanes 1 $mesh
        done
    done
    check 'per lane' g_all lanes,dropout=0.1 --batch 23 --steps 8 --lanes 5
    check 'per lane, on a mesh' g_all lanes --batch 23 --steps 8 --lanes 5 --mesh data=2 \
        --strategy split
    for loss in memory balance; do
        check "one lane, $loss: deaths" g_deaths $loss --batch 12 --steps 20000 --lanes 1
    done
    check 'per lane: deaths' g_deaths lanes --batch 24 --steps 20000 --lanes 4
}

# ---- h: programs

item_h() {
    check 'every command about every example' env SLOW=1 sh "$here/e2e/test_visit.sh" "$program" \
        "$build/tests/opens" "$build/examples/quickstart"
    tail -n 1 "$work/said"
}

# Precision and loss scale of a step that the program composed.
item_i() {
    mkdir -p own && cd own || return
    printf '%s\n' '[PAD]' '[UNK]' '[CLS]' '[SEP]' '[MASK]' . the man woman walks to town >vocab.txt
    for i in $(seq 40); do
        echo "the man walks to the town. the woman walks to the man. the man walks."
        [ $((i % 5)) -ne 0 ] || echo
    done >text.txt
    for options in '--amp O1' '--amp O2' '--amp O3 --loss-scale 1024' '--lanes 4 --lr 1e30' \
        '--amp O2 --loss-scale off --optimizer lamb --clip-norm 0.1' \
        '--amp O2 --recompute full'; do
        for example in bert_pretraining bert_step; do
            # shellcheck disable=SC2086
            "$build/examples/$example" vocab.txt text.txt --steps 6 --batch 8 $options 2>&1 |
                grep -o 'weights=sha256:[0-9a-f]*' >$example.hash
        done
        cat bert_step.hash
        check "bert_step $options" cmp bert_pretraining.hash bert_step.hash
        check 'its hash is there' test -s bert_step.hash
    done
    "$program" train mlp --data synthetic --steps 1 --optimizer adamw --lr 3e38 --weight-decay 100 \
        --quiet >last 2>&1
    check 'the last step left parameters that are not finite: exit 1' test $? -eq 1
    check 'and one is named' grep 'step 1, the last, made parameter .* infinite' last
    cd ..
}

for item in "${@:-a b c d e f g h i}"; do
    for part in $item; do
        echo "---- $part"
        if command -v "item_$part" >/dev/null; then
            "item_$part"
        else
            check "there is an item $part" false
        fi
    done
done
finish
