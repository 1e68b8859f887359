#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Profiles of runs, and the counts of what threads spend their time on: they add up, whoever is
killed; no bit of the training depends on them.

Usage: profiles.py TRIREME OWN_LOOP [CASE...]"""
import csv
import json
import os
import random
import signal
import subprocess
import sys
import time

from runs import (SLOW, Wrong, done, end, events, fresh, need, pid_at_work, run_cases, start,
                  text_of, trireme, wait_for, wait_for_steps)

OWN_LOOP = os.path.abspath(sys.argv[2])
NETS = {  # name: (options, one more of the run)
    "lenet5": "lenet5 --steps 60 --threads 1",
    "lenet5, 2 threads": "lenet5 --steps 60 --threads 2",
    "lenet5, 2 workers": "lenet5 --steps 60 -n 2",
    "a mesh": "bert-tiny:seq=16,vocab=400 --batch 4 --lanes 2 --mesh model=2 --strategy megatron"
              " --steps 64 -n 2",
    "stages": "bert-tiny:seq=16,vocab=400 --batch 4 --lanes 4 --stages 2 --steps 64 -n 2",
    "audits": "lenet5 --steps 30 -n 2 --audit 1",
    "checkpoints": "lenet5 --steps 30 -n 2 --ckpt ck --save-every 1",
    "evaluations": "lenet5 --steps 30 -n 2 --data synthetic:size=640 --eval-data"
                   " synthetic:size=256 --eval-every 3",
    "evaluations, 1 process": "lenet5 --steps 30 --data synthetic:size=640 --eval-data"
                              " synthetic:size=256 --eval-every 3",
    "short steps": "linear --steps 30000 --threads 1",
}
UNEXPLAINED = 0.02
STEPS = (4, 9)


def train(options, *more, out="out"):
    fresh(out, "ck")
    return trireme("train", *options.split(), "--quiet", "--out", out, *more)


def table(path):
    with open(path, newline="") as f:
        return list(csv.DictReader(f))


def kinds(row):
    return {k: float(v) for k, v in row.items()
            if k not in ("step", "host", "worker", "threads", "seconds")}


def check_totals(out):
    """What run.json says of each worker: all but the start is explained."""
    run = json.load(open(f"{out}/run.json"))
    need(run["totals"], "no totals")
    for worker in run["totals"]:
        times = {k: v for k, v in worker.items() if k not in ("worker", "start")}
        part = times.get("unexplained", 0) / sum(times.values())
        need(part < UNEXPLAINED, f"worker {worker['worker']}: {part:.3f} is unexplained: {times}")
    entry = run["entries"][-1]
    whole = (entry["end"] - entry["begin"]) * run["threads"]
    most = max(sum(v for k, v in worker.items() if k != "worker") for worker in run["totals"])
    need(0.5 * whole < most < 1.02 * whole, f"{most:.3f} s of {whole:.3f} s are counted")


def check_steps(folder, first, last, workers):
    rows = table(f"{folder}/steps.csv")
    need([int(r["step"]) for r in rows if r["worker"] == "0"] == list(range(first, last + 1)),
         f"steps {[r['step'] for r in rows]}")
    need(len(rows) == workers * (last - first + 1), f"{len(rows)} rows")
    for row in rows:
        whole, parts = float(row["seconds"]) * int(row["threads"]), kinds(row)
        part = sum(parts.values()) / whole
        # Another worker than the reporter may have been late for the first step.
        late = row["step"] == str(first) and row["worker"] != "0"
        need(late or 0.99 < part < 1.01 or whole < 1e-4,
             f"step {row['step']} of worker {row['worker']}: "
             f"{part:.4f} of its time is in the table: {row}")


def check_operators(folder):
    """Threads that compute do nothing else in an operator's time."""
    whole = sum(float(r["compute"]) + float(r["audit"]) + float(r["update"]) + float(r["sum"])
                for r in table(f"{folder}/steps.csv"))
    rows = [r for r in table(f"{folder}/ops.csv") if r["level"] == "kind"]
    part = sum(float(r["seconds"]) for r in rows) / whole
    need(0.5 < part < 1.01, f"operators take {part:.3f} of the time of those that compute")


def adds_up(name):
    """Short steps are not all timed, and what interrupts one for long is unexplained; a worker that
    has no core may miss a step. So a busy machine has several tries."""
    for left in reversed(range(6)):
        try:
            return adds_up_once(NETS[name])
        except Wrong as wrong:
            if not left or "another result" in str(wrong):
                raise


def adds_up_once(options):
    workers = 2 if "-n 2" in options else 1
    first, last = (20000, 20199) if "linear" in options else STEPS
    plain = done(train(options))
    check_totals("out")
    told = train(options, "--profile", f"steps={first}..{last}")
    need(done(told) == plain, "another result")
    check_totals("out")
    check_steps(f"out/profile/{first}", first, last, workers)
    check_operators(f"out/profile/{first}")
    return ""


def moves():
    """Bytes of comm.csv are those of explain."""
    words = NETS["a mesh"].split()
    without = [w for i, w in enumerate(words)
               if w not in ("-n", "--steps") and words[i - 1] not in ("-n", "--steps")]
    all_moves = json.loads(trireme("explain", *without, "--json").out)["moves"]
    first, last = STEPS
    done(train(NETS["a mesh"], "--profile", f"steps={first}..{last}"))
    rows = [r for r in table(f"out/profile/{first}/comm.csv") if r["kind"] == "move"]
    lanes, steps = 2, last - first + 1
    expected = sum(m["bytes"] for m in all_moves) * lanes * steps
    got = sum(int(r["bytes"]) for r in rows)
    need(got == expected > 0, f"{got} bytes, explain says {expected}")


