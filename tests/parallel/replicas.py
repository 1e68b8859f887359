#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Lanes of a mesh that several workers compute together: one hash per grain, for any number of
workers, threads and spares, for any buckets and resumptions, and after any deaths.

Usage: replicas.py PROGRAM [PART OF A CASE'S NAME ...]

KILLS=N: the number of kills over all storms (24; with SLOW=1 300)."""
import itertools
import random
import sys

from runs import SLOW, run_cases
from storms import (KILLS, RESUMES, check_hash, check_rows, cover, points, reference, seconds_of,
                    stalled, storm)

SMALL = "--batch 8 --quiet"
NETS = {"mlp": f"mlp:hidden=64 --steps 60 {SMALL}",
        "gpt2": f"gpt2-tiny:seq=16,vocab=103,heads=8 --steps 20 {SMALL}",
        "bert": f"bert-tiny:seq=16,vocab=103,heads=8,predictions=3 --steps 20 {SMALL}",
        "resnet18": f"resnet18:form=small,width=8 --steps 20 --conv direct {SMALL}"}
RECOMPUTED = {"mlp": "*relu*", "gpt2": "*.h.0", "bert": "*.layer.1", "resnet18": "layer1*"}
# Two strategies for each, and one that splits the samples over another axis.
STRATEGIES = {"mlp": ("channels", "in.txt"), "gpt2": ("megatron", "megatron-sp"),
              "bert": ("megatron-sp", "megatron"), "resnet18": ("channels", "height.txt")}
FILES = {"in.txt": "maybe fc1.matmul in=model\nmaybe fc2.matmul out=model\n",
         "height.txt": "maybe * height=model\n"}
SAMPLES = {"mlp": "fc1.matmul rows=data", "gpt2": "transformer.h.*.attn.c_attn batch=data",
           "bert": "bert.*.query batch=data", "resnet18": "conv1.conv2d batch=data"}
MESHES = {"2": "model=2", "4": "model=4", "2x2": "data=2,model=2", "8": "model=8"}
SEATS = {"2": 2, "4": 4, "2x2": 4, "8": 8}


def mesh(net, size, strategy):
    """The options of a mesh; writes the files that they name."""
    for name, text in {**FILES, f"{net}.txt": SAMPLES[net] + "\n"}.items():
        with open(name, "w") as f:
            f.write(text)
    samples = f"{net}.txt," if size == "2x2" else ""
    return f"--mesh {MESHES[size]} --strategy {samples}{STRATEGIES[net][strategy]}"


# ---- one hash per grain ----

# The grain is decided by net, size, strategy, lanes and precision.
FACTORS = {
    "net": list(NETS), "size": list(MESHES), "n": list(range(1, 9)), "strategy": [0, 1],
    "lanes": [1, 2, 3],
    "precision": ["", "--amp O1", "--amp O2 --loss-scale 128",
                  "--amp O3 --loss-scale dynamic:start=256,every=5"],
    "threads": [1, 2], "spares": [0, 1], "recompute": [False, True], "bucket": ["1", "20K", "1G"],
    "resumes": RESUMES}


def check(row):
    """A run's hash is that of one process. Returns how many workers took part."""
    net = row["net"]
    words = (f"{NETS[net]} {mesh(net, row['size'], row['strategy'])} --lanes {row['lanes']}"
             f" {row['precision']}")
    wanted = reference(words)
    words += f" --bucket {row['bucket']}"
    words += f" --recompute {RECOMPUTED[net]}" * row["recompute"]
    workers = f"--threads-per-worker {row['threads']} --spares {row['spares']}"
    return check_hash(words, wanted, row["n"], workers, row["resumes"])


def one_hash():
    if SLOW:
        groups = [*itertools.combinations(FACTORS, 2), ("net", "size", "n")]
    else:  # nearly each value, and each network on each mesh
        groups = [*((name,) for name in FACTORS), ("net", "size")]
    return check_rows(cover(FACTORS, groups)[:None if SLOW else 6], check)


# ---- deaths ----

# words, and the options of the workers
STORMS = {
    "a replica of two": ("mlp", "2", 0, "--lanes 2 --bucket 1", "-n 2"),
    "a replica of four, a spare": ("gpt2", "4", 1, "--lanes 3 --amp O1", "-n 4 --spares 1"),
    "two replicas of two": ("bert", "2", 0, "--lanes 4 --bucket 20K", "-n 4"),
    "three workers, four seats": ("resnet18", "2x2", 0, "--lanes 2 --bucket 1",
                                  "-n 3 --threads-per-worker 2"),
}


def of_a_replica(pids, seats):
    groups = -(-len(pids) // seats)
    number = random.randrange(groups)
    return [pids[rank] for rank in pids if rank * groups // len(pids) == number]


def storm_words(name):
    net, size, strategy, more, workers = STORMS[name]
    words = f"{NETS[net]} {mesh(net, size, strategy)} {more}"
    return seconds_of(words, 2 if SLOW else 1), workers.split()


def storm_of(name, kills):
    seats = SEATS[STORMS[name][1]]
    return storm(*storm_words(name), kills, lambda pids: of_a_replica(pids, seats))


def stalled_at(place, *more):
    words, workers = storm_words("a replica of two")
    stalled(words, [*workers, *more], place)


def points_of(place, *more):
    words = (f"mlp:hidden=64 --batch 64 --steps 12 --lanes 2 --bucket 1 --quiet --optimizer adam"
             f" {mesh('mlp', '2', 0)}").split()
    return points(words, ["-n", "2", *more], place)


CASES = {"one hash per grain": one_hash}
CASES.update({f"deaths: {name}": (lambda name=name: storm_of(name, -(-KILLS // len(STORMS))))
              for name in STORMS})
CASES.update({
    "the captain stopped": lambda: stalled_at(0),
    "a follower stopped, a spare": lambda: stalled_at(1, "--spares", "1"),
    "a kill after every write of the captain": lambda: points_of(0),
    "a kill after every write of a follower": lambda: points_of(1),
    "a kill after every write of the captain, a spare": lambda: points_of(0, "--spares", "1"),
})

run_cases(CASES, sys.argv[2:],
          ("deaths: a replica of two", "deaths: two replicas of two",
           "deaths: a replica of four, a spare",
           "a follower stopped, a spare"))
