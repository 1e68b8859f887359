# SPDX-License-Identifier: Apache-2.0
"""Runs that launchers start: variables of torchrun and Kubeflow Trainer, Open MPI's mpirun. Each
must end with the hash that one process has, also if a host dies.
hosts_launch.py PROGRAM [CASE ...]; SLOW=1: the long forms."""
import json
import os
import re
import shutil
import signal
import subprocess
import time

import bed
import hosts
from hosts import LIMIT, MLP, PROGRAM, SMALL, Outside, Skipped, Wrong, done, need

FOREVER = ["mlp:hidden=64", "--steps", "10000000", "--lanes", "8"]
LONG = ["mlp:hidden=64", "--steps", "400", "--lanes", "8"]


def torchrun(host, n):
    return {"MASTER_ADDR": "h0", "MASTER_PORT": "29500", "RANK": str(host), "WORLD_SIZE": str(n)}


def kubeflow(host, n):
    return {"PET_MASTER_ADDR": "h0", "PET_MASTER_PORT": "29500", "PET_NODE_RANK": str(host),
            "PET_NNODES": str(n), "PET_NPROC_PER_NODE": "auto"}


class Launched:
    """`trireme join -- trireme train` on each host, as an orchestrator starts it."""

    def __init__(self, on, variables, words, more=(), first=0, started=None):
        self.on, self.words = on, words
        key = f"{on.directory(0)}/key"
        if not os.path.exists(key):
            subprocess.run([PROGRAM, "ckpt", "key", key], check=True, capture_output=True)
        self.argv = [PROGRAM, "join", "--key", "key", *more, "--", PROGRAM, "train", *words,
                     "--quiet"]
        self.variables, self.process = variables, {}
        for i in range(on.n if started is None else started):
            self.start((first + i) % on.n)

    def start(self, host):
        self.log = open(f"{self.on.directory(0)}/log{host}", "a+")
        self.process[host] = self.on.popen(
            host, self.argv, stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log,
            env=self.variables(host, self.on.n))

    def text(self, host=0):
        return open(f"{self.on.directory(0)}/log{host}").read()

    def steps(self, least):
        until = time.monotonic() + 60
        while self.metrics() < least:
            need(self.process[0].poll() is None and time.monotonic() < until,
                 f"{self.metrics()} steps of {least}:\n{self.text()}\n{self.text(1)}")
            time.sleep(0.01)

    def metrics(self):
        try:
            return open(f"{self.on.directory(0)}/run/metrics.jsonl").read().count('"step"')
        except FileNotFoundError:
            return 0

    def wait(self, host):
        try:
            self.process[host].wait(LIMIT)
        except subprocess.TimeoutExpired:
            left = "\n".join(f"{pid} {command}" for pid, command in self.on.processes())
            raise Wrong(f"h{host} hangs:\n{self.text()}\n--- {self.text(host)}\n{left}")

    def same(self, code=0):
        self.wait(0)
        text = self.text()
        need(self.process[0].returncode == code, f"exit {self.process[0].returncode}:\n{text}")
        exit_code = open(f"{self.on.directory(0)}/run/exit").read()
        need(exit_code == f"{code}\n", f"DIR/exit says {exit_code}")
        for host in self.process:
            self.wait(host)
        if not code:
            said = [t for host in range(self.on.n) for t in [self.text(host)] if "done " in t]
            need(said and done(said[0]) == hosts.alone(self.words), "\n".join(said) or text)
        self.on.check_clean(15)
        return text


def case_torchrun():
    """In four namespaces, the coordinator last."""
    with bed.Bed(4) as on:
        Launched(on, torchrun, MLP, first=1).same()


def case_kubeflow():
    """A pod dies, and the one that replaces it joins."""
    with bed.Bed(3) as on:
        run = Launched(on, kubeflow, LONG)
        run.steps(20)
        on.kill(2)
        run.wait(2)
        run.start(2)
        run.same()
        need(re.search("host host2 has joined in step", run.text()), run.text())


