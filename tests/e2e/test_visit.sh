#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# `trireme COMMAND -- PROGRAM`: commands about the network that a program opens.
# Usage: test_visit.sh TRIREME OPENS PROGRAM..., the examples are in the folder of PROGRAM; with
# SLOW=1 bench measures every example, too.
program=$(realpath "$1") opens=$(realpath "$2") programs=$(dirname "$(realpath "$3")")
pictures=$(realpath "$(dirname "$0")")/pictures.py
. "$(dirname "$0")/cases.sh"

says() { # pattern, command: succeeds, and what it prints on stdout matches
    pattern=$1
    shift
    "$@" >out 2>err </dev/null || { cat out err; return 1; }
    grep -q -e "$pattern" out || { echo "no '$pattern' in:"; cat out; return 1; }
}
refuses() { # exit code, pattern, command
    code=$1 pattern=$2
    shift 2
    "$@" >out 2>&1 </dev/null
    found=$?
    [ $found -eq "$code" ] && grep -q -e "$pattern" out && return
    echo "exit code $found"
    cat out
    return 1
}

# The same as of a model of the zoo, to the byte, but for the name.
same() { # model, command and its options
    model=$1
    shift
    "$program" "$@" "$model" >ours 2>err || { cat ours err; return 1; }
    "$program" "$@" -- "$opens" train "$model" >theirs 2>err || { cat theirs err; return 1; }
    grep -v 'available memory' ours | sed "s|$model|opens|; s|\b${model%%:*}\b|opens|" >expected
    grep -v 'available memory' theirs | diff expected -
}
printf '%s\n' '[PAD]' '[UNK]' '[CLS]' '[SEP]' '[MASK]' . , the man walks to town >vocab.txt
for i in $(seq 60); do
    printf 'the man walks.\nthe town walks to the man.\nthe man walks.\n\n'
done >text.txt
bert=bert-tiny:seq=16/8,layers=1,hidden=16,heads=2,inner=32,vocab=50,positions=16
check 'dump' same mlp dump
check 'dump after a pass, of another batch' same lenet5 dump --after train --batch 8 \
    --optimizer adam
check 'dump of one for samples of two lengths' same "$bert" dump --after lanes --lanes 2 --batch 8
check 'summary' same lenet5 summary --batch 8
check 'its layers' says '^conv1  *conv2d  *f32\[8,6,28,28\]  *156  ' "$program" summary lenet5 \
    --batch 8
check 'its total' says '^61706 parameters, 0.2 MiB' "$program" summary lenet5
check 'fewer words of names' says '^layer1  *conv2d, ' "$program" summary resnet18 \
    --depth 1
# Published: 4.09 G for ResNet-50 at 224 x 224. GPT-2 has n = 1024 tokens of 12 layers of width
# h = 768, each 12 h^2 + n h, as it sees half of the pairs, and n h * 50257 for the classes: 136.2
# G. BERT has n = 128 of 12 h^2 + 2 n h, and 20 h (h + 30522) for what is predicted: 11.65 G.
check 'multiply-adds as published' says 'a sample: 4\.\(0[5-9]\|1[0-3]\)[0-9]* G multiply' \
    "$program" summary resnet50
check 'GPT-2, by its formula' says 'a sample: 136\.[0-9] G multiply-adds' "$program" summary \
    gpt2-small:seq=1024 --batch 1
check 'BERT, by its formula' says 'a sample: 11\.6[0-9]* G multiply-adds' "$program" summary \
    bert-base
check 'explain' same mlp explain --lanes 4 --batch 16
check 'explain, as JSON' same gpt2-tiny:seq=8,layers=2,vocab=40 explain --json --mesh model=2 \
    --strategy megatron --batch 8
check 'memory' same lenet5 memory --ckpt c --zero 3 --lanes 2
check 'memory of one for samples of two lengths' same "$bert" memory --batch 8 --ckpt c \
    --data text:text.txt --tokenizer bert:vocab.txt
