# SPDX-License-Identifier: Apache-2.0
"""make bench-hosts: a run over several hosts, on network namespaces of this machine, each host
pinned to a core with its ferry. Two hosts against two local workers of the same plan; over a
network of 1 Gbit; what the ferries cost; against PyTorch's DDP with gloo, if PyTorch is installed;
how soon the lanes of a host that was killed go on, and what DDP and Open MPI do then. Ratios are
taken within a round, in alternation; the table has the median over the rounds, lowest and highest.

Usage: hosts.py BUILD [--rows ROW,ROW...] [--rounds N]
Rows: speed, gigabit, wire, idle, ddp, killed."""
import argparse
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../tests/hosts"))
import bed  # noqa: E402

LARGE = ("resnet50 --batch 32 --lanes 4", "bert-base --batch 32 --lanes 4")
WARM = 2


def line(*cells):
    print("| " + " | ".join(cells) + " |", flush=True)


def spread(values, form="{:.2f}"):
    middle, low, high = statistics.median(values), min(values), max(values)
    return f"**{form.format(middle)}** ({form.format(low)} to {form.format(high)})"


def step_seconds(path):
    """The median time of a step, of those after the first."""
    at, times = 0, []
    for text in open(path):
        row = json.loads(text)
        if "step" in row and "seconds" in row and "loss" in row:
            times.append((row["seconds"] - at) / row.get("steps", 1))
            at = row["seconds"]
    return statistics.median(times[WARM:])


def pinned(on):
    for host in range(on.n):
        on.pin(host, host % os.cpu_count())


def trireme(on, words, steps, hosts, *more, local=2):
    """Seconds per step; hosts: 0: local workers."""
    where = (["--hosts", ",".join(f"h{i}:1" for i in range(hosts))] if hosts
             else ["-n", str(local)])
    made = on.run(0, [PROGRAM, "train", *words.split(), "--steps", str(steps + WARM), "--quiet",
                      "--threads-per-worker", "1", *where, *more, "--out", "run"], timeout=3600)
    if made.returncode:
        raise SystemExit(made.stderr)
    return step_seconds(f"{on.directory(0)}/run/metrics.jsonl")


def both(rounds, words, steps):
    """Ratios of two local workers to two hosts: times."""
    found = []
    for _ in range(rounds):
        with bed.Bed(1) as local, bed.Bed(2) as on:
            pinned(on)
            found.append(trireme(local, words, steps, 0) / trireme(on, words, steps, 2))
    return found


def speed(rounds):
    line("two hosts of a core each, against two local workers", "aim", "times as fast")
    line("---", "---", "---")
    for words in LARGE:
        line(f"`{words}`", "0.94", spread(both(rounds, words, 3)))
    print()


def gigabit(rounds):
    """One lane a host, so that nothing but buckets hides the transfers."""
    line("two hosts on 1 Gbit, one lane a host", "step", "compute alone", "bytes each way",
         "to max(compute, transfer) + last bucket (aim 1.08)")
    line("---", "---", "---", "---", "---")
    for words in ("resnet50 --batch 16 --lanes 2", "bert-small --batch 8 --lanes 2"):
        steps, alone, ratio = [], [], []
        for _ in range(rounds):
            with bed.Bed(1) as local, bed.Bed(2) as on:
                pinned(on)
                alone.append(trireme(local, words, 3, 0))
                for host in range(2):
                    on.rate(host, 10 ** 9)
                steps.append(trireme(on, words, 3, 2))
            bytes_each = 4 * parameters(words)
            transfer, last = bytes_each * 8 / 1e9, (4 << 20) * 8 / 1e9
            ratio.append(steps[-1] / (max(alone[-1], transfer) + last))
        line(f"`{words}`", spread(steps, "{:.2f} s"), spread(alone, "{:.2f} s"),
             f"{bytes_each / 1e6:.0f} MB", spread(ratio))
    print()


def parameters(words):
    plain = re.sub(r" --steps \d+", "", words)
    out = subprocess.run([PROGRAM, "memory", *plain.split()], capture_output=True, text=True).stdout
    return float(re.search(r"([\d.]+) MiB  parameters", out).group(1)) * (1 << 20) / 4


def processor_seconds(pid):
    fields = open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def ferries(on):
    return [pid for pid, command in on.processes() if "trireme ferry" in command]


