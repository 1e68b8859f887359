# SPDX-License-Identifier: Apache-2.0
"""Shared by the scripts of this folder: starting trireme, reading its last line and its events,
running cases."""
import glob
import json
import os
import random
import re
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
import traceback

# Runs inherit ignored signals: a test under nohup or in the background must not differ.
for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
    if signal.getsignal(number) == signal.SIG_IGN:
        signal.signal(number, signal.SIG_DFL)

PROGRAM = os.path.abspath(sys.argv[1])
LIMIT = 240  # seconds after which a run counts as hung
SLOW = bool(os.environ.get("SLOW"))  # set by `make test-slow`: the long forms


class Wrong(Exception):
    pass


def need(condition, text):
    if not condition:
        raise Wrong(text)


def start(*words, program=PROGRAM, env=None):
    return subprocess.Popen([program, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            text=True,
                            env={**os.environ, **(env or {})})


def end(process, limit=LIMIT):
    try:
        process.out, process.err = process.communicate(timeout=limit)
    except subprocess.TimeoutExpired:
        process.kill()
        raise Wrong(f"it hangs: {' '.join(process.args[1:])}")
    return process


def trireme(*words, **more):
    return end(start(*words, **more))


def done(process):
    """Steps, loss and hashes of its last line."""
    lines = [line for line in process.out.split("\n") if line.startswith("done ")]
    need(len(lines) == 1,
         f"{len(lines)} last lines, exit {process.returncode}: {process.err[-800:]}")
    return re.sub(r" seconds=.*", "", lines[0])


def children(pid):
    found = []
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            state, parent = open(f"/proc/{entry}/stat").read().rsplit(")", 1)[1].split()[:2]
        except OSError:
            continue
        if int(parent) == pid and state not in "ZX":
            found.append(int(entry))
    return found


def wait_for(holds, text, limit=60):
    until = time.time() + limit
    while not holds():
        need(time.time() < until, text)
        time.sleep(0.01)


def text_of(path):
    """The content of a file; empty if the file does not exist."""
    try:
        return open(path).read()
    except FileNotFoundError:
        return ""


def folders(directory="ck"):
    return sorted(f for f in os.listdir(directory) if f.startswith("step-"))


def fresh(*names):
    for name in names or ("ck",):
        shutil.rmtree(name, ignore_errors=True)


def array(path, kind, shape, values):
    """Writes a file like numpy.save."""
    head = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}"
    head += " " * (-(len(head) + 11) % 64) + "\n"
    with open(path, "wb") as f:
        f.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode())
        f.write(struct.pack(f"<{len(values)}{'f' if kind == '<f4' else 'q'}", *values))


def write_documents():
    """One to three sentences each, of all lengths, so that samples have all lengths too."""
    one = random.Random(1)
    with open("vocab.txt", "w") as f:
        f.write("\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]",
                           *"abcdefghijklmnopqrstuvwxyz"]) + "\n")
    with open("docs.txt", "w") as f:
        for _ in range(70):
            lines = (" ".join(one.choices("abcdefghijklmnopqrstuvwxyz", k=one.randint(1, 9)))
                     for _ in range(one.randint(2, 4)))
            f.write("\n".join(lines) + "\n\n")


def flip(path, at, bit=1):
    with open(path, "r+b") as f:
        f.seek(at, os.SEEK_END if at < 0 else os.SEEK_SET)
        byte = f.read(1)
        f.seek(-1, os.SEEK_CUR)
        f.write(bytes([byte[0] ^ bit]))


def events(directory, *names):
    try:
        lines = open(f"{directory}/agent.log").read().split("\n")
    except OSError:
        return []
    whole = [json.loads(line) for line in lines if line.endswith("}")]
    return [e for e in whole if not names or e["event"] in names]


def step_of(directory):
    """The step that a run is at."""
    return int(re.search(r"step +(\d+)", trireme("top", directory, "--once").out).group(1))


def wait_for_steps(directory, n=20):
    """Until a run of several workers has completed that many more steps."""
    wait_for(lambda: events(directory, "rowing"), "no worker takes part")
    wanted = step_of(directory) + n
    wait_for(lambda: step_of(directory) >= wanted, f"no {n} steps in {directory}")


def pid_at_work(directory, place, more_than=0):
    """The worker in this place, after more than that many have begun to work there."""
    wait_for(lambda: sum(e["worker"] == place for e in events(directory, "rowing")) > more_than,
             f"worker {place} takes no part")
    return [e["pid"] for e in events(directory, "start") if e["worker"] == place][-1]


def length_for(words, seconds):
    """The number of steps that take about that many seconds."""
    steps, took = 2, 0.0
    while took < 0.3:
        steps *= 4
        run = trireme("train", *words, "--quiet", "--steps", str(steps), "-n", "2")
        done(run)
        took = float(re.search(r" seconds=([0-9.]+)", run.out).group(1))
    return max(20, int(seconds * steps / took))


HAS_POINTS = b"TRIREME_POINT" in open(PROGRAM, "rb").read()
ALL_POINTS = bool(os.environ.get("ALL_POINTS"))


def kill_after_writes(words, place, step, look):
    """Kills the worker in a place after every step-th write of the protocol; only builds with
    such points can. look(run, N) checks the run."""
    if not HAS_POINTS:
        return "skipped: this build has no points (-Dpoints=true)"
    step = 1 if ALL_POINTS else step if SLOW else 3 * step
    n = random.randrange(step)
    reached = missed = 0
    # The number of a worker's writes varies from run to run; a late one may have none in a short
    # run, and is given more runs until it was killed once.
    while missed < (40 if not reached else 4 if ALL_POINTS else 2):
        run = trireme("train", *words, env={"TRIREME_POINT": f"{place}:{n}"})
        look(run, n)
        killed = "killed by signal 9" in run.err
        reached += killed
        missed = 0 if killed else missed + 1
        n = n + step if reached else random.randrange(step)
    need(reached, "no point was reached")
    return f"{reached} points"


def last_events():
    """The end of the newest agent's log, which the test removes."""
    logs = sorted(glob.glob("*/agent.log"), key=os.path.getmtime)
    return f"\n{logs[-1]}:\n" + "\n".join(text_of(logs[-1]).split("\n")[-30:]) if logs else ""


def run_cases(cases, wanted, slow=()):
    """Runs the cases, a line for each; the last line has the counts. slow: the names of those that
    run only if they are wanted, or with SLOW=1."""
    passed = failed = 0
    random.seed(int(os.environ.get("SEED", "1")))
    with tempfile.TemporaryDirectory() as work:
        os.chdir(work)
        for name, case in cases.items():
            if not any(w in name for w in wanted) if wanted else name in slow and not SLOW:
                continue
            began = time.monotonic()
            try:
                said = case()
                passed += 1
                print(f"ok {name}{': ' + said if said else ''} ({time.monotonic() - began:.1f} s)",
                      flush=True)
            # an exception that no case expects is a failure too, reported in full
            except Exception as wrong:
                failed += 1
                text = str(wrong) if isinstance(wrong, Wrong) else traceback.format_exc()
                text += last_events()
                print(f"not ok {name}\n    " + text.replace("\n", "\n    "), flush=True)
    print(f"{passed} passed, {failed} failed")
    sys.exit(failed > 0)
