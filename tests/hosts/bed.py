# SPDX-License-Identifier: Apache-2.0
"""Several hosts on one machine, for tests: a Bed has hosts 0, 1, ... (h0, h1, ...), which
scripts/hosts.sh makes; it ends with the test. Programs that a test gets as arguments are visible
on the hosts, and the sources. Only DIR, /tmp and /dev/shm of a host can be written."""
import ctypes
import itertools
import os
import resource
import signal
import subprocess
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SCRIPT = ROOT + "/scripts/hosts.sh"
SEEN = {os.path.dirname(os.path.abspath(word)) for word in sys.argv[1:] if os.path.isfile(word)}
LIBC = ctypes.CDLL(None, use_errno=True)
ORDINAL = itertools.count()


class NoBed(Exception):
    """This machine makes no namespaces; the text is the kernel's reason."""


class Failed(Exception):
    pass


def require(name):
    """Ends a test that has the name, as skipped, if there can be no hosts."""
    try:
        with Bed(1):
            pass
    except NoBed as reason:
        print(f"ok {name} # skipped: {reason}")
        sys.exit(77)


def join_namespaces(pid, kinds):
    """Opens all of them before it joins the first: then files have other names."""
    files = [os.open(f"/proc/{pid}/ns/{kind}", os.O_RDONLY) for kind in kinds]
    for kind, file in zip(kinds, files):
        if LIBC.setns(file, 0):
            raise OSError(ctypes.get_errno(), f"setns: {kind} of {pid}")
        os.close(file)


def stand_in(pid):
    """Ends as its child ends, and holds no file of the test until then."""
    os.closerange(0, resource.getrlimit(resource.RLIMIT_NOFILE)[0])
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    if code < 0:
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        if -code != signal.SIGKILL:
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(code)


class Process(subprocess.Popen):
    """A process on a host. `inner` is its number, as seen by the test; `pid` belongs to a process
    outside the host that waits for it, because only its children can be in the host."""

    def __init__(self, argv, enter, **more):
        ours, theirs = os.pipe()

        def inside():
            finish = enter()
            pid = os.fork()
            if pid:
                os.write(theirs, b"%d" % pid)
                stand_in(pid)
            finish()

        try:
            super().__init__(argv, preexec_fn=inside, **more)
        finally:
            os.close(theirs)
            said = os.read(ours, 20)
            os.close(ours)
        self.inner = int(said)

    def send_signal(self, sig):
        if self.poll() is None:
            try:
                os.kill(self.inner, sig)
            except ProcessLookupError:
                pass  # it has ended meanwhile


