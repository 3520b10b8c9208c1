"""Nodes that order, look up and scatter: whatever counts the positions of a dim, which must be those of the whole dim where it is cut."""
import math

import numpy

from ops import axis_of, op, signed, sizes
from values import FLOATS, INTEGERS, MOVES, Reject

NUMBERS = ("f32", "f32", "f16", "f64", "i32", "i64")


def clearly_ordered(value, axis):
    """Rejects what rounding may order otherwise: a gap along the axis within the bounds of its sides."""
    order = numpy.argsort(value.data, axis=axis, kind="stable")
    gaps = numpy.diff(numpy.take_along_axis(value.data, order, axis), axis=axis)
    bounds = numpy.take_along_axis(value.bound, order, axis)
    sides = 2 * (bounds.take(range(1, value.shape[axis]), axis) + bounds.take(range(value.shape[axis] - 1), axis))
    if ((gaps <= sides) & (sides > 0)).any():
        raise Reject


def indices_below(graph, size, shape):
    """Integers from -size to size - 1: constant, an input, or computed by the graph where some fit."""
    runtime = [value for value in graph.values if value.kind in ("i64", "i32") and value.shape == tuple(shape)]
    if runtime and graph.choose.random() < 0.6:
        found = graph.choose.choice(runtime)
        (found,) = graph.node("Mod", [found, graph.constant(numpy.asarray(size, found.data.dtype))], lambda x, y: [numpy.mod(x, y)])
        return found
    add = graph.given if graph.choose.random() < 0.3 else graph.constant
    return add(graph.numbers.integers(-size, size, shape))


@op(4)
def top_k(graph):
    x = graph.pick(NUMBERS, lambda x: x.shape)
    axis, largest = axis_of(graph, x), graph.choose.randint(0, 1)
    k = graph.choose.choice([1, 1, 2, x.shape[axis], graph.choose.randint(0, x.shape[axis])])
    if k > x.shape[axis]:
        raise Reject
    clearly_ordered(x, axis)

    def compute(x):
        order = numpy.argsort(-x if largest else x, axis=axis, kind="stable").take(range(k), axis)
        return [numpy.take_along_axis(x, order, axis), order.astype(numpy.int64)]

    graph.node("TopK", [x, graph.constant(sizes([k]))], compute, taken=1, axis=signed(graph, axis, x), largest=largest)


@op(4)
def extreme(graph):
    x, name = graph.pick((*NUMBERS, "i8", "u8"), lambda x: x.shape), graph.choose.choice(["ArgMax", "ArgMin"])
    axis, keep, last = axis_of(graph, x), graph.choose.randint(0, 1), graph.choose.randint(0, 1)
    clearly_ordered(x, axis)
    function = {"ArgMax": numpy.argmax, "ArgMin": numpy.argmin}[name]

    def compute(x):
        found = x.shape[axis] - 1 - function(numpy.flip(x, axis), axis=axis) if last else function(x, axis=axis)
        return [numpy.asarray(numpy.expand_dims(found, axis) if keep else found, numpy.int64)]

    graph.node(name, [x], compute, axis=signed(graph, axis, x), keepdims=keep, select_last_index=last)


@op(2)
def hardmax(graph):
    x = graph.pick(FLOATS, lambda x: x.shape)
    axis = axis_of(graph, x)
    clearly_ordered(x, axis)

    def compute(x):
        result = numpy.zeros(x.shape)
        numpy.put_along_axis(result, numpy.expand_dims(x.argmax(axis=axis), axis), 1, axis)
        return [result]

    graph.node("Hardmax", [x], compute, axis=signed(graph, axis, x))


@op(3)
def one_hot(graph):
    shape = graph.choose.choice([value.shape for value in graph.values if value.kind == "i64" and 0 < len(value.shape) < 4] or [(2, 3)])
    depth = graph.choose.choice([1, 3, 5, 8])
    indices, rank = indices_below(graph, depth, shape), len(shape)
    axis, kind = graph.choose.randint(0, rank), graph.choose.choice(["f32", "i64", "i32", "f16"])
    values = graph.constant(graph.content((2,), kind), kind)

    def compute(indices, values):
        at = numpy.arange(depth).reshape([-1 if each == axis else 1 for each in range(rank + 1)])
        return [numpy.where(numpy.expand_dims(numpy.mod(indices, depth), axis) == at, values[1], values[0])]

    graph.node("OneHot", [indices, graph.constant(numpy.asarray(depth, numpy.int64)), values], compute, terms=MOVES, skipped=[1],
               axis=graph.choose.choice([axis, axis - rank - 1]))


@op(4)
def gather_elements(graph):
    x = graph.pick(where=lambda x: x.shape)
    axis = axis_of(graph, x)
    shape = [graph.choose.randint(1, 5) if each == axis else graph.choose.choice([size, size, max(1, size - 1)]) for each, size in enumerate(x.shape)]
    shape = list(x.shape) if graph.choose.random() < 0.4 else shape
    indices = indices_below(graph, x.shape[axis], shape)
    reached = tuple(slice(None) if each == axis else slice(0, size) for each, size in enumerate(shape))
    compute = lambda x, indices: [numpy.take_along_axis(x[reached], numpy.mod(indices, x.shape[axis]), axis)]
    graph.node("GatherElements", [x, indices], compute, terms=MOVES, axis=signed(graph, axis, x))


