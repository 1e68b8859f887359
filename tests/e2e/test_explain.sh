#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# trireme explain: its text, its JSON, and what it refuses. Usage: test_explain.sh TRIREME
trireme=$(realpath "$1")
. "$(dirname "$0")/cases.sh"

model=gpt2-tiny:seq=32,vocab=200,heads=4,layers=1
mesh='--mesh model=2 --strategy megatron --batch 8 --lanes 2'

says() { # words, command: it succeeds, and prints the words
    words=$1
    shift
    "$@" >out 2>&1 || { cat out; return 1; }
    grep -q -e "$words" out || { cat out; return 1; }
}

refuses() { # words, command: it exits with 2, and the message has the words
    words=$1
    shift
    "$@" >out 2>&1
    [ $? -eq 2 ] && [ "$(wc -l <out)" -eq 1 ] && grep -q -e "$words" out || { cat out; return 1; }
}

# In JSON: the forward moves inside the block, and seats that read half of what is split.
adds_up() {
    "$trireme" explain $model $mesh --json >out || return 1
    python3 - <<'EOT'
import json
e = json.load(open("out"))
assert e["seats"] == 2 and e["lanes"] == 2 and e["samples"] == 4, e["seats"]
moves = [m for m in e["moves"] if m["when"] == "forward" and ".h.0." in m["tensor"]]
assert [m["kind"] for m in moves] == ["all-reduce"] * 2, moves
assert len({s["parameters"] for s in e["seat_bytes"]}) == 1
fc = [o for o in e["operators"] if o["name"].endswith("mlp.c_fc.matmul")][0]
assert fc["split"] == "out/model" and fc["inputs"][1]["slice"][1] * 2 == fc["inputs"][1]["shape"][1]
step = sum(m["bytes"] for m in e["moves"] if m["when"] == "forward") * e["lanes"]
assert step == e["step_bytes"]["forward"], step
assert all(type(n) is int for n in e["step_bytes"].values()), e["step_bytes"]
EOT
}

# In short: at most 50 lines of 100 columns, whose moves are those that --full lists.
in_short() { # model and options
    "$trireme" explain "$@" >short && "$trireme" explain "$@" --full >full || return 1
    python3 - <<'EOT'
import re
from collections import Counter
short, full = (open(name).read().splitlines() for name in ("short", "full"))
assert len(short) <= 50 and max(map(len, short)) <= 100, (len(short), max(map(len, short)))
table, listed, when = Counter(), Counter(), None
for line in short[1:]:
    m = re.search(r" (\d+)\+(\d+) ([a-z -]*?) +(\d+) +(\d+)$", line)
    if line.startswith("  in all"):
        all_ = [int(m[i]) for i in (1, 2, 4, 5)]
        break
    for w in (0, 1) if m else ():
        table[w, m[3], "moves"] += int(m[w + 1])
        table[w, m[3], "bytes"] += int(m[w + 4])
for line in full:
    m = re.match(r"  ((?:[a-z-]+(?: exchange)? over \w+, )+)(\d+) bytes: ", line)
    if not line.startswith(" "):
        when = {"between seats, forward": 0, "between seats, backward": 1}.get(line)
    if m and when is not None:
        kinds = set(re.findall(r"([a-z][a-z -]*) over", m[1]))
        kind = kinds.pop() if len(kinds) == 1 else "several kinds"
        listed[when, kind, "moves"] += 1
        listed[when, kind, "bytes"] += int(m[2])
assert listed and +table == +listed, (+table, +listed)
sums = [sum(n for (w, _, what), n in listed.items() if (w, what) == key)
        for key in ((0, "moves"), (1, "moves"), (0, "bytes"), (1, "bytes"))]
assert sums == all_, (sums, all_)
EOT
}

check 'in short: gpt2-small' in_short gpt2-small --batch 8 --lanes 2 --mesh model=2 \
    --strategy megatron
