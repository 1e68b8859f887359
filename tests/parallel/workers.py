#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs with several workers: the same weights for any number of workers and after any failure.

Usage: workers.py TRIREME OWN_LOOP [CASE...]

KILLS=N: the number of kills in each storm (3; with SLOW=1 30)."""
import collections
import json
import os
import random
import re
import signal
import struct
import subprocess
import sys
import time

from runs import (HAS_POINTS, PROGRAM, SLOW, children, done, end, events, kill_after_writes,
                  length_for, need, pid_at_work, run_cases, start, step_of, text_of, trireme,
                  wait_for, wait_for_steps, write_documents)

OWN_LOOP = os.path.abspath(sys.argv[2])  # tests/parallel/own_loop.c
KILLS = int(os.environ.get("KILLS", "30" if SLOW else "3"))
NUMBERS = (1, 2, 3, 8) if SLOW else (2, 3)


# ---- the same weights for any number of workers ----

RUNS = {
    "lenet5": "lenet5 --steps 30 --optimizer adam",
    "uneven lanes": "lenet5 --steps 10 --batch 30 --lanes 7 --optimizer momentum",
    "dropout and clipping": "bert-tiny --steps 3 --batch 8 --lanes 4 --optimizer adamw"
                            " --clip-norm 1",
    "one lane": "bert-tiny --steps 3 --batch 4 --lanes 1 --optimizer lamb",
    "batch norm": "resnet18:size=32 --steps 2 --batch 16 --lanes 4 --optimizer lars",
    "buckets": "lenet5 --steps 20 --lanes 7 --batch 30 --optimizer adam --bucket 1",
    "half": "mlp --steps 5 --lanes 4 --amp O2 --loss-scale dynamic --optimizer adam",
    "the reference": "cnn --steps 2 --batch 8 --lanes 4 --device ref",
    "a smaller last step": "lenet5 --steps 12 --lanes 7 --tail keep --subset 0:150"
                           " --optimizer adam",
    "lengths": "bert-tiny:seq=32/16/8,vocab=32,layers=1 --epochs 2 --batch 8 --lanes 4 --tail keep "
               "--optimizer adamw"
               " --clip-norm 1 --data text:docs.txt --tokenizer bert:vocab.txt",
}


def same(words, *numbers):
    words = words.split() + ["--quiet"]
    if "text:docs.txt" in words:
        write_documents()
    plain = done(trireme("train", *words))
    for n in numbers:
        got = done(trireme("train", *words, "-n", str(n)))
        need(got == plain, f"-n {n}:\n{got}\nalone:\n{plain}")


def buckets():
    """The sizes of buckets change nothing, also where lanes of two sizes, steps of two shapes and
    audits use them."""
    words = ("lenet5 --steps 12 --lanes 5 --batch 32 --subset 0:46 --tail keep --quiet"
             " --optimizer momentum --clip-norm 0.5").split()
    plain = done(trireme("train", *words, "--bucket", "1G"))
    for more in ("--bucket 1", "--bucket 1 -n 2 --spares 1", "--bucket 20K -n 2",
                 "--bucket 1 -n 3 --audit 1", "--bucket 1 -n 2 --threads-per-worker 4",
                 "--bucket 1 --threads 3"):
        got = done(trireme("train", *words, *more.split()))
        need(got == plain, f"{more}:\n{got}\none bucket:\n{plain}")


def threads_of_workers():
    words = "lenet5 --steps 20 --lanes 8 --quiet".split()
    plain = done(trireme("train", *words))
    for n, t in ((1, 2), (2, 2), (2, 3)):
        got = done(trireme("train", *words, "-n", str(n), "--threads-per-worker", str(t)))
        need(got == plain, f"-n {n} of {t} threads:\n{got}\nalone:\n{plain}")


def automatic():
    words = ["lenet5", "--quiet"]
    words += ["--steps", str(length_for(words, 2.5))]
    run = trireme("train", *words, "-n", "auto")
    need(done(run) == done(trireme("train", *words)), "another result")
    need("-n auto" in run.err or len(os.sched_getaffinity(0)) == 1, run.err)


def automatic_with_death():
    """A kill during the trial ends the trial, because it would measure a run with too few
    workers."""
    words = ["resnet18:size=32", "--batch", "16", "--lanes", "4", "--steps", "5", "--quiet"]
    plain = done(trireme("train", *words))
    run = start("train", *words, "-n", "auto", "--out", "died")
    if len(os.sched_getaffinity(0)) > 1:
        os.kill(pid_at_work("died", 1), signal.SIGKILL)
    need(done(end(run)) == plain, "another result")
    need("-n auto: a worker has died" in run.err or len(os.sched_getaffinity(0)) == 1, run.err)


# ---- storms ----

def storm(words, workers, spares, kills, signals=(signal.SIGKILL, signal.SIGSEGV, signal.SIGABRT)):
    subprocess.run(["rm", "-rf", "storm"], check=True)
    words = words.split()
    words += ["--quiet", "--steps", str(length_for(words, 0.5 * kills + 0.7))]
    plain = done(trireme("train", *words))
    run = start("train", *words, "-n", str(workers), "--spares", str(spares), "--out", "storm")
    wait_for(lambda: events("storm", "rowing"), "no worker takes part")
    killed = 0
    while killed < kills and run.poll() is None:
        victims = children(run.pid)
        for pid in random.sample(victims, min(len(victims), random.choice((1, 1, 1, 2)))):
            try:
                os.kill(pid, random.choice(signals))
                killed += 1
            except ProcessLookupError:
                pass
        time.sleep(random.uniform(0, 0.7))
    end(run)
    got = done(run)
    need(got == plain, f"after {killed} kills:\n{got}\nalone:\n{plain}\n{run.err[-1500:]}")
    deaths = len(events("storm", "death"))
    need(deaths, "no worker has died")
    return f"{deaths} deaths"


SMALLER = "--batch 16 --subset 0:24 --tail keep"  # every second step is a smaller one


def points(place, words, *more):
    words = f"lenet5 --steps 12 --lanes 4 --quiet --optimizer adam --clip-norm 0.1 {words}".split()
    plain = done(trireme("train", *words))

    def look(run, n):
        need(run.returncode == 0, f"killed at point {n}: exit {run.returncode}\n{run.err}")
        need(done(run) == plain, f"killed at point {n}:\n{done(run)}\nalone:\n{plain}\n{run.err}")
    return kill_after_writes([*words, "-n", "2", *more], place, 17, look)


def audit():
    """Lanes computed twice change nothing; in builds with points one worker lies and is caught."""
    words = "lenet5 --steps 20 --quiet".split()
    plain = done(trireme("train", *words))
    for more in (["-n", "2"], ["-n", "2", "--spares", "1"], ["-n", "1", "--spares", "1"]):
        need(done(trireme("train", *words, *more, "--audit", "0.5")) == plain,
             f"{more}: another result")
    words = "lenet5 --steps 12 --lanes 16 --batch 16 --optimizer lamb --quiet".split()
    words += ["--clip-norm", "0.1"]
    plain = done(trireme("train", *words))
    # the spare joins at any moment, also during an update
    for _ in range(12 if KILLS > 2 else 3):
        runs = [start("train", *words, "-n", "1", "--spares", "1", "--audit", "1", "--out", f"a{i}")
                for i in range(4)]
        need(all([done(end(run)) == plain for run in runs]), "another result")
    words = "lenet5 --steps 100000 --quiet -n 2 --audit 1 --out lie".split()
    if not HAS_POINTS:
        return
    run = trireme("train", *words, env={"TRIREME_LIE": "0:7"})
    need(run.returncode == 1
         and re.search(r"step 7: audit: .*worker 0 .*lane \d, and \S+ differs",
                                           run.err), f"exit {run.returncode}: {run.err}")


def audit_with_stops():
    """A worker that is late with a lane, or computes one that another has finished, spoils no
    audit."""
    words = ["mlp", "--batch", "64", "--lanes", "4", "--quiet"]
    words += ["--steps", str(length_for(words, 0.7))]
    plain = done(trireme("train", *words))
    subprocess.run(["rm", "-rf", "stops"], check=True)
    run = start("train", *words, "-n", "2", "--spares", "1", "--audit", "1", "--stall-timeout", "5",
                "--out", "stops")
    pids = [pid_at_work("stops", place) for place in (0, 1)]
    while run.poll() is None:
        victim = random.choice(pids)
        for which, seconds in ((signal.SIGSTOP, 0.02), (signal.SIGCONT, 0.01)):
            try:
                os.kill(victim, which)
            except ProcessLookupError:
                pass
            time.sleep(random.uniform(0, seconds))
    need(done(end(run)) == plain, "another result: " + run.err)
    need("all workers have waited" not in run.err, run.err)


def own_loop(mode, *more, kill=False, threads=None):
    """A user's loop, with deaths at its most delicate places: the weights are those of one
    process."""
    words = [OWN_LOOP, "--lanes", "4", "--steps", "2000", "--data-threads", str(threads or "off")]
    alone = subprocess.run(words, capture_output=True, text=True,
                           env={**os.environ, "TEST_MODE": mode})
    need(alone.returncode == 0 and "weights " in alone.stdout, f"alone: exit {alone.returncode}")
    open("die", "w").close()
    subprocess.run(["rm", "-rf", "own"], check=True)
    run = start("run", "-n", "2", "--out", "own", *more, "--", *words,
                env={"TEST_MODE": mode, "TEST_DIE": os.path.abspath("die")})
    if kill:  # worker 0 waits before the first step; the other one is ready
        wait_for(lambda: not os.path.exists("die"), "worker 0 does not come so far")
        wait_for(lambda: '"compiled"' in text_of("own/worker-1.log"), "worker 1 is not ready")
        os.kill(events("own", "start")[0]["pid"], signal.SIGKILL)
    end(run, 60)
    need(run.returncode == 0, f"exit {run.returncode}: {run.err}")
    need(not os.path.exists("die") and events("own", "death"), f"no worker has died: {run.err}")
    # A reporter that leaves the loop after the takeover prints to its own file.
    out = run.out or text_of("own/worker-1.out")
    need(out == alone.stdout, f"{out}alone:\n{alone.stdout}{run.err}")


def many_results():
    """A network has more results than the head of the store has room for, with long names."""
    words = [OWN_LOOP, "--lanes", "4", "--steps", "3"]
    alone = trireme(*words[1:], program=OWN_LOOP, env={"TEST_MODE": "results"})
    run = trireme("run", "-n", "2", "--out", "results", "--", *words, env={"TEST_MODE": "results"})
    need(run.returncode == 0 and len(run.out.split("\n")) == 102, run.err)
    need(run.out == alone.out and " 0x0p+0" not in run.out, f"{run.out}alone:\n{alone.out}")


def threads_of_the_program():
    """A thread's death tells of its worker's, so the thread that opens a run must stay, and make
    the steps."""
    for mode, code, message in ("opener", 1, "a thread that computes has ended while the run"), \
            ("stepper", 2, "tri_step is called by another thread than tri_open"):
        run = trireme("run", "-n", "2", "--out", "threads", "--", OWN_LOOP, "--lanes", "4",
                      "--steps", "30", env={"TEST_MODE": mode})
        need(run.returncode == code and run.err.count("\n") == 1 and message in run.err, run.err)
        alone = trireme("--lanes", "4", "--steps", "30", program=OWN_LOOP, env={"TEST_MODE": mode})
        need(alone.returncode == 0 and "weights " in alone.out, alone.err)


def a_long_path():
    out = "/".join(6 * [200 * "d"])
    os.makedirs(out, exist_ok=True)
    run = trireme("run", "-n", "2", "--out", out, "--", OWN_LOOP, "--lanes", "4", "--steps", "3")
    need(run.returncode == 0 and text_of(f"{out}/metrics.jsonl"), run.err)


def late_reader():
    """While a worker is stopped in its data source, the others continue without its samples."""
    # so that no thread stops anywhere else
    words = [OWN_LOOP, "--lanes", "4", "--steps", "300000", "--data-threads", "off"]
    open("die", "w").close()
    subprocess.run(["rm", "-rf", "late"], check=True)
    run = start("run", "-n", "3", "--stall-timeout", "6", "--out", "late", "--", *words,
                env={"TEST_MODE": "late", "TEST_DIE": os.path.abspath("die")})

    wait_for(lambda: not os.path.exists("die"), "no worker stops")
    wanted = step_of("late") + 20
    wait_for(lambda: step_of("late") > wanted, "the others wait for it", 5)
    need(not events("late", "stall"), "the stall was detected too soon for this test")
    run.send_signal(signal.SIGTERM)
    end(run, 60)


def read_once(workers, *more):
    """Over all workers and threads each sample is read once per epoch, unless its reader is
    late."""
    subprocess.run(["rm", "-f", "seen"], check=True)
    run = trireme("run", "-n", str(workers), "--", OWN_LOOP, "--lanes", "4", "--steps", "2000",
                  *more,
                  env={"TEST_MODE": "data", "TEST_SEEN": os.path.abspath("seen")})
    need(run.returncode == 0, f"exit {run.returncode}: {run.err}")
    with open("seen", "rb") as f:
        read = collections.Counter(struct.iter_unpack("qq", f.read()))
    need(sorted(read) == [(e, i) for e in range(200) for i in range(160)],
         f"{len(read)} samples of 32000")
    again = sum(read.values()) - len(read)
    need(again < 0.01 * len(read), f"{again} read more than once: {read.most_common(3)}")


FED = [OWN_LOOP, *"--lanes 4 --steps 2000 --lr 0.5 --schedule poly:power=1,end=0 --quiet".split()]


def weights_of(run):
    """The hash, also from a worker that became reporter after it left its loop: it prints to its
    own file."""
    need(run.returncode == 0, f"exit {run.returncode}: {run.err}")
    out = run.out or text_of("own/worker-0.out") or text_of("own/worker-1.out")
    need(re.fullmatch("weights [0-9a-f]{64}\n", out), f"{out}{run.err}")
    return out


def fed(workers, *more):
    """A loop that feeds each batch and sets the rate, whose reporter dies at every place of it;
    then the same loop in two parts, where the second resumes from the first one's checkpoint.
    Both give the weights of one process."""
    env = {"TEST_MODE": "fed", "TEST_DIE": os.path.abspath("fed")}
    alone = weights_of(end(start(*FED[1:], program=OWN_LOOP, env={"TEST_MODE": "fed"})))
    for which in range(8):
        open(f"fed-{which}", "w").close()
    subprocess.run(["rm", "-rf", "own", "ck"], check=True)
    run = trireme("run", "-n", str(workers), "--out", "own", *more, "--", *FED, env=env)
    need(weights_of(run) == alone, f"{run.out}alone:\n{alone}{run.err}")
    deaths = len(events("own", "death"))
    need(deaths >= 4, f"{deaths} have died")
    for n, until in ((3 - min(workers, 2), "350"), (workers, "2000")):
        saves = ["--ckpt", "ck", "--save-every", "100", "--resume"]
        run = trireme("run", "-n", str(n), "--out", "own", "--", *FED, *saves,
                      env={"TEST_MODE": "fed", "TEST_UNTIL": until})
        got = weights_of(run)
    kept = "learning rate 0.03 in place of the schedule's" in run.err
    need(got == alone and kept, f"{got}alone:\n{alone}{run.err}")
    return f"{deaths} deaths"


def feeding_fails():
    for mode, why in (("unfed", 'step 31: input "sign" has not been fed since the step before'),
                      ("wrong", 'step 31, sample 7: "sign" is 2, but the network takes 0 to 1')):
        run = trireme("run", "-n", "2", "--", *FED, env={"TEST_MODE": mode})
        need(run.returncode == 1 and why in run.err, f"{mode}: exit {run.returncode}: {run.err}")


def cannot_restart():
    """A program that cannot be started again is not retried for ever; a program may train only
    once."""
    subprocess.run(["cp", OWN_LOOP, "moved"], check=True)
    subprocess.run(["rm", "-rf", "own"], check=True)
    run = start("run", "-n", "2", "--out", "own", "--", "./moved", "--lanes", "4", "--steps",
                "200000",
                env={"LD_LIBRARY_PATH": os.path.dirname(PROGRAM)})
    pid = pid_at_work("own", 1)
    os.remove("moved")
    os.kill(pid, signal.SIGKILL)
    end(run)
    need(run.returncode == 0 and "is not started again: the others continue" in run.err, run.err)
    need(len(events("own", "start")) == 5, f"{len(events('own', 'start'))} starts")
    twice = trireme("run", "-n", "2", "--", OWN_LOOP, "--steps", "20", env={"TEST_MODE": "second"})
    need(twice.returncode == 2 and "a second run that trains in one program" in twice.err,
         twice.err)
    shell = trireme("run", "-n", "1", "--", "sh", "-c", f"{OWN_LOOP} --steps 20; true")
    need("not by the agent" in shell.err, shell.err)


# ---- stalls and stops ----

def stopped_worker(which):
    """SIGSTOP: detected by missing progress, reported, killed, replaced."""
    subprocess.run(["rm", "-rf", "stall"], check=True)
    words = ["lenet5", "--quiet"]
    words += ["--steps", str(length_for(words, 1.5))]
    plain = done(trireme("train", *words))
    run = start("train", *words, "-n", "2", "--spares", "1", "--stall-timeout", "1", "--out",
                "stall")
    os.kill(pid_at_work("stall", which), signal.SIGSTOP)
    need(done(end(run)) == plain, "another result")
    need(re.search(f"worker {which} .*makes no progress: step [0-9]+", run.err), run.err)
    need("it is killed" in run.err, run.err)


def only_reported():
    """--no-kill: the stall is reported, and when it ends the run continues."""
    words = ["lenet5", "--quiet"]
    words += ["--steps", str(length_for(words, 1.5))]
    plain = done(trireme("train", *words))
    run = start("train", *words, "-n", "2", "--stall-timeout", "1", "--no-kill", "--out", "told")
    pid = pid_at_work("told", 1)
    os.kill(pid, signal.SIGSTOP)
    wait_for(lambda: events("told", "stall"), "the stall is not told")
    time.sleep(1)  # time to be killed, by mistake
    os.kill(pid, signal.SIGCONT)
    need(done(end(run)) == plain, "another result")
    need("makes no progress" in run.err and "it is killed" not in run.err, run.err)
    need(not events("told", "death"), "a worker has died")


def planned():
    """The memory of all processes, shared memory counted once, is at most what the plan says."""
    def mib(words):
        plan = trireme("memory", *words)
        return sum(float(re.search(r"([0-9.]+) MiB  " + what, plan.out).group(1))
                   for what in ("in all", "for all processes' programs"))

    def held(pids):
        texts = [open(f"/proc/{pid}/smaps_rollup").read() for pid in pids]
        return sum(int(re.search(r"\nPss: +([0-9]+) kB", text).group(1)) for text in texts) / 1024

    said = []
    for words in ("lenet5 -n 2", "mlp:hidden=1024 --lanes 4 --optimizer adamw -n 2 --spares 1"):
        subprocess.run(["rm", "-rf", "plan"], check=True)
        run = start("train", *words.split(), "--steps", "1000000", "--quiet", "--out", "plan")
        wait_for(lambda: len(events("plan", "rowing")) >= 2, "no worker takes part")
        wait_for_steps("plan", 50)
        taken = held(children(run.pid))
        run.send_signal(signal.SIGTERM)
        end(run)
        plan = mib(words.split())
        need(taken < plan * 1.02, f"{words}: {taken} MiB held, {plan} planned")
        said.append(f"{taken:.0f} of {plan:.0f} MiB")
    return ", ".join(said)


def more_workers():
    """Memory is planned for the requested number of workers; for more if --most says so."""
    def in_all(*words):
        plan = trireme("memory", "lenet5", "--lanes", "8", *words)
        return float(re.search(r"([0-9.]+) MiB  in all", plan.out).group(1))

    two, most, four = in_all("-n", "2"), in_all("-n", "2", "--most", "4"), in_all("-n", "4")
    need(two < most < four, f"{two}, {most} and {four} MiB")
    words = ["lenet5", "--lanes", "8", "--quiet", "--steps"]
    words += [str(length_for(words[:-1], 1.5))]
    plain = done(trireme("train", *words))
    for more, said in ((["--most", "4"], "4 workers"), ([], "--most")):
        subprocess.run(["rm", "-rf", "room"], check=True)
        run = start("train", *words, "-n", "2", "--out", "room", *more)
        wait_for(lambda: len(events("room", "rowing")) >= 2, "no worker takes part")
        scaled = trireme("ctl", "room", "scale", "4")
        need((scaled.returncode == 0) == bool(more) and said in scaled.out + scaled.err,
             scaled.out + scaled.err)
        need(done(end(run)) == plain, "another result")


def recompute_fit():
    """What is recomputed to meet the limit is chosen once, and said once."""
    words = "bert-tiny:seq=64,layers=4 --batch 32 --lanes 4 --steps 2 --quiet".split()
    fits = [*words, "-n", "3", "--recompute", "fit", "--memory-limit"]
    run = trireme("train", *fits, "100M")
    least = re.search(r"does not fit: (\d+) of", run.err)
    need(run.returncode == 2 and least, run.err)
    limit = f"{least.group(1)}M"
    run = trireme("train", *words, "-n", "3", "--memory-limit", limit)
    need(run.returncode == 2 and "does not fit: " in run.err, f"it fits: {run.err}")
    run = trireme("train", *fits, limit)
    need(done(run) == done(trireme("train", *words)), run.err)
    need(run.err.count("--recompute fit: ") == 1, run.err)


def closed_files():
    """Later files must not take the descriptors of the standard files; a last line that cannot
    be printed is a failure."""
    saved = []
    for way, want in (("", 0), ("<&- 2>&-", 0), ("<&- >&- 2>&-", 1)):
        code = subprocess.run(f"{PROGRAM} train lenet5 --steps 20 --quiet -n 2 --out files --save "
                              f"f.safetensors {way}",
                              shell=True, stdout=subprocess.DEVNULL).returncode
        need(code == want, f"{way}: exit {code}")
        with open("f.safetensors", "rb") as f:
            saved.append(f.read())
        os.remove("f.safetensors")
    need(saved[0] == saved[1] == saved[2], "other weights")


def interrupted():
    run = start("train", "lenet5", "--steps", "100000000", "-n", "2", "--out", "stop", "--quiet",
                "--save", "stop.safetensors")
    wait_for_steps("stop")
    run.send_signal(signal.SIGINT)
    end(run, 60)
    need(run.returncode == 3, f"exit {run.returncode}")
    steps = int(re.search(r"steps=(\d+)", done(run)).group(1))
    need(0 < steps < 100000000, f"{steps} steps")
    need(os.path.getsize("stop.safetensors") > 100000, "nothing was saved")
    again = trireme("train", "lenet5", "--steps", str(steps), "--quiet", "--schedule", "constant")
    need(done(again) == done(run), "a stopped run has other weights than one of as many steps")


def agent_dies():
    run = start("train", "lenet5", "--steps", "100000000", "-n", "2", "--spares", "1", "--quiet",
                "--out", "orphan")
    wait_for(lambda: len(children(run.pid)) == 3, "workers do not start")
    workers = children(run.pid)
    wait_for_steps("orphan")
    run.kill()
    end(run)
    wait_for(lambda: not any(os.path.exists(f"/proc/{w}") for w in workers),
             "workers are left behind", 10)


# ---- what is reported ----

def lanes_done():
    """Also of a network whose lanes are counted before they are computed. With a mesh, both members
    of a replica take part in most of them."""
    words = "gpt2-tiny:seq=16,vocab=100,heads=2 --batch 4 --lanes 2 -n 2 --quiet"
    for steps, mesh in ((20, ""), (40, "--mesh model=2 --strategy megatron")):
        run = trireme("train", *f"{words} {mesh} --steps {steps} --out lanes".split())
        need(run.returncode == 0, run.err)
        logs = [text_of(f"lanes/worker-{k}.log") for k in (0, 1)]
        all_done = sum(json.loads(line)["lanes"] for log in logs for line in log.split("\n")[:-1]
                       if '"event":"leave"' in line)
        least, most = (100, 160) if mesh else (36, 40)
        need(least <= all_done <= most, f"{all_done} lanes in {steps} steps of 2 {mesh}")


# ---- mistakes ----

def mistakes():
    def wrong(code, pattern, *words):
        run = trireme(*words)
        need(run.returncode == code, f"{words}: exit {run.returncode}, not {code}: {run.err}")
        need(re.search(pattern, run.err), f"{words}: {run.err}")
        need(len(run.err.strip().split("\n")) <= 2, f"{words}: more than a line or two: {run.err}")

    wrong(2, "-n 0: expected a whole number of at least 1", "train", "lenet5", "-n", "0")
    wrong(2, "100 lanes for a batch of 64", "train", "lenet5", "--lanes", "100", "-n", "2")
    wrong(2, "no model is called", "train", "nosuch", "-n", "2")
    wrong(2, "run lacks its PROGRAM", "run", "-n", "2")
    wrong(1, "exited with 0 before it opened a run", "run", "-n", "2", "--", "/bin/true")
    wrong(127, "nosuchprogram", "run", "-n", "2", "--", "./nosuchprogram")
    wrong(2, "are for several workers: add -n N", "train", "lenet5", "--spares", "1")
    wrong(2, "an audit needs a second worker", "train", "lenet5", "-n", "1", "--audit", "1")
    wrong(2, "--threads-per-worker", "train", "lenet5", "-n", "2", "--threads", "2",
          "--threads-per-worker", "3")
    wrong(2, "memory-limit", "train", "lenet5", "-n", "2", "--memory-limit", "1M")
    for batch, lanes, advice in (16, 1, "2 of them stay idle; --lanes 3 would use all"), \
            (2, 1, "2 of them stay idle; --lanes 2 would use more"), \
            (2, 2, "1 of them stays idle; .* a larger batch would use more"):
        run = trireme("train", "lenet5", "--batch", str(batch), "--lanes", str(lanes), "-n", "3",
                      "--steps", "2", "--quiet")
        need(run.returncode == 0 and re.search(advice, run.err), run.err)


def one_directory():
    first = start("train", "lenet5", "--steps", "100000000", "-n", "1", "--quiet", "--out", "mine")
    wait_for(lambda: events("mine", "start"), "it does not start")
    second = trireme("train", "lenet5", "--steps", "5", "-n", "1", "--quiet", "--out", "mine")
    first.send_signal(signal.SIGTERM)
    end(first, 60)
    need(second.returncode == 2 and "another run is using" in second.err, second.err)
    need(first.returncode == 3, f"exit {first.returncode}")


CASES = {f"same: {name}": (lambda words=words: same(words, *NUMBERS)) for name,
         words in RUNS.items()}
CASES.update({
    "threads of workers": threads_of_workers,
    "-n auto": automatic,
    "-n auto: a death": automatic_with_death,
    "storm: lenet5": lambda: storm(f"lenet5 --optimizer adam --lanes 4 {SMALLER}", 3, 1, KILLS),
    "storm: no spares, clipping": lambda: storm("lenet5 --optimizer adam --clip-norm 0.5", 2, 0,
                                                KILLS),
    "storm: bert-tiny": lambda: storm("bert-tiny --batch 8 --lanes 4 --optimizer adamw"
                                      " --clip-norm 1", 2, 1, KILLS),
    "storm: resnet18": lambda: storm("resnet18:size=32 --batch 16 --lanes 4 --optimizer momentum",
                                     2, 1, KILLS),
    "buckets of any size": buckets,
    "a kill after every write": lambda: points(0, ""),
    "a kill after every write, in buckets": lambda: points(0, "--bucket 1 --lanes 3"),
    "a kill after every write of the other": lambda: points(1, SMALLER, "--spares", "1", "--audit",
                                                             "0.5", "--data-threads", "1"),
    "lanes are audited": audit,
    "audits, with workers stopped now and then": audit_with_stops,
    "own loop: writes before it": lambda: own_loop("write"),
    "own loop: before the first step": lambda: own_loop("before", kill=True),
    "own loop: a scalar, a spare": lambda: own_loop("scalar", "--spares", "1"),
    "own loop: left early": lambda: own_loop("break"),
    "own loop: steps of four shapes": lambda: own_loop("shapes", "--spares", "1", "--audit", "1"),
    "own loop: many results": many_results,
    "own loop: a long path": a_long_path,
    "own loop: threads": threads_of_the_program,
    "own loop: a lost thread": lambda: own_loop("thread"),
    "own loop: dies as it reads": lambda: own_loop("data", "--spares", "1"),
    "own loop: dies as it reads ahead": lambda: own_loop("data", threads=2),
    "own loop: fed, one worker": lambda: fed(1),
    "own loop: fed, two workers": lambda: fed(2),
    "own loop: fed, four workers": lambda: fed(4, "--audit", "0.2"),
    "own loop: feeding fails": feeding_fails,
    "a late reader": late_reader,
    "own loop: stops as it reads": lambda: own_loop("stop", "--stall-timeout", "1"),
    "samples are read once": lambda: (read_once(3), read_once(2, "--data-threads", "2"))[0],
    "a program that cannot be restarted": cannot_restart,
    "a worker stopped": lambda: stopped_worker(1),
    "the reporter stopped": lambda: stopped_worker(0),
    "a stall is only reported": only_reported,
    "memory as planned": planned,
    "memory for more workers": more_workers,
    "recompute fit": recompute_fit,
    "closed standard files": closed_files,
    "interrupted": interrupted,
    "the agent dies": agent_dies,
    "lanes done": lanes_done,
    "mistakes": mistakes,
    "a directory belongs to one run": one_directory,
})

run_cases(CASES, sys.argv[3:],
          ("storm: lenet5", "storm: bert-tiny", "storm: no spares, clipping", "a worker stopped",
           "same: the reference", "same: one lane", "same: batch norm", "-n auto",
           "-n auto: a death", "a late reader", "audits, with workers stopped now and then",
           "a stall is only reported", "memory for more workers"))