class Mpi(Outside):
    """Open MPI's mpirun, on host `at`: starts `trireme train` on hosts. patience: seconds from a
    signal until it kills what it has started."""

    def __init__(self, on, where, words, more=(), at=0, patience=1):
        if not shutil.which("mpirun"):
            raise Skipped("there is no mpirun")
        self.on, self.words = on, words
        self.log = open(f"{on.directory(0)}/log", "w+")
        slots = sum(int(host.split(":")[1]) for host in where.split(","))
        interfaces = [word for name in ("btl_tcp", "oob_tcp")
                      for word in ("--mca", name + "_if_include", "eth0")]
        self.process = on.popen(
            at, ["mpirun", "--allow-run-as-root", "--oversubscribe", "--enable-recovery",
                 "--mca", "odls_base_sigkill_timeout", patience,
                 *interfaces, "--host", where, "-n", slots, PROGRAM, "train", *words, *SMALL,
                 *more],
            stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log)

    def same(self):
        need(self.exit() == 0, f"DIR/exit is not 0:\n{self.text()}")
        self.until(lambda: "done " in self.text())
        need(done(self.text()) == hosts.alone(self.words), self.text())

    def clean(self):
        self.process.wait(LIMIT)
        self.on.check_clean(15, but="/tmp/ompi.")  # of Open MPI, if it is killed


def case_mpirun():
    """Two processes on each of two hosts are two workers there."""
    with bed.Bed(2) as on:
        run = Mpi(on, "h0:2,h1:2", MLP)
        run.same()
        run.clean()
        need(run.process.returncode == 0, run.text())
        workers = [len([f for f in os.listdir(f"{on.path}/run/hosts/{host}")
                        if re.fullmatch(r"worker-\d+\.log", f)]) for host in ("h0", "h1")]
        need(workers == [2, 2] and sorted(os.listdir(f"{on.path}/run")) ==
             ["exit", "hosts", "metrics.jsonl"], [workers, os.listdir(f"{on.path}/run")])


def case_mpirun_death():
    """All of a host dies, mpirun's own process there, too: mpirun may wait for ever."""
    with bed.Bed(2) as on:
        run = Mpi(on, "h0:1,h1:1", LONG)
        run.steps(20)
        on.kill(1)
        run.same()
        run.process.kill()
        run.clean()


def slow_mpirun_coordinator():
    """The host of rank 0 dies; mpirun runs on another one."""
    words = [*LONG, "--ckpt", "ck"]
    with bed.Bed(3) as on:
        run = Mpi(on, "h0:1,h1:1", words, ["--lease", "0.4"], at=2)
        run.steps(20)
        on.kill(0)
        need(run.exit() == 3, run.text())
        run.process.kill()
        run.clean()
        os.remove(f"{on.path}/run/exit")
        again = Mpi(on, "h0:1,h1:1", [*words, "--resume"], at=2)
        again.words = LONG
        again.same()
        again.clean()


def case_mpirun_killed():
    """mpirun is killed, or interrupted: nothing is left on either host."""
    with bed.Bed(2) as on:
        for sig in (signal.SIGKILL, signal.SIGINT):
            run = Mpi(on, "h0:1,h1:1", FOREVER)
            run.steps(5)
            run.process.send_signal(sig)
            run.clean()
            shutil.rmtree(f"{on.path}/run")


def slow_mpirun_saves():
    """mpirun is interrupted, and has patience: the run ends after a step, and is saved."""
    with bed.Bed(2) as on:
        run = Mpi(on, "h0:1,h1:1", FOREVER, ["--ckpt", "ck"], patience=5)
        run.steps(5)
        run.process.send_signal(signal.SIGINT)
        run.clean()
        need(run.exit() == 3 and os.listdir(f"{on.path}/ck"), run.text())


def slow_coordinator():
    """The coordinator's host dies: the others save, end with 3, and the run can be resumed."""
    words = [*LONG, "--ckpt", "ck"]
    with bed.Bed(3) as on:
        run = Launched(on, torchrun, words, more=["--lease", "0.4"])
        run.steps(20)
        on.kill(0)
        for host in (1, 2):
            run.wait(host)
            need(run.process[host].returncode == 3, f"exit {run.process[host].returncode}:\n"
                 f"{run.text(host)}")
        need(open(f"{on.path}/run/exit").read() == "3\n", "DIR/exit is not 3")
        again = Launched(on, torchrun, [*words, "--resume"])
        again.words = LONG
        again.same()


