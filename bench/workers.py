# SPDX-License-Identifier: Apache-2.0
"""make bench-workers: runs by several workers. Speed-up over one worker, and against DDP if PyTorch
is installed; how soon a killed worker's lane is computed again; what one slow worker of two costs;
how fast workers compute one lane together; how long a large network takes to start; how much slower
runs become beside other processes. Ratios are taken within a round; the table has the median
over the rounds, lowest and highest.

Usage: workers.py BUILD [--rows ROW,ROW...] [--rounds N]
Rows: speed, mesh, stages, takeover, straggler, start, beside, ddp."""
import argparse
import glob
import json
import os
import random
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time

from sides import HERE, KEEP_MEMORY, table


def rates(words, numbers, steps, threads=1):
    """Samples per second, by number of workers."""
    more = ["--threads-per-worker", str(threads)] if threads else []
    out = subprocess.run([PROGRAM, "bench", *words.split(), "-n", ",".join(map(str, numbers)),
                          "--steps", str(steps), *more], capture_output=True, text=True,
                         check=True).stdout
    return table(out.splitlines())


def spread(values, form="{:.2f}"):
    middle, low, high = statistics.median(values), min(values), max(values)
    return f"**{form.format(middle)}** ({form.format(low)} to {form.format(high)})"


def line(*cells):
    print("| " + " | ".join(cells) + " |", flush=True)


# ---- speed ----

SPEED = (("resnet18:size=32 --batch 128 --lanes 2", (1, 2), 8, 1.9),
         ("resnet50 --batch 32 --lanes 2", (1, 2), 3, 1.9),
         ("resnet18:size=32 --batch 128 --lanes 8", (2, 8), 8, 0.9),
         ("bert-base:seq=128,head=every --batch 8 --lanes 2 --optimizer adamw --amp O2", (1, 2), 2,
          1.85),
         ("lenet5 --batch 64", (1, 2), 3000, 0),
         ("bert-tiny --batch 32 --lanes 4", (1, 2), 20, 0))


def speed(rounds):
    line("training, one thread per worker", "workers", "aim", "times as fast")
    line("---", "---", "---", "---")
    for words, (few, many), steps, aim in SPEED:
        found = []
        for _ in range(rounds):
            seen = rates(words, (few, many), steps)
            found.append(seen[many] / seen[few])
        line(f"`{words}`", f"{many} : {few}", f"{aim:g}" if aim else "", spread(found))
    print()


# ---- a mesh ----

# Name, words of the network, words of its mesh, steps, and aims: two workers against one; against
# one, and against two threads, without the mesh; four workers against two.
MESH = (("gpt2-small:seq=256 --batch 4 --lanes 1 --optimizer sgd",
         "--mesh model=2 --strategy megatron", 2, (1.8, 1.7, 0.95, 0)),
        ("gpt2-small:seq=256 --batch 4 --lanes 1 --optimizer sgd",
         "--mesh model=4 --strategy megatron", 2, (0, 0, 0, 0.85)),
        ("resnet50 --batch 16 --lanes 1", "--mesh model=2 --strategy channels", 3, (0, 0, 0, 0)))


def mesh(rounds):
    line("workers of one thread that compute one lane", "workers", "against", "aim",
         "times as fast")
    line("---", "---", "---", "---", "---")
    for words, split, steps, aims in MESH:
        found = [[], [], [], []]
        four = "=4" in split
        for _ in range(rounds):
            seen = rates(f"{words} {split}", (2, 4) if four else (1, 2), steps)
            if four:
                found[3].append(seen[4] / seen[2])
                continue
            found[0].append(seen[2] / seen[1])
            for k, threads in ((1, 1), (2, 2)):
                found[k].append(seen[2] / rates(words, (1,), steps, threads)[1])
        sides = (("2", "one worker"), ("2", "one worker without the mesh"),
                 ("2", "one worker of 2 threads without the mesh"), ("4", "2 workers"))
        for (many, other), aim, seen in zip(sides, aims, found):
            if seen:
                line(f"`{words} {split}`", many, other, f"{aim:g}" if aim else "", spread(seen))
    print()


# ---- stages ----

