#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs in which something is wrong: `trireme report` names it first, and where its advice can be
followed, at least half of the cost that it named is gained. A run in which other processes took
over 3 % of the cores is repeated, five times at most; with BUSY=1 it counts, and what is
provoked need not come first.

Usage: provoke.py PROGRAM SLOW_PARTS [PART OF A CASE'S NAME ...]"""
import contextlib
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

from others import Others

PROGRAM, SLOW_PARTS = map(os.path.realpath, sys.argv[1:3])
LENET = ["train", "lenet5", "-n", "2", "--lanes", "8"]
TRIES = 5
BUSY = "BUSY" in os.environ


class Busy(Exception):
    """Others took the cores."""


def need(good, why):
    if not good:
        raise AssertionError(why)


def agent_events(out, name):
    path = pathlib.Path(out, "agent.log")
    lines = path.read_text().splitlines() if path.exists() else []
    events = [json.loads(line) for line in lines if line.endswith("}")]
    return [e for e in events if e["event"] == name]


def until(condition, run):
    end = time.monotonic() + 20
    while run.poll() is None and time.monotonic() < end:
        if found := condition():
            return found
        time.sleep(0.01)
    need(False, "the run ended before it was disturbed")


@contextlib.contextmanager
def spinner(core):
    """A process that takes a core as often as it gets it."""
    process = subprocess.Popen([sys.executable, "-c", "while True: pass"],
                               preexec_fn=lambda: os.sched_setaffinity(0, {core}))
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def start(arguments, out, env):
    command = [PROGRAM, *(word.replace("OUT", out) for word in arguments)]
    if "--" in command:
        command[command.index("--"):command.index("--")] = ["--out", out]
    else:
        command += ["--out", out, "--quiet"]
    return subprocess.Popen(command, env=dict(os.environ, **env), stdout=subprocess.DEVNULL,
                            stderr=subprocess.PIPE, text=True)


def one(arguments, env=None, disturb=None):
    """The report of such a run, and seconds per step."""
    out = tempfile.mkdtemp(dir=".")
    others = Others()
    with start(arguments, out, env or {}) as run:
        with (disturb(out, run) if disturb else contextlib.nullcontext()):
            said = run.communicate(timeout=120)[1]
        need(run.returncode == 0, f"{arguments}: exit code {run.returncode}: {said}")
    part = others.part()
    answer = subprocess.run([PROGRAM, "report", out, "--json"], capture_output=True, text=True,
                            check=True)
    report = json.loads(answer.stdout)
    text = subprocess.run([PROGRAM, "report", out], capture_output=True, text=True, check=True)
    shutil.rmtree(out)
    if part > Others.MOST and not BUSY:
        raise Busy(f"others took {100 * part:.0f} % of the cores")
    return report, text.stdout


def quiet(*arguments, **more):
    for left in reversed(range(TRIES)):
        try:
            return one(*arguments, **more)
        except Busy as e:
            if not left:
                raise AssertionError(f"{e}, {TRIES} times") from None


def rules(report):
    return [f["rule"] for f in report["findings"]]


def seconds(report):
    return report["seconds"] / report["last"]


def provoked(rule, arguments, effects=(), says="", clean=None, env=None, disturb=None,
             follow=None):
    """clean: arguments with which the rule is silent; follow: arguments from the remedy."""
    report, text = quiet(arguments, env=env, disturb=disturb)
    first = [f["rule"] for f in report["findings"] if not f["effect_of"]]
    need(rule in rules(report) if BUSY else first[:1] == [rule], text)
    for effect in effects:
        need(BUSY or effect in rules(report), f"no {effect}: {text}")
    need(re.search(says, " ".join(text.split())), f"'{says}' is not in: {text}")
    if clean and not (BUSY and rule == "shared-core"):
        need(rule not in rules(quiet(clean)[0]), "it is not silent in a clean run")
    if follow:
        found = next(f for f in report["findings"] if f["rule"] == rule)
        other = follow(found["remedy"])
        gained = 1 - seconds(quiet(other, env=env)[0]) / seconds(report)
        text = f"{' '.join(other)}\ngained {gained:.2f}, cost {found['cost']:.2f}\n{text}"
        need(BUSY or gained >= found["cost"] / 2, text)
    return "\n".join(text.split("\n")[:10])


def option(flag, value, arguments):
    """These arguments, with another value of the flag."""
    at = arguments.index(flag)
    return [*arguments[:at + 1], value, *arguments[at + 2:]]


def number(flag, remedy):
    return re.search(rf"{flag} (\d+)", remedy)[1]


@contextlib.contextmanager
def core_of_worker_1(out, run):
    log = pathlib.Path(out, "worker-1.log")
    until(lambda: log.exists() and '"first-step"' in log.read_text(), run)
    core = json.loads(log.read_text().splitlines()[0])["core"]
    with spinner(core):
        yield


@contextlib.contextmanager
def later(out, run):
    with contextlib.ExitStack() as stack:
        timer = threading.Timer(3, lambda: stack.enter_context(spinner(0)))
        timer.start()
        yield
        timer.cancel()
        timer.join()


@contextlib.contextmanager
def killer(out, run):
    for n in range(5):
        pid = until(lambda: len(agent_events(out, "start")) > n and
                    agent_events(out, "start")[-1]["pid"], run)
        time.sleep(0.1)
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    yield


@contextlib.contextmanager
def stopper(out, run):
    pids = until(lambda: len(agent_events(out, "rowing")) > 1 and
                 [e["pid"] for e in agent_events(out, "start")], run)
    with contextlib.suppress(ProcessLookupError):
        while run.poll() is None:
            for pid in pids:
                os.kill(pid, signal.SIGSTOP)
                time.sleep(0.01)
                os.kill(pid, signal.SIGCONT)
                time.sleep(0.002)
    yield


def own(n, *options):
    return ["run", "-n", n, "--", SLOW_PARTS, "--lanes", "8", "--steps", "300", "--quiet", *options]


def profiled(words, steps=400):
    """A run of which steps in its last third are recorded."""
    return ["train", *words.split(), "--steps", str(steps), "--profile",
            f"steps={steps - 40}..{steps - 20}"]


def bubble(words):
    """Waits for legs take as much of the time of legs as explain --measure says."""
    shares = quiet(profiled(f"{words} -n 2", 100))[0]["shares"]
    found = shares["legs"] / (shares["legs"] + shares["compute"])
    answer = subprocess.run([PROGRAM, "explain", *words.split(), "--measure", "--json"],
                            capture_output=True, text=True, check=True)
    expected = json.loads(answer.stdout)["pipeline"]["waiting_measured"]
    text = f"waits for legs {100 * found:.1f} %, explain --measure {100 * expected:.1f} %"
    need(BUSY or abs(found - expected) < 0.03, text)
    return text


SUMS = profiled("mlp:hidden=64 -n 2 --lanes 32 --bucket 1", 2000)
LANES = profiled("lenet5 -n 2 --lanes 64")
WIDE = profiled("cnn:width=64 --batch 64 -n 2 --lanes 64", 60)
UNEVEN = ["train", "lenet5", "-n", "2", "--lanes", "3", "--batch", "66", "--steps", "600"]
SAVES = [*LENET, "--steps", "300", "--ckpt", "OUT/ck", "--save-every", "1"]
LINEAR = ["train", "linear", "-n", "2", "--batch", "16", "--steps", "200000"]
NAPS = own("2", "--data-threads", "1")
CASES = {
    "shared-core": lambda: provoked(
        "shared-core", [*LENET, "--steps", "2000"], ["slow-worker"], r"pid \d+, ran for",
        clean=[*LENET, "--steps", "1000"], disturb=core_of_worker_1),
    "drift": lambda: provoked("shared-core", [*LENET, "--steps", "4000"], ["drift"], "since step",
                              disturb=later),
    "samples": lambda: provoked(
        "samples", NAPS, env={"READ": "400"}, clean=own("2"),
        follow=lambda remedy: option("--data-threads", number("--data-threads", remedy), NAPS)),
    "saving": lambda: provoked(
        "saving", SAVES, clean=[*LENET, "--steps", "600"],
        follow=lambda remedy: option("--save-every", number("--save-every", remedy), SAVES)),
    "callback": lambda: provoked("callback", own("2"), env={"CALL": "3000"}, clean=own("2")),
    "uneven-lanes": lambda: provoked(
        "uneven-lanes", UNEVEN, clean=option("--lanes", "6", UNEVEN),
        follow=lambda remedy: option("--lanes", number("--lanes", remedy), UNEVEN)),
    "not-worth-it": lambda: provoked(
        "not-worth-it", LINEAR, follow=lambda remedy: option("-n", "1", LINEAR)),
    "goodput": lambda: provoked("goodput", option("-n", "1", [*LENET, "--steps", "600"]),
                                says="deaths of workers", disturb=killer),
    "crowded": lambda: provoked("crowded", [*LENET, "--threads", "2", "--steps", "600"]),
    "evaluating": lambda: provoked(
        "evaluating", [*LENET, "--steps", "20", "--eval-data", "synthetic", "--eval-every", "1"]),
    "auditing": lambda: provoked("auditing", [*LENET, "--steps", "600", "--audit", "1"]),
    "lost-lanes": lambda: provoked("lost-lanes", option("--lanes", "2", [*LENET, "--steps", "600"]),
                                   disturb=stopper),
    "small-sums": lambda: provoked(
        "small-sums", SUMS, clean=profiled("mlp:hidden=64 -n 2 --lanes 32", 2000),
        follow=lambda remedy: profiled("mlp:hidden=64 -n 2 --lanes 32", 2000)
        if "Leave out --bucket 1" in remedy else SUMS),
    "small-lanes": lambda: provoked(
        "small-lanes", LANES, clean=profiled("lenet5 -n 2"),
        follow=lambda remedy: option("--lanes", number("--lanes", remedy), LANES)),
    "uneven-stages": lambda: provoked(
        "uneven-stages", profiled("gpt2-tiny:seq=16 -n 2 --stages 2 --batch 8 --lanes 8", 60),
        ["bubble"], clean=profiled("lenet5 -n 2")),
    "bubble": lambda: provoked(
        "bubble", profiled("resnet18:form=small,size=32,classes=10,width=16 -n 2 --stages 2"
                           " --lanes 2 --batch 32", 60), clean=profiled("lenet5 -n 2")),
    "slow-split": lambda: provoked(
        "slow-split", profiled("lenet5 -n 2 --lanes 2 --batch 256 --mesh model=2"
                               " --strategy channels", 100), clean=profiled("lenet5 -n 2")),
    "low-rate": lambda: provoked(
        "low-rate", profiled("lenet5 --batch 1 --threads 1", 4000),
        clean=profiled("lenet5 -n 2")),
    "seats": lambda: provoked(
        "seats", profiled("bert-tiny:seq=16,vocab=400 -n 2 --batch 4 --lanes 2 --mesh model=2"
                          " --strategy megatron", 200), clean=profiled("lenet5 -n 2")),
    "unfused": lambda: provoked(
        "unfused", profiled("mlp:hidden=1024 -n 2 --lanes 2 --passes=-fuse", 100),
        clean=profiled("mlp:hidden=1024 -n 2 --lanes 2", 100)),
    "waits of a pipeline": lambda: bubble(
        "resnet18:form=small,size=32,classes=10 --stages 2 --batch 16 --lanes 8"),
    "wide-lanes": lambda: provoked(
        "small-lanes", WIDE, clean=option("--lanes", "2", WIDE),
        follow=lambda remedy: option("--lanes", number("--lanes", remedy), WIDE)),
    "not-finite": lambda: provoked(
        "not-finite", ["train", "lenet5", "--steps", "20", "--lr", "1e30", "--on-nan", "warn"]),
}


def main():
    failed = 0
    with tempfile.TemporaryDirectory() as work:
        os.chdir(work)
        for name, case in CASES.items():
            if sys.argv[3:] and not any(part in name for part in sys.argv[3:]):
                continue
            try:
                print(f"ok {name}", case(), sep="\n", flush=True)
            except (AssertionError, subprocess.SubprocessError) as e:
                failed += 1
                print(f"not ok {name}: {e}", flush=True)
    sys.exit(bool(failed))


main()
