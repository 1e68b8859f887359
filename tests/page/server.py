# SPDX-License-Identifier: Apache-2.0
"""The server of `trireme dashboard`: who may ask, what it answers about runs that grow, are cut or
strange, and that clients cannot hold it up. Usage: server.py PROGRAM [CASE ...]"""
import concurrent.futures
import json
import os
import pathlib
import random
import resource
import selectors
import shutil
import socket
import stat
import subprocess
import sys
import threading
import time

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent / "profile"))
import make_run
from served import PROGRAM, Server, free_port, need, run_cases, train, until


def refused(words, text, code=2):
    run = subprocess.run([PROGRAM, "dashboard", *words], capture_output=True, text=True,
                         timeout=20)
    need(run.returncode == code and text in run.stderr,
         f"{words}: exit code {run.returncode}, {run.stderr}")
    need(run.stderr.count("\n") == 1, f"more than a line: {run.stderr}")


def mistakes():
    os.makedirs("empty", exist_ok=True)
    refused(["nowhere"], "nowhere: No such file")
    refused(["empty", "--port", "99999"], "it can be 1 to 65535")
    refused(["empty", "other"], "one word too many")
    refused(["empty", "--host", "198.51.100.1"], "no address of this machine")
    refused(["empty", "--name", "me"], "--name is for --host")
    with open("secret", "w") as f:
        f.write("0" * 32)
    os.chmod("secret", 0o644)
    refused(["empty", "--token-file", "secret"], "can be read by others: chmod 600")
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        s.listen()
        port = s.getsockname()[1]
        refused(["empty", "--port", str(port)], f"port {port} is taken by python")


def who():
    train("lenet5", "--steps", "3", out="runs/a")
    with Server("runs") as s:
        first = s.ask("/?token=" + s.token, cookie=False)
        need(first.status == 303 and first.headers["Location"] == "/", f"{first.status}")
        cookie = first.headers["Set-Cookie"]
        need("HttpOnly" in cookie and "SameSite" in cookie and cookie.startswith("trireme-"),
             cookie)
        need(first.headers["Referrer-Policy"] == "no-referrer", "the address would be told")
        with Server("runs") as other:
            need(other.login().split("=")[0] != cookie.split("=")[0], "two servers, one cookie")
        answers = {
            "without the cookie": (s.ask("/", cookie=False), 403),
            "an old link": (s.ask("/?token=" + "0" * 32, cookie=False), 403),
            "a short token": (s.ask("/?token=0", cookie=False), 403),
            "another host's name": (s.ask("/api/runs", Host="evil.example"), 421),
            "no host": (s.ask("/api/runs", Host=""), 421),
            "a tunnel's port": (s.ask("/api/runs", Host="localhost:9"), 200),
            "the long address": (s.ask("/api/runs", Host="[::1]:9"), 200),
            "another site": (s.ask("/api/runs", Sec_Fetch_Site="cross-site",
                                   Sec_Fetch_Mode="no-cors", Sec_Fetch_Dest="script"), 403),
            "a click there": (s.ask("/", Sec_Fetch_Site="cross-site", Sec_Fetch_Mode="navigate",
                                    Sec_Fetch_Dest="document"), 200),
            "POST": (s.ask("/api/runs", method="POST", Content_Length="0"), 405),
            "dots": (s.ask("/../../etc/passwd"), 404),
            "dots in hex": (s.ask("/%2e%2e/%2e%2e/etc/passwd"), 404),
            "dots and a zero": (s.ask("/api/run?run=..%2f..%00"), 404),
            "no such run": (s.ask("/api/report?run=1"), 404),
            "a run that is no number": (s.ask("/api/report?run=0x0"), 404),
            "half a run": (s.ask("/api/report?run=0.5"), 404),
            "no such table": (s.ask("/api/table?run=0&name=../run"), 404),
        }
        for name, (answer, code) in answers.items():
            need(answer.status == code, f"{name}: {answer.status} {answer.text[:200]}")
            policy = answer.headers["Content-Security-Policy"] or ""
            need(policy.startswith("default-src 'none'; script-src 'self';"), f"{name}: {policy}")
        for run in ("1", "-1", "1e300"):
            need("no such run" in s.ask(f"/api/against?run=0&against={run}").text, run)
        log = s.errors()
        need(sum(code >= 400 for _, code in answers.values()) <= log.count("\n") and
             "403 /: " in log and s.token not in log, log)
        with socket.create_connection(("127.0.0.1", s.port)) as c:
            c.settimeout(20)
            try:
                c.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + b"a" * 1_000_000)
                answer = c.recv(100)
            except ConnectionError:
                answer = b""
            need(not answer or b" 4" in answer, f"headers of a megabyte: {answer}")
        need(s.ask("/api/runs").status == 200, "it does not go on")


