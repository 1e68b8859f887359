#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# trireme pack: archives of pictures; interruptions and damaged archives; archives that come through
# a pipe. Usage: test_pack.sh PROGRAM MAKE_PICTURES
program=$(realpath "$1") make=$(realpath "$2")
. "$(dirname "$0")/cases.sh"

run() {
    "$program" "$@" >out 2>err
    code=$?
}

says() { grep -q -- "$1" "$2"; }

mkdir -p pets/train/ant pets/train/bee pets/train/cow
"$make" pets ant 30 40 30 && "$make" pets bee 12 50 20 && "$make" pets cow 20 33 33 || exit 1
sums() { sha256sum "$@" | cut -d ' ' -f 1 | sort; }
sums pets/train/*/*.jpg >right

# ---- packing ----

run pack images:pets -o 'a-%04d.tar' --samples 8 --threads 3
check 'the archives are packed' says '^packed shards=8 written=8 samples=62 bad=0 bytes=[0-9]*$' out
check 'as many archives' test "$(ls a-*.tar | wc -l)" -eq 8
check 'only archives and their hashes' test "$(ls a-* | wc -l)" -eq 16
check 'hashes for sha256sum' sha256sum --quiet -c a-0000.tar.sha256 a-0007.tar.sha256
mkdir x && for f in a-*.tar; do tar xf "$f" -C x; done
sums x/*.jpg >got
check 'every picture, byte by byte' cmp got right
run data 'tar:a-{0000..0007}.tar'
check 'the same samples' says '^62 samples' out
check 'the same classes' sh -c \
    "grep -q '^ *30  0$' out && grep -q '^ *12  1$' out && grep -q '^ *20  2$' out"
check 'labels beside them' test "$(cat x/*.cls | sort | uniq -c | tr -s ' \n' ' ')" = \
    ' 30 0 12 1 20 2 '
check 'in a random order' test "$(cat x/*.cls | head -9 | sort -u | wc -l)" -gt 1

run pack images:pets -o 'a-%04d.tar' --samples 8
check 'again: nothing is written' says 'written=0 samples=62' out
printf x | dd of=a-0003.tar bs=1 seek=700 conv=notrunc 2>/dev/null
rm a-0005.tar.sha256 a-0006.tar
run pack images:pets -o 'a-%04d.tar' --samples 8
check 'damaged and missing ones are' says 'written=3 samples=62' out
sha256sum a-*.tar >first
run pack images:pets -o 'a-%04d.tar' --samples 8 --seed 1
check 'another order: all are written' says 'written=8' out
check 'and differ' sh -c '! sha256sum --quiet -c first 2>/dev/null'
run pack images:pets -o 'a-%04d.tar' --samples 8 --threads 1
check 'the same bytes with one thread' sha256sum --quiet -c first

# Fewer archives than an earlier packing wrote: the left-over ones would be read too.
run pack images:pets -o 'g-%04d.tar' --samples 8
cp g-0000.tar kept
run pack images:pets -o 'g-%04d.tar' --samples 20
check 'archives of an earlier packing are refused' test $code -eq 2
check 'and named' says '^trireme: g-0004.tar: 4 archives of an earlier packing follow the 4 to be' \
    err
check 'before anything is written' cmp g-0000.tar kept
rm g-000[4-7].tar*
touch g-4.tar g-00x5.tar
run pack images:pets -o 'g-%04d.tar' --samples 20
check 'other names are allowed' says 'packed shards=4 written=4' out
run pack images:pets -o 'shards/pets-%06d.tar'
check 'the directory is made' test -s shards/pets-000000.tar

ln -s /dev/full f-0003.tar
run pack images:pets -o 'f-%04d.tar' --samples 20
check 'a device is refused' says 'cannot write f-0003.tar: it is a character device' err
check 'and nothing is written' test "$code $(ls f-* | wc -l)" = '1 1' -a -L f-0003.tar
ln -sf elsewhere.tar f-0003.tar
run pack images:pets -o 'f-%04d.tar' --samples 20
check 'the target of a symlink is' test -L f-0003.tar -a -s elsewhere.tar
check 'with its hash' sha256sum --quiet -c f-0003.tar.sha256
rm f-* elsewhere.tar

run pack images:pets -o 'b-%d.tar' --size 20K --shuffle off
check 'by size' says 'packed shards=[0-9]* ' out
check 'none is larger' test -z "$(find . -name 'b-*.tar' -size +40b)"
check 'none has only one' test "$(ls b-*.tar | wc -l)" -lt 20
tar tf b-0.tar | grep -c jpg >/dev/null
mkdir y && tar xf b-0.tar -C y
check 'in the folder'\''s order' cmp y/000000000.jpg pets/train/ant/000.jpg

# A run that is killed leaves nothing that counts as an archive.
for n in 1 2 3 4 5; do
    rm -f c-*
    "$program" pack images:pets -o 'c-%04d.tar' --samples 2 >/dev/null 2>&1 &
    sleep "0.0$n"
    kill -9 $! 2>/dev/null
    wait $! 2>/dev/null
    whole=$(ls c-*.sha256 2>/dev/null | wc -l)
    check "killed with $whole of 31: those are whole" sh -c \
        "[ $whole = 0 ] || sha256sum --quiet -c c-*.sha256"
    run pack images:pets -o 'c-%04d.tar' --samples 2
    check 'and it resumes after them' says "written=$((31 - whole)) " out
done

# ---- mistakes ----

echo text >pets/train/cow/900.jpg
run pack images:pets -o 'd-%04d.tar'
check 'a file that is not a picture is left out' says '900.jpg: neither a JPEG nor a PNG' err
check 'and counted' says 'samples=62 bad=1' out
check 'the archives have the rest' test "$(cat d-*.tar | tar tif - | grep -c '\.jpg$')" -eq 62
run pack images:pets -o 'd-%04d.tar'
check 'and again, with nothing to write' says 'written=0 samples=62 bad=1' out
echo text >pets/train/cow/901.jpg
run pack images:pets -o 'e-%04d.tar' --max-bad 1
check 'too many of them' says 'more than --max-bad 1 bad files; the last: .*90[01].jpg' err
check 'which is a failure' test "$code" -eq 1
check 'without an archive that seems complete' test ! -e e-0000.tar
rm pets/train/cow/90?.jpg
run pack images:pets -o 'f.tar'
check 'names without a number' says 'with %06d in place of the number' err
run pack images:pets -o 'no/where/f-%d.tar'
check 'a missing folder' says 'cannot make the directory no/where: No such file' err
run pack synthetic:size=3 -o 'f-%d.tar'
check 'data without files' test "$code" -ne 0
run data 'tar:a-{0000..0008}.tar'
check 'an archive of a range is missing' says 'no file matches the pattern a-0008.tar' err
run data 'tar:a-{5..2}.tar'
check 'a reversed range' says 'the range from 5 to 2' err

# ---- pipes ----

net="resnet18:form=small,classes=3,width=4,size=16 --batch 8 --lanes 2 --quiet --shuffle off"
line() { sed 's/ seconds=.*//' out; }
train() { run train $net "$@"; }

