"""two_heads.py FOLDER: two.onnx, h = x @ body, y = h @ head.weight + head.bias, z = h @ aux.weight * aux.scale, of which training reads y alone; raw weights in external data too (external.onnx). d.npz has x and labels.
two_heads.py FOLDER check WEIGHTS OUT.npz: whether both outputs are those of the saved weights, by numpy; prints the names in the file."""
import json
import os
import sys

import numpy

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", ".."))
from onnx_file import model, node  # noqa: E402

folder = sys.argv[1]
random = numpy.random.default_rng(5)
weights = {name: random.standard_normal(shape).astype(numpy.float32)
           for name, shape in {"body": (4, 5), "head.weight": (5, 3), "head.bias": (3,), "aux.weight": (5, 6), "aux.scale": (6,)}.items()}
x, labels = (random.standard_normal(shape).astype(numpy.float32) for shape in ((2, 4), (2, 3)))

if sys.argv[2:3] == ["check"]:
    data = open(sys.argv[3], "rb").read()
    size = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + size])
    assert header.pop("__metadata__")["format"] == "pt"
    saved = {name: numpy.frombuffer(data[8 + size + entry["data_offsets"][0] : 8 + size + entry["data_offsets"][1]], numpy.float32).reshape(entry["shape"]).astype(numpy.float64)
             for name, entry in header.items()}
    assert {name: array.shape for name, array in saved.items()} == {name: array.shape for name, array in weights.items()}, sorted(saved)
    for name in weights:
        assert (saved[name] == weights[name]).all() == name.startswith("aux"), name
    h = x @ saved["body"]
    out = numpy.load(sys.argv[4])
    for found, right in ((out["y"], h @ saved["head.weight"] + saved["head.bias"]), (out["z"], h @ saved["aux.weight"] * saved["aux.scale"])):
        assert found.shape == right.shape and abs(found - right).max() <= 32 * 2**-24 * abs(right).max()
    print("right:", ", ".join(sorted(saved)))
    sys.exit()

nodes = [node("MatMul", ["x", "body"], ["h"]), node("MatMul", ["h", "head.weight"], ["p"]), node("Add", ["p", "head.bias"], ["y"]),
         node("MatMul", ["h", "aux.weight"], ["q"]), node("Mul", ["q", "aux.scale"], ["z"])]
with open(os.path.join(folder, "two.onnx"), "wb") as file:
    file.write(model(nodes, inputs=[("x", "f32", [2, 4])], outputs=[("y", "f32", [2, 3]), ("z", "f32", [2, 6])], initializers=list(weights.items())))
numpy.savez(os.path.join(folder, "d.npz"), x=x, labels=labels)
numpy.savez(os.path.join(folder, "x.npz"), x=x)
