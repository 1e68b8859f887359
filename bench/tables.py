# SPDX-License-Identifier: Apache-2.0
"""What the benchmarks print: tables in Markdown, the machine they ran on, progress on stderr."""
import os
import statistics
import sys
import time

from sides import cores, limits


def progress(text):
    print(f"  {time.strftime('%H:%M:%S')} {text}", file=sys.stderr, flush=True)


def spread(values, form="{:.2f}", unit=""):
    """The median, the lowest and the highest."""
    found = min(values), statistics.median(values), max(values)
    low, middle, high = map(form.format, found)
    return f"**{middle}{unit}** ({low} to {high})"


def amount(x):
    return f"{x:,.0f}" if x >= 1000 else f"{x:.3g}"


def machine():
    """Its processor and cores, and what TRIREME_ISA limits."""
    with open("/proc/cpuinfo") as f:
        names = [line.split(":")[1].strip() for line in f if line.startswith("model name")]
    name = names[0] if names else os.uname().machine
    isa = os.environ.get("TRIREME_ISA")
    alone = "" if limits() else ", which limits Trireme alone"
    return (f"{name}, {cores()} core{'s' * (cores() > 1)}" +
            (f", TRIREME_ISA={isa}{alone}" if isa else ""))


def print_table(head, rows):
    """In Markdown, with aligned columns."""
    if not rows:
        return
    rows = [head, *([*r, *[""] * (len(head) - len(r))] for r in rows)]
    width = [max(len(r[i]) for r in rows) for i in range(len(head))]
    rows.insert(1, ["-" * w for w in width])
    for row in rows:
        print("| " + " | ".join(c.ljust(w) for c, w in zip(row, width)) + " |")
    print()
