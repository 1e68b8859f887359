#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Shows that two builds compute and say the same: each row of the tables runs with both programs.
Their last lines (losses and hashes of weights and state), metrics, checkpoints, plans and other
output must be equal; of users' mistakes, exit codes and messages. Prints the rows that differ and
the counts; fails if any row differs, or does not run.

Usage: same_runs.py OLD NEW [WORD...]     OLD, NEW: the programs; WORD: only rows whose name has it
"""
import glob
import hashlib
import itertools
import json
import os
import random
import re
import struct
import subprocess
import sys
import tempfile
import time

LIMIT = 120  # seconds for one command
DATA = "--data idx:idx"
EVAL = "--eval-data npy:image.npy;label.npy --eval-every"
RESNET = "resnet18:form=small,width=8"
BERT = "bert-tiny:seq=32,vocab=200"
GPT = "gpt2-tiny:seq=24,vocab=200"
TINY = "mlp:hidden=32,layers=1,size=6"
TEXT = "--data text:docs.txt,for=bert --tokenizer bert:vocab.txt"
# A row: commands of the program, divided by " ; ", each with " > FILE" where its output is needed.
# They share a folder.
ROWS = {
    # Zoo and optimizers
    "linear, sgd": "train linear --steps 20 --lr 0.001",
    "mlp, momentum": "train mlp --steps 10 --optimizer momentum --weight-decay 0.001",
    "mlp, nesterov, 7 uneven lanes":
        "train mlp --steps 8 --optimizer nesterov --batch 30 --lanes 7",
    "lenet5, adam": "train lenet5 --steps 10 --optimizer adam",
    "lenet5, adamw, cosine": "train lenet5 --steps 10 --optimizer adamw --weight-decay 0.01"
                             " --schedule cosine:end=0.0001,warmup=3",
    "cnn, lars": "train cnn --steps 4 --optimizer lars --lanes 4 --batch 32",
    "cnn, 16 lanes": "train cnn --steps 3 --optimizer adam --lanes 16 --batch 32",
    "resnet18, momentum": f"train {RESNET} --steps 3 --optimizer momentum --batch 16 --lanes 4",
    "resnet50, sgd": "train resnet50:form=small,width=8,classes=10 --steps 2 --batch 8 --lanes 2",
    "bert, lamb": f"train {BERT} --steps 4 --batch 8 --lanes 4 --optimizer lamb",
    "bert, clipping": f"train {BERT} --steps 4 --batch 8 --optimizer adamw --clip-norm 1",
    "gpt2, adamw": f"train {GPT} --steps 4 --batch 8 --lanes 2 --optimizer adamw",
    "a textual graph": f"dump {TINY} > net.tri ; train net.tri --steps 5",
    "one lane per sample": f"train {TINY} --steps 6 --batch 9 --lanes 9 --optimizer adam",
    "sum of gradients": "train lenet5 --steps 5 --gradients-mean off --lanes 4 --lr 0.001",
    "polynomial rate": "train lenet5 --steps 6 --schedule poly:power=2,end=0.001",
    "passes left out": "train lenet5 --steps 5 --passes -cse,-fold",
    "direct convolutions": f"train {RESNET} --steps 2 --batch 16 --conv direct",
    "the reference device": "train cnn --steps 2 --batch 8 --lanes 4 --device ref",
    # Precision
    "mlp, O1": "train mlp --steps 5 --lanes 4 --amp O1",
    "mlp, O2, dynamic scale": "train mlp --steps 5 --amp O2 --loss-scale dynamic --optimizer adam",
    "mlp, O3": "train mlp --steps 5 --amp O3",
    "mlp, O2, f16": "train mlp:hidden=32 --batch 16 --steps 3 --amp O2 --amp-type f16 --device ref",
    "cnn, O2": "train cnn --steps 2 --batch 16 --lanes 2 --amp O2 --optimizer momentum",
    "bert, O2, 2 workers":
        f"train {BERT} --steps 3 --batch 8 --lanes 4 --amp O2 --optimizer lamb -n 2",
    # Threads and workers
    "lenet5, 3 threads": "train lenet5 --steps 8 --lanes 5 --optimizer adam --threads 3",
    "one lane, 4 threads": f"train {RESNET} --steps 2 --batch 8 --lanes 1 --threads 4",
    "lenet5, 2 workers": "train lenet5 --steps 10 --lanes 4 --optimizer adam -n 2",
    "lenet5, 3 workers, 1 spare":
        "train lenet5 --steps 10 --lanes 7 --optimizer lars -n 3 --spares 1",
    "threads of workers": "train cnn --steps 3 --batch 24 --lanes 6 -n 2 --threads-per-worker 2",
    "resnet18, 2 workers": f"train {RESNET} --steps 3 --optimizer lars --batch 16 --lanes 4 -n 2",
    "bert, 2 workers": f"train {BERT} --steps 4 --batch 8 --lanes 4 --clip-norm 1 -n 2",
    "gpt2, 3 workers, audit": f"train {GPT} --steps 3 --batch 8 --lanes 4 -n 3 --audit 0.5",
    # Recomputation
    "resnet18, recomputation":
        f"train {RESNET} --steps 2 --batch 16 --lanes 4 --recompute layer1.?,*.relu*",
    "bert, recomputation": f"train {BERT} --steps 3 --batch 8 --recompute * --optimizer adamw",
    "recomputation, 2 workers": f"train {RESNET} --steps 2 --batch 16 --lanes 4 --recompute * -n 2",
    # Data, samplers and tails
    "arrays, 3 epochs":
        f"train {TINY} --data npy:image.npy;label.npy --epochs 3 --batch 32 --optimizer adam",
    "tail keep": f"train {TINY} {DATA} --epochs 2 --batch 32 --lanes 5 --tail keep",
    "tail keep, 2 workers": f"train {TINY} {DATA} --epochs 2 --batch 32 --lanes 5 --tail keep -n 2",
    "tail pad":
        f"train {TINY},ignore=1 {DATA} --epochs 2 --batch 32 --lanes 4 --tail pad --optimizer adam",
    "tail pad, batch norm":
        "train cnn:ignore=1 --subset 0:50 --epochs 1 --batch 16 --lanes 4 --tail pad -n 2",
    "in order, subset":
        f"train {TINY} {DATA} --sampler sequential --subset 10:90 --steps 7 --batch 16",
    "stratified": f"train {TINY} {DATA} --sampler stratified --steps 7 --batch 30 --lanes 3",
    "weighted":
        f"train {TINY} {DATA} --sampler weighted:balanced --steps 7 --batch 30 -n 2 --lanes 4",
    "a third of the data": f"train {TINY} {DATA} --share 1/3 --epochs 3 --batch 16 --seed 7",
    "threads for the data": f"train {TINY} {DATA} --epochs 3 --batch 32 --data-threads 2",
    "texts of several lengths": f"train bert-tiny:seq=32/16/8,vocab=32,layers=1 {TEXT}"
                                " --epochs 2 --batch 8 --lanes 4 --tail keep --optimizer adamw",
    "texts, bytes":
        "train gpt2-tiny:seq=24,vocab=257,layers=1 --data text:docs.txt --steps 4 --batch 8",
    # Checkpoints and resuming
    "resume": f"train {TINY} {DATA} --steps 9 --batch 32 --optimizer adam --ckpt ck --save-every 4"
              f" ; train {TINY} {DATA} --steps 20 --batch 32 --optimizer adam --ckpt ck --resume",
    "resume with 2 workers": "train lenet5 --steps 5 --lanes 4 --ckpt ck --optimizer lars"
                             " ; train lenet5 --steps 9 --lanes 4 --ckpt ck --resume"
                             " --optimizer lars -n 2",
    "resume, dynamic scale": "train mlp --steps 5 --amp O2 --loss-scale dynamic --ckpt ck --keep 2"
                             " --save-every 2 ; train mlp --steps 9 --amp O2 --loss-scale dynamic"
                             " --ckpt ck --resume",
    "resume, tail keep":
        f"train {TINY} {DATA} --steps 5 --batch 32 --tail keep --ckpt ck ; train {TINY}"
                         f" {DATA} --epochs 3 --batch 32 --tail keep --ckpt ck --resume -n 2",
    "load": f"train {RESNET} --steps 2 --batch 16 --save w.safetensors"
            f" ; train {RESNET} --steps 2 --batch 16 --load w.safetensors --seed 5"
            f" ; eval {RESNET} --load w.safetensors --data synthetic:size=40 --batch 16",
    # Evaluation
    "evaluation, arrays":
        f"train {TINY} {DATA} --epochs 3 --batch 32 --optimizer adam {EVAL} epoch",
    "evaluation, 2 workers": f"train {TINY} {DATA} --steps 24 --batch 32 --lanes 4 {EVAL} 5 -n 2",
    "evaluation, batch norm":
        f"train {RESNET} --steps 4 --batch 16 --lanes 4 --eval-every 2 --eval-data"
                              " synthetic:size=41",
    "early stop": f"train {TINY} {DATA} --steps 400 --batch 32 --lanes 4 --optimizer adam --lr 0.01"
                  f" --early-stop 3 {EVAL} 6",
    "best, 2 workers": f"train {TINY} {DATA} --steps 40 --batch 32 --lanes 4 --lr 0.05 --best top1"
                       f" {EVAL} 6 --ckpt ck --save-every 5 --keep 2 -n 2",
}

# Networks that are divided in a step, and what is asked about each: {all} stands for all words,
# {net} for the network alone.
HEADS = "gpt2-tiny:seq=16,vocab=96,heads=4"
PIPE = f"{HEADS},layers=4 --batch 8 --lanes 4"
MEGATRON = "--mesh model=2 --strategy megatron"
SCHEDULES = ["1f1b --stages 4", "gpipe --stages 4", "zero-bubble --stages 4",
             "interleaved --stages 4", "interleaved --chunks 3 --stages 6"]
SMALLER = "--data synthetic:size=12 --tail keep"
FIT = "gpt2-tiny:seq=64,vocab=96,hidden=32,heads=4,inner=64 --batch 64 --recompute fit"
DIVIDED = {
    "lanes": "lenet5 --batch 16 --lanes 4",
    "mesh, mlp": "mlp:hidden=50 --batch 8 --lanes 2 --mesh model=3 --strategy channels",
    "mesh, resnet18": f"{RESNET} --batch 8 --lanes 2 --mesh model=2 --strategy channels",
    "mesh, height": "lenet5 --batch 8 --lanes 2 --mesh model=2 --strategy height.txt",
    "mesh, gpt2": f"{HEADS} --batch 8 --lanes 2 {MEGATRON}",
    "mesh, one lane": f"{HEADS} --batch 4 --lanes 1 {MEGATRON} --optimizer adamw --clip-norm 1",
    "mesh, sequences": f"{HEADS} --batch 8 --lanes 2 {MEGATRON}-sp",
    "mesh, 4 seats, bert": "bert-tiny:seq=20,vocab=103,heads=4,predictions=3 --batch 8 --lanes 3"
                           " --mesh model=4 --strategy megatron --amp O2 --optimizer lamb",
    "mesh, 2 x 2": f"{HEADS} --batch 8 --lanes 2 --mesh model=2,rows=2 --strategy megatron"
                   " --unset batch",
    "mesh, unset whole": f"{HEADS} --batch 8 --lanes 2 {MEGATRON} --unset whole",
    "mesh, tuples": "tuples.tri --batch 8 --lanes 2",
    "mesh, recomputation": f"{HEADS} --batch 8 --lanes 2 {MEGATRON} --recompute *.h.0",
    **{f"stages, {words}": f"{PIPE} --pipeline {words}" for words in SCHEDULES},
    "stages, resnet18": f"{RESNET} --batch 8 --lanes 4 --stages 2 --steal never",
    **{f"ZeRO {k}": f"{PIPE} --zero {k} --amp O2 --optimizer adam" for k in range(4)},
    "ZeRO 3, mesh": f"{HEADS} --batch 8 --lanes 2 {MEGATRON} --zero 3 --amp O2",
    "mesh, stages": f"{PIPE} {MEGATRON} --stages 2",
    "mesh, stages, ZeRO 3": f"{PIPE} {MEGATRON} --stages 2 --pipeline zero-bubble --zero 3"
                            " --amp O2 --recompute *.h.1 --optimizer adamw",
}
TUPLES = """graph {batch=4, mesh="4"}
%0 = input() {name="x", type=f32, shape=[4,8]} : f32[4,8] @ "x"
%1 = param() {name="w", shape=[8,12], init="normal(0,0.02)"} : f32[8,12] @ "w"
%2 = matmul(%0, %1) : f32[4,12] @ "product"
%3 = relu(%2) : f32[4,12] @ "relu"
%4 = mean(%3) {axes=[0,1]} : f32[] @ "mean"
shard "product" "(1,4),(4,1)"
loss "loss" %4
"""
ASKED = {
    "alone": "train {all} --steps 3 --threads 3",
    "2 workers": "train {all} --steps 3 -n 2",
    "3 workers": "train {all} --steps 3 -n 3",
    "memory": "memory {all} ; memory {all} -n 2",
    "explained": "explain {all} ; explain {all} --json",
    "plan": "train {all} --steps 2 --save-plan a.plan"
            " ; train {all} --steps 2 --plan a.plan --save-plan b.plan ; plan show a.plan"
            " ; plan diff a.plan b.plan ; compare {net} --plan a.plan --plan b.plan",
}
ROWS |= {
    **{f"{name}: {what}": commands.format(all=words, net=words.split()[0])
       for name, words in DIVIDED.items() for what, commands in ASKED.items()},
    **{f"stages, {words}, no stealing": f"train {PIPE} --steps 3 --pipeline {words} --steal never"
                                        " -n 2" for words in SCHEDULES},
    "buckets, 2 workers": "train lenet5 --batch 16 --lanes 4 --steps 4 --bucket 20K -n 2",
    "mesh, smaller steps": f"train {HEADS} --batch 8 --lanes 2 {MEGATRON} --steps 4 {SMALLER} -n 2",
    "stages, smaller steps": f"train {PIPE} --stages 2 --steps 4 {SMALLER} -n 2",
    "mesh, audit": f"train {HEADS} --batch 8 --lanes 2 {MEGATRON} --steps 3 -n 3 --audit 1",
    "mesh, resume": f"train {HEADS} --batch 8 --lanes 2 --steps 2 --ckpt ck ; train {HEADS}"
                    f" --batch 8 --lanes 2 --steps 4 {MEGATRON} --ckpt ck --resume -n 2",
    "mesh, evaluation":
        f"train {RESNET} --batch 8 --lanes 2 --steps 2 --mesh model=2 --strategy channels"
        " --eval-every 1 --eval-data synthetic:size=21 --save w.safetensors ; eval"
        f" {RESNET} --load w.safetensors --data synthetic:size=21 --batch 8",
    "recomputation that fits": f"memory {FIT} --lanes 1 --threads 1 --memory-limit 76M"
        f" ; train {FIT} --lanes 1 --threads 1 --memory-limit 76M --steps 2 --save-plan a.plan",
    "recomputation that fits, mesh": f"train {FIT} --lanes 4 --threads 1 --memory-limit 68M"
        f" --steps 2 {MEGATRON} --save-plan a.plan",
    "recomputation that fits, 2 workers": f"train {FIT} --lanes 4 --memory-limit 134M --steps 2"
        " -n 2 --save-plan a.plan",
    "checkpoints": f"train {TINY} {DATA} --steps 5 --batch 32 --save-every 2 --ckpt a --best top1"
        f" {EVAL} 2 --optimizer adam --schedule cosine:end=0.001,warmup=2 --amp O2 --loss-scale"
        " dynamic --sampler stratified --subset 0:90 ; ckpt ls a ; ckpt show a ; ckpt verify a"
        " ; ckpt diff a a ; compare a a",
    "plans": f"train {PIPE} --steps 1 --save-plan a.plan ; train {PIPE} --steps 1 {MEGATRON}"
             " --save-plan b.plan ; plan diff a.plan b.plan",
    "data": "data idx:idx --check ; data npy:image.npy;label.npy ; models",
    "factors": "explain --factors",
}

# Mistakes: the words of a list follow those of its key. They share a folder, in which the commands
# of MADE have run. wrong_words makes more of them from --help all.
MADE = (f"train {TINY} {DATA} --steps 2 --batch 8 --lanes 2 --save w.safetensors --ckpt ck"
        f" --save-plan a.plan ; train {HEADS} --batch 8 --lanes 2 --steps 1 {MEGATRON} --save-plan"
        f" mesh.plan ; dump {TINY} > net.tri ; sed 1q net.tri > cut.safetensors")
MISTAKES = {
    "": ["", "tarin mlp", "zeppelin", "help nothing", "train", "train lenet", "train transformer",
         "train linear mlp", "train mlp:clases=3", "train mlp:hidden=0", "train mlp:hidden",
         "train resnet18:form=tiny", "train nowhere.tri", "train nowhere.so", "train net.c",
         "models mlp", "data", "data idx", "data idx:nowhere", "data sifar:x", "eval linear",
         "run -n 2", "run -n 2 -- ./nowhere", "explain --factors mlp", "dump linear --after phasse",
         "eval linear --load w.safetensors", f"eval {TINY} --load w.safetensors",
         f"eval {TINY} {DATA} --load cut.safetensors", f"eval {TINY} {DATA} --load nowhere",
         "predict mlp --load w.safetensors", "compare mlp --plan a.plan", "compare ck nowhere",
         f"compare {HEADS} --plan a.plan --plan mesh.plan", "ckpt", "ckpt shwo ck", "ckpt show",
         "ckpt show nowhere", "ckpt diff ck", "ckpt verify idx", "plan", "plan sohw a.plan",
         "plan show nowhere", "plan diff a.plan", "plan diff a.plan nowhere", "ctl nowhere stop",
         "ctl nowhere sotp", "ctl nowhere scale none", "top nowhere", "pack images:nowhere -o x",
         "bench mlp --largest --memory-limit 1M", "explain mlp --lanes 1", "explain mlp --measure",
         "explain mlp --lanes 2 --devices 3 --mesh model=2 --unset batch"],
    "train linear --steps 1": [
        "--epochs 1", "--batch 0", "--batch 3.5", "--batch 99999999999999999999", "--lanes 65",
        "--lr -1", "--lr 0,1", "--lr nan", "--gpus 3", "--wd 0.1", "--beta1 0.5", "--eps 0",
        "--optimizer adam --beta2 1", "--optimizer Adam", "--loss-scale 10", "--schedule step",
        "--schedule cosine:ned=1", "--schedule step:every=0,factor=1", "--schedule poly:power=x",
        "--data feed", "--data idx:idx", "--data ./idx", "--data npy:nowhere.npy", "--load net.tri",
        "--save nowhere/w", "--ckpt net.tri", "--ckpt net.tri -n 2", "--out net.tri", "--resume",
        "--changed", "--keep 2", "--save-every 1", "--early-stop 2", "--best top1",
        "-n 2 --threads 1 --threads-per-worker 2", "-n 0", "-n 1000000", "--spares 1", "--audit 2",
        "--most 2", "--grace 1", "--memory-limit 1M", "--recompute fit", "--bucket 0",
        "--lr 1e30 --steps 9", "--lr 1e30 --steps 9 -n 2", "--amp-type f16 --amp O2"],
    f"train {TINY} {DATA} --batch 8 --steps 1": [
        "--batch 101", "--subset 5:5", "--subset 90:110", "--share 3/3", "--tokenizer gpt2:none",
        "--sampler weighted:classes=1/2", "--sampler stratified --shuffle off",
        "--eval-every 2", "--eval-data idx:nowhere", "--passes -phases", "--passes -cs",
        "--plan mesh.plan", "--plan a.plan --lanes 4", "--plan a.plan --amp O1",
        "--resume --ckpt ck --seed 3", "--resume --ckpt ck --batch 16 --steps 9",
        "--resume --ckpt ck --optimizer adam --steps 9"],
    f"train {HEADS} --batch 8 --lanes 2 --steps 1": [
        "--mesh model=0", "--mesh model", "--mesh model=2,model=2", "--mesh 3000", "--mesh model=2",
        f"{MEGATRON} --unset bacth", "--mesh modle=2 --strategy megatron", "--strategy megatron",
        "--mesh model=2 --strategy megatorn", "--mesh model=5 --strategy channels",
        f"{MEGATRON} --parallel data", "--parallel semi", "--mesh model=2 --strategy net.tri",
        "--mesh model=2,rows=2 --strategy megatron", "--stages 0", "--stages 99", "--steal never",
        "--chunks 3", "--pipeline gpipe", "--stages 3 --pipeline zero-bubble",
        "--zero 0 --bucket 1", "--stages 3 --pipeline interleaved", "--stages 2 --chunks 3",
        "--stages 2 --chunks 0", "--stages 2 --spares 1", "--recompute nothing",
        "--plan mesh.plan --batch 16", "--plan mesh.plan --mesh model=4", "--plan a.plan",
        "--plan mesh.plan --strategy megatron-sp", "--plan net.tri", "--plan nowhere"],
}
# More mistakes: what sed makes wrong in a file, and what reads it then; \\x20 is a blank.
EDITS = {
    "mesh.plan > bad ; plan show bad": [
        "s/^batch.8/batch\\x20eight/", "s/^batch/bacth/", "s/^lanes/batch/",
        "s/^amp.O0/amp\\x20O4/", "s/^.placement/[plcement/", "s/^threads/lanes/",
        "s/^hash.*/hash\\x2012/", "s/^amp-type.*/amp-type\\x20f32/",
        "s/^mesh.*/mesh\\x20model=0/", "s/^lanes.*/lanes\\x2099999999999999/", "s/.out=model//",
        "s/^workers.*/workers\\x201000000/", "s/^maybe.strategy/maybe\\x20batch/", "d",
        "s/^conv.auto/conv\\x20atuo/", "s/^math.*/math/", "s/^unset.*/unset\\x20x/",
        "s/c_fc.out=/c_fc\\x20uot=/", "s/c_fc.out=model/c_fc\\x20out=modle/", "s/gpt2-tiny/gpt3/"],
    "net.tri > bad.tri ; train bad.tri --steps 1": [
        "s/matmul(/matmull(/", "s/f32/f23/", "$d", "s/%1.=/%1/", "s/graph/grahp/", "s/,6,6/,6,7/"],
}


def array(path, kind, shape, values):
    """A file as numpy.save writes it."""
    head = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}"
    head += " " * (-(len(head) + 11) % 64) + "\n"
    with open(path, "wb") as f:
        f.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode())
        f.write(struct.pack(f"<{len(values)}{'f' if kind == '<f4' else 'q'}", *values))


def write_data():
    values = random.Random(1)
    array("image.npy", "<f4", (70, 1, 6, 6), [values.gauss(0, 1) for _ in range(70 * 36)])
    array("label.npy", "<i8", (70,), [values.randrange(10) for _ in range(70)])
    os.mkdir("idx")
    with open("idx/train-images-idx3-ubyte", "wb") as f:
        f.write(struct.pack(">HBBIII", 0, 8, 3, 100, 6, 6) + values.randbytes(100 * 36))
    with open("idx/train-labels-idx1-ubyte", "wb") as f:
        labels = bytes(values.randrange(10) for _ in range(100))
        f.write(struct.pack(">HBBI", 0, 8, 1, 100) + labels)
    words = [chr(97 + i) * 2 for i in range(26)]
    with open("vocab.txt", "w") as f:
        f.write("\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *words]) + "\n")
    with open("docs.txt", "w") as f:
        for _ in range(40):
            for _ in range(4):
                f.write(" ".join(values.choices(words, k=values.randrange(3, 14))) + ".\n")
            f.write("\n")
    with open("height.txt", "w") as f:
        f.write("maybe * height=model\n")
    with open("tuples.tri", "w") as f:
        f.write(TUPLES)


def without_measures(text):
    """What differs from run to run: times, free memory, how many lanes came to be audited."""
    text = re.sub(r",?[ \"](seconds|samples_per_second)\"?[=:][^ ,}\n]*", "", text)
    text = re.sub(r" of [0-9,]+( MiB, the machine's available memory)", r"\1", text)
    return re.sub(r"audit: [0-9]+ (lane|leg)s? (was|were)", r"audit: \1s were", text)


def digest_of(path):
    """A digest of names, shapes and values of a .safetensors file; not of its metadata."""
    with open(path, "rb") as file:
        length, = struct.unpack("<Q", file.read(8))
        head = json.loads(file.read(length))
        head.pop("__metadata__", None)
        return hashlib.sha256(json.dumps(head).encode() + file.read()).hexdigest()


def files_of():
    """What the commands leave: results of evaluations and digests of weights. Metrics of steps are
    left out: how many steps share a line depends on time."""
    for path in sorted(glob.glob("**", recursive=True)):
        if path.endswith("metrics.jsonl"):
            lines = [line for line in open(path) if '"eval"' in line]
            yield f"{path}: {without_measures(''.join(lines))}"
        elif path.endswith((".tri", ".plan", "/plan.txt", "/state.json")):
            yield f"{path}: {open(path).read()}"
        elif path.endswith(".safetensors"):
            yield f"{path}: {digest_of(path)}"


def run(program, command):
    """Runs a command in this folder: its exit code, and what it prints."""
    command, _, target = command.partition(" > ")
    words = command.split()
    if words[:1] == ["train"]:
        words[1:1] = ["--quiet"]
    if words[:1] != ["sed"]:
        words[:0] = [program]
    try:
        run = subprocess.run(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, text=True, timeout=LIMIT)
    except subprocess.TimeoutExpired:
        return "none", "", f"takes more than {LIMIT} s"
    if target:
        open(target, "w").write(run.stdout)
    return run.returncode, without_measures(run.stdout), without_measures(run.stderr)


def help_of(program, command="", topic=""):
    return run(program, f"{command} --help {topic}".strip())[1]


def commands_of(program):
    return re.findall(r"^  ([a-z]+(?: [a-z]+)?)  ", help_of(program), re.M)


def texts(program):
    """Rows of what the program lists: the help of each command, the memory of each network of the
    zoo, the networks of DIVIDED after each pass."""
    yield "help", "help ; --help ; version"
    for command in commands_of(program):
        yield f"help, {command}", f"{command} --help ; help {command} ; {command} --help all"
    for net in re.findall(r"^([a-z0-9-]+) ", run(program, "models")[1], re.M):
        yield f"{net}: memory", (f"memory {net} ; memory {net} --lanes 1"
                                 f" ; memory {net} --batch 2 -n 2"
                                 f" ; memory {net} --batch 2 --lanes 1 -n 2")
    _, _, passes = help_of(program, "dump").partition("\npasses, ")
    for name in re.findall(r"^  ([a-z-]+) +\*? ", passes, re.M):
        for divided, words in DIVIDED.items():
            yield f"{divided}: after {name}", f"dump {words} --after {name}"


def wrong_words(program):
    """Mistakes in each option of each command: a wrong word, and those that are nearly right; of
    train's options also no word, a misspelled name, and commands that may lack the option."""
    for command in commands_of(program):
        text = help_of(program, command, "all")
        for option in re.split(r"^(?=  --?[a-z])", text, flags=re.M)[1:]:
            flag, value = re.match(r"  (\S+)(?: ([^ \n]+))?", option).groups()
            begin = f"{command} {TINY}" + " --after fuse" * (command == "dump")
            if value:
                yield f"{begin} {flag} wrong{flag}"
                yield from (f"{begin} {flag} {word}{word[-1]}"
                            for word in re.findall(r"^ {23}([\w-]+): ", option, re.M))
            if command == "train":
                yield from (f"train linear {flag}", f"train linear {flag}x 1", f"ps {flag} 1")
                yield f"eval linear {flag} 1"


