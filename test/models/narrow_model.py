"""Writes an ONNX model of f32 as one of f16 or bf16, every tensor, constant and cast of it, as converters do; needs numpy.

    narrow_model.py MODEL.onnx f16|bf16 COPY.onnx
"""
import os
import sys

import numpy

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from onnx_file import ELEMENT_TYPES, field, varint  # noqa: E402

F32 = 1
# Of the message in each field of a message, how it is narrowed; what is not listed stays.
MODEL, GRAPH, NODE, ATTRIBUTE, VALUE_INFO, TYPE, TENSOR_TYPE, TENSOR = ("model", "graph", "node", "attribute", "value info", "type", "tensor type", "tensor")
FIELDS = {
    MODEL: {7: GRAPH},
    GRAPH: {1: NODE, 5: TENSOR, 11: VALUE_INFO, 12: VALUE_INFO, 13: VALUE_INFO},
    NODE: {5: ATTRIBUTE},
    ATTRIBUTE: {5: TENSOR, 6: GRAPH},
    VALUE_INFO: {2: TYPE},
    TYPE: {1: TENSOR_TYPE},
}


def read_varint(data, at):
    value = shift = 0
    while True:
        value, shift, at = value | (data[at] & 127) << shift, shift + 7, at + 1
        if data[at - 1] < 128:
            return value, at


def fields(data):
    """(number, kind, value) of each field; values are numbers or bytes."""
    at = 0
    while at < len(data):
        key, at = read_varint(data, at)
        if key & 7 == 0:
            value, at = read_varint(data, at)
        else:
            length = {1: 8, 5: 4}.get(key & 7)
            if length is None:
                length, at = read_varint(data, at)
            value, at = data[at:at + length], at + length
        yield key >> 3, key & 7, value


def encode(number, kind, value):
    return field(number, value) if kind in (0, 2) else varint(number << 3 | kind) + value


def narrow_numbers(values, kind):
    """The bytes of f32 values in 16 bits, to nearest even."""
    if kind == "f16":
        with numpy.errstate(over="ignore"):  # masks of -3.4e38 become -inf
            return values.astype(numpy.float16).tobytes()
    bits = values.view(numpy.uint32)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(numpy.uint16).tobytes()


def narrow_tensor(data, kind):
    parts = list(fields(data))
    if (2, 0, F32) not in parts:
        return data
    values = b"".join(value for number, _, value in parts if number in (4, 9))  # as float_data or raw
    kept = b"".join(encode(*part) for part in parts if part[0] not in (2, 4, 9))
    return kept + field(2, ELEMENT_TYPES[kind][0]) + field(9, narrow_numbers(numpy.frombuffer(values, numpy.float32), kind))


def narrow(what, data, kind):
    if what == TENSOR:
        return narrow_tensor(data, kind)
    parts = list(fields(data))
    is_cast = what == NODE and (4, 2, b"Cast") in parts
    out = b""
    for number, wire, value in parts:
        inner = FIELDS.get(what, {}).get(number)
        if what == TENSOR_TYPE and (number, value) == (1, F32):
            value = ELEMENT_TYPES[kind][0]
        elif inner == ATTRIBUTE and is_cast:
            facts = list(fields(value))
            if (1, 2, b"to") in facts:
                value = b"".join(encode(n, w, ELEMENT_TYPES[kind][0] if (n, v) == (3, F32) else v) for n, w, v in facts)
        elif inner:
            value = narrow(inner, value, kind)
        out += encode(number, wire, value)
    return out


def main(source, kind, target):
    with open(source, "rb") as file:
        data = narrow(MODEL, file.read(), kind)
    with open(target, "wb") as file:
        file.write(data)


if __name__ == "__main__":
    main(*sys.argv[1:])
