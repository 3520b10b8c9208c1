"""Prints a small serial transformer in the nn dialect whose layers share something that is hard for pipeline stages:
  position_ids    every layer turns its queries and keys by angles of an input
  alibi           slopes (a weight) times distances of an input are added to every layer's scores
  relative_bias   one table of biases, looked up by an input, is added to every layer's scores
  encoder         every layer of a decoder reads what an encoder of three layers made
Usage: pipeline_cuts.py NAME. The weights are random and inside, the same in every run."""
import sys

import numpy as np

BATCH, SEQUENCE, WIDTH, HEADS, INNER, VOCABULARY, BUCKETS, LAYERS = 4, 5, 8, 2, 12, 13, 6, 3
HEAD = WIDTH // HEADS
X = (BATCH, SEQUENCE, WIDTH)


class Function:
    def __init__(self):
        self.lines, self.types, self.arguments = [], {}, []
        self.random = np.random.default_rng(7)

    def argument(self, name, shape, element):
        self.types["%" + name] = self.type(shape, element)
        self.arguments.append(f'%{name}: {self.types["%" + name]} {{nn.name = "{name}"}}')
        return "%" + name

    @staticmethod
    def type(shape, element="f32"):
        return f'tensor<{"".join(f"{size}x" for size in shape)}{element}>'

    def op(self, name, operands, shape, attributes="", element="f32"):
        result = f"%{len(self.lines)}"
        self.types[result] = self.type(shape, element)
        self.lines.append(f'{result} = nn.{name} {", ".join(operands)} {attributes} : '
                          f'{", ".join(self.types[o] for o in operands)} -> {self.types[result]} loc("{name}_{len(self.lines)}")')
        return result

    def weight(self, *shape):
        result = f"%{len(self.lines)}"
        self.types[result] = self.type(shape)
        data = (self.random.standard_normal(shape) / np.sqrt(shape[0])).astype("<f4").tobytes().hex().upper()
        self.lines.append(f'{result} = nn.parameter "w{len(self.lines)}" {{value = dense<"0x{data}"> : {self.type(shape)}}} : {self.type(shape)}')
        return result

    def text(self, result):
        body = "\n    ".join(self.lines)
        return (f'func.func @main({", ".join(self.arguments)}) -> ({self.types[result]} {{nn.name = "y"}}) {{\n'
                f'    {body}\n    return {result} : {self.types[result]}\n}}')


def linear(f, x, inner, outer):
    return f.op("matmul", [x, f.weight(inner, outer)], (BATCH, SEQUENCE, outer))


def heads(f, x, last):
    split = f.op("reshape", [x], (BATCH, SEQUENCE, HEADS, HEAD))
    shape = (BATCH, HEADS, SEQUENCE, HEAD) if not last else (BATCH, HEADS, HEAD, SEQUENCE)
    permutation = "0, 2, 1, 3" if not last else "0, 2, 3, 1"
    return f.op("transpose", [split], shape, f"{{permutation = array<i64: {permutation}>}}")


def attention(f, x, source, bias=None, turn=None):
    """Queries of x, keys and values of source; turn = (cosines, sines) of the angles of the positions."""
    q, k = linear(f, x, WIDTH, WIDTH), linear(f, source, WIDTH, WIDTH)
    if turn:
        q, k = [f.op("add", [f.op("mul", [a, turn[0]], X), f.op("mul", [f.op("neg", [a], X), turn[1]], X)], X) for a in (q, k)]
    q, k, v = heads(f, q, False), heads(f, k, True), heads(f, linear(f, source, WIDTH, WIDTH), False)
    square = (BATCH, HEADS, SEQUENCE, SEQUENCE)
    scores = f.op("matmul", [q, k], square)
    if bias:
        scores = f.op("add", [scores, bias], square)
    mixed = f.op("matmul", [f.op("softmax", [scores], square), v], (BATCH, HEADS, SEQUENCE, HEAD))
    mixed = f.op("transpose", [mixed], (BATCH, SEQUENCE, HEADS, HEAD), "{permutation = array<i64: 0, 2, 1, 3>}")
    mixed = f.op("reshape", [mixed], X)
    return f.op("add", [x, linear(f, mixed, WIDTH, WIDTH)], X)


def mlp(f, x):
    hidden = f.op("tanh", [linear(f, x, WIDTH, INNER)], (BATCH, SEQUENCE, INNER))
    return f.op("add", [x, linear(f, hidden, INNER, WIDTH)], X)


def embed(f, ids, table):
    return f.op("embedding", [table, ids], X, f"{{vocabulary = {VOCABULARY} : i64}}")


def positions(f):
    """Position ids, an input, as f32 [BATCH, SEQUENCE, 1]."""
    ids = f.argument("position_ids", (BATCH, SEQUENCE), "i64")
    wide = f.op("reshape", [ids], (BATCH, SEQUENCE, 1), element="i64")
    return f.op("cast", [wide], (BATCH, SEQUENCE, 1))


def build(name):
    f = Function()
    ids = f.argument("ids", (BATCH, SEQUENCE), "i64")
    x = embed(f, ids, f.weight(VOCABULARY, WIDTH))
    bias = turn = memory = None
    if name == "position_ids":
        angles = f.op("matmul", [positions(f), f.weight(1, WIDTH)], X)
        turn = (f.op("cos", [angles], X), f.op("sin", [angles], X))
    elif name == "alibi":
        column = positions(f)
        row = f.op("reshape", [column], (BATCH, 1, SEQUENCE))
        distance = f.op("reshape", [f.op("sub", [row, column], (BATCH, SEQUENCE, SEQUENCE))], (BATCH, 1, SEQUENCE, SEQUENCE))
        bias = f.op("mul", [distance, f.weight(HEADS, 1, 1)], (BATCH, HEADS, SEQUENCE, SEQUENCE))
    elif name == "relative_bias":
        buckets = f.argument("buckets", (BATCH, SEQUENCE, SEQUENCE), "i64")
        found = f.op("embedding", [f.weight(BUCKETS, HEADS), buckets], (BATCH, SEQUENCE, SEQUENCE, HEADS), f"{{vocabulary = {BUCKETS} : i64}}")
        bias = f.op("transpose", [found], (BATCH, HEADS, SEQUENCE, SEQUENCE), "{permutation = array<i64: 0, 3, 1, 2>}")
    elif name == "encoder":
        memory = x
        for _ in range(LAYERS):
            memory = mlp(f, attention(f, memory, memory))
        x = embed(f, f.argument("decoder_ids", (BATCH, SEQUENCE), "i64"), f.weight(VOCABULARY, WIDTH))
    else:
        sys.exit(__doc__)
    for _ in range(LAYERS):
        x = attention(f, x, x, bias, turn)
        if memory:
            x = attention(f, x, memory)
        x = mlp(f, x)
    print(f.text(linear(f, x, WIDTH, VOCABULARY)))


build(sys.argv[1] if len(sys.argv) == 2 else "")
