# SPDX-License-Identifier: Apache-2.0
"""What `trireme doctor --hosts` finds before a run, and what `trireme bench links` and `bench
allreduce` measure.
hosts_doctor.py PROGRAM [CASE ...]; SLOW=1: the long forms."""
import os
import re
import signal
import subprocess
import sys
import time

import bed
from hosts import PROGRAM, Skipped, Wrong, need

# A launcher whose second host answers as CHANGE says: a key of its answers with another value;
# "time" is added to, and "last" is a key with which the host dies.
STAND_IN = """#!/usr/bin/env python3
import json, os, subprocess, sys
change = json.loads(os.environ["CHANGE"])
ssh = ["ssh", *sys.argv[1:]]
if sys.argv[1] != "h1":
    os.execvp("ssh", ssh)
with subprocess.Popen(ssh, stdout=subprocess.PIPE, text=True) as process:
    for line in process.stdout:
        answer = json.loads(line)
        for key in answer.keys() & change.keys():
            answer[key] = answer[key] + change[key] if key == "time" else change[key]
        if change.get("last") in answer:
            process.terminate()
            process.wait()
        print(json.dumps(answer), flush=True)
sys.exit(process.returncode)
"""

# A port whose queue is full, and one at which nothing listens.
LISTEN = """
import socket, sys
full, other = socket.socket(), socket.socket()
for s in (full, other):
    s.bind(("10.77.0.2", 0))
full.listen(0)
tries = [socket.socket() for _ in range(3)]
for s in tries:
    s.setblocking(False)
    s.connect_ex(full.getsockname())
print(full.getsockname()[1], other.getsockname()[1], flush=True)
sys.stdin.read()
"""

# Carries packets between two hosts, each DELAY seconds later.
DELAY = 0.01
LINE = re.compile(r"link +(h\d) to (h\d): ([\d.]+) ms, ([\d.]+) MB/s")


class Doctor:
    """`trireme doctor` on h0."""

    def __init__(self, on, *words, hosts="h0,h1", env=None, command=("doctor",)):
        self.on = on
        self.process = on.popen(0, [PROGRAM, *command, "--hosts", hosts, *words], env=env,
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT, text=True)

    def end(self, code, *said, clean=True):
        """It exits with the code and has said all these, which are regular expressions."""
        text = self.process.communicate(timeout=60)[0]
        need(self.process.returncode == code, f"exit {self.process.returncode}:\n{text}")
        for one in said:
            need(re.search(one, text, re.M), f"no '{one}' in:\n{text}")
        if clean:
            self.on.check_clean(5)
            for host in range(self.on.n):
                left = [f for f in os.listdir(self.on.directory(host)) if f.startswith(".")]
                need(not left, f"left in the directory: {left}")
        return text


def stand_in(on):
    path = f"{on.directory(0)}/stand-in"
    with open(path, "w") as f:
        f.write(STAND_IN)
    os.chmod(path, 0o755)
    return f"{on.path}/stand-in"


def near(value, wanted, what):
    need(abs(value - wanted) <= 0.15 * wanted, f"{what} is {value}, not {wanted}")


def case_well():
    """Everything is well; and the rate is that which has been set."""
    with bed.Bed(2) as on:
        on.rate(1, "200mbit")
        text = Doctor(on, "--port", "7000-7010").end(
            0, "^ok +hosts +h0, h1: started$", "^ok +version .* on all$", "^ok +names ",
            "^ok +clocks ", "^ok +directory +the hosts share run$",
            "^ok +ports .*: h0 10.77.0.1:7001, h1 10.77.0.2:7000$", "^all is well$")
        links = LINE.findall(text)
        need([link[:2] for link in links] == [("h0", "h1"), ("h1", "h0")], text)
        for link in links:  # slow_rates is stricter: the machine may be busy
            need(0 < float(link[3]) <= 1.15 * 25, "MB/s: " + " ".join(link))


