# SPDX-License-Identifier: Apache-2.0
"""Whether networks learn what they should: make bench-convergence, hours on two cores.

fashion  resnet18 (small form) on Fashion-MNIST: top-1 of the test set; aim: 93 %
text     gpt2-tiny on 1 MB of text, bytes as tokens: the validation loss against PyTorch's with the
         same configuration, both averaged over the seeds; aim: no worse
bf16     resnet18 (small form), 2 epochs of Fashion-MNIST, and bert-tiny, 1,000 steps of generated
         text, with --amp O2: the loss of the evaluation against PyTorch's with autocast, averaged
         over the seeds; aim: at most PyTorch's mean and its own spread, highest less lowest
bits     both, a few steps with evaluations: the same with 1, 2 and 4 workers, bit for bit
wire     gpt2-tiny, 2,000 steps of 64 bytes, and resnet18 of 16 channels, 2 epochs: what the formats
         of --wire change in the evaluation's loss; aim: the mean difference to f32 at most 0.02,
         and at most the difference between two seeds

Usage: convergence.py BUILD [--rows fashion,text,bf16,bits] [--seeds N] [--epochs N] [--width N]
                      [--steps N] [--text FILE] [--wire FORMAT,FORMAT...]
                      [--nets NET,NET]"""
import argparse
import array
import glob
import json
import os
import random
import re
import statistics
import subprocess
import sys
import tempfile

FOLDER = "/usr/share/datasets/fashion-mnist"
IDX = f"idx:{FOLDER}"
TEXT_BYTES, VALIDATION_BYTES = 1_000_000, 100_000
SEQ, BATCH, RATE = 128, 16, 1e-3
PICTURES, PICTURE_RATE, DECAY = 128, 0.1, 5e-4  # of resnet18: the batch
DEBIANS = "/usr/bin/python3"


def trireme(*words):
    run = subprocess.run([PROGRAM, *map(str, words)], capture_output=True, text=True)
    if run.returncode:
        sys.exit(f"trireme {' '.join(map(str, words))}: {run.stderr[-1000:]}")
    return run.stdout


def rows(directory):
    return [json.loads(line) for line in open(f"{directory}/metrics.jsonl")]


def chosen(a, nets):
    """Those that begin with a name in --nets; all, if there is none."""
    return [net for net in nets if not a.nets or net[0] in a.nets.split(",")]


def line(*cells):
    print("| " + " | ".join(map(str, cells)) + " |", flush=True)


# ---- pictures ----

def fashion_words(a):
    model = f"resnet18:form=small,channels=1,size=28,classes=10,width={a.width}"
    return ["train", model, "--data", IDX, "--batch", PICTURES, "--optimizer", "nesterov", "--lr",
            PICTURE_RATE, "--weight-decay", DECAY, "--eval-data", f"{IDX},split=test", "--quiet"]


def fashion(a):
    line(f"resnet18, {a.width} channels, {a.epochs} epochs of Fashion-MNIST", "aim", "top-1")
    line("---", "---", "---")
    for seed in range(a.seeds):
        out = trireme(*fashion_words(a), "--epochs", a.epochs, "--schedule",
                      "cosine:end=0.001,warmup=400", "--seed", seed, "--best", "top1", "-n", "auto")
        last = rows("run")[-1]["eval"]["top1"]
        best = float(re.search(r"best_top1=(\S+)", out).group(1))
        line(f"seed {seed}", "93 %", f"**{100 * last:.2f} %** (best {100 * best:.2f} %)")
    print()


# ---- text ----

def write_texts(path):
    """Without a text it uses Python's own library, which exists wherever this runs."""
    own = os.path.join(os.path.dirname(os.__file__), "*.py")
    names = [path] if path else sorted(glob.glob(own))
    text = b"".join(open(name, "rb").read() for name in names)[:TEXT_BYTES + VALIDATION_BYTES]
    if len(text) < TEXT_BYTES // 2:
        sys.exit(f"{len(text)} bytes of text are too few")
    cut = len(text) * TEXT_BYTES // (TEXT_BYTES + VALIDATION_BYTES)
    for name, part in (("train.txt", text[:cut]), ("valid.txt", text[cut:])):
        open(name, "wb").write(part.decode("utf-8", "ignore").encode())


TEXTS = "text:train.txt", "text:valid.txt"


