#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Lanes of a mesh that several workers compute together: one hash per grain, for any number of
workers, threads and spares, for any buckets and resumptions, and after any deaths.

Usage: replicas.py PROGRAM [PART OF A CASE'S NAME ...]

KILLS=N: the number of kills over all storms (24; with SLOW=1 300)."""
import itertools
import os
import random
import shutil
import signal
import sys
import time

from runs import (SLOW, children, done, end, events, folders, fresh, kill_after_writes, length_for,
                  need, run_cases, start, text_of, trireme, wait_for)

SMALL = "--batch 8 --quiet"
NETS = {"mlp": f"mlp:hidden=64 --steps 60 {SMALL}",
        "gpt2": f"gpt2-tiny:seq=16,vocab=103,heads=8 --steps 20 {SMALL}",
        "bert": f"bert-tiny:seq=16,vocab=103,heads=8,predictions=3 --steps 20 {SMALL}",
        "resnet18": f"resnet18:form=small,width=8 --steps 20 --conv direct {SMALL}"}
RECOMPUTED = {"mlp": "*relu*", "gpt2": "*.h.0", "bert": "*.layer.1", "resnet18": "layer1*"}
# Two strategies for each, and one that splits the samples over another axis.
STRATEGIES = {"mlp": ("channels", "in.txt"), "gpt2": ("megatron", "megatron-sp"),
              "bert": ("megatron-sp", "megatron"), "resnet18": ("channels", "height.txt")}
FILES = {"in.txt": "maybe fc1.matmul in=model\nmaybe fc2.matmul out=model\n",
         "height.txt": "maybe * height=model\n"}
SAMPLES = {"mlp": "fc1.matmul rows=data", "gpt2": "transformer.h.*.attn.c_attn batch=data",
           "bert": "bert.*.query batch=data", "resnet18": "conv1.conv2d batch=data"}
MESHES = {"2": "model=2", "4": "model=4", "2x2": "data=2,model=2", "8": "model=8"}
SEATS = {"2": 2, "4": 4, "2x2": 4, "8": 8}


def mesh(net, size, strategy):
    """The options of a mesh; writes the files that they name."""
    for name, text in {**FILES, f"{net}.txt": SAMPLES[net] + "\n"}.items():
        with open(name, "w") as f:
            f.write(text)
    samples = f"{net}.txt," if size == "2x2" else ""
    return f"--mesh {MESHES[size]} --strategy {samples}{STRATEGIES[net][strategy]}"


REFERENCES = {}


def reference(words):
    """The last line of one process."""
    if words not in REFERENCES:
        REFERENCES[words] = done(trireme("train", *words.split()))
    return REFERENCES[words]


# ---- one hash per grain ----

# The grain is decided by net, size, strategy, lanes and precision.
FACTORS = {
    "net": list(NETS), "size": list(MESHES), "n": list(range(1, 9)), "strategy": [0, 1],
    "lanes": [1, 2, 3],
    "precision": ["", "--amp O1", "--amp O2 --loss-scale 128",
                  "--amp O3 --loss-scale dynamic:start=256,every=5"],
    "threads": [1, 2], "spares": [0, 1], "recompute": [False, True], "bucket": ["1", "20K", "1G"],
    "resumes": [None, "alone", "fewer", "more"]}  # how many workers take the checkpoint


def parts(row, groups):
    return {(g, tuple(row[name] for name in g)) for g in groups}


def cover(groups):
    """Rows in which each group of factors has all combinations of its values. Each row begins
    with a combination that is missing; the other values add as many as possible."""
    one = random.Random(3)
    missing = {(g, values): None for g in groups  # a set in a fixed order
               for values in itertools.product(*(FACTORS[name] for name in g))}
    rows = []
    while missing:
        names, values = next(iter(missing))
        best, most = None, -1
        for _ in range(60):
            row = {name: one.choice(v) for name, v in FACTORS.items()} | dict(zip(names, values))
            adds = sum(p in missing for p in parts(row, groups))
            if adds > most:
                best, most = row, adds
        rows.append(best)
        for p in parts(best, groups):
            missing.pop(p, None)
    return rows


def others(row):
    """The number of workers that takes the checkpoint."""
    return {"fewer": max(1, row["n"] // 2), "more": row["n"] + 1}[row["resumes"]]


def took_part(directory):
    """How many workers have computed steps."""
    return sum("first-step" in open(f"{directory}/{name}").read()
               for name in os.listdir(directory) if name.startswith("worker-")
               and name.endswith(".log"))


def check(row):
    """A run's hash is that of one process. Returns how many workers took part."""
    net = row["net"]
    words = (f"{NETS[net]} {mesh(net, row['size'], row['strategy'])} --lanes {row['lanes']}"
             f" {row['precision']}")
    wanted = reference(words)
    words += f" --bucket {row['bucket']}"
    words += f" --recompute {RECOMPUTED[net]}" * row["recompute"]
    workers = f"--threads-per-worker {row['threads']} --spares {row['spares']} --out o"
    fresh("o", "ck")
    if row["resumes"]:
        steps = int(words.split("--steps ")[1].split()[0])
        saves = f" --ckpt ck --save-every {steps * 2 // 5}"
        more = "" if row["resumes"] == "alone" else f"-n {others(row)} {workers}"
        first = trireme("train", *f"{words} {saves} {more}".split())
        need(done(first) == wanted, f"{first.args[2:]}:\n{done(first)}\nalone:\n{wanted}")
        shutil.rmtree("ck/" + folders()[-1])
        words += " --ckpt ck --resume"
        fresh("o")
    run = trireme("train", *f"{words} -n {row['n']} {workers}".split())
    need(done(run) == wanted, f"{run.args[2:]}:\n{done(run)}\nalone:\n{wanted}")
    need(not row["resumes"] or "resumes from" in run.err, run.err)
    return took_part("o")


def one_hash():
    if SLOW:
        groups = [*itertools.combinations(FACTORS, 2), ("net", "size", "n")]
    else:  # each value once, and each network on each mesh
        groups = [*((name,) for name in FACTORS), ("net", "size")]
    rows = cover(groups)[:None if SLOW else 12]
    counts = [check(row) for row in rows]
    need(max(counts) > 3, f"no run has had several workers: {counts}")
    return f"{len(rows)} runs, {sum(c > 1 for c in counts)} by several workers"


# ---- deaths ----

KILLS = int(os.environ.get("KILLS", "300" if SLOW else "24"))  # over all storms
# words, and the options of the workers
STORMS = {
    "a replica of two": ("mlp", "2", 0, "--lanes 2 --bucket 1", "-n 2"),
    "a replica of four, a spare": ("gpt2", "4", 1, "--lanes 3 --amp O1", "-n 4 --spares 1"),
    "two replicas of two": ("bert", "2", 0, "--lanes 4 --bucket 20K", "-n 4"),
    "three workers, four seats": ("resnet18", "2x2", 0, "--lanes 2 --bucket 1",
                                  "-n 3 --threads-per-worker 2"),
}


def at_work(directory):
    """The pids of the workers by rank, as the agent has logged them."""
    rank, pid = {}, {}
    for e in events(directory, "start", "takeover"):
        rank[e["worker"]] = e["rank"]
        if e["event"] == "start":
            pid[e["worker"]] = e["pid"]
        else:
            rank[e["of"]] = -1
    return {rank[w]: pid[w] for w in pid if rank[w] >= 0}


def of_a_replica(pids, seats):
    groups = -(-len(pids) // seats)
    number = random.randrange(groups)
    return [pids[rank] for rank in pids if rank * groups // len(pids) == number]


def victims(run, directory, seats):
    """Any worker, the captain, two of a replica, or all: pids."""
    alive, pids = children(run.pid), at_work(directory)
    group = of_a_replica(pids, seats)
    some = random.choice([random.sample(alive, min(1, len(alive))), [pids[0]],
                          random.sample(group, min(2, len(group))), alive])
    return [pid for pid in some if pid in alive]


def strike(pids, number):
    """Sends the signal; returns how many there were to get it."""
    struck = 0
    for pid in pids:
        try:
            os.kill(pid, number)
            struck += 1
        except ProcessLookupError:
            pass
    return struck


def stop(pids):
    """Stops them for a moment, so that others find that they are late."""
    strike(pids, signal.SIGSTOP)
    time.sleep(random.choice((0.005, 0.02, 0.1)))
    strike(pids, signal.SIGCONT)


def storm_words(name):
    net, size, strategy, more, workers = STORMS[name]
    words = f"{NETS[net]} {mesh(net, size, strategy)} {more}".split()
    at = words.index("--steps")
    del words[at:at + 2]
    words += ["--steps", str(length_for(words, 2 if SLOW else 1))]
    return words, workers.split(), SEATS[size]


def storm(name, kills, stops=0.3):
    """Workers are killed and stopped at random moments, in as many runs as that takes."""
    words, workers, seats = storm_words(name)
    wanted = done(trireme("train", *words))
    killed = runs = 0
    while killed < kills:
        fresh("storm")
        run = start("train", *words, *workers, "--out", "storm")
        wait_for(lambda: events("storm", "rowing") or run.poll() is not None,
                 "no worker takes part")
        runs += 1
        while killed < kills and run.poll() is None:
            time.sleep(random.uniform(0, 0.3))
            pids = victims(run, "storm", seats)
            if random.random() < stops:
                stop(pids)
            else:
                killed += strike(pids, signal.SIGKILL)
        got = done(end(run))
        need(got == wanted, f"after {killed} kills:\n{got}\nalone:\n{wanted}\n{run.err[-1500:]}")
        need(runs <= kills, "the runs end too soon")
    return f"{killed} kills in {runs} runs"


def stalled(place, how):
    """A member that a signal has stopped for longer than the agent allows is killed."""
    words, workers, _ = storm_words("a replica of two")
    wanted = done(trireme("train", *words))
    fresh("stall")
    run = start("train", *words, *workers, *how, "--stall-timeout", "1", "--out", "stall")
    wait_for(lambda: "first-step" in text_of(f"stall/worker-{place}.log"), "it takes no part")
    os.kill(at_work("stall")[place], signal.SIGSTOP)
    need(done(end(run)) == wanted, "another result")
    told = events("stall", "stall")
    need([e["worker"] for e in told] == [place], f"{told}: {run.err}")


# ---- a kill after every write ----

def points(place, *more):
    words = (f"mlp:hidden=64 --batch 64 --steps 12 --lanes 2 --bucket 1 --quiet --optimizer adam"
             f" {mesh('mlp', '2', 0)}").split()
    wanted = done(trireme("train", *words))

    def look(run, n):
        need(run.returncode == 0, f"killed at point {n}: exit {run.returncode}\n{run.err}")
        got = done(run)
        need(got == wanted, f"killed at point {n}:\n{got}\nalone:\n{wanted}\n{run.err}")
    return kill_after_writes([*words, "-n", "2", *more], place, 17, look)


CASES = {"one hash per grain": one_hash}
CASES.update({f"deaths: {name}": (lambda name=name: storm(name, -(-KILLS // len(STORMS))))
              for name in STORMS})
CASES.update({
    "the captain stopped": lambda: stalled(0, []),
    "a follower stopped, a spare": lambda: stalled(1, ["--spares", "1"]),
    "a kill after every write of the captain": lambda: points(0),
    "a kill after every write of a follower": lambda: points(1),
    "a kill after every write of the captain, a spare": lambda: points(0, "--spares", "1"),
})

run_cases(CASES, sys.argv[2:])
