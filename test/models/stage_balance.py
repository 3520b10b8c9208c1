#!/usr/bin/python3
"""stage_balance.py: where a pipeline is cut. Work before a recurrent layer is shared by flops; rules of stages that name weights decide, in inference and
in training. Needs hpc-opt on the PATH."""
import json
import os
import sys
import tempfile

import numpy

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import onnx_file  # noqa: E402
from model_checks import run, stage_flops  # noqa: E402

RANDOM = numpy.random.default_rng(2)


def draw(*shape):
    return RANDOM.standard_normal(shape).astype(numpy.float32)


def recurrent(kind, gates, ways, at, features, hidden, weights):
    """Its nodes, whose result is `h`."""
    weights += [("W", draw(ways, gates * hidden, features)), ("R", draw(ways, gates * hidden, hidden))]
    return [onnx_file.node(kind, [at, "W", "R"], ["h"], hidden_size=hidden, direction="bidirectional" if ways == 2 else "forward")]


def convolutions(kind, gates, ways):
    """Four convolutions of 8 channels and a pool, read along the width by a small recurrent layer."""
    nodes, weights, at = [], [], "x"
    for layer in range(4):
        weights.append((f"w{layer}", draw(8, 3 if layer == 0 else 8, 3, 3)))
        nodes += [onnx_file.node("Conv", [at, f"w{layer}"], [f"c{layer}"], pads=[1] * 4), onnx_file.node("Relu", [f"c{layer}"], [f"r{layer}"])]
        at = f"r{layer}"
    nodes += [onnx_file.node("ReduceMax", [at], ["m"], axes=[2], keepdims=0), onnx_file.node("Transpose", ["m"], ["t"], perm=[2, 0, 1])]
    return nodes + recurrent(kind, gates, ways, "t", 8, 3, weights), weights, [1, 3, 16, 12], [12, ways, 1, 3]


def linear():
    """Six wide linear layers, then an RNN of 16 steps."""
    nodes, weights, at = [], [], "x"
    for layer in range(6):
        weights.append((f"w{layer}", draw(64, 64 + 8 * layer) if layer == 0 else draw(64 + 8 * (layer - 1), 64 + 8 * layer)))
        nodes += [onnx_file.node("MatMul", [at, f"w{layer}"], [f"c{layer}"]), onnx_file.node("Relu", [f"c{layer}"], [f"r{layer}"])]
        at = f"r{layer}"
    return nodes + recurrent("RNN", 1, 1, at, 104, 4, weights), weights, [16, 1, 64], [16, 1, 1, 4]


def write(path, nodes, weights, x, y, name="h"):
    with open(path, "wb") as file:
        file.write(onnx_file.model(nodes, [("x", "f32", x)], [(name, "f32", y)], weights, opset=14))


def check_balance(label, folder, case, parts):
    nodes, weights, x, y = case
    write(os.path.join(folder, "m.onnx"), nodes, weights, x, y)
    flops = stage_flops(run("hpc-opt", os.path.join(folder, "m.onnx"), f"--pp={parts}", "--verify", "--explain", "-o", os.path.join(folder, "p.plan")))
    if max(flops) > 1.5 * sum(flops) / parts:
        sys.exit(f"{label}: stages compute {flops}")
    print(f"{label}: {parts} stages of at most {max(flops) * parts / sum(flops):.2f} times the mean")


def check_rules(label, folder, rules, held, flags):
    """Four equal products; what is before the cut, in products."""
    weights = [(f"W{i}", draw(8, 8)) for i in range(4)]
    nodes = [onnx_file.node("Constant", [], [name], value=array) for name, array in weights] if held else []
    for i in range(4):
        nodes += [onnx_file.node("MatMul", ["x" if i == 0 else f"r{i - 1}", f"W{i}"], [f"a{i}"]), onnx_file.node("Relu", [f"a{i}"], [f"r{i}"])]
    write(os.path.join(folder, "m.onnx"), nodes, [] if held else weights, [4, 8], [4, 8], "r3")
    with open(os.path.join(folder, "m.json"), "w") as file:
        json.dump({"version": 1, "mesh": {"pp": 2}, "stages": [{"match": match, "stage": stage} for match, stage in rules]}, file)
    said = run("hpc-opt", os.path.join(folder, "m.onnx"), f"--spec={os.path.join(folder, 'm.json')}", "--explain", *flags, "-o", os.path.join(folder, "p.plan"))
    first, second = stage_flops(said)
    print(f"{label}: {4 * first / (first + second):.1f} of 4 products in stage 0")


with tempfile.TemporaryDirectory() as scratch:
    check_balance("convolutions and a GRU", scratch, convolutions("GRU", 3, 2), 2)
    check_balance("convolutions and an LSTM", scratch, convolutions("LSTM", 4, 1), 2)
    check_balance("convolutions and an RNN", scratch, convolutions("RNN", 1, 1), 3)
    check_balance("linear layers and an RNN", scratch, linear(), 3)
    check_rules("W1 in stage 1", scratch, [("W1", 1)], False, [])
    check_rules("W2 in stage 0", scratch, [("W2", 0)], False, [])
    check_rules("W2 in stage 0, W3 in 1, Constant nodes", scratch, [("W2", 0), ("W3", 1)], True, [])
    check_rules("W1 in stage 1, a training step", scratch, [("W1", 1)], False, ["--train", "--loss=mse"])
