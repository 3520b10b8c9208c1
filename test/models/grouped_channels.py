#!/usr/bin/python3
"""grouped_channels.py: grouped and depthwise convolutions and channel shuffles, where groups do and do not divide channels / groups, on several --tp: equal to
numpy in float64. Needs hpc-opt and hpc-run on the PATH."""
import os
import sys
import tempfile

import numpy

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import onnx_file  # noqa: E402
from held_weights import convolve  # noqa: E402
from model_checks import EPSILON, run, run_plan  # noqa: E402

RANDOM = numpy.random.default_rng(11)


def draw(*shape):
    return (RANDOM.standard_normal(shape) / numpy.prod(shape[1:]) ** 0.5).astype(numpy.float32)


def check(channels, groups, shuffle, multiplier, last, tp, folder):
    """A convolution of `groups`, a shuffle of `shuffle` groups (0: none), a depthwise one with `multiplier` results a channel, and one of `last` groups."""
    path = lambda file: os.path.join(folder, file)
    wide = channels * multiplier
    w0, w1, w2 = draw(channels, channels // groups, 1, 1), draw(wide, 1, 3, 3), draw(channels, wide // last, 1, 1)
    x = RANDOM.standard_normal((1, channels, 3, 3)).astype(numpy.float32)
    nodes, weights, at = [onnx_file.node("Conv", ["x", "w0"], ["a"], group=groups)], [("w0", w0), ("w1", w1), ("w2", w2)], "a"
    if shuffle:
        weights += [("s0", numpy.array([1, shuffle, channels // shuffle, 3, 3])), ("s1", numpy.array([1, channels, 3, 3]))]
        nodes += [onnx_file.node("Reshape", ["a", "s0"], ["c"]), onnx_file.node("Transpose", ["c"], ["d"], perm=[0, 2, 1, 3, 4]), onnx_file.node("Reshape", ["d", "s1"], ["e"])]
        at = "e"
    nodes += [onnx_file.node("Conv", [at, "w1"], ["f"], group=channels, pads=[1] * 4), onnx_file.node("Conv", ["f", "w2"], ["y"], group=last)]
    with open(path("m.onnx"), "wb") as file:
        file.write(onnx_file.model(nodes, [("x", "f32", x.shape)], [("y", "f32", x.shape)], weights, opset=13))
    numpy.savez(path("in.npz"), x=x)
    truth = convolve(x.astype(numpy.float64), w0.astype(numpy.float64), groups)
    if shuffle:
        truth = truth.reshape(1, shuffle, channels // shuffle, 3, 3).transpose(0, 2, 1, 3, 4).reshape(x.shape)
    truth = convolve(convolve(truth, w1.astype(numpy.float64), channels), w2.astype(numpy.float64), last)
    label = f"{channels} channels, groups {groups} and {last}, shuffle {shuffle}, multiplier {multiplier}, tp={tp}"
    run("hpc-opt", path("m.onnx"), f"--tp={tp}", f"--verify={path('in.npz')}", "-o", path("p.plan"))
    error = numpy.abs(run_plan(path("p.plan"), path("in.npz"))["y"] - truth).max() / numpy.abs(truth).max()
    if not error <= 64 * EPSILON:
        sys.exit(f"{label}: off by {error:.2g}")


CASES = [(24, 4, 4, 1, 4, 2), (24, 4, 6, 1, 4, 3), (24, 3, 4, 2, 6, 2), (12, 2, 3, 1, 4, 2), (12, 4, 4, 3, 2, 4), (18, 3, 2, 1, 6, 5), (20, 4, 4, 1, 2, 3),
         (30, 6, 5, 1, 3, 2), (16, 8, 4, 2, 4, 3), (9, 3, 3, 1, 1, 2), (24, 4, 0, 1, 6, 2), (30, 5, 3, 2, 2, 4)]
with tempfile.TemporaryDirectory() as scratch:
    cases = CASES
    if len(sys.argv) > 1:  # by hand: so many drawn ones
        cases = []
        while len(cases) < int(sys.argv[1]):
            channels, multiplier, tp = int(RANDOM.integers(2, 37)), int(RANDOM.integers(1, 4)), int(RANDOM.integers(2, 6))
            divisors = [n for n in range(1, channels + 1) if channels % n == 0]
            groups, shuffle, last = (int(RANDOM.choice(divisors)) for _ in range(3))
            cases.append((channels, groups, shuffle if shuffle > 1 else 0, multiplier, last, tp))
    for each in cases:
        check(*each, scratch)
    print(f"{len(cases)} equal")
