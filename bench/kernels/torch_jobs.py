# SPDX-License-Identifier: Apache-2.0
"""PyTorch's part of make bench-kernels: a process that reads jobs (bench/kernels/torch.c) from
stdin and answers each with a line. Convolutions are channels-last, which is fastest.

Usage: torch_jobs.py THREADS"""
import statistics
import sys
import time

import torch

TYPES = {"f32": torch.float32, "bf16": torch.bfloat16}


def product(kind, _, batch, m, n, k, trans_a, trans_b):
    def factor(rows, columns, transposed):
        lead = (batch,) if batch > 1 else ()
        shape = (columns, rows) if transposed else (rows, columns)
        x = torch.randn(*lead, *shape).to(kind)
        return x.transpose(-1, -2) if transposed else x

    a, b = factor(m, k, trans_a), factor(k, n, trans_b)
    return lambda: torch.matmul(a, b)


def conv(kind, direction, count, c, o, h, oh, size, stride, pad, groups):
    def tensor(*shape):
        return torch.randn(*shape).to(kind).to(memory_format=torch.channels_last)

    x, w, y = (tensor(count, c, h, h), tensor(o, c // groups, size, size),
               tensor(count, o, oh, oh))
    if direction == "y":
        return lambda: torch.conv2d(x, w, None, stride, pad, 1, groups)
    wanted = [direction == "dx", direction == "dw", False]
    return lambda: torch.ops.aten.convolution_backward(
        y, x, w, None, [stride] * 2, [pad] * 2, [1, 1], False, [0, 0], groups, wanted)


def measured(job, runs):
    times = []
    for _ in range(runs + 1):
        begin = time.perf_counter()
        job()
        times.append(time.perf_counter() - begin)
    return statistics.median(times[1:])


def main():
    torch.set_num_threads(int(sys.argv[1]))
    job = None
    with torch.no_grad():
        for line in sys.stdin:
            what, *words = line.split()
            if what == "run":
                print(f"{measured(job, int(words[0])):.6g}", flush=True)
                continue
            make = {"product": product, "conv": conv}[what]
            job = make(TYPES[words[0]], words[1], *map(int, words[2:]))
            print(0, flush=True)


main()