# Words of the network, of its stages, steps, and the aim: two workers against one.
STAGES = (("gpt2-small:seq=64 --batch 8 --lanes 8 --optimizer sgd", "--stages 2", 2, 1.6),
          ("gpt2-small:seq=64 --batch 8 --lanes 8 --optimizer sgd", "", 2, 0),
          ("resnet50 --batch 32 --lanes 8", "--stages 2", 2, 0))


def stages(rounds):
    line("two workers of one thread", "aim", "times as fast as one")
    line("---", "---", "---")
    for words, split, steps, aim in STAGES:
        seen = [rates(f"{words} {split}", (1, 2), steps) for _ in range(rounds)]
        line(f"`{words} {split}`".replace(" `", "`"), f"{aim:g}" if aim else "",
             spread([s[2] / s[1] for s in seen]))
    print()


# ---- takeover ----

def workers_of(pid):
    found = []
    for path in glob.glob("/proc/[0-9]*/stat"):
        try:
            state, parent = open(path).read().rsplit(")", 1)[1].split()[:2]
        except OSError:
            continue
        if int(parent) == pid and state not in "ZX":
            found.append(int(path.split("/")[2]))
    return found


def events(directory):
    with open(f"{directory}/agent.log") as f:
        return [json.loads(text) for text in f if text.endswith("}\n")]


def first_lane(directory, after):
    """When a new worker took its first lane, the earliest after that time; None: not yet."""
    times = [e["at_ns"] for e in events(directory) if e["event"] == "rowing" and e["at_ns"] > after]
    return min(times) if times else None


def kill_one(directory):
    """Milliseconds from the kill of a worker to the first lane of its replacement."""
    rank = {}
    for e in events(directory):
        if e["event"] in ("start", "takeover"):
            rank[e["worker"]] = e["rank"]
    pids = {e["worker"]: e["pid"] for e in events(directory) if e["event"] == "start"}
    victim = random.choice([w for w, r in rank.items()
                            if r >= 0 and os.path.exists(f"/proc/{pids[w]}")])
    before = time.monotonic_ns()
    os.kill(pids[victim], signal.SIGKILL)
    until = time.time() + 20
    while (when := first_lane(directory, before)) is None:
        if time.time() > until:
            return None
        time.sleep(0.02)
    return (when - before) / 1e6


