# SPDX-License-Identifier: Apache-2.0
"""All pages of a real run in Debian's Firefox ESR, which is driven by Marionette: each draws its
data, wide and as a phone does, follows the run, and writes no error to the console.

Usage: firefox.py PROGRAM"""
import atexit
import json
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile

FIREFOX = shutil.which("firefox-esr")
if not FIREFOX:
    print("1 skipped: there is no firefox-esr")
    sys.exit(77)
from served import Server, need, run_cases, train, until

HERE = pathlib.Path(__file__).parent
EXPECT = json.loads((HERE / "expect.json").read_text())
# A free port, and a proxy that is not there for all hosts but this one.
SETTINGS = {"marionette.port": 0, "network.proxy.type": 1, "network.proxy.http": "127.0.0.1",
            "network.proxy.http_port": 9, "network.proxy.ssl": "127.0.0.1",
            "network.proxy.ssl_port": 9}
ERRORS = """return Services.console.getMessageArray()
    .filter((one) => one instanceof Ci.nsIScriptError && !(one.flags & one.warningFlag) &&
        (one.sourceName || one.category).startsWith(arguments[0]))
    .map(String);"""


class Firefox:
    """Speaks Marionette: the length of a message in digits, a colon, JSON."""

    def __init__(self):
        self.home = pathlib.Path(tempfile.mkdtemp())
        (self.home / "user.js").write_text("".join(
            f"user_pref({json.dumps(name)}, {json.dumps(value)});\n"
            for name, value in SETTINGS.items()))
        self.process = subprocess.Popen(
            [FIREFOX, "--headless", "--no-remote", "--marionette", "--remote-allow-system-access",
             "--profile", self.home], env={**os.environ, "HOME": str(self.home)},
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        atexit.register(self.close)
        port = self.home / "MarionetteActivePort"
        until(lambda: port.exists() and port.read_text(), "Firefox does not start", 60)
        self.socket = socket.create_connection(("127.0.0.1", int(port.read_text())), 60)
        self.answers, self.last = self.socket.makefile("rb"), 0
        self.read()
        self.ask("WebDriver:NewSession")

    def read(self):
        digits = b""
        while not digits.endswith(b":"):
            more = self.answers.read(1)
            need(more, "Firefox has ended")
            digits += more
        return json.loads(self.answers.read(int(digits[:-1])))

    def ask(self, command, **params):
        self.last += 1
        message = json.dumps([0, self.last, command, params]).encode()
        self.socket.sendall(b"%d:%s" % (len(message), message))
        _, _, wrong, answer = self.read()
        need(not wrong, f"{command}: {json.dumps(wrong)[:400]}")
        return answer

    def run(self, script, *words):
        return self.ask("WebDriver:ExecuteScript", script=script, args=words)["value"]

    def browser(self, script, *words):
        """Runs in Firefox itself rather than in the page."""
        self.ask("Marionette:SetContext", value="chrome")
        found = self.run(script, *words)
        self.ask("Marionette:SetContext", value="content")
        return found

    def size(self, width):
        self.browser("""const {style} = gBrowser.selectedBrowser;
            style.minWidth = style.maxWidth = arguments[0] + "px";""", width)
        until(lambda: self.run("return innerWidth") == width, f"it is not {width} pixels wide")

    def open(self, address):
        """Waits until the page has been drawn: its state says so."""
        self.run("document.getElementById('page').dataset.shown = '';"
                 "location.hash = arguments[0];", address)
        until(lambda: self.run("return document.getElementById('page').dataset.shown") ==
              f"#{address}", f"{address} is not drawn")

    def close(self):
        self.process.kill()
        self.process.wait()
        shutil.rmtree(self.home, ignore_errors=True)


def numbers(firefox):
    return firefox.run("return document.querySelectorAll('main [data-value]').length")


def pages():
    train(*"lenet5 -n 2 --lanes 8 --steps 120 --profile steps=60..62".split(), out="runs/two")
    with Server("runs") as server:
        firefox = Firefox()
        firefox.ask("WebDriver:Navigate", url=server.link)
        ours = f"http://localhost:{server.port}/"
        addresses = ["runs", "curves?runs=0", *[f"{page}/0" for page in (
            "summary", "workers", "faults", "log", "communication", "timeline", "operators")]]
        for width in (1440, 390):
            firefox.size(width)
            for address in addresses:
                firefox.open(address)
                page = address.split("?")[0].split("/")[0]
                least = 8 if page == "runs" else EXPECT[page]  # of one run
                found = numbers(firefox)
                need(found >= least, f"{address}: {found} numbers, {least} expected")
                wide = firefox.run("return document.documentElement.scrollWidth")
                need(wide <= width, f"{address} is {wide} pixels wide, not {width}")
        firefox.open("runs")
        with open("runs/two/metrics.jsonl", "a") as f:
            f.write('{"step":121,"loss":0.5}\n')
        until(lambda: firefox.run("return document.querySelector('main').innerText")
              .find("121") >= 0, "no live update within 2 s", 2)
        errors = firefox.browser(ERRORS, ours)
        need(not errors, f"on the console: {errors}")


run_cases({"pages in Firefox": pages})
