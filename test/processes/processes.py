#!/usr/bin/python3
"""hpc-run as several processes: equal to one process, started by mpirun and by the environment, on one host and on two (network namespaces);
processes that are killed, stopped or cut off; processes that do not belong together; and the same with GPUs, on the stand-in. Needs python3 and numpy; what needs mpirun or root is skipped,
and counted, where that is missing. The last line is `N passed, N failed, N skipped`.

  test/processes/processes.py [--bin=build/bin] [--only="equal: (2, 1, 1);kill"] [--kills=8]
"""
import os
import shutil
import signal
import subprocess
import sys
import time

import numpy

sys.path.insert(1, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from wire_format import fields
from harness import (BIN, ENDED_WITHIN, MODEL, MPI_ENV, RUN, SECRET, Hosts, by_environment, by_mpirun, chance, check, check_equal, environment, finish, flags_of, free_port, inputs,
                     need, need_mpi, need_ucx, options, path, plan, ranks, run_cases, stand_in, start)


def equal_cases():
    odd = ((2, 1, 1), (2,)), ((3, 2, 1), (2, 3, 6)), ((2, 2, 1), (2, 4)), ((1, 2, 2), (4,)), ((2, 2, 2), (2, 4, 8)), ((8, 1, 1), (2, 4, 8)), ((2, 1, 4), (2, 8))
    odd += (("--tp=4 --tp-layout=2d", 1, 1), (2, 4)), (("--tp=8 --tp-layout=3d", 1, 1), (4,)), (("--tp=2 --tp-layout=2.5d:1x1x2", 2, 1), (4,)), \
           (("--cp=2 --tp=2 --sp", 1, 1), (2,)), (("--cp=3 --cp-mode=ring", 1, 1), (3,)), (("--tp=4 --tp-layout=2d --panels", 1, 1), (4,))
    decoder = ((2, 1, 1), (2,)), ((2, 2, 1), (4,)), ((2, 2, 2), (2, 8)), (("--cp=2 --cp-mode=ulysses", 2, 1), (4,))
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


def gpu_cases():
    """A card for each rank, and NCCL between them."""
    for layout, count in (((2, 2, 1), 4), ((2, 2, 1), 2), ((1, 1, 2), 2), ((1, 2, 2), 4), (("--tp=4 --tp-layout=2d", 1, 1), 4), (("--tp=4 --tp-layout=2d --panels", 1, 1), 4),
                          (("--cp=3 --cp-mode=ring", 1, 1), 3), (("--tp=2 --sp", 2, 1), 4)):
        for by_mpi in (True, False):
            def case(layout=layout, count=count, by_mpi=by_mpi):
                file, alone = plan(*layout)
                output = path("gpu.npz")
                if os.path.exists(output):
                    os.remove(output)
                arguments = [file, *CUDA, "--input", inputs(), "--output", output, "--poison"]
                if by_mpi:
                    need_mpi()
                    done = subprocess.run(["mpirun", "--oversubscribe", "-n", str(count), RUN, *arguments], env=environment(**MPI_ENV, **stand_in(ranks(flags_of(layout)))),
                                          capture_output=True, text=True, timeout=120)
                    results = [(done.returncode, done.stderr)]
                else:
                    results = by_environment(count, arguments, **stand_in(ranks(flags_of(layout))))
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
        """A host whose large weights have one changed byte each: the plan's hashes find it, and all processes name tensor and rank."""
        need_ucx()
        copy = path("weights")
        shutil.copytree(MODEL, copy, dirs_exist_ok=True)
        file, _ = plan(2, 1, 1)
        weights = [name for name in os.listdir(copy) if name.startswith("dynamo-eager-op18.onnx")]
        target = os.path.join(copy, max(weights, key=lambda name: os.path.getsize(os.path.join(copy, name))))
        with open(target, "r+b") as one:
            data = one.read()
            changed = bytearray(data)
            (graph,) = (field.value for field in fields(data) if field.number == 7)  # ModelProto
            for tensor in (field.value for field in fields(graph) if field.number == 5):  # its initializers
                for raw in (field.value for field in fields(tensor) if field.number == 9 and len(field.value) >= 4096):  # raw_data
                    changed[data.index(raw) + len(raw) // 2] ^= 0x10
            one.seek(0)
            one.write(changed)
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


def two_hosts(arguments, **variables):
    port = free_port()
    # Shared memory would reach beyond a network namespace.
    return [start(rank, 2, port, arguments, address=Hosts.ADDRESSES[0], prefix=Hosts.prefix(Hosts, rank), HPC_SECRET=SECRET, UCX_TLS="tcp,self",
                  **variables)
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

    def unreachable():
        """They meet, but the only network that UCX may use ends at its own host."""
        need_ucx()
        file, _ = plan(2, 2, 1)
        with Hosts():
            results = finish(two_hosts([file, "--input", inputs()], UCX_NET_DEVICES="lo"), 60)
        for rank, (code, errors) in enumerate(results):
            check(code == 1 and f"connecting to process {1 - rank} (no network that UCX has found joins the two processes" in errors, f"{results}")
    yield "hosts: no network for UCX", unreachable

    def by_mpi():
        need_mpi()
        file, alone = plan(2, 2, 1)
        agent = path("agent.sh")  # mpirun starts its daemon on the other host by this, as it would by ssh
        with open(agent, "w") as script:
            script.write(f'#!/bin/sh\nshift\nexec ip netns exec {Hosts.NAMES[1]} sh -c "$*"\n')
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


if __name__ == "__main__":
    sys.exit(run_cases(equal_cases, belong_cases, kill_cases, mpi_kill_cases, gpu_cases, host_cases))
