#!/usr/bin/python3
"""hpc-run and hpc-train with --processes: equal to one process, one message where one fails, signals, two machines (network namespaces), one run in a
folder, restarts from the newest checkpoint with the curve of a run that was never interrupted, and steps that stand still. The last line is
`N passed, N failed, N skipped`.

  test/processes/started.py [--bin=build/bin] [--only="equal;restart"] [--kills=20]
"""
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time

import numpy

from harness import BIN, ENDED_WITHIN, MPI_ENV, ROOT, RUN, SECRET, Hosts, chance, check, environment, finish, free_port, need, need_ucx, options, path, run_cases

TRAIN = os.path.join(BIN, "hpc-train")
MODEL = os.path.join(ROOT, "models", "gpt2-tiny", "dynamo-eager-op18.onnx")
STEPS = 30 if options.kills < 10 else 200
LAYOUT = ["--tp=2", "--pp=2"]
made = {}
started = []


def tokens():
    if "tokens" not in made:
        made["tokens"] = path("tokens.npy")
        numpy.save(made["tokens"], (numpy.arange(200000) * 7 % 257).astype(numpy.uint16))
    return made["tokens"]


def plan(batch=4, sequence=32):
    name = f"train-{batch}.plan"
    if name not in made:
        made[name] = path(name)
        subprocess.run([os.path.join(BIN, "hpc-opt"), MODEL, "--train", *LAYOUT, "--micro-batches=2", f"--dim=batch_size={batch}", f"--dim=sequence_length={sequence}", "-o", made[name]],
                       check=True, stderr=subprocess.DEVNULL)
    return made[name]


def long_plan():
    return plan(64, 64)


def by_run(name, steps=STEPS, every=5):
    """hpc-run with its own files; the file of metrics."""
    return [RUN, plan(), "--train", f"--data={tokens()}", "--lr=1e-3", f"--steps={steps}", f"--metrics={path(name)}.jsonl", f"--checkpoints={path(name)}", f"--save-every={every}"], path(name) + ".jsonl"


def by_train(name, steps=STEPS, every=5):
    run = path(name)
    return [TRAIN, MODEL, *LAYOUT, "--seq=32", "--global-batch=4", "--micro-batch=2", f"--data={tokens()}", "--lr=1e-3", f"--steps={steps}", f"--save-every={every}", f"--run={run}"], run + "/metrics.jsonl"


TOOLS = {"hpc-run": by_run, "hpc-train": by_train}


def start(command, *flags, prefix=(), **variables):
    need_ucx()
    started.append(subprocess.Popen([*prefix, *command, *flags], env=environment(**variables), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))
    return started[-1]


def curve(file):
    """Step and loss of each line, to the bit."""
    with open(file) as lines:
        return [(line["step"], line["loss"]) for line in map(json.loads, lines) if "loss" in line]


def alone(tool):
    """The curve of one process that nothing interrupts."""
    if tool not in made:
        command, metrics = TOOLS[tool](f"alone-{tool}")
        done = subprocess.run(command, env=environment(), capture_output=True, text=True)
        check(done.returncode == 0, done.stderr)
        made[tool] = curve(metrics)
        check([step for step, _ in made[tool]] == list(range(STEPS)), f"{made[tool]}")
    return made[tool]


def children(parent, count, within=20):
    """The processes that it has started, by rank."""
    end = time.time() + within
    while True:
        list_ = subprocess.run(["ps", "-o", "pid=", "--ppid", str(parent.pid)], capture_output=True, text=True).stdout.split()
        if len(list_) == count or parent.poll() is not None or time.time() > end:
            return [int(one) for one in list_]
        time.sleep(0.01)


def await_step(metrics, step, parent):
    while parent.poll() is None and (not os.path.exists(metrics) or len(curve_so_far(metrics)) <= step):
        time.sleep(0.005)


def curve_so_far(metrics):
    with open(metrics) as lines:
        return [line for line in lines if line.endswith("\n")]


def errors_of(text):
    return [line for line in text.splitlines() if "error[" in line]


