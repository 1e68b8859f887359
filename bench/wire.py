# SPDX-License-Identifier: Apache-2.0
"""make bench-wire: what moves between hosts, on network namespaces of this machine, each host
pinned to a core with its ferry, on links of tbf.

paths    sums of 4 hosts on 1 Gbit by each path, beside Open MPI and gloo where they are installed;
         without authentication, as these peers have none
bytes    what ten steps of bert-base put on the interfaces of 2 hosts, by format
overlap  what part of the transfer 2 hosts on 1 Gbit hide, beside DDP
loss     the time in which gpt2-tiny learns, at three rates in five formats, beside DDP with its
         hook that sends fp16

Usage: wire.py BUILD [--rows ROW,ROW...] [--rounds N] [--short]
--short: smaller sizes and networks, and less time, to try it."""
import argparse
import collections
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import time

import hosts
from hosts import HERE, bed, last_step, line, pinned, rendezvous, spread, step_seconds, trireme

GIGABIT = 10 ** 9
FORMATS = ("f32", "pack", "bf16", "fp16", "int8", "topk:0.01")


def machine():
    cpu = re.search(r"model name\s*: (.*)", open("/proc/cpuinfo").read())
    print(f"{os.cpu_count()} cores, {cpu.group(1) if cpu else os.uname().machine}; "
          f"{time.strftime('%Y-%m-%d')}\n")


def has_torch():
    try:
        import torch  # noqa: F401
    except ImportError:
        return False
    return True


def limit(on, bits):
    for host in range(on.n):
        on.rate(host, bits)


def names(n, workers=""):
    return ",".join(f"h{i}{workers}" for i in range(n))


def kept(condition):
    return "kept" if condition else "**missed**"


def text(size):
    return f"{size >> 10} KiB" if size < 1 << 20 else f"{size >> 20} MiB"


# ---- paths ----

def own_sums(on, sizes):
    """By size: seconds by path, the path of `auto`, and what part of the line its bytes take."""
    done = on.run(0, [hosts.PROGRAM, "bench", "allreduce", "--hosts", names(on.n), "--wire-open",
                      "--sizes", ",".join(map(str, sizes)), "--save", "sums"], timeout=1800)
    if done.returncode:
        raise SystemExit(done.stderr)
    found = collections.defaultdict(dict)
    for row in map(str.split, open(f"{on.directory(0)}/sums")):
        if row[0] != "sum":
            continue
        path, size, seconds, moved = row[2], int(row[3]), float(row[4]), float(row[5])
        found[size][path] = seconds
        if row[8] == "1":
            found[size] |= {"auto": seconds, "chosen": path,
                            "share": 8 * moved / seconds / GIGABIT}
    return found


def peer_sums(text_of_peer):
    """By size: seconds."""
    found = re.findall(r"^sum (\d+) (\S+)$", text_of_peer, re.M)
    if not found:
        raise SystemExit(text_of_peer[-2000:])
    return {int(size): float(seconds) for size, seconds in found}


def mpi(on, sizes):
    log = open(f"{on.directory(0)}/mpi", "w+")
    hosts.start_mpi(on, log, *sizes).wait()
    return peer_sums(open(log.name).read())


def gloo(on, sizes):
    def start(rank):
        return on.popen(rank, [sys.executable, f"{HERE}/ddp.py", "sums", *sizes],
                        env=rendezvous(rank, on.n), stdout=subprocess.PIPE,
                        stderr=subprocess.STDOUT, text=True)
    others = [start(rank) for rank in range(1, on.n)]
    out = start(0).communicate()[0]
    for other in others:
        other.communicate()
    return peer_sums(out)


