# SPDX-License-Identifier: Apache-2.0
"""Signals to runs, and readers of their output that exit: the step is completed and saved.

Usage: signals.py TRIREME OWN_LOOP [CASE...]"""
import os
import re
import signal
import subprocess
import sys

from runs import PROGRAM, SLOW, done, end, events, need, run_cases, text_of, trireme, wait_for

OWN_LOOP = os.path.abspath(sys.argv[2])  # tests/parallel/own_loop.c
# of workers; "": one process without an agent
NUMBERS = ("", "-n 1", "-n 2") if SLOW else ("", "-n 2")
WORDS = "lenet5 --batch 8 --lanes 2 --optimizer momentum --schedule constant".split()


def checkpoint(directory):
    """The step of the newest checkpoint."""
    folders = sorted(f for f in os.listdir(directory) if re.fullmatch("step-[0-9]+", f))
    need(folders, f"no checkpoint in {directory}")
    return int(folders[-1][5:])


def goes_on(directory):
    """A run of one step more resumes from the saved step."""
    step = checkpoint(directory)
    need(trireme("ckpt", "verify", directory).returncode == 0, "the checkpoint is damaged")
    if step > 2000 and not SLOW:
        return
    more = [*WORDS, "--quiet", "--steps", str(step + 1)]
    resumed = trireme("train", *more, "--ckpt", directory, "--resume")
    need(resumed.returncode == 0, f"it does not go on: {resumed.err}")
    need(done(resumed) == done(trireme("train", *more)), "a run that goes on has other weights")


def begin(number, name, *more, **how):
    words = ["train", *WORDS, *number.split(), "--steps", "1000000", "--ckpt", name, "--out",
             name + "-out", *more]
    return subprocess.Popen([PROGRAM, *words], text=True, **how)


def reader_leaves(which, number):
    """Like `train ... | head -1`: the reader of stdout, stderr or both exits after a line."""
    name = f"ck-{which}{number.replace(' ', '')}"
    pipe = subprocess.PIPE
    how = {"stderr": {"stdout": pipe, "stderr": pipe},
           "both": {"stdout": pipe, "stderr": subprocess.STDOUT}}[which]
    run = begin(number, name, **how)
    gone = run.stderr or run.stdout
    while "lanes x" not in gone.readline():
        need(run.poll() is None, "it has ended before it began")
    gone.close()
    run.wait(120)
    need(run.returncode == 3, f"exit {run.returncode}")
    if which == "stderr":
        steps = int(re.search(r"^done steps=(\d+) ", run.stdout.read(), re.M).group(1))
        need(steps == checkpoint(name),
             f"{steps} steps, and a checkpoint of step {checkpoint(name)}")
    run.stdout.close()
    if number:
        told = [e["text"] for e in events(name + "-out", "told")]
        need(any("has gone" in t for t in told), f"the agent has told {told}")
    goes_on(name)


def stdout_at_the_end(number):
    """Nothing is printed there until all steps are completed: then the exit code reports the
    lost line."""
    run = subprocess.Popen([PROGRAM, "train", *WORDS, *number.split(), "--steps", "3", "--ckpt",
                            "ck-last" + number,
                            "--out", "last"], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                           text=True)
    run.stdout.close()
    run.stdout = None
    end(run)
    need(run.returncode == 1 and "cannot write the last line to stdout: Broken pipe" in run.err,
         f"exit {run.returncode}: {run.err}")
    need(checkpoint("ck-last" + number) == 3, "the last step was not saved")


def own_program(number, **env):
    """A user's loop that prints; output that could not be written does not kill it at its end."""
    name = "ck-own" + "-".join([number, *env])
    words = [OWN_LOOP, "--steps", "100000000", "--ckpt", name, "--out", "own"]
    if number:
        words = [PROGRAM, "run", *number.split(), "--", *words]
    run = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                           env={**os.environ, "TEST_MODE": "print", **env})
    run.stdout.readline()
    run.stdout.close()
    run.stdout = None
    end(run)
    need(run.returncode == 3, f"exit {run.returncode}: {run.err[-500:]}")
    need("the reader of stdout or stderr has gone; the run ends after" in run.err, run.err[-500:])
    need(checkpoint(name) > 0, "nothing was saved")


