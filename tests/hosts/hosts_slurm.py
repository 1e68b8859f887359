# SPDX-License-Identifier: Apache-2.0
"""Runs that Slurm starts, with a Slurm of four nodes on this machine, which needs root. Each must
end with the hash that one process has, also if a node dies.
hosts_slurm.py PROGRAM LINEAR_REGRESSION [CASE ...]"""
import glob
import os
import re
import shutil
import signal
import subprocess
import sys

import hosts
import slurm
from hosts import LIMIT, MLP, PROGRAM, SMALL, Outside, Skipped, done, need
from slurm import Slurm

REGRESSION = os.path.abspath(sys.argv.pop(2))
FOREVER = ["mlp:hidden=64", "--steps", "10000000", "--lanes", "8"]
LONG = ["mlp:hidden=64", "--steps", "400", "--lanes", "8"]
SURVIVES = ["-K0", "--no-kill"]
TRAIN = [PROGRAM, "train"]


class Job(Outside):
    """A command of a user's, such as srun."""

    def __init__(self, on, argv, more={}):
        self.on = on
        self.log = open(f"{on.path}/log", "w+")
        self.process = on.popen(on.user, argv, stdin=subprocess.DEVNULL, stdout=self.log,
                                stderr=self.log, **more)

    def seen(self):
        return self.on.slurm("squeue") + super().seen()

    def has(self, what, limit=LIMIT):
        self.until(lambda: re.search(what, self.text()), limit)

    def wait(self, code=None):
        """Returns the exit code of the command."""
        self.until(lambda: self.process.poll() is not None)
        need(code is None or self.process.returncode == code,
             f"exit {self.process.returncode}:\n{self.text()}")
        return self.process.returncode

    def gives(self, words):
        need(done(self.text()) == hosts.alone(words), self.text())

    def clean(self, limit=15):
        self.on.check_clean(limit)
        need(not glob.glob(f"{self.on.path}/run/launch-*"), "DIR/launch-JOB is left")


class Batch(Job):
    """A script that sbatch has queued; its log is that of the job."""

    def __init__(self, on, argv):
        super().__init__(on, ["sbatch", "--parsable", "-o", "log", *argv],
                         {"env": {"PATH": f"{os.path.dirname(PROGRAM)}:{os.environ['PATH']}"}})
        self.wait(0)
        self.number = self.text().strip()

    def state(self):
        """The job's, and its exit code."""
        said = self.on.slurm("scontrol", "--oneliner", "show", "job", self.number)
        return re.search(r"JobState=(\S+)", said)[1], int(re.search(r"ExitCode=(\d+):", said)[1])

    def ended(self, *wanted):
        self.until(lambda: self.state()[0] not in ("PENDING", "RUNNING", "CONFIGURING"))
        self.until(lambda: self.state()[0] != "COMPLETING" or wanted[0] == "COMPLETING")
        need(self.state() == wanted, f"{self.state()}:\n{self.text()}")


def srun(on, *argv):
    return Job(on, ["srun", *argv])


def case_one_each():
    with Slurm() as on:
        job = srun(on, "-N4", "-n4", *SURVIVES, PROGRAM, "run", "--", *TRAIN, *MLP, *SMALL)
        job.wait(0)
        job.gives(MLP)
        need(job.exit() == 0, "DIR/exit is not 0")
        job.clean()


def workers_of(on, host):
    return len([name for name in os.listdir(f"{on.path}/run/hosts/{host}")
                if re.fullmatch(r"worker-\d+\.log", name)])


def case_several_each():
    """Processes of one node are as many workers there, also if ranks go round the nodes."""
    with Slurm() as on:
        for words, workers in ((["-N2", "-n4"], [2, 2]), (["-N2", "-n4", "-m", "cyclic"], [2, 2]),
                               (["-N2", "-n3"], [2, 1])):
            job = srun(on, *words, *TRAIN, *MLP, *SMALL)
            job.wait(0)
            job.gives(MLP)
            found = [workers_of(on, host) for host in ("h0", "h1")]
            need(found == workers, f"{words}: {found} workers")
            job.clean()
            shutil.rmtree(f"{on.path}/run")


def cores_of_first(on, node):
    """The cores of the first process on a node, which is the agent or has started it."""
    for pid, _ in on.processes(node):
        try:
            if b"\0SLURM_LOCALID=0\0" in open(f"/proc/{pid}/environ", "rb").read():
                return len(os.sched_getaffinity(pid))
        except (FileNotFoundError, ProcessLookupError):
            pass  # it has ended meanwhile
    return 0


