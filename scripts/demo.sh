#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# make demo: trains a small convolutional network on Fashion-MNIST, and counts how many of the
# 10,000 test images it classifies correctly. Usage: demo.sh BUILD
set -u
wanted=0.90
build=$1
program=$build/src/trireme
scripts=$(dirname "$0")
data=idx:$("$scripts/fashion_mnist.sh") || exit 1
out=$build/demo
weights=$out/cnn.safetensors
mkdir -p "$out" || exit 1

train="--epochs 2 --batch 64 --optimizer adam --lr 0.003 --schedule cosine"
echo "$program train cnn --data $data $train --out $out --save $weights"
"$program" train cnn --data "$data" $train --out "$out" --save "$weights" || exit 1

echo
echo "$program eval cnn --load $weights --data $data,split=test"
result=$("$program" eval cnn --load "$weights" --data "$data,split=test") || exit 1
echo "$result"
top1=$(echo "$result" | sed -n 's/.* top1=\([0-9.e-]*\).*/\1/p')
samples=$(echo "$result" | sed -n 's/.* samples=\([0-9]*\).*/\1/p')

echo
if [ "$samples" != 10000 ] || ! awk "BEGIN { exit !(\"$top1\" + 0 >= $wanted) }"; then
    echo "demo: FAILED: top-1 is ${top1:-missing} of ${samples:-no} test images, but at least" \
        "$wanted of 10000 was expected" >&2
    exit 1
fi
awk "BEGIN { printf \"%.2f %% of the 10,000 test images are classified correctly\", 100 * $top1
    printf \" (at least %g %% was expected).\n\", 100 * $wanted }"
cat <<END

What to try next ($program is the program):
  trireme models     the networks that are included
  trireme train lenet5 --data $data --epochs 1
                     another network, on the same images
  trireme dump cnn   the network as text; with --after train its gradients too
  trireme doctor     what this machine has, and what to fix
  make test          all tests
and read docs/guide.md: a network of your own, step by step.
END
