#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Shows how far the code of something is spread: which functions run from entry to exit of one,
in how many files, and how often the next one is in another file. Base, claim.h, graph/access.c and
kernels are left out. The result is the median over the calls in steps 3 to 5.

Usage: walk.py FUNCTION WORD...    WORD: of `trireme`: train mlp:hidden=64 --lanes 4 -n 2
BUILD=DIR: where the recorded build is made (build-walk). LIST=1 prints the functions, too."""
import array
import collections
import glob
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD = pathlib.Path(os.environ.get("BUILD", ROOT / "build-walk"))
LEFT_OUT = "base/,crew/claim.h,graph/access.c,dev/cpu/,dev/ref/"
STEP, FIRST, LAST = "tri_step", 3, 5


def build():
    if not (BUILD / "build.ninja").exists():
        subprocess.run(["meson", "setup", BUILD, ROOT, "-Dwidest=plain", "-Dwerror=false",
                        "-Dc_args=-finstrument-functions -finstrument-functions-exclude-file-list="
                        + LEFT_OUT, "-Dc_link_args=-rdynamic"], check=True, stdout=sys.stderr)
    subprocess.run(["ninja", "-C", BUILD, "src/trireme"], check=True, stdout=sys.stderr)
    recorder = BUILD / "walk_recorder.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-O2", "-o", recorder,
                    ROOT / "scripts/walk_recorder.c", "-ldl"], check=True)
    return recorder


def symbols():
    """Functions and files by address in the program."""
    found = {}
    for line in subprocess.run(["nm", "--line-numbers", "--defined-only", BUILD / "src/trireme"],
                               capture_output=True, text=True, check=True).stdout.splitlines():
        words = line.split()
        if len(words) > 3 and words[1] in "tT":
            found[int(words[0], 16)] = words[2], words[3].rsplit(":", 1)[0].split("/src/")[-1]
    return found


def walks(path, known, wanted):
    """The lists of (function, file) of each call of the wanted function in the steps."""
    words = array.array("Q", pathlib.Path(path).read_bytes() or bytes(8))
    base, step, depth, walk = words[0], 0, 0, []
    for word in words[1:]:
        name, file = known.get((word >> 1) - base, ("?", "?"))
        begins = not word & 1
        step += begins and name == STEP
        if not FIRST <= step <= LAST:
            continue
        if name == wanted:
            depth += 1 if begins else -1
        if begins and (depth or name == wanted):
            walk.append((name, file))
        if name == wanted and not depth:
            yield walk
            walk = []


def main():
    wanted, *words = sys.argv[1:]
    recorder = build()
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([BUILD / "src/trireme", *words, "--steps", str(LAST + 1), "--quiet",
                        "--out", f"{folder}/out"], check=True, stdout=sys.stderr,
                       env={**os.environ, "LD_PRELOAD": str(recorder), "WALK": f"{folder}/walk"})
        known = symbols()
        found = [w for path in glob.glob(f"{folder}/walk.*") for w in walks(path, known, wanted)]
    if not found:
        sys.exit(f"{wanted} was not called in steps {FIRST} to {LAST} by a thread that calls "
                 f"{STEP}")
    counts = [(len({name for name, _ in w}), len({file for _, file in w}),
               sum(a[1] != b[1] for a, b in zip(w, w[1:]))) for w in found]
    functions, files, changes = (statistics.median(c) for c in zip(*counts))
    print(f"{wanted}: {functions:g} functions, {files:g} files, {changes:g} changes of file "
          f"({len(found)} calls)")
    if os.environ.get("LIST"):
        called = collections.Counter(f"{file}: {name}" for w in found for name, file in w)
        for what, times in called.most_common():
            print(f"{times / len(found):10.1f}  {what}")


main()