def equal_cases():
    for tool, make in TOOLS.items():
        for count in (1, 2, 4):
            def case(tool=tool, make=make, count=count):
                command, metrics = make(f"equal-{tool}-{count}")
                code, errors = finish([start(command, f"--processes={count}", f"--log-dir={path('logs')}-{tool}-{count}")], 60)[0]
                check(code == 0, errors)
                check(curve(metrics) == alone(tool), "another curve than that of one process")
                logs = f"{path('logs')}-{tool}-{count}"
                check(sorted(os.listdir(logs)) == [f"workerlog.{rank}" for rank in range(count)], f"{os.listdir(logs)}")
            yield f"equal: {tool} --processes={count}", case

    def hosts():
        """--nnodes and --master, two machines of two processes."""
        command, metrics = by_run("hosts")
        with Hosts() as two:
            flags = ["--processes=2", "--nnodes=2", f"--master={Hosts.ADDRESSES[0]}:{free_port()}"]
            results = finish([start(command, *flags, f"--node-rank={rank}", prefix=two.prefix(rank), HPC_SECRET=SECRET, UCX_TLS="tcp,self") for rank in range(2)], 60)
        check(all(code == 0 for code, _ in results), f"{results}")
        check(curve(metrics) == alone("hpc-run"), "another curve than that of one process")
    yield "equal: two machines", hosts


def message_cases():
    def fails(what, change, expected, tool="hpc-run", **variables):
        def case():
            """One message, once, and nothing of a run."""
            command, metrics = TOOLS[tool](f"message-{tool}")
            code, errors = finish([start(change(command), "--processes=4", **variables)], 30)[0]
            check(code == 1 and len(errors_of(errors)) == 1, errors)
            for text in expected:
                check(text in errors, errors)
            check(not os.path.exists(metrics) and not os.path.exists(path(f"message-{tool}")), "there are files of a run that did not begin")
        return f"message: {what}, {tool}", case

    for tool in TOOLS:
        yield fails("no data", lambda command: [word if not word.startswith("--data") else "--data=no-such.npy" for word in command], ["no-such.npy"], tool)
        yield fails("a launcher", lambda command: command, ["--processes=4", "RANK=1 and WORLD_SIZE=2"], tool, RANK="1", WORLD_SIZE="2", MASTER_ADDR="127.0.0.1", MASTER_PORT="29500")
        yield fails("half a launcher", lambda command: command, ["--processes=4", "RANK set, WORLD_SIZE not"], tool, RANK="1")
        yield fails("Open MPI", lambda command: command, ["--processes=4", "OMPI_COMM_WORLD_RANK=1 and OMPI_COMM_WORLD_SIZE=2"], tool, OMPI_COMM_WORLD_RANK="1", OMPI_COMM_WORLD_SIZE="2")
        yield fails("another unknown flag", lambda command: [*command, "--proceses=4"], ["--processes"], tool)
        yield fails("--launch=none", lambda command: [*command, "--launch=none"], ["--launch=none", "--processes"], tool)
        yield fails("a node too many", lambda command: [*command, "--nnodes=2", "--node-rank=2"], ["--node-rank=2", "--nnodes=2"], tool)
    yield fails("a refusal of the compiler", lambda command: [*command, "--loss=output:nope"], ["--loss=output:nope needs an output"], "hpc-train")
    yield fails("no divisor", lambda command: [word.replace("--tp=2", "--tp=3") for word in command], ["cannot share equally"], "hpc-train")

    def one_folder():
        """A second run in a folder is refused, with and without --processes, new or resumed; the first goes on."""
        command, metrics = by_train("taken")
        first = start(command, "--processes=2")
        await_step(metrics, 2, first)
        for words in ([*command], [*command, "--processes=2"], [TRAIN, f"--resume={path('taken')}"], [TRAIN, f"--resume={path('taken')}", "--processes=2"]):
            code, errors = finish([start(words)], 30)[0]
            check(code == 1 and len(errors_of(errors)) == 1 and ("a run is going on" in errors or "there is a run in it" in errors), f"{words}: {errors}")
        check(finish([first], 60)[0][0] == 0 and curve(metrics) == alone("hpc-train"), "the first one was disturbed")
    yield "message: two runs in one folder", one_folder


