# SPDX-License-Identifier: Apache-2.0
"""Profiles of runs over hosts whose monotonic clocks are 1,000 s apart: where the files are, the
arrows from host to host, the bytes, and what a host that is killed has recorded.
hosts_profile.py PROGRAM [CASE ...]"""
import csv
import glob
import json
import os
import re
import shutil
import struct
import subprocess
import time

import bed
import hosts
from hosts import PROGRAM, Run, names, need

AHEAD = 1000
DERIVED = {"trace.json", "ops.csv", "steps.csv", "comm.csv", "buckets.csv", "memory.csv",
           "report.txt"}
STEP, TRANSFER = 66, 69  # enum span_kind, src/crew/spans.h
# Of a packet, without payload: Ethernet 14, IPv4 20, TCP with time stamps 32. A packet is what the
# kernel hands to the interface, mostly larger than what a wire takes.
HEADERS = 66


def table(on, name):
    with open(f"{on.path}/run/profile/1/{name}", newline="") as f:
        return list(csv.DictReader(f))


def trace_of(on):
    return json.load(open(f"{on.path}/run/profile/1/trace.json"))


def folder(on, host):
    return f"{on.path}/run/hosts/h{host}/profile/1"


def check_files(on):
    need(sorted(os.listdir(f"{on.path}/run/hosts")) == ["h0", "h1"], "other hosts than h0 and h1")
    for host in (0, 1):
        found = set(os.listdir(folder(on, host)))
        wanted = {"spans-0-0.bin", "spans-1-0.bin", "items.jsonl", "clocks.json"}
        need(wanted <= found and not found & DERIVED, f"h{host} has {found}")
        name = json.load(open(f"{folder(on, host)}/clocks.json"))["host"]
        need(name == f"h{host}", f"h{host} has the clock of {name}")
    found = set(os.listdir(f"{on.path}/run/profile/1"))
    need(found == DERIVED, f"beside what is derived there are {found ^ DERIVED}")


def unsure(trace):
    """By how many ns the hosts' times may differ. The true difference of the clocks is known."""
    zero, one = trace["otherData"]["clocks"]
    need("uncertainty_ns" in zero and "uncertainty_ns" in one, f"an unknown clock: {zero} {one}")
    both = zero["uncertainty_ns"] + one["uncertainty_ns"]
    wrong = abs(zero["offset_ns"] - one["offset_ns"] - AHEAD * 10**9)
    need(wrong <= both, f"offsets are wrong by {wrong} ns, not {both} at most: {zero} {one}")
    need(both < AHEAD * 10**7, f"{both} ns of uncertainty are too many to see anything")
    return both


def check_arrows(on):
    """Returns the transfers of which both ends are drawn, by the host that sends, the number of
    others, and by how many ns the worst arrow goes backward."""
    trace = trace_of(on)
    host = {e["pid"]: int(e["args"]["name"][1]) for e in trace["traceEvents"]
            if e["ph"] == "M" and e["name"] == "process_name"}
    ends = {}
    for e in trace["traceEvents"]:
        if e["ph"] in "sf":
            where = ends.setdefault((e["cat"], e["id"]), {})
            need(e["ph"] not in where, f"an arrow has two ends '{e['ph']}': {e}")
            where[e["ph"]] = (host[e["pid"]], e["ts"])
    both, sent, halves, worst = unsure(trace), [0, 0], 0, 0
    for (kind, _), arrow in ends.items():
        if len(arrow) < 2:
            need(kind == "transfer", f"a wait has half an arrow: {arrow}")
            halves += 1
            continue
        (source, begin), (target, end) = arrow["s"], arrow["f"]
        need((source == target) == (kind == "ends"), f"{kind} from h{source} to h{target}")
        back = round(1000 * (begin - end))
        need(back <= (both if kind == "transfer" else 0),
             f"{kind}: an arrow from h{source} to h{target} goes back by {back} ns of {both}")
        if kind == "transfer":
            sent[source] += 1
            worst = max(worst, back)
    return sent, halves, f"{sum(sent)} arrows, back by {worst} ns of {both}"


def counted(on, host):
    """Bytes and packets, sent and received, of the host's interface."""
    for line in open(f"/proc/{on.first[host]}/net/dev"):
        name, _, numbers = line.partition(":")
        if name.strip() == "eth0":
            n = [int(word) for word in numbers.split()]
            return n[0] + n[8], n[1] + n[9]
    raise bed.Failed(f"h{host} has no eth0")


def check_bytes(on, before):
    said = []
    for host in (0, 1):
        rows = [r for r in table(on, "comm.csv") if (r["kind"], r["host"]) == ("transfer",
                                                                              f"h{host}")]
        told = sum(int(r["bytes"]) for r in rows)
        raw, packets = (b - a for a, b in zip(before[host], counted(on, host)))
        payload = raw - HEADERS * packets
        said.append(f"h{host}: {told} bytes told, {raw} counted, {payload} without headers "
                    f"({100 * payload / told - 100:+.3f} %)" if told else f"h{host}: none")
        need(told and abs(payload - told) < 0.02 * told, said[-1])
    return "; ".join(said)


def check_buckets(on, steps):
    """Each host's buckets are ready before they have crossed, and what `report` says is sent is
    half of what comm.csv says is sent and received."""
    rows = table(on, "buckets.csv")
    for host in ("h0", "h1"):
        of = [{k: float(v) for k, v in row.items() if k != "host"} for row in rows
              if row["host"] == host]
        need(of and all(0 <= b["first"] <= b["ready"] < b["crossed"] and b["sends"] > 0 and
                        b["steps"] == steps for b in of), f"{host}: {of}")
    said = subprocess.run([PROGRAM, "report", f"{on.path}/run", "--json"], capture_output=True,
                          text=True, check=True).stdout
    links = json.loads(said)["links"]
    told = sum(int(r["bytes"]) for r in table(on, "comm.csv") if r["kind"] == "transfer")
    need([link["host"] for link in links] == ["h0", "h1"] and
         abs(2 * steps * sum(link["bytes"] for link in links) - told) <= 1e-5 * told and
         all(0 < link["share"] < 1 for link in links), f"{links}, {told} bytes")