def mistakes(program):
    for begin, ends in MISTAKES.items():
        yield from (f"{begin} {end}".strip() for end in ends)
    for end, scripts in EDITS.items():
        yield from (f"sed {script} {end}" for script in scripts)
    yield from wrong_words(program)


def result_of(program, commands):
    """What the commands give in a new folder; the second value says why they do not run."""
    with tempfile.TemporaryDirectory() as work:
        os.chdir(work)
        write_data()
        said = []
        for command in commands.split(" ; "):
            code, out, err = run(program, command)
            if code and not out.startswith("does not fit: "):
                return None, f"exit {code}: {command}\n{err}"
            said.append(out + err)
        return "\n".join([*said, *files_of()]), None


def result_of_mistake(program, commands):
    """The exit code, and what the last command prints if it is refused: a wrong word may be a good
    name of a file."""
    for command in commands.split(" ; "):
        code, out, err = run(program, command)
    return f"exit {code}\n{out}{err}" if code else "exit 0", None


def compare(name, old, new):
    """Prints how the results of a row differ; whether they do not."""
    (old, old_fault), (new, new_fault) = old, new
    if old_fault or new_fault:
        print(f"{name}: does not run", f"old: {old_fault}", f"new: {new_fault}", sep="\n    ")
        return False
    if old != new:
        pairs = itertools.zip_longest(old.split("\n"), new.split("\n"), fillvalue="")
        lines = [pair for pair in pairs if pair[0] != pair[1]]
        print(f"{name}: differs", *(f"old {a}\n    new {b}" for a, b in lines[:4]), sep="\n    ")
    return old == new


