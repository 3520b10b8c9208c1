"""What the nodes of random graphs are: each function adds one op of ONNX (or an idiom of a few) to a graph and says in numpy what it means.

A function gets the graph: `choose` (random.Random), `numbers` (numpy's), `pick` (an earlier value), `constant` (an initializer), `node`.
"""
import math

import numpy

import onnx_file
from values import FLOATS, INTEGERS, MOVES, Reject

OPS = []  # (weight, function)
EPSILON = float(numpy.float32(1e-2))  # of norms, as an attribute holds it


def op(weight):
    def register(function):
        OPS.append((weight, function))
        return function
    return register


class Steps:
    """Nodes that do together what one node of the graph means; nobody else reads what is between them."""

    def __init__(self, graph):
        self.result, self.nodes = f"v{len(graph.nodes)}", []

    def add(self, op, *inputs, last=False, domain="", **attributes):
        """The name of the result. Inputs are values or names."""
        name = self.result if last else f"{self.result}.step{len(self.nodes)}"
        self.nodes.append(onnx_file.node(op, [getattr(each, "name", each) for each in inputs], [name], f"/{self.result}/{op}{len(self.nodes)}", domain, **attributes))
        return name


def axis_of(graph, value):
    return graph.choose.randrange(len(value.shape))


def signed(graph, axis, value):
    """An axis as files have it, counted from the front or from the back."""
    return axis - graph.choose.choice([0, len(value.shape)])


def sizes(values):
    return numpy.array(values, numpy.int64)


def magnitudes(compute):
    """The terms of a linear function: itself on magnitudes."""
    return lambda *operands: [numpy.abs(each) for each in compute(*(numpy.abs(operand) for operand in operands))]


# ---- elementwise ---------------------------------------------------------------------------------

erf = numpy.vectorize(math.erf, otypes=[float])


def sigmoid(x):
    return 1 / (1 + numpy.exp(-x))


UNARY = {
    "Relu": lambda x: numpy.maximum(x, 0), "Tanh": numpy.tanh, "Sigmoid": sigmoid, "Neg": numpy.negative, "Abs": numpy.abs, "Erf": erf, "Floor": numpy.floor,
    "Ceil": numpy.ceil, "Round": numpy.round, "Sign": numpy.sign, "Cos": numpy.cos, "Sin": numpy.sin, "Softplus": lambda x: numpy.log1p(numpy.exp(x)),
    "Reciprocal": lambda x: 1 / x, "Identity": lambda x: x,
}  # Round makes numbers that are equal


@op(8)
def unary(graph):
    x = graph.pick(FLOATS, empty=True)
    name = graph.choose.choice(sorted(UNARY))
    graph.node(name, [x], lambda x: [UNARY[name](x)], count=4)


@op(2)
def of_the_positive(graph):
    """Exp, Sqrt and Log where they are defined and small."""
    x = graph.pick(FLOATS)
    name = graph.choose.choice(["Exp", "Sqrt", "Log"])
    if name == "Exp":
        (safe,) = graph.node("Tanh", [x], lambda x: [numpy.tanh(x)], count=4)
        graph.node("Exp", [safe], lambda x: [numpy.exp(x)], count=4)
        return
    (safe,) = graph.node("Abs", [x], lambda x: [numpy.abs(x)])
    (safe,) = graph.node("Add", [safe, graph.constant(0.5, x.kind)], lambda x, y: [x + y])
    function = {"Sqrt": numpy.sqrt, "Log": numpy.log}[name]
    graph.node(name, [safe], lambda x: [function(x)], count=4)


BINARY = {"Add": numpy.add, "Sub": numpy.subtract, "Mul": numpy.multiply, "Max": numpy.maximum, "Min": numpy.minimum}


def added(name):
    return (lambda x, y: [numpy.abs(x) + numpy.abs(y)]) if name in ("Add", "Sub") else None


@op(10)
def binary(graph):
    x, name = graph.pick(FLOATS, empty=True), graph.choose.choice(sorted(BINARY))
    y = graph.pick(x.kind, lambda y: graph.broadcasts(x, y), empty=True)
    graph.node(name, graph.choose.choice([[x, y], [y, x]]), lambda x, y: [BINARY[name](x, y)], terms=added(name))


