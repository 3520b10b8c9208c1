#!/usr/bin/python3
"""zero_divisors.py: products by rows over tp whose sums, and whose gradients' sums, are divided by numbers that may be 0: infinities where numpy in float64
has them, and finite numbers equal, on --tp=1, 2 and 3. Needs hpc-opt and hpc-run on the PATH."""
import os
import sys
import tempfile

import numpy

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import onnx_file  # noqa: E402
from model_checks import EPSILON, run, run_plan  # noqa: E402

RANDOM = numpy.random.default_rng(7)
ROWS, WIDTH, INNER = 4, 8, 12
node = onnx_file.node


def draw(*sizes):
    return RANDOM.standard_normal(sizes).astype(numpy.float32)


X, D, UP, DOWN = draw(ROWS, WIDTH), draw(ROWS, WIDTH), draw(WIDTH, INNER), draw(INNER, WIDTH)
D[RANDOM.random(D.shape) < 0.4] = 0
BIAS = numpy.array([0, 0.25, 0, 1, 0, 0.5, 0.75, 0], numpy.float32)
PRODUCTS = [node("MatMul", ["x", "up"], ["u"]), node("Relu", ["u"], ["r"]), node("MatMul", ["r", "down"], ["p"])]
DIVISIONS = {  # nodes from p and d to y; y
    "an input": ([node("Div", ["p", "d"], ["y"])], lambda p, d: p / d),
    "a root": ([node("Abs", ["d"], ["a"]), node("Sqrt", ["a"], ["s"]), node("Div", ["p", "s"], ["y"])], lambda p, d: p / numpy.sqrt(abs(d))),
    "constants": ([node("Div", ["p", "c"], ["q"]), node("Add", ["q", "d"], ["y"])], lambda p, d: p / D + d),
    "constants without 0": ([node("Div", ["p", "k"], ["q"]), node("Add", ["q", "d"], ["y"])], lambda p, d: p / (D + 0.5) + d),
}
SLOPES = {"Sqrt": (numpy.sqrt, lambda b: 0.5 / numpy.sqrt(b)), "Asin": (numpy.arcsin, lambda b: 1 / numpy.sqrt(1 - b * b))}  # of a parameter


def compare(label, got, wanted):
    finite = numpy.isfinite(wanted)
    if not numpy.array_equal(got[~finite], wanted[~finite], equal_nan=True):
        sys.exit(f"{label}: {got[~finite]} where {wanted[~finite]} is right")
    error = abs(got - wanted)[finite].max() / abs(wanted[finite]).max()
    if not error <= 8 * (WIDTH + INNER) * EPSILON:
        sys.exit(f"{label}: off by {error:.2g}")


def write(path, nodes, inputs, output, held):
    with open(path, "wb") as file:
        file.write(onnx_file.model(nodes, inputs, [output], held, opset=17))


def forward(label, folder):
    path = lambda file: os.path.join(folder, file)
    nodes, quotient = DIVISIONS[label]
    write(path("m.onnx"), PRODUCTS + nodes, [("x", "f32", X.shape), ("d", "f32", D.shape)], ("y", "f32", X.shape),
          [("up", UP), ("down", DOWN), ("c", D), ("k", D + numpy.float32(0.5))])
    numpy.savez(path("in.npz"), x=X, d=D)
    wanted = quotient(numpy.maximum(X.astype(float) @ UP, 0) @ DOWN, D.astype(float))
    for tp in (1, 2, 3):
        run("hpc-opt", path("m.onnx"), f"--tp={tp}", "-o", path("p.plan"))
        compare(f"{label}, tp={tp}", run_plan(path("p.plan"), path("in.npz"))["y"], wanted)


def backward(op, folder):
    """The loss is the sum of relu((x f(bias)) up) down."""
    path = lambda file: os.path.join(folder, file)
    function, slope = SLOPES[op]
    nodes = [node(op, ["bias"], ["b"]), node("Mul", ["input", "b"], ["x"]), *PRODUCTS, node("ReduceSum", ["p"], ["loss"], keepdims=0)]
    write(path("m.onnx"), nodes, [("input", "f32", X.shape)], ("loss", "f32", []), [("bias", BIAS), ("up", UP), ("down", DOWN)])
    numpy.savez(path("in.npz"), input=X)
    u = (X * function(BIAS.astype(float))) @ UP
    wanted = (X * (((u > 0) * DOWN.astype(float).sum(1)) @ UP.T)).sum(0) * slope(BIAS.astype(float))
    for tp in (1, 2, 3):
        run("hpc-opt", path("m.onnx"), "--train", "--loss=output:loss", "--optimizer=sgd", f"--tp={tp}", "-o", path("p.plan"))
        run("hpc-run", path("p.plan"), f"--data={path('in.npz')}", f"--gradients={path('g.npz')}")
        compare(f"{op}'s gradient, tp={tp}", numpy.load(path("g.npz"))["bias"], wanted)


with tempfile.TemporaryDirectory() as scratch, numpy.errstate(all="ignore"):
    for label in DIVISIONS:
        forward(label, scratch)
    for op in SLOPES:
        backward(op, scratch)
print(f"{len(DIVISIONS) + len(SLOPES)} cases: equal")
