# SPDX-License-Identifier: Apache-2.0
"""make bench-page: what `trireme dashboard` and a page that is open cost a run beside them. Each
round trains two workers with and without it, in turns; the client asks again for what Summary shows
whenever the server says that files have changed. Below 1 the run with the page is slower.

Usage: page.py BUILD [--rounds N]"""
import argparse
import http.client
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import threading

from tables import machine, print_table, progress, spread

LEAST = 0.99  # a median below costs too much
TRAINING = "lenet5 -n 2 --lanes 8 --steps 3000"
SHOWN = ["run?run=0", "report?run=0", "curve?run=0&pixels=560", "heat?run=0&pixels=550"]


def seconds(program, out):
    done = subprocess.run([program, "train", *TRAINING.split(), "--quiet", "--out", out],
                          capture_output=True, text=True, check=True).stdout
    return float(re.search(r" seconds=([0-9.]+)", done).group(1))


def show(server, counts):
    """A page that shows Summary, until the server ends."""
    c = http.client.HTTPConnection("127.0.0.1", server.port)
    c.request("GET", "/api/events?run=0", headers={"Cookie": server.cookie})
    for line in c.getresponse():
        if line.startswith(b"data:"):
            counts.append([server.ask(f"/api/{path}").status for path in SHOWN])


def processor_time(pid):
    words = open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()
    return sum(map(int, words[11:13])) / os.sysconf("SC_CLK_TCK")


def beside(program, out, parts):
    """Seconds of training beside a page; the part of a core that the server took is added."""
    with open(f"{out}/run.json", "w") as f:
        f.write('{"format":1}')  # of an earlier run, so that the page is open from the beginning
    with Server(out) as server:
        server.login()
        drawn = []
        client = threading.Thread(target=show, args=(server, drawn))
        client.start()
        before = processor_time(server.process.pid)
        took = seconds(program, out)
        parts.append((processor_time(server.process.pid) - before) / took)
    client.join()
    if len(drawn) < took / 3 or any(status != 200 for one in drawn for status in one):
        sys.exit(f"the page was drawn {len(drawn)} times in {took:.0f} s: {drawn[-1:]}")
    return took


def main(program, rounds):
    ratios, parts = [], []
    for turn in range(rounds):
        took = {}
        for page in (True, False) if turn % 2 else (False, True):
            with tempfile.TemporaryDirectory() as out:
                took[page] = beside(program, out, parts) if page else seconds(program, out)
        ratios.append(took[False] / took[True])
        progress(f"round {turn + 1}: {ratios[-1]:.3f}")
    print(f"On {machine()}; medians of {rounds} pairs:\n")
    print_table(("training", "speed beside the page", "the server takes"), [
        (f"`{TRAINING}`", spread(ratios, "{:.3f}"),
         spread([100 * part for part in parts], "{:.2f}", " % of a core"))])
    if statistics.median(ratios) < LEAST:
        sys.exit(f"the median is below {LEAST}")


if __name__ == "__main__":
    p = argparse.ArgumentParser()
    p.add_argument("build")
    p.add_argument("--rounds", type=int, default=9)
    a = p.parse_args()
    sys.argv[1:] = [os.path.abspath(f"{a.build}/src/trireme")]
    sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent / "tests/page"))
    from served import PROGRAM, Server
    main(PROGRAM, a.rounds)
