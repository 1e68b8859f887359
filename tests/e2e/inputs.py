#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Replaces every file that the program reads by something that is not a regular file: each run ends
with a message.

Usage: inputs.py TRIREME MAKE_PICTURES [ROW...]"""
import concurrent.futures
import gzip
import json
import os
import shutil
import socket
import struct
import subprocess
import sys
import tempfile

TRIREME, PICTURES = map(os.path.abspath, sys.argv[1:3])
LIMIT = 60  # seconds; a run takes a fraction of one, but one that opens a pipe would wait for ever


def link(to):
    return lambda path: os.symlink(to, path)


def unix_socket(path):
    here = socket.socket(socket.AF_UNIX)
    here.bind(path)
    here.close()


NOT = ", not a regular file"
KINDS = {  # the replacement, and what the message says about it
    "a pipe": (os.mkfifo, "a named pipe" + NOT),
    "a directory": (os.mkdir, "a directory" + NOT),
    "a socket": (unix_socket, "a socket" + NOT),
    "/dev/zero": (link("/dev/zero"), "a character device" + NOT),
    "/dev/null": (link("/dev/null"), "a character device" + NOT),
    "/dev/full": (link("/dev/full"), "a character device" + NOT),
    "a loop": (lambda path: os.symlink(os.path.basename(path), path),
               "Too many levels of symbolic"),
}

NET = "resnet18:form=small,width=4,size=16,classes=2"
WEIGHTS = {"a directory": "neither checkpoints nor a model"}  # may be a directory of checkpoints

# File; command; different messages by kind (None: no such case).
ROWS = [
    ("w.safetensors", "train linear --steps 1 --load w.safetensors", WEIGHTS),
    ("w.safetensors", "eval linear --data synthetic:size=4 --load w.safetensors", WEIGHTS),
    ("sealed", "train linear --steps 1 --ckpt-key key --load sealed", WEIGHTS),
    ("key", "train linear --steps 1 --ckpt-key key --ckpt new", {}),
    ("key", "ckpt ls ck --ckpt-key key", {}),
    ("net.tri", "train net.tri --steps 1", {}),
    ("net.so", "train net.so --steps 1", {}),
    ("a.npy", "data npy:a.npy", {}),
    ("b.npy", "data npy:a.npy;b.npy", {}),
    ("t.txt", "data text:t.txt", {}),
    ("texts/b.txt", "data text:texts/*.txt", {}),
    ("vocab.txt", "data text:t.txt --tokenizer bert:vocab.txt", {}),
    ("gpt2/vocab.json", "data text:t.txt --tokenizer gpt2:gpt2", {}),
    ("gpt2/merges.txt", "data text:t.txt --tokenizer gpt2:gpt2", {}),
    ("numbers", "train linear --steps 1 --subset numbers", {}),
    ("numbers", "train linear --steps 1 --sampler weighted:numbers", {}),
    ("idx/train-images-idx3-ubyte", "data idx:idx", {}),
    ("idx/train-labels-idx1-ubyte", "data idx:idx", {}),
    ("packed/train-images-idx3-ubyte.gz", "data idx:packed", {}),
    ("packed/train-labels-idx1-ubyte.gz", "data idx:packed", {}),
    ("cifar/data_batch_1.bin", "data cifar:cifar", {}),
    ("cifar/data_batch_3.bin", "data cifar:cifar", {}),
    ("pets/train/ant/001.jpg", "data images:pets,max-bad=0 --check", {"a directory": None}),
    ("labels", "data images:pets,labels=labels", {}),
    ("ids", "data images:pets,labels=labels,ids=ids", {}),
    ("list", "data images:pets,index=list", {}),
    ("p.jpg", f"predict {NET} --load net.safetensors p.jpg", {}),
    ("names", f"predict {NET} --load net.safetensors --names names p.jpg", {}),
    ("a-0000.tar", "data tar:a-0000.tar,max-bad=0", {"a pipe": None}),  # which it may be
    ("a-0001.tar", "data tar:a-*.tar,max-bad=0", {}),
    ("a-0001.tar", "pack images:pets -o a-%04d.tar --samples 4", {}),
    ("ck/step-000000002/state.json", "ckpt verify ck", {}),
    ("ck/step-000000002/state.json", "ckpt show ck/step-000000002", {}),
    ("ck/step-000000002/state.json", "train linear --steps 3 --ckpt ck --resume", {}),
    ("ck/step-000000002/state.json", "train linear --steps 3 --load ck/step-000000002", {}),
    ("ck/step-000000002/model.safetensors", "ckpt verify ck", {}),
    ("ck/step-000000002/optimizer.safetensors", "train linear --steps 3 --ckpt ck --resume", {}),
    ("ck/step-000000002/model.safetensors", "ckpt diff ck/step-000000002 ck/step-000000002", {}),
    ("run/metrics.jsonl", "train linear --steps 1", {}),
    ("run/metrics.jsonl", "train linear --steps 1 -n 1", {}),
    ("run/agent.json", "train linear --steps 1 -n 1", {}),
    ("run/agent.json", "top run --once", {}),
    ("run/agent.json", "ctl run pause", {}),
    ("run/agent.log", "train linear --steps 1 -n 1", {}),
    ("run/worker-0.log", "train linear --steps 1 -n 1", {}),
    ("run/worker-0.out", "train linear --steps 1 -n 1", {}),
]


def trireme(directory, *words):
    return subprocess.run([TRIREME, *words], cwd=directory, stdin=subprocess.DEVNULL, text=True,
                          capture_output=True, errors="replace", timeout=LIMIT)


def write(path, data):
    os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    with open(path, "wb") as f:
        f.write(data if isinstance(data, bytes) else data.encode())


def npy(n):
    header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': ({n}, 2), }}".ljust(117) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + bytes(8 * n)


def make_inputs(root):
    """A complete tree of inputs, with which every row succeeds."""
    os.chdir(root)
    images = struct.pack(">IIII", 0x803, 4, 2, 2) + bytes(16)
    labels = struct.pack(">II", 0x801, 4) + bytes(4)
    for directory, ending, pack in (("idx", "", bytes), ("packed", ".gz", gzip.compress)):
        write(f"{directory}/train-images-idx3-ubyte{ending}", pack(images))
        write(f"{directory}/train-labels-idx1-ubyte{ending}", pack(labels))
    for i in range(1, 6):
        write(f"cifar/data_batch_{i}.bin", bytes(3073))
    for name in ("a.npy", "b.npy"):
        write(name, npy(4))
    text = "the man walks to the town. a woman reads in the house.\n" * 200
    for name in ("t.txt", "texts/a.txt", "texts/b.txt"):
        write(name, text)
    words = "[PAD] [UNK] [CLS] [SEP] [MASK] . , a the man woman walks reads to in town house"
    write("vocab.txt", words.replace(" ", "\n"))
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]  # bytes that map to themselves
    tokens = [chr(c) for c in plain] + [chr(256 + i) for i in range(256 - len(plain))]
    write("gpt2/vocab.json", json.dumps({token: i for i, token in enumerate(tokens)}))
    write("gpt2/merges.txt", "#version: 0.2\nt h\n")
    write("numbers", "\n".join("1" for _ in range(64)))
    for name, number, salt in (("ant", "5", "1"), ("bee", "3", "2")):
        os.makedirs(f"pets/train/{name}")
        subprocess.run([PICTURES, "pets", name, number, "20", "20"], check=True)
    shutil.copy("pets/train/ant/000.jpg", "p.jpg")
    write("labels", "\n".join(["1"] * 5 + ["2"] * 3))
    write("ids", "ant 1\nbee 2\n")
    write("names", "ant\nbee\n")
    write("list", "")
    os.remove("list")
    for words in ("ckpt key key", "train linear --steps 2 --save w.safetensors --ckpt ck --quiet",
                  f"train {NET} --steps 1 --batch 2 --save net.safetensors --quiet",
                  "train linear --steps 2 --ckpt sealed-ck --ckpt-key key --quiet", "dump linear",
                  "pack images:pets -o a-%04d.tar --samples 4",
                  "train linear --steps 1 -n 1 --quiet"):
        made = trireme(root, *words.split())
        assert made.returncode == 0, f"{words}: {made.stderr}"
        if words.startswith("dump"):
            write("net.tri", made.stdout)
    shutil.copy("sealed-ck/step-000000002/model.safetensors.sealed", "sealed")
    write("net.so", "")


def case(template, row, kind):
    file, command, other = ROWS[row]
    make, says = KINDS[kind]
    says = other.get(kind, says)
    with tempfile.TemporaryDirectory() as scratch:
        root = os.path.join(scratch, "t")
        shutil.copytree(template, root, symlinks=True)
        path = os.path.join(root, file)
        if os.path.lexists(path):
            os.remove(path)
        make(path)
        try:
            run = trireme(root, *command.split())
        except subprocess.TimeoutExpired:
            return f"it was still running after {LIMIT} s"
        said = run.stdout + run.stderr
        told = any(says in line and os.path.basename(file) in line for line in said.splitlines())
        if run.returncode != 1 or not told:
            return f"exit {run.returncode}, nothing of '{says}' in:\n{said[-900:]}"
        if os.path.isfile(path):
            return "it was replaced"
    return None


def main():
    wanted = sys.argv[3:]
    failed = passed = 0
    with tempfile.TemporaryDirectory() as template:
        make_inputs(template)
        todo = [(row, kind) for row, (file, command, other) in enumerate(ROWS) for kind in KINDS
                if other.get(kind, "") is not None
                and (not wanted or any(w in f"{file}: {command}" for w in wanted))]
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            results = list(pool.map(lambda t: case(template, *t), todo))
    for (row, kind), wrong in zip(todo, results):
        name = f"{ROWS[row][1]}: {ROWS[row][0]} is {kind}"
        passed, failed = passed + (not wrong), failed + bool(wrong)
        print(f"ok {name}" if not wrong else f"not ok {name}: " + wrong.replace("\n", "\n    "))
    print(f"{passed} passed, {failed} failed")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
