"""What tests that compile a model, run its plan and compare with numpy share. Needs hpc-opt and hpc-run on the PATH."""
import os
import socket
import subprocess
import sys

import numpy

EPSILON = float(numpy.finfo(numpy.float32).eps)


def run(*command):
    """What it prints, on both streams; ends the test where it fails."""
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(command)}\n{done.stdout}{done.stderr}")
    return done.stdout + done.stderr


def run_processes(command, count):
    """Whether one of `count` processes of one command fails, and what each prints on both streams. They meet at a free port."""
    environments = [dict(os.environ)]
    if count > 1:
        with socket.socket() as one:
            one.bind(("127.0.0.1", 0))
            port = str(one.getsockname()[1])
        environments = [dict(os.environ, RANK=str(rank), WORLD_SIZE=str(count), LOCAL_RANK=str(rank), MASTER_ADDR="127.0.0.1", MASTER_PORT=port) for rank in range(count)]
    begun = [subprocess.Popen(command, env=each, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) for each in environments]
    said = [process.communicate()[0] for process in begun]
    return any(process.returncode for process in begun), said


def run_plan(plan, inputs):
    """The outputs of one run with poisoned memory."""
    output = os.path.join(os.path.dirname(plan), "out.npz")
    run("hpc-run", plan, f"--input={inputs}", f"--output={output}", "--poison")
    return dict(numpy.load(output))


def product_flops(text):
    """Of each stage, in the last column of the table that --explain prints, added up."""
    rows = text[text.index("memory of a rank"):].splitlines()[2:]
    return sum(int(row.split()[-1]) for row in rows[:next(i for i, row in enumerate(rows) if not row.startswith(" "))])


def stage_flops(text):
    """The same, by stage."""
    rows = text[text.index("memory of a rank"):].splitlines()[2:]
    return [int(row.split()[-1]) for row in rows[:next(i for i, row in enumerate(rows) if not row.startswith(" "))]]
