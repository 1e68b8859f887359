# SPDX-License-Identifier: Apache-2.0
"""make bench: tables of ratios, measured in alternation (ours, theirs, ours, theirs, ...). Every
figure is from a process of its own: some steps to warm up, then the median of the following steps.
A ratio belongs to one round; the table has the median over the rounds, the lowest and the highest.
Above 1, ours is faster or needs less. PyTorch is the one that this Python imports. It has two
columns: at the best that one process can have (number of threads, memory format, joined or fused
optimizer, fused attention, torch.compile, a malloc that keeps its memory are tried before), and as
installed. Ours has one lane, or is tried with one, two and the default number. Each side uses the
batch that it is fastest with. TRIREME_ISA=avx2 limits PyTorch, too."""
import argparse
import dataclasses
import itertools
import operator
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time

from sides import HERE, Ours, Torch, Unavailable, cores, output, run, torch_able
from tables import amount, machine, print_table, progress, spread

TRY_STEPS, TRY_SECONDS = 2, 0.5  # of a try; of a try with short steps
AGAIN = 3                        # the fastest so many are tried again
RATE = operator.itemgetter(0)    # of a try's result
MIN_STEPS = 3                    # of a measurement


# ---- what is measured ----

def steps_for(seconds, ms):
    return max(MIN_STEPS, min(int(1e3 * seconds / ms) + 1, 200000))


def rate(side, seen):
    """Samples a second."""
    return 1e3 * side.batch / seen["median_ms"]


def attempt(side):
    """(rate, side, steps of a measurement). If steps are short, more than two are measured."""
    seen = side.measure(TRY_STEPS)
    more = steps_for(TRY_SECONDS, seen["median_ms"])
    if more > MIN_STEPS:
        seen = side.measure(more)
    progress(f"    {rate(side, seen):10.4g} samples/s  {type(side).__name__}: {side.says()}")
    return rate(side, seen), side, steps_for(SECONDS, seen["median_ms"])


def fastest(sides):
    return max((attempt(side) for side in sides), key=RATE)


def attempt_compiled(side):
    """[attempt(side)]; empty, with a note, if PyTorch cannot compile the network."""
    try:
        return [attempt(side)]
    except Unavailable as why:
        NOTES.append(f"PyTorch cannot compile {side.model} ({side.says()}): {why}")
        progress(f"    {NOTES[-1]}")
        return []


def best_torch(start, batches, images, transformer):
    """One choice after the other, each with the best so far. Tries are short: the best few are
    tried again."""
    start = dataclasses.replace(start, batch=batches[0], keep_memory=True, threads=cores())
    tried = [attempt(start)]
    for choice in [{"batch": b} for b in batches[1:]], *start.choices(TORCH, images, transformer):
        best = max(tried, key=RATE)[1]
        for change in choice:
            side = dataclasses.replace(best, **change)
            tried += attempt_compiled(side) if side.compiled else [attempt(side)]
    return fastest(side for _, side, _ in sorted(tried, key=RATE)[-AGAIN:])


def alternate(sides, rounds, steps, field="median_ms"):
    """What each round measured, for each side: one side after the other."""
    seen = [[] for _ in sides]
    for r in range(rounds):
        for side, n, results in zip(sides, steps, seen):
            results.append(side.measure(n))
        progress(f"    round {r + 1} of {rounds}, {field}: " +
                 ", ".join(f"{results[-1][field]:.4g}" for results in seen))
    return seen


def without_lanes(words):
    pairs = zip(words[::2], words[1::2])
    return tuple(w for pair in pairs if pair[0] != "--lanes" for w in pair)


@dataclasses.dataclass
class Against:
    """Training steps of one network, ours against PyTorch's."""
    key: str
    what: str
    aim: str
    model: str
    peer: Torch
    batches: tuple
    options: tuple = ()    # of ours
    tries: tuple = ((),)   # more options of ours: each is tried
    unit: str = "images/s"
    per: float = 1         # units per sample; 0: one unit per step, whatever its batch
    images: bool = False
    transformer: bool = False  # print the share of the multiply-add rate

    def measure(self, rounds):
        found = [fastest(Ours(self.model, b, options)
                         for b, options in itertools.product(self.batches, self.options_tried()))]
        if TORCH:
            best = best_torch(self.peer, self.batches, self.images, self.transformer)
            installed = fastest(dataclasses.replace(self.peer, batch=b) for b in self.batches)
            found += [max(best, installed, key=RATE), installed]
        sides = [side for _, side, _ in found]
        seen = alternate(sides, rounds, [steps for _, _, steps in found])
        rates = [[rate(side, s) for s in results] for side, results in zip(sides, seen)]
        cells = [self.cell(*pair) for pair in zip(sides, rates)]
        if self.transformer and not Ours.workers:
            share = statistics.median(s["fma_share"] for s in seen[0])
            cells[0] += f", {100 * share:.0f} % of the multiply-add rate"
        for i in range(1, len(sides)):
            cells.insert(2 * i, spread([o / t for o, t in zip(rates[0], rates[i])]))
        return cells

    def options_tried(self):
        """With several workers, each has one lane at least."""
        tried = [self.options + t for t in self.tries]
        if not Ours.workers:
            return tried
        other = dict.fromkeys(without_lanes(t) for t in tried)
        return [t + ("--lanes", str(Ours.workers * k)) for t in other for k in (1, 2)]

    def cell(self, side, rates):
        speed = statistics.median(rates) * (self.per or 1 / side.batch)
        return f"{amount(speed)} {self.unit} ({side.says()})"


