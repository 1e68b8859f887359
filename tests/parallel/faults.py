#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Failures that end a run and failures that it survives: kills, faults and hangs at one place,
memory limits.

Usage: faults.py TRIREME OWN_LOOP [CASE...]

With SLOW=1 there are more kills."""
import collections
import contextlib
import os
import re
import signal
import sys
import time

from runs import (PROGRAM, SLOW, done, end, events, fresh, need, run_cases, start, text_of, trireme,
                  wait_for)

OWN_LOOP = os.path.abspath(sys.argv[2])  # tests/parallel/own_loop.c


KILLS = 100 if SLOW else 10


# ---- deaths at one place ----

def own_loop(mode, times, *more, workers=2, path=None):
    """The own loop with a failure that occurs so many times; and the result of a loop without
    failures."""
    words = [OWN_LOOP, "--lanes", "4", "--steps", "30", "--quiet"]
    alone = end(start(*words[1:], program=OWN_LOOP))
    need(re.fullmatch("weights [0-9a-f]{64}\n", alone.out), alone.out + alone.err)
    fresh("own", "ck")
    with open("die", "wb") as f:
        f.truncate(times)
    begin = start if not path else lambda *words, **more: start_in(path, PROGRAM, *words, **more)
    run = end(begin("run", "-n", str(workers), "--out", "own", *more, "--", *words, "--ckpt", "ck",
                    env={"TEST_MODE": mode, "TEST_DIE": os.path.abspath("die")}))
    return run, alone.out, os.path.getsize("die")


def ended(run, code, *said):
    """The run ended with this exit code and these messages."""
    well = run.returncode == code and all(re.search(pattern, run.err) for pattern in said)
    need(well, f"exit {run.returncode}, not {code} with {said}: {run.out}{run.err[-1500:]}")


def went_on(run, plain, left, *said):
    ended(run, 0, *said)
    need(run.out == plain, f"{run.out}without any: {plain}{run.err[-1500:]}")
    need(not left, f"it has not happened {left} times: {run.err[-1500:]}")


def saved_step_12():
    need(sorted(os.listdir("ck"))[-1] == "step-000000012", f"{os.listdir('ck')}")


THERE = "three workers have died there; the run ends"
SAVED = " after its last step is saved"


def kills_of_own(mode, times):
    """Every worker that gets there is killed, so many times; the run survives."""
    went_on(*own_loop(mode, times), "three workers were killed in step [0-9]+, .*: the run goes on")
    deaths = len(events("own", "death"))
    # a run that starts over reports only one of them
    need(deaths >= times // 2, f"{deaths} deaths")


def kills_without_end():
    run, _, _ = own_loop("killed", 1100)
    ended(run, 1, "1000 workers were killed in step 13; the run ends" + SAVED)
    saved_step_12()


def start_up():
    """The same rule: three faults end the run, kills do not."""
    run, _, _ = own_loop("never", 0)
    ended(run, 1, THERE + "\n")
    need(len(events("own", "death")) == 3, f"{len(events('own', 'death'))} deaths")
    kills_of_own("early", KILLS)
    if SLOW:
        run, _, _ = own_loop("early", 2500)
        ended(run, 1, "1000 workers were killed in step 0; the run ends\n")


def shared_memory(pid):
    """KiB that the process has touched."""
    size = re.search("RssShmem:\\s+([0-9]+)", text_of(f"/proc/{pid}/status"))
    return int(size.group(1)) if size else 0


def killed_as_it_draws():
    """The workers draw the initial values together and wait for each other. If one dies meanwhile,
    the others draw its share; if the reporter dies, all begin again."""
    words = "mlp:hidden=4096,layers=2 --batch 2 --lanes 2 --steps 1 --quiet".split()
    plain = done(trireme("train", *words))
    for place in (1, 0):
        fresh("draws")
        run = start("train", *words, "-n", "2", "--out", "draws")

        wait_for(lambda: len(events("draws", "start")) == 2, "no workers")
        pid = [e["pid"] for e in events("draws", "start") if e["worker"] == place][0]
        wait_for(lambda: shared_memory(pid) > 10000, f"worker {place} draws nothing")
        os.kill(pid, signal.SIGSTOP)
        time.sleep(1)  # the other one draws all but what this one has begun
        os.kill(pid, signal.SIGKILL)
        need(done(end(run)) == plain, f"{done(run)}\nnobody killed: {plain}\n{run.err}")
        need(len(events("draws", "death")) == 1, run.err)


def killed_as_it_starts():
    """A worker that is killed again and again before its first step is restarted; the others
    continue."""
    run = start("train", "lenet5", "--steps", "100000000", "-n", "2", "--quiet", "--out", "late")
    wait_for(lambda: len(events("late", "rowing")) >= 2, "no worker takes part")

    def starts():
        return [e["pid"] for e in events("late", "start") if e["worker"] == 1]

    for n in range(1, 13):
        os.kill(starts()[-1], signal.SIGKILL)
        wait_for(lambda: len(starts()) > n, f"it is not started again after {n} kills")
    run.send_signal(signal.SIGTERM)
    ended(end(run), 3)


def hang():
    """An operator that never returns: three stalls there end the run; the completed steps are
    saved."""
    run, _, _ = own_loop("hang", 0, "--stall-timeout", "1")
    ended(run, 1, THERE + SAVED)
    saved_step_12()


def lost_thread():
    """A thread ends by itself there, while the process lives on: a fault, not a kill."""
    for threads in ("1", "2"):
        run, _, _ = own_loop("gone", 0, "--threads-per-worker", threads)
        ended(run, 1, THERE + SAVED, "a thread that computes has ended while the run is open")
        # The thread may be in the callback or the next lane, and the other worker there at the
        # same time.
        deaths = len(events("own", "death"))
        need(3 <= deaths <= 2 * 2 + 2, f"{deaths} deaths")
        saved_step_12()


def stops():
    """Stopped there by a signal, four times: detected and killed; not counted as faults."""
    went_on(*own_loop("stops", 4, "--stall-timeout", "1"))
    need(len(events("own", "stall")) >= 4, f"{len(events('own', 'stall'))} stalls")


# ---- kills while checkpoints are written ----

FILES = (".part-", "model.safetensors", "optimizer.safetensors") if SLOW else (".part-",)


def writers():
    """The processes that are writing checkpoints, and the files that exist so far."""
    found = {}
    with contextlib.suppress(OSError):
        for name in os.listdir("ck"):
            if name.startswith(".part-"):
                found[int(name[6:])] = [".part-", *os.listdir(f"ck/{name}")]
    return found


def kills_in_saves():
    """The process that writes the checkpoint is killed as soon as it has begun; in the long form
    at each of the files. The last file exists so briefly that it may be missed."""
    words = "gpt2-tiny:seq=32,vocab=50257 --batch 4 --quiet --steps 3".split()
    words += ["--optimizer", "adam"] * SLOW
    plain = done(trireme("train", *words))
    fresh("save", "ck")
    run = start("train", *words, "-n", "2", "--out", "save", "--ckpt", "ck")
    killed, met = set(), collections.Counter()
    kills = 100 if SLOW else 4
    while len(killed) < kills + 10 * SLOW and run.poll() is None:
        wanted = FILES[len(killed) % len(FILES)] if len(killed) < kills else "state.json"
        for pid, files in writers().items():
            if pid not in killed and wanted in files:
                os.kill(pid, signal.SIGKILL)
                killed.add(pid)
                met[wanted] += 1
        time.sleep(0.001)
    end(run)
    ended(run, 0)
    need(done(run) == plain, f"after {len(killed)} kills {done(run)}, without any {plain}")
    need(len(killed) >= kills, f"{len(killed)} kills")
    need(trireme("ckpt", "verify", "ck").returncode == 0 and not writers(), f"{os.listdir('ck')}")
    return ", ".join(f"{n} at {name}" for name, n in met.items())


# ---- control groups ----

# By version: the controller in /proc/self/cgroup, possible mount points of the hierarchy, the files
# of a limit.
MEMORY = {1: ("memory", ["/sys/fs/cgroup/memory"],
              ["memory.limit_in_bytes", "memory.memsw.limit_in_bytes"]),
          2: ("", ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"], ["memory.max", "memory.swap.max"])}
CPU = {1: ("cpu", ["/sys/fs/cgroup/cpu"], ["cpu.cfs_quota_us"]),
       2: ("", ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"], ["cpu.max"])}


class CannotMake(Exception):
    pass


def parents_of_groups(controller, mounts):
    """This process's own group first; version 2 may refuse groups there, but not further up."""
    for line in open("/proc/self/cgroup"):
        _, controllers, path = line.rstrip("\n").split(":", 2)
        if controller not in controllers.split(",") or (not controller and controllers):
            continue
        for mount in mounts:
            while True:
                if os.path.isdir(mount + path):
                    yield mount + path
                if path in ("", "/"):
                    break
                path = os.path.dirname(path)