def slow_example():
    """examples/launch/mpi.sh ends with the run's exit code, also if a host dies."""
    with bed.Bed(2) as on:
        run = Mpi.__new__(Mpi)
        run.on, run.words, run.log = on, LONG, open(f"{on.path}/log", "w+")
        run.process = on.popen(
            0, ["sh", f"{bed.ROOT}/examples/launch/mpi.sh", "h0,h1", PROGRAM, "train", *LONG,
                "--quiet"], stdin=subprocess.DEVNULL, stdout=run.log, stderr=run.log,
            env={"PATH": f"{on.bed}/bin:{os.path.dirname(PROGRAM)}:{os.environ['PATH']}",
                 "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
                 "OMPI_MCA_oob_tcp_if_include": "eth0", "OMPI_MCA_btl_tcp_if_include": "eth0"})
        run.steps(20)
        on.kill(1)
        run.same()
        run.clean()
        need(run.process.returncode == 0, f"{run.process.returncode}:\n{run.text()}")


def case_never():
    """A host that does not answer is named, and nothing is left."""
    with bed.Bed(2) as on:
        run = Launched(on, torchrun, MLP, more=["--start-timeout", "1"], started=1)
        run.wait(0)
        need(run.process[0].returncode == 1 and "host host1" in run.text(), run.text())
        on.check_clean(15)


def here(words, env, code=2, program="train"):
    """A command on this machine, with variables; returns what it says."""
    made = subprocess.run([PROGRAM, program, *words], capture_output=True, text=True, timeout=30,
                          env={**os.environ, **env}, cwd=os.environ["HOSTS_WORK"])
    need(made.returncode == code, f"{words}, {env}: exit {made.returncode}:\n{made.stderr}")
    return made.stdout + made.stderr


def case_one_machine():
    """Variables that any shell may have change nothing, nor do those of one process alone."""
    wanted = hosts.alone(MLP)
    alone = {"OMPI_COMM_WORLD_RANK": "0", "OMPI_COMM_WORLD_SIZE": "1", "PMI_RANK": "0",
             "PMI_SIZE": "1", "SLURM_PROCID": "0", "SLURM_STEP_NUM_TASKS": "1",
             "SLURM_JOB_ID": "7", "SLURM_NTASKS": "8", "SLURM_STEP_ID": "0",
             "SLURM_STEP_TASKS_PER_NODE": "1", "SLURM_STEP_NUM_NODES": "1", "SLURM_NODEID": "0"}
    for env in (torchrun(1, 2), kubeflow(1, 2), alone):
        need(done(here([*MLP, "--quiet"], env, 0)) == wanted, f"{env}: another result")
        need(done(here([*MLP, "--quiet", "-n", "2"], env, 0)) == wanted, f"-n 2, {env}")


def case_siblings():
    """Processes on one machine whose command lines differ are refused, or are runs of their own."""
    if not shutil.which("mpirun"):
        raise Skipped("there is no mpirun")
    work = os.environ["HOSTS_WORK"]
    words = [PROGRAM, "train", *MLP, "--quiet", "--out"]
    start = ["mpirun", "--allow-run-as-root", "--oversubscribe"]

    def run(more, env=None, code=0):
        made = subprocess.run([*start, *more], capture_output=True, text=True, cwd=work,
                              timeout=LIMIT, env={**os.environ, **(env or {})})
        need(made.returncode == code, f"{more}: exit {made.returncode}:\n{made.stderr}")
        return made.stdout + made.stderr

    two = ["-n", "1", *words, "a", ":", "-n", "1", *words, "b"]
    need("their command lines differ" in run(two, code=2), "two runs became one")
    apart = run(["-x", "TRIREME_LAUNCHED", *two], {"TRIREME_LAUNCHED": "1"})
    need(apart.count(hosts.alone(MLP)) == 2, apart)
    said = run(["--bind-to", "core", "-n", "2", *words, "c"])
    need(done(said) == hosts.alone(MLP) and "mpirun -n 2: " in said, said)
    cores = [json.load(open(f"{work}/c/run.json"))["cores"], len(os.sched_getaffinity(0))]
    need(cores[0] == min(2, cores[1]), f"the run has {cores[0]} cores of {cores[1]}")
    need(open(f"{work}/c/exit").read() == "0\n", "DIR/exit")
    own = os.path.join(os.path.dirname(PROGRAM), "../examples/linear_regression")
    if os.path.exists(own):
        one = subprocess.run([own], capture_output=True, text=True, cwd=work, check=True).stdout
        said = run(["-n", "2", own])
        need(done(said) == done(one) and "mpirun -n 2: " in said, said)


def slow_missing():
    """Two processes of which one never comes are two workers."""
    wanted = hosts.alone(MLP)
    two = {"PMI_RANK": "0", "PMI_SIZE": "2", "MPI_LOCALRANKID": "0", "MPI_LOCALNRANKS": "2"}
    said = here([*MLP, "--quiet"], two, 0)
    need(done(said) == wanted and "of the 2 processes that mpiexec starts on this host, 1 came" in
         said, said)


