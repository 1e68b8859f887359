# SPDX-License-Identifier: Apache-2.0
"""Runs over several hosts: the bits, and what happens when one dies, stops or is cut off. Each run
must end with the hash that one process has. hosts.py PROGRAM [CASE ...]; SLOW=1: the long forms."""
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
import traceback

import bed

PROGRAM = os.path.abspath(sys.argv[1])
SLOW = bool(os.environ.get("SLOW"))
LIMIT = int(os.environ.get("LIMIT", 120))  # seconds after which a run counts as hung
SMALL = ["--threads-per-worker", "1", "--quiet"]


class Wrong(Exception):
    pass


def need(condition, text):
    if not condition:
        raise Wrong(text)


def done(text):
    """Steps, loss and hashes of the last line."""
    lines = [line for line in text.split("\n") if line.startswith("done ")]
    need(len(lines) == 1, f"{len(lines)} last lines:\n{text[-1500:]}")
    return re.sub(r" seconds=.*", "", lines[0])


ALONE = {}


def alone(words, beside=()):
    """What one process ends with."""
    key = tuple(words)
    if key not in ALONE:
        made = subprocess.run([PROGRAM, "train", *words, "--quiet"], capture_output=True,
                              text=True, timeout=LIMIT, cwd=os.environ["HOSTS_WORK"])
        need(made.returncode == 0, made.stderr)
        ALONE[key] = done(made.stdout)
    return ALONE[key]


class Run:
    """A run on a bed, begun on host `at`."""

    def __init__(self, on, words, hosts, at=0, more=()):
        self.on, self.words = on, words
        self.log = open(f"{on.directory(at)}/log", "w+")
        self.process = on.popen(at, [PROGRAM, "train", *words, *SMALL, "--hosts", hosts, *more],
                                stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log)

    def text(self):
        self.log.flush()
        return open(self.log.name).read()

    def wait_for(self, what, limit=60):
        until = time.monotonic() + limit
        while not re.search(what, self.text()):
            need(self.process.poll() is None and time.monotonic() < until,
                 f"no '{what}' in:\n{self.text()}")
            time.sleep(0.01)

    def steps(self, least, limit=60):
        """Waits until metrics.jsonl has so many steps."""
        until = time.monotonic() + limit
        count = 0
        while count < least:
            need(self.process.poll() is None and time.monotonic() < until,
                 f"{count} steps of {least}:\n{self.text()}")
            time.sleep(0.01)
            count = max(self.metrics(host) for host in range(self.on.n))

    def metrics(self, host):
        try:
            return open(f"{self.on.directory(host)}/run/metrics.jsonl").read().count('"step"')
        except FileNotFoundError:
            return 0

    def end(self, code=0):
        """The run ends; returns what it printed."""
        try:
            self.process.wait(LIMIT)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise Wrong(f"it hangs:\n{self.text()}")
        need(self.process.returncode == code, f"exit {self.process.returncode}:\n{self.text()}")
        for host in range(self.on.n):
            self.on.heal(host)
        self.on.check_clean(15)
        return self.text()

    def same(self):
        """The run ends as one process does."""
        text = self.end()
        need(done(text) == alone(self.words), f"another result than {alone(self.words)}:\n{text}")
        return text


class Outside:
    """A run that a launcher has started: `on` is the bed, `log` what is printed. It is seen by its
    files, whatever the launcher does."""

    def text(self):
        return open(self.log.name).read()

    def seen(self):
        """What helps if it hangs."""
        return "\n".join(command for _, command in self.on.processes())

    def until(self, what, limit=LIMIT):
        end = time.monotonic() + limit
        while not what():
            need(time.monotonic() < end, f"it hangs:\n{self.text()}\n{self.seen()}")
            time.sleep(0.01)

    def steps(self, least):
        path = f"{self.on.path}/run/metrics.jsonl"
        self.until(lambda: os.path.exists(path) and open(path).read().count('"step"') >= least)

    def exit(self):
        """What DIR/exit says."""
        path = f"{self.on.path}/run/exit"
        self.until(lambda: os.path.exists(path))
        return int(open(path).read())


