#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The program as a user runs it: output, exit codes, and the messages for typical mistakes. Usage:
# test_cli.sh path/to/trireme
program=$(realpath "$1") && [ -x "$program" ] || exit 1
sources=$(realpath "$(dirname "$0")/../..")
. "$sources/tests/e2e/cases.sh"
. "$sources/tests/e2e/expect.sh"
skipped=0

weights() { sed -n 's/.*weights=sha256:\([0-9a-f]*\).*/\1/p' out; }
states() { sed -n 's/.*state=sha256:\([0-9a-f]*\).*/\1/p' out; }

# --- files of the MNIST family: 40 images of 6x6 and their labels ---

bytes() { head -c "$1" /dev/zero | tr '\000' "$2"; }
images() { # how many; content of 40
    printf '\000\000\010\003\000\000\000\050\000\000\000\006\000\000\000\006'
    bytes 720 '\100'
    bytes "$(($1 * 36 - 720))" '\200'
}
labels() { # the last label, in octal
    printf '\000\000\010\001\000\000\000\050'
    bytes 20 '\001'
    bytes 19 '\002'
    printf "\\$1"
}
family() { # directory, images, last label
    mkdir "$1"
    for split in train t10k; do
        images "$2" >"$1/$split-images-idx3-ubyte"
        labels "$3" >"$1/$split-labels-idx1-ubyte"
    done
}
family good 40 003
family cut 39 003
family wrong 40 014
family packed 40 003
gzip packed/*
family tornpack 40 003
gzip tornpack/*
for f in tornpack/*images*; do head -c 40 "$f" >"$f.part" && mv "$f.part" "$f"; done
mkdir empty
small=mlp:hidden=8,layers=1,size=6

# --- help ---

expect 'no command' 2 'err:^usage: trireme COMMAND'
expect 'help' 0 'out:^  train ' help
expect '--help' 0 'out:^  doctor ' --help
expect 'version' 0 'out:^trireme [0-9]' version
expect '--version' 0 'out:^trireme [0-9]' --version
for c in $("$program" help | sed -n 's|^  \([a-z]*\)   *[a-z].*|\1|p'); do
    expect "$c --help" 0 "out:^usage: trireme $c" "$c" --help
    expect "help $c" 0 "out:^usage: trireme $c" help "$c"
done
expect 'help of nothing' 2 'err:unknown command nothing' help nothing
mistake 'a topic misspelled' 2 'err:no topic wrkers; do you mean workers?' train --help wrkers
mistake 'a topic that others have' 2 'err:no topic data; it has all$' help version data
expect 'a topic' 0 'out:^  --sampler KIND' train --help data
same 'that topic alone' "$(grep -c '^[A-Z].*:$' out)" 1
expect 'the short flag' 0 'out:^  --sampler KIND' train -h data
expect 'help of a topic' 0 'out:^  --sampler KIND' help train data
expect 'the usual options' 0 'out:^  --steps N' train --help
[ "$(wc -l <out)" -le 60 ]
verdict 'in at most 60 lines' $? "$(wc -l <out)"
flags() { sed -n 's/^  \(--*[a-z][a-z0-9-]*\) .*/\1/p' | sort; }
for topic in $(sed -n 's/^  --help \([a-z]*\) .*/\1/p' out); do
    [ "$topic" = all ] || "$program" train --help "$topic"
done | flags >parts
"$program" train --help all | flags >whole
same 'the topics have all options, each once' "$(cat parts)" "$(cat whole)"
expect 'models' 0 'out:^lenet5 ' models
mistake 'a command misspelled' 2 'err:do you mean train?' tarin mlp
mistake 'an unknown command' 2 'err:`trireme help` lists the commands' zeppelin

# --- training ---

hash='sha256:[0-9a-f]\{64\}'
expect 'train' 0 "out:^done steps=3 loss=[0-9.]* weights=$hash state=$hash seconds=[0-9.]*$" \
    train $small --data idx:good --steps 3 --batch 8
same 'the result is the only line on stdout' "$(wc -l <out)" 1
first=$(weights) first_state=$(states)
pattern='^mlp.*: [0-9]* parameters, [0-9]* lanes\? x [0-9-]* samples\? of .*good.*, device .*,'
head -n 1 err | grep -q "$pattern [0-9]* threads\?$"
verdict 'the first line' $? "$(head -n 1 err)"
grep -q '^step 3/3  loss [0-9.]*  top1 [0-9.]*' err
verdict 'the last progress line' $? "$(tail -n 1 err)"
[ -s run/metrics.jsonl ] && tail -n 1 run/metrics.jsonl |
    grep -q '"step":3,.*"loss":[0-9.]*,"top1":.*"lr":0.01,"seconds":'
verdict 'metrics' $? "$(cat run/metrics.jsonl)"
expect 'train again' 0 \
    'err:run: the files of an earlier run have the number 1 now, as metrics.1.jsonl' \
    train $small --data=idx:good --steps=3 --batch=8
