# SPDX-License-Identifier: Apache-2.0
"""Whether networks learn what they should: make bench-convergence, hours on two cores.

fashion  resnet18 (small form) on Fashion-MNIST: top-1 of the test set; aim: 93 %
text     gpt2-tiny on 1 MB of text, bytes as tokens: the validation loss against PyTorch's with the
         same configuration, both averaged over the seeds; aim: no worse
bits     both, a few steps with evaluations: the same with 1, 2 and 4 workers, bit for bit
wire     gpt2-tiny, 2,000 steps of 64 bytes, and resnet18 of 16 channels, 2 epochs: what the formats
         of --wire change in the evaluation's loss; aim: the mean difference to f32 at most 0.02,
         and at most the difference between two seeds

Usage: convergence.py BUILD [--rows fashion,text,bits] [--seeds N] [--epochs N] [--width N]
                      [--steps N] [--text FILE] [--wire FORMAT,FORMAT...]
                      [--nets NET,NET]"""
import argparse
import glob
import json
import math
import os
import re
import statistics
import subprocess
import sys
import tempfile

IDX = "idx:/usr/share/datasets/fashion-mnist"
TEXT_BYTES, VALIDATION_BYTES = 1_000_000, 100_000
SEQ, BATCH, RATE = 128, 16, 1e-3
DEBIANS = "/usr/bin/python3"


def trireme(*words):
    run = subprocess.run([PROGRAM, *map(str, words)], capture_output=True, text=True)
    if run.returncode:
        sys.exit(f"trireme {' '.join(map(str, words))}: {run.stderr[-1000:]}")
    return run.stdout


def rows(directory):
    return [json.loads(line) for line in open(f"{directory}/metrics.jsonl")]


def line(*cells):
    print("| " + " | ".join(map(str, cells)) + " |", flush=True)


# ---- pictures ----

def fashion_words(a):
    model = f"resnet18:form=small,channels=1,size=28,classes=10,width={a.width}"
    return ["train", model, "--data", IDX, "--batch", 128, "--optimizer", "nesterov", "--lr", 0.1,
            "--weight-decay", 5e-4, "--eval-data", f"{IDX},split=test", "--quiet"]


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


def text_words(seed):
    return ["train", f"gpt2-tiny:seq={SEQ},vocab=256", "--data", "text:train.txt", "--batch", BATCH,
            "--optimizer", "adamw", "--lr", RATE, "--weight-decay", 0.01, "--clip-norm", 1,
            "--schedule", "cosine:end=0.1,warmup=100", "--seed", seed, "--eval-data",
            "text:valid.txt", "--quiet"]


def blocks(torch, name):
    data = torch.tensor(list(open(name, "rb").read()))
    return data[:len(data) // SEQ * SEQ].view(-1, SEQ)


def rate(step, steps, warmup=100, end=0.1):
    if step <= warmup:
        return step / warmup
    share = (step - warmup) / max(1, steps - warmup)
    return end + (1 - end) * (1 + math.cos(math.pi * share)) / 2


def find_torch():
    """Debian's PyTorch belongs to Debian's Python: this continues there."""
    try:
        __import__("torch")
    except ImportError:
        if sys.executable == DEBIANS:
            sys.exit("PyTorch is not installed: make bench-deps, or leave the row out: "
                     "ROWS=fashion,bits")
        os.execv(DEBIANS, [DEBIANS, *sys.argv])


def pytorch(seed, steps):
    """The same network, distribution of initial values, optimizer, clipping and schedule."""
    import torch
    import peers
    torch.manual_seed(seed)
    net = peers.begin(peers.Gpt2(2, 128, 2, SEQ, 256))
    for name, m in net.named_modules():
        if isinstance(m, torch.nn.Linear):
            torch.nn.init.zeros_(m.bias)
        if name.endswith((".attention.out", ".down")):
            torch.nn.init.normal_(m.weight, std=0.02 / math.sqrt(2 * len(net.blocks)))
    weights = [p for p in net.parameters() if p.dim() > 1]
    others = [p for p in net.parameters() if p.dim() < 2]
    adamw = torch.optim.AdamW([{"params": weights, "weight_decay": 0.01},
                               {"params": others, "weight_decay": 0}], lr=RATE)
    train, valid = blocks(torch, "train.txt"), blocks(torch, "valid.txt")
    step = 0
    while step < steps:
        for part in torch.randperm(len(train)).split(BATCH):
            if len(part) < BATCH or step == steps:
                break
            step += 1
            for group in adamw.param_groups:
                group["lr"] = RATE * rate(step, steps)
            ids = train[part]
            adamw.zero_grad()
            peers.words_loss(net(ids)[:, :-1], ids[:, 1:]).backward()
            torch.nn.utils.clip_grad_norm_(net.parameters(), 1)
            adamw.step()
    net.eval()
    with torch.no_grad():
        sums = [peers.words_loss(net(ids)[:, :-1], ids[:, 1:]).item() * len(ids)
                for ids in valid.split(BATCH)]
    return sum(sums) / len(valid)


def text(a):
    write_texts(a.text)
    line(f"gpt2-tiny, {a.steps} steps of {BATCH} x {SEQ} bytes", "validation loss", "PyTorch's")
    line("---", "---", "---")
    ours, theirs = [], []
    for seed in range(a.seeds):
        trireme(*text_words(seed), "--steps", a.steps, "--eval-every", a.steps, "-n", "auto")
        ours.append(rows("run")[-1]["eval"]["loss"])
        theirs.append(pytorch(seed, a.steps))
        line(f"seed {seed}", f"{ours[-1]:.4f}", f"{theirs[-1]:.4f}")
    line("mean", f"**{statistics.mean(ours):.4f}**", f"**{statistics.mean(theirs):.4f}**")
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
    for name in a.nets.split(","):
        words, losses = dict(nets)[name], {}
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
    parser.add_argument("--rows", default="fashion,text,bits")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--epochs", type=int, default=12)
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--steps", type=int, default=3000)
    parser.add_argument("--text", type=os.path.abspath)
    parser.add_argument("--wire", default="fp16,bf16,int8,topk:0.01")
    parser.add_argument("--nets", default="gpt2-tiny,resnet18", help="of the row wire")
    a = parser.parse_args()
    if "text" in a.rows.split(","):
        find_torch()
    PROGRAM = os.path.abspath(f"{a.build}/src/trireme")
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    with tempfile.TemporaryDirectory() as work:
        os.chdir(work)
        for name in a.rows.split(","):
            {"fashion": fashion, "text": text, "bits": bits, "wire": wire}[name](a)


if __name__ == "__main__":
    main()
