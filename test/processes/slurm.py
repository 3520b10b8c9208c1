#!/usr/bin/python3
"""hpc-run under a real Slurm: `srun --mpi=pmix`, srun without MPI, and what a batch script starts; tasks that are killed and stopped. Two nodes of one cluster, each in
a network namespace with a host name of its own, started here and ended here: munged, slurmctld and two slurmd in a temporary folder, nothing of the system's touched.
Needs root, iproute2 and Debian's slurmd, slurmctld, slurm-client, slurm-wlm-basic-plugins and munge; without them all is skipped, and counted.

  test/processes/slurm.py [--bin=build/bin] [--only="equal;kill"] [--kills=4]
"""
import os
import shutil
import signal
import subprocess
import sys
import time

import numpy

from harness import (BIN, ENDED_WITHIN, MODELS, MPI_ENV, RUN, SECRET, Hosts, Skip, chance, check, environment, folder, free_port, inputs, need, options, path, plan,
                     run_cases, stand_in)

DAEMONS = ("munged", "slurmctld", "slurmd", "srun", "sbatch", "sinfo")
NODES = ("hpca", "hpcb")
CONFIGURATION = """\
ClusterName=hpc
SlurmctldHost=hpca(10.77.13.1)
SlurmctldPort=6817
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={0}/munge-socket/socket
StateSaveLocation={0}/state
SlurmdSpoolDir={0}/spool.%n
TmpFS={0}/tmp.%n
SlurmctldPidFile={0}/slurmctld.pid
SlurmdPidFile={0}/slurmd.%n.pid
SlurmctldLogFile={0}/slurmctld.log
SlurmdLogFile={0}/slurmd.%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
MpiDefault=none
ReturnToService=2
SlurmdParameters=config_overrides
NodeName=hpca NodeAddr=10.77.13.1 Port=6818 CPUs=16 State=UNKNOWN
NodeName=hpcb NodeAddr=10.77.13.2 Port=6818 CPUs=16 State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP OverSubscribe=FORCE:4
"""


