"""Writes an ONNX model of one float type: y = ReduceSum(Exp(Relu(x A) B), last dim), x of 6x24, to FILE.

    float_types.py f16|f64 FILE
"""
import os
import sys

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
from onnx_file import ELEMENT_TYPES, model, node  # noqa: E402

kind, path = sys.argv[1:]
random = np.random.default_rng(0)


def weight(name, shape):
    return name, (random.standard_normal(shape) / 6).astype(ELEMENT_TYPES[kind][1])


nodes = [node("MatMul", ["x", "A"], ["h"]), node("Relu", ["h"], ["a"]), node("MatMul", ["a", "B"], ["p"]), node("Exp", ["p"], ["e"]),
         node("ReduceSum", ["e", "axes"], ["y"])]
with open(path, "wb") as file:
    file.write(model(nodes, [("x", kind, [6, 24])], [("y", kind, [6, 1])],
                     [weight("A", [24, 40]), weight("B", [40, 24]), ("axes", np.array([-1]))], opset=17))
