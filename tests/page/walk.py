# SPDX-License-Identifier: Apache-2.0
"""All pages of real runs in Debian's Chromium: every number has a source and is that of the run's
files; no text is cut, hides another or is faint; controls have names; keys and clicks work; nothing
is written to the console, and no other host is asked. Pictures are kept in BUILD/pages.

Usage: walk.py PROGRAM BUILD [CASE ...]; SLOW=1: in both themes"""
import base64
import csv
import datetime
import glob
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

BUILD = os.path.abspath(sys.argv.pop(2))
sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent / "profile"))
import make_run
from chromium import Chromium
from served import PROGRAM, Server, need, run_cases, train, until

EXPECT = json.loads((pathlib.Path(__file__).parent / "expect.json").read_text())
PAGES = ["summary", "workers", "faults", "log", "communication", "timeline", "operators"]
RUNS = {
    "two": "lenet5 -n 2 --lanes 8 --steps 120 --profile steps=60..62",
    "mesh": "lenet5 -n 2 --lanes 2 --mesh model=2 --strategy channels --steps 60"
            " --profile steps=30..31",
    "stages": "lenet5 -n 2 --stages 2 --lanes 4 --steps 60 --profile steps=30..31",
    "one": "mlp:hidden=32 --steps 40 --eval-data synthetic:size=64 --eval-every 20",
}
LOOKS = [(1440, "light"), (390, "dark"), (1440, "dark"), (390, "light")]
if "SLOW" not in os.environ:
    del LOOKS[2:]
HOSTILE = "<img src=x onerror=alert(1)>\u001b[2J"
LOOK = (pathlib.Path(__file__).parent / "look.js").read_text()


