#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs take the memory that their plan says, through training, evaluation, a save, a resume and the
end. The limit of a run is exactly what `trireme memory` prints. Where a memory group of version 1
can be made, the run is in one of that size, and must survive. What it takes is the most that its
processes have had together: their own memory, and the store.

Usage: planned.py TRIREME [CASE...]. With SLOW=1: one network of each family."""
import os
import re
import subprocess
import sys
import time

from runs import PROGRAM, SLOW, children, end, fresh, need, run_cases, trireme

GROUPS = "/sys/fs/cgroup/memory"
LEAST = {False: 0.92, True: 0.85}  # of the plan, less what it says is not used; with workers
MIB = 1 << 20


def plan_of(words):
    """All that may be used, and what of it need not be: bytes."""
    out = trireme("memory", *words).out
    line = {}
    for size, what in re.findall(r"^ *([0-9.]+) MiB  (.*)$", out, re.M):
        line.setdefault(what.split(":")[0].split(",")[0], float(size))
    need("in all" in line, f"no total: {out}")
    program = next(size for what, size in line.items() if re.match("for .*program", what))
    return (round((line["in all"] + program) * 10) / 10, line["in all"],
            line.get("of all that", 0))


class Group:
    """A memory group, or nothing where none can be made."""

    def __init__(self, mib):
        self.path = None
        path = f"{GROUPS}/trireme-planned-{os.getpid()}"
        try:
            os.mkdir(path)
            self.path = path
            with open(path + "/memory.limit_in_bytes", "w") as f:
                f.write(str(int(mib * MIB)))
        except OSError:
            self.close()

    def enter(self):
        if self.path:
            with open(self.path + "/cgroup.procs", "w") as f:
                f.write(str(os.getpid()))

    def read(self, name):
        return int(open(f"{self.path}/memory.{name}").read()) if self.path else None

    def close(self):
        while self.path:
            try:
                os.rmdir(self.path)
                self.path = None
            except OSError as e:
                if e.errno != 16:  # EBUSY: the last process is still being removed
                    break
                time.sleep(0.01)


def taken(pid):
    """The processes' own memory, and the shared memory that they have mapped or allocated."""
    own, store = 0, {}
    for p in [pid, *children(pid)]:
        try:
            rollup = open(f"/proc/{p}/smaps_rollup").read()
            for fd in os.listdir(f"/proc/{p}/fd"):
                if "memfd:" in os.readlink(f"/proc/{p}/fd/{fd}"):
                    s = os.stat(f"/proc/{p}/fd/{fd}")
                    store[s.st_ino] = 512 * s.st_blocks
        except OSError:
            continue
        own += 1024 * int(re.search(r"^Pss_Anon: +(\d+)", rollup, re.M)[1])
    return own + sum(store.values())


def measured(words, group):
    """The most memory that the run takes at a time, in MiB."""
    run = subprocess.Popen([PROGRAM, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                           text=True, preexec_fn=group.enter)
    most = 0
    while run.poll() is None:
        most = max(most, taken(run.pid))
        time.sleep(0.005)
    end(run)
    need(run.returncode == 0, f"exit {run.returncode} of {' '.join(words)}: {run.err[-800:]}")
    return most / MIB


def check(model, *words, batch):
    """Trains, evaluates, saves, and does the same again after a resume. Evaluations have a whole
    batch and a smaller one."""
    fresh()
    data = f"synthetic:size={batch + batch // 4 + 1}"
    words = [model, "--data", data, "--eval-data", data, "--batch", str(batch), "--ckpt", "ck",
             *words]
    limit, plan, unused = plan_of(words)
    workers = "-n" in words
    group = Group(limit)
    found = []
    try:
        for more in (["--steps", "2", "--save", "w"], ["--steps", "3", "--resume"]):
            found.append(measured(["train", *words, "--memory-limit", f"{limit:.1f}M",
                                   "--save-every", "2", "--quiet", *more], group))
    finally:
        peak = group.read("max_usage_in_bytes")
        group.close()
    most = max(found)
    ratio = most / (plan - unused)
    text = (f"{most:.1f} MiB of {plan:.1f}, {unused:.1f} of it for the worst case: {ratio:.3f}; "
            f"limit {limit:.1f}" + (f", the group's peak {peak / MIB:.1f}" if peak else ""))
    need(most <= limit and ratio >= LEAST[workers], text)
    return text


ADAM = ["--optimizer", "adam"]
# The plan of each is between 200 MiB and 1 GiB.
FAMILIES = {
    "linear": (2000000, ["linear", "--lanes", "4"]),
    "mlp": (64, ["mlp:hidden=3000,layers=4", "--lanes", "2"]),
    "lenet5": (8192, ["lenet5", "--lanes", "4", *ADAM]),
    "cnn": (2048, ["cnn", "--lanes", "4", *ADAM]),
    "resnet": (32, ["resnet18:form=small", "--lanes", "4", *ADAM]),
    "bert": (16, ["bert-tiny:hidden=192,heads=3,inner=768", "--lanes", "4", *ADAM]),
    "gpt2": (4, ["gpt2-tiny:seq=256", "--lanes", "2", *ADAM]),
}
WAYS = {
    "": ["--threads", "2"],
    ", workers": ["-n", "2", "--threads", "1"],
}


def family(name, how):
    batch, words = FAMILIES[name]
    return lambda: check(*words, *how, batch=batch)


FORMS = {
    "stages": ["--stages", "2", "--threads", "2"],
    "stages, workers": ["--stages", "2", "-n", "2", "--threads", "1", "--zero", "3"],
    "mesh": ["--mesh", "model=2", "--strategy", "megatron", "-n", "2", "--threads", "1"],
    "precision": ["--amp", "O1", "--threads", "2"],
    "spare": ["-n", "2", "--spares", "1", "--threads", "1", "--tail", "keep"],
    "tail": ["--tail", "keep", "--threads", "2"],
}


def form(how):
    batch, words = FAMILIES["bert"]
    return lambda: check(*words, *how, batch=batch)


CASES = {"small": lambda: check("mlp:hidden=1000,layers=3", "--lanes", "2", batch=32),
         "large graph": lambda: check(
             "gpt2-xl:hidden=64,heads=8,inner=64,vocab=1000,seq=64,positions=64", "--lanes", "2",
             "--threads", "2", "--mesh", "model=4", "--strategy", "megatron", batch=4),
         **{"bert, " + name: form(how) for name, how in FORMS.items()},
         **{name + way: family(name, how) for name in FAMILIES for way, how in WAYS.items()}}

if __name__ == "__main__":
    run_cases(CASES, sys.argv[2:], slow=[name for name in CASES if name != "small"])
