#!/usr/bin/python3
"""held_weights.py [CASE...]: small models whose weights are Constant nodes, views, casts and products of them, or whole numbers with scales.

Each is compiled with --verify on one rank and on --tp=2, must compute there half of the product flops, and its results and the gradients of a mean of squares
must be those of numpy in float64 (gradients by central differences). Prints the parameters, whether they are trained, and the warnings of --train.
Needs hpc-opt and hpc-run on the PATH."""
import os
import re
import sys
import tempfile

import numpy

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import onnx_file  # noqa: E402
from model_checks import EPSILON, product_flops, run, run_plan  # noqa: E402

RANDOM = numpy.random.default_rng(7)


def weight(*shape):
    return (RANDOM.standard_normal(shape) / max(1, shape[0]) ** 0.5).astype(numpy.float32)


def constant(name, array):
    return onnx_file.node("Constant", [], [name], value=numpy.asarray(array))


def relu(x):
    return numpy.maximum(x, 0)


class Case:
    """Nodes, shapes of input x and result y, held weights by name, and y = f(x, weights) in numpy. What is not `trained` is told by a warning. Gradients of
    what is stored in f16, `halves`, are rounded to it."""

    def __init__(self, nodes, x, weights, f, trained=None, initializers=(), depth=64, halves=()):
        self.nodes, self.x, self.weights, self.f, self.depth, self.halves = nodes, x, weights, f, depth, halves
        self.trained = list(weights) if trained is None else trained
        self.initializers = list(initializers)


def constants():
    """Two matrices: the one of zeros and of 0, 1, 2, ... as well, which are no table and no fill here."""
    w = {"W1": weight(12, 16), "b1": weight(16), "W2": numpy.arange(16 * 6, dtype=numpy.float32).reshape(16, 6) / 64, "W3": numpy.zeros((6, 4), numpy.float32)}
    nodes = [*(constant(name, array) for name, array in w.items()), onnx_file.node("MatMul", ["x", "W1"], ["a"]), onnx_file.node("Add", ["a", "b1"], ["b"]),
             onnx_file.node("Relu", ["b"], ["c"]), onnx_file.node("MatMul", ["c", "W2"], ["d"]), onnx_file.node("Gemm", ["d", "W3"], ["e"]),
             onnx_file.node("Concat", ["d", "e"], ["y"], axis=1)]
    return Case(nodes, (5, 12), w, lambda x, w: numpy.concatenate([(d := relu(x @ w["W1"] + w["b1"]) @ w["W2"]), d @ w["W3"]], axis=1))


def chain():
    """A transposed, a reshaped and scaled one, one stored in f16, one that passes an Identity."""
    half = weight(16, 8).astype(numpy.float16)
    w = {"W1": weight(16, 12), "W2": weight(4, 4, 16), "W3": half.astype(numpy.float32), "W4": weight(8, 6)}
    nodes = [constant("W1", w["W1"]), onnx_file.node("Transpose", ["W1"], ["t"], perm=[1, 0]), onnx_file.node("MatMul", ["x", "t"], ["a"]), onnx_file.node("Relu", ["a"], ["b"]),
             constant("W2", w["W2"]), constant("shape", numpy.array([16, 16])), onnx_file.node("Reshape", ["W2", "shape"], ["r"]),
             constant("scale", numpy.float32(0.5)), onnx_file.node("Mul", ["r", "scale"], ["rs"]), onnx_file.node("MatMul", ["b", "rs"], ["c"]), onnx_file.node("Relu", ["c"], ["d"]),
             constant("W3", half), onnx_file.node("Cast", ["W3"], ["h"], to=1), onnx_file.node("MatMul", ["d", "h"], ["e"]), onnx_file.node("Relu", ["e"], ["f"]),
             constant("W4", w["W4"]), onnx_file.node("Identity", ["W4"], ["i"]), onnx_file.node("MatMul", ["f", "i"], ["y"])]
    return Case(nodes, (5, 12), w, lambda x, w: relu(relu(relu(x @ w["W1"].T) @ (w["W2"].reshape(16, 16) * 0.5)) @ w["W3"]) @ w["W4"], halves=("W3",))


def quantized():
    """i8 with a scale for each column, and u8 with one scale and a zero point: cut, not trained. Between them one in floats."""
    codes1, scales = RANDOM.integers(-127, 128, (12, 16)).astype(numpy.int8), (RANDOM.random(16) / 300 + 1e-3).astype(numpy.float32)
    codes2 = RANDOM.integers(0, 256, (16, 6)).astype(numpy.uint8)
    real1, real2 = codes1 * scales.astype(numpy.float64), (codes2.astype(numpy.float64) - 128) * numpy.float32(0.01)
    w = {"W2": weight(16, 16)}
    nodes = [constant("W1_q", codes1), constant("scales", scales), onnx_file.node("DequantizeLinear", ["W1_q", "scales"], ["W1"], axis=1), onnx_file.node("MatMul", ["x", "W1"], ["a"]),
             onnx_file.node("Relu", ["a"], ["b"]), constant("W2", w["W2"]), onnx_file.node("MatMul", ["b", "W2"], ["c"]), onnx_file.node("Relu", ["c"], ["d"]),
             constant("scale", numpy.float32(0.01)), onnx_file.node("DequantizeLinear", ["W3_q", "scale", "zero"], ["W3"]), onnx_file.node("MatMul", ["d", "W3"], ["y"])]
    return Case(nodes, (5, 12), w, lambda x, w: relu(relu(x @ real1) @ w["W2"]) @ real2, initializers=[("W3_q", codes2), ("zero", numpy.uint8(128))])


