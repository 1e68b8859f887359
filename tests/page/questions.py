# SPDX-License-Identifier: Apache-2.0
"""The questions at the beginning of docs/page.md: each is provoked in a real run, and the page that
is named there answers it in its first sentence or in its first advice.

Usage: questions.py PROGRAM BUILD [PART OF A QUESTION ...]"""
import atexit
import csv
import functools
import glob
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import time

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent / "profile"))
import walk  # skips the test where there is no Chromium
from others import Others
from served import (PROGRAM, Server, events, lines, need, run_cases, start_two, train, train_killed,
    until)

GUIDE = pathlib.Path(__file__).resolve().parents[2] / "docs/page.md"
TEXT = "The quick brown fox jumps over the lazy dog. "
LEARNS = "gpt2-tiny:seq=16,vocab=256 --data text:text.txt --batch 16 --optimizer adamw --steps 80"
TRIES = 2  # of a run in which one worker is slow, if other processes slow both


def rows(run):
    """What training has written to metrics.jsonl."""
    return [row for row in lines(f"{run}/metrics.jsonl") if "loss" in row]


def slow_one(out):
    """Worker 1 stands still for most of the time, from the second half on. Returns that step."""
    process, worker = start_two(out, 400)
    until(lambda: any(row["step"] > 150 for row in rows(out)), f"{out} does not go on")
    since = rows(out)[-1]["step"]
    try:
        while process.poll() is None:
            os.kill(worker, signal.SIGSTOP)
            time.sleep(0.01)
            os.kill(worker, signal.SIGCONT)
            time.sleep(0.002)
    except ProcessLookupError:  # it has ended
        pass
    need(process.wait(60) == 0, f"{out} has failed")
    return since


def report(run):
    done = subprocess.run([PROGRAM, "report", run, "--json"], capture_output=True, check=True)
    return json.loads(done.stdout)


def table(run, name):
    with open(glob.glob(f"{run}/profile/*/{name}.csv")[0]) as f:
        return list(csv.DictReader(f))


class Pages:
    def __init__(self):
        with open("text.txt", "w") as f:
            f.write(200 * TEXT)
        train(*LEARNS.split(), "--lr", "0.003", out="runs/learns")
        train(*LEARNS.split(), "--lr", "1e-9", out="runs/stands")
        train(*"lenet5 -n 2 --lanes 8 --steps 40 --save-every 1 --ckpt ck".split(),
              out="runs/saves")
        train(*"lenet5 -n 2 --stages 2 --lanes 4 --batch 256 --steps 60 --profile steps=40..42"
              .split(), out="runs/stages")
        train_killed("runs/killed")
        for n in range(TRIES):
            self.slow = f"runs/slow{n}"
            others = Others()
            self.since = slow_one(self.slow)
            self.quiet = others.part() < Others.MOST
            if self.quiet:
                break
        self.server = Server("runs")
        atexit.register(self.server.close)
        self.browser = walk.Browser(self.server)
        atexit.register(self.browser.close)
        found = json.loads(self.server.ask("/api/runs").text)["runs"]
        self.number = {f"runs/{row['name']}": row["run"] for row in found}

    def all(self, selector, of="innerText"):
        """The texts, or something else, of elements."""
        return [str(found).replace("\u202f", " ") for found in self.browser.run(
            f"[...document.querySelectorAll({json.dumps(selector)})].map((one) => one.{of})")]

    def lead(self, page, run=None):
        """The page's first sentence, and its numbers by source."""
        self.browser.open(page if run is None else f"{page}/{self.number[run]}")
        numbers = zip(self.all(".lead [data-value]", "dataset.source"),
                      self.all(".lead [data-value]", "dataset.value"))
        return " ".join(self.all("main .lead")[0].split()), {k: float(v) for k, v in numbers}


pages = functools.cache(Pages)


def near(value, wanted, text):
    need(abs(value - wanted) <= 1e-5 * abs(wanted), f"{value}, not {wanted}: {text}")


def says(text, *words):
    for word in words:
        need(word in text, f"'{word}' is not in: {text}")


def best():
    text, numbers = pages().lead("runs")
    loss, run = min((rows(run)[-1]["loss"], run) for run in pages().number)
    says(text, f"The lowest loss is that of {os.path.basename(run)},")
    near(numbers["metrics.jsonl:loss"], loss, text)
    for run in ("learns", "stands"):
        pages().browser.run("document.querySelector('[data-focus=\"choose "
                            f"{pages().number[f'runs/{run}']}\"]').click()")
    differs = pages().all("table[aria-label='what differs'] tbody th")
    need("--lr" in differs and "--data" not in differs, differs)