@op(8)
def with_constant(graph):
    x, name = graph.pick(FLOATS, empty=True), graph.choose.choice(sorted(BINARY) + ["Div"])
    shape = [size if graph.choose.random() < 0.6 else 1 for size in x.shape[graph.choose.randint(0, len(x.shape)):]]
    values = graph.numbers.standard_normal(shape)
    constant = graph.constant(numpy.asarray(numpy.sign(values + 0.01) * (numpy.abs(values) + 0.5) if name == "Div" else values), x.kind)
    function = {**BINARY, "Div": numpy.divide}[name]
    graph.node(name, [x, constant], lambda x, y: [function(x, y)], terms=added(name), count=2)


@op(3)
def compare(graph):
    x = graph.pick(FLOATS)
    y = graph.pick(x.kind, lambda y: graph.broadcasts(x, y)) if graph.choose.random() < 0.5 else graph.constant(0.3, x.kind)
    name = graph.choose.choice(["Greater", "Less", "GreaterOrEqual", "LessOrEqual"])
    function = {"Greater": numpy.greater, "Less": numpy.less, "GreaterOrEqual": numpy.greater_equal, "LessOrEqual": numpy.less_equal}[name]
    graph.node(name, [x, y], lambda x, y: [function(x, y)])


@op(3)
def logic(graph):
    x = graph.pick("bool", empty=True)
    if graph.choose.random() < 0.3:
        graph.node("Not", [x], lambda x: [~x])
        return
    y = graph.pick("bool", lambda y: graph.broadcasts(x, y))
    name = graph.choose.choice(["And", "Or", "Xor"])
    function = {"And": numpy.logical_and, "Or": numpy.logical_or, "Xor": numpy.logical_xor}[name]
    graph.node(name, [x, y], lambda x, y: [function(x, y)])


@op(4)
def where(graph):
    x = graph.pick()
    if graph.has("bool") and graph.choose.random() < 0.6:
        condition = graph.pick("bool", lambda c: graph.broadcasts(x, c))
    else:
        condition = graph.constant(graph.numbers.integers(0, 2, x.shape[-1:]).astype(bool))
    y = graph.constant(graph.content((), x.kind), x.kind)
    graph.node("Where", graph.choose.choice([[condition, x, y], [condition, y, x]]), lambda c, x, y: [numpy.where(c, x, y)], terms=MOVES)


ELEMENT_TYPES = {name: number for name, (number, _) in onnx_file.ELEMENT_TYPES.items()}
# What a cast to an integer type must not leave: the standard says nothing about the rest.
RANGES = {kind: numpy.iinfo({"u": "uint", "i": "int"}[kind[0]] + kind[1:]) for kind in INTEGERS}


def converted(x, kind):
    """x as the type `kind` has it; floats stay double, whose rounding the bound covers."""
    if kind == "bool":
        return x != 0
    if kind in FLOATS:
        return x.astype(numpy.float64)
    if x.dtype.kind == "f":
        x = numpy.trunc(x)
        if x.size and (x.max() > RANGES[kind].max or x.min() < RANGES[kind].min):
            raise Reject
    return x.astype(RANGES[kind].dtype)


@op(4)
def cast(graph):
    x = graph.pick(empty=True)
    to = graph.choose.choice(["f32"] * 4 + ["i64"] * 3 + ["bool", *FLOATS, *INTEGERS])
    graph.node("Cast", [x], lambda x: [converted(x, to)], kind=to, to=ELEMENT_TYPES[to])


@op(2)
def clip(graph):
    x, (low, high) = graph.pick(FLOATS), sorted(graph.numbers.standard_normal(2))
    graph.node("Clip", [x, graph.constant(low, x.kind), graph.constant(high, x.kind)], lambda x, low, high: [numpy.clip(x, low, high)])


# ---- products ------------------------------------------------------------------------------------

def contract(graph, x, y):
    return graph.node("MatMul", [x, y], lambda x, y: [numpy.matmul(x, y)], terms=magnitudes(lambda x, y: [numpy.matmul(x, y)]), count=x.shape[-1])


@op(12)
def linear(graph):
    x = graph.pick(FLOATS, lambda x: len(x.shape) >= 2, empty=True)
    width = graph.choose.choice([1, 3, 4, 6, 8, 10])
    (product,) = contract(graph, x, graph.weight((x.shape[-1], width), x.kind))
    if graph.choose.random() < 0.5:
        graph.node("Add", [product, graph.weight((width,), x.kind)], lambda x, y: [x + y], terms=added("Add"))


@op(4)
def with_itself(graph):
    x = graph.pick(FLOATS, lambda x: len(x.shape) >= 2)
    order = list(range(len(x.shape)))
    order[-1], order[-2] = order[-2], order[-1]
    (transposed,) = graph.node("Transpose", [x], lambda x: [x.transpose(order)], terms=MOVES, perm=order)
    contract(graph, x, transposed)