cp run/metrics.1.jsonl oldest
expect 'a third run' 0 'err:have the number 2 now' train $small --data idx:good --steps 3 \
    --batch 8
cmp -s run/metrics.1.jsonl oldest && [ -s run/metrics.2.jsonl ]
verdict 'no metrics are overwritten' $? "$(ls run)"
same 'the same weights again' "$(weights)" "$first"
same 'the same state again' "$(states)" "$first_state"
expect 'compressed data' 0 'out:^done' train $small --data idx:packed --steps 3 --batch 8
same 'the same weights from compressed data' "$(weights)" "$first"
expect 'another seed' 0 'out:^done' train $small --data idx:good --steps 3 --batch 8 --seed 1
[ "$(weights)" != "$first" ]
verdict 'other weights from another seed' $? ''
expect 'quiet' 0 'out:^done steps=5' train $small --data idx:good --batch 8 --quiet --out deep/er
[ ! -s err ] && [ -s deep/er/metrics.jsonl ]
verdict 'quiet says nothing, and makes directories' $? "$(cat err)"
for n in 1 2; do
    expect "a row for every $n steps" 0 'out:^done steps=5' train $small --data idx:good --batch 8 \
        --quiet --out rows --metrics-every $n
    same "rows of $n steps" \
        "$(sed -n 's/.*"step":\([0-9]*\),.*/\1/p' rows/metrics.jsonl | tr '\n' ' ')" \
        "$(seq -s ' ' $n $n 4) 5 "
done
expect 'threads of each worker' 0 'out:^done steps=5' train $small --data idx:good --batch 8 \
    --lanes 2 -n 2 --threads 1
expect 'memory with threads of each worker' 0 'out:^2 workers of 3 threads' memory $small -n 2 \
    --threads 3
expect 'epochs' 0 'out:^done steps=10 ' train $small --data idx:good --batch 8 --epochs 2
for o in sgd momentum nesterov adam adamw lars lamb; do
    expect "optimizer $o" 0 'out:^done steps=2' train linear --steps 2 --optimizer $o \
        --weight-decay 0.1 --clip-norm 1
done
for s in constant step:every=1,factor=0.5 poly:power=2 cosine:end=0.1,warmup=2; do
    expect "schedule $s" 0 'out:^done steps=4' train linear --steps 4 --schedule $s
done
for m in bert-tiny:seq=16,vocab=99 bert-tiny:seq=16,vocab=99,head=every gpt2-tiny:seq=16,vocab=99
do
    expect "$m" 0 'out:^done steps=2' train $m --steps 2 --batch 4 --optimizer lamb
done
expect 'lanes' 0 'err:8 lanes x 8 samples' train linear --steps 2 --lanes 8
expect 'uneven lanes' 0 'err:3 lanes x 2-3 samples' train linear --steps 2 --lanes 3 --batch 8
expect 'no shuffle' 0 'out:^done' train linear --steps 2 --shuffle off
expect 'the reference device' 0 'err:device ref' train linear --steps 2 --device ref

expect 'mixed precision of f16, scaled' 0 'err:loss_scale 6.554e+04  skipped 0' \
    train $small --data idx:good --batch 8 --amp O1 --amp-type f16 --device ref
expect 'mixed precision of bf16' 0 'out:^done' train $small --data idx:good --batch 8 --amp O2
expect 'no products of f16' 2 'err:no products of f16; bf16 is the other' \
    train $small --data idx:good --batch 8 --amp O2 --amp-type f16
expect 'math' 2 'err:"fast"; it can be portable or native' \
    train $small --data idx:good --batch 8 --math fast
# The library's products: where they are not built in, or lack instructions, the reason is given.
"$program" train $small --data idx:good --batch 8 --amp O2 --math native >log 2>&1
same 'native math, or why not' 1 "$(grep -c '^done\|--math native: \|leave out --math native' log)"

# --- weights in files ---

expect 'save' 0 'out:^done' train $small --data idx:good --epochs 20 --batch 8 --lr 0.3 \
    --save w.safetensors
saved=$(weights)
expect 'eval' 0 'out:^eval samples=40 .*loss=[0-9.]*.* top1=[0-9.]*' \
    eval $small --load w.safetensors --data idx:good,split=test
result=$(cat out)
expect 'eval with a batch that does not divide' 0 'out:^eval samples=40' \
    eval $small --load w.safetensors --data idx:good,split=test --batch 7
same 'top1 does not depend on the batch' "$(sed 's/.*\(top1=[0-9.]\{5\}\).*/\1/' out)" \
    "$(echo "$result" | sed 's/.*\(top1=[0-9.]\{5\}\).*/\1/')"
expect 'load' 0 'out:^done' train $small --data idx:good --steps 1 --batch 8 --lr 1e-30 \
    --load w.safetensors