check 'memory of workers' same lenet5 memory -n 3 --most 4 --lanes 4 --ckpt c
check 'memory makes no directory' test ! -e c
check 'what the program prints is not in it' grep -q "the program's own line" err

# The program's options, and those before --.
check 'the program'\''s options' says 'batch 24, lanes 3, threads 2' "$program" memory -- "$opens" \
    train mlp --batch 24 --lanes 3 --threads 2
check 'overridden' says 'batch 8, lanes 2, threads 2' "$program" memory --batch 8 --lanes 2 -- \
    "$opens" train mlp --batch 24 --lanes 3 --threads 2
check 'threads of workers are not the program'\''s' says '^2 workers of .* thread' \
    "$program" memory -n 2 -- "$opens" train mlp --threads 77 --lanes 8
check 'whose number is another' sh -c '! grep -v "available memory" out | grep 77'
check 'bench' says '^bench model=opens batch=24 lanes=3 threads=1 .* steps=5 ' "$program" bench \
    --steps 5 -- "$opens" train mlp --batch 24 --lanes 3 --threads 1 --epochs 7 --save w --out o
"$program" train mlp:hidden=32 --data synthetic --steps 1 --quiet --save narrow >/dev/null
check 'bench, from weights that fit in part' says '^bench model=opens' "$program" bench --steps 2 \
    -- "$opens" train mlp --load narrow --partial
check 'the same, with an option of each' says '^bench model=opens' "$program" bench --steps 2 \
    --partial -- "$opens" train mlp --load narrow
check '--partial alone' refuses 2 '--partial takes what fits' "$program" bench --steps 2 \
    --partial -- "$opens" train mlp
check 'bench --largest' says '^largest model=opens batch=[0-9]' "$program" bench --largest \
    --memory-limit 100M -- "$opens" train mlp
check 'bench by workers' says '^ *2 .* yes .*[0-9]$' "$program" bench -n 1,2 --steps 20 \
    --lanes 4 -- "$opens" train mlp --save w
check 'bench of several lanes' says '^ *1 .* 4 .* yes .*[0-9]$' "$program" bench --steps 3 \
    --lanes 2,4 -- "$opens" train mlp --save w
check 'a row each' test "$(grep -c ' yes ' out)" -eq 2
"$opens" train mlp --batch 16 --steps 2 --save-plan plan.a --quiet >/dev/null
check 'the program itself trains' test -e called
"$opens" train mlp --batch 16 --steps 2 --lanes 2 --save-plan plan.b --ckpt b --quiet >/dev/null
rm -rf called exited ckpt b w
check 'compare' says '^3 steps: within' "$program" compare --plan plan.a --plan plan.b -- "$opens" \
    train mlp --steps 1 --ckpt c
check 'compare, of one plan' says '^2 steps: same bits' "$program" compare --steps 2 --plan plan.a \
    --plan plan.a -- "$opens" train mlp
check 'plan show, of the program'\''s run' says '^lanes 2$' "$program" plan show -- "$opens" train \
    mlp --batch 16 --lanes 2
{
    cat plan.b
    printf '\nseats: 1, as there is no mesh\nlanes: 2, each of 8 samples\n'
    echo "workers: 1, each with $(sed -n 's/^threads //p' plan.b) threads"
} >shown
check 'is what it saves, and what that comes to' diff shown out
check 'plan show FILE' says '^lanes 2$' "$program" plan show plan.b -- "$opens" train mlp
check 'is the same' diff shown out
sed 's/^lanes 2$/lanes 4/' plan.b >plan.e
check 'plan show of a plan that was edited' says '^grain: edited, ' "$program" plan show plan.e
check 'of another network' refuses 2 'plan.b:[0-9]*: model mlp, but the network is lenet5' \
    "$program" plan show plan.b -- "$opens" train lenet5