def token_file():
    os.makedirs("runs", exist_ok=True)
    with Server("runs", "--token-file", "token") as s:
        first = s.token
    need(stat.S_IMODE(os.stat("token").st_mode) == 0o600, "others can read the token")
    with Server("runs", "--token-file", "token") as s:
        need(s.token == first, "the link has changed")


def found():
    """New runs appear; links are not followed, nor more than eight levels."""
    os.makedirs("many", exist_ok=True)
    with Server("many") as s:
        need("There are no runs" in s.said + s.process.stdout.readline(), s.said)
        names = lambda: [row["name"] for row in json.loads(s.ask("/api/runs").text)["runs"]]
        need(names() == [], names())
        train("lenet5", "--steps", "2", out="outside")
        train("lenet5", "--steps", "2", out="many/a/first")
        os.symlink("../outside", "many/link")
        deep = "many/" + "/".join("12345678")
        os.makedirs(deep + "/9")
        for where in (deep, deep + "/9"):
            with open(where + "/metrics.jsonl", "w") as f:
                f.write('{"step":1,"loss":2}\n')
        until(lambda: len(names()) == 2, f"after 5 s: {names()}", 5)
        need(sorted(names()) == ["1/2/3/4/5/6/7/8", "a/first"], names())


ROUTES = ["runs", "run?run=0", "report?run=0", "curve?run=0", "curve?run=0&by=time&from=9&to=30",
          "curve?run=0&key=lr&pixels=3", "heat?run=0", "log?run=0",
          "log?run=0&level=warning&text=a", "slices?run=0", "waits?run=0", "table?run=0&name=ops",
          "row?run=0", "against?run=0&against=0"]


def said_plainly(answer):
    """A sentence of one line."""
    return 400 <= answer.status < 600 and answer.text.endswith("\n") and \
        answer.text.count("\n") == 1 and answer.text[:-1].isprintable() and answer.text[0] != "{"


def cut():
    """Files that end anywhere, are strange, replaced or gone while a page is open: an answer, or a
    sentence, and the server goes on."""
    train("lenet5", "-n", "2", "--lanes", "4", "--steps", "60", "--profile", "steps=40..41",
          out="cut/run")
    files = {}
    for folder, _, names in os.walk("cut/run"):
        for name in names:
            path = os.path.join(folder, name)
            files[path] = open(path, "rb").read()
    draw = random.Random(7)
    with Server("cut") as s:
        page = stream(s, "?run=0")
        for turn in range(20):
            for path, data in files.items():
                at = draw.randrange(len(data) + 1)
                how = draw.choice(["cut", "noise", "gone", "replaced", "whole", "whole"])
                to = path + ".new" if how == "replaced" else path
                if how == "gone" and os.path.exists(path):
                    os.unlink(path)
                elif how != "gone":
                    with open(to, "wb") as f:
                        f.write({"cut": data[:at], "whole": data, "replaced": data[at:]}.get(
                            how, data[:at] + draw.randbytes(20) + data[at + 20:]))
                    os.rename(to, path)
            for path in ROUTES:
                answer = s.ask("/api/" + path)
                need(answer.status == 200 or said_plainly(answer),
                     f"{path}: {answer.status} {answer.text[:200]}")
                if answer.status == 200 and not path.startswith("table"):
                    json.loads(answer.text)
        shutil.rmtree("cut/run")
        gone = lambda: "is gone" in s.ask("/api/runs").text
        until(gone, "it does not say that the directory is gone", 6)
        for path in ROUTES:
            answer = s.ask("/api/" + path)
            need(answer.status == 200 or said_plainly(answer), f"{path}: {answer.text[:200]}")
        page.settimeout(5)
        need(page.recv(65536).count(b"data:") > 1, "the page was told nothing")
        page.close()
        need(s.process.poll() is None, s.errors())


