#!/usr/bin/python3
"""wide_product.py FILE.onnx: y = relu(x W1) W2, 360 rows of 390 columns, weights of 390 x 390. Over 3 x 3 ranks a panel of rows is 120 x 130, one of a weight 130 x 130."""
import os
import sys

import numpy

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from onnx_file import model, node  # noqa: E402

chance = numpy.random.default_rng(7)
weights = {name: (chance.standard_normal((390, 390)) / 20).astype(numpy.float32) for name in ("w1", "w2")}
nodes = [node("MatMul", ["x", "w1"], ["a"]), node("Relu", ["a"], ["b"]), node("MatMul", ["b", "w2"], ["y"])]
with open(sys.argv[1], "wb") as file:
    file.write(model(nodes, inputs=[("x", "f32", [360, 390])], outputs=[("y", "f32", [360, 390])], initializers=list(weights.items())))
