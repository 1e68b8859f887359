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

check 'the mesh' says 'mesh model=2: 2 seats' "$trireme" explain $model $mesh
check 'an operator' says 'mlp.c_fc.matmul .*matmul .*out/model' "$trireme" explain $model $mesh
check 'a move' says 'all-reduce over model, 65536 bytes: .* is (-,-,-) partial sum over model; ' \
    "$trireme" explain $model $mesh
check 'sums' says 'all-reduce .* 8, .* 3, ' "$trireme" explain $model $mesh
check 'JSON' adds_up
check 'replicas' says '1024 devices: 512 replicas' \
    "$trireme" explain $model $mesh --devices 1024
check 'a large mesh' says 'mesh model=32: 32 seats' \
    "$trireme" explain mlp --batch 64 --lanes 1 --mesh model=32 --unset batch
check 'slow channels' says 'leaves the fast kernels' \
    "$trireme" explain resnet18:form=small --batch 4 --lanes 2 --mesh model=8 --strategy channels
check 'factors' says '^conv2d .*out' "$trireme" explain --factors
check 'no mesh, one lane' refuses 'has no mesh, no stages and one lane' \
    "$trireme" explain $model --lanes 1
check 'no mesh' says '^  2 .*unit 23 of 25, grad.fc1.matmul' \
    "$trireme" explain mlp --lanes 4 --bucket 1M

# A pipeline.
stages='mlp:hidden=64 --batch 64 --lanes 6 --stages 3'
check 'stages' says '^  1 *1 *[0-9]* *[0-9]* *0  ' "$trireme" explain $stages
check 'stages, with an optimizer' says '^schedule 1f1b' "$trireme" explain $stages --optimizer adam
check 'what legs hand over' grep -q '^  F0 *F1 * [0-9]* *[23]  f32' out
check 'the schedule' grep -q '^  track 0   F0 F1 F2 .  .  B0 F3 B1 F4 B2 F5 B3 .  B4 .  B5$' out
check 'its waiting time' grep -q '^waiting: 25.0 % of' out
check 'measured' says '^waiting: .* with the times measured here; .* F0 [0-9.]*, F1' \
    "$trireme" explain $stages --measure
cp out measured
"$trireme" explain $stages >out
check 'measuring changes nothing else' sh -c 'grep -v "measured here" measured | cmp - out'
"$trireme" explain gpt2-tiny:seq=16,vocab=103 --batch 8 --lanes 8 --stages 2 --amp O2 --zero 3 \
    >out
check 'ZeRO level 3: no leg hands weights over' sh -c \
    'grep -q "^  F0  .*bf16" out && ! grep "^  F" out | grep -q "param.*bf16.cast"'
check 'interleaved' says '  track 1 *[.] *F0a' "$trireme" explain mlp --batch 64 --lanes 4 \
    --stages 4 --pipeline interleaved
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
check 'times without stages' refuses 'add --stages' "$trireme" explain mlp --lanes 2 --measure
check 'no model' refuses 'lacks its MODEL' "$trireme" explain
check 'devices that do not divide' refuses '2 is the nearest' \
    "$trireme" explain $model $mesh --devices 3
check 'too many devices' refuses '9999: expected a whole number that is not so large' \
    "$trireme" explain $model $mesh --devices 99999999999999999999
check 'factors of a model' refuses 'give it alone' "$trireme" explain $model --factors
check 'memory with a mesh' says 'in all' "$trireme" memory $model $mesh
check 'dump with a mesh' says 'mlp.c_fc.matmul@1' "$trireme" dump $model $mesh --after expand
check 'bench with a mesh' says '^bench model=' "$trireme" bench $model $mesh --steps 2

# layer4 of this network has 1 x 1 places.
echo '* height=model' >all
echo 'maybe * height=model' >some
small='resnet18:size=32 --batch 4 --mesh model=2'
check 'too few places' refuses 'layer4.*height has 1 place' "$trireme" explain $small --strategy all
check 'maybe: too few places' says 'halo exchange over model' "$trireme" explain $small \
    --strategy some
check 'the strategy of another network' refuses 'nothing uses the axis model' \
    "$trireme" explain mlp --batch 8 --mesh model=2 --strategy megatron

finish
