"""Makes model.onnx, inputs_N.npz and expected_N.npz of this folder: a vision transformer.
Needs onnx (and onnxruntime for the check at the end); nothing that uses the files needs this script. The expected values are
computed in float64 by numpy from the float32 weights and rounded once.

The patch embedding is a convolution whose stride is its kernel, on an image that leaves a rest; a class token is put before the patches; q, k
and v are one product, split; the head reads the class token alone. Three layers, width 20, 5 heads of 4, inner width 36.
"""
import math
import os
import zlib

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

LAYERS, WIDTH, HEADS, INNER, CLASSES, PATCH, IMAGE = 3, 20, 5, 36, 13, 4, (3, 14, 17)
HEAD, PATCHES, EPSILON = WIDTH // HEADS, (IMAGE[1] // PATCH) * (IMAGE[2] // PATCH), 1e-6
HERE = os.path.dirname(os.path.abspath(__file__))


def weight(name, *shape):
    r = np.random.default_rng(zlib.crc32(name.encode())).standard_normal(shape)
    if name.endswith("gain"):
        r = 1 + 0.2 * r
    elif name.endswith(("bias", "shift")):
        r = 0.1 * r
    elif name == "patch.weight":
        r = r / math.sqrt(math.prod(shape[1:]))
    elif len(shape) == 2:
        r = 1.3 * r / math.sqrt(shape[0])
    return r.astype(np.float32)


SHAPES = {"patch.weight": [WIDTH, IMAGE[0], PATCH, PATCH], "patch.bias": [WIDTH], "class": [1, 1, WIDTH], "position": [1, PATCHES + 1, WIDTH],
          "norm.gain": [WIDTH], "norm.shift": [WIDTH], "head.weight": [WIDTH, CLASSES], "head.bias": [CLASSES]}
for i in range(LAYERS):
    SHAPES.update({f"layers.{i}.{name}": shape for name, shape in {
        "norm1.gain": [WIDTH], "norm1.shift": [WIDTH], "qkv.weight": [WIDTH, 3 * WIDTH], "qkv.bias": [3 * WIDTH], "out.weight": [WIDTH, WIDTH],
        "out.bias": [WIDTH], "norm2.gain": [WIDTH], "norm2.shift": [WIDTH], "up.weight": [WIDTH, INNER], "up.bias": [INNER],
        "down.weight": [INNER, WIDTH], "down.bias": [WIDTH]}.items()})
WEIGHTS = {name: weight(name, *shape) for name, shape in SHAPES.items()}


class Graph:
    def __init__(self):
        self.nodes, self.constants = [], {}

    def op(self, name, kind, *inputs, outputs=1, **attributes):
        made = [name + "_out" + (str(i) if outputs > 1 else "") for i in range(outputs)]
        self.nodes.append(helper.make_node(kind, list(inputs), made, name=name, **attributes))
        return made[0] if outputs == 1 else made

    def constant(self, name, value, dtype=np.int64):
        self.constants[name] = np.array(value, dtype)
        return name

    def linear(self, name, x, w):
        return self.op(name + "/Add", "Add", self.op(name + "/MatMul", "MatMul", x, w + ".weight"), w + ".bias")

    def norm(self, name, x, w):
        return self.op(name, "LayerNormalization", x, w + ".gain", w + ".shift", axis=-1, epsilon=EPSILON)


def block(g, x, i):
    p, w = f"/layers.{i}", f"layers.{i}."
    h = g.linear(p + "/qkv", g.norm(p + "/norm1", x, w + "norm1"), w + "qkv")
    split = g.op(p + "/Reshape", "Reshape", h, g.constant("split_heads", [0, 0, 3, HEADS, HEAD]))
    q, k, v = g.op(p + "/Split", "Split", g.op(p + "/Transpose", "Transpose", split, perm=[2, 0, 3, 1, 4]), outputs=3, axis=0)
    q, k, v = (g.op(f"{p}/{n}/Squeeze", "Squeeze", t, g.constant("axis_0", [0])) for n, t in zip("qkv", (q, k, v)))
    scores = g.op(p + "/scores/MatMul", "MatMul", q, g.op(p + "/k/Transpose", "Transpose", k, perm=[0, 1, 3, 2]))
    scores = g.op(p + "/scores/Mul", "Mul", scores, g.constant("scale", HEAD ** -0.5, np.float32))
    mixed = g.op(p + "/mix/MatMul", "MatMul", g.op(p + "/Softmax", "Softmax", scores, axis=-1), v)
    mixed = g.op(p + "/merge/Transpose", "Transpose", mixed, perm=[0, 2, 1, 3])
    mixed = g.op(p + "/merge/Reshape", "Reshape", mixed, g.constant("merge_heads", [0, 0, -1]))
    x = g.op(p + "/Add", "Add", g.linear(p + "/out", mixed, w + "out"), x)
    u = g.linear(p + "/up", g.norm(p + "/norm2", x, w + "norm2"), w + "up")
    e = g.op(p + "/gelu/Erf", "Erf", g.op(p + "/gelu/Div", "Div", u, g.constant("sqrt2", math.sqrt(2), np.float32)))
    e = g.op(p + "/gelu/Mul", "Mul", u, g.op(p + "/gelu/Add", "Add", e, g.constant("one", 1, np.float32)))
    u = g.op(p + "/gelu/half/Mul", "Mul", e, g.constant("half", 0.5, np.float32))
    return g.op(p + "/mlp/Add", "Add", g.linear(p + "/down", u, w + "down"), x)


