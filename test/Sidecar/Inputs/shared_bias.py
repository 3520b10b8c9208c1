"""Three products with one bias: shared_bias.py TEST_FOLDER MODEL.onnx."""
import sys

import numpy

sys.path.insert(0, sys.argv[1])
from onnx_file import model, node

draw = numpy.random.default_rng(1)
weights = [(name, draw.standard_normal((8, 8)).astype(numpy.float32)) for name in ("w", "w2", "w3")] + [("b", draw.standard_normal(8).astype(numpy.float32))]
nodes = [node("MatMul", ["x", "w"], ["a"]), node("Add", ["a", "b"], ["c"]), node("Relu", ["c"], ["d"]), node("MatMul", ["d", "w2"], ["e"]),
         node("Add", ["e", "b"], ["f"]), node("MatMul", ["f", "w3"], ["g"]), node("Add", ["g", "b"], ["y"])]
with open(sys.argv[2], "wb") as file:
    file.write(model(nodes, [("x", "f32", [4, 8])], [("y", "f32", [4, 8])], weights))
