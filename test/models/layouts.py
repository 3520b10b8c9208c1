#!/usr/bin/python3
"""layouts.py MODEL SET FLAGS...: compiles models/MODEL with --verify for each string of flags, runs the plan with poisoned memory on inputs_SET and
compares it with expected_SET: within 3e-6 of the largest value. Its input has one open dim, `batch`. Needs hpc-opt and hpc-run on the PATH and numpy."""
import os
import subprocess
import sys
import tempfile

import numpy

BOUND = 3e-6
model, number, layouts = sys.argv[1], sys.argv[2], sys.argv[3:]
folder = os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))), "models", model)
inputs, truth = (os.path.join(folder, f"{kind}_{number}.npz") for kind in ("inputs", "expected"))
batch = next(iter(numpy.load(inputs).values())).shape[0]
failed = 0
with tempfile.TemporaryDirectory() as scratch:
    plan, output = os.path.join(scratch, "p.plan"), os.path.join(scratch, "o.npz")
    for flags in layouts:
        subprocess.run(["hpc-opt", os.path.join(folder, "model.onnx"), f"--dim=batch={batch}", f"--verify={inputs}", "-o", plan, *flags.split()],
                       check=True, stdout=subprocess.DEVNULL)
        subprocess.run(["hpc-run", plan, "--poison", f"--input={inputs}", f"--output={output}"], check=True, stdout=subprocess.DEVNULL)
        for name, expected in numpy.load(truth).items():
            error = numpy.abs(numpy.load(output)[name] - expected).max() / numpy.abs(expected).max()
            good = error <= BOUND  # false for NaN
            failed += not good
            print(f"{'equal' if good else 'failed'} {model}/{number} [{flags}]: {name} is off by {error:.2g}")
print(f"{failed} failed" if failed else "all equal")
sys.exit(failed != 0)
