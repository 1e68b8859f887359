#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs whose checkpoints cannot be written: every call fails or is the last one, a full disk.

Usage: storage.py TRIREME CUT_WRITE OWN_LOOP [CASE...]"""
import errno
import os
import re
import shutil
import signal
import sys

from runs import (PROGRAM, done, end, folders, fresh, length_for, need, run_cases, start, trireme,
                  wait_for)

CUT_WRITE, OWN_LOOP = map(os.path.abspath, sys.argv[2:4])


def cuts(words, **env):
    """The run with the N-th call that changes the checkpoint directory cut, for N = 1, 2, 3 ...
    until there are no more calls."""
    for n in range(1, 1000):
        fresh()
        run = trireme("train", *words, "--ckpt", os.path.abspath("ck"), "--save-every", "2",
                      "--keep", "1",
                      env={"LD_PRELOAD": CUT_WRITE, "CUT_UNDER": os.path.abspath("ck"),
                           "CUT_AT": str(n), **env})
        yield n, run
    raise Exception("it never ends")


def cut_off():
    """kill -9 at every call that changes the checkpoint directory."""
    words = "linear --optimizer momentum --steps 4 --quiet".split()
    plain = done(trireme("train", *words))
    for n, run in cuts(words):
        if run.returncode == 0:
            need(n > 30 and done(run) == plain, f"{n} calls, {run.out}")
            return f"{n - 1} kills"
        need(run.returncode == -signal.SIGKILL, f"call {n}: exit {run.returncode}: {run.err}")
        again = trireme("train", *words, "--ckpt", "ck", "--keep", "1", "--resume")
        need(done(again) == plain,
             f"killed at call {n}: {done(again)}, in one go {plain}; {again.err}")
        need(n < 25 or re.search("resumes from|nothing is left", again.err),
             f"killed at call {n}: what was saved before is lost: {again.err}")
        need(not [f for f in os.listdir("ck") if f.startswith(".")]
             and folders()[-1] == "step-000000004",
             f"killed at call {n}: {os.listdir('ck')}")


def fails_once():
    """Every such call fails once: the failure is reported, the run continues, and the last
    checkpoint decides the exit code."""
    words = "linear --optimizer momentum --steps 4 --quiet".split()
    plain = done(trireme("train", *words))
    failed = goes_on = 0
    for n, run in cuts(words, CUT_ERROR=str(errno.ENOSPC)):
        if run.returncode == 0 and not run.err:
            need(n > 30 and done(run) == plain, f"{n} calls, {run.out}")
            need(failed > 10 and goes_on > 10, f"{failed} ended with 1, {goes_on} with 0")
            return f"{n - 1} calls"
        need(run.returncode in (0, 1) and "No space left on device" in run.err,
             f"call {n}: {run.returncode}: {run.err}")
        if run.returncode:
            failed += 1
            need(n == 1 or "could not be written" in run.err, f"call {n}: {run.err}")
        else:
            goes_on += 1
            need(re.search("the checkpoint of step [0-9] (failed|is not removed)", run.err)
                 and done(run) == plain,
                 f"call {n}: {run.err}")
        again = trireme("train", *words, "--ckpt", "ck", "--resume")
        need(done(again) == plain, f"call {n}: {done(again)}, in one go {plain}")


def full():
    """A disk that is large enough for one checkpoint or for two: with --keep 1 the missing space
    is reported, and the last checkpoint stays; with --keep 2 the oldest one is removed first.
    When there is space again, the next checkpoint is written."""
    words = "mlp:hidden=512 --batch 16 --optimizer momentum --steps 6 --quiet".split()
    words += ["--save-every", "2", "--ckpt"]
    fresh()
    plain = trireme("train", *words, "ck", "--keep", "1")
    bytes_of_one = sum(os.path.getsize(f"ck/{folders()[0]}/{f}")
                       for f in os.listdir(f"ck/{folders()[0]}"))

    def run(room, keep, *more):
        return trireme("train", *words, os.path.abspath("ck"), "--keep", keep, *more,
                       env={"LD_PRELOAD": CUT_WRITE, "CUT_UNDER": os.path.abspath("ck"),
                            "CUT_ROOM": str(room)})

    def left():
        need(trireme("ckpt", "verify", "ck").returncode == 0, "damaged")
        return [int(f[5:]) for f in folders()], [f for f in os.listdir("ck") if f.startswith(".")]

    fresh()
    one = run(int(1.5 * bytes_of_one), "1")
    need(one.returncode == 1 and left() == ([2], []),
         f"exit {one.returncode}: {one.err} {os.listdir('ck')}")
    told = re.search("checkpoint of step 4 failed: .*No space left on device; ([0-9.]+) MiB "
                     "are free, and it needs ([0-9.]+) MiB: free another ([0-9.]+) MiB .the "
                     "previous one stays until",
                     one.err)
    need(told, one.err)
    room, takes, missing = map(float, told.groups())
    need(abs(takes - bytes_of_one / 2**20) < 0.2 and abs(takes - room - missing) < 0.2,
         f"{told.groups()}")
    os.mkdir("ck/.part-1")  # of a process that was killed
    shutil.copy("ck/step-000000002/model.safetensors", "ck/.part-1")
    again = run(int(2.5 * bytes_of_one), "1", "--resume")
    need(done(again) == done(plain) and left() == ([6], []), f"{again.err} {os.listdir('ck')}")
    fresh()
    two = run(int(2.5 * bytes_of_one), "2")
    need(done(two) == done(plain) and not two.err and left() == ([4, 6], []),
         f"{two.err} {os.listdir('ck')}")
    fresh()
    two = run(int(1.5 * bytes_of_one), "2")
    need(two.returncode == 1 and left() == ([2], []),
         f"exit {two.returncode}: {two.err} {os.listdir('ck')}")


def unwritable():
    """A checkpoint that cannot be written is reported, and the run continues; the last one
    decides."""
    words = "lenet5 --quiet".split()
    steps = length_for(words, 1.5)
    words += ["--steps", str(steps)]
    plain = done(trireme("train", *words))
    words += ["--ckpt", "ck", "--save-every", str(max(1, steps // 40))]
    for comes_back in (True, False):
        fresh()
        run = start("train", *words, "--on-event", "[ $TRIREME_EVENT = end ] || : >failed")
        wait_for(lambda: os.path.isdir("ck") and folders(), "no checkpoint")
        while not os.path.isfile("ck"):  # the run creates the directory again
            fresh()
            try:
                open("ck", "x").close()
            except FileExistsError:
                pass
        if comes_back:
            wait_for(lambda: os.path.exists("failed"), "no failure is reported")
            os.remove("ck")
            os.mkdir("ck")
        end(run)
        os.path.isfile("ck") and os.remove("ck")
        if comes_back:
            need(run.returncode == 0 and done(run) == plain, f"exit {run.returncode}: {run.err}")
            need(re.search("the checkpoint of step [0-9]+ failed", run.err), run.err)
        else:
            need(run.returncode == 1 and "could not be written" in run.err,
                 f"exit {run.returncode}: {run.err}")


def too_large():
    """More than the limit of a file's size (ulimit -f), in trireme and in a program with its own
    loop."""
    for limit, words in (("64", [PROGRAM, *"train lenet5 --quiet --steps 4".split()]),
                         ("1", [OWN_LOOP, "--steps", "4", "--quiet"])):
        fresh()
        run = start("-c", f'ulimit -f {limit}; exec "$@" 2>&1', "sh", *words, "--ckpt", "ck",
                    program="/bin/sh")
        end(run)
        need("could not be written: ck/" in run.out and "File too large" in run.out,
             f"{words}: {run.out}")


run_cases({
    "killed at every call": cut_off,
    "every call fails once": fails_once,
    "a full disk": full,
    "checkpoints that cannot be written": unwritable,
    "files too large": too_large,
}, sys.argv[4:])