def text_words(seed, net=f"gpt2-tiny:seq={SEQ},vocab=256", data=TEXTS):
    return ["train", net, "--data", data[0], "--batch", BATCH, "--optimizer", "adamw", "--lr", RATE,
            "--weight-decay", 0.01, "--clip-norm", 1, "--schedule", "cosine:end=0.1,warmup=100",
            "--seed", seed, "--eval-data", data[1], "--quiet"]


def find_torch():
    """Debian's PyTorch belongs to Debian's Python: this continues there."""
    try:
        __import__("torch")
    except ImportError:
        if sys.executable == DEBIANS:
            sys.exit("PyTorch is not installed: make bench-deps, or leave the row out: "
                     "ROWS=fashion,bits")
        os.execv(DEBIANS, [DEBIANS, *sys.argv])


def text(a):
    import learn
    write_texts(a.text)
    line(f"gpt2-tiny, {a.steps} steps of {BATCH} x {SEQ} bytes", "validation loss", "PyTorch's")
    line("---", "---", "---")
    ours, theirs = [], []
    for seed in range(a.seeds):
        trireme(*text_words(seed), "--steps", a.steps, "--eval-every", a.steps, "-n", "auto")
        ours.append(rows("run")[-1]["eval"]["loss"])
        theirs.append(learn.gpt2_tiny(seed, a.steps, RATE, SEQ, ("train.txt", "valid.txt")))
        line(f"seed {seed}", f"{ours[-1]:.4f}", f"{theirs[-1]:.4f}")
    line("mean", f"**{statistics.mean(ours):.4f}**", f"**{statistics.mean(theirs):.4f}**")
    print()


# ---- bf16 ----

WORDS, SENTENCES, LENGTH = 64, (16000, 1000), 64  # of bert-tiny's text: samples of each part
CLS, SEP, MASK, FIRST_WORD = 1, 2, 3, 4


