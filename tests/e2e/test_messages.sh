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

finish