def names(n, workers=1):
    return ",".join(f"h{i}:{workers}" for i in range(n))


# ---- bits ----

MLP = ["mlp", "--steps", "12", "--lanes", "8"]
LAMB = ["mlp", "--steps", "12", "--lanes", "7", "--optimizer", "lamb", "--clip-norm", "0.5"]
LENET = ["lenet5", "--steps", "6", "--lanes", "8", "--eval-data", "synthetic:size=100",
         "--eval-every", "2", "--early-stop", "1"]
RESNET = ["resnet18:form=small,size=32,width=16,classes=10", "--steps", "3", "--lanes", "8",
          "--batch", "16"]
BERT = ["bert-tiny:seq=16,dropout=0.1,vocab=1000", "--steps", "4", "--lanes", "8", "--batch", "8"]
GPT = ["gpt2-tiny:seq=32,vocab=1000", "--steps", "3", "--lanes", "4", "--batch", "8"]
MESH = [*GPT, "--mesh", "model=2", "--strategy", "megatron"]
STAGES = [*GPT, "--stages", "2"]


def bits(words, hosts, shared=True, more=()):
    """With the forms of the table's rows on one bed, one after the other."""
    with bed.Bed(len(hosts.split(",")), shared) as on:
        for one in words if isinstance(words[0], list) else [words]:
            Run(on, one, hosts, more=more).same()


def case_bits_2():
    bits([MLP, BERT], names(2))


def case_bits_3():
    bits([LAMB], names(3), shared=False)


def case_bits_workers():
    bits([LENET, MESH, STAGES], "h0:2,h1:2")


def slow_bits():
    for words in (MLP, LAMB, LENET, RESNET, BERT, MESH, STAGES):
        for hosts in range(1, 5):
            for workers in (1, 2):
                bits(words, names(hosts, workers), shared=hosts % 2 == 0)


def slow_plain():
    """Hosts whose kernels are of different processors."""
    with bed.Bed(2, shared=False) as on:
        host = f"{on.directory(0)}/start"
        with open(host, "w") as f:
            f.write('#!/bin/sh\nexec ssh "$1" "export TRIREME_ISA=plain; $2"\n')
        os.chmod(host, 0o755)
        run = Run(on, LENET, names(2), more=["--launch", f"{on.path}/start"])
        run.steps(1)
        plain = [pid for pid, _ in on.processes(1)
                 if b"TRIREME_ISA=plain" in open(f"/proc/{pid}/environ", "rb").read()]
        need(plain, "h1 has not the plain kernels")
        run.same()


def slow_checkpoints():
    """Taken on two hosts that share DIR, resumed on three and then by one process."""
    def words(steps):
        return ["mlp", "--steps", str(steps), "--lanes", "8"]
    keep = ["--ckpt", "ck", "--save-every", "5"]
    with bed.Bed(3) as on:
        Run(on, words(10), names(2, 2), more=[*keep, "--audit", "0.5"]).same()
        Run(on, words(20), names(3), more=[*keep, "--resume"]).same()
        made = on.run(2, [PROGRAM, "train", *words(30), *keep, "--resume", "--quiet"])
        need(done(made.stdout) == alone(words(30)), made.stdout + made.stderr)


def slow_resume_apart():
    """Each host has a DIR of its own, and one the checkpoint: the other fetches its state."""
    def words(steps):
        return ["mlp", "--steps", str(steps), "--lanes", "8"]
    keep = ["--ckpt", "ck", "--save-every", "5"]
    with bed.Bed(2, shared=False) as on:
        Run(on, words(10), "h1,h0", more=keep).same()
        need(os.path.isdir(f"{on.directory(1)}/ck/step-000000010"), "the teller has saved nothing")
        text = Run(on, words(300), names(2), more=[*keep, "--resume"]).same()
        need("host h0: its checkpoint is of step 0, and that of host h1 of step 10" in text and
             "host h0 has joined in step" in text, text)


# ---- over UCX ----

UCX = ["--link", "ucx"]


class Skipped(Exception):
    """The program was built without what the case needs."""