check 'layers are folded' grep -q '^  transformer.h.[*] x12$' short
check 'a run of operators' grep -q \
    '^    attn.c_attn.matmul .. attention  out/3/model  *0+12 all-reduce  *0  150994944$' short
check 'what is whole' grep -q \
    '^whole: 123 of 225 operators, because no strategy splits them or they do not divide$' short
check 'a lane that is not split' grep -q '^  unsplit  *474.7 .* 3351.1$' short
check 'in short: stages' in_short bert-large --batch 8 --lanes 4 --mesh model=2 --stages 4 \
    --strategy megatron-sp
check 'a seat has less than all' awk \
    '/^  a seat/ { seat = $NF } /^  unsplit/ { exit !(seat > 0 && seat * 1.5 < $NF) }' short
check 'in short: pictures' in_short resnet152:size=64 --batch 4 --lanes 2 --mesh model=2 \
    --strategy channels
check 'scopes in scopes' grep -q '^  layer[*].[*] x50$' short
echo 'transformer.gather batch=data' >samples
check 'in short: 8 seats' in_short gpt2-small:seq=64 --batch 8 --lanes 2 --mesh data=2,model=4 \
    --strategy megatron,samples --stages 2
echo 'bert.embeddings.gather* batch=data' >samples
check 'in short: more than fits' in_short bert-tiny --batch 8 --lanes 2 --mesh data=2,model=2 \
    --strategy megatron-sp,samples
check 'the rest of it' grep -q '^  others  *2+0 all-reduce  *320  *0$' short
cat >long <<'EOT'
maybe * batch=data_parallel
maybe *.c_fc rows=sequence
maybe *.c_fc out=tensor_model
maybe *.c_attn.matmul out/3=tensor_model
maybe *.c_proj.matmul in=tensor_model
EOT
check 'in short: long names' in_short gpt2-tiny:seq=64,vocab=99 --batch 8 --lanes 2 \
    --mesh data_parallel=2,sequence=2,tensor_model=2 --strategy long
check 'names are cut less than splits' grep -q '^    mlp.c_proj.matmul  *batch/data_parallel' short
check 'in short: 8 seats of bert-large' in_short bert-large --batch 8 --lanes 2 --mesh model=8 \
    --strategy megatron
echo 'bert.embeddings.gather* batch=data' >samples
if [ -n "${SLOW:-}" ]; then
    check 'in short: 8 seats of two axes' in_short bert-large:seq=64 --batch 8 --lanes 2 \
        --mesh data=2,model=4 --strategy megatron-sp,samples
    check 'in short: 8 seats of resnet152' in_short resnet152:size=64 --batch 4 --lanes 2 \
        --mesh model=8 --strategy channels
fi
check 'in short: more 8 seats' in_short resnet50:size=64 --batch 4 --lanes 2 --mesh model=8 \
    --strategy channels --stages 2

check 'the mesh' says 'mesh model=2: 2 seats' "$trireme" explain $model $mesh
check 'an operator' says 'mlp.c_fc.matmul .*matmul .*out/model' \
    "$trireme" explain $model $mesh --full
check 'a move' says 'all-reduce over model, 65536 bytes: .* is (-,-,-) partial sum over model; ' \
    "$trireme" explain $model $mesh --full
check 'sums' says '^  in all *8+3 * 199168 * 196608$' "$trireme" explain $model $mesh
check 'JSON' adds_up
check 'replicas' says '1024 devices: 512 replicas' \
    "$trireme" explain $model $mesh --devices 1024
