# SPDX-License-Identifier: Apache-2.0
"""A run over hosts is seen and steered from each of them, and ends as it is asked to.

Usage: hosts_steer.py PROGRAM OWN_LOOP [PART OF A CASE'S NAME ...]"""
import json
import os
import re
import signal
import subprocess
import sys
import time

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../parallel"))
from bed import Bed, require
from runs import PROGRAM, fresh, need, run_cases, text_of, wait_for

OWN_LOOP = os.path.abspath(sys.argv[2])
# Writes the exit code of a host's agent to code-HOST.
LAUNCHER = """#!/bin/sh
trap '' TERM
ssh "$1" "$2"
echo $? >code-$1
"""
MLP = ("train", "mlp:hidden=8", "--lanes", "6", "--threads-per-worker", "1", "--grace", "60")
hashes = {}


def start(bed, *words, host=0):
    with open(bed.directory(host) + "/launcher", "w") as f:
        f.write(LAUNCHER)
    os.chmod(bed.directory(host) + "/launcher", 0o755)
    run = bed.popen(host, [PROGRAM, words[0], "--launch", "./launcher", *words[1:]],
                    stdout=open(bed.directory(host) + "/out.txt", "w"), stderr=subprocess.STDOUT)
    run.file = bed.directory(host) + "/out.txt"
    return run


def metrics(bed, host=0):
    return [json.loads(line) for line in text_of(bed.directory(host) + "/run/metrics.jsonl")
            .split("\n")[:-1]]


def reaches(bed, run, step, host=0):
    until = time.monotonic() + 20
    while (metrics(bed, host) or [{"step": 0}])[-1]["step"] < step:
        need(run.poll() is None and time.monotonic() < until,
             f"the run does not go on, or has ended: {text_of(run.file)}")
        time.sleep(0.01)


def whole(bed, host=0):
    """metrics.jsonl has each step once."""
    last = 0
    for line in metrics(bed, host):
        need(line["step"] == last + line.get("steps", 1), f"after step {last}: {line}")
        last = line["step"]
    return last


def says(bed, host, pattern, *words, code=0):
    done = bed.run(host, [PROGRAM, *words])
    text = done.stdout + done.stderr
    need(done.returncode == code and re.search(pattern, text), f"{words} on h{host}: "
         f"{done.returncode}, {text}")
    return text


def ends(run, code, limit=20):
    need(run.wait(limit) == code, f"exit {run.returncode}: {text_of(run.file)}")
    return text_of(run.file)


def hash_of(steps):
    """Of one process."""
    if steps not in hashes:
        done = subprocess.run([PROGRAM, *MLP[:-2], "--steps", str(steps), "-n", "1", "--quiet"],
                              capture_output=True, text=True, check=True)
        hashes[steps] = re.search("weights=(\\S+)", done.stdout)[1]
    return hashes[steps]


def same(text):
    """The last line has the hash of one process."""
    done = re.search(r"done steps=(\d+) .*weights=(\S+)", text)
    need(done and hash_of(done[1]) == done[2], f"another hash, or none: {text}")


def seen(bed):
    return [line.split() for line in says(bed, 1, "HOST", "ctl", "run", "hosts").split("\n")[1:-1]]


