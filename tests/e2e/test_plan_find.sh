#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Plans that are found: the table, memory, saved plans and their bits, --parallel auto, the machine
# file. Usage: test_plan_find.sh PROGRAM
program=$(realpath "$1")
. "$(dirname "$0")/cases.sh"
net=gpt2-tiny:seq=16,vocab=96,layers=2,hidden=32,heads=4,inner=64

run() {
    "$program" "$@" >out 2>err
    code=$?
}
find() { run plan find $net --batch 8 --lanes 4 "$@"; }
train() { run train $net --batch 8 --lanes 4 --steps 3 --data synthetic "$@"; }
says() { grep -q -- "$1" "$2"; }
hash_of() { sed -n 's/.* weights=\([^ ]*\).*/\1/p' "$1"; }

# ---- the table ----

find --grain keep
check 'plans are found' test $code -eq 0
check 'its units are measured' says 'unit.* are measured, about' err
check 'the best is named' says '^the best at these prices of [0-9]* plans; 0 did not fit' out
check 'none has other bits' sh -c '! grep -q "its own" out'
check 'stages are among them' says '^ *[0-9]* *4  - *2  *2 x 1' out
find --grain keep
check 'then nothing is measured' sh -c 'test ! -s err && grep -q "nothing was measured" out'
find --grain keep --measure never --json --top all
check 'every plan is in the JSON' python3 -c '
import json
found = json.load(open("out"))
plans = found["plans"]
assert len(plans) >= 4 and {p["is"] for p in plans} <= {"fits", "too large", "cut", "refused"}
assert all(p["same_bits"] and p["lanes"] == 4 and not p["mesh"] for p in plans)
assert all(0 < p["units"] <= p["seconds"] * 1.001 for p in plans if p["is"] == "fits")
times = [p["seconds"] for p in plans if p["is"] == "fits"]
assert times[0] <= 1.021 * min(times) and times[1:] == sorted(times[1:])
'
find --measure never --json --why
check 'with any grain meshes are, and cells that are cut have both numbers' python3 -c '
import json
plans = json.load(open("out"))["plans"]
assert any(p["mesh"] == "model=2" and p["strategy"] == "megatron" for p in plans)
best = min(p["seconds"] for p in plans if p["is"] == "fits")
assert any(p["is"] == "refused" for p in plans)
cut = [p for p in plans if p["is"] == "cut"]
assert all(p["bound"] * 1.021 >= best for p in cut)
assert all(p["note"] for p in plans if p["is"] == "refused")
'
run plan find mlp --measure never --all --json
check '--all lets no core idle' python3 -c '
import json, os
found = json.load(open("out"))
assert all(p["workers"] * p["threads"] >= found["cores"] for p in found["plans"])
'
find --measure never --threads 1 -n 2 --top all
check 'what is given is kept' sh -c '! grep -q "1 x [12]" out && grep -q "2 x 1" out'

# ---- memory and bits of saved plans ----

train --threads 1 --out plain --quiet
plain=$(hash_of out)
find --measure never --json --top all
python3 -c '
import json
for i, p in enumerate(p for p in json.load(open("out"))["plans"] if p["is"] == "fits"):
    print(i + 1, p["bytes"], int(p["same_bits"]))' >rows
rows=$(wc -l <rows)
check 'there are rows' test "$rows" -ge 6
bytes_are() { # row, bytes: `memory --plan` prints the same MiB, rounded up to a tenth
    run plan find $net --batch 8 --lanes 4 --measure never --row "$1" --save row
    workers=$(sed -n 's/^workers //p' row)
    test "$workers" = 1 && workers= || workers="-n $workers"
    run memory $net --plan row $workers
    sed -n 's/^fits: \([0-9,]*\) of .*/\1/p' out | tr -d , >memory
    test "$(cat memory)" = "$((($2 + 1048575) / 1048576))"
}
while read -r row bytes same; do
    case $row in 1 | 3 | 5 | "$rows") ;; *) continue ;; esac
    check "row $row takes what it says" bytes_are "$row" "$bytes"
    run train $net --plan row --steps 3 --data synthetic --out "r$row" --quiet
    hash=$(hash_of out)
    if [ "$same" = 1 ]; then check "row $row has the same bits" test "$hash" = "$plain"
    else check "row $row has its own bits" test -n "$hash" -a "$hash" != "$plain"; fi
    run train $net --plan row --steps 3 --data synthetic --out "s$row" -n 1 --quiet
    check "row $row has them on one worker" test "$(hash_of out)" = "$hash"
