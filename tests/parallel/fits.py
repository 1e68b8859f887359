#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`trireme memory` and `trireme train` say the same: a run is accepted with the limit that `memory`
prints, and refused with one MiB less. The options that would help make it need what is printed.

Usage: fits.py TRIREME [CASE...]. With SLOW=1: larger networks."""
import os
import random
import re
import sys

from runs import fresh, need, run_cases, trireme

VERDICT = re.compile(r"(fits|does not fit): ([\d,]+) of ([\d,]+) MiB, (?:--memory-limit|the .*)")
HELP = re.compile(r"^ +([\d,]+) MiB  with (--?\S.*?)(?: +\((fits)?(?:, )?(other bits)?\))?$", re.M)
DRAWN = 40
MODELS = ["linear", "mlp:hidden=64,layers=2", "lenet5", "cnn", "gpt2-tiny:seq=16,layers=1,vocab=99",
          "bert-tiny:seq=16,layers=1,vocab=99"]
CHOICES = [["--optimizer sgd", "--optimizer momentum", "--optimizer adamw"], ["", "", "--amp O1"],
           ["", "", "--recompute full"], ["", "--ckpt ck", "--eval-data synthetic:size=50"],
           ["", "", "--tail keep --data synthetic:size=52"], ["--lanes 1", "--lanes 4", ""]]
ALONE = ["--threads 1", "--threads 2"]
WORKERS = ["-n 2", "-n 2 --spares 1", "-n 2 --zero 2", "-n 1 --threads 2", "-n 2 --stages 2"]


def number(text):
    return int(text.replace(",", ""))


def verdict(run):
    found = VERDICT.search(run.out if run.returncode < 2 else run.err)
    need(found, f"exit {run.returncode}, no verdict: {run.out}{run.err}")
    return found[1] == "fits", number(found[2]), number(found[3])


def memory(words, limit):
    run = trireme("memory", *words, "--memory-limit", f"{limit}M")
    fits, needs, printed = verdict(run)
    need(run.returncode == (0 if fits else 1) and printed == limit, run.out + run.err)
    return fits, needs, run.out


def draw(one):
    words = [one.choice(MODELS), "--batch", one.choice(["8", "16"])]
    for choice in CHOICES:
        words += one.choice(choice).split()
    return words + one.choice(ALONE * 3 + WORKERS).split()


def adds_up(out):
    """The parts that are listed are the whole; each is rounded, and what prints as 0.0 left out."""
    lines = re.findall(r"^ *([\d.]+) MiB  (.*)$", out, re.M)
    parts = [what for _, what in lines].index("in all")
    rest = float(lines[parts][0]) - sum(float(size) for size, _ in lines[:parts])
    need(abs(rest) < 0.7, f"{rest} MiB are not in the parts: {out}")


def drawn():
    """Verdicts of both, for drawn configurations."""
    one = random.Random(int(os.environ.get("SEED", 38)))
    accepted = 0
    while accepted < DRAWN:
        words = draw(one)
        plan = trireme("memory", *words)
        if plan.returncode == 2:
            continue  # options that contradict one another
        adds_up(plan.out)
        least = verdict(plan)[1]
        for limit, code in (least, 0), (least - 1, 2):
            fresh("ck", "run")
            run = trireme("train", *words, "--steps", "1", "--quiet", "--memory-limit", f"{limit}M")
            need(run.returncode == code, f"{words}, {limit} MiB: exit {run.returncode}: {run.err}")
        need(verdict(run) == (False, least, least - 1), run.err)
        accepted += 1


def helps(words, limit):
    """Each option that `memory` names makes the run need what it says; if it says so, it fits.
    Names the options."""
    fits, needs, out = memory(words, limit)
    named = HELP.findall(out)
    need(not fits and named, f"{words}: {out}")
    first = [bool(other) for *_, other in named]
    need(first == sorted(first), f"other bits before the same bits: {out}")
    refused = trireme("train", *words, "--memory-limit", f"{limit}M")
    for would, option, says, other in named:
        again = verdict(trireme("memory", *words, *option.split()))
        need(again[1] == number(would) < needs and (again[1] <= limit) == bool(says),
             f"{words} {option}: {again[1]} MiB, not {would}")
        said = re.search(rf"([\d,]+) MiB with {re.escape(option)}( \([^)]*\))?[,.\n]", refused.err)
        need(said and said[1] == would and bool(says) == ("fits" in (said[2] or "")) and
             bool(other) == ("other bits" in (said[2] or "")), f"{option}: {refused.err}")
    return {option.rsplit(" ", 1)[0] for _, option, *_ in named}


def all_help():
    """Between them, these runs are told of every option."""
    gpt = "gpt2-tiny:seq=64,layers=4,vocab=999 --batch 32 --optimizer adamw".split()
    told = helps([*gpt, "--threads", "2", "--lanes", "16"], 66)
    told |= helps([*gpt, "-n", "2", "--spares", "1", "--lanes", "2"], 100)
    told |= helps([*gpt, "-n", "1", "--threads-per-worker", "2", "--lanes", "8"], 66)
    told |= helps("resnet18:classes=10 --batch 8 -n 2 --lanes 2".split(), 150)
    wanted = {"--threads", "-n 1 --threads-per-worker", "--spares", "--threads-per-worker",
              "--recompute", "--lanes", "--amp", "--batch", "--mesh model=2 --strategy", "--zero"}
    need(told >= wanted, f"nothing about {wanted - told}")


def large():
    """The case of the guide: one worker, two threads, 4 GiB."""
    gpt = "gpt2-small:seq=256 --batch 8 --threads 2 --optimizer adamw".split()
    need("--lanes" in helps(gpt, 4096), "nothing about --lanes")


run_cases({"drawn": drawn, "all help": all_help, "large": large}, sys.argv[2:], slow=["large"])
