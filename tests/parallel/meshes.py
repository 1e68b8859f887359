#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Whole runs over a mesh: near the same run without one, since only rounding differs; the same bits
for any number of threads and workers; weights that fit any mesh.

Usage: meshes.py PROGRAM [PART OF A CASE'S NAME ...]"""
import array
import json
import math
import re
import struct
import sys

from runs import SLOW, done, need, run_cases, trireme, write_documents

# A power of two as the rate, large, so that a weight's own rounding does not hide its gradient; and
# a rate that is 0 in f32.
RATE = 2.0 ** 20
NOTHING = "1e-300"
SMALL = "--batch 8 --lanes 2 --quiet"
NETS = {"mlp": f"mlp:hidden=50 {SMALL}",
        "gpt2": f"gpt2-tiny:seq=20,vocab=103,heads=4 {SMALL}",
        "bert": f"bert-tiny:seq=20,vocab=103,heads=4,predictions=3 {SMALL}",
        "resnet18": "resnet18:form=small,width=8 --batch 4 --lanes 2 --quiet --conv direct"}
TRANSFORMER = [(seats, strategy) for seats in (2, 3, 4) for strategy in ("megatron", "megatron-sp")]
CHANNELS = [(seats, "channels") for seats in (2, 3, 4)]
HEIGHT = "height.txt"  # a file that mesh() writes
PLANS = {"mlp": CHANNELS, "gpt2": TRANSFORMER, "bert": TRANSFORMER,
         "resnet18": [*CHANNELS, (2, HEIGHT), (3, HEIGHT)]}
GRADIENT = 5e-6
LOSS = 1e-4


def mesh(seats, strategy):
    if strategy == HEIGHT:
        with open(HEIGHT, "w") as f:
            f.write("maybe * height=model\n")
    return ["--mesh", f"model={seats}", "--strategy", strategy]


def plans(net):
    """All of them take long: in short, every number of seats and every strategy once."""
    return PLANS[net] if SLOW else PLANS[net][:1] + PLANS[net][-1:] + PLANS[net][2:3]


def train(words, *more):
    return done(trireme("train", *words.split(), *more))


def hashes(line):
    return re.search(r"weights=\S+ state=\S+", line).group()


def loss(line):
    return float(re.search(r"loss=(\S+)", line).group(1))


def read(path):
    """The f32 tensors of a safetensors file."""
    data = open(path, "rb").read()
    size = struct.unpack("<Q", data[:8])[0]
    found = {}
    for name, entry in json.loads(data[8:8 + size]).items():
        if name != "__metadata__" and entry["dtype"] == "F32":
            begin, end = (8 + size + at for at in entry["data_offsets"])
            found[name] = array.array("f", data[begin:end])
    return found


def gradient(words, *more):
    """Of the first step: what plain sgd subtracts."""
    step = ["--steps", "1", "--optimizer", "sgd", *more]
    train(words, *step, "--lr", NOTHING, "--save", "before.safetensors")
    train(words, *step, "--lr", str(RATE), "--save", "after.safetensors")
    before, after = read("before.safetensors"), read("after.safetensors")
    # statistics of batch norm are no parameters
    return {name: [(x - y) / RATE for x, y in zip(values, after[name])]
            for name, values in before.items() if "running_" not in name}


def distance(a, b):
    """Relative L2 over all parameters."""
    need(a.keys() == b.keys(), f"{a.keys()} {b.keys()}")
    wrong = sum((x - y) ** 2 for name in a for x, y in zip(a[name], b[name]))
    return math.sqrt(wrong / sum(x * x for values in a.values() for x in values))


def gradients(net):
    words, worst = NETS[net], 0
    plain, limit = gradient(words), GRADIENT
    if net == "resnet18":
        limit = 2 * distance(gradient(words, "--device", "ref"), plain)
    for plan in plans(net):
        wrong = distance(plain, gradient(words, *mesh(*plan)))
        need(0 < wrong <= limit, f"{plan}: {wrong:.3g}, limit {limit:.3g} (0: it is not split)")
        worst = max(worst, wrong)
    return f"{worst:.2g}, limit {limit:.2g}"


def losses(net):
    words, worst = f"{NETS[net]} --steps 20 --lr 0.01", 0
    plain = loss(train(words))
    for plan in plans(net):
        wrong = abs(loss(train(words, *mesh(*plan))) / plain - 1)
        need(wrong <= LOSS, f"{plan}: {wrong:.3g}")
        worst = max(worst, wrong)
    return f"{worst:.2g}"


def files(net):
    """Weights of a run over a mesh, loaded without one and under the others."""
    words, still = NETS[net], ["--steps", "1", "--optimizer", "sgd", "--lr", NOTHING]
    for plan in plans(net):
        saved = train(words, *mesh(*plan), "--steps", "2", "--save", "w.safetensors")
        weights = re.search(r"weights=\S+", saved).group()
        for other in [[], *(mesh(*p) for p in plans(net) if p != plan)]:
            if net == "resnet18": # a step changes its statistics
                again = trireme("eval", words.split()[0], "--load", "w.safetensors", *other,
                                "--data", "synthetic:size=8")
                need(again.returncode == 0, f"{plan}, {other}: {again.err}")
                continue
            again = train(words, *still, *other, "--load", "w.safetensors")
            need(weights in again, f"saved by {plan}, {other}: {again}\n{saved}")


def same(words, *plan):
    """One grain has one result. A mesh is not ignored: without it there is another."""
    words += " --steps 4"
    first = train(words, *mesh(*plan))
    for more in (["--threads", "2"], ["--threads", "3"], ["-n", "1"], ["-n", "2"]):
        again = train(words, *mesh(*plan), *more)
        need(again == first, f"{more}:\n{again}\nalone:\n{first}")
    need(hashes(train(words)) != hashes(first), "the mesh is ignored")
    return first


def grains():
    for net in ("mlp", "gpt2", "bert", "resnet18"):
        for plan in plans(net)[:None if SLOW else 1]:
            same(NETS[net], *plan)


def tails():
    """A smaller last batch, for which lanes have fewer samples."""
    for net, size in (("mlp", 19), ("gpt2", 19), ("resnet18", 11), ("resnet18", 10)):
        words = f"{NETS[net]} --data synthetic:size={size} --tail keep"
        first = same(words, *plans(net)[0])
        wrong = abs(loss(first) / loss(train(words + " --steps 4")) - 1)
        need(wrong <= LOSS, f"{net}: {wrong}")


def lengths():
    """Samples of several lengths."""
    write_documents()
    words = ("bert-tiny:seq=32/16/8,vocab=32,layers=1,heads=4 --batch 8 --lanes 2 --quiet --data"
             " text:docs.txt --tokenizer bert:vocab.txt --tail keep")
    for plan in TRANSFORMER if SLOW else TRANSFORMER[:1] + TRANSFORMER[-1:]:
        first = same(words, *plan)
        wrong = abs(loss(first) / loss(train(words + " --steps 4")) - 1)
        need(wrong <= LOSS, f"{plan}: {wrong}")


def axes():
    """Two axes: samples, and what the strategies split. Also lanes that are whole batches."""
    firsts = {"gpt2": "transformer.h.*.attn.c_attn batch=data", "bert": "bert.*.query batch=data",
              "resnet18": "conv1.conv2d batch=data"}
    for net, first in firsts.items():
        with open("samples.txt", "w") as f:
            f.write(first + "\n")
        words = f"{NETS[net]} --steps 3"
        for lanes in ("2", "1"):
            plain = loss(train(words, "--lanes", lanes))
            for sizes in ("data=2,model=2", "model=3,data=2")[:2 if SLOW else 1]:
                split = train(words, "--lanes", lanes, "--mesh", sizes, "--strategy",
                              f"samples.txt,{PLANS[net][0][1]}")
                need(abs(loss(split) / plain - 1) <= LOSS, f"{net} {lanes} {sizes}: {split}")


def figures(text):
    return [float(x) for x in re.findall(r"=(\S+)", text)]


def evaluations():
    """`trireme eval`, and evaluations during a run, which change no bit of it."""
    for net in NETS:
        words, plan = NETS[net], mesh(*plans(net)[0])
        train(words, "--steps", "3", "--save", "w.safetensors")
        ask = ["eval", words.split()[0], "--batch", "8", "--data", "synthetic:size=21", "--load",
               "w.safetensors"]
        plain, split = trireme(*ask), trireme(*ask, *plan)
        need(plain.returncode == split.returncode == 0, plain.err + split.err)
        need(all(math.isclose(a, b, rel_tol=1e-5, abs_tol=1e-6)
                 for a, b in zip(figures(plain.out), figures(split.out), strict=True)),
             f"{net}: {split.out}without a mesh: {plain.out}")
        judged = train(words, *plan, "--steps", "4", "--eval-data", "synthetic:size=21",
                       "--eval-every", "2")
        need(hashes(judged) == hashes(train(words, *plan, "--steps", "4")), f"{net}: {judged}")


def half():
    """Mixed precision."""
    worst = 0
    for net in NETS:
        for level in ("O1", "O2"):
            words = f"{NETS[net]} --amp {level} --steps 4"
            first = train(words, *mesh(*plans(net)[0]))
            wrong = abs(loss(first) / loss(train(words)) - 1)
            need(wrong <= 2e-2, f"{net} {level}: {wrong}")
            worst = max(worst, wrong)
    return f"{worst:.2g}"


def recomputed():
    """Recomputation changes no bit."""
    for net, scope in (("gpt2", "*.h.0"), ("bert", "*.layer.1"), ("resnet18", "layer1*")):
        words = f"{NETS[net]} --steps 3"
        for plan in plans(net):
            first = train(words, *mesh(*plan))
            again = train(words, *mesh(*plan), "--recompute", scope)
            need(first == again, f"{net} {plan}:\n{again}\nwithout recomputation:\n{first}")


CASES = {f"gradients: {net}": (lambda net=net: gradients(net)) for net in NETS}
CASES.update({f"losses: {net}": (lambda net=net: losses(net)) for net in NETS if net != "resnet18"})
CASES.update({f"files: {net}": (lambda net=net: files(net)) for net in NETS})
CASES.update({"grains": grains, "tails": tails, "lengths": lengths, "axes": axes,
              "evaluations": evaluations, "mixed precision": half, "recomputation": recomputed})

run_cases(CASES, sys.argv[2:])
