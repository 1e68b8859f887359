# SPDX-License-Identifier: Apache-2.0
"""A Chromium without a window, driven over a pipe. It finds no address but this machine's."""
import json
import os
import subprocess


class Chromium:
    """Speaks the protocol of its debugger over pipes: JSON, and a zero byte."""

    def __init__(self, program, home):
        ours, theirs = os.pipe(), os.pipe()  # to Chromium, and from it
        self.to, self.pipe = ours[1], os.fdopen(theirs[0], "rb")
        self.last, self.answered, self.rest = 0, [], b""

        def pipes():
            read, write = os.dup(ours[0]), os.dup(theirs[1])
            os.dup2(read, 3)
            os.dup2(write, 4)

        self.process = subprocess.Popen(
            [program, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
             "--disable-background-networking", "--disable-component-update", "--no-first-run",
             "--disable-sync", f"--user-data-dir={home}", "--remote-debugging-pipe",
             "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1", "about:blank"],
            preexec_fn=pipes, pass_fds=(3, 4), stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL)
        os.close(ours[0])
        os.close(theirs[1])

    def read(self):
        while b"\0" not in self.rest:
            more = self.pipe.read1(1 << 16)
            if not more:
                raise EOFError("Chromium has ended")
            self.rest += more
        message, self.rest = self.rest.split(b"\0", 1)
        return json.loads(message)

    def ask(self, method, session=None, **params):
        self.last += 1
        message = {"id": self.last, "method": method, "params": params}
        if session:
            message["sessionId"] = session
        os.write(self.to, json.dumps(message).encode() + b"\0")
        while True:
            answer = self.read()
            if answer.get("method") == "Network.responseReceived":
                self.answered.append(answer["params"]["response"]["url"])
            if answer.get("id") == self.last:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]

    def close(self):
        self.process.kill()
        self.process.wait()