class Browser:
    def __init__(self, server):
        self.home = tempfile.mkdtemp()
        self.chromium, self.server, self.trouble, self.asked = Chromium(
            shutil.which("chromium"), self.home), server, [], []
        target = self.chromium.ask("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.chromium.ask("Target.attachToTarget", targetId=target,
                                         flatten=True)["sessionId"]
        read = self.chromium.read

        def reads():
            message = read()
            params, method = message.get("params", {}), message.get("method")
            if method in ("Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Log.entryAdded"):
                self.trouble.append(json.dumps(params)[:400])
            if method == "Network.requestWillBeSent":
                self.asked.append(params["request"]["url"])
            return message

        self.chromium.read = reads
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.ask(domain + ".enable")
        self.size(1440, "light")
        self.ask("Page.navigate", url=server.link.replace("localhost", "127.0.0.1"))
        try:
            self.wait("document.querySelector('main .lead') && !document.getElementById('waiting')")
        except Exception:
            self.close()
            raise

    def ask(self, method, **params):
        return self.chromium.ask(method, self.session, **params)

    def run(self, script):
        answer = self.ask("Runtime.evaluate", expression=script, awaitPromise=True,
                          returnByValue=True)
        need("exceptionDetails" not in answer, str(answer.get("exceptionDetails"))[:400])
        return answer["result"].get("value")

    def wait(self, script, text=None, limit=15):
        until(lambda: self.run(f"Promise.resolve({script}).then(Boolean)"),
              text or f"never: {script}", limit)

    def size(self, width, theme):
        self.ask("Emulation.setDeviceMetricsOverride", width=width, height=900,
                 deviceScaleFactor=1, mobile=width < 500)
        self.ask("Emulation.setEmulatedMedia",
                 features=[{"name": "prefers-color-scheme", "value": theme}])

    def open(self, address):
        """Waits until the page has been drawn: its state says so."""
        self.run("document.getElementById('page').dataset.shown = ''")
        self.run(f"location.hash = '{address}'")
        self.wait(f"document.getElementById('page').dataset.shown === '#{address}'")

    def picture(self, name):
        image = self.ask("Page.captureScreenshot")["data"]
        os.makedirs(f"{BUILD}/pages", exist_ok=True)
        with open(f"{BUILD}/pages/{name}.png", "wb") as f:
            f.write(base64.b64decode(image))

    def key(self, text):
        self.ask("Input.dispatchKeyEvent", type="keyDown", key=text, text=text)
        self.ask("Input.dispatchKeyEvent", type="keyUp", key=text)

    def click(self, selector, across=0.5, down=0.5):
        """At this part of the element's width and height."""
        x, y = self.run(f"""(() => {{
            const one = document.querySelector({json.dumps(selector)});
            one.scrollIntoView({{block: "center"}});
            const box = one.getBoundingClientRect();
            return [box.left + {across} * box.width, box.top + {down} * box.height]; }})()""")
        for kind in ("mousePressed", "mouseReleased"):
            self.ask("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def check(self):
        need(not self.trouble, f"on the console: {self.trouble}")
        ours = f"http://127.0.0.1:{self.server.port}/"
        others = [url for url in self.asked if not url.startswith((ours, "data:", "blob:"))]
        need(not others, f"asked: {others}")

    def close(self):
        self.chromium.close()
        shutil.rmtree(self.home, ignore_errors=True)


def at(value, path):
    for part in path.split("."):
        value = value[int(part)] if isinstance(value, list) else value[part]
    return value


def table(run, name):
    with open(sorted(glob.glob(f"{run}/profile/*"))[-1] + "/" + name) as f:
        return list(csv.DictReader(f))


def expected(source, run):
    """What the run's files say, or None if the source is a sum or a count of these."""
    file, _, field = source.partition(":")
    if file == "report":
        text = subprocess.run([PROGRAM, "report", run, "--json"], capture_output=True, text=True,
                              check=True).stdout
        if "/" in field or field in ("shares", "lost"):
            return None
        try:
            return at(json.loads(text), field)
        except KeyError:
            return 0 if "shares." in field else None
    if file == "run.json":
        data = json.load(open(f"{run}/run.json"))
        return None if field == "entries" else at(data, field)
    if file == "metrics.jsonl" and field in ("step", "loss", "top1"):
        rows = [json.loads(line) for line in open(f"{run}/metrics.jsonl")]
        return [row[field] for row in rows if field in row][-1]
    if file in ("comm.csv", "buckets.csv") and ":" in field:
        which, field = field.rsplit(":", 1)
        names = ("kind", "name", "host", "bucket") if file == "comm.csv" else ("host", "bucket")
        rows = [row for row in table(run, file) if "/".join(row[k] for k in names) == which]
        values = [float(row[field]) for row in rows if row[field] != ""]
        return values[0] if len(values) == 1 else None
    if file == "ops.csv":
        which, field = field.rsplit(":", 1)
        for row in table(run, file):
            names = [row[k] for k in ("level", "operator", "name", "phase", "seat")]
            if which in ("/".join(names), row["operator"]) and row["level"] == (
                    which.split("/")[0] if "/" in which else "kind"):
                return float(row[field])
    return None


def check_numbers(found, run):
    reports = 0
    for source, value, text in found:
        wanted = expected(source, run)
        if isinstance(wanted, list):
            wanted = len(wanted)
        if wanted is None or isinstance(wanted, dict):
            continue
        reports += 1
        need(abs(value - wanted) <= 1e-5 * max(abs(wanted), 1e-9) + 1e-12,
             f"{source} is shown as {text} ({value}), but it is {wanted}")
    return reports


def look(browser, address, name, least):
    """A wide page and a phone's; with SLOW=1 each in both themes."""
    for width, theme in LOOKS:
        browser.size(width, theme)
        browser.open("curves")
        browser.open(address)
        found = json.loads(browser.run(LOOK))
        browser.picture(f"{name}-{width}-{theme}")
        need(not found["bad"], f"{address}, {width}, {theme}:\n      " +
             "\n      ".join(found["bad"][:12]))
        need(len(found["numbers"]) >= least,
             f"{address}: {len(found['numbers'])} numbers, {least} expected")
    browser.size(1440, "light")
    return found


def make_runs():
    for name, words in RUNS.items():
        train(*words.split(), out=f"runs/{name}")
    process = subprocess.Popen([PROGRAM, "train", "lenet5", "-n", "2", "--lanes", "8", "--steps",
                                "100000", "--quiet", "--out", "runs/killed"],
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                               start_new_session=True)
    try:
        until(lambda: os.path.exists("runs/killed/metrics.jsonl") and
              open("runs/killed/metrics.jsonl").read().count("\n") > 30, "the run does not begin")
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def pages():
    make_runs()
    going = subprocess.Popen([PROGRAM, "train", "lenet5", "--steps", "1000000", "--threads", "1",
                              "--quiet", "--out", "runs/going"], stdout=subprocess.DEVNULL,
                             stderr=subprocess.DEVNULL)
    server = browser = None
    try:
        until(lambda: os.path.exists("runs/going/metrics.jsonl") and
              os.path.getsize("runs/going/metrics.jsonl"), "the run does not begin")
        server = Server("runs")
        browser = Browser(server)
        rows = json.loads(server.ask("/api/runs").text)["runs"]
        number = {row["name"]: row["run"] for row in rows}
        need({row["name"]: row["state"] for row in rows} ==
             {"two": "finished", "mesh": "finished", "stages": "finished", "one": "finished",
              "killed": "was killed", "going": "goes on"}, rows)
        # A live update.
        before = browser.run("document.querySelector('main').innerText")
        browser.wait(f"document.querySelector('main').innerText !== {json.dumps(before)}",
                     "no update within 2 s", 2)
        browser.open(f"workers/{number['going']}")
        need(states(browser) == ["works"], states(browser))
        going.send_signal(signal.SIGTERM)
        going.wait(20)
        look(browser, "runs", "runs", EXPECT["runs"])
        browser.open(f"workers/{number['stages']}")
        red, blue = browser.run("""(() => { const map = document.getElementById("heat"), {data} =
            map.getContext("2d").getImageData(map.width / 2, 0, 1, 46);
            return [Math.max(data[44], data[140]), Math.min(data[46], data[142])]; })()""")
        need(red < blue + 30, "a worker is red as its stage is longer")
        browser.open(f"faults/{number['killed']}")
        need(browser.run("document.querySelector('.lead').innerText").startswith(
            "The run was killed. Before that no worker died"), "that it was killed")
        checked = 0
        for name in ("two", "mesh", "stages", "one", "killed", "going"):
            for page in PAGES:
                wanted = EXPECT[page] if name == "two" else EXPECT["others"].get(page, 1)
                address = f"{page}/{number[name]}"
                if name == "two":
                    found = look(browser, address, page, wanted)
                else:
                    browser.open(address)
                    found = json.loads(browser.run(LOOK))
                    need(not found["bad"], f"{address} ({name}):\n      " +
                         "\n      ".join(found["bad"][:12]))
                checked += check_numbers(found["numbers"], f"runs/{name}")
        found = look(browser, f"curves?runs={number['two']},{number['one']}", "curves",
                     EXPECT["curves"])
        need(checked > 100, f"{checked} numbers were compared with files")
        clicks(browser, number)
        browser.check()
    finally:
        going.kill()
        for one in filter(None, (browser, server)):
            one.close()


def states(browser):
    return browser.run("""[...document.querySelectorAll('[data-source$=".state"]')]
        .map((one) => one.innerText)""")


def clicks(browser, number):
    """A click, or a key, and what it does, on every page."""
    browser.open("runs")
    for name in ("two", "one"):
        browser.run(f"document.querySelector('[data-focus=\"choose {number[name]}\"]').click()")
    browser.wait("document.querySelector('table[aria-label=\"what differs\"]')")
    browser.key("/")
    need(browser.run("document.activeElement.type") == "search", "/ does not find")
    browser.run("document.activeElement.blur()")
    browser.open(f"summary/{number['two']}")
    browser.key("3")
    browser.wait("location.hash.startsWith('#workers/')", "the key 3 does nothing")
    browser.wait("document.querySelector('[data-focus=\"wait\"]')")
    browser.run("document.querySelector('[data-focus=\"wait\"]').click()")
    browser.wait("document.querySelector('[data-focus=\"wait\"]').ariaPressed === 'true'")
    browser.open(f"workers/{number['mesh']}")
    need(states(browser) == ["ended", "ended"], states(browser))
    browser.run("document.querySelector('[data-focus=group]').focus()")
    for key, code, wanted in (("ArrowDown", 40, "seat 0, seat 1"), ("ArrowUp", 38, "")):
        for kind in ("rawKeyDown", "keyUp"):
            browser.ask("Input.dispatchKeyEvent", type=kind, key=key, windowsVirtualKeyCode=code)
        browser.wait(f"""import("/draw.js").then(({{written}}) => written.map(({{text}}) => text)
            .filter((text) => text.startsWith("seat")).join(", ") === "{wanted}")""",
            f"{key} does not group by seats")
    browser.open(f"log/{number['two']}")
    browser.run("""(() => { const s = document.querySelector('[data-focus="event"]');
        s.value = 'end'; s.dispatchEvent(new Event('change')); })()""")
    browser.wait("document.querySelectorAll('table.log tr').length === 1", "no filter")
    browser.open(f"timeline/{number['two']}")
    before = browser.run("document.querySelector('.lead').innerText")
    browser.key("n")
    browser.wait(f"document.querySelector('.lead').innerText !== {json.dumps(before)}",
                 "the key n does nothing")
    browser.open(f"operators/{number['two']}")
    browser.run("document.querySelector('[data-focus=\"instance\"]').click()")
    browser.wait("document.querySelectorAll('tbody tr').length > 20", "instances are not shown")
    browser.run("""(() => { const s = document.querySelector('[data-focus="against"]');
        s.value = 'mesh'; s.dispatchEvent(new Event('change')); })()""")
    browser.wait("document.querySelector('pre')?.innerText.includes('A step takes')",
                 "no comparison")
    browser.run("document.querySelector('[data-focus=\"theme\"]').click()")
    need(browser.run("document.documentElement.classList.contains('dark')"), "no dark theme")
    browser.run("localStorage.clear()")


def moments():
    """A fault leads to its lines, a line to its moment in the times of workers; all times are of
    the browser's zone."""
    steps, died = 1000, {1: 400, 2: 700}
    folder = pathlib.Path("moments/run")
    folder.mkdir(parents=True)
    make_run.write_run(folder / "run.json", steps, 3)
    make_run.write_metrics(folder / "metrics.jsonl", steps)
    make_run.write_series(folder / "workers.series", steps, 3)
    run = json.loads((folder / "run.json").read_text())
    times = {worker: make_run.BEGAN + make_run.seconds_of(steps, step) - 0.01
             for worker, step in died.items()}
    run["faults"] = [{"kind": "death", "time": time, "worker": worker, "step": died[worker],
                      "cost": 0.4, "text": "lane 3"} for worker, time in times.items()]
    (folder / "run.json").write_text(json.dumps(run))
    with open(folder / "agent.log", "w") as f:
        for worker, time in times.items():
            utc = datetime.datetime.fromtimestamp(time, datetime.timezone.utc)
            f.write(json.dumps({"time": f"{utc:%Y-%m-%dT%H:%M:%S}.{utc.microsecond // 1000:03}Z",
                                "level": "warning", "event": "death", "worker": worker,
                                "text": "lane 3"}) + "\n")
    zone = datetime.timezone(datetime.timedelta(hours=5, minutes=45))
    local = {worker: f"{datetime.datetime.fromtimestamp(time, zone):%H:%M:%S}"
             for worker, time in times.items()}
    with Server("moments") as server:
        browser = Browser(server)
        try:
            browser.ask("Emulation.setTimezoneOverride", timezoneId="Asia/Kathmandu")
            for i, worker in enumerate((2, 1)):
                browser.open("faults/0")
                row = "table[aria-label=faults] tbody tr" + " + tr" * i
                text = browser.run("document.querySelector('[aria-label=faults]').innerText")
                need("UTC+05:45" in text and local[worker] in text, text)
                browser.click(row + " a")
                browser.wait(f"""(([line, ...more]) => !more.length &&
                    line?.innerText.includes("worker={worker} "))(
                    document.querySelectorAll("table.log tr"))""", "not the lines of a fault")
                text = browser.run("document.querySelector('main').innerText")
                need("UTC+05:45" in text and local[worker] in text, text)
                browser.click("table.log a[href*=workers]")
                browser.wait("location.hash.startsWith('#workers')")
                step = int(browser.run("location.hash.split('=')[1]"))
                need(0 <= step - died[worker] < 4, f"step {step}, not {died[worker]}")
            shown(browser, server, step)
            browser.key("d")
            browser.wait(f"!location.hash.endsWith('={step}')", "the key d does nothing")
            later = int(browser.run("location.hash.split('=')[1]"))
            need(step < later < step + 5, f"from step {step} to {later}")
            browser.click("#heat", 0.5, 0.1)
            browser.wait(f"!location.hash.endsWith('={later}')", "a click there does nothing")
            shown(browser, server, int(browser.run("location.hash.split('=')[1]")))
            browser.open("faults/0")
            part = (times[2] - make_run.BEGAN) / (run["entries"][0]["end"] - make_run.BEGAN)
            width = browser.run("document.getElementById('faults').clientWidth")
            browser.click("#faults", (72 + part * (width - 84)) / width, 50 / 84)
            browser.wait("location.hash === '#log/0?event=death&worker=2'", "no line of the fault")
            browser.open("summary/0")
            browser.click("#heat", 0.5, 0.1)
            browser.wait("location.hash.startsWith('#workers/0?step=')", "a click there")
            browser.check()
        finally:
            browser.close()


def shown(browser, server, step):
    """The table of a step has the numbers of its column on the heat map."""
    table = f"document.querySelector('[aria-label=\"step {step} by worker\"]')"
    browser.wait(table, f"step {step} is not shown")
    found = browser.run(f"[...{table}.querySelectorAll('[data-value]')].map((one) =>"
                        " Number(one.dataset.value))")
    pixels = browser.run("document.getElementById('page').clientWidth") - 140
    heat = json.loads(server.ask(f"/api/heat?run=0&pixels={pixels // 2}").text)
    at = next(i for i, last in enumerate(heat["steps"]) if last >= step)
    wanted = [worker[name][at] for worker in heat["hosts"][0]["workers"]
              for name in ("lane", "wait", "samples", "no_core")]
    need(found == wanted, f"{found} are shown, and not {wanted}")


def hostile():
    """Titles, metrics and lines that are HTML: they are shown as text."""
    os.makedirs("bad/x")
    with open("bad/x/run.json", "w") as f:
        json.dump({"format": 1, "title": HOSTILE, "options": {HOSTILE: HOSTILE},
                   "entries": [{"begin": 1.7e9, "end": 1.7e9 + 5, "exit": 0}]}, f)
    with open("bad/x/metrics.jsonl", "w") as f:
        f.writelines(json.dumps({"step": i, "loss": 1 / i, HOSTILE: 3}) + "\n" for i in range(1, 9))
    with open("bad/x/run.log", "w") as f:
        f.write(json.dumps({"time": "2026-01-01T00:00:00.000Z", "level": "info",
                            "event": HOSTILE, "text": HOSTILE}) + "\n" + HOSTILE + "\n")
    with Server("bad") as server:
        browser = Browser(server)
        try:
            for address in ["runs", "curves?runs=0", *[f"{page}/0" for page in PAGES]]:
                browser.open(address)
                need(browser.run("document.images.length") == 0, f"{address} has an image")
            browser.open("log/0")
            need("<img src=x" in browser.run("document.querySelector('main').innerText"),
                 "the text is not shown")
            browser.check()
        finally:
            browser.close()


def in_turn():
    """Two runs in one directory: the page says so, and shows the later one."""
    train("mlp:hidden=8", "--steps", "5", out="turn/a")
    train("lenet5", "--steps", "7", out="turn/a")
    os.makedirs("turn/b")  # of a version to come: its results are shown
    with open("turn/b/run.json", "w") as f:
        json.dump({"format": 99}, f)
    shutil.copy("turn/a/metrics.jsonl", "turn/b")
    with Server("turn") as server:
        browser = Browser(server)
        try:
            rows = json.loads(server.ask("/api/runs").text)["runs"]
            number = {row["name"]: row["run"] for row in rows}
            browser.open(f"summary/{number['a']}")
            text = browser.run("document.querySelector('main').innerText")
            need("Its directory had 1 run before" in text, text)
            need("7 steps" in browser.run("document.getElementById('head').innerText"), "steps")
            browser.open(f"summary/{number['b']}")
            text = browser.run("document.querySelector('main').innerText")
            need("of a later version" in text and "Loss" in text, text)
            browser.trouble = [line for line in browser.trouble if "500" not in line]
            browser.check()
        finally:
            browser.close()


def nothing():
    """No runs: how one makes some. No JavaScript: what is missing."""
    os.mkdir("none")
    with Server("none") as server:
        browser = Browser(server)
        try:
            text = browser.run("document.querySelector('main').innerText")
            need("There are no runs here yet" in text and "--out DIR/first" in text, text)
            browser.ask("Emulation.setScriptExecutionDisabled", value=True)
            browser.ask("Page.reload")
            browser.wait("document.querySelector('main')?.innerText.includes("
                         "'needs a browser with JavaScript modules')")
            browser.check()
        finally:
            browser.close()


def restarted():
    """The page says that the server has ended, and that another has another link."""
    os.makedirs("again", exist_ok=True)
    first = Server("again")
    browser = Browser(first)
    try:
        first.close()
        browser.wait("document.querySelector('.lead')?.innerText.startsWith("
                     "'The server does not answer. Start trireme dashboard again')")
        with Server("again", port=first.port):
            browser.wait("document.querySelector('.lead').innerText.startsWith("
                         "'open the link that trireme dashboard has printed')")
    finally:
        browser.close()


def tabs():
    """Ten tabs of one browser load: hidden ones follow nothing."""
    train("lenet5", "--steps", "3", out="tabs/a")
    with Server("tabs") as server:
        browser = Browser(server)
        try:
            sessions = []
            for _ in range(10):
                target = browser.chromium.ask(
                    "Target.createTarget", url=server.link.replace("localhost", "127.0.0.1"))
                sessions.append(browser.chromium.ask("Target.attachToTarget", flatten=True,
                                                     targetId=target["targetId"])["sessionId"])
            for browser.session in sessions:
                browser.wait("document.querySelectorAll('tbody tr').length === 1",
                             "a tab does not load")
            browser.check()
        finally:
            browser.close()


if not shutil.which("chromium"):
    print("1 skipped: there is no chromium")
    sys.exit(77)
if __name__ == "__main__":
    run_cases({"pages": pages, "moments": moments, "hostile": hostile, "nothing": nothing,
               "another server": restarted, "ten tabs": tabs, "in turn": in_turn})
