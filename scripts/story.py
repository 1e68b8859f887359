#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Two stories of docs/profiling.md. A run of two workers that spends much of each step on
communication: what `trireme report` says, and what is left after the remedy that it names. A run
beside a process that takes a core.

Usage: story.py BUILD"""
import json
import os
import shutil
import subprocess
import sys
import tempfile

PROGRAM = os.path.abspath(os.path.join(sys.argv[1], "src/trireme"))
NET = "mlp:hidden=64 --batch 64 -n 2"
SLOW, STEPS = "--lanes 32 --bucket 1", 3000
LINES = 16  # of a report are shown


def train(options, out):
    words = ["train", *NET.split(), *options.split(), "--steps", str(STEPS), "--out", out,
             "--profile", f"steps={STEPS // 2}..{STEPS // 2 + 20}", "--quiet"]
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


def first(work):
    os.chdir(work)
    train(SLOW, "slow")
    text, before = report("slow")
    if "Leave out --bucket 1" not in " ".join(text.split()):
        sys.exit("story: the report does not name the bucket")
    print("\nAs it says, without --bucket 1\n")
    train(SLOW.replace(" --bucket 1", ""), "better")
    after = report("better", 8)[1]
    print(f"\nCommunication: {100 * before['communication']:.0f} % of a step before, "
          f"{100 * after['communication']:.0f} % after")


def second():
    print("\nBeside a process that takes core 1\n")
    spinner = subprocess.Popen([sys.executable, "-c", "while True: pass"],
                               preexec_fn=lambda: os.sched_setaffinity(0, {1}))
    try:
        train("--lanes 32", "shared")
    finally:
        spinner.kill()
        spinner.wait()
    report("shared", 12)


if __name__ == "__main__":
    WORK = tempfile.mkdtemp(prefix="story")
    try:
        first(WORK)
        second()
    finally:
        shutil.rmtree(WORK)