def case_faults():
    """Each is named, and what mends it. Meanwhile another doctor waits for a silent port."""
    with bed.Bed(2, shared=False) as on:
        launch = ["--launch", stand_in(on)]
        ports = on.popen(1, [sys.executable, "-c", LISTEN], stdin=subprocess.PIPE,
                         stdout=subprocess.PIPE, text=True)
        full, refused = ports.stdout.readline().split()
        silent = Doctor(on, *launch, hosts="h1,h0",
                        env={"CHANGE": f'{{"address": "10.77.0.2:{full}"}}'})
        Doctor(on, *launch, hosts="h1,h0",
               env={"CHANGE": f'{{"address": "10.77.0.2:{refused}"}}'}).end(
            1, f"^BAD +ports +h0 to h1 at 10.77.0.2:{refused}: refused: nothing listens, or a "
            "firewall answers$", "^ok +directory +each host has its own run",
            "^  ports: let TCP through", "^something is broken$", clean=False)
        Doctor(on, *launch, env={"CHANGE": '{"last": "sees"}'}).end(
            1, "^BAD +ports +h1.* exited with 255$", clean=False)
        for host in (0, 1):
            subprocess.run([PROGRAM, "ckpt", "key", f"{on.directory(host)}/key"], check=True,
                           capture_output=True)
            os.mkdir(f"{on.directory(host)}/run")
        for line in ("sed s/10.77.0.1/127.0.0.1/ /etc/hosts >new; cat new >/etc/hosts; rm new",
                     "mount -t tmpfs -o size=16k full run", "cat /dev/zero >run/zeros"):
            on.run(1, ["sh", "-c", line])
        Doctor(on, *launch, "--key", "key",
               env={"CHANGE": '{"version": "0.0.9", "time": 60000000000, "instructions": '
                              '"\\u001b[2J"}'}).end(
            1, r"^ok +instructions +h0 [^,]*, h1 \\x1b\[2J: f32 gives the same bits on all; ",
            r"^BAD +version +h0 ([\d.]+), h1 0.0.9; this machine \1$",
            "^warn +names +h1: h0 leads to 127.0.0.1, a loopback address$",
            "^BAD +key +h1: key: another key than on this machine$",
            "^BAD +disk +h1: cannot write to run: No space left on device$",
            "^warn +clocks +that of h1 is (60.0|59.9) s before this machine's$",
            "^  version: install the same version on all hosts$",
            "^  clocks: set the clocks by NTP", clean=False)
        silent.end(1, f"^BAD +ports +h0 to h1 at 10.77.0.2:{full}: silent: a firewall drops what "
                   "is sent$", clean=False)
        ports.stdin.close()
        ports.wait()
        on.run(1, ["umount", "run"])
        on.check_clean(5)


def case_left():
    """Nothing is left after Ctrl-C, or a kill, while a host does not answer."""
    with bed.Bed(2) as on:
        for sig, code, command in ((signal.SIGINT, 1, "sh -c 'sleep 1000; :'"),
                                   (signal.SIGKILL, -signal.SIGKILL, "sleep 1000 #")):
            doctor = Doctor(on, "--launch", command)
            until = time.monotonic() + 20
            for wanted in ("sleep 1000", " probe"):
                while not any(command.endswith(wanted) for _, command in on.processes()):
                    need(time.monotonic() < until, f"no {wanted} is started")
                    time.sleep(0.01)
            began = time.monotonic()
            doctor.process.send_signal(sig)
            doctor.end(code)
            need(time.monotonic() - began < 8, "it ends late")


