# SPDX-License-Identifier: Apache-2.0
"""The hosts of a test bed are apart where machines are, and nothing of them remains.

Usage: test_bed.py PROGRAM [PART OF A CASE'S NAME ...]"""
import os
import re
import select
import shutil
import signal
import subprocess
import sys
import time

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../parallel"))
from bed import SCRIPT, Bed, Failed, NoBed, require
from runs import PROGRAM, need, run_cases, wait_for

# Answers each line with itself; after a line "put N", N bytes come first.
SERVER = """
import socket, sys, threading
listener = socket.create_server((sys.argv[1], 7000))
print("ready", flush=True)
def answer(connection):
    with connection, connection.makefile("rwb", 0) as file:
        for line in file:
            left = int(line[4:]) if line.startswith(b"put ") else 0
            while left:
                left -= len(file.read(min(left, 65536)))
            file.write(line)
while True:
    threading.Thread(target=answer, args=[listener.accept()[0]], daemon=True).start()
"""
# Sends each line of its input and prints the answer.
CLIENT = 'exec 3<>/dev/tcp/$0/7000; while read x; do echo $x >&3; read y <&3; echo $y; done'
KINDS = ("pid", "net", "mnt", "uts", "user")
PIPES = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}


def serve(bed, host, address="0.0.0.0"):
    server = bed.popen(host, [sys.executable, "-c", SERVER, address], **PIPES)
    need(server.stdout.readline() == "ready\n", "the server does not start")


def connect(bed, host, to):
    return bed.popen(host, ["bash", "-c", CLIENT, to], **PIPES)


def ask(client, word):
    client.stdin.write(word + "\n")
    client.stdin.flush()


def told(client, word):
    ready = select.select([client.stdout], [], [], 10)[0]
    return bool(ready) and client.stdout.readline() == word + "\n"


def reached(bed, ways, limit):
    """Those of the (host, name) pairs of which the host gets an answer, all asked at once."""
    line = "exec 3<>/dev/tcp/$0/7000 && echo x >&3 && read y <&3"
    asking = [bed.popen(host, ["timeout", limit, "bash", "-c", line, to],
                        stderr=subprocess.DEVNULL) for host, to in ways]
    return [way for way, process in zip(ways, asking) if process.wait() == 0]


def reaches(bed, host, to):
    return bool(reached(bed, [(host, to)], 5))


def own_places(bed):
    for host in range(bed.n):
        run = bed.run(host, ["sh", "-c", "hostname; uname -n; ls -A /tmp /dev/shm; ps -e | wc -l;"
                             "echo mine >/dev/shm/x; echo mine >/tmp/x; cat /tmp/x /dev/shm/x"])
        top = bed.bed.split("/")[2]
        words = run.stdout.split()
        need(words[:2] == [f"h{host}"] * 2 and words[-2:] == ["mine"] * 2 and int(words[-3]) < 9,
             f"{run.stdout} {run.stderr}")
        need(set(words[2:-3]) <= {"/tmp:", "/dev/shm:", top, *(p.split("/")[2] for p in bed.see
                                                              if p.startswith("/tmp/"))},
             run.stdout)
        for place in ("/", "/dev", "/var/tmp", os.path.expanduser("~")):
            run = bed.run(host, ["touch", f"{place}/x"])
            need(run.returncode, f"{place} can be written")
    try:
        bed.check_clean()
    except Failed as left:
        files = [f"h{host}:{place}/x" for host in range(bed.n) for place in ("/dev/shm", "/tmp")]
        need(str(left).split("\n")[1:] == files, str(left))
    else:
        need(False, "files are overlooked")
    finally:
        for host in range(bed.n):
            bed.run(host, ["rm", "/tmp/x", "/dev/shm/x"])
    run = bed.run(1, [PROGRAM, "--version"])
    need(run.returncode == 0, f"the program does not run on a host: {run.stderr}")


def directories(bed):
    with Bed(2, shared=False) as apart:
        need(apart.path == apart.run(0, ["pwd"]).stdout.strip(), "a command does not begin in DIR")
        for one, same in ((bed, True), (apart, False)):
            one.run(0, ["sh", "-c", "echo zero >a; chmod 600 a"])
            need((one.run(1, ["cat", "a"]).stdout == "zero\n") == same, f"DIR, shared: {same}")
            need(open(one.directory(0) + "/a").read() == "zero\n", "the test does not see DIR")
            need(os.path.exists(one.directory(1) + "/a") == same, "the test sees the wrong DIR")
            one.check_clean()


def names(bed):
    run = bed.run(1, ["getent", "ahostsv4", "h0", "h1", "h2", "localhost"])
    need(re.findall(r"(\S+) +STREAM", run.stdout) ==
         ["10.77.0.1", "127.0.1.1", "10.77.0.3", "127.0.0.1"], run.stdout)


