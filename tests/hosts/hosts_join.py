# SPDX-License-Identifier: Apache-2.0
"""Hosts that come back to a run: after a cut, a partition, or a restart by hand; and what is left
when the coordinator's host dies. Each run must end with the hash that one process has.
hosts_join.py PROGRAM [CASE ...]; SLOW=1: the long forms."""
import os
import random
import re
import signal
import subprocess
import time

import bed
import hosts
from hosts import PROGRAM, SLOW, Run, names, need

STEPS = ["mlp", "--steps", "20000", "--lanes", "8"]
TOPK = [*STEPS, "--wire", "topk:0.05"]
LEASE = ["--lease", "0.4"]


def stopped(run, words=STEPS):
    """Stops it some steps later: it has the hash of so many steps of one process."""
    run.steps(max(run.metrics(host) for host in range(run.on.n)) + (200 if SLOW else 5))
    run.process.send_signal(signal.SIGTERM)
    text = run.end(3)
    same(text, words)
    return text


def same(text, words=STEPS):
    steps = re.search(r"done steps=(\d+)", text)[1]
    one = hosts.alone([steps if word == "20000" else word for word in words])
    need(hosts.done(text) == one, f"another result than {one}:\n{text}")


def come_back(run, *which):
    for host in which:
        run.wait_for(f"host h{host} has joined in step")


def case_cut():
    """It rejoins by itself, and takes part until the end. It gets estimates, too."""
    with bed.Bed(2, shared=False) as on:
        run = Run(on, TOPK, names(2), more=LEASE)
        run.steps(random.randint(2, 40))
        on.cut(1)
        run.wait_for("host h1 has gone in step")
        on.heal(1)
        come_back(run, 1)
        on.kill(1)
        run.wait_for("host h1 has gone in step.*\n(.*\n)*.*host h1 has gone in step")
        stopped(run, TOPK)


def slow_stopped():
    """The teller's agent: another host tells meanwhile."""
    with bed.Bed(2, shared=False) as on:
        run = Run(on, STEPS, names(2), at=1, more=LEASE)
        run.steps(random.randint(2, 40))
        pid = hosts.agent_of(on, 0)
        os.kill(pid, signal.SIGSTOP)
        run.wait_for("host h0 has gone in step")
        os.kill(pid, signal.SIGCONT)
        come_back(run, 0)
        stopped(run)


def case_partition():
    """The coordinator's side goes on; the workers of the other stop by the lease."""
    with bed.Bed(4, shared=False) as on:
        run = Run(on, STEPS, names(4), more=LEASE)
        run.steps(random.randint(2, 40))
        on.part([[0, 1], [2, 3]])
        run.wait_for("host h2 has gone in step")
        run.wait_for("host h3 has gone in step")
        time.sleep(3 if SLOW else 0.3)
        on.join()
        come_back(run, 2, 3)
        stopped(run)


def by_hand(on, run, key, host):
    address = run.text().split("trireme join ")[1].split(" ")[0]
    return on.popen(host, [PROGRAM, "join", address, "--key", key], stdin=subprocess.DEVNULL,
                    stdout=run.log, stderr=run.log)


def case_restart():
    """Its machine was restarted: somebody joins it again. A stranger cannot."""
    with bed.Bed(3) as on:
        key = f"{on.path}/key"
        for file in (key, key + "2"):
            made = on.run(0, [PROGRAM, "ckpt", "key", file])
            need(made.returncode == 0, made.stderr)
        run = Run(on, STEPS, names(3), more=[*LEASE, "--key", key])
        run.steps(random.randint(2, 40))
        on.kill(2)
        run.wait_for("host h2 has gone in step")
        stranger = by_hand(on, run, key + "2", 2)
        need(stranger.wait(20), "a host with another key has joined")
        joined = by_hand(on, run, key, 2)
        come_back(run, 2)
        stopped(run)
        need(joined.wait(20) == 3, f"join ends with {joined.returncode}:\n{run.text()}")


def slow_coordinator():
    """Its host dies: the others hold, save and exit; the run goes on from there."""
    words = [*STEPS, "--ckpt", "saved"]
    with bed.Bed(3) as on:
        run = Run(on, words, names(3), more=["--lease", "0.2"])
        run.steps(random.randint(2, 40))
        on.kill(0)
        run.process.wait(20)
        on.check_clean(20)
        saved = os.listdir(f"{on.path}/saved")
        need(any(name.startswith("step") for name in saved), f"nothing is saved: {saved}")
        again = Run(on, [*words, "--resume"], names(3).split(",", 1)[1], at=1)
        again.steps(random.randint(2, 40) + run.metrics(1))
        stopped(again)


if __name__ == "__main__":
    hosts.main("hosts_join", globals())
