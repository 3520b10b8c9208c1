#!/usr/bin/python3
"""Dropout as an exporter writes it, against Philox 4x32-10 written once more in numpy: y = Dropout(Dropout(x + b, 0.25) * w, 0.5), trained with mse on t. The loss of three
steps and the gradient of the first have to be those of the very masks that seed, step, site and position give, by every layout. Then attention of 5 heads, with one
dropout of its weights and one of its merged heads, whose dims tensor parallelism cuts unevenly and inside of a dim.

  dropout_masks.py [--bin=build/bin] FOLDER
"""
import argparse
import json
import os
import subprocess
import sys

import numpy

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import onnx_file

parser = argparse.ArgumentParser()
parser.add_argument("--bin", default="build/bin")
parser.add_argument("folder")
options = parser.parse_args()
BATCH, ROWS, WIDTH, SEED, RATE = 6, 5, 7, (3 << 32) + 12345, 0.125


def words(seed, step, site, count):
    """The first word of every counter (position, step, site) under the key seed."""
    position, low = numpy.arange(count, dtype=numpy.uint64), numpy.uint64(0xFFFFFFFF)
    counter = [position & low, position >> numpy.uint64(32), numpy.full(count, step, numpy.uint64), numpy.full(count, site, numpy.uint64)]
    key = [seed & 0xFFFFFFFF, seed >> 32]
    for _ in range(10):
        a, b = numpy.uint64(0xD2511F53) * counter[0], numpy.uint64(0xCD9E8D57) * counter[2]
        counter = [b >> numpy.uint64(32) ^ counter[1] ^ numpy.uint64(key[0]), b & low, a >> numpy.uint64(32) ^ counter[3] ^ numpy.uint64(key[1]), a & low]
        key = [(key[0] + 0x9E3779B9) & 0xFFFFFFFF, (key[1] + 0xBB67AE85) & 0xFFFFFFFF]
    return counter[0]


def scale(step, site, rate, shape=(BATCH, ROWS, WIDTH)):
    """0 where an element is dropped, else 1 / (1 - rate)."""
    return ((words(SEED, step, site, int(numpy.prod(shape))) >= rate * 2**32) / (1 - rate)).reshape(shape)