def need_ucx():
    if not os.path.exists(os.path.dirname(PROGRAM) + "/libtrireme-ucx.so"):
        raise Skipped("libtrireme-ucx.so is not built: libucx was missing")


def case_bits_ucx():
    need_ucx()
    bits(MLP, names(2), more=UCX)
    if SLOW:
        bits(LAMB, names(3), shared=False, more=UCX)
        bits(LENET, "h0:2,h1:1", more=UCX)


def case_missing_ucx():
    """A program without the shared object says so before anything starts."""
    with bed.Bed(2) as on:
        alone_here = f"{on.directory(0)}/trireme"
        shutil.copy(PROGRAM, alone_here)
        made = on.run(0, [alone_here, "train", *MLP, "--hosts", names(2), *UCX])
        need(made.returncode == 2 and "install libucx" in made.stderr and
             made.stderr.count("\n") == 1, f"exit {made.returncode}:\n{made.stderr}")
        on.check_clean(5)


def slow_death_ucx():
    need_ucx()
    death(kill_host, hosts=3, victims=(2,), words=[*LONG[:2], "150", *LONG[3:]], more=UCX)
    if SLOW:
        death(kill_ferry, more=UCX)
        death(cut_host, more=[*UCX, "--lease", "0.5"])


# What UCX takes for the begin of a connection of its own, with a message of the most that 31 bits
# can say; and megabytes.
HARM = """
import os, socket, struct, sys
head = struct.pack("<QBI", 0xCAFEBABE12345678, 0, 2 ** 31 - 1)
random = os.urandom(1 << 20)
for port in map(int, sys.argv[2:]):
    try:
        with socket.create_connection((sys.argv[1], port), timeout=1) as s:
            for part in (head, random, random, random, random):
                s.sendall(part)
    except OSError:
        pass
"""


def slow_harm_ucx():
    """UCX trusts whoever reaches its ports. What they send may kill ferries, which are replaced."""
    need_ucx()
    with bed.Bed(2, shared=False) as on:
        run = Run(on, [*LONG[:2], "6000" if SLOW else "400", *LONG[3:]], names(2), more=UCX)
        run.steps(2)
        one, times = on.processes(0)[0][0], 0
        while times < (100 if SLOW else 3) and run.process.poll() is None:
            ports = [str(port) for port in listeners(one)]
            on.run(1, ["python3", "-c", HARM, "10.77.0.1", *ports])
            times += 1
        run.same()
        need(times > (50 if SLOW else 1), f"the run was over after {times} times")


# ---- deaths ----

LONG = ["mlp", "--steps", "250" if SLOW else "120", "--lanes", "8"]


def agent_of(on, host):
    """The number of the agent's process."""
    found = [pid for pid, command in on.processes(host) if " join " in command and
             "sh -c" not in command and "/bin/sh" not in command]
    need(len(found) == 1, f"no one agent on h{host}: {on.processes(host)}")
    return found[0]


def ferry_of(on, host):
    found = [pid for pid, command in on.processes(host) if "trireme ferry" in command]
    need(len(found) == 1, f"no one ferry on h{host}: {on.processes(host)}")
    return found[0]


def kill_host(on, host):
    on.kill(host)


def kill_agent(on, host):
    os.kill(agent_of(on, host), signal.SIGKILL)


def kill_ferry(on, host):
    os.kill(ferry_of(on, host), signal.SIGKILL)


def stop_agent(on, host):
    os.kill(agent_of(on, host), signal.SIGSTOP)


def cut_host(on, host):
    on.cut(host)


def death(how, hosts=2, victims=(1,), words=LONG, at=None, more=(), first=0):
    """The coordinator is on h0, which lives; the teller on the host `first`. Returns the seconds
    until the first victim's lanes were given to others."""
    order = [first] + [host for host in range(hosts) if host != first]
    took = None
    with bed.Bed(hosts, shared=False) as on:
        run = Run(on, words, ",".join(f"h{host}:1" for host in order), more=more)
        run.steps(at or random.randint(2, 60))
        began = time.monotonic()
        for host in victims:
            how(on, host)
        if how is not kill_ferry:
            run.wait_for(f"host h{victims[0]} has gone in step")
            took = time.monotonic() - began
        text = run.same()
        for host in victims:
            gone = f"host h{host} has gone in step"
            need(gone in text or how is kill_ferry, f"no word of h{host}:\n{text}")
    return took


