#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints the lines of each folder of src, and how many they have become since a commit.

Usage: lines.py [COMMIT]      (default: the last commit that is older than a day)"""
import collections
import subprocess
import sys


def git(*words):
    return subprocess.run(["git", *words], capture_output=True, text=True, check=True).stdout


def folder(path):
    return "/".join(path.split("/")[1:-1])


def lines_at(commit):
    """By folder. grep -c prints COMMIT:PATH:LINES."""
    found = collections.Counter()
    for line in git("grep", "-c", "", commit, "--", "src/*.[ch]").splitlines():
        _, path, n = line.rsplit(":", 2)
        found[folder(path)] += int(n)
    return found


since = (sys.argv[1] if len(sys.argv) > 1 else
         git("rev-list", "-1", "--before=24 hours ago", "HEAD").strip() or "HEAD")
now, before = lines_at("HEAD"), lines_at(since)
for name in sorted(now | before, key=lambda name: -now[name]):
    print(f"{name:12} {now[name]:7,} {now[name] - before[name]:+7,}")
total = sum(now.values())
print(f"{'src':12} {total:7,} {total - sum(before.values()):+7,}   since {since[:9]}")