def compare_mistakes(programs, rows):
    """They share a folder per program."""
    with tempfile.TemporaryDirectory() as old, tempfile.TemporaryDirectory() as new:
        for program, folder in zip(programs, (old, new)):
            os.chdir(folder)
            write_data()
            for command in MADE.split(" ; "):
                if run(program, command)[0]:
                    sys.exit(f"{program} {command}: does not run")
        for commands in rows:
            results = []
            for program, folder in zip(programs, (old, new)):
                os.chdir(folder)
                results.append(result_of_mistake(program, commands))
            yield compare(f"mistake: {commands}", *results)


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    sys.stdout.reconfigure(line_buffering=True)
    programs = [os.path.abspath(path) for path in sys.argv[1:3]]
    wanted = sys.argv[3:]

    def wants(name):
        return not wanted or any(word in name for word in wanted)

    began = time.monotonic()
    rows = ROWS | dict(texts(programs[0]))
    refused = [row for row in dict.fromkeys(mistakes(programs[0])) if wants(f"mistake: {row}")]
    same = [compare(name, *(result_of(program, commands) for program in programs))
            for name, commands in rows.items() if wants(name)]
    same += compare_mistakes(programs, refused)
    print(f"{sum(same)} the same, {len(same) - sum(same)} different,"
          f" {time.monotonic() - began:.0f} s")
    sys.exit(not all(same))


main()
