# SPDX-License-Identifier: Apache-2.0
"""make bench-kernels: single products and convolutions of f32 or bf16 in GFLOP/s beside OpenBLAS,
BLIS, oneDNN and the PyTorch that this Python imports, with 1 and 2 threads: tables, then geometric
means, the lowest figures, and the time of some rows together. BUILD/bench/kernels measures
(bench/kernels/main.c), with alternating libraries: the tables have the medians. "share" is of the
rate that the instructions of our products reach in registers, measured in the same round. "ratio"
is to the fastest other library; above 1, ours is faster. "from": the smallest cache that holds all
operands, which stay there from run to run. "rms" and "worst" are errors against f64, relative to
the root mean square of the result, in parentheses as multiples of those of OpenBLAS or oneDNN,
whichever has the smaller. "W": by Winograd's algorithm, whose GFLOP/s are those of a direct
convolution, and whose share counts what it computes. "?": no round counts, so all do.
TRIREME_ISA=avx2 limits all libraries.

A round counts if two threads reached 1.8 times what one did in registers before and after it: two
processors of a virtual machine are at times one core, and others may use them. Those that do not
are repeated, up to three times as many rounds.

Usage: kernels.py BUILD [--type f32|bf16] [--rows TEXT,...] [--rounds N] [--seconds S]
                  [--threads 1,2] [--conv auto|direct]"""
import argparse
import contextlib
import math
import os
import re
import statistics
import subprocess
import sys

from sides import HERE, KEEP_MEMORY, best_openblas, cores, environment, torch_able
from tables import amount, machine, print_table, progress, spread

PEERS = {"openblas": "OpenBLAS", "blis": "BLIS", "onednn": "oneDNN", "torch": "PyTorch"}
EXACT = ("openblas", "onednn")  # of which the smaller error is the measure
BIG = 512                       # m, n and k of products whose share has an aim
BELOW = 0.85                    # ratios that are listed
ABOVE = {"rms": 1.2, "worst": 1.5}  # multiples of errors that are listed
INSTRUCTIONS = {"fma": "fused multiply-adds", "pairs": "VDPBF16PS", "tiles": "tiles"}
TOGETHER = {"products of BERT-base and GPT-2 small": r"(bert|gpt2)-.*-(y|dx|dw)$",
            "conv2d and conv2d_dx of ResNet-50": r"resnet50-.*to.*-(y|dx)$",
            "conv2d_dw of ResNet-50": r"resnet50-.*to.*-dw$"}


class Row:
    """A line of the program: fields, of which some are series with a figure for each round."""
    def __init__(self, line):
        self.fields = dict(re.findall(r"(\w+)=(\S+)", line))
        self.name, self.section, self.direction = (
            self.fields[name] for name in ("name", "section", "direction"))
        self.winograd = self.fields["winograd"] == "1"
        self.whole = self.fields.get("whole") == "1"
        self.flops, self.done = self.number("flops"), self.number("done")
        self.counts = self.numbers("counts")
        self.ratios = {p: self.faster_than(p) for p in (*PEERS, "alone") if p in self.fields}

    def number(self, name):
        return float(self.fields[name])

    def numbers(self, name):
        return [float(x) for x in self.fields[name].split(",")]

    def series(self, name):
        """Of the rounds that count; of all if none does."""
        x = self.numbers(name)
        return [x for x, counts in zip(x, self.counts) if counts] or x

    def seconds(self, name):
        return statistics.median(self.series(name))

    def faster_than(self, name):
        pairs = zip(self.series("trireme"), self.series(name))
        return statistics.median(theirs / own for own, theirs in pairs)

    def gflops(self, name):
        return 1e-9 * self.flops / self.seconds(name)

    def share(self):
        """Of the rate in registers in the same round: on shared processors both change."""
        pairs = zip(self.series("trireme"), self.series("registers"))
        return statistics.median(self.done / (own * registers) for own, registers in pairs)

    def ratio(self):
        """To the fastest other library, or to the product alone; null: there is none."""
        return min(self.ratios.values(), default=None)

    def error(self, kind):
        """(of ours, in those of the better of EXACT); null if not measured, or nothing is."""
        theirs = [self.number(f"{p}_{kind}") for p in EXACT if f"{p}_{kind}" in self.fields]
        own = self.fields.get(f"trireme_{kind}")
        if own is None:
            return None, None
        least = min(theirs, default=0)
        return float(own), float(own) / least if least else None

    def label(self):
        return self.name + " ?" * (not any(self.counts))

    def big(self):
        return self.section == "product" and all(self.number(s) >= BIG for s in "mnk")

    def size(self):
        """Of a product."""
        m, n, k, batch = (self.fields[s] for s in ("m", "n", "k", "batch"))
        return f"{batch} * " * (batch != "1") + f"{m} x {n} x {k}"


# ---- tables ----

