#!/usr/bin/python3
"""Decoders and encoders of text, two small layers each, node by node as PyTorch's exporters spell Hugging Face's models.

  families.py NAME FLAGS...                compiles NAME with --verify for each string of flags, runs the plan with poisoned memory, compares with numbers of
                                           Hugging Face's own model on these weights, in float64 (within 3e-6 of the largest), and tells what is sent
  families.py write NAME FILE INPUTS.npz   only writes the model and its inputs

Needs hpc-opt and hpc-run on the PATH and numpy. Weights are made by integer arithmetic, so they are the same everywhere; they have the names of Hugging Face, linear ones are stored transposed, as exporters do.
"""
import collections
import json
import math
import os
import subprocess
import sys
import tempfile

import numpy

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import onnx_file  # noqa: E402

BATCH, LENGTH, VOCABULARY, LAYERS = 4, 9, 53, 2
BOUND = 3e-6
LOWEST = numpy.finfo(numpy.float32).min


def noise(shape, seed):
    """Numbers in [-1, 1) that any numpy makes alike (splitmix64 of the index)."""
    x = numpy.arange(math.prod(shape), dtype=numpy.uint64) + numpy.uint64(seed << 32)
    with numpy.errstate(over="ignore"):
        for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
            x = (x ^ (x >> numpy.uint64(shift))) * numpy.uint64(factor)
    x ^= x >> numpy.uint64(31)
    return ((x >> numpy.uint64(40)).astype(numpy.float64) / 2**23 - 1).reshape(shape)