same 'what was loaded is what was saved' "$(weights)" "$saved"
for command in train eval bench; do
    mistake "$command with --partial alone" 2 'err:--partial takes .* --load, which is not given' \
        $command linear --partial
done
expect 'eval on data of the model' 0 'out:^done' train linear --steps 9 --save l.safetensors
expect 'eval on data of the model' 0 'out:^eval samples=[0-9]* .*loss=' \
    eval linear --load l.safetensors

# --- textual graphs ---

expect 'dump' 0 'out:matmul(' dump $small --batch 8
cp out g.tri
expect 'a textual graph trains' 0 'out:^done' train g.tri --data idx:good --steps 3
same 'as the model does' "$(weights)" "$first"
expect 'a textual graph with another batch' 0 'err:x 4 samples' train g.tri --steps 1 --batch 4 \
    --lanes 1
for pass in $("$program" dump --help | sed -n '/^passes/,/^$/s/^  \([a-z]*\) .*/\1/p'); do
    expect "dump --after $pass" 0 'out:[a-z]' dump $small --after "$pass"
done
for pass in phasse Phases; do
    mistake "an unknown pass, $pass" 2 'err:no such pass; do you mean phases?' \
        dump linear --after $pass
done
mistake 'an earlier name of a pass' 2 'err:no such pass; it is now called format' \
    dump linear --after layout
mistake 'an unknown device' 2 'err:no device "cuda"; this build has: cpu, ref' \
    dump linear --device cuda
mistake 'an unknown device, for a large mesh' 2 'err:no device "cuda"' \
    explain mlp --device cuda --mesh model=32 --unset batch

# --- texts ---

for i in 1 2 3 4 5 6 7 8 9 10 11 12; do
    printf 'The fox and the dog. The end of it!\nIt was %d in all. Hello, world.\n\n' $i $i $i $i
done >text1.txt
cp text1.txt text2.txt
vocabularies=$sources/tests/golden/data/tokens
lm=gpt2-tiny:seq=16,vocab=256,dropout=0
expect 'a text trains a model of the next token' 0 'out:^done steps=40' \
    train $lm --data text:text1.txt:text2.txt --steps 40 --batch 4 --lanes 2 --optimizer adamw \
    --lr 0.003
grep -q 'samples of text:text1.txt:text2.txt (.* tokens, .* MiB)' err
verdict 'the first line has tokens and memory' $? "$(head -n 1 err)"
last=$(sed -n 's/.*loss=\([0-9]*\)\..*/\1/p' out)
[ "${last:-9}" -lt 4 ]
verdict 'it learns: from 5.5 to below 4' $? "$(cat out)"
grep -q 'no tokenizer is given' err
[ $? -ne 0 ]
verdict 'no message on bytes for a network of bytes' $? "$(head -n 3 err)"
alone=$(weights)
expect 'by two workers' 0 'out:^done steps=40' train $lm --data 'text:text?.txt' --steps 40 \
    --batch 4 --lanes 2 --optimizer adamw --lr 0.003 -n 2
same 'the same weights by two workers' "$(weights)" "$alone"
yes | head -c 4000000 >yes.txt
expect 'the plan has the ids of a text' 0 'out:^ *7.6 MiB  the source of the data: ' memory $lm \
    --data text:yes.txt
expect 'the plan has them for each worker' 0 'out:^ *15.3 MiB  the source of the data: ' memory \
    $lm --data text:yes.txt -n 2
mistake 'more of them than the limit' 2 \
    'err:does not fit: ' \
    train $lm --data text:yes.txt --steps 1 --memory-limit 70M
for workers in '' '-n 2'; do
    run train gpt2-tiny:seq=16 --data text:text1.txt --steps 1 --batch 2 $workers
    pattern="^trireme: data 'text:text1.txt': no tokenizer is given, so tokens are bytes: 256 of"
    [ "$(grep -c "$pattern the 50257" err)" -eq 1 ]
    verdict "bytes for a network of more are told once $workers" $? "$(head -n 3 err)"
done
run train gpt2-tiny:seq=16 --data text:text1.txt --steps 1 --batch 2 --quiet
[ ! -s err ]
verdict 'no message about it with --quiet' $? "$(head -n 3 err)"
printf 'caf\351 \342\202 end ' | cat - text1.txt >latin.txt
for workers in '' '-n 2'; do
    run train gpt2-tiny:seq=16,vocab=377 --steps 1 --batch 2 --quiet --data text:latin.txt \
        --tokenizer "gpt2:$vocabularies" $workers
    pattern='invalid UTF-8 at 2 places in 1 file, first in latin.txt at offset 3: replaced by'
    [ "$(grep -c "$pattern" err)" -eq 1 ]
    verdict "texts that are no UTF-8 are told once $workers" $? "$(head -n 3 err)"