train --data 'tar:pipe:cat a-*.tar,samples=62,size=16' --epochs 3
line >right
check 'through a command' says '^done steps=21 ' out
train --data 'tar:pipe:cat a-*.tar,samples=62,size=16' --epochs 3 -n 2
line >got
check 'with two workers' cmp got right
train --data 'tar:pipe:cat a-*.tar,samples=62,size=16,window=1' --epochs 3
line >got
check 'with a smaller window in another order' sh -c '! cmp -s got right'
train --data 'tar:pipe:cat a-*.tar,samples=62,size=16' --epochs 3 --ckpt ck --save-every 10
rm -r ck/step-000000020 ck/step-000000021
train --data 'tar:pipe:cat a-*.tar,samples=62,size=16' --epochs 3 --ckpt ck --resume
line >got
check 'it resumes after a stop' cmp got right
train --data 'tar:pipe:cat a-*.tar,samples=62,size=16' --epochs 1
line >right
cat a-*.tar | "$program" train $net --data tar:-,samples=62,size=16 --epochs 1 >out 2>err
line >got
check 'through standard input' cmp got right
mkfifo pipe
cat a-*.tar >pipe &
train --data tar:pipe,samples=62,size=16 --epochs 1
line >got
check 'through a named pipe' cmp got right
cat a-*.tar | "$program" data tar:-,samples=62,size=16 --check >out 2>err
check 'every sample is there once' says '^checked samples=62 bad=0' out

cat a-*.tar | "$program" train $net --data tar:-,samples=62,size=16 --epochs 2 >out 2>err
check 'the end is reported' says 'the stream ended after 62 samples' err
cat a-*.tar | "$program" train $net --data tar:-,samples=62,size=16 -n 2 >out 2>err
check 'several workers cannot share it' says 'can be read only once, by one process' err
cat a-*.tar | "$program" train $net --data tar:-,size=16 >out 2>err
check 'the number of samples is required' says 'samples=N gives the size' err
head -c 700 a-0000.tar | "$program" train $net --data tar:-,samples=62,size=16 >out 2>err
check 'a stream that is cut off' says 'input, .*truncated: the stream ended in the middle' err
train --data 'tar:pipe:cat a-*.tar; exit 3,samples=62,size=16' --epochs 2
check 'a command that fails' says 'the command ended with exit code 3' err
train --data 'tar:pipe:cat a-0000.tar pets/train/ant/000.jpg,samples=8,size=16'
check 'garbage after an archive' says 'sum is wrong' err
# A stream that failed reports the failure again on the next read.
cat a-0000.tar pets/train/ant/000.jpg | "$program" data tar:-,samples=20,size=16 --check >out 2>err
code=$?
check 'a damaged stream, read on' test "$code" -eq 1
check 'is reported for each sample' test "$(grep -c 'bad sample .*sum is wrong' out)" -ge 2
python3 - >minus.tar <<'END'
import sys
header = bytearray(b"0.jpg".ljust(124, b"\0") + b"\xff" * 12 + b" " * 20 + b"0")
header = header.ljust(257, b"\0") + b"ustar\00000".ljust(255, b"\0")
header[148:155] = b"%06o\0" % sum(header)
sys.stdout.buffer.write(header + bytes(2048))
END
"$program" data tar:-,samples=4,size=16 --check <minus.tar >out 2>err
code=$?
check 'a size of -1, read on' test "$code" -eq 1
check 'is reported for each sample too' test \
    "$(grep -c 'bad sample .*offset 0: a size that is no number' out)" -eq 4
(tar cf one.tar -C x 000000001.jpg 000000002.cls && cat one.tar a-*.tar) |
    "$program" train $net --data tar:-,samples=62,size=16,window=1 >out 2>err
check 'a picture without a class is reported' says '000000001 has no class' err
check 'a class without a picture too' says '000000002 has no picture' err
check 'and left out' says '^done steps=7 ' out

finish
