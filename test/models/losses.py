#!/usr/bin/python3
"""Losses: what hpc-opt appends (classification, mse) and what graphs end in (SoftmaxCrossEntropyLoss, NegativeLogLikelihoodLoss, a mean of their own; weights, an
ignored class, every reduction), executed through plans: loss and all gradients against PyTorch's in float64 (losses/golden.json). Needs numpy only.

  test/models/losses.py [--bin=build/bin] [--cases=mse,vit-classification] [--layouts="--tp=2;--dp=2"]

The loss is within 1e-6 of itself, a gradient's norm and its projection on a fixed direction within 1e-5 of the norm (times the direction's, for the projection).
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile

import numpy

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "losses"))
import cases  # noqa: E402

LAYOUTS = ["", "--tp=2", "--dp=2", "--tp=2 --dp=2 --micro-batches=2", "--pp=2 --micro-batches=2"]
LOSS_BOUND, GRADIENT_BOUND = 1e-6, 1e-5

parser = argparse.ArgumentParser()
parser.add_argument("--bin", default=os.path.join(cases.ROOT, "build", "bin"))
parser.add_argument("--cases", default="")
parser.add_argument("--layouts", default=";".join(LAYOUTS))
options = parser.parse_args()


def run(tool, *arguments):
    done = subprocess.run([os.path.join(options.bin, tool), *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return done.returncode, done.stdout


def compare(found, golden):
    """What is wrong, or None; and the worst of loss and gradients in parts of its bound."""
    missing = golden["gradients"].keys() ^ (found.keys() - {"loss"})
    if missing:
        return f"gradients are of {sorted(found)}, not of {sorted(golden['gradients'])}", None
    parts = {"loss": abs(found["loss"] - golden["loss"]) / abs(golden["loss"]) / LOSS_BOUND}
    for name, (norm, projection) in golden["gradients"].items():
        gradient = found[name].astype(numpy.float64)
        towards = cases.direction(name, gradient.shape)
        off = max(abs(numpy.linalg.norm(gradient) - norm), abs((gradient * towards).sum() - projection) / numpy.linalg.norm(towards))
        parts[name] = off / max(norm, 1e-6) / GRADIENT_BOUND
    name = max(parts, key=lambda each: parts[each] if parts[each] == parts[each] else numpy.inf)
    return (None if parts[name] <= 1 else f"'{name}' is off by {parts[name]:.3g} of its bound"), parts[name]


def check(case, golden, layout, scratch):
    model, data, plan, gradients = (os.path.join(scratch, name) for name in ("m.onnx", "d.npz", "p.plan", "g.npz"))
    with open(model, "wb") as file:
        file.write(case.model)
    numpy.savez(data, **case.inputs)
    dims = [f"--dim={name}={size}" for name, size in case.dims.items()]
    code, text = run("hpc-opt", model, "--train", f"--loss={case.loss}", "--optimizer=sgd", *dims, *layout, f"--verify={data}", "-o", plan)
    if code:
        return text, None
    code, text = run("hpc-run", plan, "--poison", f"--gradients={gradients}", f"--data={data}")
    return (text, None) if code else compare(dict(numpy.load(gradients)), golden)


def main():
    golden = json.load(open(os.path.join(cases.HERE, "golden.json")))
    passed, failed, worst = 0, 0, (0.0, "")
    every = cases.cases()
    with tempfile.TemporaryDirectory() as scratch:
        for name in options.cases.split(",") if options.cases else every:
            for layout in options.layouts.split(";"):
                problem, part = check(every[name], golden[name], layout.split(), scratch)
                passed, failed = passed + (problem is None), failed + (problem is not None)
                if problem:
                    print(f"FAIL: {name} [{layout}]: {problem}")
                else:
                    worst = max(worst, (part, f"{name} [{layout}]"))
    print(f"worst: {worst[0]:.2g} of its bound, {worst[1]}\n{passed} passed, {failed} failed")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