done <rows
check 'a saved plan says what was predicted' says '^predicted-ns [0-9]' row
run plan show row
check 'and is shown' test $code -eq 0

# ---- a split that is searched ----

split="mlp --batch 64 --lanes 1 -n 2 --measure never --top all"
run plan find $split --json
row=$(python3 -c '
import json
plans = [p for p in json.load(open("out"))["plans"] if p["is"] == "fits"]
row = [i for i, p in enumerate(plans) if p["strategy"] == "searched" and p["gap"] == 0]
print(row[0] + 1)')
run plan find $split --row "$row" --save split
check 'a searched split is saved' sh -c "
    grep -q '^use .*=model' split && grep -q '^use grad.fc2.matmul.matmul ' split"
for isa in plain avx2; do # without prices
    XDG_CACHE_HOME=$work/none TRIREME_ISA=$isa "$program" plan find $split --row "$row" \
        --save out >err 2>&1
    grep -v '^predicted-ns\|^hash' out >$isa.plan
done
check 'other kernels have the same plan' sh -c 'test -s plain.plan && cmp plain.plan avx2.plan'
for n in 1 2 4; do
    run train mlp --plan split -n $n --steps 3 --data synthetic --quiet
    hash_of out >split.$n
done
check 'it has one hash' sh -c 'test -s split.1 && cmp split.1 split.2 && cmp split.1 split.4'
run train mlp --plan split -n 2 --steps 3 --data synthetic --eval-data synthetic --quiet
check 'and is evaluated' sh -c "grep -q 'weights=$(cat split.1)' out && grep -q best_loss out"
run plan show split
check 'its lines are shown' says '^use fc1.matmul ' out
run plan find mlp --batch 64 --lanes 1 --grain keep --measure never --save whole
run plan diff split whole
check 'lines are compared' sh -c 'grep -q "^- use fc1.add" out && grep -q "bits differ" out'
sed 's/^use fc1.matmul .*/use fc1.matmull out=model/; /^hash/d' split >wrong
run train mlp --plan wrong --steps 3 --data synthetic
check 'a node that is not there' says 'a lane has no operator "fc1.matmull"; do you mean' err
sed 's/^use fc1.matmul .*/use fc1.matmul partial=model/; /^hash/d' split >wrong
run train mlp --plan wrong --steps 3 --data synthetic
check 'sums that are none' says 'it has no partial sums along the axis model' err
run train lenet5 --plan split --steps 3 --data synthetic
check 'a plan of another network' says 'a plan decides the bits of a run' err

# ---- limits ----

find --memory-limit 1M --measure never
check 'no plan fits' sh -c 'test '$code' -eq 2 && grep -q "fits: with .* more than the limit" err'
full=$("$program" plan find $net --batch 8 --lanes 4 --grain keep --measure never --json |
    python3 -c 'import json, sys
print(min(p["bytes"] for p in json.load(sys.stdin)["plans"] if p["is"] == "fits") - 1)')
find --grain keep --measure never --memory-limit "$full" --top all
check 'lighter plans are tried' sh -c '
    grep -q "full" out || grep -q "fits: with .*recompute full" err'

# ---- --parallel auto ----

train --parallel auto --out auto
check 'the same bits with --parallel auto' test "$(hash_of out)" = "$plain"
check 'it says its plan' says '^trireme: --parallel auto: 4 lanes, .* ms a step, the best of' err
check 'which is kept' test -s auto/plan
train --parallel auto --out auto2 --steps 14
check 'steps are told beside the plan' says 'a step takes .* ms; the plan said .* %' err
find --grain keep
check 'and kept' says 'the latest run took .* times what was predicted' out
train --parallel auto -n 2 --out auto3 --quiet
check 'two workers that are given are kept' sh -c \
    "grep -q '^workers 2' auto3/plan && test -s auto3/agent.log"
check 'with the same bits' test "$(hash_of out)" = "$plain"
train --parallel auto --ckpt kept --save-every 1 --out first --steps 2 --quiet
train --parallel auto --ckpt kept --resume --out second --quiet
check 'resumed, with the same bits' test "$(hash_of out)" = "$plain"
for i in first second; do grep -v '^predicted-ns\|^hash' $i/plan >$i.kept; done
check 'with the plan of the checkpoint' cmp first.kept second.kept
train --parallel auto --grain any --out auto4 --quiet
check 'any grain has a plan' test -s auto4/plan
train --parallel auto --plan auto/plan
check 'auto and a plan' says 'auto (tri_options.parallel): give one; auto finds a plan' err
train --grain any
check 'a grain without auto' says '--grain is for --parallel auto' err
run memory $net --parallel auto
check 'auto of no run' says 'auto finds the plan of a run that trains' err

"$program" run --parallel auto --threads-per-worker 1 --out program -- "$program" train $net \
    --batch 8 --lanes 4 --steps 3 --data synthetic --out inner --quiet >out 2>err
check 'run refuses a program that is a command' test -s err
find --grain keep --measure always --threads 1 -n 1
check 'always measures what is known' says 'units of .* are measured' err
find -n 5000
check 'too many workers' says 'there can be 1 to 128 in all' err

# ---- numbers of workers ----

run plan find linear --grain keep --threads 1
run plan price linear --threads 1
run train linear -n 2 --threads 1 --steps 20 --data synthetic --out slower --quiet
check 'a number that does not pay is said' says '-n 2: a step is predicted to take .* -n 1$' err
run train linear -n 1 --threads 1 --steps 20 --data synthetic --out alone --quiet
check 'one worker is not' sh -c '! grep -q predicted err'

# ---- nonsense ----

find --mesh model=2 -n 2 --measure never --json
check 'a mesh that is given is kept' python3 -c '
import json
plans = [p for p in json.load(open("out"))["plans"] if p["is"] == "fits"]
assert {p["mesh"] for p in plans} == {"model=2"}
assert {"megatron", "searched"} <= {p["strategy"] for p in plans}
'
find --threads 3 --measure never
check 'more threads than cores' test $code -eq 0
train --parallel auto --ckpt later --resume --out later.run --quiet
check 'resumed without checkpoints' test "$(hash_of out)" = "$plain"
find --row 2
check 'a row without a file' says '--row 2 names the plan that --save FILE writes' err
find --measure never --row 999 --save x
check 'a row that is not there' says '--row 999: there are [0-9]* plans' err
find --grain some
check '--grain' says '--grain some: expected keep or any\|"some".*keep or any' err
find --top none
check '--top' says 'a whole number of at least 1, or all' err
find --hosts a,b
check 'hosts without links' says 'run `trireme bench links --hosts' err
run plan find no-such-net
check 'no network' test $code -eq 2

# ---- the machine file ----

chmod 500 "$work/cache/trireme"
if [ "$(id -u)" -ne 0 ]; then
    find --batch 4 --lanes 2
    check 'a read-only cache is said' says 'the prices are not kept' err
    check 'and the plans are found' test $code -eq 0
fi
chmod 700 "$work/cache/trireme"
rm -f "$work"/cache/trireme/*
"$program" plan price $net --batch 8 --lanes 4 --threads 1 >/dev/null 2>&1 &
"$program" plan price mlp --threads 1 >/dev/null 2>&1
wait
run plan machine
check 'two runs that write at once leave a whole file' sh -c \
    'test '$code' -eq 0 && grep -q "units measured" out'

finish
