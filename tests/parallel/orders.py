#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Orders of samples in whole runs: the same weights for any number of workers and after a
resumption. Usage: orders.py PROGRAM [PART OF A CASE'S NAME ...]"""
import hashlib
import os
import random
import re
import shutil
import struct
import sys

from runs import done, need, run_cases, trireme

# samples of each class, sorted by class
COUNTS = [120, 30, 90, 60, 100, 55, 45, 80, 10, 20]
SIZE = 28
DATA = "idx:sorted"
# 20 per epoch
WORDS = f"lenet5 --data {DATA} --batch 30 --lanes 4 --optimizer momentum --steps 50 --quiet".split()


def make_data():
    os.makedirs("sorted", exist_ok=True)
    labels = [c for c, n in enumerate(COUNTS) for _ in range(n)]
    pattern = [[random.randrange(256) for _ in range(SIZE * SIZE)] for _ in COUNTS]
    with open("sorted/train-images-idx3-ubyte", "wb") as f:
        f.write(struct.pack(">IIII", 0x803, len(labels), SIZE, SIZE))
        for c in labels:
            f.write(bytes((v + random.randrange(16)) % 256 for v in pattern[c]))
    with open("sorted/train-labels-idx1-ubyte", "wb") as f:
        f.write(struct.pack(">II", 0x801, len(labels)) + bytes(labels))


ORDERS = {"stratified": "--sampler stratified", "weighted": "--sampler weighted:balanced",
          "a share": "--share 1/3 --batch 10",
          "a stratified share": "--share 0/2,drop --sampler stratified",
          "a subset": "--subset 30:600"}


def same(order):
    """With 1, 2 and 3 workers; with a stop in the middle of an epoch."""
    make_data()
    words = [*WORDS, *order.split()]
    plain = done(trireme("train", *words))
    need(plain != done(trireme("train", *WORDS)), "the order makes no difference")
    for n in ("1", "2", "3"):
        need(done(trireme("train", *words, "-n", n)) == plain, f"-n {n}: another result")
    shutil.rmtree("ck", ignore_errors=True)
    first = trireme("train", *words, "--ckpt", "ck", "--save-every", "27", "-n", "2")
    need(done(first) == plain, "with checkpoints another result")
    shutil.rmtree("ck/step-000000050")
    again = trireme("train", *words, "--ckpt", "ck", "--resume")
    need("resumes from ck/step-000000027" in again.err, again.err)
    need(done(again) == plain, f"{done(again)}\nin one go:\n{plain}")


def other_order():
    """A run that resumes keeps its order."""
    make_data()
    shutil.rmtree("ck", ignore_errors=True)
    trireme("train", *WORDS, "--sampler", "stratified", "--ckpt", "ck")
    run = trireme("train", *WORDS, "--sampler", "weighted:balanced", "--ckpt", "ck", "--resume")
    need(run.returncode == 2
         and "--sampler stratified (this run has --sampler weighted:balanced)" in run.err, run.err)
    show = trireme("ckpt", "show", "ck")
    need("shuffle off --sampler stratified" in show.out, show.out)


def a_default():
    """A default is no other order, also in a checkpoint that names it, as older ones do."""
    make_data()
    for there, here in ("", "--sampler shuffled --tail drop"), ("--tail drop", ""), \
            ("--sampler shuffled --share 1/3 --tail drop", "--share 1/3"):
        shutil.rmtree("ck", ignore_errors=True)
        share = "--share 1/3".split() if "--share" in here else []
        trireme("train", *WORDS, *share, "--steps", "3", "--ckpt", "ck")
        file = "ck/step-000000003/state.json"
        with open(file, encoding="utf-8") as f:
            text = f.read()
        was = " ".join(share)
        need(f'"order": "{was}"' in text, text)
        text = re.sub('(?<="own_sha256": ")[0-9a-f]*', 64 * "0",
                      text.replace(f'"order": "{was}"', f'"order": "{there}"'))
        with open(file, "w", encoding="utf-8") as f:
            f.write(text.replace(64 * "0", hashlib.sha256(text.encode()).hexdigest()))
        again = trireme("train", *WORDS, *here.split(), "--steps", "5", "--ckpt", "ck", "--resume")
        need("resumes from ck/step-000000003" in again.err and done(again), again.err)


def mistakes():
    make_data()

    def wrong(pattern, *words):
        run = trireme("train", *WORDS, *words)
        need(run.returncode in (1, 2) and pattern in run.err and run.err.count("\n") == 1,
             f"{words}: {run.err}")

    wrong("known: shuffled, sequential", "--sampler", "strat")
    wrong("are both given; give one of them", "--sampler", "stratified", "--shuffle", "off")
    wrong("--shuffle off and --sampler shuffled are both given, and contradict",
          "--sampler", "shuffled", "--shuffle", "off")
    wrong("has the samples 0 to 609", "--subset", "600:620")
    wrong("No such file", "--subset", "nothing.txt")
    wrong("fewer than the batch of 30", "--subset", ":20")
    wrong("K/N or K/N,drop is needed", "--share", "3/3")
    wrong("does not know the classes", "--sampler", "stratified", "--data", "synthetic")


CASES = {f"same: {name}": (lambda order=order: same(order)) for name, order in ORDERS.items()}
CASES.update({"another order": other_order, "a default": a_default,
              "mistakes": mistakes})

run_cases(CASES, sys.argv[2:])