class Delay:
    """The interface `slow` of h0 and h1, between which packets take DELAY seconds."""

    def __init__(self, on):
        self.on = on
        if not os.access("/dev/net/tun", os.W_OK):
            raise Skipped("/dev/net/tun cannot be opened")

    def __enter__(self):
        ours, theirs = os.pipe()
        self.pid = os.fork()
        if not self.pid:
            try:
                self.carry(theirs)
            except BaseException as wrong:
                os.write(theirs, repr(wrong).encode())
            os._exit(1)
        os.close(theirs)
        said = os.read(ours, 500)
        os.close(ours)
        need(said == b"up", f"no delay: {said}")
        for host in (0, 1):
            on_host = self.on.run(host, ["sh", "-c", f"ip addr add 10.78.0.{host + 1}/24 dev slow; "
                                         "ip link set slow up"])
            need(on_host.returncode == 0, on_host.stderr)
        return self

    def __exit__(self, *_):
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)

    def carry(self, up):
        import collections
        import fcntl
        import select
        import struct
        bed.join_namespaces(self.on.first[0], ["user"])
        ends = []
        for host in (0, 1):
            net = os.open(f"/proc/{self.on.first[host]}/ns/net", os.O_RDONLY)
            need(bed.LIBC.setns(net, 0) == 0, "setns")
            end = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
            fcntl.ioctl(end, 0x400454ca, struct.pack("16sH22x", b"slow", 0x1001))
            ends.append(end)
        os.write(up, b"up")
        os.close(up)
        queue = collections.deque()
        while True:
            wait = max(0, queue[0][0] - time.monotonic()) if queue else None
            for end in select.select(ends, [], [], wait)[0]:
                queue.append((time.monotonic() + DELAY, ends[1 - ends.index(end)],
                              os.read(end, 2000)))
            while queue and queue[0][0] <= time.monotonic():
                try:
                    os.write(queue[0][1], queue[0][2])
                except OSError:
                    pass  # the interface is not up yet
                queue.popleft()


def bench(on, *words):
    """(FROM, TO, latency, bandwidth, cpu) of each line of the file that keeps what it measured."""
    cache = f"{on.path}/cache"
    Doctor(on, *words, command=("bench", "links"), env={"XDG_CACHE_HOME": cache}).end(
        0, "^from +to +ms +MB/s +s/GB", f"^written to {cache}/trireme/links$", clean=False)
    lines = open(f"{cache}/trireme/links").read().split("\n")
    need(re.match(r"# trireme bench links, \d{4}-\d\d-\d\d ", lines[0]), lines)
    links = [line.split(" ") for line in lines if line.startswith("link ")]
    need([link[1:3] for link in links] == [["h0", "h1"], ["h1", "h0"]], lines)
    return [[*link[1:3], *map(float, link[3:])] for link in links]


def sums(on, n, *words):
    """(PATH, BYTES, seconds, bytes on the link, share, cpu, 1 if auto) of each line of the file."""
    Doctor(on, *words, "--save", "sums", hosts=",".join(f"h{i}" for i in range(n)),
           command=("bench", "allreduce")).end(
        0, r"^the slowest link: [\d.]+ ms, ", "^size +path +ms +MB +of line +s/GB",
        "^written to sums$")
    rows = [line.split(" ") for line in open(f"{on.path}/sums") if line.startswith("sum ")]
    need(all(row[1] == str(n) for row in rows), rows)
    return [[row[2], int(row[3]), *map(float, row[4:])] for row in rows]


def case_sums():
    """Every size by every path that there is, with as many bytes as its schedule has."""
    with bed.Bed(3) as on:
        rows = sums(on, 3, "--sizes", "1K,2M", "--wire-open")
        need([row[:2] for row in rows] == [[path, size << 10] for size in (1, 2048)
                                           for path in ("exchange", "ring", "root")], rows)
        for path, size, seconds, moved, share, cpu, _ in rows:
            need(seconds > 0 and share > 0 and cpu > 0, rows)
            need(path == "ring" or moved == 2 * size, rows)
            need(path != "ring" or size < 2 << 20 or 4 / 3 * size < moved < 1.8 * size, rows)
        need([sum(row[6] for row in rows if row[1] == size << 10) for size in (1, 2048)] == [1, 1],
             rows)
        on.rate(1, "200mbit")
        row = sums(on, 2, "--sizes", "1M", "--path", "ring")[0]
        need(row[3] / row[2] <= 1.15 * 25e6, row)  # it may be slower, as the machine may be busy


