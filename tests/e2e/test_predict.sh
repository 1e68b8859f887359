#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# trireme predict: pictures of colours that a network has learned to classify. Usage:
# test_predict.sh TRIREME
program=$(realpath "$1")
pictures=$(realpath "$(dirname "$0")")/pictures.py
. "$(dirname "$0")/cases.sh"

says() { # exit code, pattern in out, pattern in err, command
    code=$1 pattern=$2 error=$3
    shift 3
    "$@" >out 2>err </dev/null
    [ $? -eq "$code" ] && grep -q -e "$pattern" out &&
        { [ -z "$error" ] || grep -q -e "$error" err; } || { cat out err; return 1; }
}
mistake() { # exit code, pattern, command: one message
    code=$1 pattern=$2
    shift 2
    "$@" >out 2>err </dev/null
    [ $? -eq "$code" ] && grep -q -e "$pattern" err && [ "$(grep -c '^trireme:' err)" -eq 1 ] ||
        { cat out err; return 1; }
}

same_lines() { # file, command: its output has the same lines as the file
    file=$1
    shift
    "$@" >out 2>err </dev/null && cmp out "$file"
}

python3 "$pictures" folder 4 16 40
model=resnet18:form=small,width=4,classes=4,size=16
data=images:folder,size=16
"$program" train $model --data $data --epochs 10 --batch 8 --optimizer adam --lr 0.01 --quiet \
    --save w.safetensors
predict="$program predict $model --load w.safetensors"

check 'a picture' says 0 '^  [0-9. ]* %  2$' '' $predict folder/val/class2/1.png
check 'its file comes first, then four classes' test "$(head -n 1 out)/$(wc -l <out)" = \
    folder/val/class2/1.png/5
