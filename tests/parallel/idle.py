#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How long the tracks of a pipeline wait: operators that sleep take the same time on any machine,
so the waiting time is that of theory, within 2 points.

Usage: idle.py PROGRAM NAPS [PART OF A CASE'S NAME ...]"""
import os
import re
import subprocess
import sys

from runs import SLOW, need, run_cases

PROGRAM, NAPS = map(os.path.realpath, sys.argv[1:3])
NAP = 40  # milliseconds
CASES = [(tracks, lanes, pipeline) for tracks in ((2, 3, 4) if SLOW else (2,))
         for lanes in ((tracks, 2 * tracks) if SLOW else (4,))
         for pipeline in ("1f1b", "gpipe", "interleaved", "zero-bubble")]


def step_time(tracks, stages, lanes, pipeline, weights):
    """Milliseconds."""
    command = [PROGRAM, "run", "-n", str(tracks), "--", NAPS, "--lanes", str(lanes), "--pipeline",
               pipeline, "--steal", "never"]
    env = dict(os.environ, NAP=str(NAP), STAGES=str(stages), WEIGHTS=str(int(weights)))
    run = subprocess.run(command, env=env, capture_output=True, text=True, timeout=300)
    found = re.search(r"^step ([0-9.]+) ms$", run.stdout, re.M)
    need(found, f"{command}:\n{run.stdout}\n{run.stderr}")
    return float(found[1])


def waits(tracks, lanes, pipeline):
    chunks = 2 if pipeline == "interleaved" else 1
    weights = pipeline == "zero-bubble"
    legs = (3 if weights else 2) * chunks * lanes  # of a track
    theory = (tracks - 1) / ((3 * lanes if weights else chunks * lanes) + tracks - 1)
    for _ in range(8):  # another process may be in the way
        idle = 1 - legs * NAP / step_time(tracks, tracks * chunks, lanes, pipeline, weights)
        if abs(idle - theory) <= 0.02:
            break
    need(abs(idle - theory) <= 0.02, f"waits {idle:.3f} of the time, by theory {theory:.3f}")
    return f"{100 * idle:.1f} %, by theory {100 * theory:.1f} %"


run_cases({f"{pipeline}, {tracks} tracks, {lanes} lanes":
           lambda case=(tracks, lanes, pipeline): waits(*case)
           for tracks, lanes, pipeline in CASES}, sys.argv[3:])
