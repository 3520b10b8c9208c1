"""Makes model.onnx, inputs_N.npz and expected_N.npz of this folder: a decoder that spells everything otherwise than the exports of GPT-2.
Needs onnx (and onnxruntime for the check at the end); nothing that uses the files needs this script. The expected values are
computed in float64 by numpy from the float32 weights and rounded once.

Separate q, k and v by MatMul without biases, weights stored [in, out]; the scale is on q; the causal mask is a comparison of two
Ranges, applied by Where with -inf; exact GELU (Erf); LayerNormalization with and without bias; the head is not tied to the embedding.
"""
import math
import os
import zlib

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

LAYERS, WIDTH, HEADS, INNER, VOCABULARY, POSITIONS = 3, 24, 6, 60, 101, 32
HEAD = WIDTH // HEADS
EPSILON = 1e-5
HERE = os.path.dirname(os.path.abspath(__file__))


def weight(name, *shape):
    """Lively weights: attention is far from uniform, no norm's weight is one, no bias zero."""
    r = np.random.default_rng(zlib.crc32(name.encode())).standard_normal(shape)
    if name.startswith("embed"):
        r = 0.6 * r
    elif len(shape) == 2:
        r = 1.2 * r / math.sqrt(shape[0])
    elif name.endswith("gain"):
        r = 1 + 0.2 * r
    else:
        r = 0.1 * r
    return r.astype(np.float32)


WEIGHTS = {"embed.token": weight("embed.token", VOCABULARY, WIDTH), "embed.position": weight("embed.position", POSITIONS, WIDTH)}
for i in range(LAYERS):
    for name, shape in {"norm1.gain": [WIDTH], "norm1.shift": [WIDTH], "q": [WIDTH, WIDTH], "k": [WIDTH, WIDTH], "v": [WIDTH, WIDTH],
                        "o": [WIDTH, WIDTH], "norm2.gain": [WIDTH], "up": [WIDTH, INNER], "down": [INNER, WIDTH]}.items():
        WEIGHTS[f"layers.{i}.{name}"] = weight(f"layers.{i}.{name}", *shape)
WEIGHTS["norm.gain"], WEIGHTS["norm.shift"] = weight("norm.gain", WIDTH), weight("norm.shift", WIDTH)
WEIGHTS["unembed"] = weight("unembed", WIDTH, VOCABULARY)
SCALE, SQRT2 = np.float32(1 / math.sqrt(HEAD)), np.float32(math.sqrt(2))


class Graph:
    """Nodes in order; every value is named after the node that makes it."""

    def __init__(self):
        self.nodes, self.constants = [], {}

    def op(self, name, kind, *inputs, **attributes):
        self.nodes.append(helper.make_node(kind, list(inputs), [name + "_out"], name=name, **attributes))
        return name + "_out"

    def constant(self, name, value, dtype):
        self.constants[name] = np.array(value, dtype)
        return name


def heads(g, x, name, permutation):
    split = g.op(name + "/Reshape", "Reshape", x, g.constant("split_heads", [0, 0, HEADS, HEAD], np.int64))
    return g.op(name + "/Transpose", "Transpose", split, perm=permutation)


def block(g, x, visible, i):
    p, w = f"/layers.{i}", f"layers.{i}."
    h = g.op(p + "/norm1/LayerNormalization", "LayerNormalization", x, w + "norm1.gain", w + "norm1.shift", axis=-1, epsilon=EPSILON)
    q = g.op(p + "/attn/q/MatMul", "MatMul", h, w + "q")
    q = g.op(p + "/attn/q/Mul", "Mul", q, g.constant("scale", SCALE, np.float32))
    k = g.op(p + "/attn/k/MatMul", "MatMul", h, w + "k")
    v = g.op(p + "/attn/v/MatMul", "MatMul", h, w + "v")
    q, k, v = heads(g, q, p + "/attn/q", [0, 2, 1, 3]), heads(g, k, p + "/attn/k", [0, 2, 3, 1]), heads(g, v, p + "/attn/v", [0, 2, 1, 3])
    scores = g.op(p + "/attn/scores/MatMul", "MatMul", q, k)
    scores = g.op(p + "/attn/mask/Where", "Where", visible, scores, g.constant("minus_inf", -np.inf, np.float32))
    scores = g.op(p + "/attn/Softmax", "Softmax", scores, axis=-1)
    mixed = g.op(p + "/attn/mix/MatMul", "MatMul", scores, v)
    mixed = g.op(p + "/attn/merge/Transpose", "Transpose", mixed, perm=[0, 2, 1, 3])
    mixed = g.op(p + "/attn/merge/Reshape", "Reshape", mixed, g.constant("merge_heads", [0, 0, -1], np.int64))
    x = g.op(p + "/attn/Add", "Add", g.op(p + "/attn/o/MatMul", "MatMul", mixed, w + "o"), x)
    h = g.op(p + "/norm2/LayerNormalization", "LayerNormalization", x, w + "norm2.gain", axis=-1, epsilon=EPSILON)
    u = g.op(p + "/mlp/up/MatMul", "MatMul", h, w + "up")
    e = g.op(p + "/mlp/gelu/Div", "Div", u, g.constant("sqrt2", SQRT2, np.float32))
    e = g.op(p + "/mlp/gelu/Add", "Add", g.op(p + "/mlp/gelu/Erf", "Erf", e), g.constant("one", 1, np.float32))
    u = g.op(p + "/mlp/gelu/half/Mul", "Mul", g.op(p + "/mlp/gelu/Mul", "Mul", u, e), g.constant("half", 0.5, np.float32))
    return g.op(p + "/mlp/Add", "Add", g.op(p + "/mlp/down/MatMul", "MatMul", u, w + "down"), x)


