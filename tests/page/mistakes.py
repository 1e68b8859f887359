# SPDX-License-Identifier: Apache-2.0
"""What one can get wrong with `trireme dashboard`: one line says what, and what would be right;
what can be shown is shown. Usage: mistakes.py PROGRAM [CASE ...]"""
import json
import os
import shutil
import socket
import subprocess

from served import PROGRAM, Server, need, run_cases, train

def refused(*words, says, code=2, program=PROGRAM, **more):
    run = subprocess.run([program, "dashboard", *words], capture_output=True, text=True,
                         timeout=20, **more)
    need(run.returncode == code and says in run.stderr and run.stderr.count("\n") == 1,
         f"{words}: exit code {run.returncode}, {run.stderr or 'no message'}")


def words():
    os.mkdir("empty")
    open("file", "w").close()
    for bad, says in {
            ("nowhere",): "trireme: nowhere: No such file or directory",
            ("file",): "file: Not a directory",
            ("empty", "other"): "one word too many: 'other'; name a directory above both",
            ("empty", "--port", "99999"): "--port is 99999; it can be 1 to 65535",
            ("empty", "--port", "0"): "--port 0: expected a whole number of at least 1",
            ("empty", "--port", "http"): "--port http: expected a whole number",
            ("empty", "--prot", "8080"): "unknown option --prot; do you mean --port?",
            ("empty", "--name", "me"): "--name is for --host",
            ("empty", "--host", "198.51.100.1"): "198.51.100.1 is no address of this machine",
            ("empty", "--host", "nowhere.invalid"): "--host nowhere.invalid: ",
            ("empty", "--token-file", "no/token"): "--token-file no/token: No such file",
            ("empty", "--token-file", "file"): "can be read by others: chmod 600 file"}.items():
        refused(*bad, says=says)
    os.chmod("file", 0o600)
    with open("file", "w") as f:
        f.write("hello\n")
    refused("empty", "--token-file", "file", says="remove it, and a new one is made")


def not_built():
    os.mkdir("alone")
    shutil.copy(PROGRAM, "alone")
    refused(says="libmicrohttpd was missing (Debian: libmicrohttpd-dev)", code=1,
            program=os.path.abspath("alone/trireme"))


def taken():
    """By whom, and the next port is free indeed."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        s.listen()
        port = s.getsockname()[1]
        run = subprocess.run([PROGRAM, "dashboard", ".", "--port", str(port)],
                             capture_output=True, text=True)
        need(f"port {port} is taken by python" in run.stderr and f"pid {os.getpid()};" in
             run.stderr, run.stderr)
        free = int(run.stderr.split("--port ")[1].split()[0])
        with Server(".", port=free) as server:
            need(server.ask("/api/runs").status == 200, "the free port is not")


def other_address():
    """It says what that means, and is reached there alone."""
    with Server(".", "--host", "127.0.0.2") as server:
        need("The connection is not encrypted" in server.said and
             f"ssh -L {server.port}:localhost:{server.port} " in server.said, server.said)
        need(server.link.startswith(f"http://127.0.0.2:{server.port}/"), server.link)
        with socket.socket() as s:
            need(s.connect_ex(("127.0.0.1", server.port)), "localhost reaches it, too")
        with socket.create_connection(("127.0.0.2", server.port)) as s:
            s.sendall(f"GET /?token={server.token} HTTP/1.0\r\nHost: 127.0.0.2\r\n\r\n".encode())
            need(s.recv(100).startswith(b"HTTP/1.1 303"), "it does not answer")


def old_link():
    with Server(".") as server:
        answer = server.ask("/?token=" + "0" * 32, cookie=False)
        need(answer.status == 403 and "this link is an old one" in answer.text, answer.text)
        answer = server.ask("/", cookie=False)
        need(answer.status == 403 and "open the link" in answer.text, answer.text)


def closed():
    """Of a user to whom the directory, the port and a run's files are closed."""
    train("linear", "--steps", "3", out="runs/open")
    os.chmod("runs/open/run.json", 0)
    os.mkdir("closed", 0)
    os.chmod(".", 0o755)
    for name in ("trireme", "trireme-page"):  # the build may be closed, too
        shutil.copy(os.path.join(os.path.dirname(PROGRAM), name), name)
    who = {"program": os.path.abspath("trireme")}
    if os.getuid() == 0:
        who.update(user=65534, group=65534, extra_groups=[])
    refused("closed", says="closed: Permission denied", **who)
    if int(open("/proc/sys/net/ipv4/ip_unprivileged_port_start").read()) > 1:
        refused(".", "--port", "1", says="port 1 is for the administrator alone", **who)
    with Server("runs", **who) as server:
        row, = json.loads(server.ask("/api/runs").text)["runs"]
        need("run.json: Permission denied" in row["trouble"] and row["step"] == 3, row)


run_cases({"words": words, "without libmicrohttpd": not_built, "a port that is taken": taken,
           "another address": other_address, "an old link": old_link, "no permission": closed})
