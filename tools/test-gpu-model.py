"""Writes a copy of an exported GPT-2 without weights for measuring: its one output is the likeliest next token of each position (ArgMax over the last
dim of its first output), which a bench can fetch from a card without measuring the bus; and its causal masks, boolean tensors that lie among the
missing weights as `attn.bias`, are written in, since fill.py says what they are and a compiler that knows it need not read them. Speaks protobuf's
wire format: packing needs Python's own library alone.

    test-gpu-model.py MODEL.onnx COPY.onnx [--keep-outputs]
"""
import sys

# Fields of ONNX's messages.
MODEL_GRAPH, GRAPH_NODE, GRAPH_INITIALIZER, GRAPH_OUTPUT, VALUE_NAME = 7, 1, 5, 12, 1
TENSOR_DIMS, TENSOR_TYPE, TENSOR_NAME, TENSOR_RAW, TENSOR_EXTERNAL = 1, 2, 8, 9, 13
BOOL, INT64 = 9, 7


def varint(value):
    data = b""
    while value > 127:
        data, value = data + bytes([value & 127 | 128]), value >> 7
    return data + bytes([value])


def read_varint(data, at):
    value = shift = 0
    while True:
        value, shift, at = value | (data[at] & 127) << shift, shift + 7, at + 1
        if data[at - 1] < 128:
            return value, at


def fields(data):
    """(number, bytes of the field with its tag, its value: bytes, or a number)"""
    at = 0
    while at < len(data):
        start = at
        key, at = read_varint(data, at)
        kind, value = key & 7, b""
        if kind == 0:
            value, at = read_varint(data, at)
        else:
            length = 8 if kind == 1 else 4
            if kind == 2:
                length, at = read_varint(data, at)
            value, at = data[at:at + length], at + length
        yield key >> 3, data[start:at], value


def message(number, payload):
    return varint(number << 3 | 2) + varint(len(payload)) + payload


def number(field, value):
    return varint(field << 3) + varint(value)


def next_token(logits):
    """ArgMax(logits, axis=-1, keepdims=0), and the graph's output that it makes."""
    def attribute(name, value):
        return message(5, message(1, name) + number(3, value) + number(20, 2))  # an INT

    node = message(1, logits) + message(2, b"next_token") + message(4, b"ArgMax") + attribute(b"axis", (1 << 64) - 1) + attribute(b"keepdims", 0)
    return message(GRAPH_NODE, node) + message(GRAPH_OUTPUT, message(VALUE_NAME, b"next_token") + message(2, message(1, number(1, INT64))))


def with_mask(raw, tensor):
    """The initializer as it stands, or with its content if it is a causal mask."""
    dims, facts = [], {}
    for field, _, value in fields(tensor):
        if field != TENSOR_DIMS:
            facts[field] = value
        elif isinstance(value, int):
            dims.append(value)
        else:  # packed
            at = 0
            while at < len(value):
                size, at = read_varint(value, at)
                dims.append(size)
    is_mask = facts.get(TENSOR_TYPE) == BOOL and facts.get(TENSOR_NAME, b"").endswith(b"attn.bias") and TENSOR_EXTERNAL in facts
    if not is_mask or len(dims) != 4 or dims[0] * dims[1] != 1:
        return raw
    rows = b"".join(bytes([1]) * min(row + 1, dims[3]) + bytes(max(dims[3] - row - 1, 0)) for row in range(dims[2]))
    kept = b"".join(number(TENSOR_DIMS, size) for size in dims) + number(TENSOR_TYPE, BOOL) + message(TENSOR_NAME, facts[TENSOR_NAME])
    return message(GRAPH_INITIALIZER, kept + message(TENSOR_RAW, rows))


def main(source, target, *flags):
    with open(source, "rb") as file:
        model = list(fields(file.read()))
    graph = list(fields(next(value for field, _, value in model if field == MODEL_GRAPH)))
    output = next(value for field, _, value in graph if field == GRAPH_OUTPUT)
    logits = next(value for field, _, value in fields(output) if field == VALUE_NAME)
    keeps = "--keep-outputs" in flags
    new = b"".join(with_mask(raw, value) if field == GRAPH_INITIALIZER else raw for field, raw, value in graph if keeps or field != GRAPH_OUTPUT)
    new += b"" if keeps else next_token(logits)
    with open(target, "wb") as file:
        file.write(b"".join(message(MODEL_GRAPH, new) if field == MODEL_GRAPH else raw for field, raw, _ in model))


if __name__ == "__main__":
    main(*sys.argv[1:])