def tables():
    """Tables of a profile are there without those that `trireme profile` writes."""
    train("lenet5", "-n", "2", "--lanes", "4", "--steps", "30", "--profile", "steps=20..21",
          out="tables/run")
    with Server("tables") as s:
        for name in ("ops", "comm", "buckets"):
            path = f"tables/run/profile/20/{name}.csv"
            with open(path) as f:
                wanted = f.read()
            os.unlink(path)
            need(s.ask(f"/api/table?run=0&name={name}").text == wanted, f"{name}.csv differs")


def heat():
    """All hosts have the same columns: one that joins late, and steps that were done again."""
    for name in ("h0", "h1"):
        os.makedirs(f"heat/run/hosts/{name}")
    first, late, again = (f"heat/run/hosts/{name}" for name in (
        "h0/workers.series", "h1/workers.series", "h1/again"))
    make_run.write_series(first, 1000, 2)
    make_run.write_series(late, 300, 2, before=500)
    make_run.write_series(again, 300, 2, before=700)  # it was killed after 800, and saved at 700
    with open(late, "ab") as f:
        f.write(open(again, "rb").read()[make_run.constant("SERIES_PAGE"):])
    with open("heat/run/metrics.jsonl", "w") as f:
        f.write('{"step":1000,"loss":2}\n')
    os.unlink(again)
    with Server("heat") as s:
        found = json.loads(s.ask("/api/heat?run=0&pixels=110").text)
        need(found["first"] == 1 and found["steps"] == list(range(10, 1001, 10)), found["steps"])
        need(found["seconds"][29] == 5 and 0.05 < found["seconds"][30] < 0.06, found["seconds"])
        need(found["ends"] == sorted(found["ends"]) and
             abs(found["ends"][99] - make_run.BEGAN - 55) < 0.1, found["ends"])
        (one, other), (joined, slow) = (host["workers"] for host in found["hosts"])
        need(None not in one["lane"] and one["lanes"] == 1000, one)
        slow_from = lambda worker: [i for i, x in enumerate(worker["no_core"]) if x and x > 0.1][0]
        need(slow_from(other) == 60 and slow_from(slow) == 68, (other, slow))
        need(joined["lane"][:50] == [None] * 50 and None not in joined["lane"][50:], joined)
        need(joined["lanes"] == 600, joined["lanes"])
        shares = [(slow["no_core"][i] or 0) for i in (69, 75, 99)]
        need(shares[0] > 0.28 and 0.13 < shares[1] < 0.16 and shares[2] > 0.28, shares)
        # Frames of four steps in columns of ten.
        make_run.write_series(first, 40000, 2)
        until(lambda: json.loads(s.ask("/api/heat?run=0&pixels=4000").text)["steps"][-1] == 40000,
              "the new steps are not shown")
        found = json.loads(s.ask("/api/heat?run=0&pixels=4000").text)
        need(found["steps"] == list(range(10, 40001, 10)), found["steps"][:9])
        worker = found["hosts"][0]["workers"][1]
        need(None not in worker["lane"] and slow_from(worker) == 2400, worker["no_core"][2398:2402])
    # Frames of many steps, in each of their columns.
    train("lenet5", "--steps", "60", out="real/run")
    with Server("real") as s:
        found = json.loads(s.ask("/api/heat?run=0&pixels=600").text)
        lane = found["hosts"][0]["workers"][0]["lane"]
        need(found["steps"] == list(range(1, 61)) and len(set(lane)) < 60, (found["steps"], lane))
        need(None not in lane, lane)