one_seat() { # axes; nothing moves, and the bits are those of no mesh
    "$trireme" explain $model --mesh model=1 --strategy megatron --json >out &&
        grep -q '"moves": \[\]' out && grep -q '"to_store": 0' out || return 1
    "$trireme" train $model --steps 2 --quiet >alone &&
        "$trireme" train $model --steps 2 --quiet --mesh model=1 --strategy megatron >out &&
    [ "$(grep -o 'loss=[^ ]* weights=[^ ]*' alone)" = "$(grep -o 'loss=[^ ]* weights=[^ ]*' out)" ]
}
check 'one seat' one_seat
"$trireme" explain $model --mesh data=1,model=2 --strategy megatron --unset batch --full >out
check 'an axis of one seat' sh -c 'grep -q "over model" out && ! grep "over data" out'
check 'a large mesh' says 'mesh model=32: 32 seats' \
    "$trireme" explain mlp --batch 64 --lanes 1 --mesh model=32 --unset batch
check 'slow channels' says '^conv1.conv2d and 13 more: .* it leaves the fast' \
    "$trireme" explain resnet18:form=small --batch 4 --lanes 2 --mesh model=8 --strategy channels
check 'factors' says '^conv2d .*out' "$trireme" explain --factors
check 'no mesh, one lane' refuses 'has no mesh, no stages and one lane' \
    "$trireme" explain $model --lanes 1
check 'no mesh' says '^  2 .*unit 23 of 25, grad.fc1.matmul' \
    "$trireme" explain mlp --lanes 4 --bucket 1M --full
check 'complete with its leg' says '^2 buckets of results, 26.6 MiB in all$' "$trireme" explain \
    gpt2-tiny --stages 2 --lanes 4
check 'no mesh, in short' says '^3 buckets of results, 2.6 MiB in all' "$trireme" explain mlp \
    --lanes 4 --bucket 1M

# A pipeline.
stages='mlp:hidden=64 --batch 64 --lanes 6 --stages 3'
all="$stages --full"
check 'stages' says '^  1 *1 *[0-9]* *[0-9]* *0  ' "$trireme" explain $stages
check 'stages, with an optimizer' says '^schedule 1f1b' "$trireme" explain $all --optimizer adam
check 'what legs hand over' grep -q '^  F0 *F1 * [0-9]* *[23]  f32' out
check 'the schedule' grep -q '^  track 0   F0 F1 F2 .  .  B0 F3 B1 F4 B2 F5 B3 .  B4 .  B5$' out
check 'its waiting time' grep -q '^waiting: 25.0 % of' out
check 'measured' says '^waiting: .* with the times measured here; .* F0 [0-9.]*, F1' \
    "$trireme" explain $all --measure
cp out measured
"$trireme" explain $all >out
awk '/measured here/ { more = 1; next } more && /^  / { next } { more = 0; print }' measured >rest
check 'measuring changes nothing else' cmp rest out
"$trireme" explain gpt2-tiny:seq=16,vocab=103 --batch 8 --lanes 8 --stages 2 --amp O2 --zero 3 \
    --full >out
check 'ZeRO level 3: no leg hands weights over' sh -c \
    'grep -q "^  F0  .*bf16" out && ! grep "^  F" out | grep -q "param.*bf16.cast"'
check 'interleaved' says '  track 1 *[.] *F0a' "$trireme" explain mlp --batch 64 --lanes 4 \
    --stages 4 --pipeline interleaved --full
pipeline_as_json() {
    "$trireme" explain $stages --pipeline zero-bubble --json >out && python3 - <<'EOF'
import json
p = json.load(open("out"))["pipeline"]
assert p["order"] == "zero-bubble" and len(p["stages"]) == 3, p
assert [t[:2] for t in p["schedule"][2][:3]] == [["F2", 0], ["B2", 0], ["F2", 1]], p["schedule"][2]
assert abs(p["waiting"] - 2 / 20) < 1e-9 and all(h["bytes"] > 0 for h in p["handed"]), p
EOF
}
check 'as JSON' pipeline_as_json
check 'too few lanes' refuses 'at least 3 lanes, not 2; --lanes 3 works' "$trireme" explain \
    mlp --batch 64 --lanes 2 --stages 3 --pipeline zero-bubble
