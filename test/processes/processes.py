#!/usr/bin/python3
"""hpc-run as several processes: equal to one process, started by mpirun and by the environment, on one host and on two (network namespaces);
processes that are killed, stopped or cut off; processes that do not belong together; and the same with GPUs, on the stand-in. Needs python3 and numpy; what needs mpirun or root is skipped,
and counted, where that is missing. The last line is `N passed, N failed, N skipped`.

  test/processes/processes.py [--bin=build/bin] [--only="equal: (2, 1, 1);kill"] [--kills=8]
"""
import argparse
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

import numpy

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
MODEL = os.path.join(ROOT, "models", "gpt2-odd")
# Of each model the file, the sizes of its symbolic dims, its inputs and its output.
MODELS = {
    "gpt2-odd": ("dynamo-eager-op18.onnx", {"batch_size": 4, "sequence_length": 33}, "inputs_1.npz", "logits"),
    "decoder": ("model.onnx", {"batch": 2, "time": 9}, "inputs_0.npz", "scores"),
}
SECRET = "a secret of some length, for tests"
ENDED_WITHIN = 5.0  # seconds after a process has vanished or gone silent
MPI_ENV = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
LAUNCHER_VARIABLES = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT", "HPC_SECRET", "SLURM_PROCID", "SLURM_NTASKS", "SLURM_STEP_ID")

parser = argparse.ArgumentParser()
parser.add_argument("--bin", default=os.path.join(ROOT, "build", "bin"))
parser.add_argument("--only", default="")
parser.add_argument("--kills", type=int, default=6, help="processes to kill, and to stop, at random points")
parser.add_argument("--seed", type=int, default=1)
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
    env = {name: value for name, value in os.environ.items() if name not in LAUNCHER_VARIABLES and not name.startswith(("OMPI_", "PMIX_"))}
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