@op(3)
def product_of_two(graph):
    x = graph.pick(FLOATS, lambda x: len(x.shape) >= 2)
    y = graph.pick(x.kind, lambda y: len(y.shape) >= 2 and y.shape[-2] == x.shape[-1] and all(a == b for a, b in zip(x.shape[-3::-1], y.shape[-3::-1])))
    contract(graph, x, y)


@op(3)
def gemm(graph):
    x = graph.pick(FLOATS, lambda x: len(x.shape) == 2)
    flip, alpha, beta = graph.choose.randint(0, 1), graph.choose.choice([1.0, 0.5]), graph.choose.choice([1.0, 2.0])
    width = graph.choose.choice([2, 5, 8])
    weight = graph.weight((width, x.shape[1]) if flip else (x.shape[1], width), x.kind)
    bias = graph.weight(graph.choose.choice([(), (width,), (1, width), (x.shape[0], 1)]), x.kind)
    compute = lambda x, w, b: [alpha * (x @ (w.T if flip else w)) + beta * b]
    graph.node("Gemm", [x, weight, bias], compute, terms=magnitudes(compute), count=x.shape[1] + 2, transB=flip, alpha=alpha, beta=beta)


# ---- reductions ----------------------------------------------------------------------------------

def for_sums(graph, where):
    """A float, at times an f16 4,096 times as large: what is added up of it on the way leaves the type's range, the result need not."""
    x = graph.pick("f16" if graph.has("f16") and graph.choose.random() < 0.5 else FLOATS, where)
    if x.kind != "f16" or graph.choose.random() < 0.3:
        return x
    return graph.node("Mul", [x, graph.constant(4096.0, x.kind)], lambda x, y: [x * y])[0]


@op(8)
def reduce(graph):
    x = for_sums(graph, lambda x: x.shape)
    axes = tuple(sorted(graph.choose.sample(range(len(x.shape)), graph.choose.randint(1, len(x.shape)))))
    keep, name = graph.choose.random() < 0.5, graph.choose.choice(["Sum", "Mean", "Max", "Min", "L1", "L2", "SumSquare", "LogSumExp"])
    count = math.prod(x.shape[axis] for axis in axes)
    total = lambda x: numpy.sum(x, axis=axes, keepdims=keep)
    compute = {
        "Sum": total, "Mean": lambda x: total(x) / count, "Max": lambda x: x.max(axis=axes, keepdims=keep), "Min": lambda x: x.min(axis=axes, keepdims=keep),
        "L1": lambda x: total(numpy.abs(x)), "L2": lambda x: numpy.sqrt(total(x * x)), "SumSquare": lambda x: total(x * x),
        "LogSumExp": lambda x: numpy.log(total(numpy.exp(x))),
    }[name]
    terms = {"Sum": lambda x: [total(numpy.abs(x))], "Mean": lambda x: [total(numpy.abs(x)) / count],
             "LogSumExp": lambda x: [1 + numpy.abs(x).max(axis=axes, keepdims=keep)]}.get(name)
    graph.node("Reduce" + name, [x, graph.constant(sizes(axes))], lambda x: [compute(x)], terms=terms, count=count + 4, taken=1, keepdims=int(keep))


@op(5)
def softmax(graph):
    x = graph.pick(FLOATS, lambda x: x.shape)
    axis = axis_of(graph, x)

    def compute(x):
        shifted = numpy.exp(x - x.max(axis=axis, keepdims=True))
        return [shifted / shifted.sum(axis=axis, keepdims=True)]

    # x - max(x) is rounded before exp: its size counts.
    terms = lambda x: [compute(x)[0] * (1 + x.max(axis=axis, keepdims=True) - x)]
    graph.node("Softmax", [x], compute, terms=terms, count=x.shape[axis] + 6, axis=signed(graph, axis, x))


@op(2)
def log_softmax(graph):
    x = graph.pick(FLOATS, lambda x: x.shape)
    axis = axis_of(graph, x)

    def compute(x):
        shifted = x - x.max(axis=axis, keepdims=True)
        return [shifted - numpy.log(numpy.exp(shifted).sum(axis=axis, keepdims=True))]

    terms = lambda x: [numpy.abs(compute(x)[0]) + math.log(x.shape[axis]) + 1]
    graph.node("LogSoftmax", [x], compute, terms=terms, count=x.shape[axis] + 6, axis=signed(graph, axis, x))


