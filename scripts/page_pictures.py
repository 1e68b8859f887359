# SPDX-License-Identifier: Apache-2.0
"""Makes the pictures of docs/page.md and README.md with Debian's Chromium: the summary of a run
beside a process that takes a core, and communication in the run of many lanes of docs/profiling.md.
Take them while nothing else runs.

Usage: python3 scripts/page_pictures.py BUILD DIRECTORY    (writes DIRECTORY/page-*.png)"""
import base64
import contextlib
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

BUILD, TO = map(os.path.abspath, sys.argv[1:3])
PROGRAM = os.path.join(BUILD, "src/trireme")
sys.argv[1:] = [PROGRAM]
sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent / "tests/page"))
from chromium import Chromium
from served import Server, train

PICTURES = {  # name: (command, page, height)
    "straggler": ("lenet5 -n 2 --lanes 8 --steps 3000 --ckpt ck --save-every 500", "summary", 800),
    "lanes": ("cnn:width=64 -n 2 --lanes 64 --steps 100 --profile steps=60..80", "communication",
              760),
}
MOST = 150_000  # bytes


@contextlib.contextmanager
def busy(core):
    spinner = subprocess.Popen([sys.executable, "-c", "while True: pass"],
                               preexec_fn=lambda: os.sched_setaffinity(0, {core}))
    yield
    spinner.kill()
    spinner.wait()


def picture(browser, session, server, run, page, height):
    def ask(method, **params):
        return browser.ask(method, session, **params)

    ask("Emulation.setDeviceMetricsOverride", width=1200, height=height, deviceScaleFactor=1,
        mobile=False)
    ask("Page.navigate", url=server.link.replace("localhost", "127.0.0.1"))
    rows = json.loads(server.ask("/api/runs").text)["runs"]
    number = next(row["run"] for row in rows if row["name"] == run)
    address = f"#{page}/{number}"
    while ask("Runtime.evaluate", returnByValue=True, expression="document.getElementById("
              "'page')?.dataset.shown")["result"].get("value") != address:
        ask("Runtime.evaluate", expression=f"location.hash = '{address}'")
        time.sleep(0.2)
    return base64.b64decode(ask("Page.captureScreenshot")["data"])


def main():
    with tempfile.TemporaryDirectory() as work:
        os.chdir(work)
        with busy(1):
            train(*PICTURES["straggler"][0].split(), out="runs/straggler")
        train(*PICTURES["lanes"][0].split(), out="runs/lanes")
        browser = Chromium(shutil.which("chromium"), os.path.join(work, "home"))
        target = browser.ask("Target.createTarget", url="about:blank")["targetId"]
        session = browser.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        with Server("runs") as server:
            for run, (_, page, height) in PICTURES.items():
                data = picture(browser, session, server, run, page, height)
                with open(f"{TO}/page-{run}.png", "wb") as f:
                    f.write(data)
                print(f"page-{run}.png: {len(data)} bytes")
                if len(data) > MOST:
                    sys.exit(f"at most {MOST} are allowed")
        browser.close()


main()