def case_death_host():
    death(kill_host)


def case_death_teller():
    death(kill_host, first=1)


def case_death_ferry():
    death(kill_ferry)


def stop_ferry(on, host):
    os.kill(ferry_of(on, host), signal.SIGSTOP)


def slow_stop_ferry():
    """A ferry that does not answer is replaced."""
    with bed.Bed(2, shared=False) as on:
        run = Run(on, LONG, names(2), more=["--lease", "0.5"])
        run.steps(random.randint(2, 60))
        stop_ferry(on, 1)
        run.wait_for("h1: the ferry .* was killed by signal 9")
        run.same()


def slow_death_agent():
    death(kill_agent, hosts=3, victims=(2,))


def slow_cut():
    death(cut_host, more=["--lease", "0.5"])


def slow_stop_agent():
    """The workers of a stopped agent stop by the lease; when it goes on, it learns that it has
    gone."""
    with bed.Bed(2, shared=False) as on:
        run = Run(on, LONG, names(2), more=["--lease", "0.5"])
        run.steps(random.randint(2, 60))
        pid = agent_of(on, 1)
        os.kill(pid, signal.SIGSTOP)
        run.wait_for("host h1 has gone in step")
        run.process.wait(LIMIT)
        os.kill(pid, signal.SIGCONT)
        run.same()


def slow_pair():
    """Two hosts reach the coordinator, and not each other: one leaves, and the run goes on."""
    with bed.Bed(3) as on:
        run = Run(on, ["mlp", "--steps", "3000", "--lanes", "8"], "h0,h1", at=2,
                  more=["--lease", "1"])
        run.steps(20)
        for host, other in ((0, 1), (1, 0)):
            made = on.run(host, ["ip", "neigh", "replace", f"10.77.0.{other + 1}", "dev", "eth0",
                                 "lladdr", "02:00:00:00:00:99"])
            need(made.returncode == 0, made.stderr)
        run.wait_for("hosts h0 and h1 have lost their connection in step .*nothing gets through")
        run.wait_for("host h. has gone in step .*it cannot keep a connection to host h")
        run.same()


def slow_two_of_four():
    death(kill_host, hosts=4, victims=(1, 3))


def slow_deaths():
    """60 deaths at random moments."""
    table = [
        lambda: death(kill_host, first=1),
        lambda: death(kill_host, hosts=3, victims=(2,)),
        lambda: death(kill_agent),
        lambda: death(kill_ferry, first=random.randint(0, 1)),
        lambda: death(cut_host, more=["--lease", "1"]),
        lambda: death(kill_host, hosts=4, victims=(1, 3), first=3),
    ]
    times = []
    for i in range(60):
        took = table[i % len(table)]()
        if took is not None and i % len(table) not in (4,):
            times.append(took)
    times.sort()
    print(f"# given to others after {times[len(times) // 2] * 1000:.0f} ms (median), "
          f"{times[-1] * 1000:.0f} ms at most", flush=True)


# ---- security ----

STRANGERS = """
import os, socket, sys, time
for port in map(int, sys.argv[2:]):
    address = (sys.argv[1], port)
    idle = [socket.create_connection(address) for _ in range(100)]
    for length in (1, 64, 200, 100000):
        with socket.create_connection(address) as s:
            try:
                s.sendall(os.urandom(length))
            except OSError:
                pass
    heads = [b"TRILINK\\n", b"TRICTRL\\n", b"\\xff" * 8, (2 ** 63).to_bytes(8, "little")]
    for head in heads:
        with socket.create_connection(address) as s:
            try:
                s.sendall(head + b"\\xff" * 4096)
                s.settimeout(0.2)
                s.recv(4096)
            except OSError:
                pass
print("done", flush=True)
time.sleep(30)
"""


