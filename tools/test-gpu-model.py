"""Writes a copy of an exported GPT-2 without weights for measuring: its one output is the likeliest next token of each position (ArgMax over the last
dim of its first output), which a bench can fetch from a card without measuring the bus; and its causal masks, boolean tensors that lie among the
missing weights as `attn.bias`, are written in, since fill.py says what they are and a compiler that knows it need not read them. Needs
Python's own library alone, as packing does.

    test-gpu-model.py MODEL.onnx COPY.onnx [--keep-outputs]
"""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "test"))
from wire_format import VARINT, field, fields, read_varint  # noqa: E402

# Fields of ONNX's messages.
MODEL_GRAPH, GRAPH_NODE, GRAPH_INITIALIZER, GRAPH_OUTPUT, VALUE_NAME = 7, 1, 5, 12, 1
TENSOR_DIMS, TENSOR_TYPE, TENSOR_NAME, TENSOR_RAW, TENSOR_EXTERNAL = 1, 2, 8, 9, 13
BOOL, INT64 = 9, 7


def next_token(logits):
    """ArgMax(logits, axis=-1, keepdims=0), and the graph's output that it makes."""
    def attribute(name, value):
        return field(5, field(1, name) + field(3, value) + field(20, 2))  # an INT

    node = field(1, logits) + field(2, "next_token") + field(4, "ArgMax") + attribute("axis", -1) + attribute("keepdims", 0)
    return field(GRAPH_NODE, node) + field(GRAPH_OUTPUT, field(VALUE_NAME, "next_token") + field(2, field(1, field(1, INT64))))


def with_mask(initializer):
    """The initializer as it stands, or with its content if it is a causal mask."""
    dims, facts = [], {}
    for part in fields(initializer.value):
        if part.number != TENSOR_DIMS:
            facts[part.number] = part.value
        elif part.kind == VARINT:
            dims.append(part.value)
        else:  # packed
            at = 0
            while at < len(part.value):
                size, at = read_varint(part.value, at)
                dims.append(size)
    is_mask = facts.get(TENSOR_TYPE) == BOOL and facts.get(TENSOR_NAME, b"").endswith(b"attn.bias") and TENSOR_EXTERNAL in facts
    if not is_mask or len(dims) != 4 or dims[0] * dims[1] != 1:
        return initializer.raw
    rows = b"".join(bytes([1]) * min(row + 1, dims[3]) + bytes(max(dims[3] - row - 1, 0)) for row in range(dims[2]))
    kept = b"".join(field(TENSOR_DIMS, size) for size in dims) + field(TENSOR_TYPE, BOOL) + field(TENSOR_NAME, facts[TENSOR_NAME])
    return field(GRAPH_INITIALIZER, kept + field(TENSOR_RAW, rows))


def main(source, target, *flags):
    with open(source, "rb") as file:
        model = list(fields(file.read()))
    graph = list(fields(next(part.value for part in model if part.number == MODEL_GRAPH)))
    output = next(part.value for part in graph if part.number == GRAPH_OUTPUT)
    logits = next(part.value for part in fields(output) if part.number == VALUE_NAME)
    keeps = "--keep-outputs" in flags
    new = b"".join(with_mask(part) if part.number == GRAPH_INITIALIZER else part.raw for part in graph if keeps or part.number != GRAPH_OUTPUT)
    new += b"" if keeps else next_token(logits)
    with open(target, "wb") as file:
        file.write(b"".join(field(MODEL_GRAPH, new) if part.number == MODEL_GRAPH else part.raw for part in model))


if __name__ == "__main__":
    main(*sys.argv[1:])