def remove_group(path):
    until = time.time() + 10
    while os.path.isdir(path) and time.time() < until:
        with contextlib.suppress(OSError):
            os.rmdir(path)
        time.sleep(0.01)


@contextlib.contextmanager
def group(kinds, version, *values):
    """Makes a control group with these limits, and within it a group without limits, which is
    the result."""
    controller, mounts, files = kinds[version]
    for parent in parents_of_groups(controller, mounts):
        made = f"{parent.rstrip('/')}/trireme-test-{os.getpid()}"
        inner = made + "/inner"
        try:
            os.makedirs(inner)
            for file, value in zip(files, values):
                with contextlib.suppress(FileNotFoundError if file != files[0] else ()):
                    with open(f"{made}/{file}", "r+") as f:
                        f.write(str(value))
        except OSError:
            remove_group(inner)
            remove_group(made)
            continue
        try:
            yield inner
        finally:
            remove_group(inner)
            remove_group(made)
        return
    raise CannotMake(f"no control group of version {version} with {files[0]} can be made here")


def start_in(path, *words, **more):
    """Starts a process in that group from its first instruction on."""
    return start("-c", 'echo $$ >"$0/cgroup.procs" && exec "$@"', path, *words, program="/bin/sh",
                 **more)


def skippable(case):
    """Skips a case that cannot make control groups."""
    def run():
        try:
            return case()
        except CannotMake as why:
            return f"skipped: {why}"
    return run


