#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The tables of `make bench-kernels`, with rows that are quick to measure, and the libraries that
# are installed. Usage: test_kernels.sh SOURCES BUILD
bench=$(realpath "$1")/bench/kernels.py build=$(realpath "$2")
. "$(dirname "$0")/cases.sh"

run() {
    python3 "$bench" "$build" --rounds 1 --seconds 0.001 --threads 1 "$@" >out 2>err
    code=$?
}

number='[0-9][0-9.,]*' from='?* *| L[1-3] *|' error='[0-9.]*e-0[678]\( ([0-9.]*)\)\{0,1\}'
run --rows lenet5-fc2,at14-y,bert-up-gelu
check 'it exits with 0' test "$code" -eq 0
check 'the rate in registers' \
    grep -q "; f32; 1 thread; Trireme: .* fused multiply-adds $number[, ]" out
check 'a product, its share and its errors' grep -q \
    "^| lenet5-fc2-dx *?* *| 64 x 120 x 84 *| L[1-3] *| $number *| 0[.][0-9]* *|.*| $error *|\$" out
check 'a convolution, and one by Winograd' \
    grep -q "^| resnet50-256to256-3x3-at14-y *$from $number W *|" out
check 'a depthwise convolution' \
    grep -q "^| mobilenetv2-384to384-3x3-depthwise-at14-y *$from .*| $error *| $error *|\$" out
check 'GELU' grep -q "^- with GELU, rate in that of the product alone: $number, lowest" out
check 'as many rows' test "$(grep -c '^| [a-z][a-z0-9]*-' out)" -eq 19

run --rows resnet50-256to256-3x3-at14 --conv direct
check 'without Winograd' sh -c "! grep -q ' W ' out"
check 'the derivative by the weight' grep -q '^- direct conv2d_dw, share: ' out

run --type bf16 --rows lenet5-fc2,resnet50-512to512-3x3-at7
check 'bf16 exits with 0' test "$code" -eq 0
check 'the type, and the instructions that ours are' \
    grep -q "; bf16; 1 thread; .* GFLOP/s; ours are [a-zA-Z0-9 -]*[.]" out
check 'products and convolutions of bf16, rounded once' \
    test "$(grep -c '^| [a-z0-9-]* *?* *|.*| 1.[67]e-03 ' out)" -eq 6

run --rows nowhere
check 'an unknown row' grep -q 'no row contains nowhere' err
check 'exits with a failure' test "$code" -ne 0

finish
