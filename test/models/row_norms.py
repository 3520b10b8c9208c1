#!/usr/bin/python3
"""row_norms.py: attention whose queries and keys are normed over all heads, and MLPs with a norm or a softmax between their products, on --tp=2 and 3: equal to
numpy in float64, and a rank computes its share of the products. Needs hpc-opt and hpc-run on the PATH."""
import os
import sys
import tempfile

import numpy

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import onnx_file  # noqa: E402
from model_checks import EPSILON, product_flops, run, run_plan  # noqa: E402

RANDOM = numpy.random.default_rng(5)
BATCH, ROWS, WIDTH, HEADS, INNER = 2, 64, 192, 12, 384  # so large that gathering an activation costs more than a few small all-reduces
NORMS = {
    "RMSNormalization": lambda x, w: x / numpy.sqrt((x * x).mean(-1, keepdims=True) + 1e-5) * w,
    "LayerNormalization": lambda x, w: (x - x.mean(-1, keepdims=True)) / numpy.sqrt(x.var(-1, keepdims=True) + 1e-5) * w,
    "Softmax": lambda x, w: softmax(x) * w,
}


def softmax(x):
    e = numpy.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def draw(*sizes):
    return (RANDOM.standard_normal(sizes) / sizes[0] ** 0.5).astype(numpy.float32)


def norm_nodes(kind, x, y):
    if kind == "Softmax":
        return [onnx_file.node(kind, [x], [y + ".s"], axis=-1), onnx_file.node("Mul", [y + ".s", y + ".w"], [y])]
    return [onnx_file.node(kind, [x, y + ".w"], [y], axis=-1)]


def attention(kind):
    """Nodes, weights and the truth of one layer: y = softmax(norm(x q) norm(x k)^T) (x v) o."""
    norm, size = NORMS[kind], WIDTH // HEADS
    held = {**{name: draw(WIDTH, WIDTH) for name in "qkvo"}, "qn.w": 1 + draw(WIDTH), "kn.w": 1 + draw(WIDTH)}
    nodes = [onnx_file.node("MatMul", ["x", name], [name + "0"]) for name in "qkv"]
    nodes += norm_nodes(kind, "q0", "qn") + norm_nodes(kind, "k0", "kn")
    for name, source, order in (("Q", "qn", [0, 2, 1, 3]), ("K", "kn", [0, 2, 3, 1]), ("V", "v0", [0, 2, 1, 3])):
        nodes += [onnx_file.node("Reshape", [source, "split"], [name + "r"]), onnx_file.node("Transpose", [name + "r"], [name], perm=order)]
    nodes += [onnx_file.node("MatMul", ["Q", "K"], ["scores"]), onnx_file.node("Softmax", ["scores"], ["p"], axis=-1), onnx_file.node("MatMul", ["p", "V"], ["a"]),
              onnx_file.node("Transpose", ["a"], ["at"], perm=[0, 2, 1, 3]), onnx_file.node("Reshape", ["at", "join"], ["ar"]), onnx_file.node("MatMul", ["ar", "o"], ["y"])]
    shapes = [("split", numpy.array([BATCH, ROWS, HEADS, size])), ("join", numpy.array([BATCH, ROWS, WIDTH]))]

    def truth(x, w):
        heads = lambda t: t.reshape(BATCH, ROWS, HEADS, size).transpose(0, 2, 1, 3)
        q, k, v = heads(norm(x @ w["q"], w["qn.w"])), heads(norm(x @ w["k"], w["kn.w"])), heads(x @ w["v"])
        return (softmax(q @ k.transpose(0, 1, 3, 2)) @ v).transpose(0, 2, 1, 3).reshape(BATCH, ROWS, WIDTH) @ w["o"]
    return nodes, held, shapes, truth


def mlp(kind):
    """y = norm(x up) down."""
    held = {"up": draw(WIDTH, INNER), "down": draw(INNER, WIDTH), "n.w": 1 + draw(INNER)}
    nodes = [onnx_file.node("MatMul", ["x", "up"], ["u"]), *norm_nodes(kind, "u", "n"), onnx_file.node("MatMul", ["n", "down"], ["y"])]
    return nodes, held, [], lambda x, w: NORMS[kind](x @ w["up"], w["n.w"]) @ w["down"]


def check(make, kind, folder):
    path = lambda file: os.path.join(folder, file)
    nodes, held, shapes, truth = make(kind)
    x = RANDOM.standard_normal((BATCH, ROWS, WIDTH)).astype(numpy.float32)
    with open(path("m.onnx"), "wb") as file:
        file.write(onnx_file.model(nodes, [("x", "f32", x.shape)], [("y", "f32", x.shape)], [*held.items(), *shapes], opset=23))
    numpy.savez(path("in.npz"), x=x)
    wanted = truth(x.astype(numpy.float64), {name: array.astype(numpy.float64) for name, array in held.items()})
    label, flops = f"{make.__name__} with {kind}", {}
    for tp in (1, 2, 3):
        flops[tp] = product_flops(run("hpc-opt", path("m.onnx"), f"--tp={tp}", f"--verify={path('in.npz')}", "--explain", "-o", path("p.plan")))
        error = numpy.abs(run_plan(path("p.plan"), path("in.npz"))["y"] - wanted).max() / numpy.abs(wanted).max()
        if not error <= 16 * INNER ** 0.5 * EPSILON:
            sys.exit(f"{label}, tp={tp}: off by {error:.2g}")
        if flops[tp] * tp != flops[1]:
            sys.exit(f"{label}, tp={tp}: a rank computes {flops[tp] / flops[1]:.3f} of the products")
    run("hpc-opt", path("m.onnx"), "--train", "--loss=mse", "--tp=2", "--verify", "-o", path("p.plan"))
    print(f"{label}: cut, equal")


with tempfile.TemporaryDirectory() as scratch:
    for make in (attention, mlp):
        for kind in NORMS:
            check(make, kind, scratch)