class Slurm:
    """The cluster. `run` is srun or sbatch on its first node."""

    def __init__(self):
        need(os.geteuid() == 0, "needs root")
        for name in DAEMONS:
            need(self.program(name), f"needs {name} (packages slurmd, slurmctld, slurm-client, slurm-wlm-basic-plugins, munge)")
        self.hosts, self.daemons, self.folder = Hosts(), [], path("slurm")
        try:
            self.hosts.__enter__()
            self.start()
        except BaseException:
            self.close()
            raise

    @staticmethod
    def program(name):
        return shutil.which(name, path=os.environ["PATH"] + ":/usr/sbin:/sbin")

    def on(self, host, *command):
        """A command on a node: its network, its name, its own view of /sys, where UCX looks for networks. (`ip netns exec` would hide /sys/fs/cgroup, which
        slurmd wants.)"""
        groups = os.path.join(self.folder, "cgroup")
        return ["nsenter", f"--net=/run/netns/{Hosts.NAMES[host]}", "unshare", "--uts", "--mount", "sh", "-ec",
                f"mount --rbind /sys/fs/cgroup {groups}; mount -t sysfs sysfs /sys; mount --rbind {groups} /sys/fs/cgroup; hostname {NODES[host]}; exec \"$@\"",
                "sh", *command]

    def daemon(self, host, *command):
        log = open(os.path.join(self.folder, "daemons.log"), "a")
        self.daemons.append(subprocess.Popen(self.on(host, self.program(command[0]), *command[1:]), env=self.environment(), stdout=log, stderr=log))

    def environment(self, **variables):
        return environment(SLURM_CONF=os.path.join(self.folder, "slurm.conf"), **variables)

    def start(self):
        os.chmod(folder.name, 0o711)  # munged wants everybody to reach its socket
        for name, mode in (("", 0o711), ("munge", 0o700), ("munge-socket", 0o711), ("state", 0o700), ("cgroup", 0o755), ("tmp.hpca", 0o755), ("tmp.hpcb", 0o755)):
            os.mkdir(os.path.join(self.folder, name))
            os.chmod(os.path.join(self.folder, name), mode)
        with open(os.path.join(self.folder, "slurm.conf"), "w") as file:
            file.write(CONFIGURATION.format(self.folder))
        key = os.path.join(self.folder, "munge", "key")
        with open(os.open(key, os.O_WRONLY | os.O_CREAT, 0o600), "wb") as file:
            file.write(os.urandom(1024))
        munge = [f"--{name}-file={self.folder}/munge/{name}" for name in ("key", "pid", "log", "seed")]
        # More threads than srun and the daemons ask at once; one for each is what it recommends itself when they are too few.
        self.daemon(0, "munged", "--foreground", "--num-threads=10", f"--socket={self.folder}/munge-socket/socket", *munge)
        self.until(lambda: os.path.exists(f"{self.folder}/munge-socket/socket"), "munged")
        self.daemon(0, "slurmctld", "-D", "-i")
        for host in (0, 1):
            self.daemon(host, "slurmd", "-D", "-N", NODES[host])
        self.until(lambda: subprocess.run(self.on(0, "sinfo", "-h", "-o", "%D %T"), env=self.environment(), capture_output=True, text=True).stdout == "2 idle\n", "slurmd")

    def until(self, holds, what):
        for _ in range(200):
            if holds():
                return
            time.sleep(0.1)
        for name in sorted(os.listdir(self.folder)):
            if name.endswith(".log"):
                with open(os.path.join(self.folder, name)) as log:
                    print(name, *log.readlines()[-5:])
        raise Skip(f"{what} does not come up here; its log stands above")

    def close(self):
        for daemon in reversed(self.daemons):
            daemon.terminate()
            try:
                daemon.wait(10)
            except subprocess.TimeoutExpired:
                daemon.kill()
                daemon.wait()
        self.hosts.close()

    def command(self, *command):
        return self.on(0, *command)

    def run(self, *command, timeout=90, **variables):
        done = subprocess.run(self.command(*command), env=self.environment(**variables), capture_output=True, text=True, timeout=timeout, cwd=self.folder)
        return done.returncode, done.stderr

    def begin(self, *command, **variables):
        return subprocess.Popen(self.command(*command), env=self.environment(**variables), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=self.folder)


cluster = None


def slurm():
    """Started by the first case that wants it; all others are skipped with the same words where it cannot be."""
    global cluster
    if cluster is None:
        try:
            cluster = Slurm()
        except Skip as reason:
            cluster = reason
    if isinstance(cluster, Skip):
        raise cluster
    return cluster


# How tasks find each other: through PMIx, which MPI uses, or at a port of the first node.
ACROSS = {"OMPI_MCA_btl_tcp_if_include": "10.77.13.0/24", "OMPI_MCA_oob_tcp_if_include": "10.77.13.0/24", "UCX_TLS": "tcp,self"}


def srun(nodes, tasks):
    """Nodes by name: else Slurm takes the second one while the first still clears up, and no rendezvous is there."""
    return ["srun", f"--nodelist={','.join(NODES[:nodes])}", f"--nodes={nodes}", f"--ntasks-per-node={tasks // nodes}", f"-n{tasks}"]


def by_pmix(nodes, tasks):
    need(os.path.exists(os.path.join(BIN, "libhpc_mpi.so")), "needs libhpc_mpi.so")
    return [*srun(nodes, tasks), "--mpi=pmix"], [], ACROSS if nodes > 1 else {}


def by_rendezvous(nodes, tasks):
    need(os.path.exists(os.path.join(BIN, "libhpc_ucx.so")), "needs libhpc_ucx.so")
    return srun(nodes, tasks), [f"--rendezvous=10.77.13.1:{free_port()}"], {"HPC_SECRET": SECRET, **(ACROSS if nodes > 1 else {})}