def signal_cases():
    def stopped(number):
        def case():
            """To the parent alone; the run ends after a step with a checkpoint, and goes on from there."""
            command, metrics = by_train(f"stopped-{number}", every=1000)
            parent = start(command, "--processes=4")
            await_step(metrics, 5, parent)
            parent.send_signal(number)
            code, errors = finish([parent], 30)[0]
            check(code == 0 and not errors_of(errors), f"{code}: {errors}")
            check(5 < len(curve(metrics)) < STEPS, f"{len(curve(metrics))} steps")
            code, errors = finish([start([TRAIN, f"--resume={path(f'stopped-{number}')}"], "--processes=2")], 60)[0]
            check(code == 0 and curve(metrics) == alone("hpc-train"), errors)
        return case
    for number in (signal.SIGTERM, signal.SIGINT):
        yield f"signal: {number.name}", stopped(number)

    def save():
        command, metrics = by_train("save", every=1000)
        parent = start(command, "--processes=2")
        await_step(metrics, 5, parent)
        parent.send_signal(signal.SIGUSR1)
        code, errors = finish([parent], 60)[0]
        check(code == 0 and curve(metrics) == alone("hpc-train"), errors)
        check(len([name for name in os.listdir(path("save") + "/checkpoints") if name.startswith("step-")]) == 2, f"{os.listdir(path('save') + '/checkpoints')}")
    yield "signal: SIGUSR1", save

    def killed():
        """Its children end with it."""
        command, metrics = by_run("killed", steps=100000)
        parent = start(command, "--processes=4")
        pids = children(parent, 4)
        await_step(metrics, 2, parent)
        parent.kill()
        parent.communicate()
        end = time.time() + ENDED_WITHIN
        while any(os.path.exists(f"/proc/{pid}") for pid in pids) and time.time() < end:
            time.sleep(0.05)
        check(len(pids) == 4 and not any(os.path.exists(f"/proc/{pid}") for pid in pids), "children are left")
    yield "signal: the parent is killed", killed


