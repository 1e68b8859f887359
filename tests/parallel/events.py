#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""--on-event: a command is run for each event of a run, once, with one process or several workers.

Usage: events.py TRIREME CUT_WRITE [CASE...]"""
import errno
import os
import re
import shutil
import signal
import sys

from runs import (done, end, events, need, pid_at_work, run_cases, start, text_of, trireme,
                  wait_for, wait_for_steps)

CUT_WRITE = os.path.abspath(sys.argv[2])
TELL = ('echo "$TRIREME_EVENT worker=$TRIREME_WORKER step=$TRIREME_STEP code=$TRIREME_CODE'
        ' $TRIREME_MESSAGE" >>')
ENDLESS = "lenet5 --quiet --steps 100000000".split()


def told(name):
    return text_of(name).splitlines()


def death(place):
    """The death of any worker, also of the reporter; then the end of a run that is asked to end."""
    name = f"death-{place}"
    run = start("train", *ENDLESS, "-n", "2", "--out", name, "--on-event", f"{TELL}{name}.said")
    pid = pid_at_work(name, place)
    pid_at_work(name, 1 - place)
    os.kill(pid, signal.SIGKILL)
    wait_for(lambda: told(f"{name}.said"), "no event is reported")
    run.send_signal(signal.SIGTERM)
    end(run)
    lines = told(f"{name}.said")
    need(run.returncode == 3 and len(lines) == 2, f"exit {run.returncode}: {lines}")
    need(re.fullmatch(rf"death worker={place} step=\d+ code= worker {place} .pid {pid}., .*killed "
                      rf"by signal 9 .Killed.", lines[0]), lines[0])
    steps = re.search(r"steps=(\d+)", done(run)).group(1)
    need(lines[1] == f"end worker= step={steps} code=3 stopped after {steps} of 100000000 steps",
         lines[1])


def stall():
    run = start("train", *ENDLESS, "-n", "2", "--out", "stall", "--stall-timeout", "1",
                "--on-event", f"{TELL}stalled")
    pid = pid_at_work("stall", 1)
    os.kill(pid, signal.SIGSTOP)
    wait_for(lambda: len(told("stalled")) >= 2, "no event is reported")
    run.send_signal(signal.SIGTERM)
    end(run)
    lines = told("stalled")
    need(lines[-1].startswith("end "), f"{lines}")
    lines.sort()  # commands before the last one do not wait for each other
    need([line.split()[0] for line in lines] == ["death", "end", "stall"], f"{lines}")
    need(re.match(rf"stall worker=1 step=\d+ code= worker 1 .pid {pid}. makes no progress",
                  lines[2]), lines[2])


def save_failure():
    """The first of two checkpoints, then the last; with one process and with two workers."""
    words = "linear --optimizer momentum --batch 64 --lanes 4 --quiet --steps 4".split()
    words += ["--save-every", "2"]
    for more in ([], ["-n", "2"]):
        for at, code, step in ((5, 0, 2), (36, 1, 4)):
            shutil.rmtree("ck", ignore_errors=True)
            os.mkdir("ck")
            if os.path.exists("saves"):
                os.remove("saves")
            run = trireme("train", *words, *more, "--ckpt", os.path.abspath("ck"), "--on-event",
                          f"{TELL}saves",
                          env={"LD_PRELOAD": CUT_WRITE, "CUT_UNDER": os.path.abspath("ck"),
                               "CUT_AT": str(at),
                               "CUT_ERROR": str(errno.EIO)})
            lines = sorted(told("saves"))
            need(run.returncode == code and len(lines) == 2,
                 f"{more}: exit {run.returncode}: {run.err} {lines}")
            need(re.match(f"end worker= step=4 code={code} ", lines[0]), lines[0])
            need(re.fullmatch(rf"save-failure worker= step=\d code= the checkpoint of step {step} "
                              "failed: .*Input/output error", lines[1]), lines[1])
            need(f"the checkpoint of step {step} failed" in run.err, run.err)


def ends():
    """Every way to end has its exit code; a command that fails does no harm; its output is not
    mixed with the run's."""
    words = "lenet5 --quiet --steps 5".split()
    plain = done(trireme("train", *words))
    for more in ([], ["-n", "2"]):
        run = trireme("train", *words, *more, "--out", "ends", "--on-event", "echo noise; exit 7")
        need(run.returncode == 0 and done(run) == plain and run.out.count("\n") == 1, run.out)
        need("noise" in run.err and "--on-event, end: the command exited with 7" in run.err,
             run.err)
        need(not more or [e["about"] for e in events("ends", "on-event")] == ["end"],
             "agent.log does not tell")
        run = trireme("train", *words, *more, "--max-time", "0.001", "--on-event", f"{TELL}late")
        need(run.returncode == 3
             and re.match(r"end worker= step=\d+ code=3 stopped after \d+ of 5 steps",
                                              told("late")[-1]), f"{told('late')}")
    run = trireme("train", *words, "-n", "2", "--load", "nowhere", "--on-event", f"{TELL}refused")
    need(run.returncode == 1 and re.match("end worker= step=0 code=1 ", told("refused")[-1]),
         f"{told('refused')}")


def not_waited_for():
    """Steps continue while a command runs."""
    run = start("train", *ENDLESS, "-n", "2", "--out", "slow", "--on-event",
                'echo "$TRIREME_EVENT" >>slow.said; [ $TRIREME_EVENT = end ] || while [ ! -e go ]; '
                'do sleep 0.01; done')
    os.kill(pid_at_work("slow", 1), signal.SIGKILL)
    wait_for(lambda: told("slow.said"), "no event is reported")
    wait_for_steps("slow", 10)
    open("go", "w").close()
    run.send_signal(signal.SIGTERM)
    end(run)
    need(run.returncode == 3 and told("slow.said") == ["death", "end"],
         f"{run.returncode}, {told('slow.said')}")


run_cases({
    "a worker dies": lambda: death(1),
    "the reporter dies": lambda: death(0),
    "a worker is stopped": stall,
    "a checkpoint cannot be written": save_failure,
    "every end": ends,
    "steps do not wait for commands": not_waited_for,
}, sys.argv[3:])