def rank_table(path, ranks="012", **more):
    servers = [{"server_id": "h0", "device": [{"rank_id": ranks[0]}, {"rank_id": ranks[1]}]},
               {"server_id": "h1", "device": [{"rank_id": ranks[2]}]}]
    with open(path, "w") as f:
        json.dump({"version": "1.0", "server_count": "2", "server_list": servers, **more}, f)


def case_mistakes():
    """One line, before the first step, that says what would be right."""
    ompi = {"OMPI_COMM_WORLD_RANK": "0", "OMPI_COMM_WORLD_SIZE": "2",
            "OMPI_COMM_WORLD_LOCAL_SIZE": "2", "OMPI_COMM_WORLD_LOCAL_RANK": "0"}
    slurm = {"SLURM_PROCID": "1", "SLURM_STEP_NUM_TASKS": "4", "SLURM_NODEID": "0",
             "SLURM_STEP_TASKS_PER_NODE": "2(x2)", "SLURM_LOCALID": "1"}
    for words, env, said in (
            ([], {**ompi, "OMPI_COMM_WORLD_RANK": "2"},
             "OMPI_COMM_WORLD_RANK is 2, which is none of 2 as OMPI_COMM_WORLD_SIZE says"),
            ([], {**ompi, "OMPI_COMM_WORLD_SIZE": "two"}, "OMPI_COMM_WORLD_SIZE=two: a number"),
            (["-n", "3"], ompi, "-n 3: mpirun has started 2 processes on this host"),
            (["-n", "auto"], ompi, "-n auto: mpirun has started 2"),
            (["--hosts", "h0,h1"], ompi, "--hosts h0,h1: mpirun has started 2 processes already"),
            ([], {**slurm, "SLURM_STEP_TASKS_PER_NODE": "x"}, "SLURM_STEP_TASKS_PER_NODE=x"),
            ([], {**slurm, "SLURM_LOCALID": "2"}, "SLURM_LOCALID is 2, which is none of 2")):
        need(said in here([*MLP, *words], env), f"{words}, {env}: {said}")
    path = os.path.join(os.environ["HOSTS_WORK"], "table.json")
    rank_table(path)
    said = here(["lenet5", "--lanes", "8", "--hosts", path], {}, 0, "memory")
    need("each of 2 hosts with 2 workers" in said, said)
    for change, said in (({"server_count": "3"}, "server_count is 3, but server_list has 2"),
                         ({"server_list": None}, "a rank table of version 1.0 has a server_list"),
                         ({"ranks": "000"}, "rank_id 0: another device has it, too")):
        rank_table(path, **change)
        need(said in here(["lenet5", "--hosts", path], {}, 2, "memory"), said)
    program = ["--", PROGRAM, "train", *MLP]
    here_ = {"MASTER_ADDR": "nowhere.invalid", "MASTER_PORT": "29500", "RANK": "1",
             "WORLD_SIZE": "2"}
    key = os.path.join(os.environ["HOSTS_WORK"], "key")
    subprocess.run([PROGRAM, "ckpt", "key", key], check=True, capture_output=True)
    with_key = ["--key", key, "--start-timeout", "1"]
    for words, env, said, code in (
            (with_key, here_, "tried for 1 s", 1),
            ([], here_, "hosts know each other by a key, which is lacking", 2),
            (with_key, {}, "join needs the ADDRESS of a coordinator, or a launcher's variables", 2),
            (with_key, {**here_, "MASTER_PORT": ""}, "MASTER_PORT=: a name and a port", 2),
            (with_key, {**here_, **slurm, "SLURM_PROCID": "2", "SLURM_LOCALID": "0"},
             "srun and torchrun contradict each other: this is process 2 of 4 by SLURM_PROCID, "
             "1 of 2 by RANK", 2),
            (with_key, {**here_, "LOCAL_WORLD_SIZE": "3"}, "LOCAL_WORLD_SIZE is 3, more than", 2)):
        need(said in here([*words, *program], env, code, "join"), f"{words}, {env}: {said}")
    said = here(with_key, {**here_, "RANK": "0"}, 2, "join")
    need("join lacks what to run" in said, said)
    os.chmod(key, 0o644)
    need("chmod 600" in here([*with_key, *program], here_, 2, "join"), "a key that others may read")


if __name__ == "__main__":
    hosts.main("hosts_launch", globals())
