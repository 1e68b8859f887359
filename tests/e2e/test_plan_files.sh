#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Plan files: saved, read, edited, refused, compared; trireme compare. Usage: test_plan_files.sh
# PROGRAM
program=$(realpath "$1")
. "$(dirname "$0")/cases.sh"
net=gpt2-tiny:seq=16,vocab=96,layers=1,hidden=32,heads=4,inner=64

run() {
    "$program" "$@" >out 2>err
    code=$?
}
train() { run train $net --steps 2 --quiet --data synthetic "$@"; }
says() { grep -q -- "$1" "$2"; }
hash_of() { sed -n 's/.* weights=\([^ ]*\).*/\1/p' out; }
last_is() { test "$(tail -n 1 out)" = "$1"; }

# ---- saved and read ----

train --batch 8 --threads 1 --save-plan none
check 'a plan is saved' test $code -eq 0
train --batch 8 --lanes 2 --threads 1 --mesh model=2 --strategy megatron --save-plan model
first=$(hash_of)
train --plan model --save-plan again
check 'the same weights with it' test "$(hash_of)" = "$first"
check 'and the same plan' cmp model again
sed 's/^threads 1/threads 2/' model >threads
sed 's/^workers 1/workers 2/' model >workers
train --plan workers --out two
check 'the same with two workers' test "$(hash_of)" = "$first"
check 'which the plan starts' test -s two/agent.log
train --plan workers -n 1 --out one_worker
check 'the command line wins' test "$(hash_of)" = "$first"
train --plan model --threads 3 --recompute '*.mlp' --save-plan placed
check 'the command line wins for placement' sh -c \
    'grep -q "^threads 3" placed && grep -q "^recompute \*.mlp" placed'
check 'which changes no bit' test "$(hash_of)" = "$first"
train --plan model --strategy megatron
check 'the same strategy may be named' test "$(hash_of)" = "$first"
run dump $net --plan model --after expand
check 'dump takes a plan' says '@1' out

# ---- refused ----

refused() { # what, expected message, options
    what=$1 message=$2
    shift 2
    train "$@"
    check "refused: $what" test $code -eq 2
    check "$what is named" says "$message" err
}
refused 'no plan' '^trireme: cannot read the plan: nowhere: No such file' --plan nowhere
refused 'another batch' '^trireme: model:4: batch 8, but --batch 16' --plan model --batch 16
refused 'other lanes' 'model:5: lanes 2, but --lanes 4' --plan model --lanes 4
refused 'another mesh' 'model=4 by --mesh .*, but model=2 by model:6' --plan model --mesh model=4
refused 'a mesh where there is none' 'but none by none:6' --plan none --mesh model=2 \
    --strategy megatron
refused 'another strategy' 'but the plan model lacks its line' --plan model --strategy megatron-sp
refused 'another precision' 'model:8: amp O0, but --amp O1' --plan model --amp O1
refused 'other kernels' 'model:10: conv auto, but --conv direct' --plan model --conv direct
run train mlp --steps 1 --plan model
check 'refused: another network' says 'model:3: model gpt2-tiny.*, but the network is mlp' err

