#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Workers that count as stalled: those that hang, not those that wait for a processor.

Usage: stalls.py TRIREME HANG [CASE...]

RUNS=N: that many overcommitted runs (1; with SLOW=1 50)."""
import contextlib
import os
import re
import statistics
import subprocess
import sys

from runs import SLOW, done, end, events, need, run_cases, start, trireme

HANG = os.path.abspath(sys.argv[2])  # tests/parallel/hang.c
RUNS = int(os.environ.get("RUNS", "50" if SLOW else "1"))
TIMEOUT = 1  # seconds
STALL = ["--stall-timeout", str(TIMEOUT)]
LATEST = 2  # such a stall is reported after that many seconds at the latest


@contextlib.contextmanager
def busy(processes):
    """That many processes that always want a core."""
    loops = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(processes)]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


# ---- workers that wait for a processor ----

def healthy():
    """Eight workers, and busy processes beside them: none is killed, and the result is the same."""
    words = ["train", "resnet18:size=32", "--lanes", "8", "--steps", "3", "--quiet"]
    plain = done(trireme(*words))
    with busy(4):
        for run in range(RUNS):
            subprocess.run(["rm", "-rf", "busy"], check=True)
            threads = ["--threads-per-worker", str(1 + run % 2)]
            crew = trireme(*words, "-n", "8", *threads, *STALL, "--out", "busy")
            need(not events("busy", "death"), f"run {run + 1}: {crew.err}")
            need(done(crew) == plain, f"run {run + 1}: another result")
    return f"{RUNS} runs"


def seconds(run):
    done(run)
    return float(re.search(r" seconds=([0-9.]+)", run.out).group(1))


def as_fast():
    """Eight times as many threads as cores take little longer than one thread per core. Other
    load on the machine slows down both, so the runs alternate."""
    if not SLOW:
        return "skipped: a long test (SLOW=1)"
    cores = len(os.sched_getaffinity(0))
    words = ["train", "resnet18:size=32", "--lanes", "8", "--steps", "20", "--quiet"]
    alone = ["-n", str(min(cores, 8)), "--threads-per-worker", str(max(1, cores // 8))]
    crowd = ["-n", "8", "--threads-per-worker", str(max(2, cores))]
    said = []
    for processes in 0, 4:
        with busy(processes):
            ratios = [1 / seconds(trireme(*words, *alone)) * seconds(trireme(*words, *crowd))
                      for _ in range(5)]
        ratio = statistics.median(ratios)
        said.append(f"{ratio:.2f} beside {processes} processes")
        need(ratio <= 1.5, f"{said[-1]}: {ratios}")
    return ", ".join(said)


# ---- workers that hang ----

def hangs(mode, *more, processes=0):
    """The stall is reported soon, with its operator; another worker takes over."""
    words = [HANG, "--lanes", "4", "--steps", "40", "--quiet"]
    plain = done(end(start(*words[1:], program=HANG)))
    subprocess.run(["rm", "-rf", "hang"], check=True)
    open("file", "w").close()
    with busy(processes):
        run = trireme("run", "-n", "2", *more, *STALL, "--out", "hang", "--", *words,
                      env={"TEST_HANG": os.path.abspath("file"), "TEST_MODE": mode})
    need(not os.path.exists("file"), "nothing has hung")
    need(done(run) == plain, "another result")
    told = events("hang", "stall")
    need(len(told) == 1 and "operator hang" in told[0]["text"], f"{told}: {run.err}")
    need(TIMEOUT <= told[0]["seconds"] <= LATEST, f"after {told[0]['seconds']} s")


CASES = {
    "more threads than cores": healthy,
    "more threads are as fast": as_fast,
    "an endless loop": lambda: hangs("loop-first"),
    "an endless loop beside busy processes": lambda: hangs("loop-first", processes=4),
    "an endless loop in another thread": lambda: hangs("loop-other", "--threads-per-worker", "2"),
    "a sleep": lambda: hangs("sleep-first"),
    "a sleep beside busy processes": lambda: hangs("sleep-first", processes=4),
    "a sleep in another thread": lambda: hangs("sleep-other", "--threads-per-worker", "2"),
}

run_cases(CASES, sys.argv[3:])