def hosts():
    """Faults of all hosts are told, and whose they are."""
    for host, deaths in (("h0", 0), ("h1", 2)):
        os.makedirs(f"hosts/run/hosts/{host}")
        faults = [{"kind": "death", "worker": 1, "step": 3 + i, "time": 1.7e9 + i, "cost": 0.1,
                   "text": "killed"} for i in range(deaths)]
        with open(f"hosts/run/hosts/{host}/run.json", "w") as f:
            json.dump({"format": 1, "title": "two", "workers": 2, "deaths": deaths, "stalls": 0,
                       "faults": faults, "entries": [{"begin": 1.7e9, "end": 1.7e9 + 9}]}, f)
    with open("hosts/run/metrics.jsonl", "w") as f:
        f.write('{"step":1,"loss":1}\n')
    with Server("hosts") as s:
        s.login()
        file = json.loads(s.ask("/api/run?run=0").text)["file"]
        need(file["deaths"] == 2 and [fault["host"] for fault in file["faults"]] == ["h1", "h1"],
             file)
        need([host["host"] for host in file["hosts"]] == ["h0", "h1"] and
             all(len(host["entries"]) == 1 and host["workers"] == 2 for host in file["hosts"]),
             file)


def later():
    os.makedirs("later/run")
    with open("later/run/run.json", "w") as f:
        f.write('{"format":9}')
    with Server("later") as s:
        row = json.loads(s.ask("/api/runs").text)["runs"][0]
        need("of a later version" in row["trouble"], row)
        need("of a later version" in s.ask("/api/report?run=0").text, "the report does not say so")


def clocks():
    """Clocks that were set back, and runs in one directory one after the other."""
    train("linear", "--steps", "3", out="clocks/run")
    train("linear", "--steps", "3", out="clocks/run")
    path = "clocks/run/run.json"
    with open(path) as f:
        run = json.load(f)

    with Server("clocks") as s:
        ask = lambda what: json.loads(s.ask(f"/api/{what}").text)
        row = ask("run?run=0")["row"]
        need(row["earlier"] == 1 and "clock" not in row, row)
        entry = run["entries"][0]
        for name, change in {
                "an end before the begin": {"end": entry["begin"] - 3600},
                "a begin in future": {"begin": time.time() + 3600, "end": None}}.items():
            with open(path, "w") as f:
                json.dump({**run, "entries": [{**entry, **change}]}, f)
            until(lambda: "set back by 3" in ask("run?run=0")["row"].get("clock", ""), name, 6)
        need(ask("curve?run=0")["back"] == ask("log?run=0")["back"] == 0, "none went back")
        with open("clocks/run/metrics.jsonl", "a") as f:
            f.write(line(4, seconds=1e3) + line(5, seconds=10) + line(6, seconds=20))
        curve = ask("curve?run=0&by=time&pixels=4000")
        times = [x for x, *_ in curve["training"]]
        need(curve["back"] == 1 and times[-3:] == [1000, 1010, 1020], curve)
        with open("clocks/run/run.log", "a") as f:
            f.write('{"time":"2020-01-01T00:00:00.000Z","level":"info","event":"end"}\n')
        need(ask("log?run=0&worker=-1")["back"] == 1, ask("log?run=0&worker=-1"))


