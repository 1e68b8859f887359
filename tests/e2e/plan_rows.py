#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Each row of `trireme plan find`, of six networks, three limits and both grains: saved, it takes
the MiB that it says, by `trireme memory --plan`, and trains, with the bits that it says.

Usage: plan_rows.py PROGRAM [NETWORK...]"""
import json
import os
import re
import subprocess
import sys
import tempfile

PROGRAM = os.path.abspath(sys.argv[1])
NETWORKS = {
    "mlp": "mlp --batch 32 --lanes 4 --optimizer adamw",
    "lenet5": "lenet5 --batch 16 --lanes 4",
    "resnet18": "resnet18:form=small,size=32,width=16,classes=10 --batch 8",
    "bert-tiny": "bert-tiny:seq=16,vocab=512 --batch 8 --lanes 4",
    "gpt2-tiny": "gpt2-tiny:seq=16,vocab=512 --batch 8 --lanes 4",
    "gpt2-layers": "gpt2-tiny:seq=32,vocab=256,layers=6,hidden=64,heads=4 --batch 4 --lanes 2",
}
STEPS = ["--steps", "2", "--data", "synthetic", "--quiet"]


def run(*words):
    done = subprocess.run([PROGRAM, *words], capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"trireme {' '.join(words)}: {done.stderr}")
    return done.stdout


def hash_of(out):
    return re.search(r"weights=(\S+)", out).group(1)


def rows(words):
    """The rows that fit; none: the command says which plan needs least."""
    done = subprocess.run([PROGRAM, "plan", "find", *words, "--json"], capture_output=True,
                          text=True)
    if done.returncode:
        assert "more than the limit" in done.stderr, done.stderr
        return []
    return [p for p in json.loads(done.stdout)["plans"] if p["is"] == "fits"]


def check(name, limit, grain, plain):
    words = NETWORKS[name].split() + ["--grain", grain, "--measure", "never"]
    words += ["--memory-limit", str(limit)] if limit else []
    plans = rows(words)
    for k, plan in enumerate(plans):
        run("plan", "find", *words, "--row", str(k + 1), "--save", "row")
        text = open("row").read()
        workers = re.search(r"^workers (\d+)", text, re.M).group(1)
        model = NETWORKS[name].split()[0]
        rest = [w for w in NETWORKS[name].split()[1:] if w not in ("--batch", "--lanes")]
        rest = [w for w in rest if not w.isdigit()]
        of = [model, *rest, "--plan", "row"] + (["-n", workers] if workers != "1" else [])
        needs = re.search(r"^fits: ([\d,]+) of ", run("memory", *of), re.M).group(1)
        wanted = -(-plan["bytes"] // (1 << 20))
        assert int(needs.replace(",", "")) == wanted, (name, k + 1, needs, wanted)
        got = hash_of(run("train", *of, *STEPS))
        assert got == plain or not plan["same_bits"], (name, k + 1, text)
    return [p["bytes"] for p in plans]


def main():
    all_rows = 0
    for name in sys.argv[2:] or NETWORKS:
        plain = hash_of(run("train", *NETWORKS[name].split(), *STEPS))
        for grain in "keep", "any":
            sizes = check(name, 0, grain, plain)
            counts = [len(sizes)]
            # What the smallest plan needs, and what lies between.
            for limit in max(sizes) - 1, min(sizes) - 1:
                counts.append(len(check(name, limit, grain, plain)))
            print(f"ok {name}, --grain {grain}: {counts} rows", flush=True)
            all_rows += sum(counts)
    print(f"{all_rows} rows take what they say")


with tempfile.TemporaryDirectory() as place:
    os.chdir(place)
    os.environ["XDG_CACHE_HOME"] = os.path.join(place, "cache")
    main()
