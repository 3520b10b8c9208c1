#!/usr/bin/python3
"""Processes before they have met: whose launchers contradict each other or hide each other, of which one fails, is killed or finds its port taken, and workers of
a torchrun on a stand-in for its agent's store (the real one: torchrun.py). What needs mpirun or root is skipped, and counted, where that is missing. The last
line is `N passed, N failed, N skipped`.

  test/processes/early.py [--bin=build/bin] [--only="launchers;early;agent"]
"""
import os
import shlex
import shutil
import socket
import subprocess
import sys
import tempfile
import time

from agent_store import AgentStore
from harness import BIN, ENDED_WITHIN, MPI_ENV, RUN, SECRET, Hosts, check, environment, finish, free_port, inputs, need, need_mpi, need_ucx, options, path, plan, run_cases, start


def launch(arguments, prefix=(), **variables):
    """With these variables of launchers and no other."""
    return subprocess.Popen([*prefix, RUN, *arguments], env=environment(**variables), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def fresh(name):
    if os.path.exists(path(name)):
        os.remove(path(name))
    return path(name)


def check_right(results, output, layout=(2, 1, 1)):
    check(all(code == 0 for code, _ in results), f"{results}")
    check(sum(errors.count("note: array") for _, errors in results) == 1, f"each ran alone: {results}")  # process 0 says what it ignores
    check(open(plan(*layout)[1], "rb").read() == open(output, "rb").read(), "other bits than in one process")


def check_failed(processes, *expected, within=ENDED_WITHIN, every=True):
    """All end in time, with a message that has all of `expected`: each of them, or at least one."""
    begin = time.time()
    results = finish(processes, 30)
    took = time.time() - begin
    said = [code == 1 and all(text in errors for text in expected) for code, errors in results]
    check((all if every else any)(said) and all(code == 1 for code, _ in results), f"{results}")
    check(took < within, f"took {took:.1f} s")
    check(not os.path.exists(path("never.npz")), "there is an output")


def by_hand(rank, count, port):
    return {"RANK": str(rank), "WORLD_SIZE": str(count), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}


def launcher_cases():
    """Variables of several launchers, and parts of them: the right one is followed, or all processes name the contradiction at once."""
    def followed(more, place=True, flags=()):
        def case():
            need_ucx()
            file, _ = plan(2, 1, 1)
            port, output = free_port(), fresh("launchers.npz")
            arguments = [file, "--input", inputs(), "--output", output, *(flag.format(port=port) for flag in flags)]
            check_right(finish([launch(arguments, **(by_hand(rank, 2, port) if place else {}), **more(rank)) for rank in range(2)], 60), output)
        return case
    yield "launchers: PMIx' variables of an outer launcher", followed(lambda rank: {"PMIX_NAMESPACE": "outer", "PMIX_RANK": "0"})
    yield "launchers: an outer mpirun of one process", followed(lambda rank: {"OMPI_COMM_WORLD_RANK": "0", "OMPI_COMM_WORLD_SIZE": "1", "PMIX_NAMESPACE": "outer", "PMIX_RANK": "0"})
    yield "launchers: MPICH", followed(lambda rank: {"PMI_RANK": str(rank), "PMI_SIZE": "2"}, False, ["--rendezvous=127.0.0.1:{port}"])
    yield "launchers: MVAPICH", followed(lambda rank: {"MV2_COMM_WORLD_RANK": str(rank), "MV2_COMM_WORLD_SIZE": "2"}, False, ["--rendezvous=127.0.0.1:{port}"])
    yield "launchers: --rendezvous before MASTER_PORT", followed(
        lambda rank: {"RANK": str(rank), "WORLD_SIZE": "2", "MASTER_ADDR": "192.0.2.1", "MASTER_PORT": "1"}, False, ["--rendezvous=127.0.0.1:{port}"])

    def below_mpirun():
        """A real mpirun of one process, whose script starts two by hand."""
        need_mpi()
        need_ucx()
        file, _ = plan(2, 1, 1)
        output, port = fresh("below.npz"), free_port()
        one = " ".join(f"{name}={value}" for name, value in by_hand("$rank", 2, port).items())
        script = f"for rank in 0 1; do {one} {shlex.join([RUN, file, '--input', inputs(), '--output', output])} & done; wait"
        done = subprocess.run(["mpirun", "-n", "1", "sh", "-c", script], env=environment(**MPI_ENV), capture_output=True, text=True, timeout=60)
        check_right([(done.returncode, done.stderr)], output)
    yield "launchers: by hand below mpirun -n 1", below_mpirun

    def contradicting(expected, count, variables, **more):
        def case():
            need_ucx()
            file, _ = plan(2, 1, 1)
            port = free_port()
            check_failed([launch([file, "--input", inputs(), "--output", fresh("never.npz")], **variables(rank, port)) for rank in range(count)], *expected, **more)
        return case
    openmpi = lambda rank, count: {"OMPI_COMM_WORLD_RANK": str(rank), "OMPI_COMM_WORLD_SIZE": str(count)}
    yield "launchers: mpirun's count against WORLD_SIZE", contradicting(
        ["OMPI_COMM_WORLD_SIZE=4", "WORLD_SIZE=2", "contradict"], 2, lambda rank, port: {**by_hand(rank, 2, port), **openmpi(rank, 4)})
    yield "launchers: mpirun's number against RANK", contradicting(
        ["OMPI_COMM_WORLD_RANK=", "contradict"], 2, lambda rank, port: {**by_hand(rank, 2, port), **openmpi(1 - rank, 2)})
    for name, parts in {"RANK alone": ["RANK"], "WORLD_SIZE alone": ["WORLD_SIZE"], "LOCAL_ alone": ["LOCAL_RANK", "LOCAL_WORLD_SIZE"], "MPICH's number alone": ["PMI_RANK"],
                        "MVAPICH's count alone": ["MV2_COMM_WORLD_SIZE"], "mpirun's count alone": ["OMPI_COMM_WORLD_SIZE"]}.items():
        yield f"launchers: {name}", contradicting([f"{parts[0]}", " set, ", " not, so nothing says which of how many processes this is", "--launch=none"], 2,
                                                  lambda rank, port, parts=parts: {part: str(1 + at) for at, part in enumerate(parts)}, within=2)
    yield "launchers: MPICH without a place", contradicting(
        ["MPICH's mpiexec has started 2 processes, which do not know where to meet"], 2, lambda rank, port: {"PMI_RANK": str(rank), "PMI_SIZE": "2"})
    for started in (2, 3):
        yield f"launchers: WORLD_SIZE=3 for two ranks, {started} started", contradicting(["the plan has 2 ranks, which 3 processes cannot share equally"], started,
                                                                                        lambda rank, port: by_hand(rank, 3, port))
    yield "launchers: RANK=2 of two in one", contradicting(["RANK='2' must be a number from 0 to 1"], 2, lambda rank, port: by_hand(2 * rank, 2, port))
    yield "launchers: another WORLD_SIZE in one", contradicting(["process 1 ("], 2, lambda rank, port: by_hand(rank, 2 + 2 * rank, port))

    def unknown_to_mpi():
        """Variables of an mpirun that is not there: each process is the only one for MPI, and must not run all ranks."""
        need_mpi()
        file, _ = plan(2, 1, 1)
        own = [tempfile.mkdtemp(dir=os.path.dirname(path("never.npz"))) for _ in range(2)]  # Open MPI fails where two processes make its folder at once
        check_failed([launch([file, "--input", inputs(), "--output", fresh("never.npz")], TMPDIR=own[rank], **openmpi(rank, 2), **MPI_ENV) for rank in range(2)], "but for MPI this is process 0 of 1")
    yield "launchers: mpirun's variables without mpirun", unknown_to_mpi


def early_cases():
    """A failure before the processes have met ends all of them within 5 s."""
    def failing(rank, expected, change, count=2, **variables):
        def case():
            need_ucx()
            file, _ = plan(count, 1, 1)
            port = free_port()
            processes = []
            for each in range(count):
                arguments = [file, "--input", inputs(), "--output", fresh("never.npz")]
                processes.append(start(each, count, port, change(arguments) if each == rank else arguments, **(variables if each == rank else {})))
            check_failed(processes, f"process {rank} (", *expected)
        return case
    for rank, count in ((0, 2), (1, 2), (2, 3)):
        yield f"early: an unknown flag in {rank} of {count}", failing(rank, ["--no-such-flag"], lambda arguments: [*arguments, "--no-such-flag"], count)
        yield f"early: a value that is none in {rank} of {count}", failing(rank, ["--repeat"], lambda arguments: [*arguments, "--repeat=many"], count)
        yield f"early: a plan that is none in {rank} of {count}", failing(rank, ["not a plan"], lambda arguments: [inputs(), *arguments[1:]], count)
        yield f"early: no input in {rank} of {count}", failing(rank, ["no-such.npz"], lambda arguments: [arguments[0], "--input", path("no-such.npz"), *arguments[3:]], count)
        yield f"early: no UCX in {rank} of {count}", failing(rank, ["UCX"], lambda arguments: arguments, count, UCX_TLS="no-such-transport")

    def killed(victim, started):
        def case():
            """One of three is killed while the third is still on its way."""
            need_ucx()
            file, _ = plan(3, 1, 1)
            port = free_port()
            processes = [start(rank, 3, port, [file, "--input", inputs(), "--output", fresh("never.npz")]) for rank in started]
            time.sleep(0.7)
            processes[started.index(victim)].kill()
            left = [process for rank, process in zip(started, processes) if rank != victim]
            check_failed(left, "ended before all had come" if victim else "process 0 is gone")
        return case
    yield "early: process 1 is killed before all have come", killed(1, [0, 1])
    yield "early: process 0 is killed before all have come", killed(0, [0, 1])

    def late():
        """Process 0 has failed; who comes two seconds later still hears why."""
        need_ucx()
        file, _ = plan(2, 1, 1)
        port = free_port()
        first = start(0, 2, port, [file, "--input", inputs(), "--no-such-flag"])
        time.sleep(2)
        check_failed([first, start(1, 2, port, [file, "--input", inputs()])], "process 0 (", "--no-such-flag")
    yield "early: process 1 comes late", late

    def small_shared_memory():
        """A container's /dev/shm: it is named with its size and what is needed."""
        need_ucx()
        need(os.geteuid() == 0 and shutil.which("unshare"), "needs root and unshare")
        file, _ = plan(2, 2, 1)
        run = f"mount -t tmpfs -o size=16m none /dev/shm || exit 77; for rank in 0 1 2 3; do RANK=$rank {shlex.join([RUN, file, '--input', inputs(), '--output', fresh('never.npz')])} 2>$0.$rank & done; wait"
        begin = time.time()
        done = subprocess.run(["unshare", "-m", "sh", "-c", run, path("shm")], env=environment(WORLD_SIZE="4", MASTER_ADDR="127.0.0.1", MASTER_PORT=str(free_port())), capture_output=True, text=True, timeout=60)
        took = time.time() - begin
        need(done.returncode != 77, "no mounts here")
        for rank in range(4):
            errors = open(path(f"shm.{rank}")).read()
            check("/dev/shm has 16 MiB, 34 are needed for the 4 processes of this machine" in errors and "--shm-size" in errors, errors)
        check(took < ENDED_WITHIN, f"took {took:.1f} s")
        check(not os.path.exists(path("never.npz")), "there is an output")
    yield "early: 16 MiB of /dev/shm", small_shared_memory

    def taken(greeting):
        def case():
            """Process 0 cannot listen where something else does, and the other one finds that instead of it."""
            need_ucx()
            file, _ = plan(2, 1, 1)
            with socket.create_server(("127.0.0.1", 0)) as other:
                other.settimeout(0.1)
                processes = [start(rank, 2, other.getsockname()[1], [file, "--input", inputs()]) for rank in range(2)]
                guests, begin = [], time.time()
                while any(process.poll() is None for process in processes) and time.time() - begin < 10:
                    try:
                        guests.append(other.accept()[0])
                        guests[-1].sendall(greeting)
                    except OSError:
                        pass
            took = time.time() - begin
            (first, said), (second, heard) = finish(processes, 5)
            check(first == 1 and "process 0 cannot listen at 127.0.0.1" in said and second == 1 and "something else listens there" in heard, said + heard)
            check(took < ENDED_WITHIN, f"took {took:.1f} s")
        return case
    yield "early: the port is another's, who speaks", taken(b"220 mail.example ESMTP\r\n")
    yield "early: the port is another's, who waits", taken(b"")


def agent_cases():
    """Workers of a torchrun, on a stand-in for its agent's store."""
    def run(store, output, count=2, prefixes=None, flags=(), ranks=None, **variables):
        file, _ = plan(count, 1, 1)
        return [launch([file, "--input", inputs(), "--output", output, *flags], prefix=prefixes[rank] if prefixes else (), **{**store.variables(rank, count), **variables})
                for rank in (range(count) if ranks is None else ranks)]

    def two_jobs():
        need_ucx()
        outputs = [fresh(f"agent.{job}.npz") for job in range(2)]
        with AgentStore() as one, AgentStore() as other:
            jobs = [run(store, output) for store, output in zip((one, other), outputs)]
            for job, output in zip(jobs, outputs):
                check_right(finish(job, 60), output)
            for output in outputs:  # and again: the entries of the last meeting are there
                check_right(finish(run(one, fresh(os.path.basename(output))), 60), output)
    yield "agent: two jobs at once, and one after the other", two_jobs

    def old_meeting():
        """A killed process 0 has left an entry: at its port nobody answers, or another meeting's process 0, or something else."""
        need_ucx()
        with AgentStore() as store:
            waiting = run(store, fresh("never.npz"), count=3, ranks=[0])
            while not store.values and waiting[0].poll() is None:
                time.sleep(0.05)
            (entry,) = store.values.items()
            waiting[0].kill()
            finish(waiting, 5)
            with AgentStore() as other, socket.create_server(("127.0.0.1", 0)) as deaf:
                port = entry[1].rindex(b"127.0.0.1") + 9
                for where in (None, deaf.getsockname()[1]):
                    value = entry[1] if where is None else entry[1][:port] + where.to_bytes(8, "little") + entry[1][port + 8:]
                    store.values = {entry[0]: value}
                    late = run(store, fresh("agent.npz"), ranks=[1])
                    time.sleep(0.5)
                    check_right(finish([*late, *run(store, path("agent.npz"), ranks=[0])], 60), path("agent.npz"))
                elsewhere = run(other, fresh("never.npz"), count=3, ranks=[0])
                while not other.values:
                    time.sleep(0.05)
                (theirs,) = other.values.values()
                store.values = {entry[0]: entry[1][:port] + theirs[theirs.rindex(b"127.0.0.1") + 9:]}
                late = run(store, fresh("agent.npz"), ranks=[1])
                time.sleep(0.5)
                check_right(finish([*late, *run(store, path("agent.npz"), ranks=[0])], 60), path("agent.npz"))
                check(elsewhere[0].poll() is None, "the other job has ended")
                elsewhere[0].kill()
                finish(elsewhere, 5)
    yield "agent: an old meeting", old_meeting

    def failed():
        need_ucx()
        file, _ = plan(2, 1, 1)
        for rank in (0, 1):
            with AgentStore() as store:
                check_failed([launch([file, "--input", inputs(), "--output", fresh("never.npz"), *(["--no-such-flag"] if each == rank else [])], **store.variables(each, 2))
                              for each in range(2)], f"process {rank} (", "--no-such-flag")
    yield "agent: an unknown flag", failed

    def strange(store, expected):
        def case():
            need_ucx()
            with store() as one:
                check_failed(run(one, fresh("never.npz")), expected, "--rendezvous=HOST:PORT")
        return case
    yield "agent: of before torch 2.4", strange(lambda: AgentStore(knows_ping=False), "does not answer as torch 2.4 and later do")

    def gone():
        need_ucx()
        store = AgentStore()
        store.close()
        check_failed(run(store, fresh("never.npz")), "cannot be reached", "--rendezvous=HOST:PORT")
    yield "agent: not there", gone

    def two_agents():
        """They share a machine, so they need no secret though the address is one that others reach."""
        need_ucx()
        with Hosts() as two:
            done = subprocess.run([*two.prefix(0), sys.executable, __file__, f"--bin={BIN}", "--only=inside: two agents"], capture_output=True, text=True, timeout=90)
        check(done.returncode == 0, done.stdout + done.stderr)
    yield "agent: two agents of one machine", two_agents

    def hosts(secrets, expected):
        def case():
            """The store is on the first host, as its agent is; so is process 0."""
            need_ucx()
            with Hosts() as two:
                server = subprocess.Popen([*two.prefix(0), sys.executable, "-c", f"import sys, time; sys.path.insert(0, {os.path.dirname(os.path.abspath(__file__))!r})\n"
                                           f"from agent_store import AgentStore\nprint(AgentStore('{two.ADDRESSES[0]}').port, flush=True)\ntime.sleep(60)"],
                                          stdout=subprocess.PIPE, text=True)
                port = server.stdout.readline().strip()
                store = AgentStore()
                file, _ = plan(2, 1, 1)
                output = fresh("agent.npz" if not expected else "never.npz")
                processes = [launch([file, "--input", inputs(), "--output", output], prefix=two.prefix(rank), UCX_TLS="tcp,self",
                                    **{**store.variables(rank, 2, agents=2, address=two.ADDRESSES[0]), "MASTER_PORT": port},
                                    **({"HPC_SECRET": secrets[rank]} if secrets[rank] else {})) for rank in range(2)]
                try:
                    if expected:
                        check_failed(processes, expected)
                    else:
                        check_right(finish(processes, 60), output)
                finally:
                    server.kill()
                    server.communicate()
        return case
    yield "agent: two hosts", hosts([SECRET, SECRET], None)
    yield "agent: two hosts without a secret", hosts(["", ""], "set HPC_SECRET to the same secret in all processes")
    yield "agent: two hosts, one without the secret", hosts([SECRET, ""], "set HPC_SECRET to the same secret in all processes")
    yield "agent: two hosts, another secret", hosts([SECRET, SECRET + "?"], "set HPC_SECRET to the same text everywhere")


def inside_cases():
    """For a host that two_agents() has made, and only there."""
    def two_agents():
        with AgentStore(Hosts.ADDRESSES[0]) as store:
            file, _ = plan(2, 1, 1)
            output = fresh("agent.npz")
            check_right(finish([launch([file, "--input", inputs(), "--output", output], **store.variables(rank, 2, agents=2, address=Hosts.ADDRESSES[0])) for rank in range(2)], 60),
                        output)
    if "inside" in options.only:
        yield "inside: two agents", two_agents


if __name__ == "__main__":
    sys.exit(run_cases(launcher_cases, early_cases, agent_cases, inside_cases))
