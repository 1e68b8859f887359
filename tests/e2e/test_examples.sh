#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The examples work as the guide describes. Usage: test_examples.sh TRIREME OWN_NETWORK.so
# PROGRAM..., the others are in its folder
program=$(realpath "$1") network=$(realpath "$2") programs=$(dirname "$(realpath "$3")")
quickstart=$programs/quickstart custom_step=$programs/custom_step
own_operator=$programs/own_operator own_data=$programs/own_data
pictures=$(realpath "$(dirname "$0")")/pictures.py
. "$(dirname "$0")/cases.sh"

says() { # pattern, command: succeeds, and its output matches
    pattern=$1
    shift
    "$@" >out 2>&1 </dev/null || { cat out; return 1; }
    grep -q -e "$pattern" out || { echo "no '$pattern' in:"; cat out; return 1; }
}
refuses() { # exit code, pattern, command
    code=$1 pattern=$2
    shift 2
    "$@" >out 2>&1 </dev/null
    [ $? -eq "$code" ] && grep -q -e "$pattern" out || { cat out; return 1; }
}
metric() { # name: every line of metrics.jsonl has a number for it
    steps=$(grep -c '"step":' "$1/metrics.jsonl")
    [ "$steps" -gt 0 ] && [ "$(grep -c "\"$2\":[0-9]" "$1/metrics.jsonl")" -eq "$steps" ]
}
weights() { sed -n 's/.*weights=sha256:\([0-9a-f]*\) .*/\1/p' out; }
equal() { [ -n "$1" ] && [ "$1" = "$2" ] || { echo "'$1' and '$2'"; return 1; }; }

check 'quickstart' says '^loss [0-9.]*, top1 [0-9.]*$' "$quickstart" --steps 100 --data synthetic
check 'its last line, the result' grep -q '^done steps=100 loss=[0-9.]* weights=sha256:' out
alone=$(weights)
check 'with two workers' says '^done steps=100 ' "$program" run -n 2 --out quick -- "$quickstart" \
    --steps 100 --data synthetic
check 'the weights are the same, bit for bit' equal "$alone" "$(weights)"
check 'quickstart takes options' says '^loss' "$quickstart" --steps 200 --batch 16 --lr 0.1 \
    --data synthetic
check 'quickstart refuses an unknown option' refuses 2 'batch' "$quickstart" --bacth 3
check 'its help' says '^  --steps N' "$quickstart" --help
check 'has topics' says '^  --sampler KIND' "$quickstart" --help data
check 'but -h is the program'\''s own' refuses 2 'unknown: -h' "$quickstart" -h
check 'and no others' refuses 2 'no topic dta; do you mean data?' "$quickstart" --help dta
check 'and one of no program' refuses 2 'unknown: --zeppelin' "$quickstart" --zeppelin
check 'and the number of workers' refuses 2 \
    '^.*: -n is an option of `trireme run`.*trireme run -n 2' "$quickstart" -n 2

check 'a step composed by hand' says '^done steps=30 ' "$custom_step" --steps 30 --out step
for name in loss top1 classes again norm scale; do
    check "its result $name" metric step $name
done
# 1024, doubled after every 20 steps without an overflow; a row may be the mean of several steps.
check 'its loss scale rises' grep -Eq '"step":30,.*"scale":(2048|1[1-9]..|20..)[,.]' \
    step/metrics.jsonl
check 'its callback' says 'images again to' "$custom_step" --epochs 1 --batch 128

check 'a user'\''s operator' says '^done steps=20 ' "$own_operator" --steps 20
check 'on the reference device' says '^done steps=3 ' "$own_operator" --steps 3 --device ref
check 'with lanes' says '4 lanes x 16 samples' "$own_operator" --steps 3 --lanes 4

check 'a user'\''s data, learned' says '^done steps=450 loss=0\.00' "$own_data" --out moons
check 'asked about points' says '(0, 1): moon 0' "$own_data"
check 'of both moons' grep -q '(1, -0.5): moon 1' out

check 'a user'\''s network' says '^done steps=3 ' "$program" train "$network" --steps 3 \
    --batch 8 --save own.safetensors
check 'it takes arguments' says '^done steps=2 ' "$program" train "$network:width=4" --steps 2 \
    --batch 8
check 'it is evaluated' says '^eval .*top1=' "$program" eval "$network" --load own.safetensors \
    --data synthetic:size=64
check 'it is dumped' says 'conv2d(' "$program" dump "$network"
check 'it is measured' says '^bench ' "$program" bench "$network" --steps 3 --batch 8

# The published examples, on small data.
linear=$programs/linear_regression
check 'linear regression finds 2, 3 and 5, the loss below 0.002' \
    says '^z = \(2.0.\|1.9.\) x^2 + \(3.0.\|2.9.\) y^3 + \(5.0.\|4.9.\), loss 0.00[01]' "$linear"
