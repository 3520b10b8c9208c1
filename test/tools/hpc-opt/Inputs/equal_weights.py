"""Three layers without biases, the second of which has the weights of the first and the third these transposed; and three of their own: equal_weights.py EQUAL.onnx OTHER.onnx."""
import os
import sys

import numpy

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", ".."))
import onnx_file  # noqa: E402
from onnx_file import node  # noqa: E402

random = numpy.random.default_rng(0)
first, second, third = (random.standard_normal((6, 6)).astype(numpy.float32) for _ in range(3))
nodes = [node("MatMul", ["x", "first"], ["a"]), node("Tanh", ["a"], ["b"]), node("MatMul", ["b", "second"], ["c"]), node("Tanh", ["c"], ["d"]), node("MatMul", ["d", "third"], ["y"])]
for name, weights in zip(sys.argv[1:], ((first, first, first.T.copy()), (first, second, third))):
    with open(name, "wb") as file:
        file.write(onnx_file.model(nodes, [("x", "f32", [4, 6])], [("y", "f32", [4, 6])], list(zip(("first", "second", "third"), weights))))
