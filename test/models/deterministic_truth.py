"""--deterministic against double precision, where its grids are strained: gradients of a classifier whose contraction is a vocabulary of 50,000 (probabilities near 2e-5 beside one near 1), and a
loss whose terms leave the first two words of a sum. Tolerances: f32's rounding of a sum of k terms, 2^-24 sqrt(k) of its largest, times 4.

  test/models/deterministic_truth.py BIN FOLDER
"""
import math
import os
import subprocess
import sys

import numpy

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import onnx_file

BIN, FOLDER = sys.argv[1:]
os.makedirs(FOLDER, exist_ok=True)
plan, model, data, out = (os.path.join(FOLDER, name) for name in ("a.plan", "a.onnx", "data.npz", "out.npz"))


def run(tool, *arguments):
    done = subprocess.run([os.path.join(BIN, tool), *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert done.returncode == 0, done.stdout[-2000:]


def gradients(flags, arrays):
    numpy.savez(data, **arrays)
    run("hpc-opt", model, "--train", "--optimizer=sgd", "--deterministic", "--dim", "batch=8", *flags.split(), "-o", plan)
    run("hpc-run", plan, f"--gradients={out}", f"--data={data}")
    return numpy.load(out)


def check(what, got, true, terms):
    error = numpy.abs(got - true).max() / numpy.abs(true).max()
    bound = 4 * math.sqrt(terms) * 2**-24
    print(f"{what}: off by {error:.2g} of the largest, bound {bound:.2g}")
    assert error <= bound, what


rng = numpy.random.default_rng(0)
vocabulary = 50000
w1, w2 = rng.standard_normal((16, 16)).astype("f") * numpy.float32(0.3), rng.standard_normal((16, vocabulary)).astype("f") * numpy.float32(0.02)
x, labels = rng.standard_normal((8, 16)).astype("f"), rng.integers(0, vocabulary, 8)
open(model, "wb").write(onnx_file.model(
    [onnx_file.node("MatMul", ["x", "w1"], ["a"]), onnx_file.node("Tanh", ["a"], ["b"]), onnx_file.node("MatMul", ["b", "w2"], ["y"])],
    [("x", "f32", ["batch", 16])], [("y", "f32", ["batch", vocabulary])], [("w1", w1), ("w2", w2)]))
b = numpy.tanh(x.astype("d") @ w1)
scores = b @ w2.astype("d")
p = numpy.exp(scores - scores.max(1, keepdims=True))
p /= p.sum(1, keepdims=True)
d = p.copy()
d[numpy.arange(8), labels] -= 1
d /= 8
for flags in ("", "--tp=2", "--dp=2 --micro-batches=2"):
    found = gradients("--loss=classification " + flags, {"x": x[None], "labels": labels[None]})
    check(f"w1 {flags}", found["w1"], x.T.astype("d") @ (d @ w2.T.astype("d") * (1 - b * b)), vocabulary)
    check(f"w2 {flags}", found["w2"], b.T @ d, 8)
    check(f"loss {flags}", found["loss"], -numpy.log(p[numpy.arange(8), labels]).mean(), vocabulary)

w = rng.standard_normal((16, 4)).astype("f")
labels = (2.5e5 * rng.standard_normal((8, 4))).astype("f")
open(model, "wb").write(onnx_file.model([onnx_file.node("MatMul", ["x", "w"], ["y"])], [("x", "f32", ["batch", 16])], [("y", "f32", ["batch", 4])], [("w", w)]))
y = x.astype("d") @ w
found = gradients("--loss=mse", {"x": x[None], "labels": labels[None]})
check("loss of large labels", found["loss"], ((y - labels) ** 2).mean(), 32)
check("their gradient", found["w"], x.T.astype("d") @ (2 * (y - labels) / 32), 8)
print("near the truth")
