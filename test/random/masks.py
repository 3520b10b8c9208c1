"""What hides numbers: masks that hide whole rows, infinities and NaN behind them, large common offsets, rows of zeros, ties."""
import math

import numpy

from ops import EPSILON, Steps, axis_of, op, signed, sizes
from values import FLOATS, LOWEST, Reject

NOT_A_NUMBER = float("nan")


def hiding(graph, x):
    """A mask that x broadcasts with, of which some rows may see nothing; a constant or an input."""
    choose = graph.choose
    shape = choose.choice([x.shape[-1:], x.shape[-2:], x.shape, x.shape, (*x.shape[:-1], 1)])
    sees = graph.numbers.integers(0, 2, shape).astype(bool)
    if len(shape) > 1 and shape[-2] and choose.random() < 0.6:
        sees[..., choose.randrange(shape[-2]), :] = False
    elif choose.random() < 0.1:
        sees[...] = False
    as_input = shape == x.shape and choose.random() < 0.4
    return graph.given(sees, "bool") if as_input else graph.constant(sees)


@op(6)
def masked_softmax(graph):
    """softmax of Where(mask, x, low), of x plus a bias that is low where x is hidden, or of what hides NaN and infinities as well."""
    choose = graph.choose
    x = graph.pick(("f32", "f32", "f64", "f16"), lambda x: len(x.shape) >= 2 and x.shape[-1] > 1)
    mask, form = hiding(graph, x), choose.choice(["where", "where", "add", "special"])
    low = choose.choice([-numpy.inf, LOWEST, -1e30]) if x.kind == "f32" else -numpy.inf
    guarded = low != -numpy.inf or choose.random() < 0.7
    steps, operands = Steps(graph), [x, mask]
    kind = x.kind
    constant = lambda value: operands.append(graph.constant(value, kind)) or operands[-1]
    scores = x
    if form == "special":  # behind the mask, which takes them out again
        behind = graph.numbers.choice([0, 0, numpy.inf, -numpy.inf, NOT_A_NUMBER, 1e31 if kind == "f32" else 3.0], x.shape)
        operands.append(graph.given(numpy.where(numpy.broadcast_to(mask.data, x.shape), 0, behind), kind))
        scores = steps.add("Add", scores, operands[-1])
    if form == "add":
        operands.append(graph.constant(numpy.where(mask.data, 0.0, low), kind))
        scores = steps.add("Add", scores, operands[-1])
    else:
        scores = steps.add("Where", mask, scores, constant(low))
    weights = steps.add("Softmax", scores, axis=-1, last=low != -numpy.inf or not guarded)
    if low == -numpy.inf and guarded:
        steps.add("Where", steps.add("IsNaN", weights), constant(0.0), weights, last=True)

    def compute(x, mask, *rest):
        sees = numpy.broadcast_to(mask, x.shape)
        some = sees.any(axis=-1, keepdims=True)
        shifted = numpy.exp(numpy.where(sees, x - numpy.where(sees, x, -numpy.inf).max(axis=-1, keepdims=True), -numpy.inf))
        none = 1 / x.shape[-1] if low != -numpy.inf else 0 if guarded else NOT_A_NUMBER
        return [numpy.where(some, shifted / numpy.where(some, shifted.sum(axis=-1, keepdims=True), 1), none)]

    def terms(x, mask, *rest):
        y, reach = compute(x, mask)[0], x.max(axis=-1, keepdims=True) - x.min(axis=-1, keepdims=True)
        return [numpy.abs(y) * (1 + reach)]

    if form == "add":
        operands.remove(mask)
        hidden = mask.data
        run, size = (lambda x, *rest: compute(x, hidden)), (lambda x, *rest: terms(x, hidden))
    else:
        run, size = compute, terms
    graph.node("Softmax", operands, run, terms=size, count=x.shape[-1] + 8, wild=True, steps=steps)


BEHIND = {"Exp": numpy.exp, "Tanh": numpy.tanh, "Relu": lambda x: numpy.maximum(x, 0), "Neg": numpy.negative, "Abs": numpy.abs, "Sigmoid": lambda x: 1 / (1 + numpy.exp(-x))}