class Graph:
    """Nodes and weights of one model; every method returns the name of its result."""

    def __init__(self):
        self.nodes, self.weights = [], []

    def op(self, kind, *inputs, outputs=1, **attributes):
        names = [f"{kind}_{len(self.nodes)}.{i}" if outputs > 1 else f"{kind}_{len(self.nodes)}" for i in range(outputs)]
        self.nodes.append(onnx_file.node(kind, inputs, names, **attributes))
        return names if outputs > 1 else names[0]

    def constant(self, value, kind=numpy.int64):
        self.weights.append((f"constant_{len(self.weights)}", numpy.asarray(value, kind)))
        return self.weights[-1][0]

    def scalar(self, value):
        return self.constant(value, numpy.float32)

    def weight(self, name, shape, around=0.0, scale=0.3):
        self.weights.append((name, (around + scale * noise(shape, len(self.weights))).astype(numpy.float32)))
        return name

    def table(self, name, rows, width):
        return self.weight(name + ".weight", (rows, width), scale=0.8)

    def linear(self, x, name, inputs, outputs, bias=True):
        y = self.op("MatMul", x, self.weight(name + ".weight", (inputs, outputs), scale=2.4 / math.sqrt(inputs)))
        return self.op("Add", y, self.weight(name + ".bias", (outputs,))) if bias else y

    def layer_norm(self, x, name, width):
        return self.op("LayerNormalization", x, self.weight(name + ".weight", (width,), 1.0), self.weight(name + ".bias", (width,)), axis=-1, epsilon=1e-5)

    def rms_norm(self, x, name, width, around=1.0):
        """`around` 0: the weight is added to 1, as Gemma's is."""
        square = self.op("ReduceMean", self.op("Pow", x, self.scalar(2)), self.constant([-1]), keepdims=1)
        x = self.op("Mul", x, self.op("Reciprocal", self.op("Sqrt", self.op("Add", square, self.scalar(1e-5)))))
        weight = self.weight(name + ".weight", (width,), around)
        return self.op("Mul", self.op("Add", weight, self.scalar(1)) if around == 0 else weight, x)

    def size(self, value, dim):
        return self.op("Shape", value, start=dim, end=dim + 1)

    def shape(self, *sizes):
        """A shape of "batch", "length" and numbers."""
        parts = [{"batch": self.size("input_ids", 0), "length": self.size("input_ids", 1)}.get(size) or self.constant([size]) for size in sizes]
        return self.op("Concat", *parts, axis=0)

    def reshape(self, x, *sizes):
        return self.op("Reshape", x, self.shape(*sizes))

    def arange(self):
        return self.op("Range", self.constant(0), self.op("Squeeze", self.size("input_ids", 1)), self.constant(1))

    def slice(self, x, start, end, axis=-1, step=1):
        return self.op("Slice", x, self.constant([start]), self.constant([end]), self.constant([axis]), self.constant([step]))

    def heads(self, x, count, dim):
        """[batch, length, count * dim] -> [batch, count, length, dim]"""
        return self.op("Transpose", self.reshape(x, "batch", "length", count, dim), perm=[0, 2, 1, 3])

    def causal(self, window=None):
        """[length, length], true where a query sees a key: those before it, of them the last `window`."""
        keys = self.arange()
        queries = self.op("Reshape", keys, self.constant([-1, 1]))
        sees = self.op("LessOrEqual", keys, queries)
        return sees if window is None else self.op("And", self.op("Greater", keys, self.op("Sub", queries, self.constant(window))), sees)

    def mask(self, condition):
        return self.op("Where", condition, self.scalar(0), self.scalar(LOWEST))

    def rotation(self, dim):
        """cos and sin [1, 1, length, dim] of the positions."""
        frequency = self.constant(1e4 ** (-numpy.arange(0, dim, 2) / dim).reshape(1, -1, 1), numpy.float32)
        places = self.op("Cast", self.op("Unsqueeze", self.arange(), self.constant([0, 1])), to=1)
        angle = self.op("Transpose", self.op("MatMul", frequency, places), perm=[0, 2, 1])
        both = self.op("Unsqueeze", self.op("Concat", angle, angle, axis=-1), self.constant([1]))
        return self.op("Cos", both), self.op("Sin", both)

    def rotate(self, x, rotation, dim):
        """The first half of the pairs against the second."""
        turned = self.op("Concat", self.op("Neg", self.slice(x, dim // 2, 2**63 - 1)), self.slice(x, 0, dim // 2), axis=-1)
        return self.op("Add", self.op("Mul", x, rotation[0]), self.op("Mul", turned, rotation[1]))

    def repeat(self, x, groups, times, dim):
        """Every one of the groups' keys or values for `times` heads."""
        repeated = self.op("Expand", self.op("Unsqueeze", x, self.constant([2])), self.shape("batch", groups, times, "length", dim))
        return self.reshape(repeated, "batch", groups * times, "length", dim)

    def attend(self, q, k, v, mask, dim, cap=None):
        """softmax(scaled scores + mask) v, back to [batch, length, all heads]."""
        scores = self.op("Mul", self.op("MatMul", q, self.op("Transpose", k, perm=[0, 1, 3, 2])), self.scalar(dim**-0.5))
        if cap:
            scores = self.op("Mul", self.op("Tanh", self.op("Div", scores, self.scalar(cap))), self.scalar(cap))
        seen = self.op("MatMul", self.op("Softmax", self.op("Add", scores, mask), axis=-1), v)
        return self.reshape(self.op("Transpose", seen, perm=[0, 2, 1, 3]), "batch", "length", -1)

    def silu(self, x):
        return self.op("Mul", x, self.op("Sigmoid", x))

    def gelu(self, x):
        half = self.op("Mul", x, self.scalar(0.5))
        return self.op("Mul", half, self.op("Add", self.op("Erf", self.op("Mul", x, self.scalar(0.5**0.5))), self.scalar(1)))

    def tanh_gelu(self, x):
        cube = self.op("Mul", self.op("Pow", x, self.scalar(3)), self.scalar(0.044715))
        inner = self.op("Tanh", self.op("Mul", self.op("Add", x, cube), self.scalar((2 / math.pi) ** 0.5)))
        return self.op("Mul", self.op("Mul", x, self.scalar(0.5)), self.op("Add", inner, self.scalar(1)))


def llama(g):
    """RMS norms, rotary positions, SwiGLU; 4 heads in 2 groups, no biases."""
    width, heads, groups, dim, inner = 32, 4, 2, 8, 44
    x = g.op("Gather", g.table("model.embed_tokens", VOCABULARY, width), "input_ids")
    mask, rotation = g.mask(g.causal()), g.rotation(dim)
    for layer in range(LAYERS):
        base = f"model.layers.{layer}."
        h = g.rms_norm(x, base + "input_layernorm", width)
        q, k, v = (g.heads(g.linear(h, f"{base}self_attn.{part}_proj", width, count * dim, False), count, dim)
                   for part, count in (("q", heads), ("k", groups), ("v", groups)))
        q, k = g.rotate(q, rotation, dim), g.rotate(k, rotation, dim)
        k, v = (g.repeat(each, groups, heads // groups, dim) for each in (k, v))
        x = g.op("Add", x, g.linear(g.attend(q, k, v, mask, dim), base + "self_attn.o_proj", width, width, False))
        h = g.rms_norm(x, base + "post_attention_layernorm", width)
        gate, up = (g.linear(h, f"{base}mlp.{part}_proj", width, inner, False) for part in ("gate", "up"))
        x = g.op("Add", x, g.linear(g.op("Mul", g.silu(gate), up), base + "mlp.down_proj", inner, width, False))
    return g.linear(g.rms_norm(x, "model.norm", width), "lm_head", width, VOCABULARY, False)


def neox(g):
    """Attention and feed-forward read the same input; rotary positions on half of each head; one projection of [heads, 3, dim]; 5 heads."""
    width, heads, dim, turned, inner = 40, 5, 8, 4, 60
    x = g.op("Gather", g.table("gpt_neox.embed_in", VOCABULARY, width), "input_ids")
    mask, rotation = g.mask(g.causal()), g.rotation(turned)
    for layer in range(LAYERS):
        base = f"gpt_neox.layers.{layer}."
        h = g.linear(g.layer_norm(x, base + "input_layernorm", width), base + "attention.query_key_value", width, 3 * width)
        h = g.op("Transpose", g.reshape(h, "batch", "length", heads, 3 * dim), perm=[0, 2, 1, 3])
        q, k, v = g.op("Split", h, outputs=3, num_outputs=3, axis=3)
        q, k = (g.op("Concat", g.rotate(g.slice(each, 0, turned), rotation, turned), g.slice(each, turned, 2**63 - 1), axis=-1) for each in (q, k))
        seen = g.linear(g.attend(q, k, v, mask, dim), base + "attention.dense", width, width)
        h = g.linear(g.layer_norm(x, base + "post_attention_layernorm", width), base + "mlp.dense_h_to_4h", width, inner)
        x = g.op("Add", g.op("Add", g.linear(g.gelu(h), base + "mlp.dense_4h_to_h", inner, width), seen), x)
    return g.linear(g.layer_norm(x, "gpt_neox.final_layer_norm", width), "embed_out", width, VOCABULARY, False)


def opt(g):
    """Learned positions that begin at 2 and count what the mask shows, ReLU, a head tied to the embedding; the mask is read flat, as traced exports do."""
    width, heads, dim, inner = 24, 3, 8, 44
    table = g.table("model.decoder.embed_tokens", VOCABULARY, width)
    shown = g.op("CumSum", "attention_mask", g.constant(1))
    places = g.op("Add", g.op("Sub", g.op("Mul", shown, "attention_mask"), g.constant(1)), g.constant(2))
    x = g.op("Add", g.op("Gather", table, "input_ids"), g.op("Gather", g.table("model.decoder.embed_positions", 18, width), places))
    rows = g.op("Range", g.constant(0), g.op("Squeeze", g.size("input_ids", 0)), g.constant(1))
    flat = g.op("Add", g.op("Mul", g.op("Reshape", rows, g.constant([-1, 1])), g.op("Squeeze", g.size("input_ids", 1))), g.arange())
    keys = g.op("Gather", g.op("Reshape", g.op("Cast", "attention_mask", to=9), g.constant([-1])), flat)
    mask = g.mask(g.op("And", g.causal(), g.op("Unsqueeze", keys, g.constant([1, 2]))))
    for layer in range(LAYERS):
        base = f"model.decoder.layers.{layer}."
        h = g.layer_norm(x, base + "self_attn_layer_norm", width)
        q, k, v = (g.heads(g.linear(h, f"{base}self_attn.{part}_proj", width, width), heads, dim) for part in "qkv")
        x = g.op("Add", x, g.linear(g.attend(q, k, v, mask, dim), base + "self_attn.out_proj", width, width))
        h = g.op("Relu", g.linear(g.layer_norm(x, base + "final_layer_norm", width), base + "fc1", width, inner))
        x = g.op("Add", x, g.linear(h, base + "fc2", inner, width))
    return g.op("MatMul", g.layer_norm(x, "model.decoder.final_layer_norm", width), g.op("Transpose", table, perm=[1, 0]))


def bert(g):
    """An encoder: norms after the residuals, types of tokens, a mask of padding that is added."""
    width, heads, dim, inner = 24, 3, 8, 40
    base = "embeddings."
    words = g.op("Gather", g.table(base + "word_embeddings", VOCABULARY, width), "input_ids")
    types = g.op("Gather", g.table(base + "token_type_embeddings", 2, width), g.op("Expand", g.constant([[0]]), g.shape("batch", "length")))
    places = g.op("Gather", g.table(base + "position_embeddings", 16, width), g.op("Unsqueeze", g.arange(), g.constant([0])))
    x = g.layer_norm(g.op("Add", g.op("Add", words, types), places), base + "LayerNorm", width)
    hidden = g.op("Sub", g.scalar(1), g.op("Cast", g.op("Unsqueeze", "attention_mask", g.constant([1, 2])), to=1))
    mask = g.op("Mul", hidden, g.scalar(LOWEST))
    for layer in range(LAYERS):
        base = f"encoder.layer.{layer}."
        q, k, v = (g.heads(g.linear(x, f"{base}attention.self.{part}", width, width), heads, dim) for part in ("query", "key", "value"))
        seen = g.linear(g.attend(q, k, v, mask, dim), base + "attention.output.dense", width, width)
        x = g.layer_norm(g.op("Add", seen, x), base + "attention.output.LayerNorm", width)
        h = g.linear(g.gelu(g.linear(x, base + "intermediate.dense", width, inner)), base + "output.dense", inner, width)
        x = g.layer_norm(g.op("Add", h, x), base + "output.LayerNorm", width)
    return x


def phi3(g):
    """LLaMA with q, k and v in one weight, 4 heads and 2 groups, and the two halves of SwiGLU in another."""
    width, heads, groups, dim, inner = 32, 4, 2, 8, 44
    x = g.op("Gather", g.table("model.embed_tokens", VOCABULARY, width), "input_ids")
    mask, rotation = g.mask(g.causal()), g.rotation(dim)
    for layer in range(LAYERS):
        base = f"model.layers.{layer}."
        h = g.rms_norm(x, base + "input_layernorm", width)
        h = g.linear(h, base + "self_attn.qkv_proj", width, (heads + 2 * groups) * dim, False)
        ends = [0, heads * dim, (heads + groups) * dim, 2**63 - 1]
        q, k, v = (g.heads(g.slice(h, *ends[i:i + 2]), count, dim) for i, count in enumerate((heads, groups, groups)))
        q, k = g.rotate(q, rotation, dim), g.rotate(k, rotation, dim)
        k, v = (g.repeat(each, groups, heads // groups, dim) for each in (k, v))
        x = g.op("Add", x, g.linear(g.attend(q, k, v, mask, dim), base + "self_attn.o_proj", width, width, False))
        h = g.linear(g.rms_norm(x, base + "post_attention_layernorm", width), base + "mlp.gate_up_proj", width, 2 * inner, False)
        gate, up = g.op("Split", h, outputs=2, num_outputs=2, axis=-1)
        x = g.op("Add", x, g.linear(g.op("Mul", up, g.silu(gate)), base + "mlp.down_proj", inner, width, False))
    return g.linear(g.rms_norm(x, "model.norm", width), "lm_head", width, VOCABULARY, False)


def falcon(g):
    """One key and value for all 4 heads, in one weight with the queries; one norm for attention and feed-forward, both added at once; a tied head."""
    width, heads, dim = 32, 4, 8
    table = g.table("transformer.word_embeddings", VOCABULARY, width)
    x = g.op("Gather", table, "input_ids")
    mask, rotation = g.mask(g.causal()), g.rotation(dim)
    for layer in range(LAYERS):
        base = f"transformer.h.{layer}."
        normed = g.layer_norm(x, base + "input_layernorm", width)
        h = g.linear(normed, base + "self_attention.query_key_value", width, (heads + 2) * dim)
        h = g.reshape(h, "batch", "length", heads + 2, dim)
        q, k, v = (g.op("Transpose", part, perm=[0, 2, 1, 3]) for part in (
            g.slice(h, 0, -2, axis=-2), *(g.op("Gather", h, g.constant([place]), axis=2) for place in (-2, -1))))
        q, k = g.rotate(q, rotation, dim), g.rotate(k, rotation, dim)
        seen = g.linear(g.attend(q, k, v, mask, dim), base + "self_attention.dense", width, width)
        h = g.linear(g.gelu(g.linear(normed, base + "mlp.dense_h_to_4h", width, 4 * width)), base + "mlp.dense_4h_to_h", 4 * width, width)
        x = g.op("Add", x, g.op("Add", h, seen))
    return g.op("MatMul", g.layer_norm(x, "transformer.ln_f", width), g.op("Transpose", table, perm=[1, 0]))


def gemma2(g):
    """Norms before and after, whose weights are added to 1; capped scores and logits; every second layer sees a window of 4; a scaled, tied embedding."""
    width, heads, groups, dim, inner = 32, 4, 2, 8, 44
    table = g.table("model.embed_tokens", VOCABULARY, width)
    x = g.op("Mul", g.op("Gather", table, "input_ids"), g.scalar(width**0.5))
    masks, rotation = [g.mask(g.causal(4)), g.mask(g.causal())], g.rotation(dim)
    for layer in range(LAYERS):
        base = f"model.layers.{layer}."
        h = g.rms_norm(x, base + "input_layernorm", width, 0.0)
        q, k, v = (g.heads(g.linear(h, f"{base}self_attn.{part}_proj", width, count * dim, False), count, dim)
                   for part, count in (("q", heads), ("k", groups), ("v", groups)))
        q, k = g.rotate(q, rotation, dim), g.rotate(k, rotation, dim)
        k, v = (g.repeat(each, groups, heads // groups, dim) for each in (k, v))
        seen = g.linear(g.attend(q, k, v, masks[layer % 2], dim, cap=50.0), base + "self_attn.o_proj", width, width, False)
        x = g.op("Add", x, g.rms_norm(seen, base + "post_attention_layernorm", width, 0.0))
        h = g.rms_norm(x, base + "pre_feedforward_layernorm", width, 0.0)
        gate, up = (g.linear(h, f"{base}mlp.{part}_proj", width, inner, False) for part in ("gate", "up"))
        h = g.linear(g.op("Mul", g.tanh_gelu(gate), up), base + "mlp.down_proj", inner, width, False)
        x = g.op("Add", x, g.rms_norm(h, base + "post_feedforward_layernorm", width, 0.0))
    logits = g.op("MatMul", g.rms_norm(x, "model.norm", width, 0.0), g.op("Transpose", table, perm=[1, 0]))
    return g.op("Mul", g.op("Tanh", g.op("Div", logits, g.scalar(30))), g.scalar(30))


def bloom(g):
    """Positions as a bias of the scores, a slope a head (ALiBi), made of the mask; [heads, 3, dim]; batch and heads merged around the products; a tied head."""
    width, heads, dim = 32, 4, 8
    table = g.table("transformer.word_embeddings", VOCABULARY, width)
    x = g.layer_norm(g.op("Gather", table, "input_ids"), "transformer.word_embeddings_layernorm", width)
    slopes = g.constant((2.0 ** (-8 / heads * numpy.arange(1, heads + 1))).reshape(1, heads, 1), numpy.float32)
    places = g.op("Mul", g.op("Sub", g.op("CumSum", "attention_mask", g.constant(-1)), g.constant(1)), "attention_mask")
    alibi = g.op("Mul", slopes, g.op("Cast", g.op("Unsqueeze", places, g.constant([1])), to=1))
    alibi = g.op("Reshape", alibi, g.op("Concat", g.op("Mul", g.size("input_ids", 0), g.constant([heads])), g.constant([1]), g.size("input_ids", 1), axis=0))
    mask = g.mask(g.op("And", g.causal(), g.op("Cast", g.op("Unsqueeze", "attention_mask", g.constant([1, 2])), to=9)))
    for layer in range(LAYERS):
        base = f"transformer.h.{layer}."
        h = g.linear(g.layer_norm(x, base + "input_layernorm", width), base + "self_attention.query_key_value", width, 3 * width)
        h = g.reshape(h, "batch", "length", heads, 3, dim)
        q, k, v = (g.op("Gather", h, g.constant(part), axis=3) for part in range(3))
        q, k, v = (g.op("Reshape", g.op("Transpose", each, perm=perm), g.op("Concat", g.constant([-1]), *shape, axis=0)) for each, perm, shape in (
            (q, [0, 2, 1, 3], (g.size("input_ids", 1), g.constant([dim]))), (k, [0, 2, 3, 1], (g.constant([dim]), g.size("input_ids", 1))),
            (v, [0, 2, 1, 3], (g.size("input_ids", 1), g.constant([dim])))))
        scores = g.op("Add", alibi, g.op("Mul", g.op("MatMul", q, k), g.scalar(dim**-0.5)))
        scores = g.op("Add", g.reshape(scores, "batch", heads, "length", -1), mask)
        seen = g.op("MatMul", g.op("Reshape", g.op("Softmax", scores, axis=-1), g.op("Concat", g.constant([-1]), *[g.size("input_ids", 1)] * 2, axis=0)), v)
        seen = g.op("Transpose", g.reshape(seen, "batch", heads, "length", dim), perm=[0, 2, 1, 3])
        x = g.op("Add", g.linear(g.reshape(seen, "batch", "length", -1), base + "self_attention.dense", width, width), x)
        h = g.linear(g.layer_norm(x, base + "post_attention_layernorm", width), base + "mlp.dense_h_to_4h", width, 4 * width)
        x = g.op("Add", g.linear(g.tanh_gelu(h), base + "mlp.dense_4h_to_h", 4 * width, width), x)
    return g.op("MatMul", g.layer_norm(x, "transformer.ln_f", width), g.op("Transpose", table, perm=[1, 0]))


def gptj(g):
    """Rotary positions by neighbouring pairs on half of each head; attention and feed-forward after one norm, added at once."""
    width, heads, dim, turned = 32, 4, 8, 4
    x = g.op("Gather", g.table("transformer.wte", VOCABULARY, width), "input_ids")
    angles = numpy.arange(16)[:, None] * 1e4 ** (-numpy.arange(0, turned, 2) / turned)
    positions = g.constant(numpy.concatenate([numpy.sin(angles), numpy.cos(angles)], 1), numpy.float32)
    parts = g.op("Split", g.op("Gather", positions, g.op("Unsqueeze", g.arange(), g.constant([0]))), outputs=2, num_outputs=2, axis=-1)
    pairs = [g.op("Unsqueeze", part, g.constant([2, 4])) for part in parts]
    sine, cosine = (g.op("Reshape", g.op("Expand", pair, g.constant([1, 1, 1, 1, 2])), g.constant([1, -1, 1, turned])) for pair in pairs)
    mask = g.mask(g.causal())

    def rotate(x):
        head, rest = g.slice(x, 0, turned), g.slice(x, turned, 2**63 - 1)
        even, odd = (g.slice(head, start, 2**63 - 1, step=2) for start in (0, 1))
        pair = g.op("Concat", *(g.op("Unsqueeze", each, g.constant([-1])) for each in (g.op("Neg", odd), even)), axis=-1)
        swapped = g.reshape(pair, "batch", "length", heads, turned)
        head = g.op("Add", g.op("Mul", head, cosine), g.op("Mul", swapped, sine))
        return g.op("Transpose", g.op("Concat", head, rest, axis=-1), perm=[0, 2, 1, 3])

    for layer in range(LAYERS):
        base = f"transformer.h.{layer}."
        normed = g.layer_norm(x, base + "ln_1", width)
        q, k, v = (g.linear(normed, f"{base}attn.{part}_proj", width, width, False) for part in "qkv")
        q, k = (rotate(g.reshape(each, "batch", "length", heads, dim)) for each in (q, k))
        seen = g.linear(g.attend(q, k, g.heads(v, heads, dim), mask, dim), base + "attn.out_proj", width, width, False)
        h = g.linear(g.tanh_gelu(g.linear(normed, base + "mlp.fc_in", width, 4 * width)), base + "mlp.fc_out", 4 * width, width)
        x = g.op("Add", g.op("Add", seen, h), x)
    return g.linear(g.layer_norm(x, "transformer.ln_f", width), "lm_head", width, VOCABULARY)


FAMILIES = {each.__name__: each for each in (llama, neox, opt, bert, phi3, falcon, gemma2, bloom, gptj)}
MASKED = {"opt", "bert", "bloom"}
# Of Hugging Face transformers 4.57 (PyTorch 2.15), all of it in float64: every so many-th element of the flat results that count, and the largest absolute
# value of all.
GOLDEN = {
    "llama": (269, 5.02087088, [-0.627441907, 0.170623546, 0.698301474, 0.976229104, -1.51043642, 0.796355018, -5.02087088, 1.33623679]),
    "neox": (269, 4.60473085, [-0.458898289, -1.43734531, 1.09169762, 0.555409932, -1.53443566, -0.631339051, 0.889917606, 0.417381966]),
    "opt": (186, 7.79243035, [0.00279371996, -5.15794007, -1.17896057, -1.71041119, 0.65292686, -0.21900832, 0.403399992, -3.0656781]),
    "bert": (82, 3.03943331, [-0.0535046774, 0.0267636782, 1.0888352, -2.16031053, -1.43786155, -0.212035371, -0.784807764, 1.54170451]),
    "phi3": (269, 5.05107815, [-0.265898365, -1.12565491, -1.42451568, 1.63499168, -1.12025281, 0.169797906, 1.09461784, 2.38972395]),
    "falcon": (269, 9.67328061, [1.28649196, -2.84131711, 2.39975866, -0.150818137, 0.157306278, -5.24643427, 3.45326636, 0.678840387]),
    "gemma2": (269, 13.2987708, [-8.09741781, -0.533953028, 1.91338602, 1.37247224, -2.27146618, -2.53497326, 1.32291874, -0.612835076]),
    "bloom": (186, 11.3121803, [-3.02766291, 0.697003624, 6.67209161, -4.06439946, -2.22653922, -0.260721693, 7.15366586, -0.991077734]),
    "gptj": (269, 5.21707275, [0.95144586, 1.38048994, 2.48235961, -0.316558559, 2.21663104, -0.115239602, 0.138365345, -0.158585227]),
}


def inputs_of(name):
    """Token ids, and for some a mask with padding at the end."""
    ids = ((noise((BATCH, LENGTH), 999) + 1) / 2 * VOCABULARY).astype(numpy.int64)
    inputs = {"input_ids": ids}
    if name in MASKED:
        inputs["attention_mask"] = (numpy.arange(LENGTH) < numpy.array([[LENGTH], [LENGTH - 3], [LENGTH], [1]])).astype(numpy.int64)
    return inputs


def build(name):
    graph = Graph()
    result = FAMILIES[name](graph)
    return graph, result


def write(name, model, inputs):
    graph, result = build(name)
    arrays = inputs_of(name)
    width = dict(bert=24).get(name, VOCABULARY)
    with open(model, "wb") as out:
        out.write(onnx_file.model(graph.nodes, [(each, "i64", ["batch", "length"]) for each in arrays], [(result, "f32", ["batch", "length", width])],
                                  graph.weights, opset=18))
    numpy.savez(inputs, **arrays)


def counted(name, output):
    """Results that count, flat: a query that is padding may see anything."""
    inputs = inputs_of(name)
    return output[inputs["attention_mask"] == 1].ravel() if name in MASKED else output.ravel()


def error_of(name, outputs):
    """The largest difference from the golden numbers, by the largest number of all; NaN for other results."""
    (output,) = numpy.load(outputs).values()
    step, largest, expected = GOLDEN[name]
    found = counted(name, output)[::step]
    return numpy.abs(found - numpy.array(expected)).max() / largest if found.shape == (len(expected),) else numpy.nan


def run(name, layouts):
    """Prints a line a layout; whether all are equal."""
    failed = 0
    with tempfile.TemporaryDirectory() as scratch:
        model, inputs, plan, outputs = (os.path.join(scratch, file) for file in ("model.onnx", "in.npz", "p.plan", "out.npz"))
        write(name, model, inputs)
        for flags in layouts:
            told = subprocess.run(["hpc-opt", model, f"--dim=batch={BATCH}", f"--dim=length={LENGTH}", f"--verify={inputs}", "--explain=json", "-o", plan,
                                   *flags.split()], check=True, stdout=subprocess.PIPE, text=True).stdout
            subprocess.run(["hpc-run", plan, "--poison", f"--input={inputs}", f"--output={outputs}"], check=True, stdout=subprocess.DEVNULL)
            facts, _ = json.JSONDecoder().raw_decode(told)
            sent = collections.Counter(each["kind"] for each in facts["collectives"])
            error = error_of(name, outputs)
            good = error <= BOUND  # false for NaN
            failed += not good
            weights = max(stage["memory_per_rank"]["weight"] for stage in facts["stages"])
            print(f"{'equal' if good else 'failed'} {name} [{flags}]: off by {error:.2g}; {weights} bytes of weights; {len(facts['transfers'])} transfer; "
                  + (", ".join(f"{count} {kind}" for kind, count in sorted(sent.items())) or "nothing sent"))
    return not failed


if __name__ == "__main__":
    if sys.argv[1] == "write":
        write(*sys.argv[2:])
    else:
        sys.exit(not run(sys.argv[1], sys.argv[2:]))
