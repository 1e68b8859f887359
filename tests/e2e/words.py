#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that the words of options are quoted nowhere but in their rows. One case per option.

Usage: words.py ROOT"""
import pathlib
import re
import sys

root = pathlib.Path(sys.argv[1])
ROWS = root / "src/plan/option_rows.c"
# Words that other things have, too: attributes and factors of operators, types, commands, numbers.
SHARED = {"0", "1", "2", "3", "auto", "batch", "bf16", "data", "f16", "keep", "pad", "stop", "warn",
          "whole"}

options = re.findall(r'\{"(--[\w-]+)",(.*?)(?=\n    \{)', ROWS.read_text(), re.S)
words = {flag: re.findall(r'"([^"]*)"', found.group(1)) for flag, row in options
         if (found := re.search(r"WORDS\((.*?)\)", row, re.S))}
files = [p for p in sorted((root / "src").rglob("*.[ch]")) + sorted((root / "man").iterdir())
         if p != ROWS]
texts = {p: p.read_text() for p in files}
failed = len(words) < 10
if failed:
    print(f"not ok words: only {len(words)} options with words in {ROWS}")
for flag, known in words.items():
    found = [f'{p.relative_to(root)}: "{w}"' for w in known if w not in SHARED
             for p, text in texts.items() if f'"{w}"' in text]
    print(f"{'not ok' if found else 'ok'} words of {flag}")
    for line in found:
        print(f"    {line}")
    failed |= bool(found)
sys.exit(failed)
