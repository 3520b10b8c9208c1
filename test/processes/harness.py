"""Shared by processes.py, early.py, torchrun.py and slurm.py: plans and what one process makes of them, processes that are started and waited for, two network namespaces
as two hosts, and the loop over cases. Whoever imports it has these options, and ends with `N passed, N failed, N skipped`."""
import argparse
import os
import random
import shutil
import socket
import subprocess
import sys
import tempfile
import time

import numpy

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(1, os.path.join(ROOT, "test"))
from arrangements import ranks  # noqa: E402

MODEL = os.path.join(ROOT, "models", "gpt2-odd")
# Of each model the file, the sizes of its symbolic dims, its inputs and its output.
MODELS = {
    "gpt2-odd": ("dynamo-eager-op18.onnx", {"batch_size": 4, "sequence_length": 33}, "inputs_1.npz", "logits"),
    "decoder": ("model.onnx", {"batch": 2, "time": 9}, "inputs_0.npz", "scores"),
}
SECRET = "a secret of some length, for tests"
ENDED_WITHIN = 5.0  # seconds after a process has vanished or gone silent
MPI_ENV = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
LAUNCHER_VARIABLES = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", "HPC_SECRET", "SLURM_PROCID", "SLURM_NTASKS", "SLURM_STEP_ID", "SLURM_STEP_NUM_TASKS")
LAUNCHER_PREFIXES = ("OMPI_", "PMIX_", "PMI_", "MV2_", "MPI_LOCAL", "LOCAL_", "GROUP_", "ROLE_", "TORCHELASTIC_")