"$trireme" explain mlp --batch 8 --lanes 2 --measure >out
check 'times without stages' grep -q 'a step: [0-9.]* ms, by the prices of its [0-9]* units' out
check 'times without stages as JSON' refuses 'trireme plan price' \
    "$trireme" explain mlp --lanes 2 --measure --json
check 'no model' refuses 'lacks its MODEL' "$trireme" explain
check 'devices that do not divide' refuses '2 is the nearest' \
    "$trireme" explain $model $mesh --devices 3
check 'too many devices' refuses '9999: expected a whole number that is not so large' \
    "$trireme" explain $model $mesh --devices 99999999999999999999
check 'factors of a model' refuses 'give it alone' "$trireme" explain $model --factors
check 'with --amp' says '^  unsplit ' "$trireme" explain $model $mesh --amp O2
check 'memory with a mesh' says 'in all' "$trireme" memory $model $mesh
check 'dump with a mesh' says 'mlp.c_fc.matmul@1' "$trireme" dump $model $mesh --after expand
check 'bench with a mesh' says '^bench model=' "$trireme" bench $model $mesh --steps 2

# layer4 of this network has 1 x 1 places.
echo '* height=model' >all
echo 'maybe * height=model' >some
small='resnet18:size=32 --batch 4 --mesh model=2'
check 'too few places' refuses 'layer4.*height has 1 place' "$trireme" explain $small --strategy all
check 'maybe: too few places' says ' halo exchange ' "$trireme" explain $small --strategy some
check 'and what is whole' grep -q \
    '^whole along model: layer4.0.conv1.conv2d and 16 more: factor height has 1 place for 2 seats' \
    out
check 'the strategy of another network' refuses 'nothing uses the axis model' \
    "$trireme" explain mlp --batch 8 --mesh model=2 --strategy megatron

# What may not be expected, in explain and in train: a guess that cuts the sequence, and a split for
# which there are too few places.
cat >attention.tri <<'EOT'
graph {batch=8}
%x = input() {name="x", type=f32, shape=[8,16,32]} : f32[8,16,32] @ "x"
%wq = param() {name="wq", shape=[32,32], init="normal(0,0.02)"} : f32[32,32] @ "wq"
%wv = param() {name="wv", shape=[32,32], init="normal(0,0.02)"} : f32[32,32] @ "wv"
%q = matmul(%x, %wq) : f32[8,16,32] @ "q.matmul"
%v = matmul(%x, %wv) : f32[8,16,32] @ "v.matmul"
%s = matmul(%q, %x) {trans_b=1} : f32[8,16,16] @ "scores.matmul"
%p = softmax(%s) {axis=2} : f32[8,16,16] @ "scores.softmax"
%o = matmul(%p, %v) : f32[8,16,32] @ "out.matmul"
%r = relu(%o) : f32[8,16,32] @ "out.relu"
%m = mean(%r) {axes=[0,1,2]} : f32[] @ "mean"
loss "loss" %m
EOT
echo 'maybe * features=model' >guess
guess='attention.tri --lanes 2 --mesh model=2 --strategy guess'
again='split again: 2 all-to-all, 16384 bytes of a lane: v.matmul is split by rows/model as (-,mo'
check 'in short: gradients of what is whole' in_short $guess
check 'seats that do not divide' says '; 3 seats do not divide the 4 places of its factor heads' \
    "$trireme" explain $model --mesh model=3 --strategy megatron
check 'a small number' says ' moves 0.3799 MiB forward, ' "$trireme" explain $model $mesh --lanes 1
check 'what it counts' grep -q "activations: one lane's$" out
check 'a mistyped mesh' refuses '; do you mean modell? Or use --mesh model=2 (tri_mesh)$' \
    "$trireme" explain $model --mesh modell=2 --strategy megatron
check 'workers' refuses '^trireme: -n is an option of .trireme train' \
    "$trireme" explain $model $mesh -n 2