def well():
    text, _ = pages().lead("summary", pages().slow)
    found, advice = report(pages().slow), pages().all(".tip")[0]
    need(text == found["sentence"], f"{text}\n    {found['sentence']}")
    says(advice, found["findings"][0]["rule"], found["findings"][0]["evidence"])
    if pages().quiet:
        says(advice, "slow-worker", "Worker 1 computes")


def why():
    pages().lead("summary", "runs/saves")
    found, advice = report("runs/saves")["findings"][0], pages().all(".tip")[0]
    says(advice, found["rule"], "saving", found["remedy"], "--save-every")
    near(float(pages().all(".tip .cost [data-value]", "dataset.value")[0]), found["cost"], advice)


def who():
    text, _ = pages().lead("workers", pages().slow)
    need(text in [one["evidence"] for one in report(pages().slow)["findings"]], text)
    if pages().quiet:
        found = re.match(r"Worker 1 computes .* slower than the median since step ([\d,]+)", text)
        need(found, text)
        step = int(found[1].replace(",", ""))
        need(abs(step - pages().since) < 80, f"it is slow since {pages().since}, not {step}")


def waits():
    text, numbers = pages().lead("communication", "runs/stages")
    shares = report("runs/stages")["shares"]
    says(text, "most of it for legs")
    near(numbers["report:shares.legs"], shares["legs"], text)
    told = json.loads(pages().server.ask(
        f"/api/waits?run={pages().number['runs/stages']}").text)["seconds"]
    _, waiter, whom = max((told[i][k], i, k) for i in range(2) for k in range(2) if i != k)
    says(text, f"Worker {waiter} waits longest, for worker {whom}:")


def death():
    text, numbers = pages().lead("faults", "runs/killed")
    says(text, "1 death cost")
    near(numbers["report:lost"], report("runs/killed")["lost"].get("deaths of workers", 0), text)
    near(numbers["report:goodput"], report("runs/killed")["goodput"], text)


def words():
    """Of all logs, and of the lines to which a fault leads."""
    _, numbers = pages().lead("log", "runs/killed")
    warnings = sum('"level":"warning"' in line for path in glob.glob("runs/killed/*.log")
                   for line in open(path))
    need(numbers["log:level=warning"] == warnings, f"{numbers}, {warnings} warnings")
    pages().lead("faults", "runs/killed")
    pages().browser.run("document.querySelector('table[aria-label=faults] a').click()")
    pages().browser.wait("document.querySelector('table.log')")
    text = pages().all(".lead")[0]
    says(text, "1 line has all of this", "the last warning from agent: death worker=1",
         events("runs/killed", "death")[0]["text"])


def step():
    text, numbers = pages().lead("timeline", "runs/stages")
    of = [row for row in table("runs/stages", "steps")
          if int(row["step"]) == numbers["steps.csv:step"]]
    most, found = max(float(row["seconds"]) for row in of), numbers["steps.csv:seconds"]
    need(abs(found / most - 1) < 0.1, f"{found} s, and {most} s in steps.csv: {text}")
    need(re.search(r"The critical path of a step: [a-z ]+ \d", text), text)


def operators():
    text, numbers = pages().lead("operators", "runs/stages")
    kinds = [row for row in table("runs/stages", "ops") if row["level"] == "kind"]
    first = max(kinds, key=lambda row: float(row["seconds"]))
    says(text, f"{first['operator']} takes")
    near(numbers[f"ops.csv:{first['operator']}:share"], float(first["share"]), text)


def learns():
    for run, how in (("runs/learns", "it still falls"), ("runs/stands", "it hardly changes")):
        text, _ = pages().lead(f"curves?runs={pages().number[run]}")
        losses = [row["loss"] for row in rows(run)]
        says(text, how)
        shown = [float(value) for value in pages().all(".lead [data-value]", "dataset.value")]
        near(shown[0], losses[-1], text)
        near(shown[1], losses[0], text)
        if how == "it still falls":
            n = len(losses) // 10  # at most 100 lines a second are written
            near(shown[2], (sum(losses[-2 * n:-n]) - sum(losses[-n:])) / n, text)


ANSWERS = {"Runs": [best], "Summary": [well, why], "Workers": [who], "Communication": [waits],
           "Faults": [death], "Log": [words], "Timeline": [step], "Operators": [operators],
           "Curves": [learns]}


def cases():
    found, left = {}, {page: list(answers) for page, answers in ANSWERS.items()}
    for question, page in re.findall(r"^\| (.*\?) \| (\w+)", GUIDE.read_text(), re.M):
        found[question] = left[page].pop(0)
    need(len(found) == 10 and not any(left.values()), f"docs/page.md asks: {list(found)}")
    return found


run_cases(cases())
