# SPDX-License-Identifier: Apache-2.0
"""A Slurm on one machine, for tests: the hosts of a bed are its nodes, and the last one has its
controller and its users. Everything that it writes is on the bed, and ends with it."""
import os
import shutil
import subprocess
import sys
import time

import bed

DAEMONS = ("munged", "slurmctld", "slurmd")
COMMANDS = ("srun", "sbatch", "salloc", "scancel", "squeue", "sinfo", "scontrol")
LIMIT = 60  # seconds for a daemon to be ready
CONFIGURATION = """ClusterName=bed
SlurmctldHost=h{user}(10.77.0.{user_address})
SlurmUser=root
AuthInfo=socket=/tmp/munge/socket
StateSaveLocation={path}/slurm/state
SlurmdSpoolDir={path}/slurm/%h
SlurmctldPidFile={path}/slurm/slurmctld.pid
SlurmdPidFile={path}/slurm/%h.pid
SlurmctldLogFile={path}/slurm/slurmctld.log
SlurmdLogFile={path}/slurm/%h.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/{task}
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SlurmdParameters=config_overrides
SlurmdTimeout={silence}
ReturnToService=2
NodeName=h[0-{last}] NodeAddr=10.77.0.[1-{user}] CPUs={cores} State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES OverSubscribe=FORCE:4 State=UP
"""


def lacking():
    """Why there can be no Slurm here; empty: there can."""
    if os.geteuid():
        return "only root can start Slurm"
    missing = [name for name in (*DAEMONS, *COMMANDS) if not shutil.which(name)]
    if missing:
        return f"{' '.join(missing)} missing; scripts/setup.sh slurm installs what is needed"
    try:
        with bed.Bed(1, root=True):
            return ""
    except bed.NoBed as reason:
        return str(reason)


def require(name):
    """Ends a test that has the name, as skipped, if there can be no Slurm."""
    os.environ["PATH"] += ":/usr/sbin:/sbin"
    reason = lacking()
    if reason:
        print(f"ok {name} # skipped: {reason}")
        sys.exit(77)


class Slurm(bed.Bed):
    def __init__(self, nodes=4, task="affinity", silence=300,
                 cores=len(os.sched_getaffinity(0))):
        """silence: seconds after which the controller gives up a node that does not answer."""
        super().__init__(nodes + 1, root=True)
        self.nodes, self.user, self.task, self.silence = nodes, nodes, task, silence
        self.node_cores, self.daemons = cores, []
        self.configuration = f"{self.path}/slurm/slurm.conf"

    def __enter__(self):
        super().__enter__()
        try:
            self.begin()
        except BaseException:
            self.remove()
            raise
        return self

    def begin(self):
        os.makedirs(f"{self.path}/slurm/state")
        with open(self.configuration, "w") as f:
            f.write(CONFIGURATION.format(user=self.user, user_address=self.user + 1, task=self.task,
                                         path=self.path, last=self.nodes - 1,
                                         cores=self.node_cores, silence=self.silence))
        with open(self.path + "/slurm/key", "xb", opener=lambda path, flags:
                  os.open(path, flags, 0o400)) as f:
            f.write(os.urandom(128))
        self.munge(self.user)
        self.daemon(self.user, "slurmctld", "-D")
        for node in range(self.nodes):
            self.start(node)
        self.until(lambda: self.slurm("sinfo", "-h", "-N", "-o", "%t").split() ==
                   ["idle"] * self.nodes, "the nodes are not idle")

    def start(self, node):
        """The daemons of a node, also after its death."""
        self.munge(node)
        self.daemon(node, "slurmd", "-D", "-N", f"h{node}")

    def munge(self, host):
        socket = f"/proc/{self.first[host]}/root/tmp/munge/socket"
        if os.path.exists(socket):
            os.remove(socket)  # of one that was killed
        os.makedirs(os.path.dirname(socket), 0o755, exist_ok=True)
        self.daemon(host, "munged", "--foreground", "--force", "--socket=/tmp/munge/socket",
                    "--pid-file=/tmp/munge/pid", "--seed-file=/tmp/munge/seed",
                    f"--key-file={self.path}/slurm/key")
        self.until(lambda: os.path.exists(socket), f"no munged on h{host}")

    def daemon(self, host, *argv):
        with open(f"{self.path}/slurm/{argv[0]}-h{host}.out", "a") as out:
            self.daemons.append(self.popen(host, argv, cwd=self.path + "/slurm", stdout=out,
                                           stderr=out, stdin=subprocess.DEVNULL))

    def until(self, what, otherwise, limit=LIMIT):
        end = time.monotonic() + limit
        while not what():
            if time.monotonic() > end:
                logs = [f"{self.path}/slurm/{name}" for name in os.listdir(self.path + "/slurm")
                        if name.endswith(".out")]
                raise bed.Failed(f"{otherwise}\n" + "\n".join(
                    f"--- {log}\n{open(log).read()[-600:]}" for log in sorted(logs)))
            time.sleep(0.02)

    def popen(self, host, argv, env=None, **more):
        return super().popen(host, argv, env={**(env or {}), "SLURM_CONF": self.configuration},
                             **more)

    def slurm(self, *argv):
        """What a command says, whether or not it fails."""
        return self.run(self.user, argv).stdout

    def processes(self, host=None):
        """Those that are not of a daemon, but of a job or a user."""
        own = ("munged ", "slurmctld ", "slurmd ", ": slurmscriptd")
        return [(pid, command) for pid, command in super().processes(host)
                if not command.strip().startswith(own)]

    def files(self):
        return {file for file in super().files() if "/tmp/munge" not in file}