LAUNCHERS = {"pmix": by_pmix, "rendezvous": by_rendezvous}


def fresh(name):
    if os.path.exists(path(name)):
        os.remove(path(name))
    return path(name)


def equal_cases():
    for layout, nodes, tasks in (((2, 2, 1), 1, 2), ((2, 2, 1), 1, 4), ((2, 2, 2), 1, 8), ((2, 2, 2), 1, 2), ((2, 2, 1), 2, 2), ((2, 2, 1), 2, 4), ((2, 2, 2), 2, 2)):
        for name, launcher in LAUNCHERS.items():
            def case(layout=layout, nodes=nodes, tasks=tasks, launcher=launcher):
                """The bits of one process."""
                one = slurm()
                command, flags, variables = launcher(nodes, tasks)
                file, alone = plan(*layout)
                code, errors = one.run(*command, RUN, file, "--input", inputs(), "--output", fresh("slurm.npz"), "--poison", "--deterministic", *flags, **variables)
                check(code == 0, f"exit {code}: {errors}")
                got, want = (numpy.load(array)[MODELS["gpt2-odd"][3]] for array in (path("slurm.npz"), alone))
                check(numpy.array_equal(got.view(numpy.uint32), want.view(numpy.uint32)), "other bits than in one process")
            yield f"equal: {layout} in {tasks} tasks on {nodes} nodes by {name}", case

    def batch():
        """A script has Slurm's numbers too: what it starts by hand runs alone, what srun and mpirun start in it run together."""
        one = slurm()
        file, alone = plan(2, 2, 1)
        outputs = [fresh(f"batch.{name}.npz") for name in ("alone", "srun", "mpirun")]
        run = f"{RUN} {file} --input {inputs()} --output"
        with open(path("batch.sh"), "w") as script:
            script.write(f"#!/bin/sh\nset -e\n{run} {outputs[0]}\nsrun -n 2 {run} {outputs[1]} --deterministic --rendezvous=10.77.13.1:{free_port()}\n"
                         f"mpirun --oversubscribe -n 4 {run} {outputs[2]}\n")
        code, errors = one.run("sbatch", "--wait", f"--nodelist={NODES[0]}", "-n4", f"--output={path('batch.log')}", path("batch.sh"), HPC_SECRET=SECRET, **MPI_ENV)
        check(code == 0, f"exit {code}: {errors}{open(path('batch.log')).read()}")
        for output in outputs:
            check(open(output, "rb").read() == open(alone, "rb").read(), f"{output}: other bits than in one process")
    yield "equal: a batch script, alone, by srun and by mpirun", batch

    def on_cards(name, nodes):
        def case():
            """The tasks of a node take its cards in turn, and NCCL joins the nodes; the stand-in's cards have the same names on each, so a node has a name for NCCL."""
            one = slurm()
            command, flags, variables = LAUNCHERS[name](nodes, 4)
            file, alone = plan(2, 2, 1)
            code, errors = one.run(*command, "sh", "-c", 'NCCL_HOSTID=$SLURMD_NODENAME exec "$0" "$@"', RUN, file, "--backend=cuda", "--input", inputs(), "--output", fresh("cards.npz"), "--poison", *flags, **variables, **stand_in(4 // nodes))
            check(code == 0, f"exit {code}: {errors}")
            got, want = (numpy.load(array)[MODELS["gpt2-odd"][3]] for array in (path("cards.npz"), alone))
            check(numpy.abs(got - want).max() <= 3e-6 * numpy.abs(want).max(), "differs from the host")
        return case
    for name in LAUNCHERS:
        for nodes in (1, 2):
            yield f"equal: cards of {nodes} nodes by {name}", on_cards(name, nodes)


def wrong_cases():
    def nowhere():
        """Tasks that do not know where to meet end at once, with the remedy, and do not run the plan four times."""
        file, _ = plan(2, 2, 1)
        code, errors = slurm().run("srun", "-N1", "-n4", RUN, file, "--input", inputs(), "--output", fresh("nowhere.npz"))
        check(code == 1 and errors.count("srun has started 4 processes, which do not know where to meet; give --rendezvous=HOST:PORT") == 4, errors)
        check(not os.path.exists(path("nowhere.npz")), "there is an output")
    yield "wrong: no rendezvous", nowhere

    for name in LAUNCHERS:
        def three(name=name):
            command, flags, variables = LAUNCHERS[name](1, 3)
            file, _ = plan(2, 2, 1)
            code, errors = slurm().run(*command, RUN, file, "--input", inputs(), *flags, **variables)
            check(code == 1 and "the plan has 4 ranks, which 3 processes cannot share equally; start 1, 2 or 4 processes" in errors, errors)
        yield f"wrong: three tasks for four ranks by {name}", three


def tasks_of(mark):
    """The processes of hpc-run whose command has this word."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                words = file.read().split(b"\0")
        except OSError:
            continue
        if words[0] == RUN.encode() and mark.encode() in words:
            found.append(int(pid))
    return sorted(found)


def kill_cases():
    for number in range(options.kills):
        for name, launcher in LAUNCHERS.items():
            for how in (signal.SIGKILL, signal.SIGSTOP):
                nodes, tasks = (1, 2)[number % 2], (4, 2)[number // 2 % 2]
                victim = chance.randrange(tasks)

                def case(launcher=launcher, nodes=nodes, tasks=tasks, victim=victim, how=how):
                    """The others say who has gone and end in time; with --kill-on-bad-exit Slurm then ends the one that is stopped, too."""
                    one = slurm()
                    command, flags, variables = launcher(nodes, tasks)
                    file, _ = plan(2, 2, 1)
                    output = fresh("lost.npz")
                    launched = one.begin(*command, "--kill-on-bad-exit=1", RUN, file, "--input", inputs(), "--repeat=10000000", "--output", output, *flags, **variables)
                    for _ in range(300):
                        pids = tasks_of(output)
                        if len(pids) == tasks:
                            break
                        time.sleep(0.05)
                    if len(pids) != tasks:
                        launched.terminate()
                        raise AssertionError(f"srun started {len(pids)} of {tasks} tasks: {launched.communicate()[1]}")
                    time.sleep(1 + 2 * chance.random())
                    try:
                        os.kill(pids[victim], how)
                    except ProcessLookupError:
                        raise AssertionError(f"the task has ended before: exit {launched.wait(20)}, {launched.communicate()[1]}")
                    begin = time.time()
                    while len(tasks_of(output)) > (how == signal.SIGSTOP) and time.time() - begin < 20:
                        time.sleep(0.05)
                    took = time.time() - begin
                    try:
                        _, errors = launched.communicate(timeout=20)
                    except subprocess.TimeoutExpired:
                        for pid in tasks_of(output):
                            os.kill(pid, signal.SIGKILL)
                        launched.kill()
                        raise AssertionError(f"srun does not end: {launched.communicate()[1]}")
                    # Slurm may be faster than the others are with their message: then it is the one who says it.
                    check(launched.returncode != 0 and ("is gone" in errors or (how == signal.SIGKILL and "Killed" in errors)), f"exit {launched.returncode}: {errors}")
                    check(took < ENDED_WITHIN, f"took {took:.1f} s")
                    check(not tasks_of(output), "tasks are left")
                    check(not os.path.exists(output), "there is an output of a run that failed")
                yield f"kill: task {victim} of {tasks} on {nodes} nodes by {how.name}, {name}", case


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # and so the cluster ends, too
    try:
        code = run_cases(equal_cases, wrong_cases, kill_cases)
    finally:
        if isinstance(cluster, Slurm):
            cluster.close()
    sys.exit(code)
