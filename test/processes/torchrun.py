#!/usr/bin/python3
"""hpc-run and hpc-train as the workers of a real torchrun, in all forms of its rendezvous, several at once, restarted, below mpirun and on two hosts (network
namespaces); and workers that fail before they have met. Needs a Python with torch; the last line is `N passed, N failed, N skipped`.

  test/processes/torchrun.py --python=$(test/environment.sh) [--bin=build/bin] [--only="form;restart"]
"""
import os
import subprocess
import sys

import numpy

from harness import (MPI_ENV, RUN, SECRET, Hosts, check, environment, finish, free_port, inputs, need, need_mpi, need_ucx, options, path, plan,
                     run_cases)
from started import TOOLS, alone as one_process, curve

def torchrun(form, command, output, prefix=(), workers=2, agents=1, **variables):
    """One agent; `command`: what each worker runs, given the arguments of hpc-run."""
    need(options.python, "needs --python with torch")
    need_ucx()
    file, _ = plan(workers * agents, 1, 1)
    if output and os.path.exists(path(output)):
        os.remove(path(output))
    arguments = [RUN, file, "--input", inputs(), *(["--output", path(output)] if output else [])]
    return subprocess.Popen([*prefix, options.python, "-m", "torch.distributed.run", *form, f"--nproc-per-node={workers}", "--no-python", *command(arguments)],
                            env=environment(**variables), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def plain(arguments):
    return arguments


def shell(script):
    """The script is run by sh with hpc-run's command as its arguments."""
    return lambda arguments: ["sh", "-c", script, "sh", *arguments]


def check_right(results, outputs, ranks=2, runs=None):
    """`runs`: of hpc-run, in each of which process 0 says what it ignores; 0: some did not come so far."""
    check(all(code == 0 for code, _ in results), f"{results}")
    said = sum(errors.count("note: array") for _, errors in results)
    check(runs == 0 or said == (runs or len(outputs)), f"{said} processes ran alone or as process 0: {results}")
    _, alone = plan(ranks, 1, 1)
    for output in outputs:
        got, want = (numpy.load(file)["logits"] for file in (path(output), alone))
        check(numpy.array_equal(got.view(numpy.uint32), want.view(numpy.uint32)), f"{output}: other bits than in one process")


def forms():
    return {"default": ([], {}), "standalone": (["--standalone"], {}), "static": ([f"--master-port={free_port()}"], {}),
            "static endpoint": (["--rdzv-backend=static", f"--rdzv-endpoint=localhost:{free_port()}", "--node-rank=0"], {}),
            "c10d": (["--rdzv-backend=c10d", f"--rdzv-endpoint=localhost:{free_port()}", "--rdzv-id=here"], {}),
            "a store without libuv": (["--rdzv-backend=c10d", f"--rdzv-endpoint=localhost:{free_port()}"], {"USE_LIBUV": "0"}),
            "a port of its own": (["--standalone"], {"TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1"})}


def form_cases():
    def all_at_once():
        """Each in the way that its user would write it, and none in the way of another."""
        started = {name: torchrun(form, plain, f"{name}.npz", **variables) for name, (form, variables) in forms().items()}
        check_right(finish(started.values(), 120), [f"{name}.npz" for name in started])
    yield "form: all, at once", all_at_once

    def alone(name):
        def case():
            form, variables = forms()[name]
            check_right(finish([torchrun(form, plain, "form.npz", **variables)], 60), ["form.npz"])
        return case
    for name in forms():
        yield f"form alone: {name}", alone(name)

    def two_agents(form):
        def case():
            """Two agents on this machine: their workers need no secret, whatever its name stands for."""
            agents = [torchrun(["--nnodes=2", *(each.format(rank) for each in form)], plain, "agents.npz", workers=1, agents=2) for rank in range(2)]
            check_right(finish(agents, 60), ["agents.npz"])
        return case
    yield "form: two static agents", two_agents(["--node-rank={}", "--master-addr=127.0.0.1", f"--master-port={free_port()}"])
    yield "form: two c10d agents", two_agents(["--rdzv-backend=c10d", f"--rdzv-endpoint=localhost:{free_port()}", "--rdzv-id=both"])

    def below_mpirun():
        """mpirun starts one agent, and its own variables are inherited by the workers: they are two, not each the only one."""
        need_mpi()
        check_right(finish([torchrun(["--standalone"], plain, "below.npz", prefix=["mpirun", "-n", "1"], **MPI_ENV)], 60), ["below.npz"])
    yield "form: below mpirun -n 1", below_mpirun

    def below_two():
        """Two agents below one mpirun, each a job of its own: nothing says whether mpirun's processes or torchrun's are meant."""
        need_mpi()
        results = finish([torchrun(["--standalone"], plain, "never.npz", prefix=["mpirun", "--oversubscribe", "-n", "2"], **MPI_ENV)], 60)
        check(results[0][0] not in (0, None) and "contradict" in results[0][1] and "OMPI_COMM_WORLD_SIZE=2" in results[0][1], f"{results}")
        check(not os.path.exists(path("never.npz")), "there is an output")
    yield "form: below mpirun -n 2", below_two

    def own_place():
        check_right(finish([torchrun(["--standalone"], lambda arguments: [*arguments, f"--rendezvous=127.0.0.1:{free_port()}"], "place.npz")], 60), ["place.npz"])
    yield "form: --rendezvous", own_place


def restart_cases():
    def restarted(form):
        def case():
            """The first round ends by one worker that fails at once, or after it has met: the second finds its own."""
            scripts = {"at once": '[ $RANK = 0 ] || exit 3', "later": '"$@" --repeat=1000000 & sleep 1.5; [ $RANK = 0 ] || kill -9 $!; wait $!; exit 3'}
            started = [torchrun([*form(), "--max-restarts=1"], shell(f'[ "$TORCHELASTIC_RESTART_COUNT" != 0 ] || {{ {first}; }}; exec "$@"'), f"restarted {name}.npz")
                       for name, first in scripts.items()]
            check_right(finish(started, 60), [f"restarted {name}.npz" for name in scripts], runs=0)
        return case
    yield "restart: standalone", restarted(lambda: ["--standalone"])
    yield "restart: static", restarted(lambda: [f"--master-port={free_port()}"])

    def twice():
        """The second run of a script meets where the first one's entry still is."""
        check_right(finish([torchrun(["--standalone"], shell('"$@" && "$@"'), "twice.npz")], 60), ["twice.npz"], runs=2)
    yield "restart: twice in one script", twice


def failure_cases():
    def failing(script, expected):
        def case():
            results = finish([torchrun(["--standalone"], shell(script), "failed.npz")], 60)
            check(results[0][0] not in (0, None) and expected in results[0][1], f"{results}")
            check(not os.path.exists(path("failed.npz")), "there is an output")
        return case
    for rank in (0, 1):
        yield f"failure: an unknown flag in {rank}", failing(f'[ $RANK != {rank} ] || set -- "$@" --no-such-flag; exec "$@"', "--no-such-flag")
        yield f"failure: {rank} is killed at once", failing(f"[ $RANK != {rank} ] || sh -c 'kill -9 $PPID'; exec \"$@\"", "Signal 9")


def train_cases():
    """Training: the curve of one process. Without `--` torch takes --run of hpc-train for an abbreviation of its own."""
    def trained(tool, make):
        def case():
            need(options.python, "needs --python with torch")
            command, metrics = make(f"torchrun-{tool}")
            code, errors = finish([subprocess.Popen([options.python, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=4", "--no-python", "--", *command],
                                                    env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)], 120)[0]
            check(code == 0 and curve(metrics) == one_process(tool), errors)
        return case
    for tool, make in TOOLS.items():
        yield f"train: {tool}", trained(tool, make)

    def processes_too():
        """Each worker says that it is one already."""
        need(options.python, "needs --python with torch")
        results = finish([torchrun(["--standalone"], lambda arguments: [*arguments, "--processes=2"], "never.npz")], 60)
        check(results[0][0] not in (0, None) and "--processes=2 starts processes, and RANK=" in results[0][1] and "(torchrun)" in results[0][1], f"{results}")
    yield "train: --processes in a worker", processes_too


def host_cases():
    def hosts(form, secrets, expected=None):
        def case():
            """An agent on each of two hosts; without the secret on one of them it is told so, and the other hears it."""
            with Hosts() as two:
                agents = [torchrun(["--nnodes=2", *form(rank)], plain, "hosts.npz", prefix=two.prefix(rank), workers=1, agents=2, UCX_TLS="tcp,self",
                                   **({"HPC_SECRET": SECRET} if rank in secrets else {})) for rank in range(2)]
                results = finish(agents, 60)
            if not expected:
                return check_right(results, ["hosts.npz"])
            for code, errors in results:
                check(code not in (0, None) and expected in errors, f"{results}")
        return case

    def static(rank):
        return [f"--node-rank={rank}", f"--master-addr={Hosts.ADDRESSES[0]}", "--master-port=29533"]

    def c10d(rank):
        return ["--rdzv-backend=c10d", f"--rdzv-endpoint={Hosts.ADDRESSES[0]}:29534", "--rdzv-id=hosts", f"--rdzv-conf=is_host={rank == 0}", f"--local-addr={Hosts.ADDRESSES[rank]}"]
    yield "hosts: static", hosts(static, (0, 1))
    yield "hosts: c10d", hosts(c10d, (0, 1))
    yield "hosts: no secret", hosts(static, (), "set HPC_SECRET to the same secret in all processes")
    yield "hosts: another secret", hosts(static, (0,), "set HPC_SECRET to the same")


if __name__ == "__main__":
    sys.exit(run_cases(form_cases, restart_cases, failure_cases, train_cases, host_cases))
