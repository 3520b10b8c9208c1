#!/usr/bin/env python3
"""Writes the graph of a GPT or Llama of any shape as ONNX without weights, for plans that are only looked at or simulated. Needs the package onnx alone.

  models/transformer.py FILE.onnx --layers=96 --width=12288 --heads=96 [--vocabulary=51200 ...]
  models/transformer.py FILE.onnx --family=llama --layers=80 --width=8192 --heads=64 --groups=8 --inner=28672

Tensors have the names of Hugging Face's models. --dtype=bfloat16 writes a model of that type: hpc-opt --train keeps master weights and states of f32 beside it, as Megatron-LM does,
and activations have 16 bits. --scores writes attention as products with a softmax in between, over one more dim of size 1: hpc-opt then keeps the matrix of scores in memory, as Megatron-LM did until 2022.
"""
import argparse

import onnx
from onnx import TensorProto, helper

TYPES = {"float": TensorProto.FLOAT, "float16": TensorProto.FLOAT16, "bfloat16": TensorProto.BFLOAT16}


class Graph:
    """Nodes and tensors in the order in which they are made; a value is its name."""

    def __init__(self, dtype):
        self.dtype, self.nodes, self.tensors, self.offset = TYPES[dtype], [], [], 0

    def weight(self, name, *shape):
        """A place in a file that is not there."""
        tensor = TensorProto(name=name, data_type=self.dtype, dims=shape, data_location=TensorProto.EXTERNAL)
        length = 4 if self.dtype == TensorProto.FLOAT else 2
        for size in shape:
            length *= size
        for key, value in (("location", "model.onnx.data"), ("offset", self.offset), ("length", length)):
            tensor.external_data.add(key=key, value=str(value))
        self.offset += (length + 4095) // 4096 * 4096
        self.tensors.append(tensor)
        return name

    def constant(self, values, dtype=TensorProto.INT64, shape=None):
        name = f"constant_{len(self.tensors)}"
        shape = [len(values)] if shape is None else shape
        self.tensors.append(helper.make_tensor(name, dtype, shape, values))
        return name

    def number(self, value, dtype=None):
        return self.constant([value], dtype or self.dtype, [])

    def op(self, kind, *inputs, outputs=1, name=None, **attributes):
        name = name or f"node_{len(self.nodes)}"
        results = [f"{name}:{i}" for i in range(outputs)]
        self.nodes.append(helper.make_node(kind, list(inputs), results, name=name, **attributes))
        return results[0] if outputs == 1 else results


