"""A model of reshapes of tensors without elements, and the comparison of what came out with the shapes that ONNX says.

    zero_sizes.py model MODEL INPUTS
    zero_sizes.py check OUTPUTS
"""
import os
import sys

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
from onnx_file import model, node  # noqa: E402

# input, its shape, the shape that is asked for, allowzero, the shape that ONNX says (Reshape: 0 copies the dim, unless allowzero)
CASES = [
    ("x", [1, 1, 5, 0], [1, 1, 1, 0], 0, [1, 1, 1, 0]),
    ("x", [1, 1, 5, 0], [0, 0, 0, 0], 0, [1, 1, 5, 0]),
    ("x", [1, 1, 5, 0], [1, 5, 0], 1, [1, 5, 0]),
    ("y", [4, 0, 8], [0, 8], 1, [0, 8]),
    ("y", [4, 0, 8], [8, 0, 4], 0, [8, 0, 4]),
    ("y", [4, 0, 8], [2, 2, 0, 8], 1, [2, 2, 0, 8]),
    ("y", [4, 0, 8], [0, 3], 1, [0, 3]),
    ("z", [0], [2, 0, 3], 1, [2, 0, 3]),
]
inputs = {name: shape for name, shape, *_ in CASES}
if sys.argv[1] == "check":
    found = np.load(sys.argv[2])
    for number, case in enumerate(CASES):
        assert list(found[f"r{number}"].shape) == case[4], (case, found[f"r{number}"].shape)
        assert list(found[f"e{number}"].shape) == case[4], (case, found[f"e{number}"].shape)
    print("equal")
    sys.exit()

# Each comes out as it is and after an op that computes.
nodes, weights, outputs = [], [], []
for number, (name, _, shape, allowzero, expected) in enumerate(CASES):
    weights.append((f"s{number}", np.array(shape, "int64")))
    nodes += [node("Reshape", [name, f"s{number}"], [f"r{number}"], allowzero=allowzero), node("Exp", [f"r{number}"], [f"e{number}"])]
    outputs += [(f"r{number}", "f32", expected), (f"e{number}", "f32", expected)]
with open(sys.argv[2], "wb") as file:
    file.write(model(nodes, [(name, "f32", shape) for name, shape in inputs.items()], outputs, weights))
np.savez(sys.argv[3], **{name: np.zeros(shape, "float32") for name, shape in inputs.items()})
