#!/usr/bin/python3
"""train_rules.py: rules of the sidecar's `tensors` in a training step mean the graph's values: every rule that inference takes is taken, seeds the same op, and
changes no gradient (numpy in float64). Needs hpc-opt and hpc-run on the PATH."""
import json
import os
import re
import sys
import tempfile

import numpy

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import onnx_file  # noqa: E402
from model_checks import EPSILON, run  # noqa: E402

RANDOM = numpy.random.default_rng(4)
# x [4, 6] -> hm [4, 8] -> hn -> om [4, 5] -> y [4, 5]; of these 6, 8 and 5 are cut, and 4, which gradients of weights do not have.
W1, B1, W2 = (RANDOM.standard_normal(shape).astype(numpy.float32) for shape in ((6, 8), (8,), (8, 5)))
NODES = [onnx_file.node("MatMul", ["x", "w1"], ["hm"], name="first"), onnx_file.node("Add", ["hm", "b1"], ["hb"], name="bias"), onnx_file.node("Relu", ["hb"], ["hn"], name="act"),
         onnx_file.node("MatMul", ["hn", "w2"], ["om"], name="second"), onnx_file.node("Tanh", ["om"], ["y"], name="out")]
RULES = [("hm", 1), ("hm", 0), ("first", 1), ("hb", 1), ("bias", 0), ("hn", 1), ("hn", 0), ("act", 1), ("om", 1), ("om", 0), ("second", 1), ("y", 1), ("out", 0), ("x", 1), ("hm", None), ("hn", None), ("om", None)]


def seeded(folder, *flags):
    """The ops with a binding seed, or a result that is to be whole, as text."""
    text = run("hpc-opt", os.path.join(folder, "m.onnx"), f"--spec={os.path.join(folder, 'm.json')}", "--compile-to=annotate", *flags)
    return [re.sub(r"%\d+|%arg\d+|, priority = \d+|, hpc\.location = #loc\d*", "", line).strip() for line in text.splitlines() if 'origin = "sidecar"' in line or "dist.whole_output" in line]


with tempfile.TemporaryDirectory() as scratch:
    path = lambda name: os.path.join(scratch, name)
    with open(path("m.onnx"), "wb") as file:
        file.write(onnx_file.model(NODES, [("x", "f32", [4, 6])], [("y", "f32", [4, 5])], [("w1", W1), ("b1", B1), ("w2", W2)]))
    x, target = RANDOM.standard_normal((4, 6)).astype(numpy.float32), RANDOM.standard_normal((4, 5)).astype(numpy.float32)
    numpy.savez(path("data.npz"), x=x[None], labels=target[None])
    wide = [array.astype(numpy.float64) for array in (x, W1, B1, W2)]
    before = wide[0] @ wide[1] + wide[2]
    hidden = numpy.maximum(before, 0)
    y = numpy.tanh(hidden @ wide[3])
    at_om = 2 * (y - target) / y.size * (1 - y * y)
    at_hb = (at_om @ wide[3].T) * (before > 0)
    truth = {"w2": hidden.T @ at_om, "w1": wide[0].T @ at_hb, "b1": at_hb.sum(axis=0)}
    for name, dim in RULES:
        with open(path("m.json"), "w") as file:
            json.dump({"version": 1, "mesh": {"tp": 2}, "tensors": [{"match": name, "shard": [] if dim is None else [{"dim": dim, "axis": "tp"}]}]}, file)
        inference, training = seeded(scratch), seeded(scratch, "--train", "--loss=mse")
        if len(inference) != 1 or (name != "x" and inference != training):
            sys.exit(f"{name}, dim {dim}: a training step seeds\n{training}\nand inference\n{inference}")
        run("hpc-opt", path("m.onnx"), f"--spec={path('m.json')}", "--train", "--loss=mse", "--verify", "-o", path("p.plan"))
        run("hpc-run", path("p.plan"), f"--data={path('data.npz')}", f"--gradients={path('g.npz')}")
        for parameter, expected in truth.items():
            error = numpy.abs(numpy.load(path("g.npz"))[parameter] - expected).max() / numpy.abs(expected).max()
            if not error <= 32 * EPSILON:
                sys.exit(f"{name}, dim {dim}: the gradient of {parameter} is off by {error:.2g}")
    # output_replicate makes a product's result whole, and no gradient or update that reads the weight.
    with open(path("m.json"), "w") as file:
        json.dump({"version": 1, "mesh": {"tp": 2}, "params": [{"match": "w1", "shard": [{"dim": 1, "axis": "tp"}], "output_replicate": True}]}, file)
    whole = [[line for line in seeded(scratch, *flags) if "dist.whole_output" in line] for flags in ((), ("--train", "--loss=mse"))]
    if len(whole[0]) != 1 or whole[0] != whole[1]:
        sys.exit(f"output_replicate makes whole\n{whole[0]}\nand in a training step\n{whole[1]}")
    # What --write-spec writes of a training step leads to the same plan.
    run("hpc-opt", path("m.onnx"), "--spec=none", "--train", "--loss=mse", "--pp=2", f"--write-spec={path('w.json')}", "-o", path("a.plan"))
    run("hpc-opt", path("m.onnx"), f"--spec={path('w.json')}", "--train", "--loss=mse", "-o", path("b.plan"))
    with open(path("a.plan"), "rb") as a, open(path("b.plan"), "rb") as b:
        if a.read() != b.read():
            sys.exit("--write-spec of a training step leads to another plan")
    print(f"{len(RULES)} rules")