damaged() { # sed's command, expected message
    sed "$1" model >bad
    run plan show bad
    check "refused: $1" test $code -eq 2
    check "$1: $2" says "^trireme: bad:$2" err
}
damaged 's/^batch 8/batch eight/' '4: batch "eight": expected a whole number'
damaged 's/^batch/bacth/' '4: unknown word "bacth" in \[grain\]; do you mean batch?'
damaged 's/^amp O0/amp O4/' '8: amp "O4": it can be one of: O0 O1 O2 O3'
damaged 's/^\[placement/[plcement/' '[0-9]*: there is no part \[plcement\]; do you mean \[placement'
damaged 's/^threads/lanes/' '[0-9]*: lanes belongs to \[grain\], not to \[placement\]'
damaged 's/^lanes/batch/' '5: batch is given twice: line 4'
damaged 's/^hash .*/hash 12/' '[0-9]*: hash "12": expected 16 hexadecimal digits'
damaged 's/^mesh.*/mesh model=0/' '6: mesh "model=0": an axis has from 1 to 1024 seats'
damaged 's/^lanes.*/lanes 99999999999999/' '5: lanes 99999999999999: there can be 1 to'
damaged 's/^workers.*/workers 1000000/' '[0-9]*: workers 1000000: there can be 1 to 128'
damaged 's/ out=model//' '[0-9]*: strategy lacks a word'
damaged 's/^maybe strategy/maybe batch/' '[0-9]*: batch is given twice'
: >empty
run plan show empty
check 'refused: an empty file' says 'empty is no plan: it has no part \[grain\]' err
run plan show nowhere
check 'refused: no file' test $code -eq 2
check 'the file is named' says '^trireme: cannot read the plan: nowhere: No such file' err
run plan sohw model
check 'refused: an unknown action' says 'do you mean show?' err

# ---- shown and compared ----

run plan show model
check 'show prints the plan' sh -c 'head -n "$(wc -l <model)" out | cmp - model'
check 'its seats' says '^seats: 2' out
check 'its lanes' says '^lanes: 2, each of 4 samples' out
check 'not edited' sh -c '! grep -q edited out'
sed 's/^lanes 2/lanes 3/' model >three
run plan show three
check 'unequal lanes' says '^lanes: 3, each of 2 to 3 samples' out
strategies() { # sed script, expected message
    sed "$1" model >bad
    run plan show bad
    check "plan show: $2" says "^trireme: bad:[0-9]*: $2" err
    check 'plan show: a mistake' test $code -eq 2
    check 'plan show: the plan is shown' says '^seats: ' out
}
strategies 's/mlp.c_fc out=model/mlp.c_fc out=modle/' \
    'strategy ".*mlp.c_fc" "out=modle": the mesh model=2 has no axis "modle"; do you mean model?'
strategies 's/mlp.c_fc out=model/mlp.c_fc out/' \
    'strategy ".*mlp.c_fc" "out": "out" must be a factor and an axis'
strategies 's/^maybe strategy \(.*mlp.c_fc\) out=/strategy \1 uot=/' \
    'strategy ".*mlp.c_fc" "uot=model": .*uot'
strategies 's/^maybe strategy .*mlp.c_fc out=/strategy *.mpl.c_fc out=/' \
    'strategy ".*mpl.c_fc" "out=model": no scope or operator matches'
sed '/^model /d; s/mlp.c_fc out=model/mlp.c_fc out=modle/' model >bad
run plan show bad
check 'plan show: texts without the network' says 'has no axis "modle"' err
printf '[grain]\nmesh 4\nshard a (1,2),(2,)x\n' >bad
run plan show bad
check 'plan show: tuples' says '^trireme: bad:3: shard "a" "(1,2),(2,)x": expected a comma' err
run plan show threads
check 'an edited part is named' says '^placement: edited' out
run plan diff model threads
check 'threads: the lines' sh -c 'grep -q "^- threads 1" out && grep -q "^+ threads 2" out'
check 'threads: same bits' last_is 'same bits'
run plan diff none model
check 'a mesh: bits differ' last_is 'bits differ'
sed 's/^amp-type bf16/amp-type f16/' model >type
run plan diff model type
check 'a type that nothing has: same bits' last_is 'same bits'
sed 's/\(mlp.c_proj.matmul\) in=model/\1 out=model/' model >whole
run plan diff model whole
check 'another strategy: bits differ' last_is 'bits differ'
sed 's/^lanes 2/lanes 4/' model >lanes
run plan diff model lanes
check 'other lanes: bits differ' last_is 'bits differ'