def restart_cases():
    def killed(tool, count, kills, how):
        def case():
            """At random times: each round goes on from the newest checkpoint, whatever the others were doing."""
            command, metrics = TOOLS[tool](f"restart-{tool}-{count}-{how}")
            parent = start(command, f"--processes={count}", f"--max-restarts={kills}", "--peer-timeout=2")
            before = []
            for _ in range(kills):
                begin = time.time()
                pids = []
                while parent.poll() is None and (len(pids) < count or set(pids) & set(before)):
                    pids = children(parent, count)
                    check(time.time() < begin + 30, "no other processes were started within 30 s")
                before = pids
                if chance.random() < 0.7:  # else while they meet
                    await_step(metrics, (len(curve_so_far(metrics)) if os.path.exists(metrics) else 0) % STEPS + chance.randrange(6), parent)
                time.sleep(0.1 * chance.random())
                if parent.poll() is None:
                    os.kill(chance.choice(pids), how)
            code, errors = finish([parent], 60 + 10 * kills)[0]
            check(code == 0 and not errors_of(errors), f"{code}: {errors}")
            times = [float(one) for one in re.findall(r"was done ([0-9.]+) s after that", errors)]
            check(0 < len(times) <= errors.count("all start again"), errors)
            check(curve(metrics) == alone(tool), "another curve than that of a run that was not interrupted")
            if kills > 5:
                print(f"{tool}: {errors.count('all start again')} restarts, next step after {min(times):.2f} to {max(times):.2f} s")
        return case
    yield "restart: hpc-run, 4 processes", killed("hpc-run", 4, options.kills, signal.SIGKILL)
    yield "restart: hpc-train, 4 processes", killed("hpc-train", 4, options.kills, signal.SIGKILL)
    yield "restart: hpc-train, 1 process", killed("hpc-train", 1, 1, signal.SIGKILL)
    yield "restart: hpc-run, a stopped process", killed("hpc-run", 4, 1, signal.SIGSTOP)
    yield "restart: hpc-run, its only process is stopped", killed("hpc-run", 1, 1, signal.SIGSTOP)

    def hosts():
        """A process of the second machine is killed: both parents start their own again."""
        command, metrics = by_run("restart-hosts")
        with Hosts() as two:
            flags = ["--processes=2", "--nnodes=2", f"--master={Hosts.ADDRESSES[0]}:{free_port()}", "--max-restarts=2"]
            parents = [start(command, *flags, f"--node-rank={rank}", prefix=two.prefix(rank), HPC_SECRET=SECRET, UCX_TLS="tcp,self") for rank in range(2)]
            pids = children(parents[1], 2)
            await_step(metrics, 7, parents[0])
            os.kill(pids[1], signal.SIGKILL)
            results = finish(parents, 90)
        check(all(code == 0 and errors.count("all start again from ") == 1 for code, errors in results), f"{results}")
        check(curve(metrics) == alone("hpc-run"), "another curve than that of a run that was not interrupted")
    yield "restart: two machines", hosts

    def no_checkpoint():
        """A run without checkpoints begins anew."""
        command, metrics = by_run("anew")
        command = [word for word in command if not word.startswith(("--checkpoints", "--save-every"))]
        parent = start(command, "--processes=2", "--max-restarts=1")
        pids = children(parent, 2)
        await_step(metrics, 5, parent)
        os.kill(pids[1], signal.SIGKILL)
        code, errors = finish([parent], 60)[0]
        check(code == 0 and "from the beginning, restart 1 of 1" in errors and curve(metrics) == alone("hpc-run"), errors)
    yield "restart: no checkpoint", no_checkpoint

    def same_step():
        """A step that fails each time is not tried for ever: here the loss of step 7 is NaN, and one such step ends the run."""
        bad = path("bad.npz")
        values = numpy.load(tokens())[:40 * 128].reshape(40, 4, 32).astype(numpy.int64)
        values[7] = 100000  # no such token
        numpy.savez(bad, input_ids=values)
        command, _ = by_run("same", steps=40)
        command = [f"--data={bad}" if word.startswith("--data") else word for word in command]
        begin = time.time()
        code, errors = finish([start(command, "--processes=2", "--max-restarts=9")], 60)[0]
        check(code == 1 and len(errors_of(errors)) == 1 and errors.count("all start again") <= 2, errors)
        check(time.time() - begin < 20, "took too long")
    yield "restart: the same step", same_step

    def out_of_restarts():
        command, metrics = by_run("out", steps=100000)
        parent = start(command, "--processes=2", "--max-restarts=1")
        before = []
        for _ in range(2):
            pids = []
            while len(pids) < 2 or set(pids) & set(before):
                pids = children(parent, 2)
            before = pids
            await_step(metrics, len(curve_so_far(metrics)) + 2 if os.path.exists(metrics) else 2, parent)
            os.kill(pids[1], signal.SIGKILL)
        code, errors = finish([parent], 60)[0]
        check(code == 1 and len(errors_of(errors)) == 1 and "process 1 (pid " in errors_of(errors)[0] and "SIGKILL" in errors_of(errors)[0], errors)
        check("(rank 2" not in errors_of(errors)[0] or "is gone" in errors_of(errors)[0], errors)
    yield "restart: none is left", out_of_restarts


STOP_THREAD = """
import ctypes, os, sys
libc, pid = ctypes.CDLL(None), int(sys.argv[1])
libc.ptrace.argtypes = [ctypes.c_long] * 4
seize, interrupt, any_thread = 0x4206, 0x4207, 0x40000000
stopped = libc.ptrace(seize, pid, 0, 0) == 0 and libc.ptrace(interrupt, pid, 0, 0) == 0
print(stopped, flush=True)
state = 0x7f if stopped else 0
while state & 0xff == 0x7f:  # stopped
    state = os.waitpid(pid, any_thread)[1]
"""


def stop_thread(pid):
    """Stops the first thread of a process, which no signal can: its heartbeats go on. The tracer that is returned awaits the end, as it must; if it is killed, the thread goes on."""
    started.append(subprocess.Popen([sys.executable, "-c", STOP_THREAD, str(pid)], stdout=subprocess.PIPE, text=True))
    need(started[-1].stdout.readline() == "True\n", "ptrace is not allowed here")
    return started[-1]


