#!/usr/bin/python3
"""A two-layer network whose weights are f16, bf16, or one of each with one in f32, trained at a rate of which 16 bits hold next to nothing: it moves as the f32 gradient says, worked out here by
numpy in float64 (one at the start, as 16 steps of 1e-6 change no digit of it). What is saved is f32, and goes on with the bits of a run at one stretch, on another layout too.

  test/models/half_training.py [--bin=build/bin]
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile

import numpy

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "test"))
import onnx_file  # noqa: E402
from onnx_file import node  # noqa: E402

STEPS, RATE = 16, 1e-6
LAYOUTS = ["", "--tp=2", "--dp=2 --micro-batches=2 --zero=2", "--pp=2 --micro-batches=2", "--dp=2 --zero=3"]
parser = argparse.ArgumentParser()
parser.add_argument("--bin", default=os.path.join(ROOT, "build", "bin"))
options = parser.parse_args()
folder = tempfile.TemporaryDirectory(prefix="hpc-half-")


def path(name):
    return os.path.join(folder.name, name)


def run(tool, *arguments):
    done = subprocess.run([os.path.join(options.bin, tool), *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert done.returncode == 0, f"{tool} {' '.join(arguments)}\n{done.stdout[-2000:]}"
    return done.stdout


def read_tensors(file):
    data = open(file, "rb").read()
    size = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + size])
    header.pop("__metadata__")
    assert all(entry["dtype"] == "F32" for entry in header.values()), header
    return {name: numpy.frombuffer(data[8 + size + entry["data_offsets"][0] : 8 + size + entry["data_offsets"][1]], numpy.float32).reshape(entry["shape"]) for name, entry in header.items()}


def narrow(array, kind):
    """The array as the file holds it, and as f32."""
    if kind == "bf16":
        bits = (numpy.ascontiguousarray(array, numpy.float32).view(numpy.uint32) >> 16).astype(numpy.uint16)
        return bits.view("V2"), (bits.astype(numpy.uint32) << 16).view(numpy.float32)
    held = array.astype({"f16": numpy.float16, "f32": numpy.float32}[kind])
    return held, held.astype(numpy.float32)


def cast(source, target, kind):
    return node("Cast", [source], [target], to=onnx_file.ELEMENT_TYPES[kind][0])


def check(kinds):
    random = numpy.random.default_rng(10)
    shapes = {"first.weight": (20, 48), "first.bias": (48,), "second.weight": (48, 7), "second.bias": (7,)}
    file, weights = {}, {}
    for (name, shape), kind in zip(shapes.items(), kinds):
        file[name], weights[name] = narrow(random.standard_normal(shape) / 4, kind)
    nodes = [cast("x", "x1", kinds[0]), node("MatMul", ["x1", "first.weight"], ["p"]), cast("p", "p1", kinds[1]), node("Add", ["p1", "first.bias"], ["h"]), node("Tanh", ["h"], ["t"]),
             cast("t", "t1", kinds[2]), node("MatMul", ["t1", "second.weight"], ["q"]), cast("q", "q1", kinds[3]), node("Add", ["q1", "second.bias"], ["y"])]
    with open(path("m.onnx"), "wb") as model:
        model.write(onnx_file.model(nodes, [("x", "f32", ["batch", 20])], [("y", kinds[3], ["batch", 7])], [(name, array) for name, array in file.items()]))
    x, labels = random.standard_normal((1, 64, 20)).astype(numpy.float32), random.integers(0, 7, (1, 64))
    numpy.savez(path("d.npz"), x=x, labels=labels)
    # 1. The gradient of the mean cross entropy, by hand.
    w = {name: value.astype(float) for name, value in weights.items()}
    t = numpy.tanh(x[0].astype(float) @ w["first.weight"] + w["first.bias"])
    y = t @ w["second.weight"] + w["second.bias"]
    p = numpy.exp(y - y.max(1, keepdims=True))
    dy = (p / p.sum(1, keepdims=True) - numpy.eye(7)[labels[0]]) / 64
    dh = dy @ w["second.weight"].T * (1 - t**2)
    gradients = {"first.weight": x[0].T.astype(float) @ dh, "first.bias": dh.sum(0), "second.weight": t.T @ dy, "second.bias": dy.sum(0)}
    # 2. How far each weight has moved: 2^-8 a rounding of bf16, of which five lie on the way; f32 holds a step of a weight to 2^-24 of it.
    first = None
    for layout in LAYOUTS:
        said = run("hpc-opt", path("m.onnx"), "--train", "--loss=classification", "--optimizer=sgd", "--dim", "batch=64", *layout.split(), f"--kernel-cache={path('kernels')}", "-o", path("m.plan"))
        assert "held, updated and saved as f32" in said, said
        train = ["hpc-run", path("m.plan"), "--train", f"--data={path('d.npz')}", f"--lr={RATE}"]
        run(*train, f"--steps={STEPS}", f"--save={path('all.safetensors')}")
        saved = read_tensors(path("all.safetensors"))
        for name, gradient in gradients.items():
            moved, wanted = saved[name].astype(float) - w[name], -RATE * STEPS * gradient
            off, of = numpy.linalg.norm(moved - wanted), numpy.linalg.norm(wanted) * 0.03 + STEPS * 2.0**-25 * numpy.linalg.norm(w[name])
            assert off <= of, f"{layout}: {name} moved by {numpy.linalg.norm(moved):.3g}, which is off by {off:.3g}, more than {of:.3g}"
        run(*train, "--steps=7", f"--save={path('part.safetensors')}")
        run(*train, f"--steps={STEPS}", f"--load={path('part.safetensors')}", f"--save={path('rest.safetensors')}")
        assert open(path("all.safetensors"), "rb").read() == open(path("rest.safetensors"), "rb").read(), f"{layout}: a run in two parts has other bits"


failed = 0
for kinds in (["f16"] * 4, ["bf16"] * 4, ["f16", "f32", "bf16", "f32"]):
    try:
        check(kinds)
        print("moves as f32:", ", ".join(kinds))
    except AssertionError as error:
        failed += 1
        print(f"FAIL: {', '.join(kinds)}: {error}")
sys.exit(failed > 0)
