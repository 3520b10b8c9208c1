"""Nodes over integers of all widths: arithmetic that wraps, bits, shifts, reductions."""
import numpy

from ops import BINARY, RANGES, axis_of, op, signed, sizes
from values import INTEGERS, MOVES, Reject

SIGNED, UNSIGNED = INTEGERS[:4], INTEGERS[4:]
SUMMED = ("i32", "i64", "u32", "u64")  # the integers that the standard sums


def truncated(x, y):
    """Division as ONNX has it, towards 0."""
    quotient = numpy.abs(x) // numpy.abs(y)
    return numpy.where((x < 0) != (y < 0), -quotient, quotient) if x.dtype.kind == "i" else quotient


@op(5)
def arithmetic(graph):
    x, name = graph.pick(INTEGERS, empty=True), graph.choose.choice(sorted(BINARY) + ["Div", "Mod"])
    if name in ("Div", "Mod"):
        if (x.data == RANGES[x.kind].min).any() and x.kind in SIGNED:
            raise Reject  # the lowest number by -1
        choices = [-3, -1, 2, 5] if x.kind in SIGNED else [2, 5]
        divisor = graph.constant(numpy.asarray(graph.choose.choice(choices), x.data.dtype))
        function, more = (truncated, {}) if name == "Div" else (numpy.mod, {})
        if name == "Mod" and graph.choose.random() < 0.3:
            function, more = numpy.fmod, {"fmod": 1}
        graph.node(name, [x, divisor], lambda x, y: [function(x, y)], **more)
        return
    y = graph.pick(x.kind, lambda y: graph.broadcasts(x, y), empty=True)
    graph.node(name, [x, y], lambda x, y: [BINARY[name](x, y)])


@op(2)
def of_one(graph):
    x = graph.pick(INTEGERS)
    name = graph.choose.choice(["Abs", "Sign", "Neg", "BitwiseNot"] if x.kind in SIGNED else ["Abs", "Sign", "BitwiseNot"])
    function = {"Abs": numpy.abs, "Sign": numpy.sign, "Neg": numpy.negative, "BitwiseNot": numpy.invert}[name]
    graph.node(name, [x], lambda x: [function(x)])


@op(3)
def bits(graph):
    x = graph.pick(INTEGERS)
    if x.kind in UNSIGNED and graph.choose.random() < 0.5:
        amount = graph.constant(numpy.asarray(graph.choose.randint(0, 7), x.data.dtype))
        to_left = graph.choose.random() < 0.5
        graph.node("BitShift", [x, amount], lambda x, y: [x << y if to_left else x >> y], direction="LEFT" if to_left else "RIGHT")
        return
    y = graph.pick(x.kind, lambda y: graph.broadcasts(x, y))
    name, function = graph.choose.choice([("BitwiseAnd", numpy.bitwise_and), ("BitwiseOr", numpy.bitwise_or), ("BitwiseXor", numpy.bitwise_xor)])
    graph.node(name, [x, y], lambda x, y: [function(x, y)])


@op(2)
def compared(graph):
    x = graph.pick(INTEGERS)
    y = graph.pick(x.kind, lambda y: graph.broadcasts(x, y))
    name, function = graph.choose.choice([("Equal", numpy.equal), ("Less", numpy.less), ("GreaterOrEqual", numpy.greater_equal)])
    graph.node(name, [x, y], lambda x, y: [function(x, y)])


@op(3)
def reduced(graph):
    x = graph.pick((*SUMMED, "i8", "u8"), lambda x: x.shape)
    name = graph.choose.choice(["Sum", "Prod", "Max", "Min"] if x.kind in SUMMED else ["Max", "Min"])
    axes, keep = tuple(sorted(graph.choose.sample(range(len(x.shape)), graph.choose.randint(1, len(x.shape))))), graph.choose.random() < 0.5
    if name == "Prod" and numpy.log2(numpy.maximum(numpy.abs(x.data.astype(numpy.float64)), 1)).sum() > 30:
        name = "Sum"  # beyond the type's range ONNX Runtime has other numbers than two's complement
    function = {"Sum": numpy.sum, "Prod": numpy.prod, "Max": numpy.max, "Min": numpy.min}[name]
    compute = lambda x: [function(x, axis=axes, keepdims=keep).astype(x.dtype)]
    graph.node("Reduce" + name, [x, graph.constant(sizes(axes))], compute, taken=1, keepdims=int(keep))


@op(2)
def accumulated(graph):
    """CumSum; CumProd, which opset 26 has."""
    x = graph.pick(("i32", "i64") if graph.opset < 26 else (*SUMMED, "f32"), lambda x: x.shape)
    name = "CumSum" if x.kind in ("i32", "i64") and graph.choose.random() < 0.6 or graph.opset < 26 else "CumProd"
    axis, reverse, exclusive = axis_of(graph, x), graph.choose.randint(0, 1), graph.choose.randint(0, 1)
    function, first = (numpy.cumsum, 0) if name == "CumSum" else (numpy.cumprod, 1)

    def compute(x):
        x = numpy.flip(x, axis) if reverse else x
        if exclusive:
            x = numpy.concatenate([numpy.full_like(x.take([0], axis), first), x.take(range(x.shape[axis] - 1), axis)], axis)
        total = function(x, axis=axis).astype(x.dtype)
        return [numpy.flip(total, axis) if reverse else total]

    graph.node(name, [x, graph.constant(numpy.asarray(signed(graph, axis, x), numpy.int64))], compute, count=x.shape[axis], taken=1,
               reverse=reverse, exclusive=exclusive)


@op(1)
def product(graph):
    x = graph.pick(("i32", "i64", "u32"), lambda x: len(x.shape) >= 2)
    weight = graph.constant(graph.content((x.shape[-1], graph.choose.choice([1, 3, 4])), x.kind))
    graph.node("MatMul", [x, weight], lambda x, y: [numpy.matmul(x, y)])


@op(2)
def to_number(graph):
    """A number of rank 0, by taking everything together or one element out."""
    x = graph.pick(where=lambda x: len(x.shape) == 1 or x.data.size == 1 and x.shape)
    if x.data.size == 1 and graph.choose.random() < 0.5:
        graph.node("Squeeze", [x], lambda x: [x.reshape(())], terms=MOVES)
        return
    if len(x.shape) > 1:
        graph.node("Reshape", [x, graph.constant(sizes([]))], lambda x: [x.reshape(())], terms=MOVES, taken=1)
        return
    at = graph.choose.randrange(-x.shape[0], x.shape[0])
    graph.node("Gather", [x, graph.constant(numpy.asarray(at, numpy.int64))], lambda x, at: [x[at]], terms=MOVES)


@op(2)
def shape_of(graph):
    x, name = graph.pick(empty=True), graph.choose.choice(["Shape", "Size"])
    graph.node(name, [x], lambda x: [numpy.asarray(x.shape if name == "Shape" else x.size, numpy.int64)])
