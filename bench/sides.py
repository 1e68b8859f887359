# SPDX-License-Identifier: Apache-2.0
"""What `make bench` compares: training steps of ours and of PyTorch's, each measured in a process
of its own, and what the PyTorch that this Python imports is able to do."""
import dataclasses
import os
import re
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
KEEP_MEMORY = {"MALLOC_MMAP_MAX_": "0", "MALLOC_TRIM_THRESHOLD_": "20000000000",
               "MALLOC_TOP_PAD_": "100000000"}
LONGEST = 1200                   # seconds of one process
# TRIREME_ISA limits the peers' libraries, too.
LIMITS = {"avx2": {"DNNL_MAX_CPU_ISA": "AVX2", "ONEDNN_MAX_CPU_ISA": "AVX2",
                   "MKL_ENABLE_INSTRUCTIONS": "AVX2", "ATEN_CPU_CAPABILITY": "avx2",
                   "OPENBLAS_CORETYPE": "Haswell"}}


class Unavailable(Exception):
    pass


def limits():
    return LIMITS.get(os.environ.get("TRIREME_ISA"), {})


def best_openblas():
    """OpenBLAS's kernels for AVX-512, which old versions do not choose on newer processors."""
    with open("/proc/cpuinfo") as f:
        wide = all(re.search(rf"^flags\b.* avx512{part}\b", text, re.M)
                   for text in (f.read(),) for part in ("f", "bw", "dq", "vl"))
    return {"OPENBLAS_CORETYPE": "SkylakeX"} if wide and "TRIREME_ISA" not in os.environ else {}


# ---- processes ----

def environment(more):
    """That of a process, without settings of the libraries except limits() and `more`."""
    clean = {k: v for k, v in os.environ.items()
             if k not in KEEP_MEMORY and not re.match("(OMP|GOMP|OPENBLAS|BLIS|MKL)_", k)}
    return clean | limits() | more


def output(command, env=None):
    """The lines of its output, at least one."""
    try:
        done = subprocess.run(command, env=environment(env or {}), capture_output=True, text=True,
                              timeout=LONGEST)
    except subprocess.TimeoutExpired:
        raise Unavailable(f"more than {LONGEST} seconds") from None
    except OSError as why:
        raise Unavailable(str(why)) from None
    if done.returncode or not done.stdout.strip():
        said = (done.stderr.strip() or f"exit code {done.returncode}").splitlines()[-1]
        raise Unavailable(said.removeprefix("trireme: "))
    return done.stdout.strip().splitlines()


def run(command, env=None):
    """The fields "name=value" of the last line of its output."""
    fields = re.findall(r"(\w+)=(\S+)", output(command, env)[-1])
    return {name: number(value) for name, value in fields}


def number(text):
    try:
        return float(text)
    except ValueError:
        return text


def cores():
    return len(os.sched_getaffinity(0))


def table(lines):
    """Samples per second, by number of workers, of the table of `trireme bench`."""
    found = (re.match(r" *(\d+) +\d+ +\d+ +\d+ +yes +([0-9.]+) ", line) for line in lines)
    return {int(row[1]): float(row[2]) for row in found if row}


# ---- ours ----

@dataclasses.dataclass(frozen=True)
class Ours:
    model: str
    batch: int
    options: tuple = ()

    program = None # for all: the path of `trireme`
    workers = 0    # processes of one thread each; 0: one process

    def measure(self, steps):
        words = [self.program, "bench", self.model, "--batch", str(self.batch), "--steps",
                 str(steps), *self.options]
        if not self.workers:
            return run(words)
        rates = table(output([*words, "-n", str(self.workers), "--threads-per-worker", "1"]))
        return {"median_ms": 1e3 * self.batch / rates[self.workers]}

    def says(self):
        """The configuration, without the optimizer, which is part of the row."""
        pairs = zip(self.options[::2], self.options[1::2])
        return ", ".join([f"batch {self.batch}", *(f"{name.removeprefix('--')} {value}"
                          for name, value in pairs if name != "--optimizer")])


# ---- PyTorch ----

PEER = [sys.executable, f"{HERE}/peers.py"]


@dataclasses.dataclass(frozen=True)
class Able:
    """What the installed PyTorch can do."""
    version: str
    compiler: str   # C++, for torch.compile; empty: there is none, or no torch.compile
    fused: bool     # optimizers of one kernel
    attention: bool # in one operator
    openblas: bool  # products by it

    def says(self):
        return f"PyTorch {self.version}, " + (f"eager and compiled with {self.compiler}"
                                              if self.compiler else "eager only")


def torch_able():
    """Null if this Python imports no PyTorch."""
    try:
        seen = run([*PEER, "able"])
    except Unavailable:
        return None
    compiler = os.environ.get("CXX") or "g++"
    found = seen["compile"] and shutil.which(compiler.split()[0])
    return Able(str(seen["torch"]), compiler if found else "", bool(seen["fused"]),
                bool(seen["attention"]), bool(seen["openblas"]))


@dataclasses.dataclass(frozen=True)
class Torch:
    model: str
    batch: int
    optimizer: str = "sgd"
    bf16: bool = False
    threads: int = 0
    channels_last: bool = False
    foreach: bool = False
    fused: bool = False
    attention: bool = False
    compiled: bool = False
    keep_memory: bool = False
    openblas: bool = False  # its best kernels are chosen by hand

    FLAGS = {"bf16": "", "channels_last": "channels last", "foreach": "joined optimizer",
             "fused": "fused optimizer", "attention": "fused attention", "compiled": "compiled"}

    def measure(self, steps):
        flags = [f"--{name.replace('_', '-')}" for name in self.FLAGS if getattr(self, name)]
        env = dict(KEEP_MEMORY) if self.keep_memory else {}
        env |= best_openblas() if self.openblas else {}
        if self.threads:
            env |= {"OMP_NUM_THREADS": str(self.threads), "OPENBLAS_NUM_THREADS": str(self.threads)}
        return run([*PEER, self.model, "--batch", str(self.batch), "--steps", str(steps),
                    "--threads", str(self.threads), "--optimizer", self.optimizer, *flags], env)

    def says(self):
        return ", ".join(filter(None, (
            f"batch {self.batch}",
            f"{self.threads} thread{'s' * (self.threads > 1)}" if self.threads else "",
            *(text for name, text in self.FLAGS.items() if getattr(self, name)),
            "malloc keeps memory" * self.keep_memory,
            "OpenBLAS told of AVX-512" * self.openblas)))

    def choices(self, able, images, transformer):
        """Changes to try one after the other, each with the best so far; a list has alternatives.
        What PyTorch cannot do is left out."""
        return [[{"openblas": True}] if able.openblas and best_openblas() else [],
                [{"threads": 1}] if cores() > 1 else [],
                [{"channels_last": True}] if images else [],
                [{"foreach": True}] + [{"fused": True}] * able.fused,
                [{"attention": True}] if transformer and able.attention else [],
                [{"compiled": True}] if able.compiler else [],
                [{"keep_memory": False}]]
