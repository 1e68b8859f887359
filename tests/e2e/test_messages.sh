#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Messages that say what would be right. Usage: test_messages.sh path/to/trireme
program=$(realpath "$1")
folder=$(realpath "${0%/*}")
. "$folder/cases.sh"
. "$folder/expect.sh"

mistake 'a strategy of another network' 2 'err:; --mesh model=2 --strategy channels fits it' \
    train mlp --mesh model=2 --strategy megatron
mistake 'a mesh without a strategy' 2 'err:; --mesh model=4 --strategy megatron fits it' \
    train gpt2-tiny:seq=16 --mesh 4
mistake 'nothing to explain' 2 'err: use --mesh model=2 --strategy channels (tri_mesh), ' \
    explain mlp
for name in transformer.wte '[a-z]*.wte'; do
    echo "layout $name model,-" >layout.txt
    mistake "the layout of $name" 2 'err:do you mean ".*[.*]wte.weight"?' \
        train gpt2-tiny:seq=16 --mesh model=2 --strategy layout.txt
done
echo '*.attention heads=model' >heads.txt
mistake 'no line of the zoo' 2 'err:^trireme: transformer.h.0.attn.attention (attention ' \
    train gpt2-tiny:seq=16 --mesh model=3 --strategy heads.txt
cat >tuples.tri <<'EOT'
graph {batch=4}
%0 = input() {name="x", type=f32, shape=[4,8]} : f32[4,8] @ "x"
%1 = param() {name="w", shape=[8,12], init="normal(0,0.02)"} : f32[8,12] @ "w"
%2 = matmul(%0, %1) : f32[4,12] @ "product"
%3 = mean(%2) {axes=[0,1]} : f32[] @ "mean"
shard "product" "(4,1),(1,1)"
loss "loss" %3
EOT
mistake 'tuples without a mesh' 2 'err: use --mesh 4 for its tuples' explain tuples.tri
expect 'tuples that split nothing' 0 'err:without a mesh the tuples .* --mesh 4 ' \
    train tuples.tri --steps 1
mistake 'the case of a device' 2 'err:do you mean cpu?' train linear --device CPU
mistake 'the case of a schedule' 2 'err:do you mean cosine?' train linear --schedule Cosine
mistake 'the case of a word' 2 'err:do you mean native?' train linear --math Native
mistake 'samples of no network' 2 'err:for the inputs of a network; .* --data synthetic`$' \
    data synthetic
expect 'one evaluation is the best' 0 'out: best_loss=[0-9.e-]* best_step=2 ' \
    train linear --steps 2 --eval-data synthetic:size=8 --quiet
"$program" train linear --steps 2 --ckpt done.ckpt --quiet >out 2>err
expect 'one lane' 0 'out:^batch [0-9]* in 1 lane, ' ckpt show done.ckpt
expect 'all steps are done' 0 'err:those of the checkpoint. More --steps .* than 2 would continue' \
    train linear --steps 2 --ckpt done.ckpt --resume --quiet

# What travels between hosts.
net='train mlp --steps 1 --batch 8 --lanes 8'
mistake 'an unknown format' 2 'err:no format "bf17"; there are f32, .*; do you mean bf16?$' \
    $net --wire bf17
mistake 'two formats' 2 'err:two formats for the same gradients; .* PATTERN=FORMAT$' \
    $net --wire bf16,fp16
mistake 'two formats for one tensor' 2 'err:two formats for fc1.weight, f32 and int8$' \
    $net --wire 'bf16,fc1*=f32,fc1.w*=int8'
mistake 'a format of nothing' 2 'err:nothing names no gradient of f32 that has two or more ' \
    $net --wire bf16,nothing=f32
for share in topk topk:0 topk:2 topk:nan; do
    mistake "$share" 2 'err:more than 0 and less than 1; topk:0.01 sends 1 %, and f32 ' \
        $net --wire $share
done
mistake 'nodes that are no power of two' 2 'err:3: it must be a power of two, from 1 to 4096$' \
    $net --wire bf16 --wire-nodes 3
mistake 'nodes without a format' 2 'err:--wire-nodes 8 has no effect: no format of --wire rounds' \
    $net --wire-nodes 8
mistake 'estimates and one lane' 2 'err:there is one lane; add --lanes 4$' \
    train mlp --steps 1 --batch 8 --wire topk:0.1
mistake 'more hosts than nodes' 2 'err:by at most as many hosts, and there are 5: --wire-nodes 8 ' \
    memory mlp --batch 8 --lanes 8 --wire bf16 --hosts h0,h1,h2,h3,h4
mistake 'more hosts than nodes and lanes' 2 'err:--wire-nodes 8 and more --lanes would do$' \
    memory mlp --batch 8 --lanes 4 --wire bf16 --hosts h0,h1,h2,h3,h4
mistake 'an unknown path' 2 'err:expected auto, .*, root; do you mean ring?$' $net --path rnig
mistake 'a path without hosts' 2 'err:--path, .* are for several hosts: add --hosts NAMES$' \
    $net --path ring
mistake 'a path that hosts do not allow' 2 'err:butterfly: there is none of 3 hosts; --path ring ' \
    $net --hosts h0,h1,h2 --path butterfly

finish
