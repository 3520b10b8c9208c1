"""nested_weights.py FOLDER: writes function.onnx, a weight in a function of the model, and branch.onnx, weights in both branches of an If; and their data d.npz."""
import os
import sys

import numpy

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", ".."))
from onnx_file import function, graph, model, node  # noqa: E402

folder = sys.argv[1]
random = numpy.random.default_rng(0)
first, second = ((random.standard_normal(shape) / 4).astype(numpy.float32) for shape in ((20, 16), (16, 7)))
ends = [("x", "f32", ["batch", 20])], [("y", "f32", ["batch", 7])]
last = node("MatMul", ["h", "second.weight"], ["y"])
body = [node("Constant", [], ["W"], value=first), node("MatMul", ["a", "W"], ["b"])]
with open(f"{folder}/function.onnx", "wb") as file:
    file.write(model([node("First", ["x"], ["h"], domain="own"), last], *ends, [("second.weight", second)], domains=["own"], functions=[function("First", ["a"], ["b"], body, "own")]))
branches = {name: graph([node("MatMul", ["x", "W"], [name])], [], [(name, "f32", ["batch", 16])], [("W", weight)]) for name, weight in (("t", first), ("e", -first))}
with open(f"{folder}/branch.onnx", "wb") as file:
    file.write(model([node("If", ["c"], ["h"], name="choose", then_branch=branches["t"], else_branch=branches["e"]), last], *ends, [("second.weight", second), ("c", numpy.array(True))]))
numpy.savez(f"{folder}/n.npz", x=numpy.stack([random.standard_normal((8, 20)).astype(numpy.float32)] * 2), labels=numpy.stack([random.integers(0, 7, 8)] * 2))
