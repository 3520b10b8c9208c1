"""What tests that compile a model, run its plan and compare with numpy share. Needs hpc-opt and hpc-run on the PATH."""
import os
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