@op(2)
def rms_norm(graph):
    if graph.opset < 23:
        raise Reject
    x = for_sums(graph, lambda x: x.shape and x.shape[-1] > 1)
    scale = graph.weight(x.shape[-1:], x.kind)

    def compute(x, scale):
        return [x / numpy.sqrt((x**2).mean(axis=-1, keepdims=True) + EPSILON) * scale]

    graph.node("RMSNormalization", [x, scale], compute, count=x.shape[-1] + 6, epsilon=EPSILON)


@op(4)
def layer_norm(graph):
    x = for_sums(graph, lambda x: x.shape and x.shape[-1] > 1)
    x_kind, (scale, bias) = x.kind, [graph.weight(x.shape[-1:], x.kind) for _ in range(2)]

    def compute(x, scale, bias):
        centered = x - x.mean(axis=-1, keepdims=True)
        return [centered / numpy.sqrt((centered**2).mean(axis=-1, keepdims=True) + EPSILON) * scale + bias]

    def terms(x, scale, bias):
        deviation = numpy.sqrt(x.var(axis=-1, keepdims=True) + EPSILON)
        size = numpy.abs(x) + numpy.abs(x).mean(axis=-1, keepdims=True)
        if x_kind in ("f16", "bf16"):  # statistics are f32's; normal, product and sum are rounded
            return [numpy.abs((x - x.mean(axis=-1, keepdims=True)) / deviation * scale) + numpy.abs(bias)]
        return [size / deviation * (1 + size / deviation) * numpy.abs(scale) + numpy.abs(bias)]

    graph.node("LayerNormalization", [x, scale, bias], compute, terms=terms, count=x.shape[-1] + 6, epsilon=EPSILON)


@op(2)
def cumsum(graph):
    x = graph.pick(FLOATS, lambda x: x.shape)
    axis, reverse, exclusive = axis_of(graph, x), graph.choose.randint(0, 1), graph.choose.randint(0, 1)

    def compute(x):
        x = numpy.flip(x, axis) if reverse else x
        total = numpy.cumsum(x, axis=axis) - (x if exclusive else 0)
        return [numpy.flip(total, axis) if reverse else total]

    terms = lambda x: [numpy.broadcast_to(numpy.abs(x).sum(axis=axis, keepdims=True), x.shape)]
    graph.node("CumSum", [x, graph.constant(numpy.asarray(signed(graph, axis, x), numpy.int64))], compute, terms=terms, count=x.shape[axis], taken=1,
               reverse=reverse, exclusive=exclusive)


# ---- views and moves: of any type ----------------------------------------------------------------

@op(8)
def reshape(graph):
    x = graph.pick()
    shape, rest = [], math.prod(x.shape)
    while rest > 1 and len(shape) < 4:
        shape.append(graph.choose.choice([size for size in range(1, rest + 1) if rest % size == 0]))
        rest //= shape[-1]
    shape += [rest] if rest > 1 else []
    graph.choose.shuffle(shape)
    graph.node("Reshape", [x, graph.constant(sizes(shape))], lambda x: [x.reshape(shape)], terms=MOVES, taken=1)


