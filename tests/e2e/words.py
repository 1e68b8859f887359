#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that the words of options, those of every command, are quoted nowhere but in their rows,
and neither are the agent's options. One case per option with words, and one for the agent.

Usage: words.py ROOT"""
import pathlib
import re
import sys

root = pathlib.Path(sys.argv[1])
TABLE = re.compile(r"^(?:static )?const struct option_row \w+\[\] = \{\n(.*?)^\};", re.M | re.S)
ROW = re.compile(r'^    \{"(--?[\w-]+)",(.*?)(?=^    \{)', re.M | re.S)
AGENT = "src/cli/launch_rows.c"
# Words that other things have, too: attributes and factors of operators, types, commands, numbers.
SHARED = {"0", "1", "2", "3", "any", "auto", "batch", "bf16", "data", "f16", "keep", "never", "pad",
          "stop", "warn", "whole"}
# Of the agent, but also rows of bench, eval, explain and join, and what run gives to plan find.
OTHERS = {"-n", "--threads-per-worker", "--grain", "--key", "--port", "--hosts", "--path"}

texts = {p.relative_to(root).as_posix(): p.read_text()
         for p in [*sorted((root / "src").rglob("*.[ch]")), *sorted((root / "man").iterdir())]}
rows = [(path, *row) for path, text in texts.items()
        for table in TABLE.findall(text) for row in ROW.findall(table)]


def quoted(known, own):
    """Where one of these words is quoted, but for the file of the rows."""
    return [f'{path}: "{word}"' for word in known for path, text in texts.items()
            if path != own and f'"{word}"' in text]


cases = {f"words of {flag}": quoted(set(re.findall(r'"([^"]*)"', found.group(1))) - SHARED, path)
         for path, flag, row in rows if (found := re.search(r"WORDS\((.*?)\)", row, re.S))}
agent = {flag for path, flag, _ in rows if path == AGENT}
cases["options of the agent"] = quoted(agent - OTHERS, AGENT)
if len(cases) < 12 or len(agent) < 9 or len(rows) < 100:
    cases["rows"] = [f"only {len(cases)} options with words, {len(agent)} of the agent and"
                     f" {len(rows)} in all"]
for name, found in cases.items():
    print(f"{'not ok' if found else 'ok'} {name}", *found, sep="\n    ")
sys.exit(any(cases.values()))