check 'names of the data' says 0 '^  [0-9. ]* %  3  class3$' '' $predict \
    --data $data folder/val/class3/*.png
seq 4 | sed 's/^/colour /' >names
check 'names of a file' says 0 '%  0  colour 1$' '' $predict --names names folder/val/class0/*.png
check 'as many as requested' test "$($predict --top 2 folder/val/class0/1.png | wc -l)" -eq 3
$predict --json --data $data folder/val/class?/*.png >all.json
$predict --json folder/val/class?/*.png >unnamed.json
check 'JSON, in the order of the files, right for nearly all' python3 -c '
import json, sys
rows = [json.loads(line) for line in open("all.json")]
right = sum(row["top"][0]["name"] in row["file"] for row in rows)
shares = all(abs(sum(c["probability"] for c in row["top"]) - 1) < 1e-4 for row in rows)
in_order = rows[18]["file"] == "folder/val/class1/10.png"
sys.exit(not (len(rows) == 64 and in_order and right >= 48 and shares))'
$predict --json --data $data --batch 3 folder/val/class?/*.png >parts.json
check 'the batch size changes only last digits' python3 -c '
import json
for a, b in zip(map(json.loads, open("all.json")), map(json.loads, open("parts.json"))):
    assert a["file"] == b["file"]
    for x, y in zip(a["top"], b["top"]):
        assert abs(x["probability"] - y["probability"]) < 1e-4, (a, b)'
top1=$("$program" eval $model --load w.safetensors --data $data,split=val | sed 's/.*top1=//')
check 'the accuracy of an evaluation' python3 -c "
import json
rows = [json.loads(line) for line in open('all.json')]
right = sum(row['top'][0]['name'] in row['file'] for row in rows)
assert abs(right / 64 - $top1) < 1e-6, (right, $top1)"

# One picture gives one value per channel to the last statistics, which is too few only for
# training.
deep=resnet18:width=4,classes=4,size=16
"$program" train $deep --data $data --steps 2 --batch 8 --quiet --save deep.safetensors >out
check 'a picture that becomes one value' says 0 '^  [0-9. ]* %  [0-3]$' '' \
    "$program" predict $deep --load deep.safetensors folder/val/class0/0.png
"$program" eval $deep --load deep.safetensors --data $data,split=val --batch 8 | sed 's/.*top1=//' \
    >top1
check 'evaluated one by one' says 0 "top1=$(cat top1)\$" '' \
    "$program" eval $deep --load deep.safetensors --data $data,split=val --batch 1
check 'training with one is refused' mistake 2 \
    "1 sample in 1 group (1 lane) leave 1 value for a channel's variance" \
    "$program" train $deep --data $data --steps 2 --batch 1

echo nothing >bad.jpg
check 'a bad file does not affect others' says 1 '^folder/val/class1/0.png' \
    'bad.jpg: neither a JPEG nor a PNG' \
    $predict folder/val/class0/0.png bad.jpg none.png folder/val/class1/0.png
check 'nor does a missing one' grep -q 'none.png: No such file' err
check 'their number' grep -q '2 of 4 files could not be read' err
check 'no picture' mistake 2 'predict lacks its PICTURE' $predict
check 'no weights' mistake 2 'predict lacks --load FILE' "$program" predict $model \
    folder/val/class0/0.png
check 'another network' mistake 2 'with an input "image" f32\[batch,channels,size,size\]' \
    sh -c "'$program' train linear --steps 1 --quiet --save other.safetensors >out &&
           '$program' predict linear --load other.safetensors folder/val/class0/0.png"
check 'too few names' mistake 2 'has 3 lines; the network has 4 classes' \
    sh -c "head -n 3 names >few; $predict --names few folder/val/class0/0.png"
check 'no names' mistake 1 'names no: No such file\|--names no: ' $predict \
    --names no folder/val/class0/0.png
check 'data of another size' sh -c \
    "! $predict --data images:folder,size=32 folder/val/class0/0.png 2>err &&
    grep -q 'but --data makes them 32 x 32: size=16' err"
check 'differs from the data of the training' grep -q \
    'size=32, but the weights were trained with size=16' err

# Files of weights say which network they are for and how its data are prepared.
check 'the network and its data, from the weights' same_lines all.json \
    "$program" predict --load w.safetensors --json --data images:folder folder/val/class?/*.png
check 'without options for data' same_lines unnamed.json "$program" predict --load w.safetensors \
    --json folder/val/class?/*.png
check 'evaluated with that network' test \
    "$("$program" eval --load w.safetensors --data images:folder,split=val)" = \
    "$("$program" eval $model --load w.safetensors --data $data,split=val)"
check 'a network that is not of the zoo' mistake 2 \
    'predict lacks its MODEL: own.safetensors does not name the model of its weights' \
    sh -c "python3 -c 'open(\"own.safetensors\", \"wb\").write(b\"\\2\" + bytes(7) + b\"{}\")' &&
           '$program' predict --load own.safetensors folder/val/class0/0.png"
check 'the reason why weights do not fit' mistake 1 \
    'network: it was made with form=small, width=4, .*; [0-9]* differences; .*and [0-9]* more' \
    "$program" eval resnet18:classes=4 --load w.safetensors --data $data
check 'another network that fits' says 0 '^eval ' \
    'fits the network, but it was made without smoothing=0.1' \
    "$program" eval $model,smoothing=0.1 --load w.safetensors --data $data,split=val

# A grey-scale network: the same pictures as an idx file.
python3 "$pictures" idx folder grey
"$program" train cnn:classes=4,size=40,width=4 --data idx:grey,mean=0.4,std=0.2 --epochs 10 \
    --batch 8 --lr 0.01 --optimizer adam \
    --quiet --save grey.safetensors
"$program" predict --load grey.safetensors --json folder/val/class?/*.png >grey.json
top1=$("$program" eval --load grey.safetensors --data idx:grey,split=test | sed 's/.*top1=//')
check 'the accuracy of a grey network' python3 -c "
import json
rows = [json.loads(line) for line in open('grey.json')]
right = sum('class%d' % row['top'][0]['class'] in row['file'] for row in rows)
assert right > 40 and abs(right / 64 - $top1) < 1e-6, (right, $top1)"
cp -r folder spoilt
for i in 1 4 7 10; do echo nothing >spoilt/train/class0/$i.png; done
together="$program train $model --batch 8 --lanes 4 --quiet -n 2 --data images:spoilt,size=16"
check 'bad files of two workers count together' sh -c \
    "! $together,max-bad=3 --epochs 1 2>err &&
    grep -q 'more than max-bad=3 bad files; the last: ' err"
check 'each once' $together,max-bad=4 --epochs 3
together="$program eval $deep --load deep.safetensors --batch 1 -n 2 --data images:spoilt,size=16"
check 'also when two evaluate' sh -c "! $together,max-bad=3 2>err &&
    grep -q 'more than max-bad=3 bad files; the last: ' err"
check 'each of these once' $together,max-bad=4
check 'data of another kind' mistake 2 'predict reads picture files' $predict \
    --data synthetic folder/val/class0/0.png
finish
