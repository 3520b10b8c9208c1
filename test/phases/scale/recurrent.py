#!/usr/bin/python3
"""recurrent.py STEPS FILE: a GRU of 8 states over so many steps, as an ONNX file."""
import os
import sys

import numpy

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
import onnx_file  # noqa: E402

steps, hidden = int(sys.argv[1]), 8
draw = lambda *shape: numpy.random.default_rng(1).standard_normal(shape).astype(numpy.float32)
weights = [("W", draw(1, 3 * hidden, hidden)), ("R", draw(1, 3 * hidden, hidden)), ("B", draw(1, 6 * hidden))]
node = onnx_file.node("GRU", ["x", "W", "R", "B"], ["", "y"], name="gru", hidden_size=hidden, linear_before_reset=1)
with open(sys.argv[2], "wb") as file:
    file.write(onnx_file.model([node], [("x", "f32", [steps, 1, hidden])], [("y", "f32", [1, 1, hidden])], weights, opset=14))