check 'a guess' says "^$again" "$trireme" explain $guess
check 'train says it' says \
    "^trireme: $again.*, for which no strategy asks; grad.out.matmul.matmul needs" \
    "$trireme" train $guess --steps 1
few='gpt2-tiny:seq=8,vocab=20,heads=4,layers=2 --batch 2 --lanes 1 --mesh model=8'
whole='whole along model: transformer.h.0.attn.attention and 1 more: factor heads has 4 places'
check 'what stays whole' says "^$whole" "$trireme" explain $few --strategy megatron
check 'train says it, too' says "^trireme: $whole.* (megatron:10: .*)$" \
    "$trireme" train $few --strategy megatron --steps 1
says_nothing() {
    "$trireme" train gpt2-tiny:seq=8,vocab=20 --batch 2 --mesh model=2 --strategy megatron \
        --steps 1 >out 2>&1 && ! grep -e again: -e whole out
}
check 'what is expected is not said' says_nothing
check 'samples that do not divide' says '^whole along a: .*: factor batch has 3 places for 2' \
    "$trireme" explain mlp --batch 7 --lanes 2 --mesh a=2 --unset batch

# --match: the full lines of some operators.
check 'some operators' says 'h.0.mlp.c_fc.matmul .*matmul .*out/model' "$trireme" explain $model \
    $mesh --match '*.mlp'
check 'their gradients and moves' sh -c 'grep -q "^  grad.*mlp.c_fc.matmul.matmul " out &&
    grep -q "^  all-reduce .* of grad.*mlp.c_fc" out && ! grep -q "attn\.attention" out'
check 'no such operator' refuses 'or operator matches "[*].atn"; do you mean "[*].attn"?' \
    "$trireme" explain $model $mesh --match '*.atn'
check 'some of nothing' refuses '--match fc1: without a mesh' "$trireme" explain mlp --lanes 2 \
    --match fc1
check 'all and some' refuses 'give one' "$trireme" explain $model $mesh --full --match '*'

# Bad input.
"$trireme" train $model $mesh --steps 1 --save-plan its.plan >said 2>&1
check 'the plan of another network' refuses 'its.plan:[0-9]*: model gpt2.*but the network is mlp' \
    "$trireme" explain mlp --plan its.plan
check 'its plan' says 'mesh model=2: 2 seats' "$trireme" explain $model --plan its.plan
closed() { # a reader that has gone ends it by SIGPIPE, without a message
    { "$trireme" explain $model $mesh --full 2>said; echo $? >code; } | :
    [ ! -s said ] && case $(cat code) in 0 | 141) ;; *) false ;; esac
}
check 'a closed pipe' closed

# ---- several hosts ----

XDG_CACHE_HOME=$work/cache HOME=$work
export XDG_CACHE_HOME HOME
hosts='explain mlp:hidden=256 --batch 16 --lanes 8 --bucket 64K'

check 'a path' says 'ring, 4 hosts: a bucket is cut into 4 chunks' \
    "$trireme" explain --path ring --hosts 4
check 'a path of hosts with more workers' says '^ *1 *1 *0  4, 2-3$' \
    "$trireme" explain --path exchange --hosts h0:2,h1:3
check 'the path of a network' says '^ *1 *0 *1 *0-3$' \
    "$trireme" $hosts --path exchange --hosts h0,h1
check 'an unknown path' refuses '--path rnig: expected auto, exchange, .*; do you mean ring' \
    "$trireme" explain --path rnig --hosts 4
check 'a path that the hosts do not allow' refuses '3 hosts cannot take the path butterfly' \
    "$trireme" $hosts --path butterfly --hosts 3
