# SPDX-License-Identifier: Apache-2.0
"""Shared by the scripts that compare many runs with a run by one process: covers of factors, and
storms of kills and stops."""
import itertools
import os
import random
import shutil
import signal
import time

from runs import (SLOW, children, done, end, events, folders, fresh, kill_after_writes, length_for,
                  need, start, text_of, trireme, wait_for)

REFERENCES = {}


def reference(words):
    """The last line of one process."""
    if words not in REFERENCES:
        REFERENCES[words] = done(trireme("train", *words.split()))
    return REFERENCES[words]


# ---- one hash per grain ----

def parts(row, groups):
    return {(g, tuple(row[name] for name in g)) for g in groups}


def cover(factors, groups, allowed=lambda row: True):
    """Rows in which each group of factors has all combinations of its values that an allowed row
    can have. Each row begins with a combination that is missing; the other values add as many as
    possible."""
    one = random.Random(3)
    missing = {(g, values): None for g in groups  # a set in a fixed order
               for values in itertools.product(*(factors[name] for name in g))}
    rows = []
    while missing:
        names, values = next(iter(missing))
        best, most, tries = None, -1, 0
        while tries < 60 or (not best and tries < 2000):
            row = {name: one.choice(v) for name, v in factors.items()} | dict(zip(names, values))
            tries += 1
            adds = sum(p in missing for p in parts(row, groups)) if allowed(row) else -1
            if adds > most:
                best, most = row, adds
        if not best:
            del missing[names, values]
            continue
        rows.append(best)
        for p in parts(best, groups):
            missing.pop(p, None)
    return rows


RESUMES = [None, "alone", "fewer", "more"]  # how many workers take the checkpoint


def others(resumes, n):
    """The number of workers that takes the checkpoint."""
    return {"fewer": max(1, n // 2), "more": n + 1}[resumes]


def took_part(directory):
    """How many workers have computed steps."""
    return sum("first-step" in open(f"{directory}/{name}").read()
               for name in os.listdir(directory) if name.startswith("worker-")
               and name.endswith(".log"))


def check_hash(words, wanted, n, workers, resumes):
    """A run by n workers with these options, perhaps from a checkpoint of other workers, ends as
    wanted. Returns how many workers took part."""
    workers += " --out o"
    fresh("o", "ck")
    if resumes:
        steps = int(words.split("--steps ")[1].split()[0])
        saves = f" --ckpt ck --save-every {steps * 2 // 5}"
        more = "" if resumes == "alone" else f"-n {others(resumes, n)} {workers}"
        first = trireme("train", *f"{words} {saves} {more}".split())
        need(done(first) == wanted, f"{first.args[2:]}:\n{done(first)}\nalone:\n{wanted}")
        shutil.rmtree("ck/" + folders()[-1])
        words += " --ckpt ck --resume"
        fresh("o")
    run = trireme("train", *f"{words} -n {n} {workers}".split())
    need(done(run) == wanted, f"{run.args[2:]}:\n{done(run)}\nalone:\n{wanted}")
    need(not resumes or "resumes from" in run.err, run.err)
    return took_part("o")


def check_rows(rows, check):
    """check(row) returns how many workers took part."""
    counts = [check(row) for row in rows]
    need(max(counts) > 3, f"no run has had several workers: {counts}")
    return f"{len(rows)} runs, {sum(c > 1 for c in counts)} by several workers"


# ---- deaths ----

KILLS = int(os.environ.get("KILLS", "300" if SLOW else "24"))  # over all storms


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


def victims(run, directory, group):
    """Any worker, the first, two of a group, or all: pids. group: makes a list of pids of the
    workers' pids by rank."""
    alive, pids = children(run.pid), at_work(directory)
    some = group(pids)
    chosen = random.choice([random.sample(alive, min(1, len(alive))), [pids[0]],
                            random.sample(some, min(2, len(some))), alive])
    return [pid for pid in chosen if pid in alive]


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


def without_steps(words):
    words = words.split()
    at = words.index("--steps")
    return words[:at] + words[at + 2:]


def seconds_of(words, seconds, more=()):
    """The words, with as many steps as take about that long with more options."""
    words = without_steps(words)
    return [*words, "--steps", str(length_for([*words, *more], seconds))]


def storm(words, workers, kills, group, stops=0.3):
    """Workers, with these options, are killed and stopped at random moments, in as many runs as
    that takes."""
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
            pids = victims(run, "storm", group)
            if random.random() < stops:
                stop(pids)
            else:
                killed += strike(pids, signal.SIGKILL)
        got = done(end(run))
        need(got == wanted, f"after {killed} kills:\n{got}\nalone:\n{wanted}\n{run.err[-1500:]}")
        need(runs <= kills, "the runs end too soon")
    return f"{killed} kills in {runs} runs"


def stalled(words, workers, place):
    """A worker that a signal has stopped for longer than the agent allows is killed."""
    wanted = done(trireme("train", *words))
    fresh("stall")
    run = start("train", *words, *workers, "--stall-timeout", "1", "--out", "stall")
    wait_for(lambda: "first-step" in text_of(f"stall/worker-{place}.log"), "it takes no part")
    os.kill(at_work("stall")[place], signal.SIGSTOP)
    need(done(end(run)) == wanted, "another result")
    told = events("stall", "stall")
    need([e["worker"] for e in told] == [place], f"{told}: {run.err}")


# ---- a kill after every write ----

def points(words, workers, place):
    wanted = done(trireme("train", *words))

    def look(run, n):
        need(run.returncode == 0, f"killed at point {n}: exit {run.returncode}\n{run.err}")
        got = done(run)
        need(got == wanted, f"killed at point {n}:\n{got}\nalone:\n{wanted}\n{run.err}")
    return kill_after_writes([*words, *workers], place, 17, look)
