#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Shows that two states of the tree compile to the same machine code: for commits that only rename
or rewrite comments. Builds both without line numbers and file names, then compares the code and
the constants of all object files, regardless of their names. Strings are left out, because CHECK
puts its condition into one.

Usage: same_code.py OLD [NEW] OLD, NEW: commits; NEW is the work tree if it is missing"""
import collections
import hashlib
import os
import struct
import subprocess
import sys
import tempfile

ARGS = "-g0 -w -D__LINE__=0 -D__FILE__=0"


def sections(path):
    """Name and content of each section of a 64-bit ELF file."""
    raw = open(path, "rb").read()
    offset, = struct.unpack_from("<Q", raw, 40)
    size, count, names = struct.unpack_from("<HHH", raw, 58)
    heads = [struct.unpack_from("<IIQQQQ", raw, offset + i * size) for i in range(count)]
    table = heads[names][4]
    for name, kind, _, _, at, length in heads:
        end = raw.index(b"\0", table + name)
        yield raw[table + name:end].decode(), raw[at:at + length] if kind != 8 else b""


def code_of(path):
    digest = hashlib.sha256()
    for name, content in sections(path):
        if name.startswith((".text", ".data", ".rodata")) and ".str" not in name and content:
            digest.update(name.split(".")[1].encode() + content)
    return digest.hexdigest()


def objects(tree, build):
    subprocess.run(["meson", "setup", build, tree, "--buildtype=plain", "-Dwerror=false",
                    "-Dc_args=-O2 " + ARGS], check=True, stdout=subprocess.DEVNULL)
    subprocess.run(["ninja", "-C", build, "src/trireme"], check=True, stdout=subprocess.DEVNULL)
    found = collections.defaultdict(list)
    for folder, _, files in os.walk(build):
        for name in files:
            if name.endswith(".o"):
                found[code_of(os.path.join(folder, name))].append(name)
    return found


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    root = subprocess.check_output(["git", "rev-parse", "--show-toplevel"], text=True).strip()
    with tempfile.TemporaryDirectory() as work:
        trees = []
        for i, commit in enumerate(sys.argv[1:]):
            trees.append(os.path.join(work, f"tree{i}"))
            subprocess.run(["git", "-C", root, "worktree", "add", "-q", "--detach", trees[i],
                            commit], check=True)
        try:
            sides = trees + [root] * (2 - len(trees))
            old, new = (objects(t, os.path.join(work, f"b{i}")) for i, t in enumerate(sides))
        finally:
            for tree in trees:
                subprocess.run(["git", "-C", root, "worktree", "remove", "--force", tree])
    differ = 0
    for side, here, there in (("old", old, new), ("new", new, old)):
        for code, names in here.items():
            if len(there.get(code, [])) != len(names):
                differ += 1
                print(f"{side} only: {', '.join(sorted(names))}")
    print("the same code" if not differ else "the code differs")
    sys.exit(differ > 0)


main()
