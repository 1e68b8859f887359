#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Evaluations during a run: they change no bit of the training, and their decisions are the same
for any number of workers, after a resumption, and after the death of a worker that evaluates.

Usage: evaluation.py TRIREME [CASE...]"""
import contextlib
import json
import os
import random
import re
import shutil
import signal
import sys

from runs import (array, children, done, end, events, fresh, kill_after_writes, need, run_cases,
                  start, text_of, trireme, wait_for)

MODEL = "mlp:hidden=32,layers=1,size=6"
LEARNS = (f"{MODEL} --data npy:train/image.npy;train/label.npy --batch 32 --lanes 4"
          " --optimizer adam --lr 0.01 --quiet").split()
OTHERS = "npy:other/image.npy;other/label.npy"
JUDGED = ["--eval-data", OTHERS, "--eval-every", "6"]


def steps_of(line):
    return int(re.search(r"steps=(\d+)", line).group(1))


def without_best(line):
    return re.sub(r" best_.*", "", line)


def rows(directory, kind="eval"):
    lines = [json.loads(line) for line in text_of(f"{directory}/metrics.jsonl").split("\n")[:-1]]
    return [line for line in lines if (kind in line)]


def pictures(directory, n, seed):
    """The pictures say nothing about the labels: learning some of them soon makes others worse."""
    drawn = random.Random(seed)
    os.mkdir(directory)
    array(f"{directory}/image.npy", "<f4", (n, 1, 6, 6), [drawn.gauss(0, 1) for _ in range(n * 36)])
    array(f"{directory}/label.npy", "<i8", (n,), [drawn.randrange(10) for _ in range(n)])


def no_bit():
    """With and without evaluations; full batches and a smaller last one; one to three workers."""
    for words in ("mlp:hidden=32 --batch 32 --lanes 4 --optimizer adam --steps 14",
                  "resnet18:form=small,width=8 --batch 16 --lanes 4 --optimizer momentum --steps 4",
                  "bert-tiny --batch 8 --lanes 4 --optimizer adamw --amp O2 --loss-scale dynamic"
                  " --steps 4"):
        words = [*words.split(), "--quiet"]
        plain = done(trireme("train", *words))
        results = set()
        for more in ([], ["--threads", "2"], ["-n", "2"], ["-n", "3"]):
            run = trireme("train", *words, *more, "--eval-data", "synthetic:size=41",
                          "--eval-every", "2")
            need(without_best(done(run)) == plain,
                 f"{more}: {done(run)}\nwithout evaluations: {plain}")
            results.add((done(run), json.dumps([row["eval"] for row in rows("run")])))
        need(len(results) == 1, f"{results}")
        need(len(rows("run")) == (7 if words[0][0] == "m" else 2), f"{rows('run')}")


def every_epoch():
    run = trireme("train", *LEARNS, "--epochs", "3", "--eval-data", OTHERS, "--out", "epochs")
    need([row["step"] for row in rows("epochs")] == [8, 16, 24], f"{rows('epochs')}")
    need(run.returncode == 0, run.err)
    trireme("train", *LEARNS, "--steps", "11", "--eval-data", OTHERS, "--out", "epochs")
    need([row["step"] for row in rows("epochs")] == [8, 11], f"{rows('epochs')}")


def alone():
    """`trireme eval` of the weights gives the figures of the run."""
    trireme("train", *LEARNS, "--steps", "12", *JUDGED, "--save", "w.safetensors", "--out", "alone")
    run = trireme("eval", MODEL, "--batch", "32", "--load", "w.safetensors", "--data", OTHERS)
    said = {name: float(value) for name, value in re.findall(r" (\w+)=(\S+)", run.out)}
    need({**rows("alone")[-1]["eval"], "samples": 100} == said, f"{rows('alone')[-1]} {run.out}")


def stops():
    """At the same step for any number of workers, also after an interruption."""
    words = LEARNS + ["--steps", "600", *JUDGED, "--early-stop", "3"]
    plain = trireme("train", *words)
    need(plain.returncode == 0 and "the run ends after step" in plain.err, plain.err)
    last = steps_of(done(plain))
    need(18 < last < 600, f"{last} steps: no such case")
    best = int(re.search(r"best_step=(\d+)", done(plain)).group(1))
    need(best == last - 18, f"{done(plain)}")
    for more in (["-n", "2"], ["-n", "3"]):
        run = trireme("train", *words, *more)
        need(done(run) == done(plain) and run.returncode == 0, f"{more}: {done(run)}")
    for half in (last - 8, last - 6, last - 3):
        fresh()
        trireme("train", *words, "--steps", str(half), "--ckpt", "ck", "-n", "2")
        again = trireme("train", *words, "--ckpt", "ck", "--resume")
        need(done(again) == done(plain), f"from {half}: {done(again)}")
        over = trireme("train", *words, "--ckpt", "ck", "--resume", "-n", "2")
        need(steps_of(done(over)) == last, "it goes on")
    patient = trireme("train", *words, "--early-stop", "3:100", "--steps", "100")
    need(steps_of(done(patient)) == 24, f"no change of 100: {done(patient)}")


def best_is_kept():
    """The best checkpoint is kept regardless of --keep, but only the latest best. `trireme ckpt
    ls` marks it."""
    for more in ([], ["-n", "2"]):
        fresh()
        run = trireme("train", *LEARNS, "--steps", "80", *JUDGED, "--best", "loss", "--ckpt", "ck",
                      "--save-every", "5", "--keep", "2", *more)
        best = int(re.search(r"best_step=(\d+)", done(run)).group(1))
        need(best < 70, f"the best is at step {best}: no such case")
        folders = sorted(os.listdir("ck"))
        need(folders == [f"step-{step:09d}" for step in (best, 75, 80)], f"{folders}, best {best}")
        state = json.load(open("ck/step-000000075/state.json"))["judged"]
        need(state["metric"] == "loss:min" and state["best_step"] == best and state["step"] == 72,
             f"{state}")
        lines = [line for line in trireme("ckpt", "ls", "ck").out.split("\n")
                 if "best loss:min" in line]
        need(len(lines) == 1 and lines[0].split()[0] == str(best), f"{lines}")
        need(f"at step {best}," in trireme("ckpt", "show", "ck").out, "show")
        kept = trireme("eval", MODEL, "--batch", "32", "--data", OTHERS, "--load",
                       f"ck/step-{best:09d}/model.safetensors")
        value = re.search(r"loss=(\S+)", kept.out).group(1)
        need(f"best_loss={value} " in done(run) + " ", f"{kept.out} {done(run)}")
    other = trireme("train", *LEARNS, "--steps", "90", *JUDGED, "--best", "top1", "--ckpt", "ck",
                    "--resume")
    need("compares evaluations by loss:min" in other.err, other.err)


LONG = ("mlp:hidden=512,layers=3 --data synthetic:size=512 --batch 64 --lanes 4 --optimizer adam"
        " --quiet").split()
LONG += ["--eval-data", "synthetic:size=20000", "--eval-every", "4"]


def evaluates(directory, place):
    return re.search(rf"^ *{place} .* evaluate", trireme("top", directory, "--once").out, re.M)


def pid_of(directory, place):
    return [e["pid"] for e in events(directory, "start") if e.get("worker") == place][-1]


def all_evaluate():
    """Workers other than the reporter compute batches too."""
    run = start("train", *LONG, "--steps", "100000", "-n", "2", "--out", "all")
    for place in (0, 1):
        wait_for(lambda: evaluates("all", place), f"worker {place} never evaluates")
    run.send_signal(signal.SIGTERM)
    end(run)
    need(run.returncode == 3, run.err)


def one_dies():
    """A worker dies during an evaluation: the reporter, whose evaluation another worker repeats
    and decides the same; or a helper."""
    words = LONG + ["--steps", "24", "--best", "loss", "--keep", "1", "--eval-data",
                    "synthetic:size=12000"]
    fresh()
    plain = trireme("train", *words, "--ckpt", "ck", "--out", "plain")
    kept = sorted(os.listdir("ck"))
    killed = 0
    for point, place in ((1, 0), (3, 1)) * 3:  # again, if the evaluation is over too soon
        if killed == 2:
            break
        fresh()
        shutil.rmtree("dies", ignore_errors=True)
        run = start("train", *words, "-n", "2", "--ckpt", "ck", "--out", "dies")
        wait_for(lambda: len(rows("dies")) >= point or run.poll() is not None, "no evaluation")
        wait_for(lambda: evaluates("dies", place) or run.poll() is not None,
                 "no evaluation is in progress")
        if run.poll() is None:
            with contextlib.suppress(ProcessLookupError):  # it has just left
                os.kill(pid_of("dies", place), signal.SIGKILL)
                killed += 1
        end(run)
        need(done(run) == done(plain), f"{done(run)}\nnobody killed: {done(plain)}\n{run.err}")
        need(sorted(os.listdir("ck")) == kept, f"{os.listdir('ck')}, not {kept}")
        need([row["step"] for row in rows("dies")] == [4, 8, 12, 16, 20, 24], f"{rows('dies')}")
        need([row["eval"] for row in rows("dies")] == [row["eval"] for row in rows("plain")],
             "other results")
    need(killed, "nobody was killed")
    return f"{killed} killed"


def points(place):
    words = ["linear", "--batch", "1", "--lanes", "1", "--steps", "3", "--quiet", "--eval-every",
             "1", "--out", "points"]
    words += ["--eval-data", "synthetic:size=40"]
    plain = done(trireme("train", *words))
    found = [row["eval"] for row in rows("points")]

    def look(run, n):
        need(done(run) == plain, f"killed at point {n}:\n{done(run)}\nalone:\n{plain}\n{run.err}")
        need([row["eval"] for row in rows("points")] == found,
             f"killed at point {n}: {rows('points')}")
    return kill_after_writes([*words, "-n", "2"], place, 23, look)


def stopped_within(words, directory, place, patience):
    """A run whose worker in a place was stopped during an evaluation; and the worker's pid."""
    for _ in range(5):  # again, if the evaluations are over too soon
        shutil.rmtree(directory, ignore_errors=True)
        run = start("train", *words, "-n", "2", "--stall-timeout", patience, "--out", directory)
        while True:
            wait_for(lambda: evaluates(directory, place) or run.poll() is not None,
                     "no evaluation is in progress")
            if run.poll() is not None:
                break
            pid = pid_of(directory, place)
            os.kill(pid, signal.SIGSTOP)
            if evaluates(directory, place):
                return run, pid
            os.kill(pid, signal.SIGCONT)  # it had just finished
        end(run)
    need(False, f"no evaluation of worker {place} was met")


