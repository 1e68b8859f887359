#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The estimates of --wire topk:R, as checkpoints have them.

Usage: estimates.py TRIREME [CASE...]"""
import json
import math
import re
import shutil
import struct
import sys

from runs import done, folders, fresh, need, run_cases, trireme


def tensors(path):
    """The numbers of a file of f32 tensors, by name."""
    with open(path, "rb") as f:
        head = json.loads(f.read(struct.unpack("<Q", f.read(8))[0]))
        data = f.read()
    return {name: struct.unpack(f"<{(end - at) // 4}f", data[at:end])
            for name, (at, end) in ((name, about["data_offsets"]) for name, about in head.items()
                                    if name != "__metadata__")}


def first_estimates():
    """After a step each lane's estimate is its gradient where that is largest, and else zero."""
    def estimates(share):
        fresh("ck")
        run = trireme("train", *"mlp:hidden=8 --batch 8 --lanes 4 --quiet --ckpt ck --steps 1 "
                      "--wire".split(), f"topk:{share}")
        need(run.returncode == 0, run.err)
        return {name: numbers for name, numbers in
                tensors("ck/step-000000001/optimizer.safetensors").items() if ".wire." in name}

    gradients, rounded = estimates(0.9999999), estimates(0.05)
    need(len(gradients) == 12 and len(set(gradients.values())) == 12, f"{list(gradients)}")
    need(list(gradients) == list(rounded), f"{list(rounded)}")
    for name, all_of in gradients.items():
        kept = math.ceil(0.05 * len(all_of))
        order = sorted(range(len(all_of)), key=lambda i: (-abs(all_of[i]), i))[:kept]
        want = [0.0] * len(all_of)
        for i in order:
            want[i] = all_of[i]
        need(list(rounded[name]) == want, f"{name}: other numbers are kept")


def other_estimates():
    """Those of --wire topk begin with zeros if they would mean something else, and never stay."""
    words = "mlp:hidden=8 --batch 8 --quiet --ckpt ck".split()
    topk = ["--lanes", "4", "--wire", "topk:0.05"]
    zeros = "ck/step-000000004 was made with another --wire, --wire-nodes or --lanes: the estimates"

    def results(*more):
        return re.sub(r"state=.*", "", done(trireme("train", *words[:4], *more, "--steps", "8")))

    fresh("ck", "before")
    need(results(*topk[:2], "--wire", "topk:0.9999999") == results(*topk[:2]),
         "if all numbers are kept nothing is rounded")
    trireme("train", *words, *topk, "--steps", "4")
    plain = results(*topk)
    shutil.copytree("ck", "before")
    for more, said in (([], False), (["--wire", "topk:0.06"], True), (["--wire-nodes", "2"], True),
                       (["--lanes", "8"], True), (["--wire", "f32"], False)):
        shutil.rmtree("ck")
        shutil.copytree("before", "ck")
        run = trireme("train", *words, *topk, *more, "--steps", "8", "--resume")
        need(run.returncode == 0 and (zeros in run.err) == said, f"{more}: {run.err}")
        need((re.sub(r"state=.*", "", done(run)) == plain) == (not more), f"{more}: {run.out}")
    for wire in ("topk:0.05", "topk:0.06", "f32"):
        shutil.rmtree("ck")
        shutil.copytree("before", "ck")
        trireme("train", *words, *topk, "--wire", wire, "--steps", "5", "--resume")
        if wire == "f32":
            trireme("train", *words, *topk, "--steps", "6", "--resume")
        made = tensors(f"ck/{folders()[-1]}/optimizer.safetensors")
        more = [name for name, numbers in made.items() if ".wire." in name and
                sum(x != 0 for x in numbers) > math.ceil(0.06 * len(numbers))]
        need(bool(more) == (wire == "topk:0.05"), f"{wire}: not from zeros: {more}")


CASES = {"first": first_estimates, "others": other_estimates}

run_cases(CASES, sys.argv[2:])