@op(4)
def specials_behind(graph):
    """Infinities and NaN that a select takes out again: put there by one, or made by a function beyond where it is defined."""
    choose = graph.choose
    x = graph.pick("f32", lambda x: x.shape)
    steps, fill = Steps(graph), graph.constant(choose.choice([0.0, 1.5]))
    form = choose.choice(["put", "log", "sqrt", "divide"])
    if form == "put":
        mask, name = hiding(graph, x) if len(x.shape) > 1 else graph.constant(graph.content(x.shape, "bool")), choose.choice(sorted(BEHIND))
        special = graph.constant(choose.choice([numpy.inf, -numpy.inf, NOT_A_NUMBER]))
        steps.add("Where", mask, steps.add(name, steps.add("Where", mask, x, special)), fill, last=True)
        graph.node("Where", [x, mask, special, fill], lambda x, mask, special, fill: [numpy.where(mask, BEHIND[name](x), fill)], count=5, steps=steps)
        return
    least, zero = graph.constant(0.25), graph.constant(0.0)
    holds = steps.add("Greater", x, least)
    if form == "divide":
        behind = steps.add("Div", least, steps.add("Where", holds, x, zero))
    else:
        behind = steps.add(form.capitalize(), x)
    steps.add("Where", holds, behind, fill, last=True)
    function = {"log": numpy.log, "sqrt": numpy.sqrt, "divide": lambda x: 0.25 / x}[form]
    operands = [x, least, fill] + ([zero] if form == "divide" else [])
    graph.node("Where", operands, lambda x, least, fill, *rest: [numpy.where(x > least, function(numpy.maximum(x, least)), fill)], terms=lambda x, *rest: [1 + numpy.abs(x)],
               count=4, steps=steps)


@op(3)
def wild(graph):
    """A value that has NaN and infinities, told apart or replaced; at times as it is."""
    x = graph.pick(FLOATS, lambda x: not x.is_finite, wild=True)
    name = graph.choose.choice(["IsNaN", "IsInf", "Where", "Neg", "Transpose", "Concat"])
    if name in ("IsNaN", "IsInf"):
        graph.node(name, [x], lambda x: [numpy.isnan(x) if name == "IsNaN" else numpy.isinf(x)])
    elif name == "Where":
        steps, zero = Steps(graph), graph.constant(0.0, x.kind)
        steps.add("Where", steps.add("Equal", x, x), x, zero, last=True)
        graph.node("Where", [x, zero], lambda x, zero: [numpy.where(x == x, x, 0)], wild=True, steps=steps)
    elif name == "Neg":
        graph.node("Neg", [x], lambda x: [-x], wild=True)
    elif name == "Transpose":
        order = graph.choose.sample(range(len(x.shape)), len(x.shape))
        graph.node("Transpose", [x], lambda x: [x.transpose(order)], wild=True, perm=order)
    elif x.shape:
        graph.node("Concat", [x, x], lambda x, y: [numpy.concatenate([x, y], 0)], wild=True, axis=0)


@op(6)
def offset(graph):
    """Whole numbers with a large common offset, of which f32 loses nothing, and what must not lose it either."""
    choose = graph.choose
    x = graph.pick("f32", lambda x: len(x.shape) >= 2 and 1 < x.shape[1])
    if choose.random() < 0.5:
        (x,) = graph.node("Mul", [x, graph.constant(4.0)], lambda x, y: [x * y])
    (x,) = graph.node("Round", [x], lambda x: [numpy.round(x)])
    (x,) = graph.node("Add", [x, graph.constant(choose.choice([1e3, -1e4, 1e6, 1e7]))], lambda x, y: [x + y])
    if x.bound.any():
        raise Reject
    axis, name = 1, choose.choice(["Softmax", "LogSoftmax", "by hand", "ReduceLogSumExp", "SoftmaxCrossEntropyLoss", "SoftmaxCrossEntropyLoss"])

    def logs(x):
        shifted = x - x.max(axis=axis, keepdims=True)
        return shifted - numpy.log(numpy.exp(shifted).sum(axis=axis, keepdims=True))

    large = lambda x: numpy.abs(logs(x)) + math.log(x.shape[axis]) + 1
    count = x.shape[axis] + 8
    if name == "Softmax":
        graph.node(name, [x], lambda x: [numpy.exp(logs(x))], terms=lambda x: [numpy.exp(logs(x)) * large(x)], count=count, axis=axis)
    elif name == "LogSoftmax":
        graph.node(name, [x], lambda x: [logs(x)], terms=lambda x: [large(x)], count=count, axis=axis)
    elif name == "by hand":
        steps, axes = Steps(graph), graph.constant(sizes([axis]))
        shifted = steps.add("Sub", x, steps.add("ReduceMax", x, axes))
        steps.add("Sub", shifted, steps.add("Log", steps.add("ReduceSum", steps.add("Exp", shifted), axes)), last=True)
        graph.node("LogSoftmax", [x, axes], lambda x: [logs(x)], terms=lambda x: [large(x)], count=count, taken=1, steps=steps)
    elif name == "ReduceLogSumExp":
        total = lambda x: [x.max(axis=axis) + numpy.log(numpy.exp(x - x.max(axis=axis, keepdims=True)).sum(axis=axis))]
        graph.node(name, [x, graph.constant(sizes([axis]))], total, count=count, taken=1, keepdims=0)
    else:
        cross_entropy(graph, x, logs, large, count)