def model():
    g = Graph()
    x = g.op("/patch/Conv", "Conv", "image", "patch.weight", "patch.bias", kernel_shape=[PATCH] * 2, strides=[PATCH] * 2)
    x = g.op("/patch/Reshape", "Reshape", x, g.constant("flat", [0, WIDTH, PATCHES]))
    x = g.op("/patch/Transpose", "Transpose", x, perm=[0, 2, 1])
    batch = g.op("/Gather", "Gather", g.op("/Shape", "Shape", "image"), g.constant("first", [0]), axis=0)
    size = g.op("/Concat", "Concat", batch, g.constant("minus_one", [-1]), g.constant("minus_one_too", [-1]), axis=0)
    ones = g.op("/ConstantOfShape", "ConstantOfShape", g.constant("rank", [3]), value=helper.make_tensor("v", TensorProto.INT64, [1], [1]))
    isOpen = g.op("/Equal", "Equal", size, g.constant("minus_ones", [-1, -1, -1]))
    token = g.op("/Expand", "Expand", "class", g.op("/Where", "Where", isOpen, ones, size))
    x = g.op("/Add", "Add", g.op("/tokens/Concat", "Concat", token, x, axis=1), "position")
    for i in range(LAYERS):
        x = block(g, x, i)
    x = g.norm("/norm", x, "norm")
    x = g.op("/first/Gather", "Gather", x, g.constant("zero", 0), axis=1)
    g.nodes.append(helper.make_node("Gemm", [x, "head.weight", "head.bias"], ["scores"], name="/head/Gemm"))
    initializers = [numpy_helper.from_array(a, n) for n, a in {**WEIGHTS, **g.constants}.items()]
    graph = helper.make_graph(g.nodes, "vit", [helper.make_tensor_value_info("image", TensorProto.FLOAT, ["batch", *IMAGE])],
                              [helper.make_tensor_value_info("scores", TensorProto.FLOAT, ["batch", CLASSES])], initializers)
    m = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], producer_name="make.py")
    m.ir_version = 8
    onnx.checker.check_model(m)
    return m


def reference(image):
    """The same in float64."""
    w = {n: a.astype(np.float64) for n, a in WEIGHTS.items()}
    erf, B = np.vectorize(math.erf), len(image)

    def norm(x, p):
        centred = x - x.mean(-1, keepdims=True)
        return centred / np.sqrt((centred ** 2).mean(-1, keepdims=True) + float(np.float32(EPSILON))) * w[p + ".gain"] + w[p + ".shift"]

    def linear(x, p):
        return x @ w[p + ".weight"] + w[p + ".bias"]

    rows, columns = IMAGE[1] // PATCH, IMAGE[2] // PATCH
    x = image[:, :, :rows * PATCH, :columns * PATCH].astype(np.float64).reshape(B, IMAGE[0], rows, PATCH, columns, PATCH)
    x = np.einsum("bcrikj,mcij->brkm", x, w["patch.weight"]).reshape(B, PATCHES, WIDTH) + w["patch.bias"]
    x = np.concatenate([np.broadcast_to(w["class"], (B, 1, WIDTH)), x], 1) + w["position"]
    for i in range(LAYERS):
        p = f"layers.{i}."
        q, k, v = linear(norm(x, p + "norm1"), p + "qkv").reshape(B, -1, 3, HEADS, HEAD).transpose(2, 0, 3, 1, 4)
        s = q @ k.swapaxes(-1, -2) * float(np.float32(HEAD ** -0.5))
        s = np.exp(s - s.max(-1, keepdims=True))
        mixed = (s / s.sum(-1, keepdims=True) @ v).transpose(0, 2, 1, 3).reshape(B, -1, WIDTH)
        x = linear(mixed, p + "out") + x
        u = linear(norm(x, p + "norm2"), p + "up")
        x = linear(u * (erf(u / float(np.float32(math.sqrt(2)))) + 1) * 0.5, p + "down") + x
    return linear(norm(x, "norm")[:, 0], "head").astype(np.float32)


def main():
    import onnxruntime
    file = os.path.join(HERE, "model.onnx")
    onnx.save(model(), file)
    session = onnxruntime.InferenceSession(file, providers=["CPUExecutionProvider"])
    for i, batch in enumerate((4, 6)):
        image = np.random.default_rng(60 + i).standard_normal((batch, *IMAGE)).astype(np.float32)
        truth = reference(image)
        got, = session.run(None, {"image": image})
        print(f"set {i}: max |score| {np.abs(truth).max():.3f}, onnxruntime is off by {np.abs(got - truth).max() / np.abs(truth).max():.2g} of it")
        np.savez(os.path.join(HERE, f"inputs_{i}.npz"), image=image)
        np.savez(os.path.join(HERE, f"expected_{i}.npz"), scores=truth)


main()