def steering(bed):
    run = start(bed, *MLP, "--steps", "1000000", "-n", "1", "--most", "3", "--hosts",
                "h0,h1:2,h2", "--ckpt", "ck")
    reaches(bed, run, 20)
    wait_for(lambda: [row[:2] + row[-4:-2] for row in seen(bed)] ==
             [["h0", "teller", "2", "1"], ["h1", "takes", "3", "2"], ["h2", "takes", "1", "1"]],
             "not all workers of all hosts are ready", 10)
    says(bed, 1, " 2 on h1 .* running", "ps")
    says(bed, 1, "host h1  teller h0  3 of 3 hosts take part  epoch \\d+\n", "top", "run/hosts/h1")
    grouped = (r"sends .*\n(.*\n)*host h0  step \d+\nsends [\d.]+ MB/s  receives [\d.]+ MB/s\n"
               r" +0   CMP \d+  WAI \d+  RED \d+  DAT \d+  PEAK .*\n(.*\n)*host h2 ")
    wait_for(lambda: re.search(grouped, bed.run(1, [PROGRAM, "top", "run"]).stdout),
             "top does not show h0 and h2", 10)
    says(bed, 2, "is of another host", "top", "run/hosts/h1", code=1)
    for asks, other in ((1, 0), (0, 1)):
        step = re.search("paused after step (\\d+)\n",
                         says(bed, asks, "^paused after", "ctl", "run", "pause"))[1]
        says(bed, other, f"^already paused after step {step}\n", "ctl", "run", "pause")
        wait_for(lambda: {row[-2] for row in seen(bed)} == {step}, f"no pause after {step}", 10)
        says(bed, other, f"^resumed with step {int(step) + 1}\n", "ctl", "run", "resume")
    for host in range(2):
        before = metrics(bed)[-1]["step"]
        step = re.search("step (\\d+) is saved",
                         says(bed, host, "is saved", "ctl", "run", "checkpoint"))[1]
        need(int(step) >= before and os.path.isdir(f"{bed.path}/ck/step-{int(step):09}"),
             f"step {step} of h{host} is not there")
    says(bed, 2, "^host h0 has 3 workers\n", "ctl", "run", "scale", "h0=3")
    says(bed, 1, "^scaled to 1 worker at", "ctl", "run", "scale", "h1=1")
    says(bed, 1, "host h0 can have 1 to 3 workers, not 4", "ctl", "run", "scale", "h0=4", code=1)
    says(bed, 1, "host hx is not in the run", "ctl", "run", "evict", "hx", code=1)
    need([row[-3] for row in seen(bed)] == ["3", "1", "1"], f"{seen(bed)}")
    says(bed, 1, "^host h0 has left\n", "ctl", "run", "evict", "h0")
    says(bed, 2, "host h2  teller h1  2 of 3 hosts take part", "top", "run")
    need(seen(bed)[0][1] == "left", f"{seen(bed)}")
    says(bed, 0, "has ended, or this machine is none", "ctl", "run", "hosts", code=1)
    says(bed, 2, "is saved", "ctl", "run", "checkpoint")
    says(bed, 2, "^stopped after step", "ctl", "run", "stop")
    text = ends(run, 3)
    same(text)
    need("not continued" not in text and "still locked" not in text, text)
    return f"{whole(bed)} steps"


def leaving(bed):
    """SIGTERM to an agent, first of the teller: it exits with 0, and its lanes go to the others."""
    run = start(bed, *MLP, "--steps", "2000", "-n", "1", "--hosts", "h0,h1,h2", host=2)
    for host, step in ((0, 50), (1, 400)):
        reaches(bed, run, step)
        agent = json.load(open(f"{bed.path}/run/hosts/h{host}/agent.json"))["pid"]
        bed.run(host, ["kill", str(agent)])
        wait_for(lambda: text_of(f"{bed.path}/code-h{host}") == "0\n",
                 f"h{host} does not leave: {text_of(run.file)}", 10)
        need(not [p for p in bed.processes(host) if "join" in p[1] or "train" in p[1]],
             f"{bed.processes(host)}")
    same(ends(run, 0))
    need(whole(bed) == 2000, "steps are missing")


def stops(bed):
    run = start(bed, *MLP, "--steps", "1000000", "-n", "1", "--hosts", "h0,h1,h2", "--ckpt", "ck",
                host=1)
    reaches(bed, run, 20)
    run.send_signal(signal.SIGTERM)
    text = ends(run, 3)
    same(text)
    step = int(re.search("done steps=(\\d+)", text)[1])
    need(os.path.isdir(f"{bed.path}/ck/step-{step:09}"), f"not saved: {os.listdir(bed.path)}")