def stall_cases():
    def stopped():
        """Without restarts: all end within 5 s after the signal, the stopped process too."""
        command, metrics = by_run("stopped", steps=100000)
        parent = start(command, "--processes=4")
        pids = children(parent, 4)
        await_step(metrics, 2, parent)
        os.kill(pids[1], signal.SIGSTOP)
        begin = time.time()
        code, errors = finish([parent], 30)[0]
        took = time.time() - begin
        check(code == 1 and len(errors_of(errors)) == 1 and "process 1 (rank 1, host" in errors and "nothing was heard of it" in errors, errors)
        check(took < ENDED_WITHIN, f"took {took:.1f} s")
    yield "stall: a process is stopped", stopped

    def stands_still():
        """A rank's thread is stopped in a long step: one table of all ranks, and an end soon after the timeout. Between two steps, where all agree on the next, no step stands
        still: then the thread goes on, and is stopped again."""
        command, metrics = by_run("stall", steps=100000, every=100000)
        command[1] = long_plan()
        parent = start(command, "--processes=4", "--stall-timeout=1.5")
        pids = children(parent, 4)
        await_step(metrics, 1, parent)
        errors = None
        for _ in range(4):
            time.sleep(0.5)
            tracer = stop_thread(pids[2])
            begin = time.time()
            try:
                _, errors = parent.communicate(timeout=1.5 + 2 * ENDED_WITHIN)
                break
            except subprocess.TimeoutExpired:
                tracer.kill()
                tracer.wait()
        check(errors is not None, "nothing was found to stand still, four times")
        check(parent.returncode == 1 and len(errors_of(errors)) == 1, errors)
        rows = re.findall(r"^  (\d)     (\d)  .*  (?:waits|is at)  +step \d+, .*", errors, re.M)
        check(rows == [(str(rank), str(rank)) for rank in range(4)], errors)
        check("--stall-timeout" in errors_of(errors)[0], errors)
        check(time.time() - begin > 1.5, "too soon")
    yield "stall: a thread is stopped", stands_still

    def slow():
        """Steps whose instructions take longer than the timeout go on, as long as they compute."""
        code, errors = finish([start([RUN, long_plan(), "--train", f"--data={tokens()}", "--lr=1e-3", "--steps=3"], "--processes=4", "--stall-timeout=0.3")], 60)[0]
        check(code == 0, errors)
    yield "stall: slow steps", slow


def memory_cases():
    def small(launcher):
        def case():
            """A /dev/shm of 1 MB, as in a container."""
            need(os.geteuid() == 0 and shutil.which("unshare") and (launcher != "mpirun" or shutil.which("mpirun")), "needs root and unshare")
            command, metrics = by_run(f"shm-{launcher}")
            words = {"mpirun": ["mpirun", "--oversubscribe", "-n", "4", *command]}.get(launcher, [*command, "--processes=4"])
            variables = {"without": {"UCX_TLS": "^cma,posix"}, "mpirun": MPI_ENV}.get(launcher, {})
            code, errors = finish([start(["unshare", "-m", "sh", "-c", 'mount -t tmpfs -o size=1M none /dev/shm && exec "$@"', "sh", *words], **variables)], 60)[0]
            if launcher == "--processes":  # the message's own remedy is the next case
                return check(code == 1 and len(errors_of(errors)) == 1 and "/dev/shm has 1 MiB" in errors and "UCX_TLS=^cma,posix" in errors, errors)
            check(code == 0 and curve(metrics) == alone("hpc-run"), errors)
        return case
    for launcher in ("--processes", "without", "mpirun"):
        yield f"memory: 1 MB of /dev/shm, {launcher}", small(launcher)


if __name__ == "__main__":
    code = run_cases(equal_cases, message_cases, signal_cases, restart_cases, stall_cases, memory_cases)
    for process in started:  # of cases that failed
        process.kill()
    sys.exit(code)