def error_cell(row, kind):
    own, times = row.error(kind)
    return "" if own is None else f"{own:.1e}" + (f" ({times:.2f})" if times else "")


def table(rows, what, peers, errors):
    head = [what, *["m x n x k"] * (what == "product"), "from", "Trireme", "share",
            *(PEERS[p] for p in peers), "ratio", *["rms", "worst"] * errors]
    lines = []
    for r in rows:
        ratio = r.ratio()
        lines.append([
            r.label(), *([r.size()] if what == "product" else []), r.fields["from"],
            amount(r.gflops("trireme")) + " W" * r.winograd, f"{r.share():.2f}",
            *(amount(r.gflops(p)) if p in r.ratios else "" for p in peers),
            f"{ratio:.2f}" if ratio else "",
            *(error_cell(r, kind) for kind in ("rms", "worst") if errors)])
    print_table(head, lines)


def mean(values):
    return math.exp(statistics.fmean(map(math.log, values)))


def lowest(rows, value):
    """The geometric mean of a figure, and the lowest with the row's name."""
    worst = min(rows, key=value)
    return f"{mean([value(r) for r in rows]):.3f}, lowest {value(worst):.3f} ({worst.name})"


def ratios(rows, what):
    rows = [r for r in rows if r.ratio()]
    if not rows:
        return
    print(f"- {what}, ratio to the fastest library: {lowest(rows, Row.ratio)}")
    for direction in "y", "dx", "dw":
        some = [r for r in rows if r.direction == direction]
        if some:
            print(f"  - {direction}: {lowest(some, Row.ratio)}")
    slow = [r for r in sorted(rows, key=Row.ratio) if r.ratio() < BELOW]
    if slow:
        print(f"  - below {BELOW}: " + ", ".join(f"{r.name} {r.ratio():.2f}" for r in slow))


def errors_of(rows, what):
    for kind, limit in ABOVE.items():
        some = [(r.error(kind)[1], r.name) for r in rows if not r.winograd and r.error(kind)[1]]
        if not some:
            continue
        times, name = max(some)
        print(f"- {what}, {kind} error: at most {times:.2f} times that of the better library "
              f"({name})")
        large = [f"{name} {times:.2f}" for times, name in sorted(some, reverse=True)
                 if times > limit]
        if large:
            print(f"  - above {limit}: " + ", ".join(large))


def together(rows):
    for what, pattern in TOGETHER.items():
        some = [r for r in rows if r.section != "gelu" and re.match(pattern, r.name)]
        for p, name in PEERS.items():
            if some and all(p in r.ratios for r in some):
                ours, theirs = (1e3 * sum(r.seconds(side) for r in some) for side in ("trireme", p))
                print(f"- {what}, {len(some)} rows, all time together: {amount(ours)} ms, {name} "
                      f"{amount(theirs)}: **{theirs / ours:.2f}** times as fast")


def rounds(rows):
    """What two threads reach over one, and how many rounds count."""
    counts = [c for r in rows for c in r.counts]
    if "both_fma" not in rows[0].fields:
        return
    both = [f"{name} {spread([x for r in rows for x in r.numbers(f'both_{i}')])}"
            for i, name in INSTRUCTIONS.items() if f"both_{i}" in rows[0].fields]
    print(f"- two threads over one in registers, before and after each round: {', '.join(both)}; "
          f"{sum(counts):.0f} of {len(counts)} rounds count")


def summary(rows):
    products, gelus, convs = ([r for r in rows if r.section == s]
                              for s in ("product", "gelu", "convolution"))
    big = [r for r in products if r.big()]
    direct = [r for r in convs if r.direction == "dw" and r.whole and not r.winograd]
    ratios(products, "products")
    if big:
        print(f"- products with m, n and k from {BIG} on, share: {lowest(big, Row.share)}")
    if gelus:
        print(f"- with GELU, rate in that of the product alone: {lowest(gelus, Row.ratio)}")
    errors_of(products, "products")
    ratios(convs, "convolutions")
    if direct:
        print(f"- direct conv2d_dw, share: {lowest(direct, Row.share)}")
    if direct and big:
        times = mean([r.share() for r in direct]) / mean([r.share() for r in big])
        print(f"  - in the share of products with m, n and k from {BIG} on: {times:.3f}")
    errors_of(convs, "direct convolutions")
    together(rows)
    rounds(rows)
    print()


# ---- running ----

def processors(n):
    """n of those that may be used, first of different cores."""
    def siblings(cpu):
        try:
            with open(f"/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list") as f:
                return f.read().strip()
        except OSError:
            return str(cpu)

    usable = sorted(os.sched_getaffinity(0))
    first = list({siblings(cpu): cpu for cpu in reversed(usable)}.values())[::-1]
    return sorted((first + [cpu for cpu in usable if cpu not in first])[:n])


