# SPDX-License-Identifier: Apache-2.0
"""What the scripts of this folder share: starting trireme, its last line, its events, cases."""
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback

# Runs keep a signal ignored that they begin with: nohup and background jobs must not change the tests.
for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
    if signal.getsignal(number) == signal.SIG_IGN:
        signal.signal(number, signal.SIG_DFL)

PROGRAM = os.path.abspath(sys.argv[1])
LIMIT = 240  # seconds after which a run counts as hung
SLOW = bool(os.environ.get("SLOW"))  # `make test-slow` sets it: the long forms


class Wrong(Exception):
    pass


def need(condition, text):
    if not condition:
        raise Wrong(text)


def start(*words, program=PROGRAM, env=None):
    return subprocess.Popen([program, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
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
    need(len(lines) == 1, f"{len(lines)} last lines, exit {process.returncode}: {process.err[-800:]}")
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
    """Nothing, as long as there is no such file."""
    try:
        return open(path).read()
    except FileNotFoundError:
        return ""


def folders(directory="ck"):
    return sorted(f for f in os.listdir(directory) if f.startswith("step-"))


def fresh(*names):
    for name in names or ("ck",):
        shutil.rmtree(name, ignore_errors=True)


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


def length_for(words, seconds):
    """So many steps that a run of it takes about so long."""
    steps, took = 2, 0.0
    while took < 0.3:
        steps *= 4
        run = trireme("train", *words, "--quiet", "--steps", str(steps), "-n", "2")
        done(run)
        took = float(re.search(r" seconds=([0-9.]+)", run.out).group(1))
    return max(20, int(seconds * steps / took))


HAS_POINTS = b"TRIREME_POINT" in open(PROGRAM, "rb").read()
ALL_POINTS = bool(os.environ.get("ALL_POINTS"))


def kill_behind_writes(words, place, step, look):
    """The worker in a place is killed behind each step-th write of the protocol: only in builds that have such points.
    look(run, N) sees what has become of it."""
    if not HAS_POINTS:
        return "skipped: this build has no points (-Dpoints=true)"
    step = 1 if ALL_POINTS else step
    n = random.randrange(step)
    reached = missed = 0
    while missed < (4 if ALL_POINTS else 2):  # how much a worker writes is not the same in each run
        run = trireme("train", *words, env={"TRIREME_POINT": f"{place}:{n}"})
        look(run, n)
        killed = "killed by signal 9" in run.err
        reached += killed
        missed = 0 if killed else missed + 1
        n += step
    need(reached, "no point was reached")
    return f"{reached} points"


def run_cases(cases, wanted):
    """Each case prints a line; the last says how many passed."""
    passed = failed = 0
    random.seed(int(os.environ.get("SEED", "1")))
    with tempfile.TemporaryDirectory() as work:
        os.chdir(work)
        for name, case in cases.items():
            if wanted and not any(w in name for w in wanted):
                continue
            began = time.monotonic()
            try:
                said = case()
                passed += 1
                print(f"ok {name}{': ' + said if said else ''} ({time.monotonic() - began:.1f} s)", flush=True)
            except Exception as wrong:  # what no case expects is a failure of it too, told in full
                failed += 1
                text = str(wrong) if isinstance(wrong, Wrong) else traceback.format_exc()
                print(f"not ok {name}\n    " + text.replace("\n", "\n    "), flush=True)
    print(f"{passed} passed, {failed} failed")
    sys.exit(failed > 0)