def generated(samples, after, source):
    """Fields of so many samples: two sentences, of which the second continues the first or not.
    after: the four words that can follow each."""
    def sentence(word, n):
        found = []
        for _ in range(n):
            word = source.choices(after[word], (16, 2, 1, 1))[0]
            found.append(word)
        return found

    names = "input_ids", "token_type_ids", "attention_mask", "labels", "next_sentence_label"
    fields = {name: [] for name in names}
    half = (LENGTH - 3) // 2
    for _ in range(samples):
        first = sentence(source.randrange(FIRST_WORD, WORDS), half)
        other = source.random() < 0.5
        second = sentence(source.randrange(FIRST_WORD, WORDS) if other else first[-1],
                          LENGTH - 3 - half)
        ids = [CLS, *first, SEP, *second, SEP]
        labels = [-100] * LENGTH
        for at in source.sample([i for i in range(LENGTH) if ids[i] >= FIRST_WORD], LENGTH // 7):
            labels[at] = ids[at]
            ids[at] = source.choices((MASK, source.randrange(FIRST_WORD, WORDS), ids[at]),
                                     (8, 1, 1))[0]
        for name, row in zip(names, (ids, [0] * (half + 2) + [1] * (LENGTH - half - 2),
                                     [1] * LENGTH, labels, int(other))):
            fields[name].append(row)
    return fields


def write_fields(folder, fields):
    """As NumPy would; returns what --data calls them."""
    os.makedirs(folder, exist_ok=True)
    for name, rows_of in fields.items():
        flat = rows_of if isinstance(rows_of[0], int) else [x for row in rows_of for x in row]
        shape = (len(rows_of),) if flat is rows_of else (len(rows_of), len(rows_of[0]))
        head = str({"descr": "<i8", "fortran_order": False, "shape": shape}).ljust(117) + "\n"
        with open(f"{folder}/{name}.npy", "wb") as f:
            f.write(b"\x93NUMPY\x01\x00" + len(head).to_bytes(2, "little") + head.encode())
            array.array("q", flat).tofile(f)
    return "npy:" + ";".join(f"{folder}/{name}.npy" for name in fields)


def bf16(a):
    import learn
    pictures, warmup, end, steps = 2, 100, 0.001, 1000
    source = random.Random(0)
    after = [source.choices(range(FIRST_WORD, WORDS), k=4) for _ in range(WORDS)]
    fields = [generated(n, after, source) for n in SENTENCES]
    files = [write_fields(folder, x) for folder, x in zip(("train", "valid"), fields)]
    net = f"bert-tiny:seq={LENGTH},vocab={WORDS},head=every"
    rows_of = chosen(a, (
        ("resnet18", f"resnet18, {a.width} channels, {pictures} epochs of Fashion-MNIST",
         lambda seed: [*fashion_words(a), "--epochs", pictures, "--schedule",
                       f"cosine:end={end},warmup={warmup}", "--seed", seed],
         lambda seed: learn.resnet18(seed, pictures, a.width, PICTURE_RATE, DECAY, PICTURES,
                                     (warmup, end), FOLDER, True)),
        ("bert-tiny", f"{net}, {steps} steps of {BATCH} samples",
         lambda seed: [*text_words(seed, net, files), "--steps", steps, "--eval-every", steps],
         lambda seed: learn.bert_tiny(seed, steps, RATE, WORDS, fields, True))))
    line("bf16, loss of the evaluation", "seeds", "mean", "PyTorch's seeds", "mean", "aim: at most")
    line(*["---"] * 6)
    for _, name, words, peer in rows_of:
        ours, theirs = [], []
        for seed in range(a.seeds):
            trireme(*words(seed), "--amp", "O2", "-n", "auto")
            ours.append(rows("run")[-1]["eval"]["loss"])
            theirs.append(peer(seed))
        most = statistics.mean(theirs) + max(theirs) - min(theirs)
        line(name, " ".join(f"{x:.4f}" for x in ours), f"**{statistics.mean(ours):.4f}**",
             " ".join(f"{x:.4f}" for x in theirs), f"{statistics.mean(theirs):.4f}", f"{most:.4f}")
    print()


# ---- bits ----

def bits(a):
    line("the same curve", "1, 2 and 4 workers")
    line("---", "---")
    few = ["--steps", 12, "--eval-every", 3]
    if not os.path.exists("valid.txt"):
        write_texts(a.text)
    small = argparse.Namespace(**{**vars(a), "width": 8})
    for name, words in (("resnet18, Fashion-MNIST", fashion_words(small)),
                        ("gpt2-tiny, text", text_words(0))):
        seen = set()
        for n in (1, 2, 4):
            out = trireme(*words, *few, "--lanes", 4, "-n", n)
            curve = [row["eval"] for row in rows("run") if "eval" in row]
            seen.add((re.sub(" seconds=.*", "", out), json.dumps(curve)))
        line(name, "the same, to the bit" if len(seen) == 1 else "**differ**")
        if len(seen) > 1:
            sys.exit(f"{seen}")
    print()


# ---- formats of sums ----

def wire(a):
    write_texts(a.text)
    small = argparse.Namespace(**{**vars(a), "width": 16})
    nets = (("gpt2-tiny", lambda seed: [
                word.replace(f"seq={SEQ}", "seq=64") if isinstance(word, str) else word
                for word in text_words(seed)] + ["--steps", 2000, "--eval-every", 2000]),
            ("resnet18", lambda seed: [*fashion_words(small), "--epochs", 2, "--seed", seed]))
    line("net", "format", "loss of the evaluation, by seed", "mean difference to f32",
         "largest difference of two seeds in f32")
    line("---", "---", "---", "---", "---")
    for name, words in chosen(a, nets):
        losses = {}
        for form in ("f32", *a.wire.split(",")):
            losses[form] = []
            for seed in range(a.seeds):
                trireme(*words(seed), "--lanes", 4, "--wire", form)
                losses[form].append(rows("run")[-1]["eval"]["loss"])
            plain = losses["f32"]
            differ = statistics.mean(losses[form]) - statistics.mean(plain)
            line(name, form, " ".join(f"{loss:.4f}" for loss in losses[form]),
                 "" if form == "f32" else f"{differ:+.4f}", f"{max(plain) - min(plain):.4f}")
    print()


def main():
    global PROGRAM
    parser = argparse.ArgumentParser()
    parser.add_argument("build")
    parser.add_argument("--rows", default="fashion,text,bf16,bits")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--epochs", type=int, default=12)
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--steps", type=int, default=3000)
    parser.add_argument("--text", type=os.path.abspath)
    parser.add_argument("--wire", default="fp16,bf16,int8,topk:0.01")
    parser.add_argument("--nets", default="", help="some of the rows bf16 and wire")
    a = parser.parse_args()
    if {"text", "bf16"} & set(a.rows.split(",")):
        find_torch()
    PROGRAM = os.path.abspath(f"{a.build}/src/trireme")
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    with tempfile.TemporaryDirectory() as work:
        os.chdir(work)
        for name in a.rows.split(","):
            {"fashion": fashion, "text": text, "bf16": bf16, "bits": bits, "wire": wire}[name](a)


if __name__ == "__main__":
    main()