alone=$(weights)
check 'with two workers' says '^z = ' "$program" run -n 2 --out linear -- "$linear"
check 'the weights are the same, bit for bit' equal "$alone" "$(weights)"
check '-n auto says why' says '-n auto: [0-9]* worker.*measured' "$program" run -n auto \
    --out linear -- "$linear" --epochs 5000
check 'its loss monitor' grep -q '^epoch 4999, step 500000/500000: loss 0.00[01]' out

python3 "$pictures" folder 3 8 40
resnet=$programs/resnet50
check 'ResNet-50 on a folder' says '^done steps=22 ' "$resnet" folder 3 32 --batch 2 --steps 22 \
    --save-every 10 --eval-every 11 --out resnet
check 'its lines of the loss' grep -q '^epoch [0-9]*, step 20/22: loss [0-9.]*  top1 [01]' out
check 'its epochs are timed' grep -q '^epoch 0: [0-9.]* s, [0-9.]* ms a step' out
check 'its checkpoint' test -f ckpt/resnet50/step-000000010/model.safetensors
check 'it is evaluated' grep -q '"eval":{"loss":[^,]*,"top1":[01]' resnet/metrics.jsonl
check 'the best is known' says 'best top1:max [01]' "$program" ckpt ls ckpt/resnet50
check 'it resumes' says 'resumes from ckpt/resnet50/step-000000022' "$resnet" folder 3 32 \
    --batch 2 --steps 23 \
    --eval-every 11 --resume

printf '%s\n' '[PAD]' '[UNK]' '[CLS]' '[SEP]' '[MASK]' . , a the man woman walks talks reads to in \
    town house >vocab.txt
for i in $(seq 60); do
    echo "the man walks to the town. a woman reads in the house. the man talks, the woman walks."
    [ $((i % 5)) -ne 0 ] || echo
done >text.txt
check 'BERT'\''s pre-training' says '^done steps=30 ' "$programs/bert_pretraining" vocab.txt \
    text.txt --steps 30 --batch 8
check 'what it reports' \
    grep -q '^step 30: loss [0-9.]*, masked words [0-9.]*, next sentence [0-9.]*, overflow no, '\
'scale 65536$' out
check 'in 16 bits' says '^done steps=9 ' "$programs/bert_pretraining" vocab.txt text.txt --steps 9 \
    --batch 8 --amp O2 --loss-scale dynamic:every=4
usual=$(weights)
check 'with a step of its own' says '^done steps=9 ' "$programs/bert_step" vocab.txt text.txt \
    --steps 9 --batch 8 --amp O2 --loss-scale dynamic:every=4
check 'the weights are the same, bit for bit' equal "$usual" "$(weights)"
check 'which refuses what its step lacks' refuses 2 'without the sum of gradients' \
    "$programs/bert_step" vocab.txt text.txt --gradients-mean off
check 'a composed step in 16 bits' says '^done steps=3 ' "$custom_step" --steps 3 --amp O2
check 'an overflow' says 'overflow yes, scale [0-9]' "$programs/bert_pretraining" vocab.txt \
    text.txt --steps 30 \
    --batch 8 --lr 1e30 --clip-norm 1e30

fed=$programs/fed_loop
for option in '--data synthetic' '--lr 0.1' '--batch 8' '--schedule cosine'; do
    check "a fed loop refuses $option" refuses 2 'fed_loop sets .* itself: omit them' "$fed" $option
done
check 'a loop that feeds' says '^step 2000: loss [0-9.e-]*$' "$fed"
check 'has learned' python3 -c \
    'import re; assert float(re.findall("loss (.*)", open("out").read())[-1]) < 1e-3'
alone=$(weights)
check 'also with two workers' says '^done steps=2000 ' "$program" run -n 2 --out fed \
    -- "$fed"
check 'with the same bits' equal "$alone" "$(weights)"

accumulation=$programs/gradient_accumulation
check 'four parts of 64' says '4 lanes x 64 samples' "$accumulation" --steps 3 --threads 1
alone=$(weights)
check 'at once' says '^done steps=3 ' "$program" run -n 3 --out parts -- "$accumulation" --steps 3
check 'with the same bits' equal "$alone" "$(weights)"

experts=$programs/mixture_of_experts
check 'a mixture of experts, its balance per lane' says '^done steps=640 loss=0\.[0-3]' "$experts" \
    --epochs 20
alone=$(weights)
check 'also with two workers' says '^done steps=640' "$program" run -n 2 --out experts -- \
    "$experts" --epochs 20
