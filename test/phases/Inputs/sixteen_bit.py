"""Writes an ONNX model of f16 values to the file given: y = ReduceSum(Exp(x + w)), x of 6x24. Plain protobuf by hand: no onnx package here."""
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


FLOAT16 = 10


def value_info(name, shape):
    dims = b"".join(field(1, field(1, size)) for size in shape)
    return field(1, name) + field(2, field(1, field(1, FLOAT16) + field(2, dims)))


def node(op, inputs, output):
    return b"".join(field(1, name) for name in inputs) + field(2, output) + field(3, output) + field(4, op)


weight = (np.random.default_rng(0).standard_normal(24) / 5).astype(np.float16)
graph = b"".join([
    field(1, node("Add", ["x", "w"], "h")),
    field(1, node("Exp", ["h"], "a")),
    field(1, node("ReduceSum", ["a"], "y")),
    field(2, "f16"),
    field(5, field(1, 24) + field(2, FLOAT16) + field(8, "w") + field(9, weight.tobytes())),
    field(11, value_info("x", [6, 24])),
    field(12, value_info("y", [1, 1])),
])
with open(sys.argv[1], "wb") as file:
    file.write(field(1, 8) + field(7, graph) + field(8, field(1, "") + field(2, 17)))
