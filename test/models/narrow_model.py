"""Writes an ONNX model of f32 as one of f16 or bf16, every tensor, constant and cast of it, as converters do; needs numpy.

    narrow_model.py MODEL.onnx f16|bf16 COPY.onnx
"""
import os
import sys

import numpy

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from onnx_file import ELEMENT_TYPES  # noqa: E402
from wire_format import BYTES, VARINT, field, fields, tag  # noqa: E402

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


def encode(number, kind, value):
    return field(number, value) if kind in (VARINT, BYTES) else tag(number, kind) + value


def narrow_numbers(values, kind):
    """The bytes of f32 values in 16 bits, to nearest even."""
    if kind == "f16":
        with numpy.errstate(over="ignore"):  # masks of -3.4e38 become -inf
            return values.astype(numpy.float16).tobytes()
    bits = values.view(numpy.uint32)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(numpy.uint16).tobytes()


def narrow_tensor(data, kind):
    parts = list(fields(data))
    if not any((part.number, part.value) == (2, F32) for part in parts):
        return data
    values = b"".join(part.value for part in parts if part.number in (4, 9))  # as float_data or raw
    kept = b"".join(part.raw for part in parts if part.number not in (2, 4, 9))
    return kept + field(2, ELEMENT_TYPES[kind][0]) + field(9, narrow_numbers(numpy.frombuffer(values, numpy.float32), kind))


def narrow(what, data, kind):
    if what == TENSOR:
        return narrow_tensor(data, kind)
    parts = list(fields(data))
    is_cast = what == NODE and any((part.number, part.value) == (4, b"Cast") for part in parts)
    out = b""
    for number, wire, value, _ in parts:
        inner = FIELDS.get(what, {}).get(number)
        if what == TENSOR_TYPE and (number, value) == (1, F32):
            value = ELEMENT_TYPES[kind][0]
        elif inner == ATTRIBUTE and is_cast:
            facts = list(fields(value))
            if any((fact.number, fact.value) == (1, b"to") for fact in facts):
                value = b"".join(field(3, ELEMENT_TYPES[kind][0]) if (fact.number, fact.value) == (3, F32) else fact.raw for fact in facts)
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