def network(bed):
    serve(bed, 1)
    client = connect(bed, 0, "h1")
    ask(client, "hello")
    need(told(client, "hello"), "h0 does not reach h1")
    serve(bed, 2, "127.0.0.1")
    need(reaches(bed, 2, "127.0.0.1"), "a host does not reach its loopback")
    for to in ("h2", "127.0.0.1", "127.0.1.1"):
        need(not reaches(bed, 0, to), f"h0 reaches {to}")
    need(reaches(bed, 1, "h1"), "h1 does not reach itself by its name")


def cables(bed):
    serve(bed, 1)
    client = connect(bed, 0, "h1")
    ask(client, "before")
    need(told(client, "before"), "h0 does not reach h1")
    bed.cut(1)
    ask(client, "meanwhile")
    need(not select.select([client.stdout], [], [], 0.3)[0], "a cut host answers, or all ends")
    need(reaches(bed, 1, "127.0.0.1"), "a cut host does not reach itself")
    bed.heal(1)
    need(told(client, "meanwhile"), "a connection does not survive a short cut")


def partition(bed):
    for host in range(4):
        serve(bed, host)
    ways = [(a, f"h{b}") for a in range(4) for b in range(4) if a < b]
    bed.part([[0, 1], [2, 3]])
    need(reached(bed, ways, 0.5) == [(0, "h1"), (2, "h3")], "the wrong hosts are apart")
    bed.join()
    # An address that was asked for meanwhile is asked for again after a second.
    need(reached(bed, ways, 10) == ways, "hosts are apart after join")
    for wrong in ([[0, 1], [2]], [[0, 1], [1, 2, 3]], [[0, 1, 2, 3, 4]]):
        try:
            bed.part(wrong)
        except Failed:
            continue
        need(False, f"the partition {wrong} is accepted")


def rates(bed):
    line = ("exec 3<>/dev/tcp/$0/7000; a=${EPOCHREALTIME/./};"
            "{ echo put 2000000; head -c 2000000 /dev/zero; } >&3; read y <&3;"
            "echo $((${EPOCHREALTIME/./} - a))")

    def seconds(host, to):
        return int(bed.run(host, ["bash", "-c", line, to]).stdout) / 1e6

    serve(bed, 1)
    serve(bed, 2)
    bed.rate(1, 100_000_000)
    slow = [seconds(0, "h1"), seconds(1, "h2")]
    fast = seconds(0, "h2")
    bed.rate(1, None)
    free = seconds(0, "h1")
    said = f"{slow[0]:.2f} and {slow[1]:.2f} s of 0.16, others {fast:.2f}, without {free:.2f}"
    need(all(0.12 < one < 2 for one in slow) and fast < min(slow) and free < min(slow), said)
    return said


def clocks(_):
    """A clock is ahead, whether the command was started by a test, by hosts.sh or by ssh."""
    def now(host):
        read = [sys.executable, "-c", "import time; print(time.monotonic())"]
        line = f"{read[0]} -c '{read[2]}'"
        return [float(said) for said in (
            on.run(host, read).stdout, on.script("run", f"h{host}", "--", *read),
            on.run(1 - host, ["ssh", f"h{host}", line]).stdout)]

    try:
        with Bed(2, ahead=1000) as on:
            before, ahead, after = now(0), now(1), now(0)
    except NoBed as reason:
        return f"skipped: {reason}"
    need(max(before) < min(ahead) - 1000 and max(ahead) - 1000 < min(after),
         f"{before}, {ahead}, {after}")
    return ""


def kills(bed):
    line = "sleep 900 & (setsid sleep 901 >/dev/null 2>&1 &); echo on; exec sleep 902"
    started = [bed.popen(host, ["sh", "-c", line], **PIPES) for host in (0, 1)]
    for process in started:
        need(process.stdout.readline() == "on\n", "it does not start")
    all_three = ["sleep 900", "sleep 901", "sleep 902"]
    wait_for(lambda: all(sorted(c for _, c in bed.processes(host)) == all_three for host in (0, 1)),
             "not all run", 5)
    os.kill(next(pid for pid, c in bed.processes(0) if c == "sleep 900"), signal.SIGSTOP)
    try:
        bed.check_clean()
    except Failed as left:
        need(all(f": {c}\n" in f"{left}\n" for c in all_three), str(left))
    else:
        need(False, "processes are overlooked")
    bed.kill(0)
    need(started[0].wait(5) == -signal.SIGKILL and bed.processes(0) == [], "they live")
    need(sorted(c for _, c in bed.processes(1)) == all_three, "those of another host ended, too")
    need(bed.run(0, ["echo", "again"]).stdout == "again\n", "the host cannot be used again")


def signals(bed):
    process = bed.popen(0, ["sleep", "900"])
    need((process.inner, "sleep 900") in bed.processes(0), "it is not among the processes")
    for number in (signal.SIGSTOP, signal.SIGCONT, signal.SIGTERM):
        process.send_signal(number)
    need(process.wait(5) == -signal.SIGTERM, "its end is not told")
    need(bed.run(0, ["sh", "-c", "exit 9"]).returncode == 9, "its exit code is not told")
    try:
        bed.run(0, ["sleep", "900"], timeout=0.1)
    except subprocess.TimeoutExpired:
        bed.check_clean(1)
    else:
        need(False, "a timeout is ignored")


