"""Writes an ONNX model of one float type: y = ReduceSum(Exp(Relu(x A) B), last dim), x of 6x24, to FILE. Plain protobuf by hand: no onnx package here.

    float_types.py f16|f64 FILE
"""
import sys

import numpy as np


def field(number, value):
    """A varint, or bytes with their length."""
    def varint(n):
        out = b""
        while n > 127:
            out, n = out + bytes([n & 127 | 128]), n >> 7
        return out + bytes([n])
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    value = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(value)) + value


TYPES = {"f16": (10, np.float16), "f64": (11, np.float64)}
onnx_type, numpy_type = TYPES[sys.argv[1]]
random = np.random.default_rng(0)


def value_info(name, shape):
    dims = b"".join(field(1, field(1, size)) for size in shape)
    return field(1, name) + field(2, field(1, field(1, onnx_type) + field(2, dims)))


def weight(name, shape):
    values = (random.standard_normal(shape) / 6).astype(numpy_type)
    return b"".join(field(1, size) for size in shape) + field(2, onnx_type) + field(8, name) + field(9, values.tobytes())


def node(op, inputs, output):
    return b"".join(field(1, name) for name in inputs) + field(2, output) + field(3, output) + field(4, op)


graph = b"".join([
    field(1, node("MatMul", ["x", "A"], "h")),
    field(1, node("Relu", ["h"], "a")),
    field(1, node("MatMul", ["a", "B"], "p")),
    field(1, node("Exp", ["p"], "e")),
    field(1, node("ReduceSum", ["e", "axes"], "y")),
    field(2, "types"),
    field(5, weight("A", [24, 40])),
    field(5, weight("B", [40, 24])),
    field(5, field(1, 1) + field(2, 7) + field(8, "axes") + field(9, np.array([-1]).tobytes())),
    field(11, value_info("x", [6, 24])),
    field(12, value_info("y", [6, 1])),
])
with open(sys.argv[2], "wb") as file:
    file.write(field(1, 8) + field(7, graph) + field(8, field(1, "") + field(2, 17)))
