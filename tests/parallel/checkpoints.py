#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs that go on from checkpoints: the same weights as in one go, whatever has happened meanwhile.

Usage: checkpoints.py TRIREME [CASE...]

KILLS=N: so many runs are killed in the storm (4)."""
import os
import random
import re
import shutil
import signal
import sys
import time

from runs import children, done, end, events, length_for, need, run_cases, start, trireme, wait_for

KILLS = int(os.environ.get("KILLS", "4"))

RUNS = {
    "lenet5, uneven lanes": "lenet5 --batch 30 --lanes 7 --optimizer adam --steps 24",
    "dropout, clipping, loss scale": "bert-tiny --batch 8 --lanes 4 --optimizer adamw --clip-norm 1 --steps 6 "
                                     "--amp O2 --amp-type bf16 --loss-scale dynamic:every=2",
    "statistics, a schedule": "resnet18:form=small,width=8 --batch 16 --lanes 4 --optimizer momentum --steps 6 "
                              "--schedule cosine:end=0,warmup=2",
}


def folders(directory="ck"):
    return sorted(f for f in os.listdir(directory) if f.startswith("step-"))


def fresh(*names):
    for name in names or ("ck",):
        shutil.rmtree(name, ignore_errors=True)


def goes_on(words):
    """N steps, a stop, M steps; by other numbers of workers before and after."""
    words = words.split() + ["--quiet"]
    plain = done(trireme("train", *words))
    half = int(words[words.index("--steps") + 1]) // 2
    for before, after in (([], []), (["-n", "2"], []), ([], ["-n", "3"]), (["-n", "2"], ["-n", "1"])):
        fresh()
        first = trireme("train", *words, *before, "--ckpt", "ck", "--save-every", str(half))
        need(done(first) == plain, f"{before}: with checkpoints another result")
        need(len(folders()) == 2, f"{folders()}")
        shutil.rmtree(f"ck/{folders()[-1]}")
        again = trireme("train", *words, *after, "--ckpt", "ck", "--resume")
        need("goes on from ck/step-" in again.err, again.err)
        need(done(again) == plain, f"{before}, {after}:\n{done(again)}\nin one go:\n{plain}")
        need(trireme("ckpt", "verify", "ck").returncode == 0, "verify")


def stopped():
    """Asked to end in mid-epoch: what is done is saved, and goes on. The rate does not depend on the length."""
    words = "lenet5 --steps 100000000 --quiet".split()
    fresh()
    run = start("train", *words, "-n", "2", "--ckpt", "ck", "--out", "stop")
    wait_for(lambda: events("stop", "rowing"), "no worker rows")
    time.sleep(1)
    run.send_signal(signal.SIGTERM)
    end(run)
    need(run.returncode == 3, f"exit {run.returncode}: {run.err}")
    steps = int(re.search(r"steps=(\d+)", done(run)).group(1))
    need(folders() == [f"step-{steps:09d}"], f"{folders()} after {steps} steps")
    more = ["lenet5", "--quiet", "--steps", str(steps + 20)]
    again = trireme("train", *more, "--ckpt", "ck", "--resume")
    need(done(again) == done(trireme("train", *more)), "another result")


def late():
    """--max-time, in one process and in two; what was done goes on."""
    for more in ([], ["-n", "2"]):
        fresh()
        run = trireme("train", *"lenet5 --steps 100000000 --quiet --max-time 1 --ckpt ck".split(), *more)
        need(run.returncode == 3, f"{more}: exit {run.returncode}: {run.err}")
        steps = int(re.search(r"steps=(\d+)", done(run)).group(1))
        need(folders() == [f"step-{steps:09d}"], f"{folders()} after {steps} steps")


def storm():
    """kill -9 of agent and workers, at any moment, until it gets through."""
    words = "lenet5 --optimizer adam --quiet".split()
    words += ["--steps", str(length_for(words, KILLS + 2))]
    plain = done(trireme("train", *words))
    fresh()
    killed = went_on = 0
    for _ in range(200):
        n = random.choice(("1", "2"))
        run = start("train", *words, "-n", n, "--ckpt", "ck", "--save-every", "10", "--keep", "3", "--resume",
                    "--out", "storm")
        if killed < KILLS:
            time.sleep(random.uniform(0.1, 1.0))
            for pid in [*children(run.pid), run.pid]:
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
        end(run)
        went_on += "goes on from" in run.err
        killed += run.returncode == -signal.SIGKILL
        if run.returncode == 0:
            break
    need(done(run) == plain, f"{done(run)}\nin one go:\n{plain}")
    need(killed >= KILLS and went_on, f"{killed} killed, {went_on} went on")
    need(len(folders()) == 3 and not [f for f in os.listdir("ck") if f.startswith(".")], f"{os.listdir('ck')}")
    return f"{killed} killed, {went_on} went on"


def damaged():
    """The newest whole one is taken, and what is wrong with newer ones is said."""
    words = "lenet5 --quiet --steps 40".split()
    plain = done(trireme("train", *words))

    def cut(folder):
        os.truncate(f"ck/{folder}/model.safetensors", 1000)

    def flip(folder):
        with open(f"ck/{folder}/optimizer.safetensors", "r+b") as f:
            f.seek(-5, os.SEEK_END)
            byte = f.read(1)
            f.seek(-1, os.SEEK_CUR)
            f.write(bytes([byte[0] ^ 1]))

    harms = {"bytes; state.json says": cut, "is not what was written": flip,
             "No such file": lambda folder: os.remove(f"ck/{folder}/optimizer.safetensors"),
             "state.json: line": lambda folder: os.truncate(f"ck/{folder}/state.json", 100),
             "state.json: No such file": lambda folder: os.remove(f"ck/{folder}/state.json")}
    for text, harm in harms.items():
        fresh()
        trireme("train", *words, "--optimizer", "adam", "--ckpt", "ck", "--save-every", "10", "--steps", "30")
        harm(folders()[-1])
        verified = trireme("ckpt", "verify", "ck")
        need(verified.returncode == 1 and text in verified.out, f"{text}: {verified.out}")
        again = trireme("train", *words, "--optimizer", "adam", "--ckpt", "ck", "--resume")
        need(text in again.err and "goes on from ck/step-000000020" in again.err, again.err)
        need(done(again) == done(trireme("train", *words, "--optimizer", "adam")), f"{text}: another result")
    fresh()
    trireme("train", *words, "--ckpt", "ck", "--steps", "30")
    cut(folders()[0])
    none = trireme("train", *words, "--ckpt", "ck", "--resume")
    need(none.returncode == 1 and "no checkpoint in it is whole" in none.err, none.err)
    need(plain, "")


def unwritable():
    """A checkpoint that cannot be written is told of, and the run goes on; the last one decides."""
    words = "lenet5 --quiet --ckpt ck".split()
    steps = length_for(words, 4)
    words += ["--steps", str(steps), "--save-every", str(max(1, steps // 40))]
    plain = done(trireme("train", *words))
    for comes_back in (True, False):
        fresh()
        run = start("train", *words)
        wait_for(lambda: os.path.isdir("ck") and folders(), "no checkpoint")
        while not os.path.isfile("ck"):  # the run makes the directory anew
            fresh()
            try:
                open("ck", "x").close()
            except FileExistsError:
                pass
        if comes_back:
            time.sleep(1)
            os.remove("ck")
            os.mkdir("ck")
        end(run)
        os.path.isfile("ck") and os.remove("ck")
        if comes_back:
            need(run.returncode == 0 and done(run) == plain, f"exit {run.returncode}: {run.err}")
            need(re.search("the checkpoint of step [0-9]+ failed", run.err), run.err)
        else:
            need(run.returncode == 1 and "could not be written" in run.err, f"exit {run.returncode}: {run.err}")


def refused():
    words = "lenet5 --quiet --steps 20".split()
    fresh()
    trireme("train", *words, "--ckpt", "ck")

    def wrong(code, pattern, *more):
        run = trireme("train", *words, *more)
        need(run.returncode == code and re.search(pattern, run.err), f"{more}: exit {run.returncode}: {run.err}")

    wrong(2, "--lanes 4 .this run has 2", "--ckpt", "ck", "--resume", "--lanes", "2")
    wrong(2, "--seed 0 .this run has 1", "--ckpt", "ck", "--resume", "--seed", "1")
    wrong(2, "name their directory with --ckpt", "--resume")
    wrong(2, "name their directory with --ckpt", "--save-every", "5")
    wrong(2, "--resume and --load", "--ckpt", "ck", "--resume", "--load", "x")
    wrong(1, "cannot make the directory", "--ckpt", "no/such/place")
    plain = done(trireme("train", *words))
    need(done(trireme("train", *words, "--ckpt", "ck", "--resume")) == plain, "nothing is left to be done")
    first = start("train", *"lenet5 --quiet --steps 100000000 --ckpt both".split())
    wait_for(lambda: os.path.isdir("both"), "it does not start")
    wrong(2, "another run writes its checkpoints to both", "--ckpt", "both") if first.poll() is None else None
    first.send_signal(signal.SIGTERM)
    end(first)
    run = trireme("train", *words, "--ckpt", "new", "--resume")
    need(run.returncode == 0 and "the run begins anew" in run.err, run.err)
    other = trireme("train", "cnn", "--steps", "20", "--quiet", "--ckpt", "ck", "--resume")
    need(other.returncode != 0 and ("does not fit" in other.err or "was made with" in other.err), other.err)


def asked():
    """trireme ctl DIR checkpoint, at work and paused."""
    fresh("ck", "asked")
    run = start("train", *"lenet5 --quiet --steps 100000000 -n 2 --ckpt ck --out asked".split())
    wait_for(lambda: events("asked", "rowing"), "no worker rows")
    now = trireme("ctl", "asked", "checkpoint")
    need(re.fullmatch(r"step \d+ is saved\n", now.out), now.out + now.err)
    need(folders() == [f"step-{int(now.out.split()[1]):09d}"], f"{folders()}")
    trireme("ctl", "asked", "pause")
    need(trireme("ctl", "asked", "checkpoint").returncode == 0 and len(folders()) == 2, f"{folders()}")
    trireme("ctl", "asked", "stop")
    end(run)
    fresh("asked")
    without = start("train", *"lenet5 --quiet --steps 100000000 -n 1 --out asked".split())
    wait_for(lambda: events("asked", "rowing"), "no worker rows")
    need("--ckpt DIR gives it one" in trireme("ctl", "asked", "checkpoint").err, "it does not say why not")
    trireme("ctl", "asked", "stop")
    end(without)


CASES = {f"goes on: {name}": (lambda words=words: goes_on(words)) for name, words in RUNS.items()}
CASES.update({
    "asked to end": stopped,
    "its time is over": late,
    "a storm of kills": storm,
    "damaged checkpoints": damaged,
    "they cannot be written": unwritable,
    "mistakes": refused,
    "trireme ctl checkpoint": asked,
})

run_cases(CASES, sys.argv[2:])