done
expect 'byte pairs of GPT-2' 0 'out:^done steps=2' train gpt2-tiny:seq=16,vocab=377 --steps 2 \
    --batch 4 --data text:text1.txt --tokenizer "gpt2:$vocabularies"
pretrain=bert-tiny:seq=32,vocab=168
expect 'pairs of sentences for BERT' 0 'out:^done steps=6' train $pretrain --steps 6 --batch 4 \
    --lanes 2 --data text:text1.txt --tokenizer "bert:$vocabularies/vocab.txt" --save b.safetensors
alone=$(weights)
expect 'pairs by two workers' 0 'out:^done steps=6' train $pretrain --steps 6 --batch 4 --lanes 2 \
    --data text:text1.txt --tokenizer "bert:$vocabularies/vocab.txt" -n 2
same 'the same weights of BERT by two workers' "$(weights)" "$alone"
expect 'labels at every place' 0 'out:^done steps=2' train $pretrain,head=every --steps 2 \
    --batch 4 --data "text:text1.txt,tokenizer=bert-cased:$vocabularies/vocab.txt"
expect 'eval on a text' 0 'out:^eval samples=[0-9]* .*loss=' eval $pretrain --load b.safetensors \
    --data text:text2.txt --tokenizer "bert:$vocabularies/vocab.txt"
mistake 'no such text' 1 'err:none.txt: No such file' train $lm --data text:none.txt
mistake 'a text without a tokenizer for BERT' 2 'err:has no token \[CLS\]' \
    train bert-tiny --data text:text1.txt
mistake 'a network too small for the vocabulary' 2 'err:vocab=168 is needed' \
    train bert-tiny:vocab=100 --data text:text1.txt --tokenizer "bert:$vocabularies/vocab.txt"
mistake 'a tokenizer without a text' 2 'err:applies only to text' \
    train $small --data idx:good --tokenizer gpt2:none
mistake 'an unknown tokenizer' 2 "err:tokenizer 'gpt3': unknown kind" \
    train $lm --data text:text1.txt --tokenizer gpt3
mistake 'a text for a network of images' 2 \
    'err:the network wants "image".*it has: input_ids, labels' \
    train $small --data text:text1.txt,length=16

# --- a user's network ---

cat >own.c <<'C'
#include <trireme.h>
void tri_model(tri_graph *g, tri_args *args) {
    tri_tensor *x = tri_input(g, "image", TRI_F32, TRI_SHAPE(tri_batch(g), 1, 6, 6));
    tri_tensor *y = tri_input(g, "label", TRI_I64, TRI_SHAPE(tri_batch(g)), .below = 10);
    tri_tensor *h = tri_dense(tri_flatten(x, 1), "fc", tri_args_int(args, "classes", 10));
    tri_metric(tri_accuracy(h, y, 1), "mine");
    tri_loss(tri_cross_entropy(h, y));
}
C
cat >broken.c <<'C'
#include <trireme.h>
void tri_model(tri_graph *g, tri_args *args) {
    (void)args;
    tri_tensor *x = tri_input(g, "image", TRI_F32, TRI_SHAPE(tri_batch(g), 1, 6, 6));
    tri_loss(tri_mse(tri_dense(tri_flatten(x, 1), "fc", 3), tri_flatten(x, 1)));
}
C
echo 'int nothing;' >none.c
if command -v cc >/dev/null; then
    for f in own broken none; do
        cc -shared -fPIC -I"$sources/include" -o $f.so $f.c || echo "not ok: cc $f.c"
    done
    expect 'a shared object trains' 0 'err:  mine ' train own.so --data idx:good --steps 2 --batch 8
    expect 'with arguments' 0 'err:: 185 parameters' train own.so:classes=5 --data idx:good \
        --steps 2 --batch 8
    mistake 'a mistake in it is reported with its line' 2 'err:broken.c:5: .*\[64,3\].*\[64,36\]' \
        train broken.so
    mistake 'an unknown argument' 2 'err:clases' train own.so:clases=5
    mistake 'a shared object without a model' 1 'err:tri_model' train none.so
else
    skipped=$((skipped + 5))
    echo 'ok a shared object # skipped: no cc'
fi
mistake 'a missing shared object' 1 'err:nowhere.so' train nowhere.so

# --- bench and doctor ---

number='[0-9][0-9.e+-]*'
fields= # fields of the line for programs, in order
for f in steps_per_s samples_per_s median_ms p10_ms p90_ms first_step_ms second_step_ms start_ms \
    peak_rss_mib plan_mib gflops fma_gflops fma_share gbytes_per_s; do
    fields="$fields $f=$number"
done
expect 'bench' 0 \
    "out:^bench model=linear batch=8 lanes=[0-9]* threads=2 device=[a-z]* steps=20$fields\$" \
    bench linear --batch 8 --steps 20 --threads 2
