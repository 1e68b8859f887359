# SPDX-License-Identifier: Apache-2.0
"""make bench-plan: what `trireme plan price` predicts beside what `trireme bench` measures, of six
networks on one and two threads, two workers, and two workers with a mesh or stages; and of four of
them on two hosts of a core each, on links of 250 Mbit and 1 Gbit.

A cell is five pairs, each the units measured anew and then the steps. Its error is the median of
predicted over measured, less 1, less half of the width of the pairs' middle half; if that is more
than 10 %, the pairs are repeated, four times at most, and then the cell counts as not measurable.
Beside it stands the error of the plain sum of the units. Cells are kept in --results, one line of
JSON each, and not measured again.

--choice: of each network, without a limit and with one that the best plan does not fit, the plan
that `plan find` puts first beside those that it puts next, nine measurements of each by turns: the
speed of the first over that of the fastest, which is to be 0.97 at least. They are repeated, three
times at most, if the middle half of the ratios is wider than 10 %, and then count as failed.

Usage: plan.py BUILD [--cells NETWORK/PLACE,...] [--results FILE] [--pairs N]
               [--within PERCENT] [--choice [NETWORK,...]]
--within: short networks; fail if the error of a cell is larger four times, or if all cells are more
than TOGETHER percent off to the same side, as with prices 1.1 times as high. Exits with 77 if pairs
do not agree."""
import argparse
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

import hosts

NETWORKS = {
    "mlp": "mlp --batch 64 --optimizer adamw",
    "lenet5": "lenet5 --batch 64",
    "resnet18": "resnet18:form=small,size=32,classes=10 --batch 32",
    "bert-tiny": "bert-tiny:seq=64 --batch 16",
    "gpt2-tiny": "gpt2-tiny:seq=128 --batch 16",
    "gpt2-small": "gpt2-small:seq=64 --batch 4",
}
SHORT = {"gpt2-tiny": "gpt2-tiny:seq=32,vocab=1000 --batch 8"}
TOGETHER = 7
seconds_of_steps = 1.5  # of the steps that are measured, by the prediction
DIVIDED = {"gpt2-tiny": "--stages 2", "gpt2-small": "--mesh model=2 --strategy megatron",
           "bert-tiny": "--mesh model=2 --strategy megatron", "resnet18": "--stages 2",
           "mlp": "--mesh model=2 --unset batch --lanes 4", "lenet5": "--stages 2"}
PLACES = {"one": "--threads 1", "threads": "--threads 2", "workers": "-n 2 --threads 1",
          "divided": "-n 2 --threads 1"}
# Two hosts of a core each, namespaces of this machine: bits per second of their links.
HOSTS = {"250M": 250 * 10 ** 6, "1G": 10 ** 9}
OVER_HOSTS = ("mlp", "resnet18", "bert-tiny", "gpt2-tiny")


def words(cell):
    network, place = cell.split("/")
    if place in HOSTS:
        return (NETWORKS[network] + " --hosts h0:1,h1:1 --threads-per-worker 1").split()
    return (NETWORKS[network] + " " + PLACES[place] +
            (" " + DIVIDED[network] if place == "divided" else "")).split()


def run(trireme, command):
    done = subprocess.run([trireme, *command], capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"trireme {' '.join(command)}: {done.stderr}")
    return done.stdout


def predicted(trireme, cell):
    """Seconds of a step, and those of its units alone."""
    is_ = json.loads(run(trireme, ["plan", "price", *words(cell), "--measure", "always",
                                   "--json"]))
    return is_["seconds"], is_["units"]


def measured(trireme, cell, seconds):
    """seconds: that a step is predicted to take."""
    steps = min(max(int(seconds_of_steps / seconds), 5), 1000)
    out = run(trireme, ["bench", *words(cell), "--steps", str(steps)])
    alone = re.search(r"median_ms=([0-9.]+)", out)
    if alone:
        return float(alone.group(1)) / 1000
    lines = [line.split() for line in out.splitlines()]
    at = next(i for i, line in enumerate(lines) if "samples/s" in line)
    head, row = lines[at], lines[at + 1]
    batch = int(words(cell)[words(cell).index("--batch") + 1])
    return batch / float(row[head.index("samples/s")].replace(",", ""))


