"""A model with means over the batch, what NumPy says of it, and the comparison.

    batch_means.py outputs|centred MODEL INPUTS     writes the model and its inputs, as .npz
    batch_means.py check INPUTS OUTPUTS             compares what hpc-run wrote with NumPy

a = Relu(x A), mean = ReduceMean(a, batch), counts = ReduceMean(n, batch) of integers. `outputs` returns all of them, `centred` a - mean, which every
micro-batch needs before the last one has run.
"""
import os
import sys

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
from onnx_file import model, node  # noqa: E402

mode = sys.argv[1]
random = np.random.default_rng(1)
A = (random.standard_normal([6, 5]) / 2).astype("float32")
if mode == "check":
    given, found = np.load(sys.argv[2]), np.load(sys.argv[3])
    a = np.maximum(given["x"].astype("float64") @ A, 0)
    total = given["n"].sum(axis=0, keepdims=True)
    np.testing.assert_allclose(found["a"], a, rtol=0, atol=1e-6)
    np.testing.assert_allclose(found["mean"], a.mean(axis=0, keepdims=True), rtol=0, atol=1e-6)
    # ONNX: the sum, divided as integers are; it is positive here.
    np.testing.assert_array_equal(found["counts"], total // len(given["n"]))
    print("equal")
    sys.exit()

nodes = [node("MatMul", ["x", "A"], ["h"]), node("Relu", ["h"], ["a"]), node("ReduceMean", ["a", "axes"], ["mean"]),
         node("ReduceMean", ["n", "axes"], ["counts"])]
outputs = [("a", "f32", [8, 5]), ("mean", "f32", [1, 5]), ("counts", "i64", [1, 3])]
if mode == "centred":
    nodes.append(node("Sub", ["a", "mean"], ["c"]))
    outputs = [("c", "f32", [8, 5]), outputs[2]]
with open(sys.argv[2], "wb") as file:
    file.write(model(nodes, [("x", "f32", [8, 6]), ("n", "i64", [8, 3])], outputs, [("A", A), ("axes", np.array([0]))]))
np.savez(sys.argv[3], x=random.standard_normal([8, 6]).astype("float32"), n=random.integers(0, 9, [8, 3]))