expect 'bench --largest' 0 \
    'out:^largest model=mlp batch=>*=*[0-9]* needs_mib=[0-9]* limit_mib=200$' \
    bench mlp --largest --memory-limit 200M
expect 'a network beyond the machine, with workers' 1 'out:^does not fit: ' \
    memory bert-base --batch 16384 --lanes 1 -n 2
unlimited=$program
limited() { (ulimit -v 30000000 && exec "$unlimited" "$@"); }
if limited models >/dev/null 2>&1; then # not with AddressSanitizer
    program=limited
    mistake 'beyond the addresses, with workers' 1 'err:cannot allocate [0-9]* bytes' \
        memory bert-base --batch 16384 --lanes 1 -n 2
    program=$unlimited
fi
for command in train memory bench eval; do
    options='--memory-limit 640'
    [ $command != eval ] || options="$options --load l.safetensors"
    mistake "$command with too few bytes" 2 'err: is 640 bytes, .*; do you mean 640M?' \
        $command linear $options
done
mistake 'too few KiB' 2 'err:; do you mean 64M?' train linear --memory-limit 64K
mistake 'bench --largest without any that fits' 2 'err:does not fit: ' \
    bench mlp --largest --memory-limit 1M
batch=$("$program" bench mlp --largest --memory-limit 200M --lanes 4 |
    sed 's/.* batch=\([0-9]*\) .*/\1/')
expect 'the largest batch fits' 0 'out:^ *[0-9.]* MiB  in all' memory mlp --batch "$batch" --lanes 4
needs=$(sed -n 's/^ *\([0-9]*\)[0-9.]* MiB  in all/\1/p' out)
[ "$needs" -le 136 ]
verdict 'it needs at most the limit and the program'\''s memory' $? "$needs MiB"
mistake 'one more does not' 2 'err:does not fit: 20[0-9] of 200 MiB, --memory-limit: ' \
    train mlp --batch "$((batch + 1))" --lanes 4 --memory-limit 200M
mistake 'bench with too many threads' 2 'err:at most 512 threads in all' \
    bench linear -n 1 --threads-per-worker 4294967297 --steps 10
mistake 'fewer at most than at the start' 2 'err:--most 1 is less than -n 2' \
    train linear -n 2 --most 1
mistake 'a large --most' 2 'err:500 workers (--most) and --spares 0: there can be 1 to 128' \
    train linear -n 2 --most 500
mistake 'as many threads of two workers' 2 'err:must be at most 512 threads in all' \
    bench linear -n 2 --threads-per-worker 5000000000 --steps 10
mistake 'a number of threads that is too large' 2 'err:a whole number that is not so large' \
    train linear -n 2 --threads-per-worker 5000000000
mistake 'too many combinations' 2 'err:bench: 65 combinations of options; there can be at most 64' \
    bench linear -n 1,1,1,1,1,1,1,1,1,1,1,1,1 --lanes 1,1,1,1,1 --steps 10
mistake 'a profile of several' 2 'err:--ops.* measure one process' bench linear --ops --lanes 1,2
mistake 'all are refused' 2 'err:^trireme: 65 lanes for a batch of 64' bench linear --lanes 65,66

# --- the table of bench ---

for n in 1 2; do
    run train $small --batch 8 --lanes 2 --steps 1 --quiet -n $n --threads 1 --save-plan plan.$n
done
run train linear --batch 8 --steps 1 --quiet --save-plan plan.linear
files=$(ls)
bench() { run bench $small --batch 8 --steps 2 "$@"; }
row() { # name, code, pattern of a row
    [ "$code" -eq "$2" ] && grep -q -- "^ *$3" out
    verdict "$1" $? "exit code $code, no '$3' in: $(cat out err)"
}
rates='[0-9][0-9.]*  *[0-9][0-9.]*  *[0-9][0-9.]*  *[0-9][0-9.]*' # with the speed
bench --threads 1,2 --lanes 2,9 --conv auto --conv direct
row 'its columns' 0 'workers  threads  lanes  MiB  fits *samples/s  *lowest  *highest  speed$'
row 'a combination' 0 "1 *1 *2 *[0-9]*  yes  *$rates  --lanes 2 --threads 1 --conv direct\$"
row 'the first of as many cores' 0 "1 *2 *2 *[0-9]*  yes .*  1\.00  .* --threads 2 --conv auto\$"
row 'one that is refused' 0 '.* --lanes 9 .*: 9 lanes for a batch of 8: there can be 1 to 8'
same 'a row for each' "$(grep -c ' yes ' out) $(grep -c 'lanes for' out)" '4 4'
bench --plan plan.1 --plan plan.2 --plan plan.linear
row 'the plan of one process' 0 "1 *1 *2 *[0-9]*  yes  *$rates  --plan plan.1\$"
row "a plan's workers" 0 "2 *1 *2 *[0-9]*  yes  *$rates  --plan plan.2\$"
row 'a plan of another network' 0 \
    '.*--plan plan.linear: plan.linear:[0-9]*: .* linear, but the network is mlp:'
