#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Pipelines: one hash per grain, for any stages, schedule, number of workers, threads and spares,
for any buckets and resumptions, and after any deaths.

Usage: stages.py PROGRAM [PART OF A CASE'S NAME ...]

KILLS=N: the number of kills over all storms (24; with SLOW=1 300).
PAIRS=N: how often the number of workers changes to 1 and back after a kill (3; with SLOW=1 60)."""
import itertools
import os
import random
import re
import signal
import sys
import time

from runs import (HAS_POINTS, SLOW, children, done, end, events, fresh, need, pid_at_work,
                  run_cases, start, step_of, trireme, wait_for)
from storms import (KILLS, RESUMES, at_work, check_hash, check_rows, cover, points, reference,
                    seconds_of, stalled, storm, strike, without_steps)

PAIRS = int(os.environ.get("PAIRS", "60" if SLOW else "3"))
SMALL = "--batch 8 --quiet"
NETS = {"gpt2": f"gpt2-tiny:seq=16,vocab=103,heads=8,layers=8 --steps 10 {SMALL}",
        "bert": f"bert-tiny:seq=16,vocab=103,heads=8,layers=8,predictions=3 --steps 10 {SMALL}",
        "resnet18": f"resnet18:form=small,size=32,width=8,classes=10 --steps 10 {SMALL}",
        "resnet50": f"resnet50:form=small,size=16,width=8,classes=10 --steps 5 {SMALL}"}
RECOMPUTED = {"gpt2": "*.h.[0-5]", "bert": "*.layer.[3-7]", "resnet18": "layer[12]*",
              "resnet50": "layer[23]*"}
STRATEGY = {"gpt2": "megatron", "bert": "megatron-sp", "resnet18": "channels",
            "resnet50": "channels"}


def grain(net, lanes, precision="", mesh=False):
    """What decides the bits."""
    words = f"{NETS[net]} --lanes {lanes} {precision}"
    if mesh:
        words += f" --mesh model=2 --strategy {STRATEGY[net]}"
        words += " --conv direct" * net.startswith("resnet")
    return words


# ---- one hash per grain ----

FACTORS = {
    "net": list(NETS), "stages": [1, 2, 4, 8],
    "pipeline": ["1f1b", "gpipe", "zero-bubble", "interleaved", "interleaved --chunks 4"],
    "steal": ["late", "never"], "n": list(range(1, 9)), "lanes": [1, 2, 3, 4, 8],
    "precision": ["", "--amp O1", "--amp O2 --loss-scale 128",
                  "--amp O3 --loss-scale dynamic:start=256,every=5"],
    "mesh": [False, True], "threads": [1, 2], "spares": [0, 1], "recompute": [False, True],
    "bucket": ["1", "20K", "1G"], "zero": [0, 1, 2, 3],
    "data": ["", "--data synthetic:size=20 --tail keep"],  # with it, every third step is smaller
    "resumes": RESUMES, "audit": ["", "--audit 0.5", "--audit 1"]}


def allowed(row):
    """Whether the schedule exists; a smaller step has 4 samples."""
    lanes = [row["lanes"], *([min(row["lanes"], 4)] if row["data"] else [])]
    if row["bucket"] != "1G" and row["zero"] < 2:  # no buckets
        return False
    if row["audit"] and (row["resumes"] or row["n"] + row["spares"] * (not row["mesh"]) < 2 or
                         (row["mesh"] and row["n"] < 3)):  # nobody to audit
        return False
    if row["stages"] == 1:
        return row["pipeline"] == "1f1b" and row["steal"] == "late"
    if row["pipeline"] == "zero-bubble":
        return min(lanes) >= row["stages"]
    if not row["pipeline"].startswith("interleaved"):
        return True
    chunks = 4 if row["pipeline"].endswith("4") else 2
    tracks = row["stages"] // chunks
    return tracks > 0 and row["stages"] % chunks == 0 and all(n % tracks == 0 for n in lanes)


def check(row):
    """A run's hash is that of one process without stages. Returns how many workers took part."""
    net = row["net"]
    words = f"{grain(net, row['lanes'], row['precision'], row['mesh'])} {row['data']}"
    wanted = reference(words)
    words += f" --zero {row['zero']} --stages {row['stages']}"
    words += f" --bucket {row['bucket']}" * (row["zero"] > 1)
    if row["stages"] > 1:
        words += f" --pipeline {row['pipeline']} --steal {row['steal']}"
    words += f" --recompute {RECOMPUTED[net]}" * row["recompute"]
    workers = f"--threads-per-worker {row['threads']} --spares {row['spares']} {row['audit']}"
    return check_hash(words, wanted, row["n"], workers, row["resumes"])


def one_hash():
    if SLOW:
        groups = [*itertools.combinations(FACTORS, 2)]
    else:  # nearly each value, and all schedules with several stages
        groups = [*((name,) for name in FACTORS), ("stages", "pipeline")]
    return check_rows(cover(FACTORS, groups, allowed)[:150 if SLOW else 8], check)


def one_process():
    """Its threads compute the legs."""
    for words in ("--stages 2 --pipeline gpipe --threads 2", "--stages 4 --threads 3",
                  "--stages 4 --pipeline zero-bubble --threads 2",
                  "--stages 8 --pipeline interleaved --threads 3"):
        for net in NETS:
            run = trireme("train", *f"{grain(net, 4)} {words}".split())
            need(done(run) == reference(grain(net, 4)), f"{net} {words}")


# ---- deaths ----

# the grain, the stages and what belongs to them, and the options of the workers
STORMS = {
    "two stages": (("gpt2", 4), "--stages 2 --bucket 1", "-n 2"),
    "four stages, a spare": (("bert", 8), "--stages 4 --bucket 20K", "-n 4 --spares 1"),
    "three workers, a mesh": (("gpt2", 3, "--amp O1", True), "--stages 2", "-n 3"),
    "audited": (("gpt2", 4), "--stages 2 --bucket 20K", "-n 2 --spares 1 --audit 1"),
    "a mesh, audited": (("gpt2", 3, "", True), "--stages 2 --steal never", "-n 4 --audit 0.5"),
    "2 x 2 x 2": (("gpt2", 4, "", True), "--stages 2 --bucket 20K", "-n 8"),
    "zero-bubble": (("resnet18", 4), "--stages 2 --pipeline zero-bubble --bucket 1",
                    "-n 2 --threads-per-worker 2"),
}


def storm_words(name):
    """The words of one process, and what is added for workers."""
    words, stages, workers = STORMS[name]
    more = f"{stages} {workers}".split()
    return seconds_of(grain(*words), 2 if SLOW else 1, stages.split()), more


def neighbours(pids):
    """Of two ranks that follow each other, one of which hands over to the other."""
    first = random.randrange(len(pids))
    return [pid for rank, pid in pids.items() if rank in (first, (first + 1) % len(pids))]


def a_lane_fails():
    """The other legs of the lane are given up, and the run ends, whichever thread sees it first."""
    words = "mlp:layers=6,hidden=32 --batch 32 --lanes 4 --stages 4 --lr 1e30 --steps 20 --quiet"
    for workers in ("--threads 4", "--threads 2", "-n 4"):
        for _ in range(50 if SLOW else 5):
            run = trireme("train", *words.split(), *workers.split())
            need(run.returncode == 1 and "loss" in run.err, f"{workers}: {run.out} {run.err}")


def audits():
    """All legs of a lane are computed twice; in builds with points one worker lies and is caught.
    A leg that both have computed cannot be audited."""
    words = "lenet5 --batch 8 --lanes 4 --steps 10 --quiet".split()
    plain = reference(" ".join(words))
    for more in ("--stages 2 -n 1 --spares 1", "--stages 4 -n 2 --pipeline zero-bubble",
                 "--stages 4 -n 3 --pipeline interleaved --threads-per-worker 2"):
        run = trireme("train", *words, *more.split(), "--audit", "1")
        need(done(run) == plain, f"{more}: another result")
        said = re.search(r"audit: (\d+) legs were computed twice", run.err)
        need(said and int(said[1]) > 0, f"{more}: {run.err}")
    if HAS_POINTS:
        run = trireme("train", *words, *"--stages 2 -n 2 --audit 1".split(),
                      env={"TRIREME_LIE": "1:7"})
        need(run.returncode == 1 and
             re.search(r"step 7: audit: .*worker 1 .*lane \d [FB]\d, and \S+ differs", run.err),
             f"exit {run.returncode}: {run.err}")


def stays_stopped():
    """Another worker computes the legs of one that a signal has stopped, long before the agent
    kills it. If it makes a sum or updates parameters, the others wait, so it is stopped again
    until they went on twice."""
    words = [*without_steps(grain("resnet18", 8)), "--stages", "2", "-n", "2"]
    fresh("stay")
    run = start("train", *words, "--steps", "100000", "--stall-timeout", "100", "--out", "stay")
    wait_for(lambda: events("stay", "rowing"), "no worker takes part")
    went_on = stops = 0
    while went_on < 2 and stops < 10:
        stops += 1
        wait_for(lambda first=step_of("stay"): step_of("stay") > first + 5, "no steps")
        pid = [at_work("stay")[1]]
        os.kill(pid[0], signal.SIGSTOP)
        time.sleep(0.5)
        before = step_of("stay")
        time.sleep(1)
        went_on += step_of("stay") > before
        os.kill(pid[0], signal.SIGCONT)
    run.send_signal(signal.SIGINT)
    end(run)
    need(not events("stay", "death"), "a worker has died")
    need(went_on >= 2, f"steps went on {went_on} times of {stops}")
    return f"{went_on} times of {stops}"


WORDS = ("gpt2-tiny:seq=32,layers=3,hidden=48,heads=4,inner=96,vocab=256,positions=32,dropout=0.1 "
         "--data text:text.txt --batch 16 --lanes 8 --optimizer adamw --mesh model=2 "
         "--strategy megatron --stages 2 --quiet")


def scale(run, n, waits):
    """Asks for n workers; waits: until they are there and steps go on."""
    before = trireme("ctl", "scaled", "scale", str(n))
    need(before.returncode == 0, before.err)
    if waits:
        wait_for(lambda: run.poll() is not None or len(children(run.pid)) == n, "not as many")
        go_on(run, 2)


def steps_done():
    """Of the run that is scaled, by the last whole line of its metrics."""
    with open("scaled/metrics.jsonl", "rb") as f:
        f.seek(max(0, os.path.getsize("scaled/metrics.jsonl") - 8000))
        return int(re.findall(rb'{"step":(\d+),.*\n', f.read())[-1])


def go_on(run, steps):
    """Until so many steps more are done, or the run has ended."""
    wanted = steps_done() + steps
    wait_for(lambda: run.poll() is not None or steps_done() >= wanted, "no step is done")


def kill_and_scale(run):
    """Any worker is killed, and before the agent knows it the number changes."""
    strike([random.choice(children(run.pid))], signal.SIGKILL)
    time.sleep(random.uniform(0, 0.003))
    scale(run, 1, False)
    time.sleep(random.uniform(0, random.choice((0.02, 0.3))))


def lead_and_scale(run):
    """The reporter is killed. The next one follows a captain, which then loses its rank."""
    reporters = [e["worker"] for e in events("scaled", "reporter")]
    strike([pid_at_work("scaled", reporters[-1] if reporters else 0)], signal.SIGKILL)
    time.sleep(0.1)
    wait_for(lambda: run.poll() is not None or len(children(run.pid)) == 5, "not as many")
    go_on(run, 5)
    scale(run, 1, True)


def scaled(pairs):
    """Returns how many steps the run had."""
    fresh("scaled")
    run = start("train", *WORDS.split(), "--steps", "1000000", "-n", "5", "--out", "scaled")
    wait_for(lambda: len(events("scaled", "rowing")) >= 3, "no worker takes part")
    for i in range(pairs):
        (lead_and_scale if i % 3 == 2 else kill_and_scale)(run)
        scale(run, 5, False)
        go_on(run, 2)
        if run.poll() is not None:
            break
    run.send_signal(signal.SIGINT)
    end(run)
    need(run.returncode == 3, f"exit {run.returncode} after {i + 1} pairs: {run.err[-1500:]}")
    need("waited for each other" not in run.err, run.err[-1500:])
    steps = re.search(r"done steps=(\d+)", run.out).group(1)
    wanted = done(trireme("train", *WORDS.split(), "--steps", steps))
    need(done(run) == wanted, f"{done(run)}\nalone:\n{wanted}")
    return int(steps)


def scaled_after_kills():
    """A worker dies, then all but one leave and others join: no step stands still."""
    with open("text.txt", "w") as f:
        f.write(" ".join("".join(random.choices("abcdefghijkl", k=random.randint(2, 8)))
                         for _ in range(30000)))
    steps = sum(scaled(min(100, PAIRS - i)) for i in range(0, PAIRS, 100))
    return f"{PAIRS} pairs, {steps} steps"


def legs_are_named():
    """In `top`, and when a worker dies."""
    words = [*without_steps(grain("bert", 8)), "--stages", "2", "-n", "2"]
    fresh("named")
    run = start("train", *words, "--steps", "100000", "--out", "named")
    leg = r"lane \d [FBW][01]"

    def killed_in_a_leg():
        row = re.search(rf"^ *\d+ +\d+\*? +(\d+) .*{leg}", trireme("top", "named", "--once").out,
                        re.M)
        if row:
            strike([int(row.group(1))], signal.SIGKILL)
        return any(re.search(leg + ", operator", e["text"]) for e in events("named", "death"))

    wait_for(killed_in_a_leg, "no leg is named")
    run.send_signal(signal.SIGINT)
    end(run)


def stalled_at(place, *more, name="two stages"):
    words, workers = storm_words(name)
    stalled(words, [*workers, *more], place)


def points_of(place, mesh="", workers="2"):
    words = f"mlp:hidden=64 --batch 64 --steps 12 --lanes 2 --quiet --optimizer adam {mesh}".split()
    return points(words, f"-n {workers} --stages 2 --bucket 1".split(), place)


CASES = {"one hash per grain": one_hash, "one process": one_process,
         "a lane fails": a_lane_fails, "audits": audits}
CASES.update({f"deaths: {name}": (lambda name=name: storm(*storm_words(name),
                                                          -(-KILLS // len(STORMS)), neighbours))
              for name in STORMS})
CASES.update({
    "the first stopped": lambda: stalled_at(0),
    "the second stopped, never steals": lambda: stalled_at(1, "--steal", "never"),
    "the second stopped, a spare": lambda: stalled_at(1, "--spares", "1"),
    "legs are named": legs_are_named,
    "scaled after kills": scaled_after_kills,
    "one of 2 x 2 x 2 stopped": lambda: stalled_at(1, name="2 x 2 x 2"),
    "goes on beside a stopped worker": stays_stopped,
    "a kill after every write of the first": lambda: points_of(0),
    "a kill after every write of the second": lambda: points_of(1),
    "a kill after every write of a captain": lambda: points_of(
        0, "--mesh model=2 --strategy channels", "4"),
    "a kill after every write, audited": lambda: points_of(1, workers="2 --audit 1"),
})

run_cases(CASES, sys.argv[2:],
          ("deaths: two stages", "deaths: three workers, a mesh", "the first stopped",
           "the second stopped, a spare", "the second stopped, never steals",
           "deaths: zero-bubble", "deaths: a mesh, audited", "deaths: four stages, a spare",
           "scaled after kills"))
