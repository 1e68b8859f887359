#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# trireme predict: pictures of colours that a network has learned to tell apart.
# Usage: test_predict.sh TRIREME
program=$(realpath "$1")
pictures=$(realpath "$(dirname "$0")")/pictures.py
. "$(dirname "$0")/cases.sh"

says() { # exit code, pattern in out, pattern in err, command
    code=$1 pattern=$2 error=$3
    shift 3
    "$@" >out 2>err </dev/null
    [ $? -eq "$code" ] && grep -q -e "$pattern" out && { [ -z "$error" ] || grep -q -e "$error" err; } || { cat out err; return 1; }
}
mistake() { # exit code, pattern, command: one message
    code=$1 pattern=$2
    shift 2
    "$@" >out 2>err </dev/null
    [ $? -eq "$code" ] && grep -q -e "$pattern" err && [ "$(grep -c '^trireme:' err)" -eq 1 ] || { cat out err; return 1; }
}

python3 "$pictures" folder 4 16 40
model=resnet18:form=small,width=4,classes=4,size=16
data=images:folder,size=16
"$program" train $model --data $data --epochs 10 --batch 8 --optimizer adam --lr 0.01 --quiet --save w.safetensors
predict="$program predict $model --load w.safetensors"

check 'a picture' says 0 '^  [0-9. ]* %  2$' '' $predict folder/val/class2/1.png
check 'its file comes first, then four classes' test "$(head -n 1 out)/$(wc -l <out)" = folder/val/class2/1.png/5
check 'names of the data' says 0 '^  [0-9. ]* %  3  class3$' '' $predict --data $data folder/val/class3/*.png
seq 4 | sed 's/^/colour /' >names
check 'names of a file' says 0 '%  0  colour 1$' '' $predict --names names folder/val/class0/*.png
check 'as many as are asked for' test "$($predict --top 2 folder/val/class0/1.png | wc -l)" -eq 3
$predict --json --data $data folder/val/class?/*.png >all.json
check 'JSON, in the order of the files, right for nearly all' python3 -c '
import json, sys
rows = [json.loads(line) for line in open("all.json")]
right = sum(row["top"][0]["name"] in row["file"] for row in rows)
shares = all(abs(sum(c["probability"] for c in row["top"]) - 1) < 1e-4 for row in rows)
sys.exit(not (len(rows) == 64 and rows[18]["file"] == "folder/val/class1/10.png" and right >= 48 and shares))'
$predict --json --data $data --batch 3 folder/val/class?/*.png >parts.json
check 'the size of batches changes but last digits' python3 -c '
import json
for a, b in zip(map(json.loads, open("all.json")), map(json.loads, open("parts.json"))):
    assert a["file"] == b["file"]
    for x, y in zip(a["top"], b["top"]): assert abs(x["probability"] - y["probability"]) < 1e-4, (a, b)'
top1=$("$program" eval $model --load w.safetensors --data $data,split=val | sed 's/.*top1=//')
check 'as many are right as an evaluation says' python3 -c "
import json
rows = [json.loads(line) for line in open('all.json')]
right = sum(row['top'][0]['name'] in row['file'] for row in rows)
assert abs(right / 64 - $top1) < 1e-6, (right, $top1)"

# One picture leaves one value for the last statistics, which only training wants.
deep=resnet18:width=4,classes=4,size=16
"$program" train $deep --data $data --steps 2 --batch 8 --quiet --save deep.safetensors >out
check 'one picture, of which one value is left' says 0 '^  [0-9. ]* %  [0-3]$' '' \
    "$program" predict $deep --load deep.safetensors folder/val/class0/0.png
"$program" eval $deep --load deep.safetensors --data $data,split=val --batch 8 | sed 's/.*top1=//' >top1
check 'evaluated one by one' says 0 "top1=$(cat top1)\$" '' \
    "$program" eval $deep --load deep.safetensors --data $data,split=val --batch 1
check 'one cannot be trained with' mistake 2 "1 samples in 1 groups (1 lanes) leave 1 values for a channel's variance" \
    "$program" train $deep --data $data --steps 2 --batch 1

echo nothing >bad.jpg
check 'a bad file keeps no other from it' says 1 '^folder/val/class1/0.png' 'bad.jpg: neither a JPEG nor a PNG' \
    $predict folder/val/class0/0.png bad.jpg none.png folder/val/class1/0.png
check 'nor one that is not there' grep -q 'none.png: No such file' err
check 'how many there were' grep -q '2 of 4 files could not be read' err
check 'no picture at all' mistake 2 'predict lacks its PICTURE' $predict
check 'no weights' mistake 2 'predict lacks --load FILE' "$program" predict $model folder/val/class0/0.png
check 'another network' mistake 2 'with an input "image" f32\[batch,3,size,size\]' \
    sh -c "'$program' train mlp --steps 1 --quiet --save mlp.safetensors >out &&
           '$program' predict mlp --load mlp.safetensors folder/val/class0/0.png"
check 'too few names' mistake 2 'has 3 lines; the network has 4 classes' \
    sh -c "head -n 3 names >few; $predict --names few folder/val/class0/0.png"
check 'no names' mistake 1 'names no: No such file\|--names no: ' $predict --names no folder/val/class0/0.png
check 'data of another size' mistake 2 'but --data makes them 224 x 224: size=16' \
    $predict --data images:folder folder/val/class0/0.png
cp -r folder spoilt
for i in 1 4 7 10; do echo nothing >spoilt/train/class0/$i.png; done
together="$program train $model --batch 8 --lanes 4 --quiet -n 2 --data images:spoilt,size=16"
check 'bad files that two workers meet count together' sh -c "! $together,max-bad=3 --epochs 1 2>err &&
    grep -q 'more than max-bad=3 bad files; the last: ' err"
check 'each once' $together,max-bad=4 --epochs 3
together="$program eval $deep --load deep.safetensors --batch 1 -n 2 --data images:spoilt,size=16"
check 'those that two evaluate too' sh -c "! $together,max-bad=3 2>err &&
    grep -q 'more than max-bad=3 bad files; the last: ' err"
check 'each of these once' $together,max-bad=4
check 'data of another kind' mistake 2 'predict reads files of pictures' $predict --data synthetic folder/val/class0/0.png
finish
