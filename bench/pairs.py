# SPDX-License-Identifier: Apache-2.0
"""make bench-pairs OLD=PROGRAM: how fast this build trains against another program, such as that of
an earlier commit. Each round runs both, in turns; the table has the median of the rounds' ratios,
lowest and highest. Above 1 this build is faster.

Usage: pairs.py BUILD OLD [--rows ROW,ROW...] [--rounds N]"""
import argparse
import re
import statistics
import subprocess
import sys
import tempfile

from tables import machine, print_table, progress, spread

LEAST = 0.98  # a median below is slower
# Words of `train`; long enough that the start of a run does not count.
ROWS = {
    "resnet50": "resnet50 --batch 8 --steps 3",
    "bert-base": "bert-base:seq=128 --batch 4 --steps 3",
    "lenet5": "lenet5 --steps 2000",
    "lenet5-2": "lenet5 --steps 2000 -n 2",
    "mlp-2": "mlp --steps 1500 -n 2",
    "resnet18-2": "resnet18:size=32 --batch 64 --steps 12 -n 2",
    "mesh-2": "gpt2-tiny:seq=128 --batch 8 --steps 12 --mesh model=2 --strategy megatron -n 2",
    "stages-2": "gpt2-tiny:seq=128 --batch 8 --lanes 8 --steps 12 --stages 2 -n 2",
}


def seconds(program, words):
    with tempfile.TemporaryDirectory() as out:
        done = subprocess.run([program, "train", *words.split(), "--data", "synthetic", "--quiet",
                               "--out", out], capture_output=True, text=True, check=True).stdout
    return float(re.search(r" seconds=([0-9.]+)", done).group(1))


def main():
    p = argparse.ArgumentParser()
    p.add_argument("build")
    p.add_argument("old")
    p.add_argument("--rows", default=",".join(ROWS))
    p.add_argument("--rounds", type=int, default=9)
    a = p.parse_args()
    rows = a.rows.split(",")
    if unknown := [row for row in rows if row not in ROWS]:
        sys.exit(f"no row {unknown[0]}; there are: {', '.join(ROWS)}")
    new = f"{a.build}/src/trireme"
    table, slower = [], 0
    for row in rows:
        ratios = []
        for turn in range(a.rounds):
            took = {program: seconds(program, ROWS[row])
                    for program in ((new, a.old) if turn % 2 else (a.old, new))}
            ratios.append(took[a.old] / took[new])
        progress(f"{row}: {spread(ratios)}")
        slower += statistics.median(ratios) < LEAST
        table.append((f"`{ROWS[row]}`", spread(ratios)))
    print(f"On {machine()}; medians of {a.rounds} pairs:\n")
    print_table(("training", "times as fast as the other program"), table)
    if slower:
        sys.exit(f"{slower} of {len(rows)} rows are slower (below {LEAST})")


main()