def run(tool, *arguments):
    done = subprocess.run([os.path.join(options.bin, tool), *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode:
        sys.exit(f"FAILED: {tool} {' '.join(arguments)}\n{done.stdout}")


def path(name):
    return os.path.join(options.folder, name)


chance = numpy.random.default_rng(5)
x, t = (chance.standard_normal((BATCH, ROWS, WIDTH)).astype(numpy.float32) for _ in range(2))
b, w = (chance.standard_normal(WIDTH).astype(numpy.float32) for _ in range(2))
drops = {  # rates as an input and training mode as one since opset 12; before, an attribute and none
    13: [onnx_file.node("Dropout", ["xb", "r0", "on"], ["d0"]), onnx_file.node("Dropout", ["m", "r1", "on"], ["y"])],
    10: [onnx_file.node("Dropout", ["xb"], ["d0"], ratio=0.25), onnx_file.node("Dropout", ["m"], ["y"], ratio=0.5)],
}
numpy.savez(path("data.npz"), x=x[None], labels=t[None])
cases = 0
for opset, (first, second) in drops.items():
    nodes = [onnx_file.node("Add", ["x", "b"], ["xb"]), first, onnx_file.node("Mul", ["d0", "w"], ["m"]), second]
    rates = [("r0", numpy.float32(0.25)), ("r1", numpy.float32(0.5)), ("on", numpy.bool_(True))] if opset > 12 else []
    port = ["batch", ROWS, WIDTH]
    with open(path("model.onnx"), "wb") as file:
        file.write(onnx_file.model(nodes, [("x", "f32", port)], [("y", "f32", port)], [("b", b), ("w", w), *rates], opset=opset))
    for layout in ["", "--dp=2", "--dp=4", "--micro-batches=3", "--dp=2 --micro-batches=3"]:
        run("hpc-opt", path("model.onnx"), "--train", "--loss=mse", "--optimizer=sgd", "--dim", f"batch={BATCH}", *layout.split(), "-o", path("m.plan"))
        run("hpc-run", path("m.plan"), "--train", f"--data={path('data.npz')}", "--steps=3", f"--lr={RATE}", f"--seed={SEED}", f"--metrics={path('m.jsonl')}")
        run("hpc-run", path("m.plan"), f"--data={path('data.npz')}", f"--seed={SEED}", f"--gradients={path('g.npz')}")
        found = [json.loads(line) for line in open(path("m.jsonl"))]
        now = {"b": b.astype(float), "w": w.astype(float)}
        for step in range(3):
            outer = scale(step + 1, 1, 0.5)
            inner = scale(step + 1, 0, 0.25)
            dropped = (x + now["b"]) * inner
            error = dropped * now["w"] * outer - t
            gradient = 2 * error / error.size
            gradients = {"b": (gradient * outer * now["w"] * inner).sum((0, 1)), "w": (gradient * outer * dropped).sum((0, 1))}
            if not abs(found[step]["loss"] - (error**2).mean()) <= 1e-5 * (error**2).mean() or found[step]["seed"] != SEED:
                sys.exit(f"FAILED: opset {opset} '{layout}', step {step}: {found[step]}, expected a loss of {(error**2).mean()}")
            if step == 0:
                archive = numpy.load(path("g.npz"))
                for name, value in gradients.items():
                    if not numpy.abs(archive[name] - value).max() <= 1e-5 * numpy.abs(value).max():
                        sys.exit(f"FAILED: opset {opset} '{layout}': gradient of {name} is {archive[name]}, expected {value}")
            now = {name: value - RATE * gradients[name] for name, value in now.items()}
        cases += 1

HEADS, DEPTH = 5, 4
INNER = HEADS * DEPTH


def attention_file(fused):
    nodes, weights = [], {}
    if fused:
        nodes += [onnx_file.node("MatMul", ["x", "w"], ["qkv"]), onnx_file.node("Split", ["qkv", "thirds"], ["q0", "k0", "v0"], axis=2)]
    for name in "qkv":
        if not fused:
            nodes.append(onnx_file.node("MatMul", ["x", "w" + name], [name + "0"]))
        nodes += [onnx_file.node("Reshape", [name + "0", "heads"], [name + "1"]), onnx_file.node("Transpose", [name + "1"], [name], perm=[0, 2, 1, 3])]
    nodes += [
        onnx_file.node("Transpose", ["k"], ["kt"], perm=[0, 1, 3, 2]), onnx_file.node("MatMul", ["q", "kt"], ["s"]), onnx_file.node("Softmax", ["s"], ["p"], axis=-1),
        onnx_file.node("Dropout", ["p", "r0", "on"], ["pd"]), onnx_file.node("MatMul", ["pd", "v"], ["o"]), onnx_file.node("Transpose", ["o"], ["ot"], perm=[0, 2, 1, 3]),
        onnx_file.node("Reshape", ["ot", "merged"], ["of"]), onnx_file.node("Dropout", ["of", "r1", "on"], ["od"]), onnx_file.node("MatMul", ["od", "wo"], ["y"])]
    constants = [("heads", numpy.array([0, 0, HEADS, DEPTH])), ("merged", numpy.array([0, 0, INNER])), ("r0", numpy.float32(0.25)), ("r1", numpy.float32(0.5)), ("on", numpy.bool_(True))]
    constants += [("thirds", numpy.array([INNER] * 3))] if fused else []
    own = [("w", numpy.concatenate([given["w" + name] for name in "qkv"], 1))] if fused else [("w" + name, given["w" + name]) for name in "qkv"]
    return onnx_file.model(nodes, [("x", "f32", ["batch", ROWS, WIDTH])], [("y", "f32", ["batch", ROWS, WIDTH])], [*own, ("wo", given["wo"]), *constants], opset=13)


def step_of_attention(now, step):
    """The loss, and the gradients of the four weights."""
    split = lambda a: a.reshape(BATCH, ROWS, HEADS, DEPTH).transpose(0, 2, 1, 3)
    merge = lambda a: a.transpose(0, 2, 1, 3).reshape(BATCH, ROWS, INNER)
    q, k, v = (split(x @ now["w" + name]) for name in "qkv")
    p = numpy.exp(q @ k.transpose(0, 1, 3, 2))
    p /= p.sum(-1, keepdims=True)
    inner, outer = scale(step, 0, 0.25, (BATCH, HEADS, ROWS, ROWS)), scale(step, 1, 0.5, (BATCH, ROWS, INNER))
    dropped = merge((p * inner) @ v) * outer
    error = dropped @ now["wo"] - t
    dy = 2 * error / error.size
    do = split((dy @ now["wo"].T) * outer)
    dp = (do @ v.transpose(0, 1, 3, 2)) * inner
    ds = p * (dp - (dp * p).sum(-1, keepdims=True))
    back = lambda a: numpy.einsum("bsi,bsj->ij", x, merge(a))
    return (error**2).mean(), {"wq": back(ds @ k), "wk": back(ds.transpose(0, 1, 3, 2) @ q), "wv": back((p * inner).transpose(0, 1, 3, 2) @ do),
                               "wo": numpy.einsum("bsi,bsj->ij", dropped, dy)}


given = {"w" + name: (0.3 * chance.standard_normal((WIDTH, INNER))).astype(numpy.float32) for name in "qkv"}
given["wo"] = chance.standard_normal((INNER, WIDTH)).astype(numpy.float32)
for fused in (False, True):
    with open(path("model.onnx"), "wb") as file:
        file.write(attention_file(fused))
    for layout in ["", "--tp=2", "--tp=3", "--tp=5", "--dp=2 --micro-batches=3", "--tp=2 --dp=2 --micro-batches=3", "--pp=2 --micro-batches=2"]:
        run("hpc-opt", path("model.onnx"), "--train", "--loss=mse", "--optimizer=sgd", "--dim", f"batch={BATCH}", *layout.split(), "-o", path("m.plan"))
        run("hpc-run", path("m.plan"), "--train", f"--data={path('data.npz')}", "--steps=3", f"--lr={RATE}", f"--seed={SEED}", f"--metrics={path('m.jsonl')}")
        run("hpc-run", path("m.plan"), f"--data={path('data.npz')}", f"--seed={SEED}", f"--gradients={path('g.npz')}")
        found = [json.loads(line)["loss"] for line in open(path("m.jsonl"))]
        now = {name: weight.astype(float) for name, weight in given.items()}
        for step in range(3):
            loss, gradients = step_of_attention(now, step + 1)
            if not abs(found[step] - loss) <= 1e-5 * loss:
                sys.exit(f"FAILED: attention, fused {fused}, '{layout}', step {step}: {found[step]}, expected a loss of {loss}")
            if step == 0:
                archive = dict(numpy.load(path("g.npz")))
                if fused:
                    archive.update(zip(("wq", "wk", "wv"), numpy.split(archive["w"], 3, 1)))
                for name, value in gradients.items():
                    if not numpy.abs(archive[name] - value).max() <= 1e-5 * numpy.abs(value).max():
                        sys.exit(f"FAILED: attention, fused {fused}, '{layout}': gradient of {name} is off by {numpy.abs(archive[name] - value).max()}")
            now = {name: value - RATE * gradients[name] for name, value in now.items()}
        cases += 1
print(f"{cases} layouts have the masks of numpy")
