# SPDX-License-Identifier: Apache-2.0
"""Makes a profile as a run of two workers with two threads records it: make.py DIR SPANS. It has
steps and lanes, operators in scopes, moves, sums, and waits for the other worker."""
import json
import os
import pathlib
import random
import re
import struct
import sys

SPAN = struct.Struct("<qqiIhHBbH")
CHUNK = 5000
NOBODY = 0xFFFF
SPEND = pathlib.Path(__file__).parents[2] / "src/crew/spend.h"
SPENT = re.findall(r"^    X\((\w+),", SPEND.read_text(), re.M)
COMPUTE, SUM, OPEN, WAIT_LANES, WAIT_SEATS = map(
    SPENT.index, ["COMPUTE", "SUM", "OPEN", "WAIT_LANES", "WAIT_SEATS"])
OPERATOR, LANE, STEP = 64, 65, 66  # src/crew/spans.h
LANES, OPERATORS = 4, 40


def items():
    yield {"version": 1, "steps": [1, 1], "rate": {"f32": 1e11}, "bandwidth": 2e10}
    for i in range(OPERATORS):
        yield {"operator": ["conv2d", "relu", "matmul", "all_gather"][i % 4],
               "unit": ["conv2d+relu", "relu", "matmul", "all_gather"][i % 4],
               "name": f"layer{i // 10}.{i // 5 % 2}.node{i}", "phase": "lane",
               "scope": f"layer{i // 10}/{i // 5 % 2}", "stage": 0, "flops": 1000 * i,
               "bytes": 100 * i, "live": 5 * i, "move": "rows" if i % 4 == 3 else None,
               "in": ["f32[8,3,32,32]"], "out": ["f32[8,16,32,32]"]}
    yield {"operator": "add", "name": "sums", "phase": "sum", "bucket": 0, "bytes": 4096}


def worker_thread(number, spans):
    """The spans of one thread, in the order of their ends; times in nanoseconds."""
    draw = random.Random(number)
    now, step, made = 10**15 + number * 137, 0, 0
    other = (number + 2) % 4

    def span(kind, begin, end, item=-1, lane=-1, whom=NOBODY):
        return SPAN.pack(begin, end, item, step, lane, whom, kind, -1, 0)

    while made < spans:
        step += 1
        opened = now
        yield span(OPEN, now, now := now + draw.randrange(1, 2000))
        for lane in range(number * LANES, (number + 1) * LANES):
            begin = computing = now
            for item in range(OPERATORS):
                now += draw.randrange(100)
                yield span(OPERATOR, now, now := now + draw.randrange(20000), item, lane)
                if item % 20 == 9:
                    yield span(COMPUTE, computing, now)
                    yield span(WAIT_SEATS, now, now := now + draw.randrange(3000), -1, lane, other)
                    computing = now
            yield span(COMPUTE, computing, now)
            yield span(OPERATOR, now + 10, now + 300, OPERATORS, lane)
            yield span(SUM, now, now := now + 500)
            yield span(LANE, begin, now := now + 5, lane=lane)
        yield span(WAIT_LANES, now, now := now + draw.randrange(50000), whom=other)
        made += 2 + LANES * (OPERATORS + 8)
        if number == 0:
            yield span(STEP, opened, now)


def checked(spans):
    """span_check: sums of 64 bits, and base_check of them and the number of spans."""
    mask, a, b = 2**64 - 1, 0, 0
    for word in struct.unpack(f"<{len(spans) // 8}Q", spans):
        a = (a + word) & mask
        b = (b + a) & mask
    h = 24
    for word in (a, b, len(spans) // SPAN.size):
        h = (h ^ word) * 0x9E3779B97F4A7C15 & mask
        h ^= h >> 32
    return h & 0xFFFFFFFF


def write(directory, spans):
    folder = os.path.join(directory, "profile", "1")
    os.makedirs(folder)
    with open(os.path.join(folder, "items.jsonl"), "w", encoding="utf-8") as file:
        file.writelines(json.dumps(item) + "\n" for item in items())
    for number in range(4):
        with open(os.path.join(folder, f"spans-{number // 2}-{number % 2}.bin"), "wb") as file:
            file.write(struct.pack("<QIIiiHHHHqqqQ", 0x534E415053495254, 1, SPAN.size,
                                   100 + number // 2, 200 + number, number // 2, number % 2, 0, 2,
                                   1, 10**6, 0, 0))
            all_spans = list(worker_thread(number, spans // 4))
            for i in range(0, len(all_spans), CHUNK):
                chunk = b"".join(all_spans[i:i + CHUNK])
                file.write(struct.pack("<IIQ", len(chunk) // SPAN.size, checked(chunk), 0) + chunk)


if __name__ == "__main__":
    write(sys.argv[1], int(sys.argv[2]))