def model():
    g = Graph()
    zero, one = g.constant("int_zero", 0, np.int64), g.constant("int_one", 1, np.int64)
    time = g.op("/Gather", "Gather", g.op("/Shape", "Shape", "tokens"), one, axis=0)
    places = g.op("/Range", "Range", zero, time, one)
    rows = g.op("/mask/Unsqueeze", "Unsqueeze", places, g.constant("axis_1", [1], np.int64))
    columns = g.op("/mask/Unsqueeze_1", "Unsqueeze", places, g.constant("axis_0", [0], np.int64))
    visible = g.op("/mask/GreaterOrEqual", "GreaterOrEqual", rows, columns)
    x = g.op("/embed/token/Gather", "Gather", "embed.token", "tokens", axis=0)
    x = g.op("/embed/Add", "Add", x, g.op("/embed/position/Gather", "Gather", "embed.position", places, axis=0))
    for i in range(LAYERS):
        x = block(g, x, visible, i)
    x = g.op("/norm/LayerNormalization", "LayerNormalization", x, "norm.gain", "norm.shift", axis=-1, epsilon=EPSILON)
    g.op("/unembed/MatMul", "MatMul", x, "unembed")
    g.nodes[-1].output[0] = "scores"
    initializers = [numpy_helper.from_array(a, n) for n, a in {**WEIGHTS, **g.constants}.items()]
    graph = helper.make_graph(g.nodes, "decoder", [helper.make_tensor_value_info("tokens", TensorProto.INT64, ["batch", "time"])],
                              [helper.make_tensor_value_info("scores", TensorProto.FLOAT, ["batch", "time", VOCABULARY])], initializers)
    m = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], producer_name="make.py")
    m.ir_version = 8
    onnx.checker.check_model(m)
    return m


def reference(tokens):
    """The same in float64."""
    w = {n: a.astype(np.float64) for n, a in WEIGHTS.items()}
    erf = np.vectorize(math.erf)
    B, T = tokens.shape

    def norm(x, gain, shift=0.0):
        centred = x - x.mean(-1, keepdims=True)
        return centred / np.sqrt((centred ** 2).mean(-1, keepdims=True) + float(np.float32(EPSILON))) * gain + shift

    def split(x):
        return x.reshape(B, T, HEADS, HEAD).transpose(0, 2, 1, 3)

    x = w["embed.token"][tokens] + w["embed.position"][:T]
    for i in range(LAYERS):
        p = f"layers.{i}."
        h = norm(x, w[p + "norm1.gain"], w[p + "norm1.shift"])
        q, k, v = split(h @ w[p + "q"] * float(SCALE)), split(h @ w[p + "k"]), split(h @ w[p + "v"])
        s = np.where(np.tri(T, dtype=bool), q @ k.swapaxes(-1, -2), -np.inf)
        s = np.exp(s - s.max(-1, keepdims=True))
        s = s / s.sum(-1, keepdims=True)
        x = (s @ v).transpose(0, 2, 1, 3).reshape(B, T, WIDTH) @ w[p + "o"] + x
        u = norm(x, w[p + "norm2.gain"]) @ w[p + "up"]
        x = u * (erf(u / float(SQRT2)) + 1) * 0.5 @ w[p + "down"] + x
    return (norm(x, w["norm.gain"], w["norm.shift"]) @ w["unembed"]).astype(np.float32)


def main():
    import onnxruntime
    file = os.path.join(HERE, "model.onnx")
    onnx.save(model(), file)
    session = onnxruntime.InferenceSession(file, providers=["CPUExecutionProvider"])
    for i, (batch, time) in enumerate(((2, 9), (3, 17), (1, 24))):
        tokens = np.random.default_rng(20 + i).integers(0, VOCABULARY, (batch, time)).astype(np.int64)
        truth = reference(tokens)
        got, = session.run(None, {"tokens": tokens})
        print(f"set {i}: max |logit| {np.abs(truth).max():.3f}, onnxruntime is off by {np.abs(got - truth).max() / np.abs(truth).max():.2g} of it")
        np.savez(os.path.join(HERE, f"inputs_{i}.npz"), tokens=tokens)
        np.savez(os.path.join(HERE, f"expected_{i}.npz"), scores=truth)


main()