def stops_early(bed):
    """Also while hosts are still joining."""
    for delay in (0.05, 0.15):
        run = start(bed, *MLP, "--steps", "1000000", "-n", "1", "--hosts", "h0,h1,h2")
        time.sleep(delay)
        run.send_signal(signal.SIGTERM)
        ends(run, 3, 5)
        bed.check_clean(1)


def second_signal(bed):
    """A worker that is stopped keeps the first from ending the run."""
    run = start(bed, *MLP, "--steps", "1000000", "-n", "1", "--hosts", "h0,h1", "--no-kill")
    reaches(bed, run, 20)
    for host in range(2):
        for pid, command in bed.processes(host):
            if " train " in command and pid != run.inner:
                os.kill(pid, signal.SIGSTOP)
    run.send_signal(signal.SIGINT)
    time.sleep(0.3)
    need(run.poll() is None, f"it has ended: {text_of(run.file)}")
    run.send_signal(signal.SIGINT)
    began = time.monotonic()
    text = ends(run, 3, 5)
    need("second signal" in text, text)
    bed.check_clean(1)
    return f"{time.monotonic() - began:.1f} s"


def events(bed):
    """The teller's host dies; then another is cut off. Files in DIR go on."""
    run = start(bed, *MLP, "--steps", "1000000", "-n", "1", "--hosts", "h0,h1,h2", "--lease", "0.5",
                "--ckpt", "ck", "--save-every", "50", "--keep", "3", "--on-event",
                "echo $TRIREME_EVENT $TRIREME_HOST: $TRIREME_MESSAGE >>events.txt", host=2)
    reaches(bed, run, 60)
    bed.kill(0)
    reaches(bed, run, metrics(bed)[-1]["step"] + 100)
    bed.cut(1)
    wait_for(lambda: text_of(bed.path + "/events.txt").count("host-lost") == 2,
             f"no events: {text_of(run.file)}", 10)
    reaches(bed, run, metrics(bed)[-1]["step"] + 100)
    says(bed, 2, "is saved", "ctl", "run", "checkpoint")
    bed.kill(1)
    bed.heal(1)
    run.send_signal(signal.SIGTERM)
    text = ends(run, 3)
    same(text)
    for wrong in ("not continued", "still locked", "another run"):
        need(wrong not in text, text)
    whole(bed)
    need([line.split(";")[0] for line in text_of(bed.path + "/events.txt").split("\n")[:2]] ==
         ["host-lost h0: host h0 takes no part any more",
          "host-lost h1: host h1 takes no part any more"]
         and text_of(bed.path + "/events.txt").count("end :") == 1,
         text_of(bed.path + "/events.txt"))


def ranks(bed):
    run = start(bed, "run", "-n", "1", "--hosts", "h0,h1:2", "--env", "TEST_MODE", "--", OWN_LOOP,
                "--steps", "30", "--lanes", "4")
    text = ends(run, 0)
    for host in range(2):
        for worker in range(2):
            text += text_of(f"{bed.path}/run/hosts/h{host}/worker-{worker}.out")
    lines = sorted(re.findall("rank.*", text))
    need(lines == ["rank 0 of 3, host 0 of 2", "rank 1 of 3, host 1 of 2",
                   "rank 2 of 3, host 1 of 2"], f"{lines}: {text}")
    need(os.path.exists(bed.path + "/run/metrics.jsonl"), "metrics.jsonl is elsewhere")


def refused(bed):
    """What exists on one host alone; before the first step, for each of them."""
    for mode, why in (("fed", "batches that the program feeds"),
                      ("sequential", "is read in sequence, by one reader")):
        os.environ["TEST_MODE"] = mode
        run = start(bed, "run", "-n", "1", "--hosts", "h0,h1", "--env", "TEST_MODE", "--",
                    OWN_LOOP, "--steps", "30", "--lanes", "4")
        os.environ["TEST_MODE"] = "ranks"
        need(why in ends(run, 1) and not metrics(bed), f"{mode}: {text_of(run.file)}")


