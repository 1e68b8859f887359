# SPDX-License-Identifier: Apache-2.0
"""PyTorch's part of make bench-convergence: the networks of its rows with the same distributions of
initial values, optimizers, clipping and schedules as ours; each returns the loss of the evaluation.
half: with autocast to bf16."""
import contextlib
import gzip
import math

import torch
from torch.nn import functional as F

import peers

BATCH = 16  # of texts


def rate(step, steps, warmup, end):
    if step <= warmup:
        return step / warmup
    share = (step - warmup) / max(1, steps - warmup)
    return end + (1 - end) * (1 + math.cos(math.pi * share)) / 2


def amp(half):
    return torch.autocast("cpu", torch.bfloat16) if half else contextlib.nullcontext()


def decayed(net, decay):
    """Parameters with fewer than two dimensions do not decay."""
    return [{"params": [p for p in net.parameters() if p.dim() > 1], "weight_decay": decay},
            {"params": [p for p in net.parameters() if p.dim() < 2], "weight_decay": 0}]


def train(net, optimizer, loss, samples, batch, steps, schedule, clip=None, half=False):
    """loss(part): of the samples with these numbers. schedule: warm-up and end."""
    rates = [group["lr"] for group in optimizer.param_groups]
    step = 0
    while step < steps:
        for part in torch.randperm(samples).split(batch):
            if len(part) < batch or step == steps:
                break
            step += 1
            for group, lr in zip(optimizer.param_groups, rates):
                group["lr"] = lr * rate(step, steps, *schedule)
            optimizer.zero_grad()
            with amp(half):
                value = loss(part)
            value.backward()
            if clip:
                torch.nn.utils.clip_grad_norm_(net.parameters(), clip)
            optimizer.step()


def evaluate(net, loss, samples, batch, half=False):
    net.eval()
    with torch.no_grad(), amp(half):
        sums = [loss(part).item() * len(part) for part in torch.arange(samples).split(batch)]
    return sum(sums) / samples


def transformer(net, loss, valid, count, steps, lr, half=False):
    """loss(part), valid(part); count: of the samples of each."""
    for m in net.modules():
        if isinstance(m, torch.nn.Linear):
            torch.nn.init.zeros_(m.bias)
    adamw = torch.optim.AdamW(decayed(net, 0.01), lr=lr)
    train(net, adamw, loss, count[0], BATCH, steps, (100, 0.1), 1, half)
    return evaluate(net, valid, count[1], BATCH, half)


# ---- the networks ----

def gpt2_tiny(seed, steps, lr, seq, files):
    torch.manual_seed(seed)
    net = peers.begin(peers.Gpt2(2, 128, 2, seq, 256))
    for name, m in net.named_modules():
        if name.endswith((".attention.out", ".down")):
            torch.nn.init.normal_(m.weight, std=0.02 / math.sqrt(2 * len(net.blocks)))

    def blocks(name):
        with open(name, "rb") as f:
            data = torch.tensor(list(f.read()))
        return data[:len(data) // seq * seq].view(-1, seq)

    def loss(ids):
        return peers.words_loss(net(ids)[:, :-1], ids[:, 1:])

    data = [blocks(name) for name in files]
    return transformer(net, *(lambda part, x=x: loss(x[part]) for x in data), map(len, data), steps,
                       lr)


def bert_tiny(seed, steps, lr, vocabulary, data, half):
    """data: of training and evaluation, rows of each field."""
    torch.manual_seed(seed)
    fields = [{name: torch.tensor(rows) for name, rows in part.items()} for part in data]
    count = [len(part["labels"]) for part in fields]
    net = peers.begin(peers.Bert(2, 128, 2, fields[0]["labels"].shape[1], vocabulary))

    def loss(x):
        words, following = net(x["input_ids"], x["token_type_ids"], x["attention_mask"])
        return (peers.words_loss(words, x["labels"]) +
                F.cross_entropy(following.float(), x["next_sentence_label"]))

    return transformer(net, *(lambda part, x=x: loss({name: rows[part] for name, rows in x.items()})
                              for x in fields), count, steps, lr, half)


def idx(folder, part):
    """Pictures from 0 to 1, and their classes."""
    def read(name, head):
        with gzip.open(f"{folder}/{part}-{name}-ubyte.gz") as f:
            return torch.frombuffer(bytearray(f.read()[head:]), dtype=torch.uint8)

    return read("images-idx3", 16).view(-1, 1, 28, 28) / 255, read("labels-idx1", 8).long()


def resnet18(seed, epochs, width, lr, decay, batch, schedule, folder, half):
    torch.manual_seed(seed)
    last = torch.channels_last
    net = peers.models.Resnet(peers.models.Basic, (2, 2, 2, 2), width, 10, True)
    net.conv1 = peers.models.conv(1, width, 3)
    for m in net.modules():
        if isinstance(m, torch.nn.Conv2d):
            torch.nn.init.kaiming_normal_(m.weight, mode="fan_out", nonlinearity="relu")
    net.to(memory_format=last)
    data = [idx(folder, part) for part in ("train", "t10k")]

    def loss(x, y):
        return F.cross_entropy(net(x.contiguous(memory_format=last)).float(), y)

    train_loss, test_loss = (lambda part, x=x, y=y: loss(x[part], y[part]) for x, y in data)
    sgd = torch.optim.SGD(decayed(net, decay), lr, momentum=0.9, nesterov=True)
    train(net, sgd, train_loss, len(data[0][1]), batch, len(data[0][1]) // batch * epochs, schedule,
          half=half)
    return evaluate(net, test_loss, len(data[1][1]), batch, half)