def listeners(pid):
    """Ports that the process's host listens at."""
    rows = [line.split() for name in ("tcp", "tcp6") for line in open(f"/proc/{pid}/net/{name}")]
    return sorted({int(row[1].rsplit(":", 1)[1], 16) for row in rows[1:] if row[3] == "0A"})


def case_strangers():
    """What strangers send to the coordinator and the ferries has no effect."""
    with bed.Bed(2, shared=False) as on:
        run = Run(on, LONG, names(2))
        run.steps(2)
        ports = listeners(ferry_of(on, 0))
        need(len(ports) == 2, f"other ports than coordinator's and ferry's: {ports}")
        others = on.popen(1, ["python3", "-c", STRANGERS, "10.77.0.1", *ports],
                          stdout=subprocess.PIPE, text=True)
        need(others.stdout.readline() == "done\n", "the strangers could not finish")
        run.process.wait(LIMIT)
        others.kill()
        others.wait()
        text = run.same()
        need("has gone" not in text and "lost" not in text, f"strangers had an effect:\n{text}")


def case_key():
    """The key is in no file, argument or variable; another key is refused."""
    with bed.Bed(2, shared=False) as on:
        made = on.run(0, [PROGRAM, "ckpt", "key", "own"])
        need(made.returncode == 0, made.stderr)
        on.run(0, [PROGRAM, "ckpt", "key", "other"])
        key = open(f"{on.directory(0)}/own", "rb").read()
        run = Run(on, LONG, names(2), more=["--key", "own"])
        run.steps(2)
        seen = b"".join(open(f"/proc/{pid}/{what}", "rb").read() for pid, _ in on.processes()
                        for what in ("cmdline", "environ"))
        port = re.search(r"join (10.77.0.1:\d+)", str(on.processes(1))).group(1)
        for form in (key, key.hex().encode()):
            need(form not in seen, "the key is in an argument or a variable")
        refused = on.run(0, [PROGRAM, "join", port, "--key", "other", "--name", "h1"])
        need(refused.returncode != 0 and "key" in refused.stderr, refused.stderr)
        text = run.same()
        need(key not in text.encode() and key.hex() not in text, "the key is in the log")


def case_starts():
    """Mistakes before the first step: one line for each host, and none begins."""
    with bed.Bed(2, shared=False) as on:
        for words, said in (
                (["--hosts", "h0,h0"], "it is named twice"),
                (["--hosts", "h0,h7"], "host h7"),
                (["--hosts", "h0,h1", "--chdir", "/nowhere"], "host h1: the directory /nowhere"),
                (["--hosts", "h0,h1", "--data", "lost.csv"], "lost.csv"),
                (["--hosts", "h0,h1", "-n", "auto"], "-n auto"),
                (["--lease", "2"], "add --hosts")):
            began = time.monotonic()
            made = on.run(0, [PROGRAM, "train", *MLP, *words], timeout=40)
            took = time.monotonic() - began
            need(made.returncode in (1, 2) and said in made.stderr and took < 12,
                 f"{words}: exit {made.returncode} after {took:.1f} s:\n{made.stderr}")
            on.check_clean(5)


def main(suite, names):
    import tempfile
    cases = {name[5:]: case for name, case in names.items()
             if name.startswith("case_") or (SLOW and name.startswith("slow_"))}
    wanted = sys.argv[2:] or list(cases)
    bed.require(suite)
    failed = 0
    with tempfile.TemporaryDirectory() as work:
        os.environ["HOSTS_WORK"] = work
        for name in wanted:
            began = time.monotonic()
            try:
                cases[name]()
                print(f"ok {name} ({time.monotonic() - began:.1f} s)", flush=True)
            except (Skipped, bed.NoBed) as reason:
                print(f"ok {name} # skipped: {reason}", flush=True)
            except (Wrong, bed.Failed, subprocess.SubprocessError) as wrong:
                failed += 1
                print(f"not ok {name} ({time.monotonic() - began:.1f} s)\n{wrong}", flush=True)
            except Exception:
                failed += 1
                print(f"not ok {name}\n{traceback.format_exc()}", flush=True)
    sys.exit(failed > 0)


if __name__ == "__main__":
    main("hosts", globals())
