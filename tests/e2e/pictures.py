#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Pictures for tests: DIR/SPLIT/CLASS/N.png, each class of a colour, with some noise.

Usage: pictures.py DIR CLASSES NUMBER SIZE [SPLIT...]"""
import os
import random
import struct
import sys
import zlib


def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png(path, size, colour, drawn):
    rows = b"".join(b"\0" + bytes(min(255, max(0, c + drawn.randrange(-30, 31))) for _ in range(size) for c in colour)
                    for _ in range(size))
    with open(path, "wb") as f:
        f.write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", size, size, 8, 2, 0, 0, 0)) +
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


main(*sys.argv[1:])