def resumed():
    """The rate of a run that was resumed is that of what was done since."""
    for steps in ("2000", "2100"):
        train("mlp:hidden=8", "--steps", steps, "--ckpt", "ck", "--resume", out="resumed/run")
    with open("resumed/run/run.json") as f:
        run = json.load(f)
    with open("resumed/run/metrics.jsonl") as f:
        seconds = json.loads(f.readlines()[-1])["seconds"]
    unknown = [{**run["entries"][0], "exit": None}, {**run["entries"][1], "first": None}]
    with Server("resumed") as s:
        row = lambda: json.loads(s.ask("/api/run?run=0").text)["row"]
        need(abs(row()["rate"] - 100 * run["batch"] / seconds) < 1, f"{row()}, {seconds} s")
        with open("resumed/run/run.json", "w") as f:
            json.dump({**run, "entries": unknown}, f)
        until(lambda: "rate" not in row(), f"what is not known is shown: {row()}", 6)


def logs():
    """What is left out of a log; a text is looked for in what is shown; long lines are cut."""
    os.makedirs("logs/run")
    with open("logs/run/metrics.jsonl", "w") as f:
        f.write(line(1))
    event = lambda second, level, event, **fields: json.dumps(
        {"time": f"2026-01-31T12:00:{second:02}.000Z", "level": level, "event": event,
         **fields}) + "\n"
    with open("logs/run/agent.log", "w") as f:
        f.write(event(1, "info", "start", worker=0) + event(5, "warning", "death", worker=1,
                                                            step=7, text="caf\u00e9 <b>") +
                "x" * 8_000_000 + "\n" + event(9, "error", "end", code=1))
    with open("logs/run/worker-0.log", "w") as f:
        f.write(event(2, "info", "join", step=3) + event(6, "info", "leave", step=8))
    with open("logs/run/worker-1.out", "w", encoding="utf-8") as f:
        f.write("printed\ny" + "\u00e9" * 4_000_000 + "\nlast")
    expected = {"": ["start", "join", "death", "", "leave", "end", "output", "output", "output"],
                "level=warning": ["death", "end"], "level=error": ["end"],
                "event=join": ["join"], "event=output": ["output"] * 3, "event=joi": [],
                "worker=0": ["start", "join", "leave"], "worker=1": ["death"] + ["output"] * 3,
                "worker=2": [], "since=7": ["death", "", "leave", "end"] + ["output"] * 3,
                "since=9": ["output"] * 3, "text=caf%C3%A9": ["death"], "text=%3Cb%3E": ["death"],
                "text=u00e9": [], "text=step%3D7": ["death"], "text=worker 0": ["join", "leave"],
                "text=%22step%22": [], "text=printed": ["output"], "text=leave": ["leave"],
                "worker=1&level=warning": ["death"]}
    with Server("logs") as s:
        for query, wanted in expected.items():
            answer = json.loads(s.ask("/api/log?run=0&" + query.replace(" ", "%20")).text)
            found = [event for _, _, _, event, *_ in answer["lines"]]
            need(found == wanted and answer["all"] == len(wanted), f"{query}: {found}")
            need(all(len(text) < 2010 for *_, text, _, _ in answer["lines"]), "a long line")
        status = open(f"/proc/{s.process.pid}/status").read()
        size, peak = (int(status.split(what)[1].split()[0]) for what in ("VmSize:", "VmHWM:"))
        need(peak < 24 << 10 or size > 1 << 32,  # a sanitizer keeps what is freed
             f"the server took {peak} KiB")


def beside():
    """Others do not wait for an answer that lasts; nor does the end, for those that follow it."""
    os.makedirs("beside/run")
    with open("beside/run/metrics.jsonl", "w") as f:
        f.write(line(1))
    with open("beside/run/agent.log", "w") as f:
        for i in range(40_000):
            f.write('{"time":"2026-01-31T12:00:00.000Z","level":"info","event":"step",'
                    f'"step":{i}}}\n')
    with concurrent.futures.ThreadPoolExecutor(9) as pool:
        s = Server("beside")
        s.login()
        slow = [pool.submit(s.ask, f"/api/log?run=0&since={i}") for i in range(3)]
        page = stream(s)
        need(b"data:" in page.recv(4096), "no event")
        for path in ("/", "/app.js", "/api/runs", "/api/run?run=0"):
            need(s.ask(path).status == 200, path)
        need(not any(answer.done() for answer in slow[1:]), "the page waits for the log")
        need(all(answer.result().status == 200 for answer in slow), "the log is not answered")
        slow = [pool.submit(s.ask, f"/api/log?run=0&since={i}") for i in range(3, 11)]
        until(lambda: any(answer.done() for answer in slow), "none is answered")
        need(s.close() == 0, "it does not end well while others wait")
        need(sum(not answer.exception() and answer.result().status == 200 for answer in slow) < 4,
             "all are answered first")
        page.close()


