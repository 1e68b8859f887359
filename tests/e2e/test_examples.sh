#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The examples run as the guide says.
# Usage: test_examples.sh TRIREME OWN_NETWORK.so QUICKSTART CUSTOM_STEP OWN_OPERATOR OWN_DATA
program=$(realpath "$1") network=$(realpath "$2")
quickstart=$(realpath "$3") custom_step=$(realpath "$4") own_operator=$(realpath "$5") own_data=$(realpath "$6")
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
metric() { # name in metrics.jsonl has a number in every line
    steps=$(grep -c '"step":' "$1/metrics.jsonl")
    [ "$steps" -gt 0 ] && [ "$(grep -c "\"$2\":[0-9]" "$1/metrics.jsonl")" -eq "$steps" ]
}

check 'quickstart' says '^loss [0-9.]*$' "$quickstart" --steps 100
check 'quickstart takes options' says '^loss' "$quickstart" --steps 200 --batch 16 --lr 0.1
check 'quickstart refuses what it does not know' refuses 2 'batch' "$quickstart" --bacth 3

check 'a step composed by hand' says '^done steps=30 ' "$custom_step" --steps 30 --out step
for name in loss top1 classes again norm scale; do
    check "its result $name" metric step $name
done
# 1024, doubled after each 20 steps without an overflow; a row may be the mean of several steps.
check 'its loss scale rises' grep -Eq '"step":30,.*"scale":(2048|1[1-9]..|20..)[,.]' step/metrics.jsonl
check 'its callback' says 'images again to' "$custom_step" --epochs 1 --batch 128

check 'an operator of one'\''s own' says '^done steps=20 ' "$own_operator" --steps 20
check 'on the reference device' says '^done steps=3 ' "$own_operator" --steps 3 --device ref
check 'with lanes' says '4 lanes x 16 samples' "$own_operator" --steps 3 --lanes 4

check 'data of one'\''s own, learned' says '^done steps=450 loss=0\.00' "$own_data" --out moons
check 'asked about points' says '(0, 1): moon 0' "$own_data"
check 'of both moons' grep -q '(1, -0.5): moon 1' out

check 'a network of one'\''s own' says '^done steps=3 ' "$program" train "$network" --steps 3 \
    --batch 8 --save own.safetensors
check 'it takes arguments' says '^done steps=2 ' "$program" train "$network:width=4" --steps 2 \
    --batch 8
check 'it is evaluated' says '^eval .*top1=' "$program" eval "$network" --load own.safetensors \
    --data synthetic:size=64
check 'it is dumped' says 'conv2d(' "$program" dump "$network"
check 'it is measured' says '^bench ' "$program" bench "$network" --steps 3 --batch 8
finish