class Bed:
    def __init__(self, n, shared=True, see=(), ahead=0, root=False):
        """ahead: seconds that the monotonic clock of each host is ahead of the one before. root:
        their root is the machine's."""
        self.n, self.shared, self.see, self.ahead = n, shared, SEEN.union(see), ahead
        self.bed = f"/tmp/trireme-bed-{os.getpid()}-{next(ORDINAL)}"
        self.path = self.bed + "/dir"  # DIR, as the hosts see it
        self.cores, self.root = {}, root

    def script(self, *words):
        done = subprocess.run(["bash", SCRIPT, *map(str, words)], capture_output=True, text=True,
                              env={**os.environ, "HOSTS_BED": self.bed})
        if done.returncode:
            raise (NoBed if done.returncode == 77 else Failed)(done.stderr.strip())
        return done.stdout

    def __enter__(self):
        kind = [*(() if self.shared else ["--apart"]), *(["--root"] if self.root else [])]
        self.script("make", *kind, "--ahead", self.ahead, self.n, *sorted(self.see))
        try:
            self.first = [int(open(f"{self.bed}/pids/h{host}").read()) for host in range(self.n)]
            self.files_at_start = self.files()
        except BaseException:
            self.remove()
            raise
        return self

    def __exit__(self, *_):
        self.remove()

    def remove(self):
        self.script("remove")

    def directory(self, host):
        """DIR of a host, as the test sees it."""
        return self.path if self.shared else f"{self.path}-h{host}"

    def popen(self, host, argv, cwd=None, env=None, **more):
        """Starts a command on a host, in DIR; the arguments of subprocess.Popen."""
        def enter():
            if not self.root:
                join_namespaces(self.first[host], ["user"])
            if host in self.cores:
                os.sched_setaffinity(0, {self.cores[host]})
            join_namespaces(self.first[host], ["pid"])
            return finish

        def finish():
            time_too = ["time"] if host * self.ahead else []
            join_namespaces(self.first[host], [*time_too, "uts", "ipc", "net", "mnt"])
            os.chdir(cwd or self.path)

        whole = {**os.environ, "HOSTS_BED": self.bed,
                 "PATH": f"{self.bed}/bin:{os.environ['PATH']}", **(env or {})}
        whole.pop("TMPDIR", None)
        return Process([str(word) for word in argv], enter, env=whole, **more)

    def run(self, host, argv, timeout=60, **more):
        """Runs a command to its end; has args, returncode, stdout, stderr."""
        with self.popen(host, argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                        stdin=subprocess.DEVNULL, **more) as process:
            try:
                out, err = process.communicate(timeout=timeout)
            except subprocess.TimeoutExpired:
                process.kill()
                raise
        return subprocess.CompletedProcess(process.args, process.returncode, out, err)

    def cut(self, host):
        self.script("cut", f"h{host}")

    def heal(self, host):
        self.script("heal", f"h{host}")

    def part(self, groups):
        """[[0, 1], [2, 3]]: hosts reach those of their own group alone."""
        self.script("part", *(",".join(f"h{host}" for host in group) for group in groups))

    def join(self):
        self.script("join")

    def rate(self, host, bits):
        """Bits per second that the host sends and receives at most; None: no limit."""
        self.script("rate", f"h{host}", bits or "off")

    def kill(self, host):
        """Kills all processes of a host at once, and returns after all have ended."""
        self.script("kill", f"h{host}")

    def processes(self, host=None):
        """(number as seen by the test, command line) of each process on a host, or on all."""
        lines = self.script("left", *([] if host is None else [f"h{host}"])).split("\n")
        return [(int(pid), command) for _, pid, command in
                (line.split(" ", 2) for line in lines if line)]

    def pin(self, host, core):
        """All processes of a host, and those that it starts later, run on one core."""
        self.cores[host] = core
        for pid in [self.first[host], *(pid for pid, _ in self.processes(host))]:
            try:
                for thread in os.listdir(f"/proc/{pid}/task"):
                    os.sched_setaffinity(int(thread), {core})
            except (FileNotFoundError, ProcessLookupError):
                pass  # it has ended meanwhile

    def files(self):
        """What /tmp and /dev/shm of the hosts have, without what is shown there."""
        found = set()
        for host, place in itertools.product(range(self.n), ("/tmp", "/dev/shm")):
            top = f"/proc/{self.first[host]}/root{place}"
            device = os.stat(top).st_dev
            for at, directories, files in os.walk(top):
                directories[:] = [d for d in directories
                                  if os.lstat(f"{at}/{d}").st_dev == device]
                found |= {f"h{host}:{place}{at[len(top):]}/{f}" for f in directories + files}
        return found

    def check_clean(self, limit=0, but="/nothing"):
        """Nothing runs on any host, and no file is left outside DIR, after at most that many
        seconds. but: begins paths of files that others leave."""
        until = time.monotonic() + limit
        while self.processes() and time.monotonic() < until:
            time.sleep(0.01)
        left = [f"process {pid}: {command}" for pid, command in self.processes()]
        left += sorted(file for file in self.files() - self.files_at_start
                       if not file.partition(":")[2].startswith(but))
        if left:
            raise Failed("left on the hosts:\n" + "\n".join(left))
