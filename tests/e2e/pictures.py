#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Pictures for tests: DIR/SPLIT/CLASS/N.png, each class of a colour, with some noise.

Usage: pictures.py DIR CLASSES NUMBER SIZE [SPLIT...]
       pictures.py idx DIR GREY: writes the pictures of DIR as idx files of luminances"""
import os
import random
import struct
import sys
import zlib


def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png(path, size, colour, drawn):
    rows = b"".join(b"\0" + bytes(min(255, max(0, c + drawn.randrange(-30, 31)))
                                  for _ in range(size) for c in colour)
                    for _ in range(size))
    with open(path, "wb") as f:
        f.write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", size, size, 8, 2, 0,
                                                                  0, 0)) +
                chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))


def main(directory, classes, number, size, *splits):
    for split in splits or ("train", "val"):
        drawn = random.Random(split)
        for k in range(int(classes)):
            folder = f"{directory}/{split}/class{k}"
            os.makedirs(folder)
            colour = [60 + 130 * (k >> bit & 1) for bit in range(3)]
            for i in range(int(number)):
                png(f"{folder}/{i}.png", int(size), colour, drawn)


def luminances(path, size):
    """The luminances of a PNG that png() wrote."""
    data = open(path, "rb").read()
    at = data.index(b"IDAT")
    rows = zlib.decompress(data[at + 4:at + 4 + struct.unpack(">I", data[at - 4:at])[0]])
    pixels = [rows[y * (3 * size + 1) + 1 + 3 * x:][:3] for y in range(size) for x in range(size)]
    return bytes(19595 * r + 38470 * g + 7471 * b + 32768 >> 16 for r, g, b in pixels)


def write_idx(source, target):
    os.makedirs(target)
    for split, name in (("train", "train"), ("val", "t10k")):
        files = [(k, f"{source}/{split}/{c}/{i}") for k,
                 c in enumerate(sorted(os.listdir(f"{source}/{split}")))
                 for i in os.listdir(f"{source}/{split}/{c}")]
        size = struct.unpack(">I", open(files[0][1], "rb").read()[16:20])[0]
        with open(f"{target}/{name}-images-idx3-ubyte", "wb") as f:
            f.write(struct.pack(">IIII", 0x803, len(files), size, size))
            f.write(b"".join(luminances(path, size) for _, path in files))
        with open(f"{target}/{name}-labels-idx1-ubyte", "wb") as f:
            f.write(struct.pack(">II", 0x801, len(files)) + bytes(k for k, _ in files))


if sys.argv[1] == "idx":
    write_idx(*sys.argv[2:])
else:
    main(*sys.argv[1:])