def plan(tp, pp, dp, model="gpt2-odd"):
    """The plan of a layout, and what one process makes of it."""
    key = (tp, pp, dp, model)
    if key not in plans:
        file, alone = (path("-".join(map(str, key)) + ending) for ending in (".plan", ".npz"))
        source, dims, _, _ = MODELS[model]
        subprocess.run([os.path.join(BIN, "hpc-opt"), os.path.join(ROOT, "models", model, source), f"--tp={tp}", f"--pp={pp}", f"--dp={dp}",
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
    if deterministic or count == layout[0] * layout[1] * layout[2]:
        check(numpy.array_equal(got.view(numpy.uint32), want.view(numpy.uint32)), "other bits than in one process")
    else:
        check(numpy.abs(got - want).max() <= 3e-6 * numpy.abs(want).max(), "differs from one process")


def equal_cases():
    odd = ((2, 1, 1), (2,)), ((3, 2, 1), (2, 3, 6)), ((2, 2, 1), (2, 4)), ((1, 2, 2), (4,)), ((2, 2, 2), (2, 4, 8)), ((8, 1, 1), (2, 4, 8)), ((2, 1, 4), (2, 8))
    decoder = ((2, 1, 1), (2,)), ((2, 2, 1), (4,)), ((2, 2, 2), (2, 8))
    for model, layout, counts in [("gpt2-odd", *one) for one in odd] + [("decoder", *one) for one in decoder]:
        for count in counts:
            for name, launcher, needed in (("mpirun", by_mpirun, need_mpi), ("environment", by_environment, need_ucx)):
                for deterministic in (False, True):
                    def case(model=model, layout=layout, count=count, launcher=launcher, needed=needed, deterministic=deterministic):
                        needed()
                        check_equal(model, layout, count, launcher, deterministic)
                    yield f"equal: {'' if model == 'gpt2-odd' else model + ' '}{layout} in {count} processes by {name}{', deterministic' if deterministic else ''}", case


LONG = ["--repeat=10000000", "--output"]


def vanish(count, victim, how, layout=(2, 2, 1), flags=(), **variables):
    """One of `count` processes gets a signal at a random point; how long the others take to end, and what they say."""
    output = path("lost.npz")
    file, _ = plan(*layout)
    port = free_port()
    processes = [start(rank, count, port, [file, "--input", inputs(), *flags, *LONG, output], **variables) for rank in range(count)]
    time.sleep(0.5 + 2 * chance.random())
    processes[victim].send_signal(how)
    begin = time.time()
    others = [process for rank, process in enumerate(processes) if rank != victim]
    results = finish(others, 20)
    took = time.time() - begin
    processes[victim].kill()
    processes[victim].communicate()
    check(not os.path.exists(output), "there is an output of a run that failed")
    return took, results


def check_vanished(victim, took, results):
    """Every process that is left says once who has gone, in time."""
    for code, errors in results:
        check(code == 1, f"exit {code}: {errors}")
        lines = [line for line in errors.splitlines() if not line.startswith("note:")]
        check(len(lines) == 1, f"not one message: {errors}")
        early = "did not come" in errors or "ended before" in errors or "the rendezvous at" in errors
        check(early or f"process {victim} (rank" in errors and "is gone" in errors, errors)
        check("host " in errors, errors)
    check(took < ENDED_WITHIN, f"took {took:.1f} s")


def kill_cases():
    for number in range(options.kills):
        for how in (signal.SIGKILL, signal.SIGSTOP):
            count = (2, 4)[number % 2]
            victim = chance.randrange(count)

            def case(count=count, victim=victim, how=how):
                need_ucx()
                check_vanished(victim, *vanish(count, victim, how))
            yield f"kill: process {victim} of {count} by {how.name}", case


CUDA = ["--backend=cuda"]


def stand_in(cards):
    folder = os.path.join(os.path.dirname(BIN), "test", "gpu", "standin")
    need(os.path.exists(os.path.join(folder, "libnccl.so.2")), "needs the stand-in for GPUs")
    return {"HPC_CUDA_LIBRARIES": folder, "HPC_STANDIN_DEVICES": str(cards)}


def gpu_cases():
    """A card for each rank, and NCCL between them."""
    for layout, count in (((2, 2, 1), 4), ((2, 2, 1), 2), ((1, 1, 2), 2), ((1, 2, 2), 4)):
        for by_mpi in (True, False):
            def case(layout=layout, count=count, by_mpi=by_mpi):
                ranks = layout[0] * layout[1] * layout[2]
                file, alone = plan(*layout)
                output = path("gpu.npz")
                if os.path.exists(output):
                    os.remove(output)
                arguments = [file, *CUDA, "--input", inputs(), "--output", output, "--poison"]
                if by_mpi:
                    need_mpi()
                    done = subprocess.run(["mpirun", "--oversubscribe", "-n", str(count), RUN, *arguments], env=environment(**MPI_ENV, **stand_in(ranks)),
                                          capture_output=True, text=True, timeout=120)
                    results = [(done.returncode, done.stderr)]
                else:
                    results = by_environment(count, arguments, **stand_in(ranks))
                check(all(code == 0 for code, _ in results), f"{results}")
                got, want = numpy.load(output)["logits"], numpy.load(alone)["logits"]
                check(numpy.abs(got - want).max() <= 3e-6 * numpy.abs(want).max(), "differs from the host")
            yield f"gpu equal: {layout} in {count} processes by {'mpirun' if by_mpi else 'environment'}", case

    for number in range(options.kills):
        for how in (signal.SIGKILL, signal.SIGSTOP):
            count = (2, 4)[number % 2]
            victim = chance.randrange(count)

            def case(count=count, victim=victim, how=how):
                check_vanished(victim, *vanish(count, victim, how, flags=CUDA, **stand_in(4)))
            yield f"gpu kill: process {victim} of {count} by {how.name}", case

    for number in range(options.kills):
        victim, call = chance.randrange(4), chance.randrange(10, 700)

        def case(victim=victim, call=call):
            """A call of one rank's libraries fails, wherever it is then: all say the same, and nobody is killed for it."""
            file, _ = plan(2, 2, 1)
            port = free_port()
            results = finish([start(rank, 4, port, [file, *CUDA, "--input", inputs(), *LONG, path("never.npz")], **stand_in(4),
                                    **({"HPC_STANDIN_FAILING_CALL": str(call)} if rank == victim else {})) for rank in range(4)], 30)
            said = {tuple(line for line in errors.splitlines() if not line.startswith("note:")) for _, errors in results}
            check(len({code for code, _ in results}) == 1 and results[0][0] in (1, 2), f"{results}")
            check(len(said) == 1 and len(next(iter(said))) == 1, f"not one message: {results}")
            check(not os.path.exists(path("never.npz")), "there is an output of a run that failed")
        yield f"gpu error: call {call} of process {victim}", case

    def too_few():
        file, _ = plan(2, 2, 1)
        for code, errors in by_environment(4, [file, *CUDA, "--input", inputs()], **stand_in(2)):
            check(code == 1 and "this process is number" in errors and "the machine has 2" in errors, errors)
        for code, errors in by_environment(2, [file, *CUDA, "--input", inputs(), "--ranks-per-gpu=2"], **stand_in(2)):
            check(code == 1 and "several talk by NCCL, which wants a GPU for each rank" in errors, errors)
        # One card that all see: NCCL takes it for one of several hosts' only under a name of its own.
        for code, errors in by_environment(4, [file, *CUDA, "--input", inputs()], **stand_in(1)):
            check(code == 1 and "of different processes have one GPU" in errors and "--ranks-per-gpu=4" in errors, errors)
        port = free_port()
        results = finish([start(rank, 4, port, [file, *CUDA, "--input", inputs()], **stand_in(1), NCCL_HOSTID=f"host{rank}") for rank in range(4)], 60)
        check(all(code == 0 for code, _ in results), f"{results}")
    yield "gpu cards: too few, and one", too_few


def ranks_of(launcher):
    """The processes of hpc-run below mpirun, which are its children on one host."""
    found = subprocess.run(["pgrep", "-P", str(launcher.pid)], capture_output=True, text=True).stdout.split()
    return sorted(map(int, found))


def is_alive(pid):
    """False also where only its parent has still to hear of its end."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()[0] not in "ZX"
    except OSError:
        return False


def mpi_kill_cases():
    """mpirun sees that a process is gone, and the transport's deadline that one is silent: either ends all of them."""
    for number in range(options.kills // 2):
        for how in (signal.SIGKILL, signal.SIGSTOP):
            count = (2, 4)[number % 2]
            victim = chance.randrange(count)

            def case(count=count, victim=victim, how=how):
                need_mpi()
                need(shutil.which("pgrep"), "needs pgrep (procps)")
                output = path("lost-mpi.npz")
                file, _ = plan(2, 2, 1)
                launcher = subprocess.Popen(["mpirun", "--oversubscribe", "-n", str(count), RUN, file, "--input", inputs(), *LONG, output],
                                            env=environment(**MPI_ENV), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
                for _ in range(200):  # until it has started them
                    ranks = ranks_of(launcher)
                    if len(ranks) == count:
                        break
                    time.sleep(0.05)
                check(len(ranks) == count, f"mpirun started {len(ranks)} of {count} processes")
                time.sleep(1 + 2 * chance.random())
                os.kill(ranks[victim], how)
                begin = time.time()
                results = finish([launcher], 30)
                left = ranks  # mpirun has told them to end; it does not wait until they have
                while left and time.time() - begin < ENDED_WITHIN + 1:
                    left = [rank for rank in left if is_alive(rank)]
                    time.sleep(0.05)
                took = time.time() - begin
                for rank in left:
                    os.kill(rank, signal.SIGKILL)
                code, errors = results[0]
                check(code not in (0, None), f"exit {code}: {errors}")
                check(how == signal.SIGKILL or "is gone" in errors, errors)
                check(took < ENDED_WITHIN + 1, f"took {took:.1f} s")  # mpirun itself takes some time to end
                check(not left, f"{len(left)} processes are left")
                check(not os.path.exists(output), "there is an output of a run that failed")
            yield f"kill: process {victim} of {count} under mpirun by {how.name}", case


def belong_cases():
    def different(what, change):
        def case():
            need_ucx()
            file, _ = plan(2, 1, 1)
            port = free_port()
            results = finish([start(rank, 2, port, [file, "--input", inputs(), "--output", path("never.npz")] if rank == 0 else change(file))
                              for rank in range(2)], 60)
            for code, errors in results:
                check(code == 1 and what in errors and "process 1 (" in errors, errors)
            check(not os.path.exists(path("never.npz")), "there is an output")
        return case

    def other_plan(file):
        changed = path("changed.plan")
        subprocess.run([os.path.join(BIN, "hpc-opt"), os.path.join(MODEL, "dynamo-eager-op18.onnx"), "--tp=2", "--dim", "batch_size=4", "--dim",
                        "sequence_length=33", "-o", changed], check=True)
        return [changed, "--input", inputs()]

    def other_inputs(file):
        arrays = dict(numpy.load(inputs()))
        arrays["input_ids"] = arrays["input_ids"][::-1].copy()
        numpy.savez(path("other.npz"), **arrays)
        return [file, "--input", path("other.npz")]

    yield "belong: another plan", different("other bytes in its plan than process 0", other_plan)
    yield "belong: other inputs", different("other inputs than process 0", other_inputs)
    yield "belong: other flags", different("other flags than process 0", lambda file: [file, "--input", inputs(), "--poison"])
    yield "belong: a plan that is not there", different("no-such.plan", lambda file: [path("no-such.plan"), "--input", inputs()])

    def other_checkpoint():
        """Two checkpoints of one run: of the same step they differ in weights, of different steps also in how far they are."""
        need_ucx()
        file, data = path("train.plan"), path("train.npz")
        subprocess.run([os.path.join(BIN, "hpc-opt"), os.path.join(MODEL, "dynamo-eager-op18.onnx"), "--train", "--optimizer=sgd", "--tp=2", "--dim", "batch_size=4", "--dim",
                        "sequence_length=33", "-o", file], check=True)
        numpy.savez(data, input_ids=numpy.arange(4 * 33).reshape(4, 33))
        train = [file, "--train", "--data", data]
        for name, rate in (("one", 0.1), ("other", 0.2)):
            subprocess.run([RUN, *train, "--steps=1", f"--lr={rate}", f"--save={path(name)}.safetensors"], check=True, stdout=subprocess.DEVNULL)
        port = free_port()
        results = finish([start(rank, 2, port, [*train, "--steps=2", "--lr=0.1", f"--load={path(name)}.safetensors"]) for rank, name in enumerate(("one", "other"))], 60)
        for code, errors in results:
            check(code == 1 and "other content in its checkpoint than process 0" in errors and "give all processes the same --load" in errors, errors)
    yield "belong: another checkpoint", other_checkpoint

    def other_weights():
        """A host whose weights have one changed byte: the plan's hashes find it, and all processes name tensor and rank."""
        need_ucx()
        copy = path("weights")
        shutil.copytree(MODEL, copy, dirs_exist_ok=True)
        file, _ = plan(2, 1, 1)
        weights = [name for name in os.listdir(copy) if name.startswith("dynamo-eager-op18.onnx")]
        target = os.path.join(copy, max(weights, key=lambda name: os.path.getsize(os.path.join(copy, name))))
        with open(target, "r+b") as one:
            data = bytearray(one.read())
            for at in range(len(data) // 3, len(data), 4096):
                data[at] ^= 0x10
            one.seek(0)
            one.write(data)
        port = free_port()
        results = finish([start(0, 2, port, [file, "--input", inputs()]), start(1, 2, port, [file, "--input", inputs(), f"--weights={target}"])], 60)
        for code, errors in results:
            check(code == 1 and "rank 1 (stage 0): weight '" in errors and "are not those that the plan was compiled from" in errors, errors)
    yield "belong: other weights", other_weights

    def wrong_secret():
        """Process 1 with another secret is told so; process 0 goes on waiting, and takes the right one."""
        need_ucx()
        file, alone = plan(2, 1, 1)
        port = free_port()
        arguments = [file, "--input", inputs(), "--output", path("secret.npz")]
        host = start(0, 2, port, arguments, HPC_SECRET=SECRET)
        wrong = finish([start(1, 2, port, arguments, HPC_SECRET=SECRET + "?")], 30)[0]
        check(wrong[0] == 1 and "set HPC_SECRET to the same text everywhere" in wrong[1], f"{wrong}; process 0: {host.poll()}")
        results = finish([start(1, 2, port, arguments, HPC_SECRET=SECRET), host], 60)
        check(all(code == 0 for code, _ in results), f"{results}")
        check(open(alone, "rb").read() == open(path("secret.npz"), "rb").read(), "other bits than in one process")
    yield "belong: a wrong secret", wrong_secret


class Hosts:
    """Two network namespaces joined by a cable: what two machines are to the programs."""
    NAMES, ADDRESSES = ("hpca", "hpcb"), ("10.77.13.1", "10.77.13.2")

    def __enter__(self):
        need(os.geteuid() == 0 and shutil.which("ip"), "needs root and iproute2")
        self.close()
        for name in self.NAMES:
            need(subprocess.run(["ip", "netns", "add", name], capture_output=True).returncode == 0, "no network namespaces here")
        subprocess.run(["ip", "link", "add", "hpcva", "netns", "hpca", "type", "veth", "peer", "name", "hpcvb", "netns", "hpcb"], check=True)
        for name, device, address in zip(self.NAMES, ("hpcva", "hpcvb"), self.ADDRESSES):
            subprocess.run(["ip", "-n", name, "addr", "add", address + "/24", "dev", device], check=True)
            subprocess.run(["ip", "-n", name, "link", "set", "lo", "up"], check=True)
            subprocess.run(["ip", "-n", name, "link", "set", device, "up"], check=True)
        time.sleep(1)  # until the cable has carrier
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        for name in self.NAMES:
            subprocess.run(["ip", "netns", "del", name], capture_output=True)

    def prefix(self, host):
        return ["ip", "netns", "exec", self.NAMES[host]]

    def cut(self):
        subprocess.run(["ip", "-n", "hpca", "link", "set", "hpcva", "down"], check=True)


def two_hosts(arguments):
    port = free_port()
    # Shared memory would reach beyond a network namespace.
    return [start(rank, 2, port, arguments, address=Hosts.ADDRESSES[0], prefix=Hosts.prefix(Hosts, rank), HPC_SECRET=SECRET, UCX_TLS="tcp,self")
            for rank in range(2)]


def host_cases():
    def by_env():
        need_ucx()
        file, alone = plan(2, 2, 1)
        with Hosts():
            results = finish(two_hosts([file, "--input", inputs(), "--output", path("hosts.npz")]), 60)
        check(all(code == 0 for code, _ in results), f"{results}")
        check(open(alone, "rb").read() == open(path("hosts.npz"), "rb").read(), "other bits than in one process")
    yield "hosts: two, by the environment", by_env

    def by_mpi():
        need_mpi()
        file, alone = plan(2, 2, 1)
        agent = path("agent.sh")  # mpirun starts its daemon on the other host by this, as it would by ssh
        with open(agent, "w") as script:
            script.write('#!/bin/sh\nshift\nexec ip netns exec hpcb sh -c "$*"\n')
        os.chmod(agent, 0o755)
        network = "10.77.13.0/24"
        with Hosts() as hosts:
            done = subprocess.run([*hosts.prefix(0), "mpirun", "--mca", "plm_rsh_agent", agent, "--mca", "btl", "tcp,self", "--mca", "btl_tcp_if_include", network,
                                   "--mca", "oob_tcp_if_include", network, "--host", "10.77.13.1:2,10.77.13.2:2", "--oversubscribe", "-n", "4", RUN, file,
                                   "--input", inputs(), "--output", path("hosts-mpi.npz")], env=environment(**MPI_ENV), capture_output=True, text=True, timeout=90)
        check(done.returncode == 0, done.stderr)
        check(open(alone, "rb").read() == open(path("hosts-mpi.npz"), "rb").read(), "other bits than in one process")
    yield "hosts: two, by mpirun", by_mpi

    def severed():
        need_ucx()
        file, _ = plan(2, 2, 1)
        with Hosts() as hosts:
            processes = two_hosts([file, "--input", inputs(), *LONG, path("cut.npz")])
            time.sleep(2 + chance.random())
            hosts.cut()
            begin = time.time()
            results = finish(processes, 30)
            took = time.time() - begin
        for code, errors in results:
            check(code == 1 and "nothing was heard of it" in errors, f"exit {code}: {errors}")
        check(took < ENDED_WITHIN, f"took {took:.1f} s")
        check(not os.path.exists(path("cut.npz")), "there is an output of a run that failed")
    yield "hosts: a cut network", severed


def main():
    passed = failed = skipped = 0
    wanted = [part for part in options.only.split(";") if part]
    for cases in (equal_cases, belong_cases, kill_cases, mpi_kill_cases, gpu_cases, host_cases):
        for name, case in cases():
            if wanted and not any(name.startswith(part) for part in wanted):
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


if __name__ == "__main__":
    sys.exit(main())
