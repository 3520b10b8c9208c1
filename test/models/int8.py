#!/usr/bin/python3
"""Models with --weights=int8 on several layouts beside copies of them whose weights have these values already (int8_model.py), run in f32 by one rank. Needs numpy.

    int8.py --bin=build/bin --models=models [--work=FOLDER]

The bound is what the order of sums in f32 costs (grid.py has the same), with --dtype=bf16 what rounding activations does. A scale of each rank's own part of a channel moves results by more
than a hundred times the first: `slices` shows how much, and the comparison would be worth nothing if it passed.
"""
import argparse
import os
import subprocess
import sys
import tempfile

import numpy

HERE = os.path.dirname(os.path.abspath(__file__))
F32, BF16 = 6e-6, 1e-2
CASES = {
    "gpt2-odd/dynamo-eager-op18.onnx": (
        "gpt2-odd/inputs_1.npz", ["--dim", "batch_size=4", "--dim", "sequence_length=33"],
        ["--tp=1", "--tp=2", "--tp=3", "--pp=2 --micro-batches=2", "--dp=2", "--tp=2 --pp=2 --micro-batches=4", "--tp=2 --dtype=bf16"]),
    "gpt2-tiny/dynamo-eager-op18.onnx": ("gpt2-tiny/inputs_0.npz", ["--dim", "batch_size=2", "--dim", "sequence_length=16"], ["--tp=2 --dp=2"]),
    "mlp/dynamo-op18.onnx": ("mlp/inputs_0.npz", ["--dim", "batch=6"], ["--tp=1", "--tp=2", "--tp=3 --dp=2"]),
    "decoder/model.onnx": ("decoder/inputs_0.npz", ["--dim", "batch=2", "--dim", "time=9"], ["--tp=1", "--tp=3", "--tp=2 --pp=3"]),
}


def run(*command):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(command)}:\n{done.stdout}")
    return done.stdout


class Runner:
    def __init__(self, options, work):
        self.bin, self.models, self.work = options.bin, options.models, work

    def results(self, model, inputs, flags):
        plan, output = os.path.join(self.work, "a.plan"), os.path.join(self.work, "a.npz")
        run(f"{self.bin}/hpc-opt", model, *flags, "-o", plan)
        run(f"{self.bin}/hpc-run", plan, f"--input={inputs}", f"--output={output}", "--poison", "--threads=1")
        return dict(numpy.load(output))

    def copy(self, model, *more):
        target = os.path.join(self.work, "copy.onnx")
        return target, run(sys.executable, os.path.join(HERE, "int8_model.py"), model, target, *more).strip()


def furthest(results, others):
    return max(numpy.abs(results[name].astype(float) - others[name]).max() / numpy.abs(others[name]).max() for name in others)


def compare(runner, name):
    inputs, dims, layouts = CASES[name]
    model, inputs, failures = os.path.join(runner.models, name), os.path.join(runner.models, inputs), 0
    copy, said = runner.copy(model)
    wanted = runner.results(copy, inputs, dims)
    stored = runner.results(model, inputs, dims)
    sliced = runner.results(runner.copy(model, "--slices=2")[0], inputs, dims)
    print(f"{name}: {said}; int8 moves results by {furthest(wanted, stored):.2g} of the largest, slices by {furthest(sliced, wanted):.2g}")
    for layout in layouts:
        bound = BF16 if "bf16" in layout else F32
        error = furthest(runner.results(model, inputs, [*dims, "--weights=int8", *layout.split()]), wanted)
        failures += not error <= bound
        print(f"  {'near' if error <= bound else 'FAR'}: {layout}: {error:.2g} (bound {bound:g})", flush=True)
    if furthest(sliced, wanted) <= 10 * F32:
        print("  FAR: scales of slices are not told from those of channels")
        failures += 1
    return failures


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bin", default="build/bin")
    parser.add_argument("--models", default=os.path.join(HERE, "../../models"))
    parser.add_argument("--only", default="", help="models whose path has this")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as work:
        runner = Runner(options, work)
        failures = sum(compare(runner, name) for name in CASES if options.only in name)
    print("all near" if not failures else f"{failures} FAR")
    return failures != 0


if __name__ == "__main__":
    sys.exit(main())
