#!/usr/bin/python3
"""wide_product.py FILE.onnx: y = relu(relu(x W0) W1) W2, 360 rows of 30, then of 390 columns. Over 3 x 3 ranks a panel of wide rows is 120 x 130, one of W1 130 x 130."""
import os
import sys

import numpy

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from onnx_file import model, node  # noqa: E402

chance = numpy.random.default_rng(7)
weights = [(f"w{i}", (chance.standard_normal((rows, 390)) / 20).astype(numpy.float32)) for i, rows in enumerate((30, 390, 390))]
nodes = [node("MatMul", ["x", "w0"], ["a"]), node("Relu", ["a"], ["b"]), node("MatMul", ["b", "w1"], ["c"]), node("Relu", ["c"], ["d"]),
         node("MatMul", ["d", "w2"], ["y"])]
with open(sys.argv[1], "wb") as file:
    file.write(model(nodes, inputs=[("x", "f32", [360, 30])], outputs=[("y", "f32", [360, 390])], initializers=weights))