def case_whole():
    """All steps are profiled, so all that the hosts send belongs to the profile. The gradients are
    large: what else they say to each other counts for little."""
    steps = 8
    with bed.Bed(2, ahead=AHEAD) as on:
        before = [counted(on, host) for host in (0, 1)]
        Run(on, ["mlp:hidden=1024", "--steps", str(steps), "--lanes", "8", "--batch", "8"],
            names(2), more=["--profile", f"steps=1..{steps}"]).same()
        check_files(on)
        sent, halves, arrows = check_arrows(on)
        need(not halves and sent[0] == sent[1] and sent[0] % steps == 0 < sent[0],
             f"{sent} transfers in {steps} steps, and {halves} halves")
        check_buckets(on, steps)
        print(f"# {arrows}; {check_bytes(on, before)}", flush=True)


def spans(on, host):
    """The kinds and steps of all spans in a host's files, and how many there are."""
    found = []
    for name in glob.glob(f"{folder(on, host)}/spans-*.bin"):
        data, at = open(name, "rb").read(), 64
        while len(data) - at >= 16:
            n = struct.unpack_from("<I", data, at)[0]
            if len(data) - at - 16 < 32 * n:
                break
            found += [struct.unpack_from("<20xI4xB", data, at + 16 + 32 * i)[::-1]
                      for i in range(n)]
            at += 16 + 32 * n
    return found


def records(on, host):
    """Whether the files have the clock, and two whole steps."""
    clock = f"{folder(on, host)}/clocks.json"
    kept = spans(on, host)
    return (os.path.exists(clock) and os.path.getsize(clock) and
            all(len({step for kind, step in kept if kind == wanted}) > 2
                for wanted in (STEP, TRANSFER)))


def derive(on, host):
    """Makes what is derived; returns the number of spans."""
    made = on.run(host, [PROGRAM, "profile", "run"])
    read = re.search(r"steps 1 to \d+, (\d+) spans", made.stdout)
    need(made.returncode == 0 and read, made.stdout + made.stderr)
    return int(read[1])


def killed(victim):
    lives, steps = 1 - victim, 150
    with bed.Bed(2, ahead=AHEAD) as on:
        run = Run(on, ["mlp", "--steps", str(steps), "--lanes", "8"], f"h{lives}:1,h{victim}:1",
                  at=lives, more=["--profile", f"steps=1..{steps}"])
        while not records(on, victim):
            need(run.process.poll() is None, f"h{victim} records nothing:\n{run.text()}")
            time.sleep(0.01)
        on.kill(victim)
        text = run.same()
        need(f"host h{victim} has gone in step" in text, f"h{victim} was killed too late:\n{text}")
        kept = [spans(on, host) for host in (0, 1)]
        last = max((step for kind, step in kept[victim] if kind == STEP), default=0)
        need(0 < last < steps - 1, f"h{victim} has recorded {last} steps")
        rows = [[int(r["step"]) for r in table(on, "steps.csv") if r["host"] == f"h{host}"]
                for host in (0, 1)]
        need(rows[victim] == [*range(1, last + 1)] and rows[lives] == [*range(1, steps + 1)],
             f"h{victim} has recorded {last} steps; steps.csv has {rows}")
        sent, _, arrows = check_arrows(on)
        need(sent[0] and sent[1], f"{sent} transfers")
        read, all_spans = derive(on, lives), len(kept[0]) + len(kept[1])
        need(read == all_spans, f"{read} spans are read of {all_spans}")
        report = " ".join(open(f"{on.path}/run/profile/1/report.txt").read().split())
        ends = f"The profile of host h{victim} ends after step {last}, that of others after step "
        need(f"{ends}{steps}." in report, f"no '{ends}{steps}.' in:\n{report}")
        print(f"# h{victim}: {len(kept[victim])} spans, {last} steps; {arrows}", flush=True)
        # As if the disk had got no more.
        path = f"{folder(on, victim)}/spans-0-0.bin"
        os.truncate(path, os.path.getsize(path) - 7)
        need(len(kept[lives]) < derive(on, lives) < all_spans, "a file that is cut is read wrongly")
        report = open(f"{on.path}/run/profile/1/report.txt").read()
        need("Files of the profile that end early: 1." in report, report)


def case_killed():
    killed(1)


def case_killed_first():
    """The host that is first by name, with whose clock the others' would be compared."""
    killed(0)


def case_link():
    """A slow network is what the report names first."""
    with bed.Bed(2) as on:
        for host in (0, 1):
            on.rate(host, "200mbit")
        Run(on, ["mlp:hidden=256", "--steps", "60", "--lanes", "8"], names(2),
            more=["--profile", "steps=40..42"]).same()
        report = json.loads(on.run(0, [PROGRAM, "report", "run", "--json"]).stdout)
        rules = [found["rule"] for found in report["findings"] if not found["effect_of"]]
        need(rules[:1] == ["link"], f"the report begins with {rules}: {report['sentence']}")
        print(f"# {report['sentence']}", flush=True)
        if os.environ.get("KEEP"):
            shutil.copytree(f"{on.path}/run", os.environ["KEEP"])


if __name__ == "__main__":
    hosts.main("hosts_profile", globals())
