#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Workers that count as stalled: those that hang, not those that wait for a processor. Workers that
all wait for each other.

Usage: stalls.py TRIREME HANG TAMPER [CASE...]

RUNS=N: that many overcommitted runs (1; with SLOW=1 50)."""
import contextlib
import os
import random
import re
import statistics
import subprocess
import sys

from runs import (HAS_POINTS, SLOW, done, end, events, length_for, need, run_cases, start, trireme,
                  wait_for)

HANG = os.path.abspath(sys.argv[2])  # tests/parallel/hang.c
TAMPER = os.path.abspath(sys.argv[3])  # tests/parallel/tamper.c
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
    need(TIMEOUT <= told[0]["cost"] <= LATEST, f"after {told[0]['cost']} s")


def slow_operator():
    """An operator may take 20 times as long as it has taken, among others that take no time."""
    first, then, timeout = (1.7, 30, 2) if SLOW else (0.2, 3, 0.5)
    words = [HANG, "--steps", "10", "--quiet"]
    plain = done(end(start(*words[1:], program=HANG)))
    naps = {"TEST_NAPS": f"{first},{then}"}
    limit = ["--stall-timeout", str(timeout)]
    run = trireme("run", "-n", "1", *limit, "--out", "slow", "--", *words, env=naps)
    need(done(run) == plain, "another result")
    need(not events("slow", "stall") and not events("slow", "death"), run.err)
    subprocess.run(["rm", "-rf", "slow"], check=True)
    naps = {"TEST_NAPS": f"0,{then}"}
    run = trireme("run", "-n", "1", *limit, "--out", "slow", "--", *words, env=naps)
    told = events("slow", "stall")
    need(told and "operator hang" in told[0]["text"], f"no stall without a first time: {run.err}")


# ---- workers that wait for each other ----

def tamper(words, *times):
    """The run after it has stood still. It may end before the tampering succeeds, and is tried
    again."""
    for _ in range(5):
        subprocess.run(["rm", "-rf", "wait"], check=True)
        run = start("train", *words, "-n", "2", "--spares", "1", *SOON, "--out", "wait")
        wait_for(lambda: len(events("wait", "rowing")) >= 2, "no worker takes part")
        tampered = subprocess.run([TAMPER, "wait", *times], capture_output=True, text=True,
                                  timeout=60)
        ended = end(run, 60)
        if tampered.returncode == 0:
            return ended
    need(False, f"nothing was tampered with: {tampered.stderr}")


SOON = ["--stall-timeout", "0.5"]
STANDS = "all workers have waited for each other in step [0-9]+ for 0.5 s"


def all_wait():
    """A lane that no worker computes, as if a claim had been lost: all workers wait. They are
    killed and replaced, and the step goes on, once."""
    words = ["lenet5", "--quiet"]
    words += ["--steps", str(length_for(words, 1))]
    plain = done(trireme("train", *words))
    run = tamper(words)
    need(done(run) == plain, "another result")
    told = [line for line in run.err.splitlines() if "worker" in line]
    need(len(told) == 1 and re.search(STANDS + "; all are killed and replaced", told[0]), run.err)
    waits = events("wait", "waits")
    need([w["worker"] for w in waits] == [0, 1, 2], f"not all workers: {waits}")
    lanes = [w["text"] for w in waits if w["rank"] >= 0]
    need(lanes == ["lane 0, claimed by worker 2"] * 2, f"{waits}")
    need(events("wait", "board"), "agent.log does not say what the words were")


def wait_again():
    """The same step stands still again: the run ends."""
    run = tamper(["lenet5", "--steps", "100000000", "--quiet"], "2")
    need(run.returncode == 1, f"exit {run.returncode}")
    need(re.search(STANDS + "; all are killed and replaced", run.err), run.err)
    need(re.search(STANDS + ", again; the run ends", run.err), run.err)


def lost_wake_up(*more):
    """The reporter sleeps on when others have done what it waits for."""
    if not HAS_POINTS:
        return "skipped: this build has no points (-Dpoints=true)"
    words = ["lenet5", "--batch", "64", "--lanes", "8", "--quiet", "--steps", "100", *more]
    plain = done(trireme("train", *words))
    stood = 0
    for n in random.sample(range(20), 20):  # not every sleep that is lost is waited for
        if stood >= (5 if SLOW else 1):
            break
        run = trireme("train", *words, "-n", "2", "--stall-timeout", "2", "--out", "lost",
                      env={"TRIREME_LOSE": f"0:{n}"})
        need(done(run) == plain, f"another result after sleep {n}: {run.err}")
        told = [line for line in run.err.splitlines() if "worker" in line]
        need(all("; all are killed and replaced" in line for line in told) and len(told) < 2,
             run.err)
        stood += len(told)
    need(stood, "no run stood still")
    return f"{stood} standstills"


CASES = {
    "more threads than cores": healthy,
    "more threads are as fast": as_fast,
    "an endless loop": lambda: hangs("loop-first"),
    "an endless loop beside busy processes": lambda: hangs("loop-first", processes=4),
    "an endless loop in another thread": lambda: hangs("loop-other", "--threads-per-worker", "2"),
    "a sleep": lambda: hangs("sleep-first"),
    "a sleep beside busy processes": lambda: hangs("sleep-first", processes=4),
    "a slow operator": slow_operator,
    "all workers wait": all_wait,
    "all workers wait again": wait_again,
    "a wake-up is lost": lost_wake_up,
    "a wake-up is lost, a mesh": lambda: lost_wake_up("--mesh", "model=2", "--strategy",
                                                      "channels"),
    "a sleep in another thread": lambda: hangs("sleep-other", "--threads-per-worker", "2"),
}

run_cases(CASES, sys.argv[4:])