for wrong in '--lanes 2,eight' '--lanes 2,' '--lanes 2,,4' '-n auto,2' '--lr 0.1,x' \
    '--plan plan.1 --plan plan.none'; do
    mistake "bench $wrong" 2 'err:: expected \|cannot read the plan: ' bench $small $wrong
done
mistake 'a number of workers' 2 'err:at least 1, or several: 1,2,4$' bench $small -n auto
bench --lr 0.1,1e30 --amp O0 --amp O5
row 'one that fails' 1 '.*  --lr 1e30 --amp O0: step [0-9]*: .*the loss is nan; '
row 'the whole reason' 1 '.*--lr 0.1 --amp O5: --amp .* is "O5"; it can be O0, O1, O2 or O3'
bench -n 1 --lr 0.1,1e30
row 'workers that fail' 1 '.*  --lr 1e30: failed with exit code 1$'
bench --plan plan.2
row 'one plan of two workers' 0 "2 *1 *2 *[0-9]*  yes  *$rates\$"
bench --plan plan.2 -n 1,2 --memory-limit 100M
row "workers instead of the plan's" 0 "1 *1 *2 *[0-9]*  yes  *$rates  -n 1\$"
row 'a row that does not fit' 0 '2 *1 .*  no  *-n 2: does not fit: [0-9]* of 100 MiB, --memory'
bench -n 2,3 --threads 1 --memory-limit 100M
row 'none fits' 1 '3 *1 .*  no  *-n 3: does not fit: '
while :; do :; done & # beside this
bench -n 2 --lanes 1 --until-loss 100
kill $!
row 'the time until a loss' 0 '.*  loss 100 after [0-9.]* s, [0-9]* steps$'
same 'a note is printed once' "$(grep -c 'stays idle' err)" 1
row 'other processes' 0 'other processes used [0-9.]* of [0-9]* cores meanwhile: '
bench -n 1 --lanes 2 --stages 2 --until-loss 0.0001
row 'a loss that is not reached' 0 '.*  workers wait [0-9.]* %; loss 0.0001 is not reached$'
bench --lr 0.1,0.2 --stages 2 --chunks 2 --pipeline interleaved
same 'of one process, too' "$(grep -c 'makes one track' err)" 2
same 'nothing is left' "$(ls)" "$files"
expect 'bench --ops' 0 'out:^ *10 *[0-9.]* *[0-9.]* *[0-9.]* *[0-9.]*  matmul$' bench $small \
    --steps 2 --batch 8 --lanes 2 --ops --passes=-fuse
expect 'bench --nodes' 0 'out:  matmul fc1.matmul: f32\[4,36\] f32\[8,36\] -> f32\[4,8\]$' \
    bench $small --steps 2 --batch 4 --lanes 1 --nodes --passes=-fuse
expect 'doctor' 0 'out:^ok    ref ' doctor
grep -q '^BAD' out
[ $? -eq 1 ]
verdict 'doctor finds no fault' $? "$(cat out)"

# --- mistakes ---

mistake 'no model' 2 'err:train lacks its MODEL' train
mistake 'an extra argument' 2 "err:one word too many: 'mlp'" train linear mlp
mistake 'a model misspelled' 2 'err:do you mean lenet5?' train lenet
mistake 'an unknown model' 2 'err:there are: linear, mlp' train transformer9000
mistake "a model's option misspelled" 2 'err:mlp.*clases' train mlp:clases=3
mistake "a model's option out of range" 2 'err:hidden=0' train mlp:hidden=0
mistake 'a missing textual graph' 1 'err:nowhere.tri' train nowhere.tri
sed 's/matmul(/matmull(/' g.tri >bad.tri
mistake 'a mistake in a textual graph' 2 'err:bad.tri:[0-9]*.*matmull' train bad.tri
mistake 'an option misspelled' 2 'err:unknown option --bacth; do you mean --batch?' \
    train linear --bacth 3
mistake 'an unknown option' 2 'err:unknown option --gpus; see --help' train linear --gpus 3
mistake 'an option of another command' 2 'err: is an option of .trireme bench' memory linear --ops
mistake 'an option of another command' 2 'err:--lr has no effect on this command' eval linear --lr 3
mistake 'an option without its value' 2 'err:--lr lacks its value' train linear --lr
mistake '--batch 0' 2 'err:--batch 0: expected a whole number of at least 1' train linear --batch 0
mistake '--batch ten' 2 'err:--batch ten' train linear --batch ten
mistake '--lr -1' 2 'err:--lr -1: expected a number above 0' train linear --lr -1
mistake 'a loss that is infinite' 1 \
    'err:step 2: lane 0: the loss is infinite; the first infinity is a' \
    train linear --lr 1e30 --steps 9 --quiet