def takeovers(words, spares, kills):
    with tempfile.TemporaryDirectory() as directory:
        run = subprocess.Popen([PROGRAM, "train", *words.split(), "--steps", "100000000", "--quiet",
                                "-n", "2", "--spares", str(spares), "--out", directory],
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        found = []
        time.sleep(4)
        for _ in range(kills):
            found.append(kill_one(directory))
            time.sleep(random.uniform(2.5, 3.5))  # for the new spare to become ready
        run.kill()
        run.wait()
    return [f for f in found if f is not None]


TAKEOVER = ("lenet5", "resnet18:size=32 --batch 32 --lanes 4", "bert-tiny --batch 16 --lanes 4",
            "resnet50 --batch 16 --lanes 2", "bert-tiny --batch 16 --lanes 4 --stages 2",
            "resnet18:size=32 --batch 32 --lanes 4 --stages 2")


def takeover(rounds):
    line("from a kill to the lane or leg running again, ms", "spare (aim: 20)",
         "fresh process (aim: 200)")
    line("---", "---", "---")
    for words in TAKEOVER:
        cells = [takeovers(words, spares, 2 * rounds) for spares in (1, 0)]
        line(f"`{words}`", *(spread(c, "{:.1f}") if c else "none" for c in cells))
    print()


# ---- a slow worker ----

def duty(pid, share, period, until):
    while time.time() < until:
        os.kill(pid, signal.SIGSTOP)
        time.sleep(period * (1 - share))
        os.kill(pid, signal.SIGCONT)
        time.sleep(period * share)


def steps_in(words, workers, seconds, slow=None):
    """Steps per second; `slow`: the share of time that the last worker may run."""
    with tempfile.TemporaryDirectory() as directory:
        run = subprocess.Popen([PROGRAM, "train", *words.split(), "--steps", "100000000", "--quiet",
                                "-n", str(workers), "--threads-per-worker", "1", "--out",
                                directory], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(3)
        pids = {e["worker"]: e["pid"] for e in events(directory) if e["event"] == "start"}

        def done():
            out = subprocess.run([PROGRAM, "top", directory, "--once"], capture_output=True,
                                 text=True)
            return int(re.search(r"step (\d+)/", out.stdout).group(1))

        if slow:
            duty(pids[workers - 1], slow, 0.04, time.time() + 2)
        first, began = done(), time.time()
        if slow:
            duty(pids[workers - 1], slow, 0.04, time.time() + seconds)
        else:
            time.sleep(seconds)
        rate = (done() - first) / (time.time() - began)
        run.kill()
        run.wait()
    return rate


def straggler(rounds):
    words = "resnet18:size=32 --batch 128 --lanes 16"
    found = []
    for _ in range(rounds):
        one = steps_in(words, 1, 8)
        found.append(steps_in(words, 2, 12, slow=0.25) / (1.25 * one))
    line("two workers, one slowed to a quarter, 16 lanes", "aim", "share of the sum of speeds")
    line("---", "---", "---")
    line(f"`{words}`", "0.90", spread(found))
    print()


# ---- start ----

def start(rounds):
    words = "bert-base:seq=128 --batch 2 --lanes 2 --steps 1 --quiet"
    line("from exec to the end of the first step", "one worker", "two workers")
    line("---", "---", "---")
    times = {1: [], 2: []}
    with tempfile.TemporaryDirectory() as out:
        for _ in range(rounds):
            for n, seen in times.items():
                began = time.monotonic()
                subprocess.run([PROGRAM, "train", *words.split(), "-n", str(n), "--out", out],
                               capture_output=True, check=True)
                seen.append(time.monotonic() - began)
    line(f"`{words}`", *(spread(seen, "{:.1f} s") for seen in times.values()))
    print()


# ---- DDP ----

def ddp_ms(model, batch, optimizer, steps, keep, last):
    env = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1",
           **(KEEP_MEMORY if keep else {})}
    out = subprocess.run([sys.executable, f"{HERE}/peers.py", model, "--batch", str(batch),
                          "--steps", str(steps), "--threads", "1", "--optimizer", optimizer,
                          "--processes", "2", *(["--channels-last"] if last else [])],
                         env=env, capture_output=True, text=True)
    found = re.search(r"median_ms=([0-9.]+)", out.stdout)
    return float(found.group(1)) if found else None


DDP = (("mlp", "mlp:hidden=2048,layers=2 --batch 128 --lanes 2 --optimizer adamw", 64, "adamw", 30,
        1.8),
       ("resnet50", "resnet50 --batch 32 --lanes 2", 16, "sgd", 3, 1.4))


def ddp(rounds):
    line("against PyTorch DDP with gloo, 2 processes of one thread, tuned malloc", "aim",
         "times as fast")
    line("---", "---", "---")
    for model, words, each, optimizer, steps, aim in DDP:
        found = []
        for _ in range(rounds):
            ours = 2 * each / rates(words, (2,), steps)[2] * 1e3
            theirs = [ddp_ms(model, each, optimizer, steps, True, last)
                      for last in ((False, True) if model.startswith("resnet") else (False,))]
            theirs = [t for t in theirs if t]
            if theirs:
                found.append(min(theirs) / ours)
        line(f"`{words}`", f"{aim:g}", spread(found) if found else "PyTorch is not installed")
    print()


# ---- beside other processes ----

def beside(rounds):
    """The limits and the runs are those of the test."""
    subprocess.run([sys.executable, f"{HERE}/../tests/parallel/beside.py", PROGRAM, ""],
                   env=dict(os.environ, ROUNDS=str(rounds), TIMES="1"), check=False)
    print()


ROWS = {"speed": speed, "mesh": mesh, "stages": stages, "takeover": takeover,
        "straggler": straggler, "start": start, "beside": beside, "ddp": ddp}

p = argparse.ArgumentParser(description=__doc__)
p.add_argument("build")
p.add_argument("--rows", default=",".join(ROWS))
p.add_argument("--rounds", type=int, default=3)
a = p.parse_args()
PROGRAM = os.path.abspath(os.path.join(a.build, "src", "trireme"))
random.seed(1)
for name in a.rows.split(","):
    if name not in ROWS:
        sys.exit(f"unknown row {name}; known: {', '.join(ROWS)}")
    ROWS[name](a.rounds)