# Two ways to divide one network have the same graph.
product() { # mesh, tuples
    cat <<EOT
graph {batch=4$1}
%0 = input() {name="x", type=f32, shape=[4,8]} : f32[4,8] @ "x"
%1 = param() {name="w", shape=[8,12], init="normal(0,0.02)"} : f32[8,12] @ "w"
%2 = matmul(%0, %1) : f32[4,12] @ "product"
%3 = relu(%2) : f32[4,12] @ "relu"
%4 = mean(%3) {axes=[0,1]} : f32[] @ "mean"
$2
loss "loss" %4
EOT
}
product ', mesh="4"' 'shard "product" "(1,1),(1,4)"' >columns.tri
product ', mesh="4"' 'shard "product" "(4,1),(1,1)"' >rows.tri
product '' '' >whole.tri
for how in columns rows whole; do
    run train $how.tri --data synthetic --steps 1 --quiet --save-plan $how.plan
done
check 'tuples do not change the graph' sh -c '! diff columns.plan rows.plan | grep graph'
run plan diff columns.plan rows.plan --model whole.tri
check 'tuples: the lines' says '^- shard product (1,1),(1,4)' out
check 'tuples: bits differ' last_is 'bits differ'
run plan diff columns.plan whole.plan --model whole.tri
check 'tuples or none: bits differ' last_is 'bits differ'
run compare whole.tri --data synthetic --plan columns.plan --plan rows.plan
check 'tuples: compared' last_is '3 steps: within 0.0001'
sed 's/^graph .*/graph 0123456789abcdef/' rows.plan >old.plan
run train rows.tri --data synthetic --steps 1 --quiet --plan old.plan
check 'refused: a plan of another graph' says \
    'old.plan:3: graph 0123456789abcdef, but the network is graph .* older plans' err

run compare $net --plan model --plan threads
check 'compare: threads give the same bits' last_is '3 steps: same bits'
run compare $net --plan none --plan model
check 'compare: lanes are within the tolerance' last_is '3 steps: within 0.0001'
train --batch 8 --lanes 2 --threads 1 --save-plan two_lanes
run compare $net --plan two_lanes --plan model
check 'compare: a mesh is within the tolerance' last_is '3 steps: within 0.0001'
train --batch 8 --lanes 2 --threads 1 --stages 2 --pipeline gpipe --save-plan staged
check 'a plan with stages' says '^pipeline gpipe' staged
run compare $net --plan staged --plan two_lanes
check 'compare: stages change no bit' last_is '3 steps: same bits'
run compare $net --plan staged --plan model
check 'compare: lanes of a pipeline with those of a mesh' last_is '3 steps: within 0.0001'
train --plan staged --stages 1
check 'a plan without its stages' test $code -eq 0
large=gpt2-tiny:seq=64,vocab=96,layers=2,hidden=32,heads=4,inner=64
run train $large --data synthetic --batch 64 --lanes 1 --threads 1 --steps 1 --save-plan fit
echo 'recompute fit' >>fit
run train $large --data synthetic --plan fit --steps 1
check 'fit of a plan needs a limit' says '--recompute fit recomputes as little as' err
run train $large --data synthetic --plan fit --steps 1 --memory-limit 76M
check 'fit of a plan' says '--recompute fit: .* MiB instead of .*: [a-z]' err
"$program" dump mlp:hidden=64 >wishes.tri
echo 'recompute "relu*"' >>wishes.tri
wishes() { run train wishes.tri --data synthetic --batch 8 --threads 1 --steps 1 --quiet "$@"; }
wishes --recompute none --save-plan no_wish
check 'a plan keeps --recompute none' says '^recompute none' no_wish
wishes --plan no_wish --save-plan again
check 'and is read' cmp no_wish again
wishes --plan no_wish --recompute fit --memory-limit 900M --save-plan again
check 'fit that needs nothing' cmp no_wish again
wishes --save-plan wish
wishes --plan wish --save-plan again
check "a plan with the network's own wish" cmp wish again
run memory $net --batch 8 --lanes 2 --bucket 20K --zero 2
check 'ZeRO levels, with and without buckets' says '^  0, 1 ' out