def trace():
    """The trace is JSON; its operators are those of the table, its times those of the steps."""
    first, last = STEPS
    done(train(NETS["lenet5, 2 workers"], "--profile", f"steps={first}..{last}"))
    folder = f"out/profile/{first}"
    slices = [e for e in json.load(open(f"{folder}/trace.json"))["traceEvents"]
              if e["ph"] == "X"]
    calls = sum(int(r["calls"]) for r in table(f"{folder}/ops.csv") if r["level"] == "kind")
    shown = sum(e["cat"] in ("operator", "move") for e in slices)
    need(shown >= calls > 0, f"{shown} slices of operators, {calls} calls")
    seconds = sum(float(r["seconds"]) for r in table(f"{folder}/steps.csv") if r["worker"] == "0")
    drawn = sum(e["dur"] for e in slices if e["cat"] == "step") / 1e6
    need(abs(drawn - seconds) < 0.01 * seconds, f"steps of {drawn} s, and {seconds} s")


MISTAKES = {  # options: what the message has
    "--profile steps=20..10": "expected steps=A..B where B is not less than A",
    "--profile steps=0": "expected steps from 1 on",
    "--profile steps=0..3": "expected steps from 1 on",
    "--profile 10..20": "expected steps=A..B",
    "--profile steps=3..x": "expected steps=A..B",
    "--profile steps=50..70": "the run ends after step 60",
}


def mistakes():
    for options, text in MISTAKES.items():
        for workers in ("", " -n 2"):
            run = train(NETS["lenet5"] + workers, *options.split())
            need(run.returncode and text in run.err, f"{options}{workers}: {run.err}")
    for words, text in (("none --steps 5", "there is no run in none"),
                        ("out --steps 5", "has ended"), ("none", "no profile"),
                        ("out --steps 0", "1"), ("out --steps 2 --name 3", "give one"),
                        ("out --name 77", "77")):
        run = trireme("profile", *words.split())
        need(run.returncode and text in run.err and run.err.count("\n") == 1,
             f"profile {words}: {run.err}")
    own = subprocess.run([OWN_LOOP, "--steps", "20", "--profile", "steps=2..3"],
                         capture_output=True, text=True, check=False)
    need(own.returncode and "--out" in own.stderr, f"a program without a directory: {own.stderr}")


def under_way():
    fresh("live")
    run = start("train", "lenet5", "-n", "2", "--steps", "100000", "--quiet", "--out", "live")
    try:
        wait_for_steps("live")
        first = trireme("profile", "live", "--steps", "5")
        need(not first.returncode and "steps.csv" in first.out, first.err)
        at = int(os.listdir("live/profile")[0])
        check_steps(f"live/profile/{at}", at, at + 4, 2)
        # A long one, and one beside it.
        long = start("profile", "live", "--steps", "1000")
        wait_for(lambda: len(os.listdir("live/profile")) == 2, "no second profile")
        beside = trireme("profile", "live", "--steps", "2")
        need(beside.returncode and "is being recorded" in beside.err, beside.err + beside.out)
        long.terminate()
        long.wait()
        need(run.poll() is None, "the run has ended")
    finally:
        run.terminate()
        end(run)


def kills():
    """Deaths of workers, and of the agent, while a profile is recorded and written."""
    steps, words = 400, "lenet5 -n 2 --spares 1 --lanes 4".split()
    more = ["--profile", "steps=20..380", "--quiet"]
    hashed = done(trireme("train", *words, "--steps", str(steps), "--quiet", "--out", "whole"))
    killed = agents = 0
    wanted = (200, 50) if SLOW else (int(os.environ.get("KILLS", "3")), 1)
    while killed < wanted[0]:
        fresh("out")
        run = start("train", *words, "--steps", str(steps), *more, "--out", "out")
        for _ in range(4):
            time.sleep(random.uniform(0.0, 0.15))
            pids = [e["pid"] for e in events("out", "start")][-3:]
            if run.poll() is None and pids:
                try:
                    os.kill(random.choice(pids), signal.SIGKILL)
                    killed += 1
                except ProcessLookupError:
                    pass
        need(done(end(run)) == hashed, "another result after deaths of workers")
    while agents < wanted[1]:
        fresh("out", "ck")
        begun = start("train", *words, "--steps", str(steps), *more, "--out", "out", "--ckpt", "ck",
                      "--save-every", "20")
        pid_at_work("out", 0)
        time.sleep(random.uniform(0.0, 0.3))
        begun.kill()
        end(begun)
        agents += 1
        if os.path.isdir("out/profile"): # what has been recorded can be read
            read = trireme("profile", "out")
            need(not read.returncode or "profile" in read.err, read.err)
        again = trireme("train", *words, "--steps", str(steps), "--quiet", "--out", "out", "--ckpt",
                        "ck", "--resume")
        need(done(again) == hashed, "another result after a death of the agent")
    return f"{killed} workers, {agents} agents"


def full():
    """What does not fit is lost, counted, and told; the run is the same."""
    words = NETS["lenet5, 2 workers"]
    plain = done(train(words))
    run = train(words, "--profile", "steps=2..59", "--profile-most", "20K")
    need(done(run) == plain, "another result")
    need("--profile-most has been reached" in run.err, run.err)
    size = sum(os.path.getsize(f"out/profile/2/{f}") for f in os.listdir("out/profile/2")
               if f.startswith("spans"))
    need(size <= 20 << 10, f"{size} bytes")


CASES = {f"it adds up: {name}": (lambda name=name: adds_up(name)) for name in NETS}
CASES.update({"bytes of moves": moves, "the trace": trace, "mistakes": mistakes,
              "under way": under_way, "a limit": full, "kills": kills})

if __name__ == "__main__":
    run_cases(CASES, sys.argv[3:])
