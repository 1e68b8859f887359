# SPDX-License-Identifier: Apache-2.0
"""Sums of several hosts by all paths and in all formats: each run ends with the hash that one
process has, whatever the path, the hosts or the deaths. hosts_wire.py PROGRAM [CASE ...]; SLOW=1:
the long forms."""
import itertools
import json
import random
import re

import bed
import hosts
from hosts import PROGRAM, Run, names, need

FORMATS = ("f32", "bf16", "fp16", "int8", "topk:0.05")
PATHS = ("exchange", "ring", "butterfly", "root")
MLP = "mlp:hidden=64 --batch 16 --lanes 8 --bucket 16K".split()


def words(form, steps, net=MLP):
    return [*net, "--steps", str(steps), "--wire", form]


def has(path, n):
    return path != "butterfly" or n in (2, 4)


def bits(rows, net=MLP, steps=12):
    for form, path, n, workers in rows:
        if not has(path, n):
            continue
        with bed.Bed(n) as on:
            try:
                Run(on, words(form, steps, net), names(n, workers), more=["--path", path]).same()
            except hosts.Wrong as wrong:
                raise hosts.Wrong(f"{form}, {path}, {n} hosts of {workers}: {wrong}") from None


def case_bits():
    """Each path and each format, on 2 to 4 hosts."""
    bits([("f32", "ring", 3, 2), ("bf16", "butterfly", 4, 1), ("fp16", "root", 3, 1),
          ("int8", "ring", 4, 1), ("int8", "exchange", 3, 1), ("topk:0.05", "exchange", 3, 2),
          ("topk:0.05", "ring", 2, 1)])


def case_bytes():
    """What a run says that it moves is what `explain` says that it would, and half of f32."""
    net = ["mlp:hidden=512", *MLP[1:]]
    with bed.Bed(2) as on:
        told = on.run(0, [PROGRAM, "explain", *net, "--path", "butterfly", "--hosts", names(2)])
        moves = {row[0]: [1e6 * float(n) for n in row[1:]] for row in
                 re.findall(r"^  (\w+) +([\d.]+) +([\d.]+) +([\d.]+)", told.stdout, re.M)}
        need("bf16" in moves, told.stdout + told.stderr)
        run = Run(on, words("bf16", 40, net), names(2), more=["--path", "butterfly"])
        run.same()
        with open(f"{on.path}/run/metrics.jsonl") as file:
            rows = [json.loads(line) for line in file]
        sent, received, whole = (sum(row[k] for row in rows) / rows[-1]["step"]
                                 for k in ("sent", "received", "sent_whole"))
        need(abs(sent / moves["bf16"][0] - 1) < 0.02 and abs(whole / moves["bf16"][1] - 1) < 0.02
             and abs(received / moves["bf16"][2] - 1) < 0.02 and sent < 0.51 * whole,
             f"{sent}, {received} of {whole}; told: {moves}")
        waits = sum(row["exposed"] for row in rows[1:])  # the first: until all have started
        need(0 < waits < rows[-1]["seconds"], f"{waits} s of {rows[-1]['seconds']}")


def slow_bits():
    bits(itertools.product(FORMATS, PATHS, (1, 2, 3, 4), (1, 2)))


def slow_nets():
    """With batch norm, dropout, a mesh, a pipeline."""
    for net in (hosts.RESNET, hosts.BERT, hosts.MESH, hosts.STAGES):
        bits([("bf16", "ring", 3, 1), ("int8", "exchange", 2, 2), ("f32", "root", 2, 1),
              ("topk:0.05", "exchange", 3, 1)],
             [word for word in net if not word.isdigit() or net[net.index(word) - 1] != "--steps"
              and word != "--steps"], 3)


def death(form, path, n, host):
    """One host is killed on the way."""
    with bed.Bed(n) as on:
        run = Run(on, words(form, 600), names(n), more=["--path", path])
        run.steps(random.randint(2, 60))
        on.kill(host)
        text = run.same()
        need(f"host h{host} has gone" in text, text)
        need(has(path, n - 1) or f"{n - 1} hosts have no path {path}" in text, text)


def case_death():
    death("int8", "ring", 3, 1)


def case_death_topk():
    """The others keep its estimates."""
    death("topk:0.05", "exchange", 3, 1)


def case_death_path():
    """What is left has no butterfly."""
    death("bf16", "butterfly", 4, 2)


def slow_deaths():
    """Five times each."""
    for form, path, _ in itertools.product(FORMATS, PATHS, range(5)):
        n = random.choice([n for n in (2, 3, 4) if has(path, n)])
        death(form, path, n, random.randint(1, n - 1))


def resume(form, path):
    """On another number of hosts."""
    keep = ["--ckpt", "ck", "--save-every", "5"]
    with bed.Bed(3) as on:
        Run(on, words(form, 10), names(3), more=[*keep, "--path", path]).same()
        Run(on, words(form, 20), names(2), more=[*keep, "--resume"]).same()
        made = on.run(0, [PROGRAM, "train", *words(form, 30), *keep, "--resume", "--quiet"])
        need(hosts.done(made.stdout) == hosts.alone(words(form, 30)), made.stdout)


def case_resume():
    resume("int8", "ring")


def case_resume_topk():
    resume("topk:0.05", "exchange")


def case_refused():
    """Before the first step, with what would do."""
    with bed.Bed(3, shared=False) as on:
        for more, said in (
                (["--wire", "bf16", "--wire-nodes", "2"], "--wire-nodes 4 would do"),
                (["--path", "butterfly"], "there is none of 3 hosts"),
                (["--path", "star"], "exchange, ring, butterfly, root"),
                (["--wire", "bf16,int8"], "two formats"),
                (["--wire", "bf16", "--wire-nodes", "3"], "power of two"),
                (["--wire-nodes", "8"], "no effect")):
            made = on.run(0, [PROGRAM, "train", *MLP, "--steps", "3", "--hosts", names(3), *more])
            need(made.returncode in (1, 2) and said in made.stderr,
                 f"{more}: exit {made.returncode}:\n{made.stderr}")
            on.check_clean(5)


if __name__ == "__main__":
    hosts.main("hosts_wire", globals())
