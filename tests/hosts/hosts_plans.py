# SPDX-License-Identifier: Apache-2.0
"""What steps over several hosts are predicted to take, and plans that are found for them.

Usage: hosts_plans.py PROGRAM [CASE ...]"""
import json
import os

import bed
import hosts
from hosts import GPT, MESH, MLP, PROGRAM, Run, STAGES, need


def planned(on, command, words, rate, more=()):
    """What `plan find` or `plan price` says in JSON, with links of so many bytes per second."""
    os.makedirs(f"{on.path}/cache/trireme", exist_ok=True)
    with open(f"{on.path}/cache/trireme/links", "w") as f:
        for link in ("h0 h1", "h0 h2", "h1 h2") if rate else ():
            f.write(f"link {link} 0.0002 {rate} 1\n")
    made = on.run(0, [PROGRAM, "plan", command, *words, "--json", *more],
                  env={"XDG_CACHE_HOME": f"{on.path}/cache"})
    if not rate:
        need(made.returncode == 2 and "run `trireme bench links --hosts" in made.stderr,
             made.stderr)
        return None
    need(made.returncode == 0, made.stderr)
    return json.loads(made.stdout)


def case_plans():
    """Plans that are found for two hosts, and run as without them."""
    model = {name: [word for word in words if word not in ("--steps", "3", "12")]
             for name, words in (("mlp", MLP), ("mesh", MESH), ("stages", STAGES))}
    find = ["--hosts", "h0,h1", "--measure", "never"]
    with bed.Bed(2) as on:
        planned(on, "find", [*model["mlp"], *find], 0)
        best = {}
        for rate in (10 ** 9, 10 ** 6):
            plans = planned(on, "find", [*model["mlp"], *find], rate)
            best[rate] = plans["plans"][0]["seconds"]
            need(plans["hosts"] == 2 and plans["alone"] > 0, plans)
            # All gradients move, which takes as long as the links say.
            need(best[rate] > 2.5e6 / rate, plans["plans"][0])
        need(best[10 ** 6] > best[10 ** 9] + 2, best)
        for name, words in model.items():
            own = ["--grain", "keep", "-n", "2", "--threads-per-worker", "1"]
            plans = planned(on, "find", [*words, *find, *own], 10 ** 9, ["--save", name])
            need(all(plan["workers"] == 2 for plan in plans["plans"]), plans)
            steps = MLP[1:3] if name == "mlp" else GPT[1:3]
            Run(on, [words[0], *steps, "--plan", f"{on.path}/{name}"], "h0,h1").same()


def case_prices():
    """Steps over hosts that differ in number, workers and paths."""
    with bed.Bed(1) as on:
        def price(names, *more):
            return planned(on, "price", ["mlp", "--lanes", "8", "--hosts", names, *more], 10 ** 7)
        one = price("h0", "--threads-per-worker", "1")
        three = price("h0,h1,h2", "--threads-per-worker", "1")
        need(one["exposed"] == 0 and one["hosts"] == 1 and three["exposed"] > 0.1, (one, three))
        # Measured by one process, which has no other hosts: no unit is left that is not.
        need(three["known"] == three["of"], three)
        ring = price("h0,h1,h2", "--threads-per-worker", "1", "--path", "ring")
        exchange = price("h0,h1,h2", "--threads-per-worker", "1", "--path", "exchange")
        need(ring["exposed"] < 0.9 * exchange["exposed"], (ring, exchange))
        for names, said in (("h0:2,h1", "2 hosts of at most 2 workers of 1 thread"),
                            ("h0:1,h1:1", "2 hosts of 1 worker of 2 threads")):
            made = on.run(0, [PROGRAM, "plan", "price", "mlp", "--lanes", "8", "--hosts", names,
                              "-n", "1", "--measure", "never"],
                          env={"XDG_CACHE_HOME": f"{on.path}/cache"})
            need(said in made.stdout or os.cpu_count() != 2, made.stdout + made.stderr)
        few = on.run(0, [PROGRAM, "plan", "price", "mlp", "--lanes", "8", "--wire", "bf16",
                         "--wire-nodes", "2", "--hosts", "h0,h1,h2"],
                     env={"XDG_CACHE_HOME": f"{on.path}/cache"})
        need(few.returncode == 2 and "--wire-nodes 4" in few.stderr, few.stderr)


if __name__ == "__main__":
    hosts.main("hosts_plans", globals())