def is_late():
    """The others do the share of a stopped worker; when it continues, its results, of parameters
    that have changed since, are ignored."""
    words = LONG + ["--steps", "16", "--eval-data", "synthetic:size=30000"]
    plain = done(trireme("train", *words, "--out", "plain"))
    run, pid = stopped_within(words, "late", 1, "100")
    seen = len(rows("late"))
    wait_for(lambda: len(rows("late")) >= min(seen + 2, 4), "the others wait for it")
    os.kill(pid, signal.SIGCONT)
    need(done(end(run)) == plain, f"{done(run)}\nnobody late: {plain}\n{run.err}")
    need([row["eval"] for row in rows("late")] == [row["eval"] for row in rows("plain")],
         "other results")
    need(not events("late", "death"), run.err)


def is_stopped():
    """A worker that is stopped during an evaluation is reported and killed; the others did its
    share."""
    words = LONG + ["--steps", "12", "--eval-data", "synthetic:size=30000"]
    plain = done(trireme("train", *words, "--out", "plain"))
    for place in (1, 0):
        run, pid = stopped_within(words, "still", place, "1")
        end(run)
        need(done(run) == plain, f"{done(run)}\nnobody stopped: {plain}\n{run.err}")
        named = (rf"worker {place} \(pid {pid}\) makes no progress: step \d+, evaluate \d+, "
                 ".*it is killed")
        need(re.search(named, run.err), run.err)
        need([row["eval"] for row in rows("still")] == [row["eval"] for row in rows("plain")],
             "other results")


