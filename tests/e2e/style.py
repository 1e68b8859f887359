# SPDX-License-Identifier: Apache-2.0
"""Checks that no file has a line of more than 100 columns or more than 600 lines. One case per
folder. Usage: style.py SOURCES"""
import collections
import os
import re
import subprocess
import sys

COLUMNS = 100
LINES = 600
# Data that nobody reads: numbers, seeds, graphs that a test compares.
DATA = re.compile(r"tests/(golden/(data|checkpoints|runs)|fuzz/seeds)/|tests/passes/.*\.(tri|out)$")
# They may have more lines.
LONG_FILES = ["include/trireme.h", "man/trireme.1.in"]


def folder_of(path):
    """The first two folders of the path; for a file at the root its name."""
    parts = path.split("/")
    return "/".join(parts[:min(2, len(parts) - 1)]) or path


def faults(path):
    try:
        with open(path, encoding="utf-8") as file:
            lines = file.read().splitlines()
    except UnicodeDecodeError:
        return
    for number, line in enumerate(lines, 1):
        # A line with a single word, for instance an address, cannot be divided.
        if len(line) > COLUMNS and len(line.lstrip(" #/*").split()) > 1:
            yield f"{path}:{number}: {len(line)} columns"
    if len(lines) > LINES and path not in LONG_FILES:
        yield f"{path}: {len(lines)} lines"


def main():
    os.chdir(sys.argv[1])
    listed = subprocess.run(["git", "ls-files", "-z"], stdout=subprocess.PIPE, text=True)
    if listed.returncode:
        print("ok style # skip: not a git checkout")
        return 0
    found = collections.defaultdict(list)
    for path in listed.stdout.split("\0"):
        if os.path.isfile(path) and not DATA.match(path):
            found[folder_of(path)] += faults(path)
    failed = 0
    for folder, wrong in sorted(found.items()):
        print(f"{'not ' if wrong else ''}ok style of {folder}", *wrong, sep="\n    ")
        failed += bool(wrong)
    return failed > 0


sys.exit(main())