def pair_over_hosts(program, cell):
    """Predicted and measured seconds of a step, and the units alone. Both hosts measure their units
    at the same time, as they compute at the same time."""
    ask = ["plan", "price", *words(cell), "--measure", "always", "--json"]
    with hosts.bed.Bed(2) as on:
        hosts.pinned(on)
        for host in range(2):
            on.rate(host, HOSTS[cell.split("/")[1]])
        own = [{"XDG_CACHE_HOME": f"{on.path}/cache{host}"} for host in range(2)]
        for env in own:
            os.makedirs(env["XDG_CACHE_HOME"])
        links = on.run(0, [program, "bench", "links", "--hosts", "h0,h1"], env=own[0])
        if links.returncode:
            raise SystemExit(links.stderr)
        shutil.copytree(f"{on.path}/cache0", f"{on.path}/cache1", dirs_exist_ok=True)
        other = on.popen(1, [program, *ask], env=own[1], stdout=subprocess.DEVNULL)
        found = on.run(0, [program, *ask], env=own[0], timeout=600)
        if other.wait(600) or found.returncode:
            raise SystemExit(found.stderr or "the other host could not measure its units")
        is_ = json.loads(found.stdout)
        steps = min(max(int(seconds_of_steps / is_["seconds"]), 5), 1000)
        ran = on.run(0, [program, "train", *words(cell), "--steps", str(steps + hosts.WARM),
                         "--data", "synthetic", "--quiet", "--out", "run"], timeout=600)
        if ran.returncode:
            raise SystemExit(ran.stderr)
        took = hosts.step_seconds(f"{on.path}/run/metrics.jsonl")
    return is_["seconds"], took, is_["units"]


def has_hosts():
    try:
        with hosts.bed.Bed(1):
            return True
    except hosts.bed.NoBed:
        return False


def pair(trireme, cell):
    if cell.split("/")[1] in HOSTS:
        return pair_over_hosts(trireme, cell)
    step, units = predicted(trireme, cell)
    return step, measured(trireme, cell, step), units


CHOICES = 3  # plans that are compared
TURNS = 9


def find(trireme, network, *more):
    """The plans that fit; none: the command says which needs least."""
    command = ["plan", "find", *NETWORKS[network].split(), "--json", *more]
    done = subprocess.run([trireme, *command], capture_output=True, text=True)
    if "more than the limit" in done.stderr:
        return []
    if done.returncode:
        raise SystemExit(f"trireme {' '.join(command)}: {done.stderr}")
    return [p for p in json.loads(done.stdout)["plans"] if p["is"] == "fits"]


def step_of_plan(trireme, plan, seconds):
    """Seconds of a step with a saved plan."""
    words = dict(line.split(" ", 1) for line in open(plan) if " " in line.strip())
    steps = min(max(int(seconds_of_steps / seconds), 5), 1000)
    more = ["-n", words["workers"].strip()] if int(words["workers"]) > 1 else []
    out = run(trireme, ["bench", "--plan", plan, words["model"].strip(), *more,
                        "--steps", str(steps)])
    alone = re.search(r"median_ms=([0-9.]+)", out)
    if alone:
        return float(alone.group(1)) / 1000
    lines = [line.split() for line in out.splitlines()]
    at = next(i for i, line in enumerate(lines) if "samples/s" in line)
    return int(words["batch"]) / float(lines[at + 1][lines[at].index("samples/s")].replace(",", ""))


def choose(trireme, network, limit):
    """What the plan that is found is worth beside the next ones: a ratio, and which is best."""
    more = ["--memory-limit", str(limit)] if limit else []
    with tempfile.TemporaryDirectory() as folder:
        plans = find(trireme, network, *more)
        if not plans:
            return None
        rows = min(CHOICES, len(plans))
        for k in range(rows):
            run(trireme, ["plan", "find", *NETWORKS[network].split(), *more, "--measure", "never",
                          "--row", str(k + 1), "--save", f"{folder}/{k}"])
        best = None
        for _ in range(4):
            times = [[] for _ in range(rows)]
            for _ in range(TURNS):
                for k in range(rows):
                    times[k].append(step_of_plan(trireme, f"{folder}/{k}", plans[k]["seconds"]))
            fastest = min(range(rows), key=lambda k: statistics.median(times[k]))
            ratios = [b / a for a, b in zip(times[0], times[fastest])]
            if not best or width(ratios) < best["width"]:
                best = {"choice": network, "limit": limit, "plans": len(plans),
                        "ratio": statistics.median(ratios), "width": width(ratios),
                        "fastest": fastest + 1, "next": plans[0]["bytes"] - (1 << 20)}
            if best["width"] <= 0.1:
                break
    return best


def choices(trireme, networks, results, known):
    """known: choices, of networks with limits, that are measured."""
    global seconds_of_steps
    seconds_of_steps = 0.6
    failed = 0
    print(f"{'network':12} {'limit MiB':>10} {'plans':>6} {'chosen/fastest':>15} {'width':>6}")
    for network in networks:
        limit = 0
        for _ in range(2):
            is_ = known.get((network, limit))
            if not is_:
                is_ = choose(trireme, network, limit)
                if not is_:
                    print(f"{network:12} {limit >> 20:10}  no plan fits: the best needs least")
                    break
                keep(results, is_)
            failed += is_["ratio"] < 0.97 or is_["width"] > 0.1
            print(f"{network:12} {limit >> 20 or '-':>10} {is_['plans']:6} {is_['ratio']:15.3f} "
                  f"{100 * is_['width']:5.1f}%  the fastest is row {is_['fastest']}", flush=True)
            limit = is_["next"]
    return failed


def keep(results, is_):
    if results:
        with open(results, "a") as f:
            f.write(json.dumps(is_) + "\n")