def memory_limit(version):
    """A limit of a parent group: it counts in the plan, and a run that does not fit is refused."""
    with group(MEMORY, version, 64 << 20, 64 << 20 if version == 1 else 0) as path:
        plan = end(start_in(path, PROGRAM, "memory", "mlp"))
        run = end(start_in(path, PROGRAM, "train", "mlp", "--steps", "1"))
    need(" of 64 MiB, the limit of the cgroup" in plan.out and plan.returncode == 1,
         plan.out + plan.err)
    need(run.returncode == 2 and " of 64 MiB, the limit of the cgroup" in run.err,
         f"exit {run.returncode}: {run.err}")


def cpu_limit(version):
    """As many threads as whole cores."""
    with group(CPU, version, 80000 if version == 1 else "80000 100000") as path:
        plan = end(start_in(path, PROGRAM, "memory", "lenet5"))
    need(", threads 1\n" in plan.out, plan.out + plan.err)


def no_memory(version):
    """Kills for lack of memory: two at one place are survived; three without a completed step
    end the run."""
    with group(MEMORY, version, 300 << 20, 300 << 20 if version == 1 else 0) as path:
        if SLOW:
            run, *more = own_loop("hog", 2, path=path)
            went_on(run, *more)
            need(run.err.count("killed by signal 9 (Killed) for lack of memory") == 2, run.err)
        run, _, _ = own_loop("hog", 100, path=path)
    ended(run, 1, "three workers were killed for lack of memory: "
          "the limit of the cgroup is 300.0 MiB, the plan is [0-9.]+ MiB; fewer workers, .*" +
          SAVED)
    saved_step_12()


CASES = {
    "kills at one place": lambda: kills_of_own("killed", KILLS),
    "kills of whoever computes lane 0": lambda: kills_of_own("lane", KILLS),
    "kills as checkpoints are written": kills_in_saves,
    "deaths at start-up": start_up,
    "deaths as initial values are drawn": killed_as_it_draws,
    "kills of one that comes later": killed_as_it_starts,
    "a hang that recurs": hang,
    "stops that recur": stops,
    "a thread that ends": lost_thread,
}
if SLOW:
    CASES["kills without end"] = kills_without_end
for v in MEMORY:
    CASES[f"no memory, cgroup v{v}"] = skippable(lambda v=v: no_memory(v))
    CASES[f"limit of memory, cgroup v{v}"] = skippable(lambda v=v: memory_limit(v))
    CASES[f"limit of cores, cgroup v{v}"] = skippable(lambda v=v: cpu_limit(v))

run_cases(CASES, sys.argv[3:], ("deaths as initial values are drawn", "stops that recur"))