def line(step, key="loss", seconds=None):
    return json.dumps({"step": step, key: value_of(step),
                       "seconds": step / 10 if seconds is None else seconds}) + "\n"


def value_of(step):
    return round(step * 7919 % 1000 / 1000 + 1, 3)


def processor(s):
    """Seconds of the server."""
    return 1e-9 * sum(int(path.read_text().split()[0]) for path in
                      pathlib.Path(f"/proc/{s.process.pid}/task").glob("*/schedstat"))


def curves():
    """A curve has values that exist, is read on as its file grows, and anew when it is replaced;
    a part is read from its lines again."""
    os.makedirs("curves/run")
    path, n = "curves/run/metrics.jsonl", 50_000
    with open(path, "w") as f:
        f.writelines(line(step) for step in range(1, n + 1))

    def ask(s, pixels, more=""):
        answer = json.loads(s.ask(f"/api/curve?run=0&pixels={pixels}{more}").text)
        return answer["training"], answer

    def check(s, pixels, n):
        columns, answer = ask(s, pixels)
        need(answer["begin"] == 1 and answer["end"] == n, f"{answer['begin']}, {answer['end']}")
        need(answer["last"] == value_of(n), f"the last value: {answer['last']}")
        steps = [x for x, *_ in columns]
        need(len(columns) == pixels and steps == sorted(set(steps)) and
             all(x == int(x) for x in steps), f"{len(columns)} columns: {steps[:9]}")
        for at, (x, least, most, mean) in enumerate(columns):
            there = [value_of(k) for k in range(int(x), int((steps + [n + 1])[at + 1]))]
            need(least == min(there) and most == max(there) and
                 abs(mean - sum(there) / len(there)) < 1e-9, f"column {at} of {pixels}: from {x}")

    with Server("curves") as s:
        s.login()
        began = processor(s)
        check(s, 500, n)
        first = processor(s) - began
        began = processor(s)
        for turn in range(10):
            with open(path, "a") as f:
                f.write(line(n + 1 + turn))
            need(ask(s, 499 - turn)[1]["end"] == n + 1 + turn, "what was added is not there")
        need(processor(s) - began < first, f"ten lines took {processor(s) - began} s")
        check(s, 300, n + 10)
        part, _ = ask(s, 400, "&from=15000&to=15199")
        need(part == [[x, *[value_of(x)] * 3] for x in range(15_000, 15_200)], part[:9])
        late, answer = ask(s, 400, "&from=1900&to=1909.9&by=time")
        need(late == [[x / 10, *[value_of(x)] * 3] for x in range(19_000, 19_100)], late[:9])
        with open(path, "a") as f:
            f.write(line(n + 11, seconds=1)[:-20])
        need(ask(s, 299)[1]["end"] == n + 10, "half a line is read")
        for steps, how in ((range(1, 4), "w"), (range(1, 6), "w"), (range(100, 110), "w"),
                           (range(2, 9), "new")):
            with open(path + ".new" if how == "new" else path, "w") as f:
                f.writelines(line(step) for step in steps)
            if how == "new":
                os.rename(path + ".new", path)
            _, answer = ask(s, 298 - len(steps))
            need((answer["begin"], answer["end"]) == (steps[0], steps[-1]),
                 f"after {how} with {len(steps)}: {answer['begin']} to {answer['end']}")