def rows(directory):
    """Whether any step is completed."""
    text = text_of(f"{directory}/metrics.jsonl")
    return '"step":' in text


def ignores(sig):
    return lambda: signal.signal(sig, signal.SIG_IGN)


def hung_up(number):
    run = begin(number, "ck-hup" + number, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    wait_for(lambda: rows(f"ck-hup{number}-out"), "no step is done")
    run.send_signal(signal.SIGHUP)
    end(run)
    need(run.returncode == 3 and "trireme: hung up: the run ends after the current" in run.err,
         f"exit {run.returncode}: {run.err}")
    last = r"\ntrireme: stopped by SIGHUP after \d+ of \d+ steps\n$"
    need(number or re.search(last, run.err), f"the last lines do not say why: {run.err}")
    goes_on("ck-hup" + number)


def stays_ignored(number, sig):
    """As under nohup, or in the background of a script. SIGTERM is the first signal that has an
    effect."""
    name = f"ck-{sig.name}{number}"
    run = begin(number, name, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                preexec_fn=ignores(sig))
    wait_for(lambda: rows(name + "-out"), "no step is done")
    run.send_signal(sig)
    run.send_signal(signal.SIGTERM)
    end(run)
    need(run.returncode == 3 and "trireme: asked to end: the run ends after" in run.err,
         f"exit {run.returncode}: {run.err}")
    need("hung up" not in run.err and "interrupted" not in run.err
         and "second signal" not in run.err, run.err)
    checkpoint(name)


def commands(number):
    """The commands that a run starts do not inherit its signal handling, except for an ignored
    SIGHUP."""
    command = "grep SigIgn: /proc/$$/status >ignored; exit 0"
    for sig in (signal.SIGPIPE, signal.SIGHUP):
        words = ["train", *WORDS, *number.split(), "--steps", "3", "--quiet", "--on-event", command,
                 "--out", "commands"]
        run = subprocess.Popen([PROGRAM, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                               text=True,
                               preexec_fn=ignores(sig))
        need(end(run).returncode == 0, run.err)
        mask = int(text_of("ignored").split()[1], 16)
        need(not mask & 1 << (signal.SIGPIPE - 1), "a command ignores SIGPIPE")
        need(bool(mask & 1 << (signal.SIGHUP - 1)) == (sig == signal.SIGHUP),
             f"a command ignores {mask:x}")


def put_back():
    """After a run signal handlers are restored; a program's own handler stays."""
    for pipe, open_, other in (("", "library", "default"), ("ignored", "library", "ignored"),
                               ("own", "own", "own")):
        env = {"TEST_MODE": "signals", **({"TEST_PIPE": pipe} if pipe else {})}
        run = trireme("--steps", "2", "--quiet", program=OWN_LOOP, env=env)
        need(run.returncode == 0, run.err)
        want = [f"before: PIPE={other} SEGV=default HUP=default INT=default",
                f"open: PIPE={open_} SEGV=library HUP=default INT=default",
                f"closed: PIPE={other} SEGV=default HUP=default INT=default"]
        said = [line for line in run.out.split("\n") if "PIPE" in line]
        need(said == want, f"{said}, not {want}")


CASES = {}
for each in NUMBERS:
    title = each or "one process"
    for end_of in ("stderr", "both"):
        CASES[f"nobody reads {end_of}: {title}"] = lambda w=end_of, n=each: reader_leaves(w, n)
    CASES[f"nobody reads the last line: {title}"] = lambda n=each: stdout_at_the_end(n)
    CASES[f"nobody reads a loop's output: {title}"] = lambda n=each: own_program(n)
    CASES[f"hung up: {title}"] = lambda n=each: hung_up(n)
    CASES[f"nohup: {title}"] = lambda n=each: stays_ignored(n, signal.SIGHUP)
    CASES[f"an ignored SIGINT: {title}"] = lambda n=each: stays_ignored(n, signal.SIGINT)
    CASES[f"commands: {title}"] = lambda n=each: commands(n)
CASES["an ignored SIGPIPE: one process"] = lambda: own_program("", TEST_PIPE="ignored")
CASES["put back"] = put_back

run_cases(CASES, sys.argv[3:])