check 'plan diff' says '^bits differ$' "$program" plan diff plan.a plan.b -- "$opens" train mlp

# The K-th network.
check 'the first of two' says 'other.matmul' "$program" dump -- "$opens" second mlp
check 'the second' same mlp dump --after train
"$program" dump --network 2 --after train -- "$opens" second mlp >second 2>err
check 'is the same after another' diff theirs second
check 'the first was opened' grep -q '^first ' err
check 'with workers' says '^ *1 .* yes .*[0-9]$' "$program" bench -n 1 --steps 20 --network 2 -- \
    "$opens" second mlp
ls -A >left
check 'nothing was left' sh -c '! grep -x -e called -e exited -e first -e first.out -e first.hand \
    -e stepped -e w -e o -e c -e ckpt left'

# Mistakes.
check 'no network' refuses 1 'true ended with exit code 0 before network 1; it opened 0 (tri_open' \
    "$program" explain -- true
check 'its exit code' refuses 7 'sh ended with exit code 7 before' "$program" bench -- \
    sh -c 'exit 7'
check 'a third network' refuses 1 'exit code 0 before network 3; it opened 2 ' \
    "$program" dump --network 3 -- "$opens" second mlp
check 'of workers, too' refuses 7 '' "$program" bench -n 2 -- sh -c 'exit 7'
check 'a crash' refuses 137 'exit code 137 before' "$program" memory -- "$opens" crash
check 'no program' refuses 127 'cannot run mlp: No such file.*a MODEL goes before --' \
    "$program" dump -- mlp
check 'a mistake before the program runs' refuses 2 'unknown option --lane; do you mean --lanes' \
    "$program" dump --lane 3 -- touch ran
check 'it did not run' test ! -e ran
check '--network without a program' refuses 2 'network is for a program' "$program" dump mlp \
    --network 2
check 'a model and a program' refuses 2 'one word too many: .mlp' "$program" dump mlp -- "$opens"
"$opens" ordered --steps 2 --save-plan plan.o --quiet >/dev/null
rm -rf ckpt called exited
check 'data that can be read once' refuses 2 'compare makes several runs, but data in order' \
    "$program" compare --plan plan.o --plan plan.o -- "$opens" ordered
check 'with other data' says '^3 steps: same bits' "$program" compare --plan plan.o --plan plan.o \
    --data synthetic -- "$opens" ordered
check 'which bench reads' says '^bench' "$program" bench --steps 3 -- "$opens" ordered
check 'a mistake of the network' refuses 2 'no model is called' "$program" dump -- "$opens" \
    train mlq
check 'a lost descriptor' refuses 1 'handed over to this program is lost' "$program" dump -- \
    "$opens" lost mlp
check 'a full disk' refuses 1 'cannot write to stdout' sh -c \
    "'$program' dump -- '$opens' train mlp >/dev/full"
check 'a script' says 'matmul' "$program" dump -- sh -c "'$opens' second mlp; '$opens' train mlp"
check 'of which one process has it' test "$(grep -c '^graph\|^batch' out)" -le 1
# The examples.
mkdir examples && cp vocab.txt text.txt examples && cd examples || exit 1
python3 "$pictures" folder 3 8 40
arguments() { # example: its words
    case $1 in
    quickstart) echo --data synthetic ;;
    resnet50) echo folder 3 32 --batch 8 ;;
    bert_pretraining | bert_step) echo vocab.txt text.txt --batch 8 ;;
    fine_tuning) echo folder 3 --batch 4 --load resnet18.safetensors ;;
    two_stages) echo synthetic 32 --batch 8 --lanes 4 ;;
    esac
}
[ "${SLOW:-}" != 1 ] || "$program" train resnet18:classes=7 --steps 1 --batch 2 --quiet --out run \
    --save resnet18.safetensors
