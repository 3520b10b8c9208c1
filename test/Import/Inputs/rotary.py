"""rotary.py FOLDER: m.onnx, a product with a weight that is turned by the cosine of positions times frequencies, which are a buffer, times a learned scale of no dims, plus a
bias of one element; data.npz, a batch for it."""
import pathlib, sys

import numpy

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
import onnx_file

folder, random = sys.argv[1], numpy.random.default_rng(3)
nodes = [onnx_file.node("MatMul", ["x", "weight"], ["turned"]), onnx_file.node("Mul", ["positions", "inv_freq"], ["angle"]), onnx_file.node("Cos", ["angle"], ["cos"]),
         onnx_file.node("Mul", ["turned", "cos"], ["placed"]), onnx_file.node("Mul", ["placed", "scale"], ["scaled"]), onnx_file.node("Add", ["scaled", "bias"], ["more"]),
         onnx_file.node("Mul", ["more", "half"], ["y"])]
weights = [("weight", random.standard_normal((6, 4)).astype(numpy.float32)), ("inv_freq", numpy.float32([1, 0.1, 0.01, 0.001])), ("scale", numpy.float32(1.5)), ("bias", numpy.float32([0.25])),
           ("half", numpy.float32(0.5))]
kinds = [("weight", "PARAMETER"), ("inv_freq", "BUFFER"), ("scale", "PARAMETER"), ("bias", "PARAMETER")]
inputs = [("x", "f32", [4, 5, 6]), ("positions", "f32", [4, 5, 1])]
with open(folder + "/m.onnx", "wb") as file:
    file.write(onnx_file.model(nodes, inputs, [("y", "f32", [4, 5, 4])], weights, ir=10, kinds=kinds))
numpy.savez(folder + "/data.npz", x=random.standard_normal((4, 5, 6)).astype(numpy.float32), positions=numpy.tile(numpy.arange(5, dtype=numpy.float32)[:, None], (4, 1, 1)),
            labels=random.standard_normal((4, 5, 4)).astype(numpy.float32))