def paths(a):
    sizes = [1 << k for k in ((12, 16, 20, 22) if a.short else range(12, 25, 2))]
    peers = ({"Open MPI": mpi} if shutil.which("mpicc") and shutil.which("mpirun") else {}) | (
        {"gloo": gloo} if has_torch() else {})
    seen = collections.defaultdict(lambda: collections.defaultdict(list)) # by size, then way
    with bed.Bed(4, see={sys.prefix}) as on:
        pinned(on)
        limit(on, GIGABIT)
        for _ in range(a.rounds or (1 if a.short else 15)):
            for size, ways in own_sums(on, sizes).items():
                for way, seconds in ways.items():
                    seen[size][way].append(seconds)
            for way, measure in peers.items():
                for size, seconds in measure(on, sizes).items():
                    seen[size][way].append(seconds)
    own = ("exchange", "ring", "butterfly", "root")
    middle = {size: {way: statistics.median(all_of) for way, all_of in ways.items()
                     if way != "chosen"} for size, ways in seen.items()}
    line("ms of a sum of 4 hosts on 1 Gbit", *own, "auto", "its share of the line", *peers)
    line(*["---"] * (len(own) + len(peers) + 3))
    for size, of in middle.items():
        chosen = statistics.mode(seen[size]["chosen"])
        line(text(size), *(f"{1e3 * of[way]:.2f}" for way in own),
             f"{1e3 * of['auto']:.2f} ({chosen})", f"{of['share']:.2f}",
             *(f"{1e3 * of[way]:.2f}" for way in peers))
    print()
    path_criteria(middle, own, peers)


def path_criteria(middle, own, peers):
    """Each with the size at which it is kept least."""
    large = {size: of for size, of in middle.items() if size >= 1 << 16}
    small = {size: of for size, of in middle.items() if size < 1 << 16}
    line("", "aim", "worst", "")
    line(*["---"] * 4)

    def judge(what, sizes, aim, value, form, least):
        if not sizes:
            return
        worst, at = (min if least else max)((value(of), size) for size, of in sizes.items())
        line(what, f"{'at least' if least else 'at most'} {form.format(aim)}",
             f"{form.format(worst)} ({text(at)})", kept(worst >= aim if least else worst <= aim))

    judge("ring: time, part of root's, from 64 KiB", large, 0.8,
          lambda of: of["ring"] / of["root"], "{:.2f}", False)
    judge("auto: times the best path's time, from 64 KiB", large, 1.15,
          lambda of: of["auto"] / min(of[way] for way in own), "{:.2f}", False)
    judge("auto: times the worst path's time, below", small, 0.99,
          lambda of: of["auto"] / max(of[way] for way in own), "{:.2f}", False)
    judge("auto: share of the line, from 4 MiB",
          {size: of for size, of in large.items() if size >= 4 << 20}, 0.9,
          lambda of: of["share"], "{:.2f}", True)
    for way in peers:
        judge(f"auto: times {way}'s time, from 256 KiB",
              {size: of for size, of in large.items() if size >= 1 << 18}, 1.0,
              lambda of: of["auto"] / of[way], "{:.2f}", False)
    print()


# ---- bytes ----

def sent(on):
    """Bytes that all hosts have sent, counted at their interfaces."""
    done = [on.run(host, ["cat", "/sys/class/net/eth0/statistics/tx_bytes"])
            for host in range(on.n)]
    return sum(int(one.stdout) for one in done)


def allows(form):
    return not subprocess.run([hosts.PROGRAM, "memory", "mlp", "--lanes", "4", "--wire", form],
                              capture_output=True).returncode


def wait_for(path, step):
    while last_step(path) < step:
        time.sleep(0.002)


def ten_steps(words, form):
    """Bytes of ten steps, without those that a run sends that is paused for as long."""
    with bed.Bed(2) as on:
        pinned(on)
        run, path = hosts.started(on, f"{words} --steps 100000 --wire {form}", 2)
        first = last_step(path) + 1
        wait_for(path, first)
        began, before = time.monotonic(), sent(on)
        wait_for(path, first + 10)
        took, moved = time.monotonic() - began, sent(on) - before
        on.run(0, [hosts.PROGRAM, "ctl", "run", "pause"])
        at = -1
        while last_step(path) != at: # the step that was open, and what it sends
            at = last_step(path)
            time.sleep(3 * took / 10)
        idle = sent(on)
        time.sleep(5)
        idle = (sent(on) - idle) / 5
        run.kill()
        run.wait()
        return moved - idle * took


