#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the examples of the documents, and compares what they print.

Usage: guide.py TRIREME ROOT [DOCUMENT...]

An example is a block that begins with ```console. A line that begins with "$ " is a command, and
goes on in the next line after a backslash; the lines that follow are what it prints on stdout and
stderr. A line "..." stands for any lines. In a block that begins with ```console numbers vary, all
numbers are equal, and so are all amounts of blanks; in one with `exit N` a command ends with that
code. The commands of a document share a directory.
"""
import os
import re
import subprocess
import sys
import tempfile

BLOCK = re.compile(r"^```console(.*)\n((?:.*\n)*?)```$", re.M)
LIMIT = 120


def examples(text):
    """Yields the line, the words after "console", the command and what it prints."""
    for block in BLOCK.finditer(text):
        line = text.count("\n", 0, block.start()) + 1
        for part in re.split(r"^\$ ", block[2], flags=re.M)[1:]:
            command = re.match(r"(?:.*\\\n)*.*\n", part)[0]
            yield line, block[1], command, part[len(command):].splitlines()


def plain(line, vary):
    return re.sub(r"\s+", " ", re.sub(r"\d[\d,.]*\d|\d", "#", line)).strip() if vary else line


def same(wanted, found):
    """Whether the lines are equal; "..." stands for any."""
    if not wanted:
        return not found
    if wanted[0] == "...":
        return any(same(wanted[1:], found[i:]) for i in range(len(found) + 1))
    return bool(found) and wanted[0] == found[0] and same(wanted[1:], found[1:])


def run(words, command, wanted, directory, environment):
    vary, code = "numbers vary" in words, re.search(r"exit (\d+)", words)
    done = subprocess.run(command, shell=True, cwd=directory, env=environment, text=True,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, timeout=LIMIT, check=False)
    found = done.stdout.rstrip("\n").splitlines()
    good = same([plain(w, vary) for w in wanted], [plain(f, vary) for f in found])
    if done.returncode != (int(code[1]) if code else 0):
        return f"exit code {done.returncode}\n{done.stdout}"
    return None if good else f"prints\n{done.stdout}\nthe document has\n" + "\n".join(wanted)


def main():
    program, root = map(os.path.abspath, sys.argv[1:3])
    names = sys.argv[3:] or ["README.md"] + sorted(
        f"docs/{n}" for n in os.listdir(f"{root}/docs") if n.endswith(".md"))
    build = os.path.dirname(os.path.dirname(program))
    environment = dict(os.environ, PATH=os.path.dirname(program) + ":" + os.environ["PATH"],
                       PKG_CONFIG_PATH=f"{build}/meson-uninstalled", LD_LIBRARY_PATH=f"{build}/src")
    failed = number = 0
    for name in names:
        with open(f"{root}/{name}", encoding="utf-8") as f:
            text = f.read()
        with tempfile.TemporaryDirectory() as directory:
            for line, words, command, wanted in examples(text):
                fault = run(words, command, wanted, directory, environment)
                number += 1
                failed += fault is not None
                print("ok" if fault is None else "not ok", number, "-", f"{name}:{line}:",
                      command.split("\n")[0])
                if fault:
                    print("# " + fault.replace("\n", "\n# "))
    print(f"1..{number}")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
