# SPDX-License-Identifier: Apache-2.0
"""One measurement of PyTorch: training steps of a network of the zoo, on data made beforehand.
Prints a line like that of `trireme bench`: "peer model=... median_ms=... ...". `peers.py able`
measures nothing and prints what this PyTorch can do. The networks without attention are those of
the golden tests; the transformers are here."""
import argparse
import contextlib
import math
import os
import socket
import statistics
import subprocess
import sys
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn import functional as F

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../tests/golden"))
import models  # noqa: E402

models.relu, models.max_pool = F.relu, F.max_pool2d  # without the golden tests' instruments

WARM_STEPS = 3
DROPOUT = 0.1


# ---- transformers ----

class Attention(nn.Module):
    """Softmax of q k' / sqrt(d), with dropout, times v; q, k, v from one projection or three.
    fused: by one operator, which PyTorch has from 2.0 on."""

    fused = False

    def __init__(self, width, heads, causal, seq):
        super().__init__()
        self.heads, self.drop = heads, nn.Dropout(DROPOUT)
        if causal:
            self.qkv = nn.Linear(width, 3 * width)
            self.register_buffer("mask", torch.full((seq, seq), -math.inf).triu(1))
        else:
            self.q, self.k, self.v = (nn.Linear(width, width) for _ in range(3))
        self.causal = causal
        self.out = nn.Linear(width, width)

    def forward(self, x, padding):
        n, s, w = x.shape
        parts = self.qkv(x).split(w, 2) if self.causal else (self.q(x), self.k(x), self.v(x))
        q, k, v = (p.view(n, s, self.heads, -1).transpose(1, 2) for p in parts)
        if Attention.fused:
            mixed = F.scaled_dot_product_attention(
                q, k, v, attn_mask=padding, dropout_p=DROPOUT, is_causal=self.causal)
        else:
            scores = q @ k.transpose(2, 3) / math.sqrt(w // self.heads)
            scores = scores + (self.mask if self.causal else padding)
            mixed = self.drop(scores.softmax(-1)) @ v
        return self.out(mixed.transpose(1, 2).reshape(n, s, w))


class Block(nn.Module):
    """Norm after the residual sum (BERT), or before the branch (GPT-2)."""

    def __init__(self, width, heads, causal, seq):
        super().__init__()
        self.attention = Attention(width, heads, causal, seq)
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.act = nn.GELU("tanh" if causal else "none")
        self.drop, self.before = nn.Dropout(DROPOUT), causal

    def feed_forward(self, x):
        return self.drop(self.down(self.act(self.up(x))))

    def forward(self, x, padding=None):
        if self.before:
            x = x + self.drop(self.attention(self.norm1(x), None))
            return x + self.feed_forward(self.norm2(x))
        x = self.norm1(x + self.drop(self.attention(x, padding)))
        return self.norm2(x + self.feed_forward(x))


class Bert(nn.Module):
    """Masked words at every position, their head tied to the embedding, and the next sentence."""

    def __init__(self, layers, width, heads, seq, vocabulary=30522):
        super().__init__()
        self.word = nn.Embedding(vocabulary, width)
        self.place, self.segment = nn.Embedding(512, width), nn.Embedding(2, width)
        self.norm, self.drop = nn.LayerNorm(width), nn.Dropout(DROPOUT)
        self.blocks = nn.ModuleList(Block(width, heads, False, seq) for _ in range(layers))
        self.pool, self.next = nn.Linear(width, width), nn.Linear(width, 2)
        self.dense, self.dense_norm = nn.Linear(width, width), nn.LayerNorm(width)
        self.bias = nn.Parameter(torch.zeros(vocabulary))

    def forward(self, ids, segments, mask):
        x = self.word(ids) + self.place.weight[: ids.shape[1]] + self.segment(segments)
        x = self.drop(self.norm(x))
        padding = (1 - mask[:, None, None, :]) * -1e9
        for block in self.blocks:
            x = block(x, padding)
        head = self.dense_norm(F.gelu(self.dense(x)).float())
        words = F.linear(head, self.word.weight, self.bias)
        return words, self.next(torch.tanh(self.pool(x[:, 0])))


class Gpt2(nn.Module):
    """The next token at every position, head tied to the embedding."""

    def __init__(self, layers, width, heads, seq, vocabulary=50257):
        super().__init__()
        self.word, self.place = nn.Embedding(vocabulary, width), nn.Embedding(1024, width)
        self.drop, self.norm = nn.Dropout(DROPOUT), nn.LayerNorm(width)
        self.blocks = nn.ModuleList(Block(width, heads, True, seq) for _ in range(layers))

    def forward(self, ids):
        x = self.drop(self.word(ids) + self.place.weight[: ids.shape[1]])
        for block in self.blocks:
            x = block(x)
        return F.linear(self.norm(x), self.word.weight)


def begin(net):
    """Initial values as published. With PyTorch's own values the gradients of the tied head are so
    small (subnormal) that processors take a hundred times as long for them."""
    for m in net.modules():
        if isinstance(m, (nn.Linear, nn.Embedding)):
            nn.init.normal_(m.weight, std=0.02)
    return net


def words_loss(logits, labels):
    return F.cross_entropy(logits.flatten(0, 1).float(), labels.flatten())


# ---- the table ----

def image(net, channels, size, classes):
    def make(n, channels_last):
        x = torch.randn(n, channels, size, size)
        if channels_last:
            x, last = x.to(memory_format=torch.channels_last), torch.channels_last
            net.to(memory_format=last)
        y = torch.randint(classes, (n,))
        return net, lambda: F.cross_entropy(net(x).float(), y)

    return make


def linear(n, _):
    net, x, y = models.Linear(), torch.randn(n, 2), torch.randn(n, 1)
    return net, lambda: F.mse_loss(net(x), y)


def bert(layers, width, heads, seq):
    def make(n, _):
        net = begin(Bert(layers, width, heads, seq))
        ids, labels = (torch.randint(30522, (n, seq)) for _ in range(2))
        segments, after = torch.randint(2, (n, seq)), torch.randint(2, (n,))
        mask = torch.ones(n, seq)

        def loss():
            words, following = net(ids, segments, mask)
            return words_loss(words, labels) + F.cross_entropy(following.float(), after)

        return net, loss

    return make


def gpt2(layers, width, heads, seq):
    def make(n, _):
        net, ids = begin(Gpt2(layers, width, heads, seq)), torch.randint(50257, (n, seq + 1))
        return net, lambda: words_loss(net(ids[:, :-1]), ids[:, 1:].reshape(-1, seq))

    return make


NETWORKS = {
    "linear": lambda: linear,
    "mlp": lambda: image(models.Mlp(28, 2048, 2, 10), 1, 28, 10),
    "lenet5": lambda: image(models.Lenet5(), 1, 28, 10),
    "cnn": lambda: image(models.Cnn(16), 1, 28, 10),
    "resnet18": lambda: image(models.Resnet(models.Basic, (2, 2, 2, 2), 64, 10, True), 3, 32, 10),
    "resnet50": lambda: image(models.Resnet(models.Bottleneck, (3, 4, 6, 3), 64, 1000, False),
                              3, 224, 1000),
    "bert-base": lambda: bert(12, 768, 12, 128),
    "gpt2-small": lambda: gpt2(12, 768, 12, 256),
}

OPTIMIZERS = {
    "sgd": lambda p, **how: torch.optim.SGD(p, 0.001, **how),
    "momentum": lambda p, **how: torch.optim.SGD(p, 0.001, momentum=0.9, **how),
    "adamw": lambda p, **how: torch.optim.AdamW(p, 0.0001, weight_decay=0.0, **how),
}


def able():
    """A line of what this PyTorch can do: compile networks; fused optimizers and attention; and
    whether its products are OpenBLAS's."""
    try:
        weight = torch.zeros(1, requires_grad=True)
        weight.grad = torch.zeros(1)
        for make in OPTIMIZERS.values():
            make([weight], fused=True).step()
        fused = 1
    except (RuntimeError, TypeError):
        fused = 0
    with open("/proc/self/maps") as f:
        openblas = int("/libopenblas" in f.read())
    print(f"able torch={torch.__version__} compile={int(hasattr(torch, 'compile'))} fused={fused} "
          f"attention={int(hasattr(F, 'scaled_dot_product_attention'))} openblas={openblas}")


def peak_mib():
    """Of this process alone; maxrss would include the process that started it."""
    with open("/proc/self/status") as f:
        return next(int(line.split()[1]) for line in f if line.startswith("VmHWM")) / 1024


# ---- several processes ----

def join(processes):
    """The first process starts the others; gloo connects them."""
    if "RANK" in os.environ:
        dist.init_process_group("gloo")
        return []
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    shared = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "WORLD_SIZE": str(processes)}
    others = [subprocess.Popen([sys.executable, *sys.argv], stdout=subprocess.DEVNULL,
                               env={**os.environ, **shared, "RANK": str(rank)})
              for rank in range(1, processes)]
    os.environ |= {**shared, "RANK": "0"}
    dist.init_process_group("gloo")
    return others


