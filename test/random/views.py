"""A value and a view of it in one op: what is written in place, early, or summed over ranks must not be what the view still shows."""
import math

import numpy

from ops import BINARY, added, contract, op, sizes
from values import FLOATS, MOVES


def reshaped(graph, x, shape):
    return graph.node("Reshape", [x, graph.constant(sizes(shape))], lambda x: [x.reshape(shape)], terms=MOVES, taken=1)[0]


def busy(graph, where):
    """A value that ops have made, rather than an input: a buffer of the program's own."""
    x = graph.pick(FLOATS, where)
    if graph.choose.random() < 0.5:
        (x,) = graph.node("Tanh", [x], lambda x: [numpy.tanh(x)], count=4)
    return x


def with_view(graph, x):
    """Another shape of x with which it broadcasts, or whose rows and columns have as many elements."""
    choose = graph.choose
    form = choose.choice(["one more", "turned", "row", "flat"])
    if form == "turned" and len(x.shape) >= 2 and x.shape[-1] == x.shape[-2]:
        order = [*range(len(x.shape) - 2), len(x.shape) - 1, len(x.shape) - 2]
        return graph.node("Transpose", [x], lambda x: [x.transpose(order)], terms=MOVES, perm=order)[0]
    if form == "row" and x.shape and x.shape[0] > 1:
        return graph.node("Slice", [x, *(graph.constant(sizes([each])) for each in (0, 1, 0))], lambda x: [x[:1]], terms=MOVES, taken=1)[0]
    if form == "flat" and x.data.size == max(x.shape, default=1):
        return reshaped(graph, x, [x.data.size])
    return reshaped(graph, x, [1, *x.shape] if len(x.shape) < 5 else x.shape)


@op(5)
def beside_its_view(graph):
    x = busy(graph, lambda x: x.shape)
    y, name = with_view(graph, x), graph.choose.choice(sorted(BINARY))
    graph.node(name, graph.choose.choice([[x, y], [y, x]]), lambda x, y: [BINARY[name](x, y)], terms=added(name))


@op(3)
def product_with_its_view(graph):
    """x by itself in the shape that a product takes."""
    x = busy(graph, lambda x: len(x.shape) >= 2)
    matrix = reshaped(graph, x, [math.prod(x.shape[:-1]), x.shape[-1]])
    contract(graph, matrix, reshaped(graph, x, [x.shape[-1], math.prod(x.shape[:-1])]))


@op(3)
def summed_beside_its_view(graph):
    """A product whose sum over ranks comes while others read it, under its shape or another."""
    x = graph.pick("f32", lambda x: len(x.shape) >= 2)
    (y,) = contract(graph, contract(graph, x, graph.weight((x.shape[-1], 8)))[0], graph.weight((8, 4)))
    z = reshaped(graph, y, [math.prod(y.shape[:-1]) * 2, 2])
    (rows,) = graph.node("ReduceSum", [z, graph.constant(sizes([-1]))], lambda z: [z.sum(axis=-1)], terms=lambda z: [numpy.abs(z).sum(axis=-1)], count=2, taken=1, keepdims=0)
    rows = reshaped(graph, rows, [*y.shape[:-1], 2])
    graph.node("Concat", [y, rows], lambda y, rows: [numpy.concatenate([y, rows], -1)], terms=MOVES, axis=-1)
    if graph.choose.random() < 0.5:
        graph.node("Add", [y, graph.weight((4,))], lambda x, y: [x + y], terms=added("Add"))


@op(2)
def concatenated_with_its_view(graph):
    x = busy(graph, lambda x: x.data.size > 1)
    graph.node("Concat", [reshaped(graph, x, [x.data.size]), reshaped(graph, graph.node("Neg", [x], lambda x: [-x])[0], [x.data.size])],
               lambda x, y: [numpy.concatenate([x, y])], terms=MOVES, axis=0)