expect 'a loss that is infinite, with a warning' 0 \
    'err:step 2: the loss is infinite; the run continues' \
    train linear --lr 1e30 --steps 9 --quiet --on-nan warn
mistake 'weights to a missing directory' 1 'err:cannot write nowhere/x: directory' \
    train linear --steps 1 --save nowhere/x
ln -s /dev/full device
for n in '' '-n 2'; do
    mistake "weights to a device $n" 1 \
        'err:cannot write device: it is a character device, not a regular file' \
        train linear --steps 1 --quiet --save device $n
done
test -L device
verdict 'the device is unchanged' $? "$(ls -l device 2>&1)"
ln -s weights.target weights.link
expect 'weights through a symlink' 0 'out:done steps=1' train linear --steps 1 --quiet \
    --save weights.link
test -L weights.link && test -f weights.target
verdict 'the target of the symlink is written' $? "$(ls -l weights.* 2>&1)"
announced() { # number of occurrences, options
    want=$1
    shift
    run train mlp --steps 1 --batch 8 "$@"
    same "made-up samples are announced: $*" "$want" "$(grep -c 'samples are random' err)"
}
announced 1
announced 1 -n 2
announced 0 --quiet
announced 0 --data synthetic
touch no-directory
mistake 'checkpoints in a file' 1 'err:checkpoints to no-directory: it is not a directory' \
    train linear --steps 1 --ckpt no-directory
mistake 'checkpoints in a file, by a worker' 1 'err:to no-directory: it is not a directory' \
    train linear --steps 1 --ckpt no-directory -n 1
mistake 'data in a file' 1 'err:no-directory/train-images-idx3-ubyte: Not a directory' \
    data idx:no-directory
mistake 'C in place of a shared object' 2 'err:is C: make it a shared object' train net.c
mistake 'a directory without its kind' 2 'err:idx:./somewhere' train mlp --data ./somewhere
mistake '--lr 0,1' 2 'err:--lr 0,1: expected a number' train linear --lr 0,1
mistake '--shuffle yes' 2 'err:on or off' train linear --shuffle yes
mistake '--epochs and --steps' 2 'err:--epochs and --steps are both given' \
    train linear --epochs 1 --steps 3
mistake 'more lanes than samples' 2 'err:65 lanes.*batch of 64' train linear --lanes 65
mistake 'a batch larger than the data' 2 'err:40 samples.*batch of 64' \
    train $small --data idx:good
expect 'momentum' 0 'out:^done' train linear --steps 3
plain=$(weights) before=
expect 'no momentum' 0 'out:^done' train linear --steps 3 --optimizer momentum --momentum 0
same 'momentum of 0 is plain SGD' "$(weights)" "$plain"
for o in '--beta1 0' '--beta2 0' '--eps 0' '--beta1 0.5 --beta2 0.9 --eps 1e-4'; do
    expect "adam $o" 0 'out:^done steps=3 loss=[0-9.]* ' train linear --steps 3 --optimizer adam $o
    [ "$(weights)" != "$before" ]
    verdict "adam $o makes a difference" $? "$before"
    before=$(weights)
done
mistake '--beta2 1' 2 'err:--beta2 1: expected a number of at least 0 and below 1' train linear \
    --optimizer adam --beta2 1
mistake '--beta1 of another optimizer' 2 'err:optimizer sgd takes no beta1; adam, adamw, lamb do' \
    train linear --beta1 0.5
mistake '--beta1 0 of another optimizer' 2 'err:optimizer sgd takes no beta1' train linear --beta1 0
mistake 'an optimizer in capitals' 2 'err:"Adam"; do you mean adam?' train linear --optimizer Adam
mistake 'an option of other programs' 2 'err:--wd; do you mean --weight-decay?' train linear \
    --wd 0.1
mistake 'models takes no name' 2 'err:`trireme dump resnet50` prints one' models resnet50
mistake 'threads given twice' 2 'err:both set the threads of each worker' \
    train linear -n 2 --threads 1 --threads-per-worker 2
mistake 'an unknown optimizer' 2 'err:sgd, momentum' train linear --optimizer rmsprop
mistake 'an unknown precision' 2 'err:is "O7"; it can be O0, O1' train linear --amp O7
mistake 'an unknown half type' 2 'err:it can be bf16 or f16' train linear --amp O1 --amp-type f32
mistake 'a scale that is not a power of two' 2 'err:power of two' train linear --loss-scale 10
mistake 'an unknown schedule' 2 'err:cosine' train linear --schedule linear
mistake 'a schedule without a number' 2 'err:every=N' train linear --schedule step
mistake 'an unknown device' 2 'err:there is no device "cuda".*ref' train linear --device cuda
mistake 'fed data without a program' 2 'err:tri_feed in its own loop' train linear --data feed \
    --steps 2 -n 2