@op(4)
def split_heads(graph):
    x = graph.pick("f32", lambda x: len(x.shape) == 3)
    heads = graph.choose.choice([size for size in (2, 3, 4, 5) if x.shape[2] % size == 0] or [1])
    shape = [x.shape[0], x.shape[1], heads, x.shape[2] // heads]
    (apart,) = graph.node("Reshape", [x, graph.constant(sizes([0, 0, heads, -1]))], lambda x: [x.reshape(shape)], terms=MOVES, taken=1)
    graph.node("Transpose", [apart], lambda x: [x.transpose(0, 2, 1, 3)], terms=MOVES, perm=[0, 2, 1, 3])


@op(5)
def transpose(graph):
    x = graph.pick(where=lambda x: len(x.shape) >= 2, empty=True)
    order = graph.choose.sample(range(len(x.shape)), len(x.shape))
    graph.node("Transpose", [x], lambda x: [x.transpose(order)], terms=MOVES, perm=order)


@op(5)
def slice_(graph):
    x = graph.pick(where=lambda x: x.shape)
    axis, step = axis_of(graph, x), graph.choose.choice([1, 1, 1, 2, -1, -2])
    first, end = sorted(graph.choose.sample(range(x.shape[axis] + 1), 2))
    first = end if graph.has_empty and graph.choose.random() < 0.5 and step > 0 else first
    first, end = (first, end) if step > 0 else (end - 1, first - 1 if first else -(2**62))
    index = tuple(slice(first, end if end > -(2**62) else None, step) if each == axis else slice(None) for each in range(len(x.shape)))
    arguments = [graph.constant(sizes([each])) for each in (first, end, signed(graph, axis, x), step)]
    graph.node("Slice", [x, *arguments], lambda x: [x[index]], terms=MOVES, taken=1)


@op(4)
def concat(graph):
    x = graph.pick(where=lambda x: x.shape, empty=True)
    axis = axis_of(graph, x)
    fits = lambda y: len(y.shape) == len(x.shape) and all(a == b for each, (a, b) in enumerate(zip(x.shape, y.shape)) if each != axis)
    parts = [x] + [graph.pick(x.kind, fits, empty=True) for _ in range(graph.choose.randint(1, 2))]
    graph.node("Concat", parts, lambda *parts: [numpy.concatenate(parts, axis=axis)], terms=MOVES, axis=signed(graph, axis, x))


@op(4)
def split(graph):
    x = graph.pick(where=lambda x: x.shape)
    axis = axis_of(graph, x)
    cuts = sorted(graph.choose.sample(range(1, x.shape[axis]), min(graph.choose.randint(1, 2), x.shape[axis] - 1))) if x.shape[axis] > 1 else []
    if not cuts:
        raise Reject
    lengths = numpy.diff([0, *cuts, x.shape[axis]])
    graph.node("Split", [x, graph.constant(sizes(lengths))], lambda x: numpy.split(x, cuts, axis=axis), terms=MOVES, taken=1, axis=signed(graph, axis, x))


@op(3)
def pad(graph):
    x = graph.pick(FLOATS, lambda x: x.shape)
    rank = len(x.shape)
    amounts = [graph.choose.randint(0, 2) for _ in range(2 * rank)]
    value = graph.constant(graph.choose.choice([0.0, 1.5]), x.kind)
    compute = lambda x, value: [numpy.pad(x, list(zip(amounts[:rank], amounts[rank:])), constant_values=value.item())]
    graph.node("Pad", [x, graph.constant(sizes(amounts)), value], compute, terms=MOVES, skipped=[1])


@op(3)
def expand(graph):
    x = graph.pick(where=lambda x: 1 in x.shape)
    shape = [3 if size == 1 and graph.choose.random() < 0.7 else size for size in x.shape]
    graph.node("Expand", [x, graph.constant(sizes(shape))], lambda x: [numpy.broadcast_to(x, shape).copy()], terms=MOVES, taken=1)


@op(2)
def tile(graph):
    x = graph.pick(where=lambda x: x.shape)
    times = [graph.choose.choice([1, 1, 2]) for _ in x.shape]
    graph.node("Tile", [x, graph.constant(sizes(times))], lambda x: [numpy.tile(x, times)], terms=MOVES, taken=1)


@op(2)
def squeeze(graph):
    x = graph.pick(where=lambda x: 1 in x.shape)
    axis = x.shape.index(1)
    graph.node("Squeeze", [x, graph.constant(sizes([axis]))], lambda x: [x.squeeze(axis)], terms=MOVES, taken=1)


@op(2)
def unsqueeze(graph):
    x = graph.pick(where=lambda x: len(x.shape) < 5, empty=True)
    axis = graph.choose.randint(0, len(x.shape))
    graph.node("Unsqueeze", [x, graph.constant(sizes([axis]))], lambda x: [numpy.expand_dims(x, axis)], terms=MOVES, taken=1)


@op(4)
def gather(graph):
    x = graph.pick(where=lambda x: x.shape)
    axis = axis_of(graph, x)
    indices = graph.constant(graph.numbers.integers(-x.shape[axis], x.shape[axis], graph.choose.choice([(), (2,), (3,), (2, 2)])))
    graph.node("Gather", [x, indices], lambda x, indices: [numpy.take(x, indices, axis=axis)], terms=MOVES, axis=signed(graph, axis, x))


@op(2)
def embedding(graph):
    """Rows of a table by integers that the graph computes."""
    ids, rows = graph.pick("i64"), graph.choose.choice([3, 7, 16])
    (ids,) = graph.node("Mod", [ids, graph.constant(numpy.asarray(rows, numpy.int64))], lambda x, y: [numpy.mod(x, y)])
    graph.node("Gather", [graph.weight((rows, graph.choose.choice([4, 5, 8]))), ids], lambda table, ids: [table[ids]], terms=MOVES)