@op(3)
def gather_nd(graph):
    x = graph.pick(where=lambda x: x.shape)
    batch = graph.choose.randint(0, min(1, len(x.shape) - 1))
    length = graph.choose.randint(1, len(x.shape) - batch)
    shape = [*x.shape[:batch], graph.choose.randint(1, 4), length]
    indices = graph.constant(numpy.stack([graph.numbers.integers(-size, size, shape[:-1]) for size in x.shape[batch : batch + length]], axis=-1))

    def compute(x, indices):
        at = tuple(numpy.moveaxis(indices, -1, 0))
        return [numpy.stack([row[tuple(each[i] for each in at)] for i, row in enumerate(x)]) if batch else x[at]]

    graph.node("GatherND", [x, indices], compute, terms=MOVES, batch_dims=batch)


UPDATES = {"add": numpy.add, "mul": numpy.multiply, "max": numpy.maximum, "min": numpy.minimum}


def reductions(x):
    return ["none", "none", *UPDATES] if x.kind != "bool" else ["none"]


@op(4)
def scatter_elements(graph):
    x = graph.pick((*FLOATS, "i64", "i32", "bool"), lambda x: x.shape)
    axis, how = axis_of(graph, x), graph.choose.choice(reductions(x))
    shape = [graph.choose.randint(1, size if how == "none" else size + 2) if each == axis else graph.choose.randint(1, size) for each, size in enumerate(x.shape)]
    if how == "none":  # no element twice: the standard says nothing about those
        rows = math.prod(shape) // shape[axis]
        at = numpy.array([graph.numbers.permutation(x.shape[axis])[: shape[axis]] for _ in range(rows)])
        at = numpy.moveaxis(at.reshape([*shape[:axis], *shape[axis + 1 :], shape[axis]]), -1, axis)
        indices = graph.constant(at - x.shape[axis] * graph.numbers.integers(0, 2, at.shape))
    else:
        indices = indices_below(graph, x.shape[axis], shape)
    updates = graph.constant(graph.content(shape, x.kind), x.kind)

    def compute(x, indices, updates):
        result = x.copy()
        grid = list(numpy.indices(indices.shape))
        grid[axis] = numpy.mod(indices, x.shape[axis])
        if how == "none":
            result[tuple(grid)] = updates
        else:
            UPDATES[how].at(result, tuple(grid), updates)
        return [result]

    terms = {"none": MOVES, "add": lambda x, indices, updates: compute(numpy.abs(x), indices, numpy.abs(updates))}.get(how)
    more = {} if how == "none" and graph.choose.random() < 0.5 else {"reduction": how}
    graph.node("ScatterElements", [x, indices, updates], compute, terms=terms, count=shape[axis] + 1, axis=signed(graph, axis, x), **more)


@op(3)
def scatter_nd(graph):
    x = graph.pick((*FLOATS, "i64", "i32", "bool"), lambda x: x.shape)
    length, how = graph.choose.randint(1, len(x.shape)), graph.choose.choice(reductions(x))
    places = math.prod(x.shape[:length])
    tuples = graph.choose.randint(1, min(places, 6))
    flat = graph.numbers.permutation(places)[:tuples] if how == "none" else graph.numbers.integers(0, places, tuples)
    indices = graph.constant(numpy.stack(numpy.unravel_index(flat, x.shape[:length]), axis=-1).astype(numpy.int64))
    updates = graph.constant(graph.content((tuples, *x.shape[length:]), x.kind), x.kind)

    def compute(x, indices, updates):
        result, at = x.copy(), tuple(numpy.moveaxis(indices, -1, 0))
        if how == "none":
            result[at] = updates
        else:
            UPDATES[how].at(result, at, updates)
        return [result]

    terms = {"none": MOVES, "add": lambda x, indices, updates: compute(numpy.abs(x), indices, numpy.abs(updates))}.get(how)
    graph.node("ScatterND", [x, indices, updates], compute, terms=terms, count=tuples + 1, reduction=how)


@op(2)
def trilu(graph):
    x, upper, k = graph.pick((*FLOATS, "i64", "bool"), lambda x: len(x.shape) >= 2), graph.choose.randint(0, 1), graph.choose.randint(-2, 2)
    function = numpy.triu if upper else numpy.tril
    graph.node("Trilu", [x, graph.constant(numpy.asarray(k, numpy.int64))], lambda x: [function(x, k)], terms=MOVES, taken=1, upper=upper)


@op(1)
def reverse_sequence(graph):
    x = graph.pick(where=lambda x: len(x.shape) >= 2)
    batch = graph.choose.randint(0, 1)
    time = 1 - batch
    lengths = graph.numbers.integers(1, x.shape[time] + 1, x.shape[batch])

    def compute(x, lengths):
        result = numpy.moveaxis(x, (batch, time), (0, 1)).copy()
        for row, length in enumerate(lengths):
            result[row, :length] = result[row, :length][::-1].copy()
        return [numpy.moveaxis(result, (0, 1), (batch, time))]

    graph.node("ReverseSequence", [x, graph.constant(lengths)], compute, terms=MOVES, batch_axis=batch, time_axis=time)