check 'a path without hosts' refuses '--path auto: of how many hosts' "$trireme" $hosts --path auto
check 'too many hosts' refuses '--hosts 65: 1 to 64 hosts' "$trireme" $hosts --hosts 65
check 'no hosts' refuses '--hosts 0: 1 to 64 hosts' "$trireme" $hosts --hosts 0
check 'hosts without a network' refuses 'without a MODEL' "$trireme" explain --hosts 4
check 'hosts and a pattern' refuses 'leave out --hosts' "$trireme" $hosts --hosts 4 --match '*'
check "hosts and one lane" refuses "one lane, which one host computes: add --lanes 4" \
    "$trireme" explain mlp --hosts 4
check 'more hosts than nodes' refuses '--wire-nodes 8 would do$' \
    "$trireme" $hosts --wire bf16 --hosts 8
check 'more hosts than the usual nodes' says '^no other format: --wire fp16 rounds 4 sums' \
    "$trireme" $hosts --hosts 8

links() { # hosts: seconds of a round trip, bytes per second
    mkdir -p cache/trireme
    for a in $1; do for b in $1; do
        [ $a = $b ] || echo "link $a $b $2 $3 0.4"
    done; done >cache/trireme/links
}

# Links that are not known are said once, and exchange is taken.
unknown() {
    "$trireme" $hosts --hosts h0,h1,h2 >out || return 1
    [ "$(tr '\n' ' ' <out | grep -o 'bench links' | wc -l)" -eq 1 ] &&
        grep -q '^ *1-[0-9]* .* exchange$' out && ! grep -q 'gains' out || { cat out; return 1; }
}
check 'no links' unknown
links 'h0 h1' 0.0003 1e8
check 'links of some' unknown

# Long messages go around; short ones that need two rounds less do not. Alike ones are folded.
chosen() {
    links 'h0 h1 h2' 0.0001 1e7 && "$trireme" $hosts --hosts h0,h1,h2 >slow &&
        "$trireme" $hosts --hosts h0,h1,h2 --full >full &&
        links 'h0 h1 h2' 0.2 1e9 && "$trireme" $hosts --hosts h0,h1,h2 >far || return 1
    python3 - <<'EOT'
import re
def buckets(name):
    rows = re.findall(r"^ +([0-9-]+) +([\d.]+(?: to [\d.]+)?)  (\w+) +(.*)$", open(name).read(),
                      re.M)
    return [(first, path, re.split("  +", times)) for first, _, path, times in rows]
slow, far, full = buckets("slow"), buckets("far"), buckets("full")
assert any(path == "ring" for _, path, _ in slow), slow
assert {path for _, path, _ in far} == {"exchange"} and len(far) == 1, far
assert len(full) > len(slow) and full[-1][0] == slow[-1][0].split("-")[-1], (full, slow)
for _, path, times in full:
    took = dict(zip(("exchange", "ring", "butterfly", "root"), times))
    assert took["butterfly"] == "-" and path == min((t for t in took if took[t] != "-"),
                                                    key=lambda t: float(took[t])), took
EOT
}
check 'chosen paths' chosen

# Half the bytes, a quarter; slow links gain, fast ones lose by coding.
formats() {
    python3 - <<'EOT'
import re
def rows(name):
    return {r[0]: r[1:] for r in re.findall(
        r"^  (\S+) +([\d.]+) +([\d.]+) +([\d.]+) +([\d.]+) +[\d.]+ +([\d.]+)  (.*)$",
        open(name).read(), re.M)}
slow, fast = rows("slow"), rows("fast")
assert set(slow) == {"f32", "fp16", "bf16", "int8", "topk:0.01", "pack"}, slow
sent, of, received, of_received, ms, _ = zip(*(slow[f] for f in ("f32", "bf16", "int8")))
assert sent[0] == of[0] == of[1] == received[0] == of_received[2], slow
assert abs(float(sent[1]) / float(sent[0]) - 0.5) < 0.02, slow
assert abs(float(sent[2]) / float(sent[0]) - 0.26) < 0.02, slow
assert float(slow["topk:0.01"][0]) < 0.05 * float(sent[0]), slow
assert abs(float(ms[1]) / float(ms[0]) - 0.5) < 0.02, slow
assert all(slow[f][-1].startswith("gains") for f in ("fp16", "bf16", "int8")), slow
assert all(fast[f][-1].startswith("loses") for f in ("fp16", "bf16", "int8")), fast
EOT
}
links 'h0 h1' 0.0001 1e7
check 'formats on slow links' says 'gains' "$trireme" $hosts --hosts h0,h1
mv out slow
links 'h0 h1' 0.0000001 1e15
sed -i 's/0.4$/1e-9/' cache/trireme/links
check 'formats on fast links' says 'loses' "$trireme" $hosts --hosts 2
mv out fast
check 'formats: bytes and times' formats