run compare $net --plan model --plan two_lanes
check 'results of operators are compared' says '^[0-9][0-9][0-9]* results of operators' out
run compare $net --plan model --plan whole --tolerance 1e-9
check 'compare: strategies differ' test $code -eq 1
check 'step, lane, operator and values' says \
    '^step 1, lane [01], .* (.*), element [0-9]*: .* and .*' out
run compare $net --plan two_lanes --plan model --tolerance 1e-9
check 'compare: the first sum over seats' says \
    '^step 1, lane 0, .*transformer.h.0.attn.c_proj.add (add .*), element [0-9]*: .* and .*' out
sed 's/^amp O0/amp O1/' model >half
run compare $net --plan model --plan half --tolerance 1e-6
check 'compare: precision differs in the first layer' says '^step 1, lane 0, .*transformer' out
sed 's/^batch 8/batch 16/' model >batch
run compare $net --plan model --plan batch
check 'compare: other batches are refused' says 'model has batch 8, batch batch 16' err
run compare $net --plan model
check 'compare needs two plans' test $code -eq 2
run compare $net --plan model --plan threads --tolerance 1e-3
check 'no tolerance within a grain' says 'bits are compared' err

# ---- checkpoints ----

train --plan model --save-every 1 --ckpt one
train --plan model --save-every 1 --ckpt other --seed 1
grain=$(sed -n '/^\[grain/,/^hash/s/^hash //p' model)
check 'a checkpoint has the grain' grep -q "\"grain\": \"$grain\"" one/step-000000002/state.json
run compare one one
check 'compare: the same checkpoints' last_is '2 checkpoints: same bits'
run compare one other
check 'compare: other checkpoints' test $code -eq 1
check 'the first step and parameter' says '^step 1, transformer.* element [0-9]*: ' out
run compare one other --tolerance 1e9
check 'compare: near enough is not the same' last_is '2 checkpoints: within 1e+09'
run compare one one --tolerance 1e9
check 'compare: the same bits with a tolerance' last_is '2 checkpoints: same bits'
run train $net --steps 1 --quiet --data synthetic --plan model --optimizer adamw --ckpt adamw \
    --save-every 1
for pair in 'adamw one first' 'one adamw second'; do
    set -- $pair
    run compare "$1" "$2" --tolerance 1e9
    check "only in the $3" says "^step 1, .*: only in the $3" out
    check "which is a difference" test $code -eq 1
done
mkdir none_saved none_either
no_pair() { # expected message, words
    what=$1
    shift
    run compare "$@"
    check "compare: $what" says "^trireme: $what" err
}
no_pair 'none_saved has no checkpoint$' one none_saved
no_pair 'none_saved has no checkpoint$' none_saved one
no_pair 'neither none_saved nor none_either has a checkpoint' none_saved none_either
mkdir later && cp -r one/step-000000002 later
no_pair 'adamw and later have no checkpoint of the same step' adamw later
no_pair 'compare: absent and missing are no directories' absent missing
no_pair 'compare: model is no directory' one model
no_pair 'compare: absent is no directory' absent one
run ckpt key secret
train --plan model --save-every 1 --ckpt sealed --ckpt-key secret
run compare one sealed --ckpt-key secret
check 'compare: sealed and not' last_is '2 checkpoints: same bits'
run compare sealed other --ckpt-key=secret
check 'compare: sealed, the first difference' says '^step 1, transformer.* element [0-9]*: ' out
run compare one sealed
check 'compare: sealed, without the key' says 'is sealed: its key is needed' err
run compare one other --seed 1
check 'directories take no options' test $code -eq 2
run train $net --steps 3 --quiet --data synthetic --plan threads --ckpt one --resume
check 'no warning within a grain' sh -c '! grep -q grain err'
run train $net --steps 4 --quiet --data synthetic --plan whole --ckpt one --resume
check 'a warning under another grain' says 'was made with another grain' err
check 'with the lines that differ' says '^- .*mlp.c_proj.matmul in=model' err
check 'which is no failure' test $code -eq 0

