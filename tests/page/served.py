# SPDX-License-Identifier: Apache-2.0
"""Shared by the tests of the page: a server of `trireme dashboard`, runs that it shows, cases."""
import http.client
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
import urllib.parse

PROGRAM = os.path.abspath(sys.argv[1])


class Wrong(Exception):
    pass


def need(condition, text):
    if not condition:
        raise Wrong(text)


def train(*words, out, check=True):
    os.makedirs(os.path.dirname(out) or ".", exist_ok=True)
    return subprocess.run([PROGRAM, "train", *words, "--quiet", "--out", out], check=check,
                          stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)


def lines(path):
    """Those that are whole, of a file that is being written."""
    if not os.path.exists(path):
        return []
    with open(path) as f:
        return [json.loads(line) for line in f if line.endswith("\n")]


def events(out, name):
    return [one for one in lines(f"{out}/agent.log") if one["event"] == name]


def start_two(out, steps, *words):
    """A run of two workers, and the number of worker 1's process."""
    process = subprocess.Popen(
        [PROGRAM, "train", "lenet5", "-n", "2", "--lanes", "8", "--steps", str(steps), *words,
         "--quiet", "--out", out], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    until(lambda: len(events(out, "rowing")) == 2, f"{out} does not begin")
    return process, next(one["pid"] for one in events(out, "start") if one["worker"] == 1)


def train_killed(out, *words):
    """Worker 1 is killed at the beginning."""
    process, worker = start_two(out, 200, *words)
    os.kill(worker, signal.SIGKILL)
    need(process.wait(60) == 0, f"{out} has failed")


class Server:
    def __init__(self, directory, *words, port=0, program=PROGRAM, **more):
        self.port = port or free_port()
        self.log = tempfile.TemporaryFile("w+")
        self.process = subprocess.Popen(
            [program, "dashboard", directory, "--port", str(self.port), *words],
            stdout=subprocess.PIPE, stderr=self.log, text=True, **more)
        self.said = ""
        while "?token=" not in self.said:
            line = self.process.stdout.readline()
            need(line, f"no link: {self.said}{self.errors()}")
            self.said += line
        self.link = re.search(r"http://\S+", self.said)[0]
        self.token = self.link.split("=")[1]
        self.cookie = None

    def errors(self):
        self.log.seek(0)
        return self.log.read()

    def ask(self, path, method="GET", cookie=True, **headers):
        """The answer, with its body as `text`."""
        c = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        headers = {name.replace("_", "-"): value for name, value in headers.items()}
        if cookie:
            headers["Cookie"] = self.login()
        c.putrequest(method, path, skip_host="Host" in headers)
        for name, value in headers.items():
            c.putheader(name, value)
        c.endheaders()
        answer = c.getresponse()
        answer.text = answer.read().decode(errors="replace")
        c.close()
        return answer

    def login(self):
        if not self.cookie:
            answer = self.ask(urllib.parse.urlsplit(self.link).path + "?token=" + self.token,
                              cookie=False)
            self.cookie = answer.headers["Set-Cookie"].split(";")[0]
        return self.cookie

    def close(self):
        self.process.terminate()
        code = self.process.wait(20)
        self.process.stdout.close()
        self.log.close()
        return code

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def free_port():
    import socket
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def until(holds, text, limit=20):
    end = time.monotonic() + limit
    while not (found := holds()):
        need(time.monotonic() < end, text)
        time.sleep(0.02)
    return found


def run_cases(cases):
    """Those whose names have one of the words after the first two, or all; in a new directory."""
    wanted, failed, passed = sys.argv[2:], 0, 0
    work = tempfile.mkdtemp(prefix="page")
    os.chdir(work)
    try:
        for name, case in cases.items():
            if wanted and not any(word in name for word in wanted):
                continue
            began = time.monotonic()
            try:
                case()
                passed += 1
                print(f"ok {name} ({time.monotonic() - began:.1f} s)", flush=True)
            except (Wrong, subprocess.SubprocessError) as wrong:
                failed += 1
                print(f"not ok {name}\n    {wrong}", flush=True)
            except Exception:
                failed += 1
                print(f"not ok {name}\n{traceback.format_exc()}", flush=True)
    finally:
        os.chdir("/")
        shutil.rmtree(work, ignore_errors=True)
    print(f"{passed} passed, {failed} failed")
    sys.exit(failed > 0)