# A step of 500 ms, which waits for hosts for 100 ms of it: no format saves more than that.
earlier() {
    links 'h0 h1' 0.0001 1e6
    mkdir -p run && python3 - >run/metrics.jsonl <<'EOT' || return 1
import json
for step, exposed in (1, 9), (3, 0.2), (4, 0.1):
    print(json.dumps({"step": step, **({"steps": 2} if step == 3 else {}), "epoch": 0,
                      "samples": 16, "loss": 1.0, "lr": 0.1, "seconds": step / 2, "sent": 1,
                      "received": 1, "sent_whole": 1, "exposed": exposed}))
EOT
    "$trireme" $hosts --hosts h0,h1 --out run >out || return 1
    python3 - <<'EOT'
import re
rows = {r[0]: r[1:] for r in re.findall(
    r"^  (\S+) .* ([\d.]+) +[\d.]+ +([\d.]+)  (-|gains ([\d.]+))$", open("out").read(), re.M)}
assert rows["f32"][1] == "500.0" and len(rows) == 6, rows
for name in ("fp16", "bf16", "int8"):
    coding, step, _, gain = rows[name]
    assert abs(float(gain) + float(coding) - 100) < 0.11, rows
    assert abs(float(step) + float(gain) - 500) < 0.11, rows
EOT
}
check 'formats: an earlier run' earlier
check 'no earlier run' sh -c \
    "! '$trireme' $hosts --hosts h0,h1 --out nowhere 2>out && grep -q 'nowhere/metrics.jsonl' out"
rm cache/trireme/links
check 'an earlier run without links' refuses 'has not measured the links$' \
    "$trireme" $hosts --hosts h0,h1 --out run
check 'an earlier run without hosts' refuses '--out run: over which hosts?' \
    "$trireme" $hosts --out run
check 'a format of some' says '^  bf16 ' "$trireme" $hosts --hosts 2 --wire 'bf16,fc1.weight=f32'

# A ferry has six buffers for messages, and one for each host, as large as the largest.
buffers() {
    net='mlp:hidden=1024 --batch 16 --lanes 8 --wire bf16'
    "$trireme" explain $net --hosts 2 --full >of && "$trireme" memory $net --hosts h0,h1 >in &&
        "$trireme" memory $net >alone || return 1
    python3 - <<'EOT'
import re
largest = max(float(n) for n in re.findall(r"^ +\d+ +([\d.]+)  exchange", open("of").read(), re.M))
text = open("in").read()
mib = float(re.search(r"([\d.]+) MiB  buffers of the ferry", text)[1])
assert abs(mib * 2**20 / (8e6 * largest) - 1) < 0.02, (mib, largest)
*parts, total = (float(n) for n in re.findall(r"^ +([\d.]+) MiB", text.split(" in all")[0], re.M))
assert abs(sum(parts) - total) < 0.06 * len(parts), (parts, total)
assert "ferry" not in open("alone").read()
EOT
}
check 'memory: buffers of the ferry' buffers
echo 'link h0 h1 1' >cache/trireme/links
check 'a damaged file of links' sh -c \
    "! '$trireme' $hosts --hosts h0,h1 2>out && grep -q 'line 1 is damaged' out"

finish