def slow_bench():
    """The latency is that which has been set; over an interface that is not the usual one."""
    with bed.Bed(2) as on, Delay(on):
        for link in bench(on, "--interface", "slow"):
            near(link[2], 2 * DELAY, f"latency: {link}")
            need(link[3] > 1e5 and 0.05 < link[4] < 100, link)


def slow_rates():
    """The bandwidth is that which has been set."""
    with bed.Bed(2) as on:
        for mbit in (20, 100, 300):
            on.rate(1, f"{mbit}mbit")
            for link in bench(on):
                near(link[3], mbit * 1e6 / 8, f"bandwidth: {link}")
                need(link[2] < 0.01, link)
        on.check_clean(5)


def slow_never():
    """A host that never answers is named within the timeout."""
    with bed.Bed(2) as on:
        began = time.monotonic()
        Doctor(on, "--launch", "sleep 1000 #").end(
            1, "^BAD +hosts +h1: it did not answer for 20 s$", "^ok +hosts +h0: started$")
        need(time.monotonic() - began < 27, "it ends late")


def slow_firewall():
    """Rules of the kernel that drop what comes to a port, or refuse it."""
    for kind, said in (("blackhole", "silent: a firewall drops"),
                       ("prohibit", "(No route to host|Permission denied)")):
        with bed.Bed(3) as on:
            for rule in ("add pref 100 lookup local", "del pref 0",
                         f"add pref 50 iif eth0 ipproto tcp dport 7000 {kind}"):
                made = on.run(1, ["ip", "rule", *rule.split()])
                need(made.returncode == 0, made.stderr)
            # Without it the kernel only drops.
            on.run(1, ["sh", "-c", "echo 1 >/proc/sys/net/ipv4/ip_forward"])
            text = Doctor(on, "--port", "7000-7010", hosts="h0,h1,h2").end(
                1, f"^BAD +ports +h2 to h1 at 10.77.0.2:7000: {said}",
                f"^warn +ports +h0 to h1 at 10.77.0.2:7000: {said}.* does without",
                "let TCP to the ports 7000-7010 through between all hosts")
            need(len(LINE.findall(text)) == 4, text)


def slow_hosts():
    """Of many hosts each one and the next are measured."""
    with bed.Bed(8, shared=False) as on:
        text = Doctor(on, hosts=",".join(f"h{i}" for i in range(8))).end(0, "^ok +ports ")
        links = [link[:2] for link in LINE.findall(text)]
        need(links == [(f"h{i}", f"h{(i + 1) % 8}") for i in range(8)], text)


def case_mistakes():
    """One line that says what would be right."""
    for words, said, code in (
            (["doctor", "--key", "k"], "add --hosts NAMES", 2),
            (["doctor", "h0"], "doctor: one word too many: 'h0'", 2),
            (["doctor", "--hosts", "h0,h0"], "it is named twice", 2),
            (["doctor", "--hosts", "h0", "--port", "70000"], "--port 70000", 2),
            (["doctor", "--hosts", "h0", "--key", "/nowhere"], "/nowhere: No such file", 1),
            (["bench", "links"], "trireme bench links --hosts h0,h1", 2),
            (["bench", "allreduce", "h0"], "bench allreduce: one word too many: 'h0'", 2),
            (["bench", "allreduce", "--path", "ring"], "takes --sizes and --save alone", 2),
            (["bench", "allreduce", "--sizes", "1K,,"], "sizes from 4 to 4G: 1K,64K,1M", 2),
            (["bench", "allreduce", "--hosts", "h0,h0"], "it is named twice", 2),
            (["bench", "links", "--hosts", "h0,h1", "--key", "k"], "--key has no effect", 2)):
        made = subprocess.run([PROGRAM, *words], capture_output=True, text=True, timeout=30)
        need(made.returncode == code and said in made.stderr and made.stderr.count("\n") == 1,
             f"{words}: exit {made.returncode}:\n{made.stderr}")


if __name__ == "__main__":
    import hosts
    hosts.main("hosts_doctor", globals())