check 'samples of two lengths' says '^3 steps: same bits' sh -c "'$opens' train '$bert' --batch 4 \
    --data text:text.txt --tokenizer bert:vocab.txt --steps 1 --save-plan plan --quiet >/dev/null &&
    rm -rf ckpt called exited &&
    '$program' compare --plan plan --plan plan -- '$opens' train '$bert' --data text:text.txt \
    --tokenizer bert:vocab.txt"
rm -f out err
ls -A >before
of() { # pattern, example, command and its options
    pattern=$1 example=$2
    shift 2
    # shellcheck disable=SC2046
    says "$pattern" "$program" "$@" -- "$programs/$example" $(arguments "$example") &&
        ls -A | grep -v -x -e out -e err | diff before -
}
for example in quickstart custom_step own_operator own_data linear_regression resnet50 \
    bert_pretraining bert_step gradient_accumulation fine_tuning fed_loop two_seats two_stages \
    mixture_of_experts two_towers; do
    # The loss of two_towers is of the whole batch, which must stay one lane.
    [ $example = two_towers ] && split='--stages 2' || split='--lanes 2'
    check "dump of $example" of 'loss' $example dump
    check "memory of $example" of ' in all$' $example memory
    # shellcheck disable=SC2086 # words
    check "explain of $example" of 'lane' $example explain $split
    check "plan show of $example" of '^seats: ' $example plan show
    check "no line of it says edited" sh -c '! grep edited out'
    [ "${SLOW:-}" = 1 ] || continue
    check "bench of $example" of '^bench ' $example bench --steps 3
done
"$program" plan show -- "$programs/quickstart" --data synthetic --batch 16 >expected
"$programs/quickstart" --data synthetic --batch 16 --ckpt c --steps 2 --quiet
check 'plan show of a run with --resume --changed' says '^batch 16$' "$program" plan show -- \
    "$programs/quickstart" --data synthetic --batch 16 --ckpt c --resume --changed
check 'is that of a new run' diff expected out
rm -r c expected
check 'the second network of two_seats' of 'output "y"' two_seats dump --network 2
check 'its own operator, on the reference device' of '^bench' own_operator bench --steps 3 \
    --device ref
check 'a fed loop, on random numbers' of '^bench' fed_loop bench --steps 3
check 'it says so' grep -q 'the program feeds its batches' err
check 'a composed step' of 'where(' custom_step dump --after order
check 'of another batch' refuses 2 'for a batch of 64; it cannot be made for 8' \
    "$program" memory --batch 8 -- "$programs/custom_step"

# ---- plans that are found ----

afresh() { # command: without the checkpoints of the last
    rm -rf ckpt
    "$@"
}
hash_of() { sed -n 's/.* weights=\([^ ]*\).*/\1/p' "$1"; }
net="train mlp --batch 8 --lanes 2 --steps 3 --data synthetic"
check 'plans of a program' says '^1 *2 ' "$program" plan find --grain keep -- "$opens" $net
check 'a program without a plan' says '^done' afresh "$opens" $net --out plain
plain=$(hash_of out)
check 'that finds its plan' says '^done' afresh "$opens" $net --parallel auto --out own
check 'has its bits' test "$(hash_of out)" = "$plain"
check 'and its plan' grep -q '^predicted-ns' own/plan
check 'workers of a program find theirs' says '^done' \
    afresh "$program" run -n 2 --parallel auto --out two -- "$opens" $net
check 'with its bits' test "$(hash_of out)" = "$plain"
check 'for two' sh -c 'grep -q "^workers 2" two/plan && test -s two/worker-1.log'
check 'or any number' says '^done' afresh "$program" run --parallel auto --out some -- "$opens" $net
check 'and its bits' test "$(hash_of out)" = "$plain"
check 'workers without a plan' refuses 2 'several workers: trireme run --parallel auto' \
    "$program" run -n 2 -- "$opens" $net --parallel auto --out none
check 'no program' refuses 1 'no plan was found for ./nothing' \
    "$program" run --parallel auto -- ./nothing
finish
