#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the golden numbers in data/ with PyTorch (Debian's python3-torch; 1.13 was used):

    /usr/bin/python3 tests/golden/make.py

Inputs and parameters are not stored: both sides draw them by draw() below, which test_golden.c
repeats. PyTorch computes in float64 from these float32 values, so that a difference is an error of
ours alone; results are rounded to float32.

data/ops.safetensors: for each case of ops.py its outputs, and the derivative of
the sum over outputs k of sum(out * draw("CASE.dyK")) by each input of kind p. Metadata: the inputs.

data/models.safetensors: for each run of models.py the outputs in evaluation mode, the gradients of
the first step, the loss of each step, and parameters and running statistics after the last. Of
these tensors there are SAMPLES entries each, evenly spread, and two sums over all of them: the
norm, and the product with draw("NAME.probe") in [-1, 1).
"""
import json
import os
import struct

import numpy as np
import torch

DATA = os.path.join(os.path.dirname(os.path.abspath(__file__)), "data")
SAMPLES = 16


def draw(name, count, low=-1.0, high=1.0, first=0):
    """Numbers [first, first + count) of a sequence: FNV-1a of the name, then splitmix64."""
    key = 0xCBF29CE484222325
    for byte in name.encode():
        key = (key ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    with np.errstate(over="ignore"):
        z = np.uint64(key) + np.arange(first + 1, first + count + 1, dtype=np.uint64) * np.uint64(
            0x9E3779B97F4A7C15
        )
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        z = z ^ (z >> np.uint64(31))
    u = (z >> np.uint64(40)).astype(np.float64) * 2.0**-24
    return (low + (high - low) * u).astype(np.float32)


def draw_int(name, count, low, high, first=0):
    return np.floor(draw(name, count, low, high, first)).astype(np.int64)


def digest(name, tensor):
    """SAMPLES entries (fewer where there are fewer), the norm, the probe."""
    flat = tensor.detach().double().reshape(-1).numpy()
    n = min(SAMPLES, flat.size)
    samples = flat[[k * flat.size // n for k in range(n)]]
    probe = draw(name + ".probe", flat.size).astype(np.float64)
    return np.concatenate([samples, [np.sqrt((flat * flat).sum()), (flat * probe).sum()]])


def write(path, tensors, metadata):
    """safetensors: length of the header, the header in JSON, the data."""
    types = {np.dtype(np.float32): "F32", np.dtype(np.int64): "I64"}
    header, blob = {"__metadata__": metadata}, b""
    for name, value in tensors.items():
        value = np.ascontiguousarray(value)
        if value.dtype == np.float64:
            value = value.astype(np.float32)
        header[name] = {
            "dtype": types[value.dtype],
            "shape": list(value.shape),
            "data_offsets": [len(blob), len(blob) + value.nbytes],
        }
        blob += value.tobytes()
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + blob)
    print(f"{path}: {len(tensors)} tensors, {8 + len(text) + len(blob)} bytes")


if __name__ == "__main__":
    import models
    import ops

    torch.use_deterministic_algorithms(True)
    os.makedirs(DATA, exist_ok=True)
    write(os.path.join(DATA, "ops.safetensors"), *ops.make())
    write(os.path.join(DATA, "models.safetensors"), *models.make())