def started(on, words, hosts, *more):
    run = on.popen(0, [PROGRAM, "train", *words.split(), "--quiet", "--threads-per-worker", "1",
                       "--hosts", ",".join(f"h{i}:1" for i in range(hosts)), *more],
                   stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    path = f"{on.directory(0)}/run/metrics.jsonl"
    while not os.path.exists(path) or open(path).read().count('"loss"') < 2:
        if run.poll() is not None:
            raise SystemExit(run.stderr.read())
        time.sleep(0.02)
    return run, path


def last_step(path):
    return json.loads(open(path).read().strip().split("\n")[-1])["step"]


def wire(rounds):
    line("the ferries of two hosts", "processor seconds per GB, of both ends")
    line("---", "---")
    for words in ("mlp:hidden=4096 --batch 64 --lanes 2 --steps 100000",):
        found = []
        for _ in range(rounds):
            with bed.Bed(2) as on:
                pinned(on)
                run, path = started(on, words, 2)
                pids = ferries(on)
                first, used = last_step(path), sum(map(processor_seconds, pids))
                time.sleep(5)
                moved = (last_step(path) - first) * 2 * 4 * parameters(words)
                found.append((sum(map(processor_seconds, pids)) - used) / moved * 1e9)
                run.kill()
                run.wait()
        line(f"`{words}`", spread(found))
    print()


def idle(rounds):
    line("a ferry while the run is paused", "part of a core (aim 0.2 %)")
    line("---", "---")
    found = []
    for _ in range(rounds):
        with bed.Bed(2) as on:
            run, path = started(on, "mlp --lanes 2 --steps 100000", 2)
            on.run(0, [PROGRAM, "ctl", "run", "pause"])
            time.sleep(1)
            before = [processor_seconds(pid) for pid in ferries(on)]
            time.sleep(20)
            after = [processor_seconds(pid) for pid in ferries(on)]
            found += [100 * (b - a) / 20 for a, b in zip(before, after)]
            run.kill()
            run.wait()
    line("mlp", spread(found, "{:.3f} %"))
    print()


def rendezvous(rank, hosts=2):
    return {"MASTER_ADDR": "10.77.0.1", "MASTER_PORT": "29500", "WORLD_SIZE": str(hosts),
            "RANK": str(rank), "GLOO_SOCKET_IFNAME": "eth0", "OMP_NUM_THREADS": "1",
            "OPENBLAS_NUM_THREADS": "1"}


def ddp_ms(on, model, batch, optimizer, steps, *more):
    def start(rank):
        return on.popen(rank, [sys.executable, f"{HERE}/peers.py", model, "--batch", str(batch),
                               "--steps", str(steps), "--threads", "1", "--optimizer", optimizer,
                               "--processes", str(on.n), *more],
                        env=rendezvous(rank, on.n) if on.n > 1 else {}, stdout=subprocess.PIPE,
                        stderr=subprocess.PIPE, text=True)
    others = [start(rank) for rank in range(1, on.n)]
    out, err = start(0).communicate()
    for other in others:
        other.communicate()
    found = re.search(r"median_ms=([0-9.]+)", out)
    if not found:
        raise SystemExit(err[-2000:])
    return float(found.group(1))


def ddp(rounds):
    try:
        import torch  # noqa: F401
    except ImportError:
        print("ddp: skipped, PyTorch is not installed\n")
        return
    line("two hosts, against DDP with gloo and its buckets", "times as fast")
    line("---", "---")
    for model, words, batch, optimizer in (
            ("resnet50", "resnet50 --batch 32 --lanes 2 --optimizer sgd", 16, "sgd"),
            ("bert-base", "bert-base --batch 8 --lanes 2 --optimizer adamw", 4, "adamw")):
        found = []
        for _ in range(rounds):
            with bed.Bed(2, see={sys.prefix}) as on:
                pinned(on)
                theirs = ddp_ms(on, model, batch, optimizer, 3)
                found.append(theirs / 1e3 / trireme(on, words, 3, 2))
        line(f"`{words}`", spread(found))
    print()


def killed(rounds):
    for what, how in (("all processes of one host of two are killed", bed.Bed.kill),
                      ("the cable of one host of two is pulled", bed.Bed.cut)):
        line(what, "lanes computed, or end of the run, after")
        line("---", "---")
        own_lost(how, rounds)
        for name, start in (("DDP with gloo", start_ddp), ("Open MPI, MPI_Allreduce", start_mpi)):
            peer_lost(name, start, how, rounds)
        print()


def own_lost(how, rounds):
    found = []
    for _ in range(rounds):
        with bed.Bed(2, shared=False) as on:
            log = open(f"{on.directory(0)}/log", "w+")
            run = on.popen(0, [PROGRAM, "train", "mlp", "--lanes", "2", "--steps", "2000",
                               "--quiet", "--threads-per-worker", "1", "--hosts", "h0:1,h1:1"],
                           stdout=log, stderr=log)
            path = f"{on.directory(0)}/run/metrics.jsonl"
            while not os.path.exists(path) or open(path).read().count('"loss"') < 3:
                time.sleep(0.01)
            began = time.monotonic()
            how(on, 1)
            step = last_step(path)
            while last_step(path) <= step + 1:
                time.sleep(0.001)
            found.append(1e3 * (time.monotonic() - began))
            if run.wait():
                raise SystemExit(open(log.name).read())
    line("Trireme: the run goes on, with the same bits", spread(found, "{:.0f} ms"))


DDP = """
import torch, torch.distributed
torch.distributed.init_process_group("gloo")
net = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(256, 256))
while True:
    net(torch.randn(8, 256)).sum().backward()
    print("step", flush=True)
"""


def start_ddp(on, log):
    try:
        import torch  # noqa: F401
    except ImportError:
        return None
    runs = [on.popen(rank, [sys.executable, "-c", DDP], env=rendezvous(rank),
                     stdout=to, stderr=to) for rank, to in ((0, log), (1, subprocess.DEVNULL))]
    return runs[0]


def start_mpi(on, log, *sizes):
    program = f"{on.directory(0)}/mpi_sums"
    if not shutil.which("mpicc") or not shutil.which("mpirun"):
        return None
    subprocess.run(["mpicc", "-O2", f"{HERE}/mpi_sums.c", "-o", program], check=True)
    return on.popen(0, ["mpirun", "--allow-run-as-root", "--host",
                        ",".join(f"h{i}" for i in range(on.n)), "-np", str(on.n),
                        "--mca", "plm_rsh_agent", "ssh", "--mca", "btl_tcp_if_include", "eth0",
                        "--mca", "oob_tcp_if_include", "eth0",
                        "--mca", "mpi_yield_when_idle", "1", f"{on.path}/mpi_sums",
                        *map(str, sizes)],
                    stdout=log, stderr=log, stdin=subprocess.DEVNULL)


WAITS = 60  # seconds for a peer to end after a death


def peer_lost(name, start, how, rounds):
    found, codes = [], set()
    for _ in range(rounds):
        with bed.Bed(2, see={sys.prefix}) as on:
            log = open(f"{on.directory(0)}/log", "w+")
            run = start(on, log)
            if not run:
                line(f"{name}: skipped, it is not installed", "")
                return
            while open(log.name).read().count("step") < 100:
                if run.poll() is not None:
                    raise SystemExit(open(log.name).read()[-2000:])
                time.sleep(0.01)
            began = time.monotonic()
            how(on, 1)
            try:
                codes.add(run.wait(WAITS))
                found.append(1e3 * (time.monotonic() - began))
            except subprocess.TimeoutExpired:
                codes.add(None)
                found.append(1e3 * WAITS)
                run.kill()
    how = "; ".join(sorted(f"it has not ended after {WAITS} s" if code is None
                           else f"the run ends, exit {code}" for code in codes))
    line(f"{name}: {how}", spread(found, "{:.0f} ms"))


ROWS = {"speed": speed, "gigabit": gigabit, "wire": wire, "idle": idle, "ddp": ddp,
        "killed": killed}


def main():
    global PROGRAM
    p = argparse.ArgumentParser()
    p.add_argument("build")
    p.add_argument("--rows", default=",".join(ROWS))
    p.add_argument("--rounds", type=int, default=5)
    a = p.parse_args()
    PROGRAM = os.path.abspath(f"{a.build}/src/trireme")
    bed.SEEN.add(os.path.dirname(PROGRAM))
    try:
        with bed.Bed(1):
            pass
    except bed.NoBed as reason:
        raise SystemExit(f"no hosts on this machine: {reason}") from None
    for row in a.rows.split(","):
        ROWS[row](a.rounds)


if __name__ == "__main__":
    main()