@dataclasses.dataclass
class Memory:
    """Peak memory at the same batch; PyTorch with the tuned malloc, eager or compiled, and as
    installed."""
    key: str
    what: str
    aim: str
    ours: Ours
    peer: Torch

    def measure(self, rounds):
        sides = [self.ours] + ([self.best_torch(), self.peer] if TORCH else [])
        seen = alternate(sides, min(rounds, 3), [TRY_STEPS] * 3, "peak_rss_mib")
        peaks = [[s["peak_rss_mib"] for s in results] for results in seen]
        cells = [f"{amount(statistics.median(p))} MiB ({side.says()})"
                 for side, p in zip(sides, peaks)]
        for i in range(1, len(sides)):
            cells.insert(2 * i, spread([t / o for o, t in zip(peaks[0], peaks[i])]))
        return cells

    def best_torch(self):
        best = dataclasses.replace(self.peer, keep_memory=True, channels_last=True, threads=cores())
        other = dataclasses.replace(best, compiled=True)
        if not TORCH.compiler or not attempt_compiled(other):
            return best
        peaks = alternate([best, other], 1, [TRY_STEPS] * 2, "peak_rss_mib")
        return min(zip((best, other), peaks), key=lambda pair: pair[1][0]["peak_rss_mib"])[0]


@dataclasses.dataclass
class Within:
    """Ours against ours."""
    key: str
    what: str
    aim: str
    ours: Ours   # what should be fast
    other: Ours

    def measure(self, rounds):
        sides = self.ours, self.other
        seen = alternate(sides, rounds, [attempt(side)[2] for side in sides])
        return [spread([b["median_ms"] / a["median_ms"] for a, b in zip(*seen)])]


@dataclasses.dataclass
class Grouped:
    """Three convolutions of 96 channels, 56 x 56, batch 16: bf16 against f32, both ours."""
    key: str
    what: str
    aim: str
    groups: int

    def measure(self, rounds):
        with tempfile.TemporaryDirectory() as work:
            net = f"{work}/grouped.tri"
            with open(net, "w", encoding="utf-8") as f:
                f.write(self.network())
            half, full = (Ours(net, 16, LANES[1] + amp) for amp in (HALF[1], ()))
            return Within(self.key, self.what, self.aim, half, full).measure(rounds)

    def network(self):
        lines = ["graph {batch=16}", '%y0 = input() {name="x", type=f32, shape=[16,96,56,56]}']
        for i in range(1, 4):
            lines += [f'%w{i} = param() {{name="w{i}", shape=[96,{96 // self.groups},3,3], '
                      'init="he_normal_out(0,0)"}',
                      f"%c{i} = conv2d(%y{i - 1}, %w{i}) {{pad=[1,1], groups={self.groups}}}",
                      f"%y{i} = relu(%c{i})"]
        return "\n".join([*lines, "%l = mean(%y3)", 'loss "loss" %l', ""])


@dataclasses.dataclass
class Copy:
    """What all threads read and write together when they copy."""
    key: str
    what: str
    aim: str

    def measure(self, rounds):
        program = os.path.join(os.path.dirname(Ours.program), "..", "bench", "copy")
        return [spread([run([program])["gbytes_per_s"] for _ in range(rounds)], "{:.1f}", " GB/s")]


@dataclasses.dataclass
class Start:
    """From exec to the end of the first step: all of `trireme train` with one step, including its
    hashes and metrics."""
    key: str
    what: str
    aim: str
    model: str
    batch: int

    def measure(self, rounds):
        times = []
        with tempfile.TemporaryDirectory() as out:
            for _ in range(4 * rounds + 1):
                begin = time.monotonic()
                run([Ours.program, "train", self.model, "--batch", str(self.batch), "--steps", "1",
                     "--quiet", "--out", out])
                times.append(1e3 * (time.monotonic() - begin))
        return [spread(times[1:], "{:.0f}", " ms")]  # without the first: files are cached then


