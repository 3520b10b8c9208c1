#!/usr/bin/python3
"""Losses and gradients of scores with a large common offset, element by element: test/models/offsets.py [--bin=build/bin] [--options="--tp=2"].

Scores are parameters, so that nothing but the loss rounds; few classes are one loop of the kernel, many another. The truth is numpy's, in float64, of the scores as f32 holds them. Nothing may be off by
more than 4 roundings of f32: of the loss itself; of the larger of probability and label in a gradient's element.
"""
import argparse
import os
import subprocess
import sys
import tempfile

import numpy

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import onnx_file  # noqa: E402

ROWS, ROUNDINGS = 4, 4 * 2.0**-23
parser = argparse.ArgumentParser()
parser.add_argument("--bin", default="build/bin")
parser.add_argument("--options", default="")
options = parser.parse_args()


def run(*command):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode:
        sys.exit(done.stdout)


def check(offset, classes, scratch):
    draw = numpy.random.default_rng(0)
    scores = (offset + draw.standard_normal((ROWS, classes)) * max(1, offset * 1e-7)).astype(numpy.float32)
    labels = draw.integers(0, classes, ROWS)
    labels[1] = -100
    model, plan, data, found = (os.path.join(scratch, name) for name in ("m.onnx", "m.plan", "d.npz", "g.npz"))
    nodes = [onnx_file.node("Mul", ["x", "scores"], ["given"]),
             onnx_file.node("SoftmaxCrossEntropyLoss", ["given", "target"], ["rows"], reduction="none", ignore_index=-100), onnx_file.node("ReduceSum", ["rows"], ["loss"], keepdims=0)]
    with open(model, "wb") as file:
        file.write(onnx_file.model(nodes, [("x", "f32", ["batch", 1]), ("target", "i64", ["batch"])], [("loss", "f32", [])], [("scores", scores)]))
    numpy.savez(data, x=numpy.ones((ROWS, 1), numpy.float32), target=labels)
    run(f"{options.bin}/hpc-opt", model, "--train", "--loss=output:loss", "--optimizer=sgd", f"--dim=batch={ROWS}", *options.options.split(), f"--verify={data}", "-o", plan)
    run(f"{options.bin}/hpc-run", plan, f"--data={data}", f"--gradients={found}")
    found = numpy.load(found)
    exact = scores.astype(float) - scores.max(1, keepdims=True)
    terms = numpy.exp(exact)
    label = numpy.arange(classes) == labels[:, None]
    counts = labels >= 0
    losses = numpy.where(counts, numpy.log(terms.sum(1)) - (exact * label).sum(1), 0)
    share = terms / terms.sum(1, keepdims=True) * counts[:, None]
    ofLoss = abs(found["loss"] - losses.sum()) / losses.sum() / ROUNDINGS
    ofGradient = (abs(found["scores"] - (share - label)) / numpy.maximum(numpy.maximum(share, label), 1e-30)).max() / ROUNDINGS
    print(f"offset {offset:.0e}, {classes} classes: loss {ofLoss:.2f}, gradient {ofGradient:.2f} of the bound")
    return max(ofLoss, ofGradient) <= 1


with tempfile.TemporaryDirectory() as scratch:
    results = [check(offset, classes, scratch) for offset in (0, 1e3, 1e6, 1e8) for classes in (10, 5000)]
print(f"{sum(results)} passed, {len(results) - sum(results)} failed")
