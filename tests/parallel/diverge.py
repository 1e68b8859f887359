#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs whose loss becomes NaN or infinite: with --on-nan stop the step has no effect, whichever
worker computes it.

Usage: diverge.py TRIREME [CASE...]"""
import json
import os
import re
import sys
import tempfile

from runs import SLOW, array, done, need, run_cases, trireme

# Several lanes, one lane, state that is updated before the loss is known, a loss with a term of
# parameters only.
RUNS = {
    "mlp": "mlp --lanes 4 --lr 1e30",
    "one lane": "mlp --lanes 1 --lr 1e30",
    "lenet5": "lenet5 --batch 16 --lanes 2 --lr 1e30",
    "batch norm": "cnn --batch 8 --lanes 1 --lr 1e36",
    "penalty": "penalty.tri --lanes 4 --lr 1e20",
    "penalty, one lane": "penalty.tri --lanes 1 --lr 1e20",
    "adam": "mlp --lanes 3 --batch 30 --lr 1e38 --optimizer adam",
}
WAYS = ([], ["--threads", "1"], ["--threads", "3"], ["-n", "1"],
        ["-n", "2"]) if SLOW else ([], ["--threads", "3"], ["-n", "2"])

PENALTY = """graph {batch=8}
%x = input() {name="x", type=f32, shape=[8,3]}
%w = param() {name="w", shape=[2,3], init="normal(0,1)"}
%y = matmul(%x, %w) {trans_b=1}
%q = tanh(%y)
%l = mean(%q)
%ww = mul(%w, %w)
%www = mul(%ww, %ww)
%p = sum(%www)
%loss = add(%l, %p)
loss "loss" %loss
"""

LOG = """graph {batch=8}
%x = input() {name="x", type=f32, shape=[8,3]}
%w = param() {name="w", shape=[2,3], init="normal(0,1)"}
%y = matmul(%x, %w) {trans_b=1}
%e = exp(%y)
%n = neg(%e)
%g = log(%n) @ "head.log"
%loss = mean(%g)
loss "loss" %loss
"""

# A mask gives minus infinity to the softmax.
MASK = """graph {batch=8}
%x = input() {name="x", type=f32, shape=[8,3]}
%w = param() {name="w", shape=[4,3], init="normal(0,1)"}
%y = matmul(%x, %w) {trans_b=1}
%m = array() {data="0,1,1,0", type=f32, shape=[4]}
%g = log(%m)
%s = add(%y, %g)
%p = softmax(%s) {axis=1}
%pp = mul(%p, %p)
%loss = mean(%pp)
loss "loss" %loss
"""

# A parameter that the loss does not depend on.
ASIDE = """graph {batch=8}
%x = input() {name="x", type=f32, shape=[8,3]}
%w = param() {name="aside", shape=[2,3], init="constant(1,0)"}
%v = param() {name="v", shape=[2,3], init="constant(1,0)"}
%y = matmul(%x, %v) {trans_b=1}
%loss = mean(%y)
%one = constant() {value=1, type=f32}
%d = sub(%w, %one)
%g = log(%d)
assign %w %g
loss "loss" %loss
"""


def in_own_folder(case):
    def run():
        with tempfile.TemporaryDirectory(dir=".") as folder:
            os.chdir(folder)
            try:
                write_graphs()
                return case()
            finally:
                os.chdir("..")
    return run


def write_graphs():
    for name, text in (("penalty", PENALTY), ("log", LOG), ("mask", MASK), ("aside", ASIDE)):
        with open(name + ".tri", "w") as f:
            f.write(text)


def last_checkpoint(directory):
    steps = sorted(os.listdir(directory)) if os.path.isdir(directory) else []
    steps = [s for s in steps if s.startswith("step-")]
    if not steps:
        return None
    state = json.load(open(f"{directory}/{steps[-1]}/state.json"))
    return state["step"], state["weights"], state["state"]


def message(run):
    found = re.search(r"^trireme: (step (\d+): .*)$", run.err, re.M)
    need(found, f"exit {run.returncode}, no message of a step:\n{run.err[-800:]}")
    return found.group(1), int(found.group(2))


def stops(words):
    words = words.split() + ["--quiet", "--steps", "12"]
    told = set()
    for i, way in enumerate(WAYS):
        run = trireme("train", *words, *way, "--ckpt", f"stopped{i}")
        need(run.returncode == 1 and "done " not in run.out,
             f"{way}: exit {run.returncode}: {run.out}{run.err[-800:]}")
        text, step = message(run)
        need(step > 1 and "the loss is" in text, text)
        told.add(text)
        less = trireme("train", *words[:-1], str(step - 1), "--ckpt", f"less{i}")
        need(last_checkpoint(f"stopped{i}") == last_checkpoint(f"less{i}"),
             f"{way}: {last_checkpoint(f'stopped{i}')}, of one step less "
             f"{last_checkpoint(f'less{i}')}: {run.err[-500:]}")
        found = last_checkpoint(f"less{i}")
        need(found and found[1] in done(less), f"no checkpoint: {less.err[-500:]}")
    need(len(told) == 1, "\n".join(told))
    return f"step {step}"


def names_operator():
    for words in (["--lanes", "1"], ["--lanes", "4"], ["--lanes", "4", "-n", "2"]):
        run = trireme("train", "log.tri", "--quiet", "--steps", "3", *words)
        text, _ = message(run)
        need(re.search(r"step 1: lane 0: the loss is nan; the first nan is a result of .*head\.log",
                       text), text)
    return text


def names_input():
    values = [0.5] * 24
    values[5 * 3 + 1] = float("nan")
    array("x.npy", "<f4", (8, 3), values)
    for words in ([], ["--lanes", "4"], ["--lanes", "4", "-n", "2"]):
        run = trireme("train", "mask.tri", "--data", "npy:x.npy", "--shuffle", "off", "--quiet",
                      "--steps", "3", *words)
        text, _ = message(run)
        need("the first nan is in input x, row 5 of the batch" in text, text)


def warns():
    for way in ([], ["-n", "2"]):
        run = trireme("train", "mlp", "--lr", "1e30", "--steps", "8", "--quiet", "--on-nan", "warn",
                      *way)
        need(run.returncode == 0 and "loss=nan" in done(run),
             f"exit {run.returncode}: {run.out}{run.err}")
        lines = re.findall(r".*the run continues \(--on-nan warn\)", run.err)
        need(len(lines) == 1, run.err)


def scales():
    """Steps that a loss scale skips are no error; 100 in a row are."""
    for way in (["--lanes", "1"], ["--lanes", "4"], ["--lanes", "4", "-n", "2"]):
        words = ["log.tri", "--quiet", "--loss-scale", "1", *way]
        run = trireme("train", *words, "--steps", "99")
        need(run.returncode == 0, f"{way}: exit {run.returncode}: {run.err}")
        run = trireme("train", *words, "--steps", "200", "--ckpt", "scales" + "".join(way))
        text, step = message(run)
        need(run.returncode == 1 and step == 100 and "100 consecutive steps" in text,
             f"{way}: {run.err}")
        need(last_checkpoint("scales" + "".join(way))[0] == 100, "no checkpoint of step 100")
        run = trireme("train", *words, "--steps", "110", "--on-nan", "warn")
        need(run.returncode == 0 and run.err.count("the run continues") == 1, f"{way}: {run.err}")


def masks():
    for way in ([], ["--lanes", "4", "-n", "2"]):
        done(trireme("train", "mask.tri", "--quiet", "--steps", "5", *way))


def checkpoints():
    for i, way in enumerate(([], ["-n", "2"])):
        run = trireme("train", "aside.tri", "--quiet", "--steps", "1000000", "--save-every", "1",
                      "--ckpt", f"aside{i}", *way)
        need(run.returncode == 1 and "parameter aside is infinite at element 0" in run.err,
             f"exit {run.returncode}: {run.err}")
        need(not last_checkpoint(f"aside{i}"), "a checkpoint was written")
        run = trireme("train", "aside.tri", "--quiet", "--steps", "9", "--save-every", "1",
                      "--ckpt", f"warned{i}",
                      "--on-nan", "warn", *way)
        need(run.returncode == 1 and run.err.count("parameter aside is") >= 2,
             f"exit {run.returncode}: {run.err}")
        need(not last_checkpoint(f"warned{i}"), "a checkpoint was written")


def last_step():
    """The loss is finite, but the update is not, and no step follows: weight decay of 100 at a rate
    of 3e38."""
    words = "mlp --quiet --steps 1 --optimizer adamw --lr 3e38 --weight-decay 100".split()
    for way in ([], ["--lanes", "4", "-n", "2"]):
        run = trireme("train", *words, *way, "--save", "last.safetensors")
        need(run.returncode == 1 and "trireme: step 1, the last, made parameter " in run.err,
             f"{way}: exit {run.returncode}: {run.err}")
        need(not os.path.exists("last.safetensors"), "the weights were saved")
        run = trireme("train", *words, *way, "--on-nan", "warn")
        need(run.returncode == 0 and run.err.count("(--on-nan warn)") == 1,
             f"{way}: exit {run.returncode}: {run.err}")


def mistakes():
    run = trireme("train", "mlp", "--steps", "1", "--on-nan", "halt")
    need(run.returncode == 2 and "it can be stop or warn" in run.err,
         f"exit {run.returncode}: {run.err}")


CASES = {f"stops: {name}": lambda words=words: stops(words) for name, words in RUNS.items()}
CASES |= {
    "the operator is named": names_operator,
    "the input is named": names_input,
    "warn": warns,
    "loss scale": scales,
    "masks": masks,
    "checkpoints": checkpoints,
    "the last step": last_step,
    "mistakes": mistakes,
}

run_cases({name: in_own_folder(case) for name, case in CASES.items()}, sys.argv[2:])