def count_bytes(a):
    words = "bert-small --batch 4 --lanes 4" if a.short else "bert-base --batch 4 --lanes 4"
    aims = {"fp16": (0.49, 0.51), "bf16": (0.49, 0.51), "int8": (0, 0.27),
            "topk:0.01": (0, 0.10)} # two nodes a host
    line(f"2 hosts, ten steps of `{words}`", "MB", "of f32", "aim", "")
    line(*["---"] * 5)
    plain = None
    for form in filter(allows, FORMATS):
        moved = ten_steps(words, form)
        plain = plain or moved
        low, high = aims.get(form, (1, 1))
        line(form, f"{moved / 1e6:.1f}", f"**{100 * moved / plain:.1f} %**",
             f"{100 * low:.0f} to {100 * high:.0f} %" if form in aims else "",
             kept(low <= moved / plain <= high) if form in aims else "")
    print()


# ---- overlap ----

def hidden(off, on, one):
    return (off - on) / (off - one)


def overlap(a):
    """T_1, a step without transfer, is that of one host that has half of the batch and computes one
    of the two lanes: as each of two does, but for adding the other's sums."""
    nets = (("resnet50", 16, "sgd"), ("bert-base", 8, "adamw"))
    steps = 2 if a.short else 5
    line("2 hosts on 1 Gbit, one lane a host", "T_off", "T_on", "T_1",
         "(T_off - T_on) / (T_off - T_1), aim 0.50", *(["DDP, in the same terms"] * has_torch()))
    line(*["---"] * (5 + has_torch()))
    for model, batch, optimizer in nets[:1] if a.short else nets:
        if a.short:
            batch = 4
        off, on_, one, theirs = [], [], [], []
        words = f"{model} --optimizer {optimizer} --batch"
        for _ in range(a.rounds or (1 if a.short else 5)):
            with bed.Bed(1) as alone:
                pinned(alone)
                one.append(trireme(alone, f"{words} {batch // 2} --lanes 1", steps, 0, local=1))
            with bed.Bed(2, see={sys.prefix}) as on:
                pinned(on)
                limit(on, GIGABIT)
                off.append(trireme(on, f"{words} {batch} --lanes 2", steps, 2, "--overlap", "off"))
                on_.append(trireme(on, f"{words} {batch} --lanes 2", steps, 2))
                if has_torch():
                    theirs.append(ddp_hidden(on, model, batch // 2, optimizer, steps))
        line(f"`{words} {batch}`", *(spread(times, "{:.2f} s") for times in (off, on_, one)),
             spread([hidden(*times) for times in zip(off, on_, one)]),
             *([spread(theirs)] if theirs else []))
    print()


def ddp_hidden(on, model, batch, optimizer, steps):
    """With all gradients in one bucket, in DDP's own buckets, and of one process."""
    with bed.Bed(1, see={sys.prefix}) as alone:
        pinned(alone)
        one = hosts.ddp_ms(alone, model, batch, optimizer, steps)
    off = hosts.ddp_ms(on, model, batch, optimizer, steps, "--bucket", "100000")
    return hidden(off, hosts.ddp_ms(on, model, batch, optimizer, steps), one)


# ---- time to a loss ----

LAST = 50 # steps whose mean loss counts


def until(path, target):
    """Seconds from the first step until the mean is so small, and the mean then; else until now."""
    last, began, mean = collections.deque(maxlen=LAST), None, None
    for row in map(json.loads, open(path).read().split("\n")[:-1]):
        if row.get("loss") is None or "step" not in row:
            continue
        began = row["seconds"] if began is None else began
        last.extend([row["loss"]] * row.get("steps", 1))
        mean = statistics.mean(last)
        if len(last) == LAST and mean <= target:
            break
    return row["seconds"] - began, mean


def own_loss(on, words, target, seconds):
    """Seconds until the loss is reached, None: more than there are; the mean; seconds of a step."""
    run, path = hosts.started(on, f"{words} --steps 1000000", on.n)
    took, mean = until(path, target)
    while mean > target and took < seconds:
        if run.poll() is not None:
            raise SystemExit(run.stderr.read())
        time.sleep(0.5)
        took, mean = until(path, target)
    run.kill()
    run.wait()
    return took if mean <= target else None, mean, step_seconds(path)


def ddp_loss(on, target, seconds):
    def start(rank):
        return on.popen(rank, [sys.executable, f"{HERE}/ddp.py", "loss", str(target), str(seconds),
                               "--fp16"], env=rendezvous(rank, on.n), stdout=subprocess.PIPE,
                        stderr=subprocess.PIPE, text=True)
    others = [start(rank) for rank in range(1, on.n)]
    out, err = start(0).communicate()
    for other in others:
        other.communicate()
    found = re.search(r"^(after|never) (\S+)$", out, re.M)
    if not found:
        raise SystemExit(err[-2000:])
    return float(found.group(2)) if found.group(1) == "after" else None, float(found.group(2))


def predicted(on, words):
    """By format: whether `trireme explain` says that it gains over f32 on these links, after a run
    in f32."""
    env = {"XDG_CACHE_HOME": f"{on.path}/cache"}
    os.makedirs(f"{on.directory(0)}/cache", exist_ok=True)
    on.run(0, [hosts.PROGRAM, "bench", "links", "--hosts", names(on.n)], env=env)
    said = on.run(0, [hosts.PROGRAM, "explain", *words.split(), "--hosts", names(on.n), "--out",
                      "run"], env=env)
    found = {form: verdict == "gains" for form, verdict in
             re.findall(r"^ +([a-z0-9:.]+) .*\b(gains|loses)\b", said.stdout, re.M)}
    if not found:
        raise SystemExit(said.stdout + said.stderr)
    return found


def loss(a):
    import convergence
    target, seconds = (3.0, 10) if a.short else (a.loss, 120)
    rates = (GIGABIT,) if a.short else (100 * 10 ** 6, 250 * 10 ** 6, GIGABIT)
    words = ("gpt2-tiny:seq=64,vocab=256 --batch 16 --lanes 4 --optimizer adamw --lr 0.001 "
             "--weight-decay 0.01 --clip-norm 1")
    forms = list(filter(allows, FORMATS))
    right = cells = 0
    line(f"2 hosts, gpt2-tiny (sequences of 64): s until the loss is {target} (ms of a step)",
         *forms, *(["DDP, fp16 hook"] * has_torch()))
    line(*["---"] * (1 + len(forms) + has_torch()))
    for bits in rates:
        with bed.Bed(2, see={sys.prefix}) as on:
            pinned(on)
            limit(on, bits)
            os.chdir(on.directory(0))
            convergence.write_texts(None)
            says, row = {}, []
            for form in forms:
                took, mean, step = own_loss(on, f"{words} --data text:train.txt --wire {form}",
                                            target, seconds)
                reached = f"**{took:.1f}**" if took else f"{mean:.2f} after {seconds} s"
                row.append(f"{reached} ({1e3 * step:.1f})")
                if form == "f32":
                    says, plain = predicted(on, words), step
                elif form in says:
                    cells += 1
                    right += says[form] == (step < plain)
                shutil.rmtree("run")
            if has_torch():
                took, mean = ddp_loss(on, target, seconds)
                row.append(f"**{took:.1f}**" if took else f"{mean:.2f} after {seconds} s")
            line(f"{bits // 10 ** 6} Mbit", *row)
            os.chdir("/")
    print(f"\n`trireme explain --out` of the run in f32 says of {right} of {cells} cells rightly "
          "whether a step of the format takes less time.\n")


ROWS = {"paths": paths, "bytes": count_bytes, "overlap": overlap, "loss": loss}


def main():
    p = argparse.ArgumentParser()
    p.add_argument("build")
    p.add_argument("--rows", default=",".join(ROWS))
    p.add_argument("--rounds", type=int, help="of paths (default: 15) and overlap (5)")
    p.add_argument("--loss", type=float, default=2.2)
    p.add_argument("--short", action="store_true")
    a = p.parse_args()
    hosts.PROGRAM = os.path.abspath(f"{a.build}/src/trireme")
    bed.SEEN.add(os.path.dirname(hosts.PROGRAM))
    try:
        with bed.Bed(1):
            pass
    except bed.NoBed as reason:
        raise SystemExit(f"no hosts on this machine: {reason}") from None
    machine()
    for row in a.rows.split(","):
        ROWS[row](a)


if __name__ == "__main__":
    main()