parser = argparse.ArgumentParser(description=sys.modules["__main__"].__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--bin", default=os.path.join(ROOT, "build", "bin"))
parser.add_argument("--only", default="")
parser.add_argument("--sample", type=int, default=1, metavar="N", help="every N-th case of those that --only leaves")
parser.add_argument("--kills", type=int, default=6, help="processes to kill, and to stop, at random points")
parser.add_argument("--seed", type=int, default=1)
parser.add_argument("--python", default="", help="a Python with torch, for torchrun.py")
options = parser.parse_args()
BIN = os.path.abspath(options.bin)
RUN = os.path.join(BIN, "hpc-run")
folder = tempfile.TemporaryDirectory(prefix="hpc-processes-")
chance = random.Random(options.seed)


def path(name):
    return os.path.join(folder.name, name)


class Skip(Exception):
    pass


def need(condition, what):
    if not condition:
        raise Skip(what)


def need_mpi():
    need(shutil.which("mpirun") and os.path.exists(os.path.join(BIN, "libhpc_mpi.so")), "needs mpirun and libhpc_mpi.so")


def need_ucx():
    need(os.path.exists(os.path.join(BIN, "libhpc_ucx.so")), "needs libhpc_ucx.so")


def environment(**variables):
    env = {name: value for name, value in os.environ.items() if name not in LAUNCHER_VARIABLES and not name.startswith(LAUNCHER_PREFIXES)}
    env.update(variables)
    return env


def free_port():
    """Below the ports that the system gives to outgoing connections: one of those could take it before process 0 listens."""
    while True:
        port = random.randrange(15000, 32000)
        with socket.socket() as one:
            try:
                one.bind(("127.0.0.1", port))
                return port
            except OSError:
                pass


plans = {}


def flags_of(layout):
    """Of (tp, pp, dp); in place of the number tp there may be flags, as in ../arrangements.py."""
    tp, pp, dp = layout
    return [*(tp.split() if isinstance(tp, str) else [f"--tp={tp}"]), f"--pp={pp}", f"--dp={dp}"]


def plan(tp, pp, dp, model="gpt2-odd"):
    """The plan of a layout, and what one process makes of it."""
    key = (tp, pp, dp, model)
    if key not in plans:
        file, alone = (path(f"{len(plans)}{ending}") for ending in (".plan", ".npz"))
        source, dims, _, _ = MODELS[model]
        subprocess.run([os.path.join(BIN, "hpc-opt"), os.path.join(ROOT, "models", model, source), *flags_of((tp, pp, dp)),
                        "--micro-batches=2", "--target=host,cuda", *(f"--dim={name}={size}" for name, size in dims.items()), "-o", file], check=True)
        subprocess.run([RUN, file, "--input", inputs(model), "--output", alone], check=True, env=environment(), stderr=subprocess.DEVNULL)
        plans[key] = (file, alone)
    return plans[key]


def inputs(model="gpt2-odd"):
    return os.path.join(ROOT, "models", model, MODELS[model][2])


def start(rank, count, port, arguments, address="127.0.0.1", prefix=(), **variables):
    env = environment(RANK=str(rank), WORLD_SIZE=str(count), LOCAL_RANK=str(rank), MASTER_ADDR=address, MASTER_PORT=str(port), **variables)
    return subprocess.Popen([*prefix, RUN, *arguments], env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def finish(processes, timeout):
    """Exit codes and standard errors; kills what has not ended, which is a failure of the test."""
    end = time.time() + timeout
    results = []
    for process in processes:
        try:
            _, errors = process.communicate(timeout=max(0.1, end - time.time()))
            results.append((process.returncode, errors))
        except subprocess.TimeoutExpired:
            process.kill()
            results.append((None, process.communicate()[1]))
    return results


def by_environment(count, arguments, **variables):
    port = free_port()
    return finish([start(rank, count, port, arguments, **variables) for rank in range(count)], 120)


def by_mpirun(count, arguments):
    done = subprocess.run(["mpirun", "--oversubscribe", "-n", str(count), RUN, *arguments], env=environment(**MPI_ENV), capture_output=True, text=True,
                          timeout=120)
    return [(done.returncode, done.stderr)]


def check(condition, message):
    if not condition:
        raise AssertionError(message)


def check_equal(model, layout, count, launcher, deterministic):
    """Bit for bit where sums have the order of the ranks, else within the grid's bound of 3e-6 of max |logit|."""
    file, alone = plan(*layout, model)
    output = path("out.npz")
    if os.path.exists(output):
        os.remove(output)
    results = launcher(count, [file, "--input", inputs(model), "--output", output, "--poison"] + (["--deterministic"] if deterministic else []))
    check(all(code == 0 for code, _ in results), f"{results}")
    got, want = (numpy.load(array)[MODELS[model][3]] for array in (output, alone))
    if deterministic or count == ranks(flags_of(layout)):
        check(numpy.array_equal(got.view(numpy.uint32), want.view(numpy.uint32)), "other bits than in one process")
    else:
        check(numpy.abs(got - want).max() <= 3e-6 * numpy.abs(want).max(), "differs from one process")


def stand_in(cards):
    folder = os.path.join(os.path.dirname(BIN), "test", "gpu", "standin")
    need(os.path.exists(os.path.join(folder, "libnccl.so.2")), "needs the stand-in for GPUs")
    return {"HPC_CUDA_LIBRARIES": folder, "HPC_STANDIN_DEVICES": str(cards)}


class Hosts:
    """Two network namespaces joined by a cable: what two machines are to the programs. Of this run alone: another may go on beside it."""
    NAMES, ADDRESSES = (f"hpca-{os.getpid()}", f"hpcb-{os.getpid()}"), ("10.77.13.1", "10.77.13.2")

    def __enter__(self):
        need(os.geteuid() == 0 and shutil.which("ip"), "needs root and iproute2")
        self.close()
        try:
            self.join()
        except BaseException:  # a `with` does not end what it could not begin
            self.close()
            raise
        return self

    def join(self):
        for name in self.NAMES:
            need(subprocess.run(["ip", "netns", "add", name], capture_output=True).returncode == 0, "no network namespaces here")
        subprocess.run(["ip", "link", "add", "hpcva", "netns", self.NAMES[0], "type", "veth", "peer", "name", "hpcvb", "netns", self.NAMES[1]], check=True)
        for name, device, address in zip(self.NAMES, ("hpcva", "hpcvb"), self.ADDRESSES):
            subprocess.run(["ip", "-n", name, "addr", "add", address + "/24", "dev", device], check=True)
            subprocess.run(["ip", "-n", name, "link", "set", "lo", "up"], check=True)
            subprocess.run(["ip", "-n", name, "link", "set", device, "up"], check=True)
        for name, device in zip(self.NAMES, ("hpcva", "hpcvb")):
            self.await_carrier(name, device)

    @staticmethod
    def await_carrier(name, device):
        """Linux says so up to a second after both ends are up, and more where it is busy; till then UCX leaves the device out."""
        end = time.time() + 30
        while "state UP" not in subprocess.run(["ip", "-n", name, "link", "show", device], check=True, capture_output=True, text=True).stdout:
            check(time.time() < end, f"{device} has no carrier after 30 s")
            time.sleep(0.02)

    def __exit__(self, *_):
        self.close()

    def close(self):
        for name in self.NAMES:
            subprocess.run(["ip", "netns", "del", name], capture_output=True)

    def prefix(self, host):
        return ["ip", "netns", "exec", self.NAMES[host]]

    def cut(self):
        subprocess.run(["ip", "-n", self.NAMES[0], "link", "set", "hpcva", "down"], check=True)


def run_cases(*groups):
    """The exit code of a script that has tried the cases, pairs of name and function, of all groups."""
    passed = failed = skipped = seen = 0
    wanted = [part for part in options.only.split(";") if part]
    for cases in groups:
        for name, case in cases():
            if wanted and not any(name.startswith(part) for part in wanted):
                continue
            seen += 1
            if seen % options.sample:
                continue
            try:
                case()
                passed += 1
            except Skip as reason:
                print(f"SKIP {name}: {reason}")
                skipped += 1
            except (AssertionError, subprocess.SubprocessError, OSError, KeyError) as error:
                print(f"FAIL {name}: {error}")
                failed += 1
            sys.stdout.flush()
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    return 1 if failed else 0
