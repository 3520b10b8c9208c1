#!/usr/bin/env python3
"""Writes a small BERT as PyTorch's tracing exporter spells it, with lively random weights: bert.py MODEL.onnx INPUTS.npz

Two layers, width 24, 3 heads, inner width 40, vocabulary 53, two types of tokens; a mask of padding becomes (1 - mask) * -10000. Needs onnx and numpy."""
import sys

import numpy as np
from onnx import TensorProto, helper, numpy_helper, save

LAYERS, WIDTH, HEADS, INNER, VOCABULARY, POSITIONS = 2, 24, 3, 40, 53, 16
random = np.random.default_rng(11)
nodes, weights = [], []


def node(op, *inputs, **attributes):
    name = f"{op}_{len(nodes)}"
    nodes.append(helper.make_node(op, list(inputs), [name + "_out"], name=name, **attributes))
    return name + "_out"
def weight(name, *shape, around=0.0, scale=None):
    scale = scale or (1.5 / np.sqrt(shape[0]) if len(shape) > 1 else 0.2)
    weights.append(numpy_helper.from_array((around + scale * random.standard_normal(shape)).astype(np.float32), name))
    return name
def constant(value, dtype=np.int64):
    name = f"constant_{len(weights)}"
    weights.append(numpy_helper.from_array(np.array(value, dtype=dtype), name))
    return name
def linear(x, name, inputs, outputs):
    return node("Add", weight(name + ".bias", outputs), node("MatMul", x, weight(name + ".weight", inputs, outputs)))
def norm(x, name):
    return node("LayerNormalization", x, weight(name + ".weight", WIDTH, around=1.0), weight(name + ".bias", WIDTH), axis=-1, epsilon=1e-12)

words = node("Gather", weight("bert.embeddings.word_embeddings.weight", VOCABULARY, WIDTH, scale=0.7), "input_ids")
types = node("Gather", weight("bert.embeddings.token_type_embeddings.weight", 2, WIDTH, scale=0.7), "token_type_ids")
length = node("Gather", node("Shape", "input_ids"), constant(1), axis=0)
positions = node("Slice", constant([list(range(POSITIONS))]), constant([0]), node("Unsqueeze", length, constant([0])), constant([1]))
places = node("Gather", weight("bert.embeddings.position_embeddings.weight", POSITIONS, WIDTH, scale=0.7), positions)
x = norm(node("Add", node("Add", words, types), places), "bert.embeddings.LayerNorm")
mask = node("Cast", node("Unsqueeze", node("Unsqueeze", "attention_mask", constant([1])), constant([2])), to=TensorProto.FLOAT)
mask = node("Mul", node("Sub", constant(1.0, np.float32), mask), constant(-10000.0, np.float32))
for layer in range(LAYERS):
    base = f"bert.encoder.layer.{layer}."
    def heads(part, permutation):
        apart = node("Reshape", linear(x, base + "attention.self." + part, WIDTH, WIDTH), constant([0, 0, HEADS, WIDTH // HEADS]))
        return node("Transpose", apart, perm=permutation)
    q, k, v = heads("query", [0, 2, 1, 3]), heads("key", [0, 2, 3, 1]), heads("value", [0, 2, 1, 3])
    scores = node("Add", node("Div", node("MatMul", q, k), constant(np.sqrt(WIDTH / HEADS), np.float32)), mask)
    seen = node("Transpose", node("MatMul", node("Softmax", scores, axis=-1), v), perm=[0, 2, 1, 3])
    seen = linear(node("Reshape", seen, constant([0, 0, WIDTH])), base + "attention.output.dense", WIDTH, WIDTH)
    x = norm(node("Add", seen, x), base + "attention.output.LayerNorm")
    inner = linear(x, base + "intermediate.dense", WIDTH, INNER)
    half = node("Mul", inner, node("Add", node("Erf", node("Div", inner, constant(np.sqrt(2), np.float32))), constant(1.0, np.float32)))
    x = norm(node("Add", linear(node("Mul", half, constant(0.5, np.float32)), base + "output.dense", INNER, WIDTH), x), base + "output.LayerNorm")
nodes[-1].output[0] = "last_hidden_state"

dims = ["batch_size", "sequence_length"]
inputs = [helper.make_tensor_value_info(name, TensorProto.INT64, dims) for name in ("input_ids", "attention_mask", "token_type_ids")]
outputs = [helper.make_tensor_value_info("last_hidden_state", TensorProto.FLOAT, [*dims, WIDTH])]
save(helper.make_model(helper.make_graph(nodes, "bert", inputs, outputs, weights), opset_imports=[helper.make_opsetid("", 17)], ir_version=8), sys.argv[1])
padding = np.ones((2, 9), dtype=np.int64)
padding[1, 6:] = 0
np.savez(sys.argv[2], input_ids=random.integers(0, VOCABULARY, (2, 9)), attention_mask=padding, token_type_ids=random.integers(0, 2, (2, 9)))