@dataclasses.dataclass
class FirstStep:
    """The first step and everything before it, minus the second step."""
    key: str
    what: str
    aim: str
    ours: Ours

    def measure(self, rounds):
        seen = [self.ours.measure(1) for _ in range(rounds + 1)][1:]
        return [spread([s["start_ms"] - s["second_step_ms"] for s in seen], "{:.0f}", " ms")]


@dataclasses.dataclass
class Saves:
    """How long a checkpoint delays a step (the best of four), in copies of as many bytes in the
    same process (the best of three). Between two checkpoints there is time to write one."""
    key: str
    what: str
    aim: str
    model: str
    options: tuple

    def measure(self, rounds):
        return [spread([self.ratio() for _ in range(rounds)], "{:.2f}", " copies")]

    def ratio(self):
        with tempfile.TemporaryDirectory() as work:
            done = subprocess.run([Ours.program, "train", self.model, *self.options, "--ckpt",
                                   f"{work}/ck", "--out", work], capture_output=True, text=True,
                                  timeout=LONGEST)
        said = re.search(r"at least (\S+) ms .a copy of as many bytes: (\S+) ms", done.stderr)
        if done.returncode or not said:
            raise Unavailable((done.stderr.strip().splitlines() or ["nothing is said"])[-1])
        held, copy = map(float, said.groups())
        progress(f"    {held} ms, a copy {copy} ms")
        return held / copy


@dataclasses.dataclass
class Pictures:
    """JPEGs like photographs, to random parts of 224 x 224, normalised, on one core: against
    decoding them whole, or against what PyTorch's users have."""
    key: str
    what: str
    aim: str
    peer: bool

    def measure(self, rounds):
        with tempfile.TemporaryDirectory() as work:
            script, seen = [PICTURES, f"{HERE}/pictures.py"], []
            output([*script, "make", work, "64"])
            for r in range(rounds):
                ours = run([Ours.program, "data", f"images:{work}", "--bench", "--seconds",
                            str(SECONDS)])
                theirs = run([*script, "rate", work, str(SECONDS)]) if self.peer else ours
                other = "samples_per_s" if self.peer else "whole_per_s"
                seen.append((ours["samples_per_s"], theirs[other]))
                progress(f"    round {r + 1} of {rounds}: {seen[-1]}")
        ours, other = (amount(statistics.median(s[i] for s in seen)) for i in range(2))
        return [f"{spread([o / t for o, t in seen])}; {ours} and {other} per second by "
                f"{theirs.get('by', 'libjpeg')}"]


PICTURES = "/usr/bin/python3"  # Debian's, which has Debian's Pillow
MOMENTUM, ADAMW = ("--optimizer", "momentum"), ("--optimizer", "adamw")
FULL, HALF = ((),), (("--amp", "O1"), ("--amp", "O2"))
LANES = (), ("--lanes", "1"), ("--lanes", "2")
ONE, TWO = ("--threads", "1"), ("--threads", "2")
BATCHES = (16, 8, 32)


def resnet50(key, kind, aim, half):
    return Against(key, f"ResNet-50, 224², {kind}", aim, "resnet50",
                   Torch("resnet50", 0, "momentum", half), BATCHES, MOMENTUM + LANES[1],
                   HALF if half else FULL, images=True)


def memory(key, kind, half):
    return Memory(key, f"peak memory of ResNet-50, batch 16, {kind}", "1.00",
                  Ours("resnet50", 16, MOMENTUM + (HALF[0] if half else ())),
                  Torch("resnet50", 16, "momentum", half))


def transformer(key, what, aim, model, batch, tokens, half=False):
    tries = tuple(a + b for a in (HALF if half else FULL) for b in LANES)
    return Against(key, what, aim, model, Torch(key.removesuffix("-bf16"), 0, "adamw", half),
                   (batch,), ADAMW, tries, "tokens/s", tokens, transformer=True)