def width(values):
    quarter = statistics.quantiles(values, n=4)
    return quarter[2] - quarter[0]


def measure(trireme, cell, pairs, tries=4):
    best = None
    for _ in range(tries):
        ratios, sums, steps = [], [], []
        for _ in range(pairs):
            step, took, units = pair(trireme, cell)
            ratios.append(step / took)
            sums.append(units / took)
            steps.append(took)
        if not best or width(ratios) < best["width"]:
            best = {"cell": cell, "ratio": statistics.median(ratios), "width": width(ratios),
                    "sum": statistics.median(sums), "ms": 1000 * statistics.median(steps)}
        if best["width"] <= 0.1:
            break
    return best


def error(is_):
    """In percent, with its sign."""
    off = abs(is_["ratio"] - 1) - is_["width"] / 2
    return 100 * max(0, off) * (1 if is_["ratio"] > 1 else -1)


def are_scaled(cells):
    off = [100 * (x["ratio"] - 1) for x in cells]
    return bool(off) and (min(off) > TOGETHER or max(off) < -TOGETHER)


def line(is_):
    if is_["width"] > 0.1:
        return f"{is_['cell']:22} {is_['ms']:9.2f}  not measurable: pairs differ by " \
               f"{100 * is_['width']:.1f} %"
    return f"{is_['cell']:22} {is_['ms']:9.2f} {100 * (is_['ratio'] - 1):+8.1f} " \
           f"{50 * is_['width']:6.1f} {error(is_):+8.1f} {100 * (is_['sum'] - 1):+10.1f}"


def main():
    p = argparse.ArgumentParser()
    p.add_argument("build")
    p.add_argument("--cells")
    p.add_argument("--results")
    p.add_argument("--pairs", type=int, default=5)
    p.add_argument("--within", type=float)
    p.add_argument("--choice", nargs="?", const=",".join(NETWORKS))
    a = p.parse_args()
    if a.within:
        global seconds_of_steps
        seconds_of_steps = 0.6
        NETWORKS.update(SHORT)
    cells = a.cells.split(",") if a.cells else [
        *(f"{n}/{w}" for n in NETWORKS for w in PLACES),
        *(f"{n}/{w}" for n in OVER_HOSTS for w in HOSTS)]
    trireme = os.path.join(os.path.abspath(a.build), "src/trireme")
    hosts.bed.SEEN.add(os.path.dirname(trireme))
    known = {}
    if a.results and os.path.exists(a.results):
        known = {x["cell"] if "cell" in x else (x["choice"], x["limit"]): x
                 for x in map(json.loads, open(a.results))}
    cpu = re.search(r"model name\s*: (.*)", open("/proc/cpuinfo").read())
    print(f"{os.cpu_count()} cores, {cpu.group(1) if cpu else ''}; {time.strftime('%Y-%m-%d')}")
    print(f"{'cell':22} {'ms/step':>9} {'off %':>8} {'half':>6} {'error':>8} {'sum off %':>10}")
    if a.choice:
        with tempfile.TemporaryDirectory() as cache:
            os.environ["XDG_CACHE_HOME"] = cache
            sys.exit(choices(trireme, a.choice.split(","), a.results, known) > 0)
    found = []
    with tempfile.TemporaryDirectory() as cache:
        os.environ["XDG_CACHE_HOME"] = cache
        for cell in cells:
            if cell.split("/")[1] in HOSTS and not has_hosts():
                print(f"{cell:22} not measurable: no hosts on this machine")
                continue
            tries = 1 if a.within else 4
            is_ = known.get(cell) or measure(trireme, cell, a.pairs, tries)
            for _ in range(3):
                if a.within and (is_["width"] > 0.1 or abs(error(is_)) > a.within):
                    is_ = measure(trireme, cell, a.pairs, tries)
            if cell not in known:
                keep(a.results, is_)
            found.append(is_)
            print(line(is_), flush=True)
        for i in range(3 * len(cells)):
            if not a.within or not are_scaled(found):
                break
            again = measure(trireme, cells[i % len(cells)], a.pairs)
            if again["width"] <= 0.1 and abs(error(again)) <= a.within:
                found[i % len(cells)] = again
    good = [x for x in found if x["width"] <= 0.1]
    large = [x for x in good if x["ms"] >= 5]
    within = [x for x in large if abs(error(x)) <= 5]
    print(f"{len(good)} of {len(found)} cells are measurable; of {len(large)} of 5 ms or more, "
          f"{len(within)} are within 5 %; the largest error is "
          f"{max((abs(error(x)) for x in good), default=0):.1f} %")
    if a.within:
        failed = [x for x in good if abs(error(x)) > a.within]
        for x in good:
            print("not ok" if x in failed else "ok", x["cell"])
        print(f"{len(good) - len(failed)} passed, {len(failed)} failed")
        if failed:
            sys.exit(1)
        if len(good) < len(found):  # the machine has other work
            sys.exit(77)
        if are_scaled(good):
            raise SystemExit(f"all cells are more than {TOGETHER} % off to the same side")


if __name__ == "__main__":
    main()