check 'with the same bits' equal "$alone" "$(weights)"
check 'its balance over the whole batch' says '^done steps=64 ' "$experts" whole --lanes 1 \
    --epochs 2
alone=$(weights)
check 'two workers' says '^done steps=64 ' "$program" run -n 2 --out experts -- "$experts" whole \
    --lanes 1 --epochs 2
check 'have the same bits' equal "$alone" "$(weights)"
check 'it needs one lane' refuses 2 '4 lanes: .*--lanes 1' "$experts" whole

towers=$programs/two_towers
check 'two towers' says '^done steps=320 ' "$towers" --epochs 10 --out towers
alone=$(weights)
check 'find more than half of the items' python3 -c '
import json
last = [json.loads(l) for l in open("towers/metrics.jsonl") if "found" in l][-1]
assert last["found"] > 0.5, last'
check 'two towers in two stages and two workers' says '^done steps=320 ' "$program" run -n 2 \
    --out towers2 -- "$towers" --epochs 10 --stages 2
check 'have the same bits' equal "$alone" "$(weights)"

stages=$programs/two_stages
hash_of() { grep -o 'weights=sha256:[0-9a-f]*' out; }
check 'two stages' says '^done steps=2 ' "$stages" synthetic 32 --steps 2 --batch 8 --lanes 4
wanted=$(hash_of)
same() { # pattern, command: succeeds, with the same weights
    says "$@" && [ "$(hash_of)" = "$wanted" ]
}
check 'no stages' same '^done' "$stages" synthetic 32 --steps 2 --batch 8 --lanes 4 --stages 1
check 'two workers' same '^done' "$program" run -n 2 -- "$stages" synthetic 32 --steps 2 \
    --batch 8 --lanes 4 --pipeline gpipe
check 'gpt2: mesh, stages, ZeRO' says '^done' "$program" train gpt2-tiny:seq=16,vocab=103 \
    --data synthetic --steps 2 --batch 8 --lanes 8 --stages 2 --mesh model=2 --strategy megatron \
    --zero 2 -n 4
check '32 micro-batches' says '^done' "$program" train gpt2-tiny:seq=16,vocab=103 \
    --data synthetic --steps 2 --batch 32 --lanes 32 --stages 8 -n 8
check 'resnet152: a hybrid, 16 bits, a limit' says '^done' "$program" train \
    resnet152:size=32,width=16 --data synthetic --steps 1 --batch 32 --lanes 16 --stages 4 \
    --amp O2 --recompute full --memory-limit 540M -n 4
check 'stages refuse a pipeline that none has' refuses 2 'has no effect without stages' \
    "$stages" synthetic 32 --stages 1 --pipeline gpipe

two=$programs/two_seats
loss() { sed -n 's/^done .*loss=\([0-9.]*\) .*/\1/p' out; }
near() { # two numbers
    python3 -c 'import sys; a, b = map(float, sys.argv[1:]); sys.exit(abs(a - b) > 1e-5 * b)' "$@"
}
check 'a product over two seats' says '^loaded without a mesh: y' "$two"
check 'its lines of the loss' grep -q '^epoch 9, step 160/160: loss 2\.[0-9]*$' out
split=$(weights) split_loss=$(loss)
check 'its checkpoints' test -f ckpt/two_seats/step-000000160/model.safetensors
rm -r ckpt/two_seats
check 'with two workers' says '^loaded' "$program" run -n 2 --out two -- "$two"
check 'the weights are the same, bit for bit' equal "$split" "$(weights)"
rm -r ckpt/two_seats
check 'without the mesh' says '^loaded' "$two" whole
check 'the loss is the same, but for rounding' near "$split_loss" "$(loss)"
check 'the bits are others' test "$split" != "$(weights)"

"$program" train resnet18:classes=7 --steps 1 --batch 2 --save theirs.safetensors --quiet >out 2>&1
check 'fine-tuning with a new head' says 'eval at step 6: loss' "$programs/fine_tuning" folder 3 \
    --load theirs.safetensors \
    --batch 4 --epochs 1 --save ours.safetensors
check 'the head starts from new weights' grep -q 'fc.weight' out
check 'the rest is frozen' python3 -c '
import json, struct, sys
def tensors(path):
    data = open(path, "rb").read()
    n = struct.unpack("<Q", data[:8])[0]
    return {k: data[8 + n + v["data_offsets"][0]:8 + n + v["data_offsets"][1]]
            for k, v in json.loads(data[8:8 + n]).items() if k != "__metadata__"}
a, b = tensors("theirs.safetensors"), tensors("ours.safetensors")
same = [k for k in a if a[k] == b[k] and not k.startswith("fc.")]
sys.exit(not all(k in same for k in a if k.endswith("weight") and not k.startswith("fc.")))'
finish