BERT, GPT2 = "bert-base:seq=128,head=every", "gpt2-small:seq=256"
AGAINST = [
    resnet50("resnet50", "f32", "1.30", False),
    resnet50("resnet50-bf16", "bf16", "1.15", True),
    memory("memory", "f32", False),
    memory("memory-bf16", "bf16", True),
    transformer("bert-base", "BERT-base, 128 tokens, f32", "1.05", BERT, 8, 128),
    transformer("bert-base-bf16", "BERT-base, 128 tokens, bf16", "1.05", BERT, 8, 128, True),
    transformer("gpt2-small", "GPT-2 small, 256 tokens, f32", "1.15", GPT2, 4, 256),
    transformer("gpt2-small-bf16", "GPT-2 small, 256 tokens, bf16", "2.00", GPT2, 4, 256, True),
    Against("mlp", "MLP 784-2048-2048-10, AdamW", "1.80", "mlp:hidden=2048",
            Torch("mlp", 0, "adamw"), (128,), ADAMW, LANES),
    Against("lenet5", "LeNet-5, 28²", "3.00", "lenet5", Torch("lenet5", 0), (64,), tries=LANES,
            images=True),
    Against("linear", "linear model", "30.0", "linear", Torch("linear", 0), (16,),
            unit="steps/s", per=0),
    Against("resnet18", "ResNet-18, 32²", "1.60", "resnet18:form=small,classes=10",
            Torch("resnet18", 0, "momentum"), (64,), MOMENTUM, LANES, images=True),
]
ALONE = [
    Within("threads", "two threads against one (ResNet-50, batch 16, one lane)", "1.70",
           Ours("resnet50", 16, MOMENTUM + LANES[1] + TWO),
           Ours("resnet50", 16, MOMENTUM + LANES[1] + ONE)),
    Within("lanes", "two lanes against one (ResNet-50, batch 32, one thread)", "0.95",
           Ours("resnet50", 32, MOMENTUM + LANES[2] + ONE),
           Ours("resnet50", 32, MOMENTUM + LANES[1] + ONE)),
    *(Grouped(key, f"bf16 against f32 (three convolutions of 96 channels, {what})", "1.40", groups)
      for key, what, groups in (("depthwise", "depthwise", 96), ("groups-of-4", "24 groups", 24),
                                ("groups-of-32", "3 groups", 3))),
    Copy("copy", "a copy by all threads, read and written", ""),
    Start("start", "from exec to the end of the first step (LeNet-5, batch 64)", "50 ms", "lenet5",
          64),
    Saves("saves", "how long a checkpoint delays a step (BERT-base with AdamW, 1.3 GB)",
          "at most 1.20", "bert-base:seq=32", ADAMW + ("--batch", "4", "--steps", "32",
                                                       "--save-every", "8", "--keep", "1")),
    FirstStep("first", "first step minus second step (ResNet-50, batch 16)", "1000 ms",
              Ours("resnet50", 16, MOMENTUM)),
    Pictures("pictures", "random parts of 224² of pictures against decoding alone", "0.65", False),
    Pictures("pictures-peer", "random parts of 224² of pictures against torchvision", "2.00", True),
]
ROWS = AGAINST + ALONE


# ---- the tables ----

def measured(rows, rounds):
    """Lines of a table, and whether it was interrupted; then only the lines that are done."""
    lines = []
    for row in rows:
        progress(row.what)
        try:
            cells = row.measure(rounds)
        except Unavailable as why:
            cells = [f"not available: {why}"]
        except KeyboardInterrupt:
            return lines, True
        lines.append([row.what, row.aim, *cells])
    return lines, False


def choose(names):
    keys = [r.key for r in ROWS]
    wrong = [n for n in names if n not in keys]
    if wrong:
        sys.exit(f"bench: unknown row {', '.join(wrong)}; known: {', '.join(keys)}")
    return [[r for r in table if not names or r.key in names] for table in (AGAINST, ALONE)]


def main():
    global TORCH, SECONDS
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("build")
    p.add_argument("--rows", default="", help="some of " + ",".join(r.key for r in ROWS))
    p.add_argument("--rounds", type=int, default=5)
    p.add_argument("--seconds", type=float, default=4, help="of each measurement")
    p.add_argument("--workers", type=int, default=0,
                   help="ours with so many processes of one thread each; training rows only")
    p.add_argument("--no-peer", action="store_true", help="without PyTorch")
    a = p.parse_args()
    if a.rounds < 1 or a.seconds <= 0:
        p.error("--rounds and --seconds must be above 0")
    against, alone = choose([n for n in re.split("[, ]+", a.rows) if n])
    Ours.program, Ours.workers = os.path.join(a.build, "src", "trireme"), a.workers
    if Ours.workers:
        against, alone = [r for r in against if isinstance(r, Against)], []
    SECONDS = a.seconds
    peers = against and not a.no_peer
    TORCH = torch_able() if peers else None
    if peers and not TORCH:
        print(f"{sys.executable} imports no PyTorch (make bench-deps, then make bench "
              "PYTHON=/usr/bin/python3): its columns are left out.\n")
    lines, interrupted = measured(against, a.rounds)
    own = [] if interrupted else measured(alone, a.rounds)[0]
    peer = f"; {TORCH.says()}" if TORCH else ""
    print(f"{machine()}{peer}. Median (lowest to highest) of {a.rounds} rounds.\n")
    for note in NOTES:
        print(f"{note}.\n")
    head = ["", "aim", f"Trireme, {a.workers} workers" if a.workers else "Trireme"]
    if TORCH:
        head += ["PyTorch at its best", "ratio", "PyTorch as installed", "ratio"]
    print_table(head, lines)
    print_table(["Trireme against itself", "aim", "measured"], own)


TORCH = None
SECONDS = 0.0
NOTES = []
if __name__ == "__main__":
    main()