class Builder(Graph):
    def __init__(self, shape):
        super().__init__(shape.dtype)
        self.shape, self.depth = shape, shape.width // shape.heads

    def linear(self, x, name, inputs, outputs):
        y = self.op("MatMul", x, self.weight(f"{name}.weight", inputs, outputs), name=name)
        return self.op("Add", y, self.weight(f"{name}.bias", outputs)) if self.shape.biases else y

    def norm(self, x, name):
        weight = self.weight(f"{name}.weight", self.shape.width)
        if self.shape.norm == "rms":
            return self.op("RMSNormalization", x, weight, axis=-1, epsilon=1e-5, name=name)
        bias = [self.weight(f"{name}.bias", self.shape.width)] if self.shape.norm == "layer" else []
        return self.op("LayerNormalization", x, weight, *bias, axis=-1, epsilon=1e-5, name=name)

    def dropout(self, x):
        if not self.shape.dropout:
            return x
        return self.op("Dropout", x, self.number(self.shape.dropout, TensorProto.FLOAT), self.constant([True], TensorProto.BOOL, []))

    def heads(self, x, count, dims):
        """[batch, sequence, count * depth] as [batch, count, (1,) sequence, depth]."""
        split = self.op("Reshape", x, self.constant([0, 0, count, self.depth]))
        moved = self.op("Transpose", split, perm=[0, 2, 1, 3])
        return self.op("Unsqueeze", moved, self.constant([2])) if dims == 5 else moved

    def scores(self, query, key, value):
        """softmax(query key^T, scaled and masked) value, its scores in memory."""
        query, key, value = (self.heads(x, self.shape.heads, 5) for x in (query, key, value))
        product = self.op("MatMul", self.op("Mul", query, self.number(self.depth**-0.5)), self.op("Transpose", key, perm=[0, 1, 2, 4, 3]))
        masked = self.op("Where", self.mask, product, self.number(-10000.0))
        rows = self.op("Softmax", self.op("Cast", masked, to=TensorProto.FLOAT), axis=-1)
        rows = self.dropout(self.op("Cast", rows, to=self.dtype))
        joined = self.op("Transpose", self.op("Squeeze", self.op("MatMul", rows, value), self.constant([2])), perm=[0, 2, 1, 3])
        return self.op("Reshape", joined, self.constant([0, 0, self.shape.width]))

    def attention(self, x, name):
        shape, inner = self.shape, self.shape.groups * self.depth
        if shape.groups == shape.heads and not shape.rotary:
            columns = self.linear(x, f"{name}.c_attn", shape.width, 3 * shape.width)
            query, key, value = self.op("Split", columns, axis=-1, num_outputs=3, outputs=3)
        else:
            query = self.linear(x, f"{name}.q_proj", shape.width, shape.width)
            key, value = (self.linear(x, f"{name}.{part}_proj", shape.width, inner) for part in "kv")
        if shape.rotary:
            query, key = (self.op("RotaryEmbedding", part, self.cosines, self.sines, num_heads=count) for part, count in ((query, shape.heads), (key, shape.groups)))
        if shape.scores:
            joined = self.scores(query, key, value)
        else:
            joined = self.op("Attention", query, key, value, q_num_heads=shape.heads, kv_num_heads=shape.groups, is_causal=1, name=f"{name}.attention")
        return self.linear(joined, f"{name}.c_proj", shape.width, shape.width)

    def mlp(self, x, name):
        shape = self.shape
        y = self.linear(x, f"{name}.c_fc", shape.width, shape.inner)
        if shape.activation == "swiglu":
            gate = self.linear(x, f"{name}.gate", shape.width, shape.inner)
            y = self.op("Mul", self.op("Mul", gate, self.op("Sigmoid", gate)), y)
        elif shape.activation == "relu2":
            y = self.op("Relu", y)
            y = self.op("Mul", y, y)
        else:
            y = self.op("Gelu", y, approximate="tanh")
        return self.linear(y, f"{name}.c_proj", shape.inner, shape.width)

    def prepare(self, ids):
        """What all layers share: positions, angles, the mask."""
        length = self.op("Shape", ids, start=1, end=2)
        last = self.op("Squeeze", length)
        zero, one = self.number(0, TensorProto.INT64), self.number(1, TensorProto.INT64)
        self.positions = self.op("Range", zero, last, one)
        if self.shape.rotary:
            half = self.depth // 2
            frequencies = [10000.0 ** (-i / half) for i in range(half)]
            angles = self.op("Mul", self.op("Unsqueeze", self.op("Cast", self.positions, to=TensorProto.FLOAT), self.constant([1])), self.constant(frequencies, TensorProto.FLOAT))
            size = self.op("Concat", self.op("Shape", ids), self.constant([half]), axis=0)
            self.cosines, self.sines = (self.op("Expand", self.op("Cast", self.op(kind, angles), to=self.dtype), size) for kind in ("Cos", "Sin"))
        if self.shape.scores:
            rows = self.op("Unsqueeze", self.positions, self.constant([1]))
            self.mask = self.op("GreaterOrEqual", rows, self.op("Unsqueeze", self.positions, self.constant([0])))

    def build(self):
        shape, ids = self.shape, "input_ids"
        self.prepare(ids)
        table = self.weight("wte.weight", shape.vocabulary, shape.width)
        x = self.op("Gather", table, ids, axis=0)
        if not shape.rotary:
            x = self.op("Add", x, self.op("Gather", self.weight("wpe.weight", shape.positions, shape.width), self.positions, axis=0))
        x = self.dropout(x)
        for layer in range(shape.layers):
            name = f"h.{layer}"
            x = self.op("Add", x, self.dropout(self.attention(self.norm(x, f"{name}.ln_1"), f"{name}.attn")))
            x = self.op("Add", x, self.dropout(self.mlp(self.norm(x, f"{name}.ln_2"), f"{name}.mlp")))
        x = self.norm(x, "ln_f")
        head = self.op("Transpose", table, perm=[1, 0]) if shape.tied else self.weight("lm_head.weight", shape.width, shape.vocabulary)
        logits = self.op("MatMul", x, head, name="lm_head")
        self.nodes[-1].output[0] = "logits"
        rows = ["batch_size", "sequence_length"]
        graph = helper.make_graph(self.nodes, "transformer", [helper.make_tensor_value_info(ids, TensorProto.INT64, rows)],
                                  [helper.make_tensor_value_info("logits", self.dtype, [*rows, shape.vocabulary])], self.tensors)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 23)], ir_version=11)


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file")
    parser.add_argument("--family", choices=["gpt", "llama"], default="gpt", help="gpt: learned positions, layer norms, GELU, biases, tied head; llama: rotary positions, RMS norms, SwiGLU")
    for name in ("layers", "width", "heads"):
        parser.add_argument(f"--{name}", type=int, required=True)
    parser.add_argument("--groups", type=int, help="heads of keys and values (default: as many as heads)")
    parser.add_argument("--inner", type=int, help="width inside of an MLP (default: 4 * width)")
    parser.add_argument("--vocabulary", type=int, default=51200)
    parser.add_argument("--positions", type=int, default=2048, help="rows of the table of positions")
    parser.add_argument("--activation", choices=["gelu", "swiglu", "relu2"])
    parser.add_argument("--norm", choices=["layer", "layer-without-bias", "rms"])
    parser.add_argument("--biases", action=argparse.BooleanOptionalAction)
    parser.add_argument("--rotary", action=argparse.BooleanOptionalAction)
    parser.add_argument("--tied", action=argparse.BooleanOptionalAction)
    parser.add_argument("--dropout", type=float, default=0)
    parser.add_argument("--scores", action="store_true", help="attention keeps its scores in memory; only with as many groups as heads")
    parser.add_argument("--dtype", choices=list(TYPES), default="float")
    return parser


def complete(parser, shape):
    """What follows from the family where nothing is given."""
    gpt = shape.family == "gpt"
    defaults = {"groups": shape.heads, "inner": 4 * shape.width, "activation": "gelu" if gpt else "swiglu", "norm": "layer" if gpt else "rms", "biases": gpt, "rotary": not gpt, "tied": gpt}
    for name, value in defaults.items():
        if getattr(shape, name) is None:
            setattr(shape, name, value)
    if shape.width % shape.heads or shape.heads % shape.groups:
        parser.error(f"width {shape.width}, heads {shape.heads} and groups {shape.groups} do not divide each other")
    if shape.scores and shape.groups != shape.heads:
        parser.error("--scores needs as many groups as heads")
    return shape


if __name__ == "__main__":
    parser = arguments()
    shape = complete(parser, parser.parse_args())
    onnx.save(Builder(shape).build(), shape.file)
