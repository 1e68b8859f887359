# SPDX-License-Identifier: Apache-2.0
"""Large runs on the page: a million steps of 64 workers, a profile of 2 million spans, a thousand
runs. How long they take, what is drawn, and that merged slices keep the shares of time.
Usage: large.py PROGRAM BUILD [CASE ...]"""
import collections
import json
import os
import pathlib
import statistics
import subprocess
import sys
import time

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent / "profile"))
import make
import walk
from served import Server, need, run_cases, train

COUNT = """(() => { window.calls = 0;
    for (const name of ["fillRect", "fill", "stroke", "fillText", "strokeRect"]) {
        const was = CanvasRenderingContext2D.prototype[name];
        CanvasRenderingContext2D.prototype[name] = function (...words) {
            window.calls++;
            return was.apply(this, words);
        };
    } })()"""


def within(seconds, server, *paths):
    began = time.monotonic()
    answers = [server.ask(path) for path in paths]
    took = time.monotonic() - began
    need(all(answer.status == 200 for answer in answers), [answer.status for answer in answers])
    need(took < seconds, f"{paths}: {took:.2f} s")
    return [json.loads(answer.text) for answer in answers]


def steps():
    """A fresh server has summary and workers in 2 s."""
    script = pathlib.Path(make.__file__).parent / "make_run.py"
    subprocess.run([sys.executable, script, "many/run", "--steps", "1000000", "--workers", "64"],
                   check=True)
    query = "run=0&pixels=600"
    with Server("many") as server:
        server.login()
        within(2, server, "/api/run?run=0", "/api/report?run=0", f"/api/curve?{query}",
               f"/api/heat?{query}")
        peak = open(f"/proc/{server.process.pid}/status").read().split("VmHWM:")[1].split()[0]
        need(int(peak) < 200 << 10, f"the server took {peak} KiB")


def runs():
    train("lenet5", "--steps", "3", out="runs/r0")
    line = '{"step":%d,"epoch":0,"samples":64,"loss":2.3,"top1":0.1,"lr":0.01,"seconds":1}\n'
    with open("runs/r0/metrics.jsonl", "w") as f:
        f.writelines(line % i for i in range(1, 10001))
    for i in range(1, 1000):
        os.mkdir(f"runs/r{i}")
        for name in ("metrics.jsonl", "run.json"):
            os.link(f"runs/r0/{name}", f"runs/r{i}/{name}")
    with Server("runs") as server:
        server.login()
        found, = within(1, server, "/api/runs")
        need(len(found["runs"]) == 1000 and found["runs"][7]["step"] == 10000, "they lack results")


def exact(spans):
    """Nanoseconds by category, of all threads."""
    categories = collections.Counter()
    groups = {make.COMPUTE: 0, make.SUM: 1, make.OPEN: 4, make.WAIT_LANES: 5, make.WAIT_SEATS: 5}
    for number in range(4):
        for packed in make.worker_thread(number, spans // 4):
            begin, end, _, _, _, _, kind, _, _ = make.SPAN.unpack(packed)
            if kind in groups:
                categories[groups[kind]] += end - begin
    return categories


def frames(browser):
    """Seconds of script, per frame, while the timeline is zoomed and panned."""
    browser.ask("Performance.enable")
    all_at = []
    for i in range(301):
        metrics = browser.ask("Performance.getMetrics")["metrics"]
        all_at.append(next(one["value"] for one in metrics if one["name"] == "ScriptDuration"))
        browser.run(f"""dispatchEvent(new KeyboardEvent("keydown", {{key: "{"wdadsaad"[i % 8]}"}}));
            new Promise(requestAnimationFrame)""")
    return [end - begin for begin, end in zip(all_at, all_at[1:])]


def spans():
    """A profile of 2 million opens in 3 s. What is drawn depends on pixels, not on spans."""
    drawn, scripts = {}, {}
    for n in (10_000, 100_000, 2_000_000):
        folder = f"spans{n}"
        make.write(f"{folder}/run", n)
        with open(f"{folder}/run/run.json", "w") as f:
            json.dump({"format": 1, "title": "made", "entries": [], "workers": 2}, f)
        with Server(folder) as server:
            server.login()
            data, = within(3, server, "/api/slices?run=0&pixels=1000")
            wanted, found = exact(n), collections.Counter()
            for thread in data["threads"]:
                for begin, end, category, *_ in thread["times"]:
                    found[category] += end - begin
            for category, ns in wanted.items():
                there = found[category] / sum(found.values()) - ns / sum(wanted.values())
                need(abs(there) < 0.02, f"{n} spans, category {category}: {there:+.3f}")
            browser = walk.Browser(server)
            try:
                browser.open("timeline/0")
                browser.run("document.querySelector('[data-focus=\"all\"]').click()")
                browser.wait("document.getElementById('page').ariaBusy === 'false'")
                browser.run(COUNT)
                browser.run("dispatchEvent(new Event('resize'))")
                drawn[n] = browser.run("window.calls")
                rows = 2 * 4 + 4
                need(drawn[n] <= 4 * 1440 * rows, f"{drawn[n]} calls for {n} spans")
                scripts[n] = round(statistics.median(frames(browser)), 5)
                need(scripts[n] <= 0.008, f"{n} spans: {scripts[n]} s")
                heap = browser.ask("Runtime.getHeapUsage")["usedSize"]
                need(heap < 200e6, f"a heap of {heap} bytes")
            finally:
                browser.close()
    print(f"# calls on the canvas: {drawn}; seconds of a frame's script: {scripts}", flush=True)
    need(drawn[2_000_000] < 1.1 * drawn[100_000], f"{drawn}")


if __name__ == "__main__":
    run_cases({"a million steps": steps, "a thousand runs": runs, "spans": spans})