def cannot_compute():
    """An invalid label: the reporter reports it, whichever worker finds it; the run continues
    and fails at its end."""
    os.mkdir("wrong")
    shutil.copy("other/image.npy", "wrong")
    array("wrong/label.npy", "<i8", (100,), [i % 10 if i != 70 else 77 for i in range(100)])
    for more in ([], ["-n", "2"], ["-n", "3"]):
        run = trireme("train", *LEARNS, "--steps", "12", "--eval-data",
                      "npy:wrong/image.npy;wrong/label.npy",
                      "--eval-every", "6", *more)
        need(run.returncode == 1 and run.err.count("failed") == 3,
             f"{more}: exit {run.returncode}: {run.err}")
        for step in (6, 12):
            need(re.search(rf"the evaluation after step {step} failed: .*77", run.err),
                 f"{more}: {run.err}")


def broken_off():
    """A run that is asked to end during an evaluation ends soon; after the resumption it repeats
    that evaluation first."""
    words = LONG + ["--steps", "6"]
    words += ["--quiet", "--eval-data", "synthetic:size=8000", "--eval-every", "1", "--best",
              "loss", "--keep", "1"]
    # A step takes a hundredth of its evaluation's time: after the first evaluation's row the next
    # one is in progress.
    fresh()
    plain = done(trireme("train", *words, "--ckpt", "ck", "--out", "plain"))
    caught = 0
    for more in ([], ["-n", "2"]):
        fresh()
        shutil.rmtree("broken", ignore_errors=True)
        run = start("train", *words, *more, "--ckpt", "ck", "--out", "broken")
        wait_for(lambda: len(rows("broken")) >= 1 or run.poll() is not None, "no evaluation")
        run.send_signal(signal.SIGTERM)
        end(run)
        need(run.returncode == 3, f"{more}: exit {run.returncode}: {run.err}")
        steps = steps_of(done(run))
        caught += rows("broken")[-1]["step"] < steps
        again = trireme("train", *words, "--ckpt", "ck", "--resume", "--out", "broken")
        need(done(again) == plain, f"{more}, from {steps}:\n{done(again)}\nin one go:\n{plain}")
        need([row["step"] for row in rows("broken")] == [1, 2, 3, 4, 5, 6], f"{rows('broken')}")
    need(caught, "none was broken off")
    return f"{caught} broken off"


