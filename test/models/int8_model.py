"""Writes an ONNX model whose products read weights with the values that --weights=int8 gives them: the rule once more, in numpy and on the file, so that a run of the copy says what
a run of the model in int8 must give. Needs numpy.

    int8_model.py MODEL.onnx COPY.onnx [--slices=N]

Of a MatMul's or Gemm's right operand, also behind a Transpose, each output channel has the scale max |w| / 127, and w becomes round(w / scale) * scale. --slices takes a scale for each
of N parts of the summed dim instead, as a runtime would that quantised what a rank holds: the model that must not come out.
"""
import os
import sys

import numpy

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from onnx_file import tensor  # noqa: E402
from wire_format import field, fields  # noqa: E402

F32, LEAST = 1, 1024  # numbers of the smallest weight that is held so


def in_int8(weight, along, slices):
    parts = []
    for part in numpy.array_split(weight, slices, axis=along):
        scale = numpy.abs(part).max(axis=along, keepdims=True) / numpy.float32(127)
        codes = numpy.rint(part / numpy.where(scale == 0, numpy.float32(1), scale))
        parts.append((codes * scale).astype(numpy.float32))
    return numpy.concatenate(parts, axis=along)


def initializers(graph):
    """The f32 matrices of a graph that stand in the file itself, by name."""
    found = {}
    for part in fields(graph):
        if part.number != 5:
            continue
        facts = list(fields(part.value))
        shape = [fact.value for fact in facts if fact.number == 1]
        raw = b"".join(fact.value for fact in facts if fact.number == 9)
        name = next(fact.value for fact in facts if fact.number == 8).decode()
        if (2, F32) in [(fact.number, fact.value) for fact in facts] and len(shape) == 2 and raw:
            found[name] = numpy.frombuffer(raw, numpy.float32).reshape(shape)
    return found


def node_of(data):
    parts = list(fields(data))
    texts = lambda number: [part.value.decode() for part in parts if part.number == number]  # noqa: E731
    flags = {}
    for part in parts:
        if part.number == 5:
            facts = {fact.number: fact.value for fact in fields(part.value)}
            flags[facts[1].decode()] = facts.get(3, 0)
    return "".join(texts(4)), texts(1), texts(2), flags


def rewrite(graph, slices):
    weights = initializers(graph)
    transposed = {}  # value: the weight that it is the transpose of
    nodes, added, count = [], {}, 0
    for part in fields(graph):
        if part.number == 1:
            op, inputs, outputs, _ = node_of(part.value)
            if op == "Transpose" and inputs[0] in weights:
                transposed[outputs[0]] = inputs[0]
    out = b""
    for part in fields(graph):
        if part.number != 1:
            out += part.raw
            continue
        op, inputs, outputs, flags = node_of(part.value)
        right = inputs[1] if op in ("MatMul", "Gemm") and len(inputs) > 1 else None
        source = transposed.get(right, right)
        if source not in weights or weights[source].size < LEAST:
            out += part.raw
            continue
        swapped = (right in transposed) != (op == "Gemm" and flags.get("transB", 0) == 1)
        name = right + "@int8"
        values = in_int8(weights[source], 1 if swapped else 0, slices)
        added[name] = values.T.copy() if right in transposed else values
        count += 1
        seen, body = 0, b""
        for fact in fields(part.value):
            is_right = fact.number == 1 and seen == 1
            seen += fact.number == 1
            body += field(1, name) if is_right else fact.raw
        out += field(1, body)
    return out + b"".join(field(5, tensor(*each)) for each in added.items()), count


def main(source, target, slices="--slices=1"):
    with open(source, "rb") as file:
        model = list(fields(file.read()))
    out, count = b"", 0
    for part in model:
        if part.number == 7:
            graph, count = rewrite(part.value, int(slices.split("=")[1]))
            out += field(7, graph)
        else:
            out += part.raw
    with open(target, "wb") as file:
        file.write(out)
    print(f"{count} products read weights in int8")


if __name__ == "__main__":
    main(*sys.argv[1:])
