#!/usr/bin/python3
"""Loss and the norm of every gradient of gpt2-124m against float64 (expected_0.npz), each within 1e-4. By hand: 0.5 GB of weights, a minute a layout. Needs numpy only.

  cp -r ../shared/models/gpt2-124m /tmp/m && python3 ../shared/models/fill.py /tmp/m/model.onnx     # fill.py needs onnx
  test/models/big_gradients.py /tmp/m [--bin=build/bin] [--layouts=";--tp=2 --pp=2 --micro-batches=2"]
"""
import argparse
import os
import subprocess
import sys
import tempfile

import numpy

BOUND = 1e-4
PREFIX = "grad_norm:"

parser = argparse.ArgumentParser()
parser.add_argument("folder", help="model.onnx with its weights, and expected_0.npz")
parser.add_argument("--bin", default="build/bin")
parser.add_argument("--layouts", default=";--tp=2 --pp=2 --micro-batches=2")
options = parser.parse_args()


def run(tool, *arguments):
    subprocess.run([os.path.join(options.bin, tool), *arguments], check=True, stdout=subprocess.DEVNULL)


def figures(layout, truth, scratch):
    """Of every figure how far it is off, relative to itself."""
    ids = truth["input_ids"]
    plan, data, gradients = (os.path.join(scratch, name) for name in ("p.plan", "d.npz", "g.npz"))
    numpy.savez(data, input_ids=ids)
    sizes = [f"--dim=batch_size={ids.shape[0]}", f"--dim=sequence_length={ids.shape[1]}"]
    run("hpc-opt", os.path.join(options.folder, "model.onnx"), "--train", "--optimizer=sgd", *sizes, *layout, "-o", plan)
    run("hpc-run", plan, f"--gradients={gradients}", f"--data={data}")
    found = numpy.load(gradients)
    # The exporter kept the head's name for the tied weight.
    norms = {PREFIX + name.replace("lm_head.weight", "transformer.wte.weight"): numpy.linalg.norm(found[name].astype(numpy.float64)) for name in found.files if name != "loss"}
    wanted = {name: float(truth[name]) for name in truth.files if name.startswith(PREFIX)}
    if norms.keys() != wanted.keys():
        sys.exit(f"gradients of other names: {sorted(norms.keys() ^ wanted.keys())}")
    return {"loss": abs(float(found["loss"]) / float(truth["loss"]) - 1), **{name: abs(norms[name] / wanted[name] - 1) for name in wanted}}


def main():
    truth, failed = numpy.load(os.path.join(options.folder, "expected_0.npz")), 0
    with tempfile.TemporaryDirectory() as scratch:
        for layout in options.layouts.split(";"):
            off = figures(layout.split(), truth, scratch)
            worst = max(off, key=lambda name: off[name] if off[name] == off[name] else numpy.inf)
            good = off[worst] <= BOUND  # false for NaN
            failed += not good
            print(f"{'equal' if good else 'failed'} [{layout}]: loss is off by {off['loss']:.2g}, the worst of {len(off) - 1} norms by {off[worst]:.2g} ({worst})", flush=True)
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
