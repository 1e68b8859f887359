#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How much slower a run becomes beside processes that keep the cores busy: with one of them at most
4 times, with two at most 8 times, for every form of parallelism and more workers than cores.

Usage: beside.py PROGRAM [PART OF A CASE'S NAME ...]
TIMES=N fails only beyond N times these limits (2); ROUNDS=N takes the medians of N rounds (1, with
SLOW=1 5). `make bench-workers ROWS=beside` prints the ratios."""
import os
import re
import statistics
import subprocess
import sys

from runs import SLOW, done, need, run_cases, trireme

LIMITS = {1: 4, 2: 8}
ROUNDS = int(os.environ.get("ROUNDS", 5 if SLOW else 1))
TIMES = float(os.environ.get("TIMES", 2))
SHARE = 1 if SLOW or "ROUNDS" in os.environ else 0.1  # of the steps
BERT = "bert-tiny:seq=32 --batch 8"
# Name: words, steps. On two cores these are two and four workers a core, and one and a half.
RUNS = {
    "three seats, 3 workers": (f"{BERT} --lanes 2 --mesh model=3 --strategy megatron -n 3", 60),
    "four seats, 4 workers": (f"{BERT} --lanes 2 --mesh model=4 --strategy megatron -n 4", 60),
    "four seats, 8 workers": (f"{BERT} --lanes 2 --mesh model=4 --strategy megatron -n 8", 60),
    "two seats and stages, 4 workers":
        (f"{BERT} --lanes 4 --mesh model=2 --strategy megatron --stages 2 -n 4", 60),
    "two seats and stages, 8 workers":
        (f"{BERT} --lanes 4 --mesh model=2 --strategy megatron --stages 2 -n 8", 60),
    "stages, 4 workers": (f"{BERT} --lanes 8 --stages 4 -n 4", 60),
    "stages, 8 workers": (f"{BERT} --lanes 8 --stages 4 -n 8", 60),
    "lanes, 4 workers": (f"{BERT} --lanes 8 -n 4", 100),
    "lanes, 8 workers": (f"{BERT} --lanes 8 -n 8", 100),
    "ZeRO, 4 workers": (f"{BERT} --lanes 8 --zero 3 -n 4", 60),
    "small lanes, 4 workers": ("lenet5 --batch 64 --lanes 8 -n 4", 1000),
    "one lane by 4 workers of 2 threads":
        (f"{BERT} --lanes 1 --threads-per-worker 2 -n 4", 60),
    "one process, 2 threads": (f"{BERT} --lanes 1 --threads 2", 100),
    "one process, 8 threads": (f"{BERT} --lanes 1 --threads 8", 60),
    "two seats, one process": (f"{BERT} --lanes 1 --mesh model=2 --strategy megatron --threads 4",
                               60),
}
QUICK = ("three seats, 3 workers", "lanes, 8 workers")


def seconds_of(words, steps):
    run = trireme("train", *words.split(), "--steps", str(max(3, int(steps * SHARE))), "--quiet")
    done(run)
    return float(re.search(r" seconds=([0-9.]+)", run.out)[1])


def beside(busy, words, steps):
    """Seconds of the run beside that many processes that never sleep."""
    others = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(busy)]
    try:
        return seconds_of(words, steps)
    finally:
        for other in others:
            other.kill()
            other.wait()


def slower(words, steps):
    """The median, over rounds, of the time beside one and two busy processes to that alone."""
    ratios = {busy: [] for busy in LIMITS}
    for _ in range(ROUNDS):
        alone = beside(0, words, steps)
        for busy, seen in ratios.items():
            seen.append(beside(busy, words, steps) / alone)
    middle = {busy: statistics.median(seen) for busy, seen in ratios.items()}
    said = ", ".join(f"{middle[b]:.2f} (at most {LIMITS[b]}) beside {b}" for b in LIMITS)
    need(all(middle[b] <= TIMES * LIMITS[b] for b in LIMITS), said)
    return said


if __name__ == "__main__":
    run_cases({name: lambda row=row: slower(*row) for name, row in RUNS.items()}, sys.argv[2:],
              slow=[name for name in RUNS if name not in QUICK])