def spread(net, bucket):
    """From here on every call of the network goes through DDP."""
    ddp = nn.parallel.DistributedDataParallel(net, bucket_cap_mb=bucket)

    class Shared(type(net)):
        inside = False

        def __call__(self, *inputs):
            if self.inside:
                return super().__call__(*inputs)
            self.inside = True
            try:
                return ddp(*inputs)
            finally:
                self.inside = False

    net.__class__ = Shared


def main():
    p = argparse.ArgumentParser()
    p.add_argument("model", choices=NETWORKS)
    p.add_argument("--batch", type=int, required=True)
    p.add_argument("--optimizer", choices=OPTIMIZERS, default="sgd")
    p.add_argument("--steps", type=int, default=10)
    p.add_argument("--threads", type=int, default=0, help="0: PyTorch's default")
    p.add_argument("--channels-last", action="store_true")
    p.add_argument("--foreach", action="store_true", help="optimizer with joined loops")
    p.add_argument("--fused", action="store_true", help="optimizer of one kernel")
    p.add_argument("--attention", action="store_true", help="in one operator")
    p.add_argument("--compiled", action="store_true", help="by torch.compile")
    p.add_argument("--bf16", action="store_true", help="autocast")
    p.add_argument("--processes", type=int, default=1, help="DDP with gloo; --batch is per process")
    p.add_argument("--bucket", type=int, help="MB of its buckets (default: DDP's)")
    a = p.parse_args()
    others = join(a.processes) if a.processes > 1 else []
    if a.threads:
        torch.set_num_threads(a.threads)
    torch.manual_seed(0)
    Attention.fused = a.attention
    net, loss = NETWORKS[a.model]()(a.batch, a.channels_last)
    if a.processes > 1:
        spread(net, a.bucket)
    if a.compiled:
        loss = torch.compile(loss, dynamic=False)
    how = {"fused": True} if a.fused else {"foreach": a.foreach}
    optimizer = OPTIMIZERS[a.optimizer](net.parameters(), **how)
    times = []
    for _ in range(WARM_STEPS + a.steps):
        begin = time.perf_counter()
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cpu", torch.bfloat16) if a.bf16 else contextlib.nullcontext():
            value = loss()
        value.backward()
        optimizer.step()
        value.item()
        times.append(1e3 * (time.perf_counter() - begin))
    for other in others:
        other.wait()
    print(f"peer model={a.model} batch={a.batch} threads={torch.get_num_threads()} "
          f"torch={torch.__version__} steps={a.steps} "
          f"median_ms={statistics.median(times[WARM_STEPS:]):.5g} first_step_ms={times[0]:.5g} "
          f"second_step_ms={times[1]:.5g} peak_rss_mib={peak_mib():.1f}")


if __name__ == "__main__":
    able() if sys.argv[1:] == ["able"] else main()
