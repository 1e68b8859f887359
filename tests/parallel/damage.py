#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checkpoints that are damaged, renamed, without a checksum, or in the way; files that cannot be
written.

Usage: damage.py TRIREME CUT_WRITE [CASE...]"""
import errno
import json
import os
import random
import re
import resource
import shutil
import signal
import subprocess
import sys

from runs import PROGRAM, SLOW, done, end, flip, folders, fresh, need, run_cases, trireme

CUT_WRITE = os.path.abspath(sys.argv[2])


def damaged():
    """The newest complete checkpoint is taken, and the faults of newer ones are reported."""
    words = "lenet5 --quiet --steps 40".split()
    plain = done(trireme("train", *words))

    def cut(folder):
        os.truncate(f"ck/{folder}/model.safetensors", 1000)

    harms = {"bytes; state.json says": cut,
             "is not what was written": lambda folder: flip(f"ck/{folder}/optimizer.safetensors",
                                                            -5),
             "No such file": lambda folder: os.remove(f"ck/{folder}/optimizer.safetensors"),
             "state.json is damaged: line": lambda folder: os.truncate(f"ck/{folder}/state.json",
                                                                       100),
             "state.json: No such file": lambda folder: os.remove(f"ck/{folder}/state.json")}
    for text, harm in harms.items():
        fresh()
        trireme("train", *words, "--optimizer", "adam", "--ckpt", "ck", "--save-every", "10",
                "--steps", "30")
        harm(folders()[-1])
        verified = trireme("ckpt", "verify", "ck")
        need(verified.returncode == 1 and text in verified.out, f"{text}: {verified.out}")
        again = trireme("train", *words, "--optimizer", "adam", "--ckpt", "ck", "--resume")
        need(text in again.err and "resumes from ck/step-000000020" in again.err, again.err)
        need(done(again) == done(trireme("train", *words, "--optimizer", "adam")),
             f"{text}: another result")
    fresh()
    trireme("train", *words, "--ckpt", "ck", "--steps", "30")
    cut(folders()[0])
    none = trireme("train", *words, "--ckpt", "ck", "--resume")
    need(none.returncode == 1 and "it has no intact checkpoint" in none.err, none.err)
    need(plain, "")


def rejected(folder, older, plain, words, text):
    """A damaged checkpoint: every command that reads it says so; --resume and --load of the
    directory take the one before."""
    run = trireme("ckpt", "ls", "ck")
    need(run.returncode == 0 and re.search(f"damaged: .*({text})", run.out),
         f"ls: {run.out}{run.err}")
    for line in (["ckpt", "verify", "ck"], ["ckpt", "verify", folder], ["ckpt", "show", folder],
                 ["ckpt", "show", "ck"],
                 ["eval", "linear", "--load", folder, "--data", "synthetic:size=64"]):
        run = trireme(*line)
        need(run.returncode == 1 and re.search(text, run.out + run.err),
             f"{line}: exit {run.returncode}: {run.out}{run.err}")
    run = trireme("eval", "linear", "--load", "ck", "--data", "synthetic:size=64")
    need(run.returncode == 0 and f"takes the weights of {older}/" in run.err
         and re.search(text, run.err), run.err)
    run = trireme("train", *words, "--ckpt", "ck", "--resume")
    need(f"resumes from {older}," in run.err and re.search(text, run.err), run.err)
    need(done(run) == plain, "another result")


def flipped_bits():
    """state.json has its own checksum, and a folder's name gives the step."""
    words = "linear --optimizer momentum --quiet --steps 20".split()
    fresh("ck", "whole")
    plain = done(trireme("train", *words, "--ckpt", "ck", "--save-every", "10"))
    older, newest = (f"ck/{f}" for f in folders())
    shutil.copytree("ck", "whole")

    def again():
        fresh()
        shutil.copytree("whole", "ck")

    state = open(f"{newest}/state.json", "rb").read()
    bits = range(8 * len(state)) if SLOW else random.sample(range(8 * len(state)), 150)
    missed = []
    for bit in bits:
        flip(f"{newest}/state.json", bit // 8, 1 << bit % 8)
        if trireme("ckpt", "verify", newest).returncode != 1:
            missed.append(bit)
        flip(f"{newest}/state.json", bit // 8, 1 << bit % 8)
    need(not missed, f"{len(missed)} of {len(bits)} flipped bits pass: {missed[:20]}")
    need(trireme("ckpt", "verify", newest).returncode == 0, "they were flipped back")
    for _ in range(20 if SLOW else 3):
        again()
        bit = random.randrange(8 * len(state))
        flip(f"{newest}/state.json", bit // 8, 1 << bit % 8)
        rejected(newest, older, plain, words, "state.json")
    again()
    os.rename(newest, "ck/step-000000015")
    rejected("ck/step-000000015", older, plain, words, "is the checkpoint of step 20")
    os.rename(f"{newest}", "ck/kept")  # a name without a step
    need(trireme("ckpt", "verify", "ck/kept").returncode == 0, "its name says nothing")
    return f"{len(bits)} bits"


def without_checksum():
    """Checkpoints of format 1: read, and reported as unchecked; skipped if their tensors
    contradict them; resumed with a warning if they are of another arithmetic."""
    words = "linear --optimizer momentum --quiet --steps 20".split()
    fresh()
    plain = done(trireme("train", *words, "--ckpt", "ck", "--save-every", "10"))
    older, newest = (f"ck/{f}" for f in folders())

    def rewrite(**changes):
        state = json.load(open(f"{newest}/state.json"))
        state.pop("own_sha256", None)
        json.dump({**state, "format": 1, **changes}, open(f"{newest}/state.json", "w"))

    rewrite()
    unchecked = "format 1.* unchecked"
    for line in (["verify", "ck"], ["ls", "ck"], ["show", "ck"]):
        run = trireme("ckpt", *line)
        need(run.returncode == 0 and len(re.findall(unchecked, run.out)) == 1,
             f"{line}: {run.out}{run.err}")
    run = trireme("train", *words, "--ckpt", "ck", "--resume", "--steps", "30")
    need(run.returncode == 0 and re.search(unchecked, run.err)
         and f"resumes from {newest}" in run.err and "was made on" not in run.err, run.err)
    fresh("ck/step-000000030")
    device = json.load(open(f"{newest}/state.json"))["device"]
    other = re.sub(r"arithmetic [0-9]+", "arithmetic 0", device)  # docs/arithmetic.md
    need(other != device, f"no arithmetic in {device}")
    rewrite(device=other)
    run = trireme("train", *words, "--ckpt", "ck", "--resume", "--steps", "30")
    need(run.returncode == 0 and f"trireme: {newest} was made on {other}; this is {device}, and "
         "the last bits may differ" in run.err, run.err)
    fresh("ck/step-000000030")
    rewrite(weights="0" * 64)
    run = trireme("train", *words, "--ckpt", "ck", "--resume")
    need("does not have the hash" in run.err and f"resumes from {older}," in run.err
         and done(run) == plain,
         run.err)


def not_removed():
    """An old checkpoint that cannot be removed is reported once, as a warning; newer ones are
    complete and removed in their turn."""
    words = "linear --optimizer momentum --quiet --steps".split()
    plain = done(trireme("train", *words, "20"))
    for more in ([], ["-n", "2"]):
        fresh()
        trireme("train", *words, "4", "--ckpt", "ck", "--save-every", "2")
        for folder in folders():
            os.mkdir(f"ck/{folder}/notes")
        run = trireme("train", *words, "20", *more, "--ckpt", "ck", "--save-every", "2", "--keep",
                      "1", "--resume")
        need(run.returncode == 0 and done(run) == plain,
             f"{more}: exit {run.returncode}: {run.err}")
        need(len(re.findall("trireme: warning: the checkpoint of step [24] is not removed: "
                            ".*notes: can't remove", run.err))
             == run.err.count("warning") > 0, f"{more}: {run.err}")
        need("failed" not in run.err and folders() == ["step-000000020"],
             f"{more}: {folders()}: {run.err}")
        need(trireme("ckpt", "verify", "ck").returncode == 0, "damaged")
        need([f for f in os.listdir("ck") if f.startswith(".")], "nothing was left")


def without_files():
    """All steps are completed: the last line is printed, also by the agent, and the exit code
    reports the missing file."""
    words = "linear --optimizer momentum --quiet --steps".split()
    plain = done(trireme("train", *words, "20"))

    def ends(text, *line, limit=resource.RLIM_INFINITY, **env):
        def prepare():
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

        run = end(subprocess.Popen([PROGRAM, "train", *words, "20", *line], stdout=subprocess.PIPE,
                                   text=True,
                                   stderr=subprocess.PIPE, env={**os.environ, **env},
                                   preexec_fn=prepare))
        need(run.returncode == 1 and done(run) == plain and re.search(text, run.err),
             f"{line}: exit {run.returncode}: {run.out}{run.err}")

    gone, limit = os.path.abspath("gone"), 64 << 20
    full = {"LD_PRELOAD": CUT_WRITE, "CUT_UNDER": gone, "CUT_ERROR": str(errno.ENOSPC)}
    for more in ([], ["-n", "2"]):
        fresh("ck", "out", "gone")
        trireme("train", *words, "5", "--ckpt", "ck", "--out", "out")
        # one more row exceeds the limit of a file's size
        with open("out/metrics.jsonl", "r+b") as f:
            rows = f.read()
            f.seek(limit - len(rows) - 1)
            f.write(b"\n" + rows)
        ends("metrics.jsonl lacks", *more, "--ckpt", "ck", "--out", "out", "--resume", limit=limit)
        fresh("out")
        os.mkdir("gone")
        ends("No space left on device", *more, "--save", f"{gone}/w.safetensors", CUT_AT="1",
             **full)
        ends("the last checkpoint, of step 20, could not be written", *more, "--ckpt", gone,
             CUT_AT="4", **full)


run_cases({
    "damaged checkpoints": damaged,
    "flipped bits": flipped_bits,
    "format 1": without_checksum,
    "a checkpoint cannot be removed": not_removed,
    "files missing at the end": without_files,
}, sys.argv[3:])