def case_cores():
    """Workers have the cores that all processes of their node have, and no others."""
    if len(os.sched_getaffinity(0)) < 2:
        raise Skipped("there is one core")
    for task, words, cores in (("affinity", ["-N2", "-n4"], 2), ("affinity", ["-N2", "-n2"], 1),
                               ("none", ["-N2", "-n4"], 2)):
        with Slurm(2, task, cores=2) as on:
            job = srun(on, *words, *TRAIN, *FOREVER, *SMALL)
            job.steps(1)
            found = [cores_of_first(on, node) for node in range(2)]
            if task == "none":
                cores = len(os.sched_getaffinity(0))
            need(found == [cores, cores], f"task/{task}, {words}: {found} cores")
            on.slurm("scancel", "--user=root")
            job.wait(3)
            job.clean()


READ = set(re.findall(r'"(SLURM_\w+)"', open(hosts.bed.ROOT + "/src/launch/given.c").read()))
READ -= {"SLURM_RESTART_COUNT"}  # of a job that was started again
BATCH = """#!/bin/sh
env >env.batch
srun -n4 --overlap sh -c 'env >env.overlap.$SLURM_PROCID' &
srun -n4 --overlap sh -c 'env >env.beside.$SLURM_PROCID'
wait
trireme=$1
shift
$trireme train -n 2 "$@"
"""


def case_variables():
    """Those that are read are set, in steps alone."""
    def environment(name):
        with open(f"{on.path}/env.{name}") as f:
            return dict(line.rstrip("\n").split("=", 1) for line in f if line.startswith("SLURM_"))

    with Slurm() as on:
        srun(on, "-N2", "-n4", "sh", "-c", "env >env.alone.$SLURM_PROCID").wait(0)
        with open(on.path + "/batch", "w") as f:
            f.write(BATCH)
        job = Batch(on, ["-N2", "-n4", "batch", PROGRAM, *MLP, *SMALL])
        job.ended("COMPLETED", 0)
        for step in ("alone", "overlap", "beside"):
            for rank in range(4):
                found = environment(f"{step}.{rank}")
                need(READ <= set(found), f"{step}: lacks {READ - set(found)}")
                wanted = {"SLURM_PROCID": rank, "SLURM_STEP_NUM_TASKS": 4,
                          "SLURM_NODEID": rank // 2, "SLURM_STEP_NUM_NODES": 2,
                          "SLURM_LOCALID": rank % 2, "SLURM_STEP_TASKS_PER_NODE": "2(x2)"}
                for name, value in wanted.items():
                    need(found[name] == str(value), f"{step}: {name}={found[name]}, not {value}")
        need(environment("overlap.0")["SLURM_STEP_ID"] != environment("beside.0")["SLURM_STEP_ID"],
             "two steps have the same number")
        need("SLURM_STEP_NUM_TASKS" not in environment("batch"), "a batch script looks like a step")
        job.gives(MLP)  # of two workers on the node of the batch script
        need(not os.path.isdir(f"{on.path}/run/hosts"), "the batch script has made hosts")


def case_allocation():
    """What is typed in an allocation is as outside of Slurm."""
    with Slurm() as on:
        for argv in ([*TRAIN, *MLP, "-n", "2"], ["srun", "-n1", *TRAIN, *MLP, "-n", "2"]):
            job = Job(on, ["salloc", "-N2", "-n2", *argv, *SMALL])
            job.wait(0)
            job.gives(MLP)
            need(not os.path.isdir(f"{on.path}/run/hosts"), "there are hosts")
            on.check_clean(15)


def case_own_program():
    alone = subprocess.run([REGRESSION], capture_output=True, text=True, timeout=LIMIT,
                           cwd=os.environ["HOSTS_WORK"])
    with Slurm() as on:
        job = srun(on, "-N1", "-n2", REGRESSION)
        job.wait(0)
        need(done(job.text()) == done(alone.stdout), job.text())
        need("2 workers of" in job.text() and "srun -n 2: " in job.text(), job.text())
        job.clean()
        job = srun(on, "-N2", "-n2", REGRESSION)
        job.wait(2)
        need("let it start `trireme run -- " in job.text(), job.text())
        on.check_clean(15)


def case_death():
    """A node dies with its slurmd. srun waits until the controller gives the node up."""
    with Slurm(silence=5) as on:
        job = srun(on, "-N4", "-n4", *SURVIVES, PROGRAM, "run", "--", *TRAIN, *LONG, *SMALL)
        job.steps(20)
        on.kill(2)
        need(job.exit() == 0, f"DIR/exit is not 0:\n{job.text()}")
        job.has("done ")
        job.gives(LONG)
        need(job.process.poll() is None, "srun has noticed")
        job.wait(0)
        need("Node failure on h2" in job.text(), job.text())
        job.clean()