mistake 'an unknown kind of data' 2 'err:known: idx:DIR' train linear --data sifar:x
mistake 'a class of pictures without folders' 1 'err:no such directory' data images:nowhere
mkdir folder
mistake 'a folder without its kind' 2 \
    'err:a directory needs the kind of its data: idx:folder, images:folder, cifar:folder' data \
    folder
printf 'one two three four five six seven eight nine ten' >words
expect 'a text by a tokenizer' 0 'out:input_ids' data text:words,length=4 --tokenizer bytes
mistake 'a tokenizer of data without text' 2 \
    'err:a tokenizer (--tokenizer gpt2:none) applies only to text' \
    data idx:good --tokenizer gpt2:none
mistake 'data without a spec' 2 'err:takes one SPEC' data
expect 'the content of data' 0 'out:samples of idx:good' data idx:good
expect 'all of it is checked' 0 'out:^checked samples=[0-9]* bad=0' data idx:good --check \
    --threads 2
expect 'its reading speed' 0 'out:^bench threads=1 samples_per_s=' data idx:good --bench
mistake 'a missing directory' 1 'err:nowhere' train $small --data idx:nowhere
mistake 'a directory without the files' 1 'err:empty' train $small --data idx:empty
mistake 'data cut short' 1 'err:cut/train-images-idx3-ubyte.*offset' \
    train $small --data idx:cut --batch 8
mistake 'compressed data cut short' 1 'err:tornpack/train-images-idx3-ubyte.gz' \
    train $small --data idx:tornpack --batch 8
mistake 'images of another size' 2 'err:image.*28.*6\|image.*6.*28' train mlp --data idx:good \
    --batch 8
mistake 'data for another kind of model' 2 'err:features' train linear --data idx:good --batch 8
mistake 'a label out of range' 2 \
    'err:has 13 classes, the network takes 10: classes=13 (sample .* is of class 12)' \
    train $small --data idx:wrong --batch 8
mistake 'too few classes' 2 'err:has 4 classes, the network takes 3: classes=4' train \
    $small,classes=3 --data idx:good --batch 8 --epochs 1
touch file
mistake 'an out directory that is a file' 1 'err:file.*--out' train linear --out file
mistake 'an out directory under a file' 1 'err:file/.*--out' train linear --out file/d
mistake 'a missing directory to save to' 1 'err:nowhere/w' \
    train linear --steps 2 --save nowhere/w.safetensors
mistake 'missing weights' 1 'err:nowhere.safetensors' \
    train linear --load nowhere.safetensors
head -c 100 w.safetensors >torn.safetensors
mistake 'weights cut short' 1 'err:torn.safetensors' \
    eval $small --load torn.safetensors --data idx:good
mistake 'weights of another model' 1 'err:w.safetensors' eval linear --load w.safetensors
grep -q 'fc.weight' err
verdict 'missing weights are listed' $? "$(cat err)"
mistake 'eval without weights' 2 'err:eval lacks --load FILE' eval linear
mistake 'eval without data' 2 'err:eval lacks --data SPEC' eval $small --load w.safetensors
mistake 'eval of a label out of range' 2 'err:of class 12' \
    eval $small --load w.safetensors --data idx:wrong
# Nobody reads: as other programs, killed by SIGPIPE, or if that is ignored, one line and 1.
cat >unread.py <<'EOT'
import os, signal, subprocess, sys
r, w = os.pipe()
os.close(r)
def end(*words, **how):
    return subprocess.run([sys.argv[1], *words], stdout=w, stderr=subprocess.PIPE, text=True, **how)
for words in ("ps", "memory mlp", "dump mlp", "bench mlp --steps 2", "top --help"):
    killed = end(*words.split())
    said = end(*words.split(), restore_signals=False)  # Python ignores SIGPIPE
    good = said.returncode == 1 and said.stderr.startswith("trireme: cannot write to stdout") and \
        said.stderr.count("\n") == 1 and "Success" not in said.stderr
    good &= killed.returncode == -signal.SIGPIPE or (killed.returncode, killed.stderr) == (
        1, said.stderr)
    if not good:
        sys.exit(f"{words}: {killed.returncode} {killed.stderr}, {said.returncode} {said.stderr}")
EOT
python3 unread.py "$program" 2>err
verdict 'nobody reads' $? "$(cat err)"
if [ -c /dev/full ]; then
    "$program" train linear --steps 2 >/dev/full 2>err
    code=$?
    grep -q '^trireme: .*stdout' err && [ $code -eq 1 ]
    verdict 'the result cannot be written' $? "exit code $code: $(cat err)"
    "$program" models >/dev/full 2>err
    code=$?
    grep -q '^trireme: .*stdout' err && [ $code -eq 1 ]
    verdict 'the list cannot be written' $? "exit code $code: $(cat err)"
else
    skipped=$((skipped + 2))
fi

echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
