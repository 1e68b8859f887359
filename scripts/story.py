#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Two stories of docs/profiling.md. A run of two workers that spends much of each step on
communication: what `trireme report` says, and what is left after the remedy that it names. A run
beside a process that takes a core.

Usage: story.py BUILD"""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

PROGRAM = os.path.abspath(os.path.join(sys.argv[1], "src/trireme"))
LINES = 14  # of a report are shown


def train(words, out):
    words = ["train", *words.split(), "--out", out, "--quiet"]
    print("$ trireme " + " ".join(words), flush=True)
    subprocess.run([PROGRAM, *words], check=True, stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL)


def report(out, lines=LINES):
    print(f"$ trireme report {out}")
    text = subprocess.run([PROGRAM, "report", out], check=True, capture_output=True,
                          text=True).stdout
    print("\n".join(text.split("\n")[:lines]), flush=True)
    read = subprocess.run([PROGRAM, "report", out, "--json"], check=True, capture_output=True,
                          text=True).stdout
    return text, json.loads(read)


def first():
    slow = "cnn:width=64 -n 2 --lanes 64 --steps 100 --profile steps=60..80"
    train(slow, "slow")
    text, before = report("slow")
    advice = re.search(r"Use --lanes (\d+) instead of 64", " ".join(text.split()))
    if not advice:
        sys.exit("story: the report does not name fewer lanes")
    print("\nAs it says\n")
    train(slow.replace("--lanes 64", f"--lanes {advice[1]}"), "better")
    after = report("better", 6)[1]
    shares = [run["communication"] for run in (after, before)]
    times = [share * run["step"] for share, run in zip(shares, (after, before))]
    print("\nCommunication takes", " instead of ".join(
        f"{100 * share:.0f} % of a step, {1000 * time:.0f} ms," for share, time in
        zip(shares, times)).rstrip(",") + ".")
    if times[0] > times[1] / 2:
        sys.exit("story: the remedy removes less than half of it")


def second():
    print("\nBeside a process that takes core 1\n")
    spinner = subprocess.Popen([sys.executable, "-c", "while True: pass"],
                               preexec_fn=lambda: os.sched_setaffinity(0, {1}))
    try:
        train("lenet5 -n 2 --lanes 8 --steps 2000", "shared")
    finally:
        spinner.kill()
        spinner.wait()
    report("shared")


if __name__ == "__main__":
    WORK = tempfile.mkdtemp(prefix="story")
    os.chdir(WORK)
    try:
        first()
        second()
    finally:
        shutil.rmtree(WORK)