def pins(bed):
    core = max(os.sched_getaffinity(0))
    early = bed.popen(2, ["sleep", "900"])
    bed.pin(2, core)
    late = bed.popen(2, ["sleep", "900"])
    need(all(os.sched_getaffinity(p.inner) == {core} for p in (early, late)), "not pinned")
    run = bed.run(0, ["ssh", "h2", "grep Cpus_allowed_list /proc/self/status"])
    need(run.stdout.split()[-1:] == [str(core)], run.stdout)


def ssh(bed):
    def call(*words, **more):
        return bed.run(0, ["ssh", "-T", "-o", "BatchMode=yes", *words], **more)

    run = call("h1", "hostname; pwd; echo bad >&2; cat; exit 3")
    need((run.stdout, run.stderr, run.returncode) == (f"h1\n{bed.path}\n", "bad\n", 3), str(run))
    run = call("nobody", "true")
    need(run.returncode == 255 and "nobody" in run.stderr, str(run))
    client = bed.popen(0, ["ssh", "h1", "cat"], **PIPES)
    ask(client, "line")
    need(told(client, "line"), "input does not arrive")
    bed.kill(1)
    need(client.wait(5) == 255, "the death of a host is not told")


def gone(kinds, bed_path):
    """No process in any namespace of a bed (a dead one that nobody has waited for is none), and no
    file."""
    for entry in filter(str.isdigit, os.listdir("/proc")):
        try:
            if open(f"/proc/{entry}/stat").read().rsplit(")", 1)[1].split()[0] in "ZX":
                continue
            if any(os.stat(f"/proc/{entry}/ns/{kind}").st_ino in kinds for kind in KINDS):
                return False
        except OSError:
            continue  # it has ended, or is not ours
    return not os.path.exists(bed_path)


def removal(_):
    before = open("/proc/self/mountinfo").read()
    for how in ("remove", "the death of the test"):
        bed = Bed(2)
        child = 0
        if how == "remove":
            bed.__enter__()
        else:
            ours, theirs = os.pipe()
            child = os.fork()
            if child == 0:
                try:
                    with bed:
                        bed.popen(0, ["sleep", "900"])
                        os.write(theirs, b"on")
                        signal.pause()
                finally:
                    os._exit(1)
            os.close(theirs)
            need(os.read(ours, 2) == b"on", "no bed in a child")
        firsts = [int(open(f"{bed.bed}/pids/{name}").read()) for name in ("bed", "h0", "h1")]
        # Namespaces that are held open keep their numbers, which else another test's bed may get.
        held = [os.open(f"/proc/{pid}/ns/{kind}", os.O_RDONLY) for pid in firsts for kind in KINDS]
        kinds = {os.fstat(fd).st_ino for fd in held}
        need(len(kinds) == 13 and not gone(kinds, "/nowhere"), f"{len(kinds)} namespaces")
        if child:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
        else:
            process = bed.popen(0, ["sh", "-c", "setsid sleep 900 & exec sleep 901"])
            bed.remove()
            need(process.wait(5) == -signal.SIGKILL, "a process lives after remove")
        wait_for(lambda: gone(kinds, bed.bed), f"something is left after {how}", 5)
        for fd in held:
            os.close(fd)
    need(open("/proc/self/mountinfo").read() == before, "mounts are left")


def ordinary_user(_):
    if os.getuid():
        return
    place = "/tmp/trireme-bed-user-%d" % os.getpid()
    os.makedirs(place + "/scripts")
    try:
        shutil.copy(SCRIPT, place + "/scripts")
        subprocess.run(["chmod", "-R", "a+rX", place], check=True)
        line = (f'h() {{ bash {place}/scripts/hosts.sh "$@"; }}; h make 2 && '
                "h run h0 -- ssh h1 'hostname; id -u' && h rate h1 1000000 && h part h0 h1 &&"
                "h kill h0 && h remove")
        run = subprocess.run(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "bash",
                              "-c", line], capture_output=True, text=True, cwd="/",
                             env={**os.environ, "HOSTS_BED": place + "-bed"})
        need(run.returncode == 0 and run.stdout.endswith("\nh1\n0\n"), f"{run.stdout}{run.stderr}")
    finally:
        shutil.rmtree(place)


def cases(bed):
    def tidy(case):
        def run():
            try:
                said = case(bed)
            finally:
                for host in range(bed.n):
                    bed.kill(host)
            bed.check_clean()
            return said
        return run

    return {name: tidy(case) for name, case in {
        "own places": own_places, "directories": directories, "names": names, "network": network,
        "cut and heal": cables, "partition": partition, "rate": rates, "clocks": clocks,
        "kill": kills, "signals": signals, "pin": pins, "ssh": ssh, "remove": removal,
        "an ordinary user": ordinary_user}.items()}


require("hosts_bed")
with Bed(4) as made:
    run_cases(cases(made), sys.argv[2:])