def several():
    """trireme eval with several processes: the same figures, also if one of them dies."""
    model = "mlp:hidden=512,layers=3"
    trireme("train", model, "--steps", "5", "--quiet", "--save", "several.safetensors")
    words = ["eval", model, "--load", "several.safetensors", "--data", "synthetic:size=30030",
             "--batch", "64"]
    plain = trireme(*words)
    need(plain.returncode == 0 and plain.out.startswith("eval samples=30030 loss="), plain.err)
    for more in (["--threads", "1"], ["-n", "1"], ["-n", "2"], ["-n", "3"], ["-n", "auto"]):
        run = trireme(*words, *more)
        need(run.out == plain.out and not run.err, f"{more}: {run.out}{run.err}, not {plain.out}")
    run = start(*words, "-n", "3")
    wait_for(lambda: len(children(run.pid)) == 2 or run.poll() is not None, "no helpers")
    for pid in children(run.pid)[:1]:
        os.kill(pid, signal.SIGKILL)
    end(run)
    need(run.out == plain.out and run.returncode == 0,
         f"exit {run.returncode}: {run.out}{run.err}, not {plain.out}")
    need("was killed by signal 9" in run.err, run.err)
    few = trireme(*words, "-n", "4", "--batch", "20000")
    need(few.returncode == 0 and "2 workers, one per batch" in few.err, few.err)
    for code, pattern, more in ((2, "a whole number from 1 to 128, or auto", ["-n", "0"]),
                                (1, "no.safetensors", ["-n", "2", "--load", "no.safetensors"])):
        wrong = trireme(*words, *more)
        need(wrong.returncode == code and pattern in wrong.err and wrong.err.count("trireme:") == 1,
             wrong.err)


def memory():
    """The memory of an evaluation during training is planned, for all workers, and refused
    before the first step."""
    words = "cnn --lanes 8 --batch 256".split()
    evaluated = ["--eval-data", "synthetic:size=600"]

    def in_all(*more):
        plan = trireme("memory", *words, *more)
        return float(re.search(r"([0-9.]+) MiB  in all", plan.out).group(1))

    for workers, processes in (([], 1), (["-n", "2"], 2), (["-n", "2", "--spares", "1"], 3)):
        without = in_all(*workers)
        with_them = in_all(*workers, *evaluated)
        need(with_them - without > 15 * processes, f"{workers}: {without} and {with_them} MiB")
        for limit, fits in ((with_them + 64 * processes + 1, True),
                            (with_them + 64 * processes - 1, False)):
            run = trireme("train", *words, *workers, *evaluated, "--steps", "1", "--quiet",
                          "--memory-limit",
                          f"{int(limit * 1024)}K")
            need(run.returncode == (0 if fits else 2),
                 f"{workers} {limit}: exit {run.returncode}: {run.err}")
            need(fits or "evaluations: " in run.err, run.err)


def refused():
    def wrong(code, pattern, *more):
        run = trireme("train", *LEARNS, "--steps", "4", *more)
        need(run.returncode == code and re.search(pattern, run.err),
             f"{more}: exit {run.returncode}: {run.err}")
        need("done" not in run.out, run.out)

    wrong(2, "which need data: --eval-data", "--best", "top1")
    wrong(2, "which need data: --eval-data", "--early-stop", "3")
    wrong(2, "no such output; evaluations have: loss, top1, top5", *JUDGED, "--best", "top9")
    wrong(2, "max or min after a colon", *JUDGED, "--best", "top1:most")
    wrong(2, "3, 3:0.01", *JUDGED, "--early-stop", "3:x")
    wrong(2, "at least 1, or epoch", "--eval-every", "0")
    wrong(1, "no/such", "--eval-data", "idx:no/such")


def with_pictures(case):
    def run():
        if not os.path.isdir("train"):
            pictures("train", 256, 1)
            pictures("other", 100, 2)
        return case()
    return run


CASES = {"same: with and without evaluations": no_bit, "epochs, and the last step": every_epoch,
         "trireme eval says the same": alone, "stops early": stops,
         "the best is kept": best_is_kept,
         "all workers evaluate": all_evaluate, "a worker dies": one_dies,
         "a worker is stopped": is_stopped, "a worker is late": is_late,
         "a kill after each write: worker 0": lambda: points(0),
         "a kill after each write: worker 1": lambda: points(1),
         "an evaluation fails": cannot_compute, "asked to end while it evaluates": broken_off,
         "eval with several processes": several, "memory": memory, "mistakes": refused}
run_cases({name: with_pictures(case) for name, case in CASES.items()}, sys.argv[2:],
          ("a worker is late",))