# ---- priced ----

export XDG_CACHE_HOME=$PWD/cache
price() { run plan price $net --batch 8 --lanes 2 --threads 1 "$@"; }
price --measure never
check 'price: nothing is known' says '^a step: ~.* by the prices of 0 of its [0-9]* units' out
check 'price: nothing is measured' sh -c 'test -z "$(ls cache/trireme)"'
price
check 'price: units are measured' says '^measured just now: .* ms$' out
price
check 'price: and known' sh -c 'grep -q "^a step: .*, by the prices" out && ! grep -q just out'
run plan price $net --batch 8 --lanes 2 --threads 2 --measure never
check 'price: not beside another thread' says '^a step: ~.* by the prices of 0 of' out
run plan price $net --batch 8 --lanes 1 -n 2 --threads 1
check 'price: workers that share a lane' says '^a step: [0-9].* by the prices of its [0-9]' out
run plan machine
check 'machine: how many are known' says '^[1-9][0-9]* units measured, in .*cache/trireme' out
kept=$(ls cache/trireme/machine-*)
sed -i '3s/$/ and more/; 4s/^unit/unite/' "$kept"
run plan machine
check 'machine: a damaged line' says 'line 4 is damaged; what is measured is kept' err
price
check 'price: a damaged line is said' says 'line 4 is damaged; what is measured is kept' err
check 'price: and measured anew' sh -c 'grep -q just out'
price
check 'price: then known' sh -c '! test -s err && ! grep -q just out'
env -u HOME -u XDG_CACHE_HOME "$program" plan price $net --batch 8 --threads 1 >out 2>err
check 'price: without a home' test $? -eq 0
check 'price: nothing is kept' says 'are not kept: there is no' err
check 'price: but measured' says '^measured just now' out
price --stages 2 -n 2
check 'price: stages on workers' says '^gpt2-tiny.*2 lanes, 2 workers of 1 thread' out
staged() { run train $net --batch 8 --lanes 2 --stages 2 --steps 2 --data synthetic "$@"; }
rm -rf cache
staged --save-plan usual
cp out result
check 'cuts: without prices there is no line' sh -c '! grep "^cuts" usual'
price --stages 2 -n 2
staged -n 2 --threads 1 --save-plan cut
check 'cuts: by prices' says '^cuts [^ ,]*$' cut
same_result() { test "$(grep -o "weights=[^ ]*" out)" = "$(grep -o "weights=[^ ]*" result)"; }
check 'cuts: change no bit' same_result
first=$(sed -n 's/^cuts //p' cut)
run train $net --plan cut -n 2 --threads 1 --steps 2 --data synthetic --save-plan again
check 'cuts: a plan keeps them' cmp cut again
staged --cuts "$first"
check 'cuts: given' same_result
staged --stages 3 --plan cut
check 'cuts: not those of other stages' same_result
staged --cuts "$first,$first"
check 'cuts: too many' says 'with which the stages from 1 on begin .* in their order: 1 for' err
staged --stages 3 --cuts "$first"
check 'cuts: too few' says ': --stages 3 needs 2 name' err
staged --cuts "${first}s"
check 'cuts: no such operator' says "no such operator; do you mean $first" err
staged --cuts "$first" --stages 1
check 'cuts: without stages' says 'is for --stages, which is not given' err
price --data text:x
check 'price: no data' says 'plan price runs on random samples, and saves nothing' err
price --ckpt there
check 'price: saves nothing' sh -c 'test ! -e there && grep -q "leave out --ckpt" err'
run plan price mlp --batch 9000 --threads 1
check 'price: more samples than an epoch has' says '^measured just now' out
run plan price mlp --device ref --batch 4 --measure never
check 'price: of another device' says '^a step: ~.* by the prices of 0 of' out
run plan --model mlp price mlp
check 'price: options after it' says 'the options of plan price follow it' err
price --measure often
check 'price: --measure' says 'always, unknown or never' err

finish