def report_row(row):
    both = {i: row.numbers(f"both_{i}") for i in INSTRUCTIONS if f"both_{i}" in row.fields}
    progress(f"{row.name}: {row.gflops('trireme'):.4g} GFLOP/s, ratio {row.ratio() or 0:.2f}" +
             "".join(f"; two threads over one, {INSTRUCTIONS[i]}: " +
                     " ".join(f"{x:.2f}" for x in series) for i, series in both.items()))


def measure(a, threads):
    """The rows, what the program says about the libraries, and whether it was interrupted; then
    only the rows that are done."""
    some = processors(max(2, threads))
    numbers = {f"{name}_NUM_THREADS": str(threads) for name in ("OMP", "OPENBLAS", "BLIS")}
    words = [os.path.join(a.build, "bench", "kernels"), "--threads", str(threads), "--rounds",
             str(a.rounds), "--seconds", str(a.seconds), *["--rows", a.rows] * bool(a.rows),
             *["--direct"] * (a.conv == "direct"), *["--errors"] * (threads == a.threads[0]),
             *["--bf16"] * (a.type == "bf16"), *(["--torch", a.torch] if a.torch else [])]
    rows, about, interrupted = [], [], False
    pipes = {"text": True, "stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    jobs = [sys.executable, f"{HERE}/kernels/torch_jobs.py", str(threads)]
    with (subprocess.Popen(words, env=environment(best_openblas() | numbers), **pipes,
                           preexec_fn=lambda: os.sched_setaffinity(0, some)) as run,
          subprocess.Popen(jobs, env=environment(KEEP_MEMORY | numbers), **pipes,
                           preexec_fn=lambda: os.sched_setaffinity(0, some[:threads]))
          if a.torch else contextlib.nullcontext() as peer):
        try:
            for line in run.stdout:
                if line.startswith("row "):
                    rows.append(Row(line))
                    report_row(rows[-1])
                elif line.startswith("torch "):
                    print(line.removeprefix("torch "), end="", file=peer.stdin, flush=True)
                    answer = peer.stdout.readline()
                    if not answer:
                        sys.exit(f"bench-kernels: PyTorch ends at {line.strip()}")
                    print(answer, end="", file=run.stdin, flush=True)
                else:
                    about.append(line.strip())
        except KeyboardInterrupt:
            interrupted = True
            run.kill()
    if run.returncode and not interrupted:
        sys.exit(f"bench-kernels: {words[0]} ends with {run.returncode}")
    return rows, about, interrupted


def report(a, threads, rows, about):
    missing = dict(re.findall(r"^without (\w+): (.*)", "\n".join(about), re.M))
    found = [re.sub(r"^with (trireme: )?(\w+: )?", lambda m: "Trireme: " if m[1] else "", line)
             for line in about if line.startswith("with ")]
    registers = dict(re.findall(r"(\w+)=(\S+)", next(l for l in about if l.startswith("regis"))))
    chosen = registers.pop("chosen")
    registers[chosen] = statistics.median(x for r in rows for x in r.series("registers"))
    rates = [f"{INSTRUCTIONS[i]} {amount(1e-9 * float(rate))}" for i, rate in registers.items()]
    print(f"{machine()}; {a.type}; {threads} thread{'s' * (threads > 1)}; {'; '.join(found)}. "
          f"Medians of {a.rounds} round{'s' * (a.rounds > 1)}. In registers: {', '.join(rates)} "
          f"GFLOP/s; ours are {INSTRUCTIONS[chosen]}.\n")
    for name, why in missing.items():
        if a.type == "f32" or name not in ("openblas", "blis"):
            print(f"Without {PEERS[name]}: {why} (make bench-deps).\n")
    present = [p for p in PEERS if p not in missing]
    for section in "product", "convolution":
        some = [r for r in rows if r.section == section]
        peers = [p for p in present if any(p in r.ratios for r in some)]
        table(some, section, peers, threads == a.threads[0])
    summary(rows)


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("build")
    p.add_argument("--rows", default="", help="those whose names contain one of these texts: "
                   "product, convolution, bert, resnet50-64to64, -dw")
    p.add_argument("--rounds", type=int, default=5)
    p.add_argument("--seconds", type=float, default=0.05, help="of each measurement")
    p.add_argument("--threads", default="1,2", help="numbers of them, a process for each")
    p.add_argument("--type", choices=("f32", "bf16"), default="f32", help="of the tensors")
    p.add_argument("--conv", choices=("auto", "direct"), default="auto",
                   help="direct: ours without Winograd's algorithm")
    a = p.parse_args()
    a.threads = [int(n) for n in re.split("[, ]+", a.threads)]
    a.rows = re.sub("[, ]+", ",", a.rows)
    able = torch_able()
    a.torch = able and able.version
    for threads in a.threads:
        if threads > cores():
            print(f"{threads} threads are not measured: this machine has {cores()}.\n")
            continue
        rows, about, interrupted = measure(a, threads)
        if rows:
            report(a, threads, rows, about)
        if interrupted:
            break


if __name__ == "__main__":
    main()
