#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the directory of a run that never ran: run.json, metrics.jsonl and workers.series, as a run
of so many steps of 50 ms with so many workers would leave them.

Usage: make_run.py DIR [--steps N] [--workers N]

Its events, by which a test can tell what it reads: three tenths into the run a step takes 5 s, and
for the last four tenths worker 1 has no core for 30 % of the time, so that the others wait for its
lanes."""
import argparse
import json
import pathlib
import random
import re
import struct

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
STEP = 0.05  # seconds
SLOWEST = 5.0
BEGAN = 1_700_000_000  # seconds since 1970
ONE = 65535
MASK = (1 << 64) - 1
HEAD = struct.Struct("<qqqqqIHHHHI")  # struct series_frame
PAGE = struct.Struct("<QIIqqIIII")  # struct series_page, up to its text
VARIANTS = 64  # records of a kind of worker, which frames draw from

header = (ROOT / "src/observe/series.h").read_text()
KINDS = re.findall(r'^    X\(\w+, "([^"]+)"', (ROOT / "src/crew/spend.h").read_text(), re.M)
COUNTS = [("lanes-done", "sum"), ("lanes-lost", "sum"), ("memory-kib", "most")]
COLUMNS = [(kind, "share") for kind in [*KINDS, "no-core"]] + COUNTS


def constant(name):
    return int(re.search(rf"#define {name} (\w+)", header).group(1), 0)


def check(data):
    """base_check of src/base/base.c"""
    h = len(data)
    for word in struct.unpack(f"<{len(data) // 8}Q", data):
        h = (h ^ word) * 0x9e3779b97f4a7c15 & MASK
        h ^= h >> 32
    return h & 0xffffffff


def checked(data, at):
    """The data with its check, which is 0 so far."""
    return data[:at] + struct.pack("<I", check(data)) + data[at + 4:]


def record(steps, shares, lanes):
    """What a worker has done in so many steps; the rest of its time it computes."""
    part = dict(shares, compute=1 - sum(s for k, s in shares.items() if k != "no-core"))
    values = [round(part.get(name, 0) * ONE) for name in [*KINDS, "no-core"]]
    return struct.pack(f"<{len(values)}H3I", *values, lanes * steps, 0, 91_234)


def variants(steps, slow, waits):
    """Records of a worker: one without a core, one that waits for it, or neither."""
    def one():
        noise = random.random()
        if slow:
            return record(steps, {"no-core": 0.29 + 0.02 * noise, "sum": 0.02}, 1)
        lanes = 0.25 + 0.05 * noise if waits else 0.02 + 0.02 * noise
        return record(steps, {"lanes": lanes, "sum": 0.03, "update": 0.02, "read": 0.01,
                              "samples": 0.002 * noise}, 1)
    return [one() for _ in range(VARIANTS)]


def write_series(path, steps, workers, before=0):
    """before: steps that the run had done when the file began"""
    at, lines = 0, []
    for name, kind in COLUMNS:
        lines.append(f"{name} {kind} {at}\n")
        at += 2 if kind == "share" else 4
    size = (HEAD.size + workers * at + 7) // 8 * 8
    capacity = min(constant("SERIES_FRAMES"), constant("SERIES_BYTES") // size)
    each = 1  # steps of a frame
    while -(-steps // each) > capacity:
        each *= 2
    fields = [constant("SERIES_MAGIC"), constant("SERIES_VERSION"), 0, BEGAN * 10**9,
              constant("SERIES_PERIOD") * each, size, at, workers, capacity]
    page = (PAGE.pack(*fields) + "".join(lines).encode()).ljust(constant("SERIES_PAGE"), b"\0")
    usual, slow, waits = (variants(each, s, w) for s, w in ((0, 0), (1, 0), (0, 1)))
    with open(path, "wb") as f:
        f.write(checked(page, 12))
        time = 0
        for first in range(1, steps + 1, each):
            last = min(first + each - 1, steps)
            has_slowest = first <= slowest_step(steps) <= last
            late = last > slow_from(steps)
            covers = round((STEP * (last - first + 1) + has_slowest * (SLOWEST - STEP)) * 1e9)
            time += covers
            worst = (round(SLOWEST * 1e9), slowest_step(steps)) if has_slowest else (
                round(STEP * 1.1e9), first)
            head = HEAD.pack(before + last, time, covers, *worst, last - first + 1, 0, 0, 0, 0, 0)
            place = random.choices(waits if late else usual, k=workers)
            if late and workers > 1:
                place[1] = random.choice(slow)
            frame = (head + b"".join(place)).ljust(size, b"\0")
            f.write(checked(frame, HEAD.size - 4))


def slowest_step(steps):
    return max(1, steps * 3 // 10)


def slow_from(steps):
    return steps * 6 // 10


def seconds_of(steps, step):
    return STEP * step + (SLOWEST - STEP) * (step >= slowest_step(steps))


def write_metrics(path, steps):
    with open(path, "w") as f:
        for step in range(1, steps + 1):
            loss = 2.3 * 100 / (100 + step) + 0.01 * random.random()
            top1 = random.randrange(48, 64) / 64
            f.write(f'{{"step":{step},"epoch":{step // 1000},"samples":64,"loss":{loss:.6f},'
                    f'"top1":{top1:.4g},"top5":1.0,"lr":0.01,'
                    f'"seconds":{seconds_of(steps, step):.2f}}}\n')


def write_run(path, steps, workers):
    end = BEGAN + seconds_of(steps, steps)
    entry = {"host": "h0", "pid": 71, "process_start": 8123, "begin": BEGAN, "end": end, "first": 1,
             "last": steps, "exit": 0}
    totals = [{"worker": w, "compute": 0.9 * (end - BEGAN), "lanes": 0.1 * (end - BEGAN)}
              for w in range(workers)]
    run = {"format": 1, "version": "0.1.0", "title": "made up", "command": ["trireme", "train"],
           "cores": workers, "workers": workers, "threads": 1, "hosts": ["h0"], "options": {},
           "plan": None, "grain": None, "placement": None, "device": "cpu", "isa": "avx2",
           "steps": steps, "lanes": workers, "batch": 64, "parameters": 44426,
           "predicted_step": None, "entries": [entry], "totals": totals, "deaths": 0, "stalls": 0,
           "takeovers": 0, "faults": []}
    path.touch(0o600)
    path.write_text(json.dumps(run, separators=(",", ":")) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("directory", type=pathlib.Path)
    parser.add_argument("--steps", type=int, default=1_000_000)
    parser.add_argument("--workers", type=int, default=64)
    o = parser.parse_args()
    random.seed(1)
    o.directory.mkdir(parents=True, exist_ok=True)
    write_run(o.directory / "run.json", o.steps, o.workers)
    write_metrics(o.directory / "metrics.jsonl", o.steps)
    write_series(o.directory / "workers.series", o.steps, o.workers)


if __name__ == "__main__":
    main()