def apart(_):
    """Each host has a DIR of its own: the next teller begins a file of its own."""
    with Bed(2, shared=False) as bed:
        old = bed.directory(1) + "/run"
        os.mkdir(old)
        with open(old + "/metrics.jsonl", "w") as f:
            f.write('{"step":999999,"epoch":0,"samples":1,"loss":1.0,"seconds":1.0}\n')
        run = start(bed, *MLP, "--steps", "1000000", "-n", "1", "--hosts", "h0,h1")
        reaches(bed, run, 20)
        says(bed, 1, "host h1  teller h0 ", "top", "run")
        says(bed, 0, "^host h0 has left\n|^this host has left", "ctl", "run", "evict", "h0")
        reaches(bed, run, 30, host=1)
        says(bed, 1, "^stopped after", "ctl", "run", "stop")
        ends(run, 3)
        lines = metrics(bed, 1)
        need("steps" not in lines[0] and lines[0]["step"] > 20 and
             os.path.exists(old + "/metrics.1.jsonl"), f"{lines[:2]}")
        bed.check_clean(1)


def one_directory(bed):
    """Runs in turn: each has the files of all its hosts together, a resumed one those of before."""
    def train(hidden, steps, *more):
        ends(start(bed, "train", f"mlp:hidden={hidden}", *MLP[2:], "--steps", steps, "-n", "1",
                   "--hosts", "h0,h1", "--ckpt", f"ck{hidden}", "--save-every", "10", *more), 0)

    def runs(number):
        """Title and steps of the hosts' run.json, and the last step of metrics.jsonl."""
        part = f".{number}" if number else ""
        out = [json.load(open(f"{bed.path}/run/hosts{part}/h{host}/run.json")) for host in (0, 1)]
        last = json.loads(text_of(f"{bed.path}/run/metrics{part}.jsonl").split("\n")[-2])["step"]
        return [(run["title"], run["hosts"],
                 [(entry["host"], entry["first"], entry["last"]) for entry in run["entries"]])
                for run in out], last

    def expected(hidden, *steps):
        return [(f"mlp:hidden={hidden}", ["h0", "h1"],
                 [(f"h{host}", *entry) for entry in steps]) for host in (0, 1)], steps[-1][-1]

    train(8, 10)
    train(9, 10)
    need(runs(1) == expected(8, (1, 10)) and runs(0) == expected(9, (1, 10)),
         f"{runs(1)} {runs(0)}")
    train(8, 20, "--resume")
    need(runs(2) == expected(9, (1, 10)) and runs(0) == expected(8, (1, 10), (11, 20)),
         f"{runs(2)} {runs(0)}")
    need(not os.path.exists(f"{bed.path}/run/hosts.1"), "some have remained")
    logs = [line for line in says(bed, 0, "agent", "log", "run").split("\n") if "  end  " in line]
    need(sorted(line.split()[1] for line in logs) == ["h0", "h0", "h1", "h1"], f"{logs}")


def cases(bed):
    def tidy(case):
        def run():
            try:
                fresh(*(f"{bed.path}/{name}" for name in os.listdir(bed.path)))
                for name in ("events.txt", "out.txt", *(f"code-h{host}" for host in range(3))):
                    if os.path.exists(f"{bed.path}/{name}"):
                        os.remove(f"{bed.path}/{name}")
                said = case(bed)
                bed.check_clean(1)
            finally:
                for host in range(bed.n):
                    bed.kill(host)
            return said
        return run

    return {name: tidy(case) for name, case in {
        "steering": steering, "a host leaves": leaving, "all stop": stops,
        "an early end": stops_early,
        "a second signal": second_signal, "events and files": events, "ranks": ranks,
        "what is refused": refused, "one directory": one_directory,
        "apart": apart}.items()}


require("hosts_steer")
os.environ["TEST_MODE"] = "ranks"
with Bed(3) as made:
    run_cases(cases(made), sys.argv[3:])