def cross_entropy(graph, x, logs, large, count):
    """As the standard's op, or as a gather from log(softmax) that is spelled out."""
    choose = graph.choose
    labels = graph.numbers.integers(0, x.shape[1], (x.shape[0], *x.shape[2:]))
    ignored = choose.random() < 0.3
    if ignored:
        labels[graph.numbers.random(labels.shape) < 0.3] = -100
    counted = labels >= 0
    if not counted.any():
        raise Reject
    how = choose.choice(["mean", "sum", "none"])
    labels = graph.given(labels) if choose.random() < 0.5 else graph.constant(labels)

    def losses(values, labels):
        each = numpy.where(counted, numpy.take_along_axis(values, numpy.expand_dims(numpy.maximum(labels, 0), 1), 1).squeeze(1), 0)
        return [numpy.asarray({"mean": each.sum() / counted.sum(), "sum": each.sum(), "none": each}[how])]

    graph.node("SoftmaxCrossEntropyLoss", [x, labels], lambda x, labels: losses(-logs(x), labels), terms=lambda x, labels: losses(large(x), labels),
               count=count + (labels.data.size if how != "none" else 0), reduction=how, **({"ignore_index": -100} if ignored or choose.random() < 0.5 else {}))


@op(5)
def zero_rows(graph):
    """Rows of zeros before what divides by their length."""
    choose = graph.choose
    x = graph.pick("f32", lambda x: len(x.shape) >= 2 and x.shape[-1] > 1)
    rows = graph.constant(graph.numbers.integers(0, 2, (*x.shape[-2:-1], 1)).astype(float))
    (x,) = graph.node("Mul", [x, rows], lambda x, rows: [x * rows])
    name, n = choose.choice(["ReduceL2", "ReduceSumSquare", "normalize", "LayerNormalization", "RMSNormalization", "Sqrt"]), x.shape[-1]
    length = lambda x: numpy.sqrt((x * x).sum(axis=-1, keepdims=True))
    if name in ("ReduceL2", "ReduceSumSquare"):
        compute = lambda x: [length(x) if name == "ReduceL2" else (x * x).sum(axis=-1, keepdims=True)]
        graph.node(name, [x, graph.constant(sizes([-1]))], compute, count=n + 4, taken=1)
    elif name == "Sqrt":
        graph.node("Sqrt", [graph.node("Abs", [x], lambda x: [numpy.abs(x)])[0]], lambda x: [numpy.sqrt(x)], count=2)
    elif name == "normalize":  # F.normalize
        steps, axes, least = Steps(graph), graph.constant(sizes([-1])), graph.constant(1e-12)
        norm = steps.add("ReduceL2", x, axes)
        norm = steps.add("Clip", norm, least) if choose.random() < 0.5 else steps.add("Max", norm, least)
        steps.add("Div", x, norm, last=True)
        graph.node("Div", [x, axes, least], lambda x, least: [x / numpy.maximum(length(x), least)], count=n + 6, skipped=[1], steps=steps)
    elif name == "LayerNormalization" or graph.opset >= 23:
        scale = graph.weight(x.shape[-1:])
        center = (lambda x: x - x.mean(axis=-1, keepdims=True)) if name == "LayerNormalization" else (lambda x: x)
        compute = lambda x, scale: [center(x) / numpy.sqrt((center(x) ** 2).mean(axis=-1, keepdims=True) + EPSILON) * scale]
        terms = lambda x, scale: [(numpy.abs(x) + numpy.abs(x).mean(axis=-1, keepdims=True)) * (1 + numpy.abs(x).max()) / math.sqrt(EPSILON) * numpy.abs(scale)]
        graph.node(name, [x, scale], compute, terms=terms, count=n + 6, epsilon=EPSILON)


@op(3)
def equal_numbers(graph):
    """Few different numbers, so that orders, extremes and selects meet ties."""
    x = graph.pick(("f32", "f32", "f16"))
    (x,) = graph.node("Round", [x], lambda x: [numpy.round(x)])
    if x.shape and graph.choose.random() < 0.5:
        axis = axis_of(graph, x)
        name = graph.choose.choice(["ReduceMax", "ReduceMin", "Softmax"])
        if name == "Softmax":
            graph.node("Sub", [x, graph.node("ReduceMax", [x, graph.constant(sizes([axis]))], lambda x: [x.max(axis=axis, keepdims=True)], taken=1)[0]], lambda x, y: [x - y])
        else:
            function = {"ReduceMax": numpy.max, "ReduceMin": numpy.min}[name]
            graph.node(name, [x, graph.constant(sizes([signed(graph, axis, x)]))], lambda x: [function(x, axis=axis, keepdims=True)], taken=1)