def stream(s, run=""):
    c = socket.create_connection(("127.0.0.1", s.port))
    c.settimeout(20)
    c.sendall(f"GET /api/events{run} HTTP/1.1\r\nHost: localhost\r\n"
              f"Cookie: {s.login()}\r\n\r\n".encode())
    return c


def crowd(port, over, ages):
    """1,000 connections without a whole request, which are opened again when they are closed; one
    half closes its own after a second. ages: of those that the server closes."""
    opened, selector = {}, selectors.DefaultSelector()
    texts = [b"", b"G", b"GET / HTTP/1.1\r\n", b"GET / HTTP/1.1\r\nHost: localhost\r\nX: "]
    while not over.is_set():
        while len(opened) < 1000:
            c = socket.create_connection(("127.0.0.1", port))
            c.sendall(texts[len(opened) % 4])
            opened[c] = time.monotonic()
            selector.register(c, selectors.EVENT_READ)
        now = time.monotonic()
        closed = [key.fileobj for key, _ in selector.select(0.1)]
        ages += [now - opened[c] for c in closed]
        closed += [c for c, since in opened.items() if c.fileno() % 2 and now - since > 1]
        for c in set(closed):
            selector.unregister(c)
            c.close()
            del opened[c]
    for c in opened:
        c.close()


def live():
    """What changes is told within 2 s, and a new page loads, in spite of a crowd, which is closed
    after 5 s, and of clients that never read. That a directory is gone is said once."""
    train("lenet5", "--steps", "2", out="live/a")
    os.makedirs("lost")
    resource.setrlimit(resource.RLIMIT_NOFILE, [resource.getrlimit(resource.RLIMIT_NOFILE)[1]] * 2)
    over, ages, step = threading.Event(), [], 2
    with Server("live") as s, Server("lost") as lost:
        os.rmdir("lost")
        page, deaf = stream(s, "?run=0"), [stream(s) for _ in range(20)]
        for c in deaf[10:]:
            for _ in range(200):
                c.sendall(b"GET /app.js HTTP/1.1\r\nHost: localhost\r\n"
                          b"Cookie: " + s.cookie.encode() + b"\r\n\r\n")
        thread = threading.Thread(target=crowd, args=(s.port, over, ages))
        thread.start()
        began = time.monotonic()
        try:
            while b"data:" not in page.recv(4096):
                pass
            told = 0
            while (now := time.monotonic()) < began + 8:
                step += 1
                with open("live/a/metrics.jsonl", "a") as f:
                    f.write(line(step))
                need(b"data:" in page.recv(4096), "no event")
                late = time.monotonic() - max(now, told + 1.5)
                need(late < 2, f"told after {late:.1f} s")
                told = time.monotonic()
                for path in ("/", "/style.css", "/app.js", "/api/runs", "/api/report?run=0"):
                    need(s.ask(path).status == 200, path)
                took = time.monotonic() - told
                need(took < 10, f"a page takes {took:.1f} s")
        finally:
            over.set()
            thread.join()
        need(len(ages) >= 400 and 4.5 < min(ages) and max(ages) < 8,
             f"{len(ages)} are closed, after {min(ages, default=0)} to {max(ages, default=0)} s")
        need(step > 4, f"{step}")
        need(lost.errors().count("lost: No such file") == 1, lost.errors())
        for c in (page, *deaf):
            c.close()


def ends():
    os.makedirs("runs", exist_ok=True)
    s = Server("runs")
    c = stream(s)
    c.recv(100)
    need(s.close() == 0, "it does not end well while a page is open")
    c.close()


run_cases({"mistakes": mistakes, "who may ask": who, "the same link": token_file,
           "new runs": found, "files that are cut": cut, "tables": tables, "heat": heat,
           "a later version": later, "hosts": hosts, "curves": curves,
           "clocks and earlier runs": clocks, "resumed": resumed, "logs": logs, "beside": beside,
           "live": live, "an end": ends})