def convolve(x, w, groups):
    """Stride 1, the same size, no bias."""
    n, channels, height, width = x.shape
    out, per, k, _ = w.shape
    padded = numpy.pad(x, ((0, 0), (0, 0), (k // 2, k // 2), (k // 2, k // 2)))
    y = numpy.zeros((n, out, height, width))
    for o in range(out):
        first = o // (out // groups) * per
        for i in range(k):
            for j in range(k):
                y[:, o] += numpy.einsum("nchw,c->nhw", padded[:, first:first + per, i:i + height, j:j + width], w[o, :, i, j])
    return y


def convolutions():
    """Plain, depthwise with a bias of each channel, pointwise."""
    w = {"W1": weight(8, 3, 3, 3), "W2": weight(8, 1, 3, 3), "b2": weight(8), "W3": weight(4, 8, 1, 1)}
    nodes = [*(constant(name, array) for name, array in w.items()), onnx_file.node("Conv", ["x", "W1"], ["a"], pads=[1] * 4), onnx_file.node("Relu", ["a"], ["b"]),
             onnx_file.node("Conv", ["b", "W2", "b2"], ["c"], pads=[1] * 4, group=8), onnx_file.node("Relu", ["c"], ["d"]), onnx_file.node("Conv", ["d", "W3"], ["y"])]
    return Case(nodes, (2, 3, 4, 4), w, lambda x, w: convolve(relu(convolve(relu(convolve(x, w["W1"], 1)), w["W2"], 8) + w["b2"][:, None, None]), w["W3"], 1))


def branch():
    """In a branch of an If, and in a body that runs three times: one parameter."""
    w = {"W1": weight(12, 16), "W2": weight(16, 12)}
    inner = [constant("W1", w["W1"]), onnx_file.node("MatMul", ["x", "W1"], ["a"]), onnx_file.node("Relu", ["a"], ["b"]), constant("W2", w["W2"]), onnx_file.node("MatMul", ["b", "W2"], ["c"])]
    then = onnx_file.graph(inner, [], [("c", "f32", [5, 12])])
    other = onnx_file.graph([onnx_file.node("Identity", ["x"], ["n"])], [], [("n", "f32", [5, 12])])
    nodes = [constant("yes", numpy.array(True)), onnx_file.node("If", ["yes"], ["y"], then_branch=then, else_branch=other)]
    return Case(nodes, (5, 12), w, lambda x, w: relu(x @ w["W1"]) @ w["W2"])


CASES = {f.__name__: f for f in (constants, chain, quantized, convolutions, branch)}


def difference(case, x, target, name):
    """The gradient of mean((f - target)^2) by central differences, float64."""
    held = {key: value.astype(numpy.float64) for key, value in case.weights.items()}
    gradient = numpy.zeros(held[name].shape)
    for place in numpy.ndindex(*gradient.shape):
        losses = []
        for step in (1e-6, -1e-6):
            changed = held[name].copy()
            changed[place] += step
            losses.append(numpy.mean((case.f(x.astype(numpy.float64), {**held, name: changed}) - target) ** 2))
        gradient[place] = (losses[0] - losses[1]) / 2e-6
    return gradient


def check(name, folder):
    case, path = CASES[name](), lambda file: os.path.join(folder, file)
    x = RANDOM.standard_normal(case.x).astype(numpy.float32)
    held = {key: value.astype(numpy.float64) for key, value in case.weights.items()}
    truth = case.f(x.astype(numpy.float64), held)
    with open(path("m.onnx"), "wb") as file:
        file.write(onnx_file.model(case.nodes, [("x", "f32", x.shape)], [("y", "f32", truth.shape)], case.initializers, opset=17))
    numpy.savez(path("in.npz"), x=x)
    names = re.findall(r"^(\S+)\n  shape", run("hpc-opt", path("m.onnx"), "--list-params"), re.MULTILINE)
    print(f"{name}: parameters {' '.join(sorted(names))}")
    flops = {}
    for flags in ([], ["--tp=2"]):
        flops[len(flags)] = product_flops(run("hpc-opt", path("m.onnx"), *flags, f"--verify={path('in.npz')}", "--explain", "-o", path("p.plan")))
        error = numpy.abs(run_plan(path("p.plan"), path("in.npz"))["y"] - truth).max() / numpy.abs(truth).max()
        if not error <= case.depth * EPSILON:
            sys.exit(f"{name} {flags}: off by {error:.2g}")
    print(f"{name}: --tp=2 computes {flops[1] / flops[0]:.2f} of the flops")
    target = RANDOM.standard_normal(truth.shape).astype(numpy.float32)
    numpy.savez(path("data.npz"), x=x[None], labels=target[None])
    said = run("hpc-opt", path("m.onnx"), "--train", "--loss=mse", "--optimizer=sgd", "--tp=2", "-o", path("t.plan"))
    for line in said.splitlines():
        if "--train leaves" in line:
            print(f"{name}: {line[line.index('--train'):]}")
    run("hpc-run", path("t.plan"), f"--data={path('data.npz')}", f"--gradients={path('g.npz')}")
    gradients = numpy.load(path("g.npz"))
    for parameter in case.trained:
        expected = difference(case, x, target, parameter)
        found = gradients[parameter]
        if not numpy.abs(found - expected).max() <= (2 ** -10 if parameter in case.halves else 1e-5) * max(numpy.abs(expected).max(), 1e-3):
            sys.exit(f"{name}: the gradient of {parameter} is off by {numpy.abs(found - expected).max():.2g} of {numpy.abs(expected).max():.2g}")
    more = set(gradients.files) - set(case.trained) - {"loss"}
    if more:
        sys.exit(f"{name}: {sorted(more)} are trained too")
    print(f"{name}: gradients of {' '.join(sorted(case.trained))} are right")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as scratch:
        for each in sys.argv[1:] or CASES:
            check(each, scratch)