def case_death_of_first():
    """The coordinator's node dies: the others save, and the run can be resumed."""
    with Slurm(silence=5) as on:
        words = [*LONG, "--ckpt", "ck"]
        start = ["-n4", *SURVIVES, PROGRAM, "run", "--lease", "0.4", "--", *TRAIN]
        job = srun(on, "-N4", *start, *words, *SMALL)
        job.steps(20)
        on.kill(0)
        need(job.exit() == 3, job.text())
        job.wait(3)
        job.clean()
        on.start(0)
        os.remove(f"{on.path}/run/exit")
        again = srun(on, "-N4", *start, *words, "--resume", *SMALL)
        again.wait(0)
        need("resumes from ck/step-" in again.text(), again.text())
        again.gives(LONG)
        again.clean()


def case_ends():
    """scancel lets a run save; srun, interrupted twice or killed, may leave it no time to."""
    words = ["-N3", "-n3", *SURVIVES, PROGRAM, "run", "--", *TRAIN, *FOREVER, "--ckpt", "ck",
             *SMALL]
    with Slurm() as on:
        for how in ("scancel", signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
            job = srun(on, *words)
            job.steps(10)
            if how == "scancel":
                on.slurm("scancel", "--user=root")
            else:
                job.process.send_signal(how)
            if how == signal.SIGINT:
                job.has("one more within")
                job.process.send_signal(how)
            code = job.wait()
            on.check_clean(40)
            if how == "scancel":
                need(code == 3 and job.exit() == 3, f"exit {code}:\n{job.text()}")
                need(os.listdir(f"{on.path}/ck"), "nothing is saved")
                need("killed by signal" not in job.text(), job.text())
                job.clean()
            need(code in {"scancel": (3,), signal.SIGINT: (3, 137), signal.SIGTERM: (137,),
                          signal.SIGKILL: (-9,)}[how], f"{how}: exit {code}:\n{job.text()}")
            for made in ("run", "ck"):
                shutil.rmtree(f"{on.path}/{made}", ignore_errors=True)


SCRIPT = hosts.bed.ROOT + "/examples/launch/slurm.sh"


def case_script():
    """A node dies, and the job ends with the run, though srun waits; and it saves if cancelled."""
    with Slurm() as on:
        job = Batch(on, [SCRIPT, *TRAIN, *MLP, *SMALL])
        job.ended("COMPLETED", 0)
        job.gives(MLP)
        job.clean()
        shutil.rmtree(f"{on.path}/run")
        job = Batch(on, [SCRIPT, *TRAIN, *FOREVER, *SMALL, "--ckpt", "ck"])
        job.steps(10)
        on.slurm("scancel", job.number)
        need(job.exit() == 3 and os.listdir(f"{on.path}/ck"), job.text())
        job.ended("CANCELLED", 0)
        job.clean()
        shutil.rmtree(f"{on.path}/run")
        job = Batch(on, [SCRIPT, *TRAIN, *LONG, *SMALL])
        job.steps(10)
        on.kill(3)
        job.ended("COMPLETING", 0)  # until the node is given up
        job.gives(LONG)
        job.clean(60)  # srun waits for 32 s


def case_script_limit():
    """The run saves before the time limit."""
    with Slurm() as on:
        job = Batch(on, ["--time=1", "--signal=TERM@30", SCRIPT, *TRAIN, *FOREVER, "--ckpt", "ck",
                         *SMALL])
        job.steps(10)
        need(job.exit() == 3 and os.listdir(f"{on.path}/ck"), job.text())
        job.ended("FAILED", 3)
        job.clean()


def case_script_again():
    """Slurm notices a death, also that of the script's node, and starts the job again on others,
    where it goes on. What earlier processes have left in DIR/launch-JOB is not taken for
    theirs."""
    for victim, words in ((0, LONG), (2, FOREVER)):
        with Slurm(silence=5) as on:
            with open(SCRIPT) as f, open(on.path + "/script", "w") as short:
                text = f.read().replace(" run --out ", " run --lease 0.4 --out ")
                need(" --lease " in text, "the script has no `run --out`")
                short.write(text)
            job = Batch(on, ["-N3", "script", *TRAIN, *words, "--ckpt", "ck", "--resume", *SMALL])
            job.steps(10)
            meeting, = glob.glob(f"{on.path}/run/launch-*")
            shutil.copytree(meeting, f"{on.path}/kept")
            on.kill(victim)
            need(job.exit() == 3, job.text())
            job.until(lambda: job.state()[0] == "PENDING")  # for two minutes
            on.check_clean(15)
            shutil.copytree(f"{on.path}/kept", meeting)
            on.slurm("scontrol", "update", f"JobId={job.number}", "StartTime=now")
            job.has("resumes from ck/step-")
            if words == FOREVER:
                on.slurm("scancel", job.number)
                job.ended("CANCELLED", 0)
            else:
                job.ended("COMPLETED", 0)
                last = [line for line in job.text().split("\n") if line.startswith("done ")][-1]
                need(done(last) == hosts.alone(LONG), job.text())
            job.clean(40)


if __name__ == "__main__":
    slurm.require("hosts_slurm")
    hosts.main("hosts_slurm", globals())
