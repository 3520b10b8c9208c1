"""If and Loop whose condition and trip count are known, functions, and Einsum. Bodies and functions use the same names as each other, and their own weights by them."""
import math

import numpy

import onnx_file
from ops import magnitudes, op
from values import FLOATS, MOVES


def port(name, value):
    return name, value.kind, value.shape


def inner_weight(graph, value, kind="f32"):
    """A number or a row that the value broadcasts with, as an initializer of a body has it: every body calls its own `weight`."""
    return numpy.asarray(graph.numbers.standard_normal(graph.choose.choice([(), value.shape[-1:], value.shape[-1:]]))).astype({"f32": numpy.float32, "f64": numpy.float64}[kind])


@op(3)
def condition(graph):
    """Each branch reads a value of the graph around it, and a weight of its own."""
    x = graph.pick(("f32", "f64"))
    y = graph.pick(x.kind)
    holds, weights = graph.choose.random() < 0.5, [inner_weight(graph, value, x.kind) for value in (x, y)]

    def branch(op, value, weight):
        shape = numpy.broadcast_shapes(value.shape, weight.shape)
        nodes = [onnx_file.node("Mul", [value.name, "weight"], ["scaled"]), onnx_file.node(op, ["scaled"], ["out"])]
        return onnx_file.graph(nodes, [], [("out", value.kind, shape)], [("weight", weight)])

    compute = lambda c, x, y: [numpy.tanh(x * weights[0].astype(float)) if holds else -(y * weights[1].astype(float))]
    graph.node("If", [graph.constant(numpy.asarray(holds))], compute, count=6, captured=[x, y],
               then_branch=branch("Tanh", x, weights[0]), else_branch=branch("Neg", y, weights[1]))


def loop_body(v, x, weight, inner=None):
    """v = tanh(v * weight + x), what v was is scanned. `inner`: the body of a loop of one round that does it; what it makes is scaled by the outer `weight`."""
    nodes = [("Identity", ["on"], ["on.out"]), ("Mul", ["v", "weight"], ["scaled"]), ("Add", ["scaled", x.name], ["sum"]), ("Tanh", ["sum"], ["v.out"]),
             ("Identity", ["v"], ["v.scan"])]
    if inner:
        nodes[1:4] = [("Loop", ["one", "", "v"], ["scaled"], inner), ("Mul", ["scaled", "weight"], ["v.out"])]
    made = [onnx_file.node(*each[:3], **({"body": each[3]} if len(each) > 3 else {})) for each in nodes]
    return onnx_file.graph(made, [("i", "i64", []), ("on", "bool", []), port("v", v)], [("on.out", "bool", []), port("v.out", v), port("v.scan", v)],
                           [("weight", weight), *([("one", numpy.asarray(1, numpy.int64))] if inner else [])])


@op(4)
def loop(graph):
    """A known number of rounds, none at times; some in one another, whose names hide those around."""
    v = graph.pick("f32", lambda v: len(v.shape) >= 2)
    x = graph.pick("f32", lambda x: x.shape == v.shape)
    for _ in range(graph.choose.choice([1, 2])):  # bodies beside each other, whose weights are others by the same name
        rounds, weight, outer = graph.choose.choice([0, 1, 1, 2, 2, 3]), inner_weight(graph, v), numpy.float32(1)
        body = loop_body(v, x, weight)
        if graph.choose.random() < 0.3:
            outer = inner_weight(graph, v)
            nodes = [("Mul", ["u", "weight"], ["scaled"]), ("Add", ["scaled", x.name], ["sum"]), ("Tanh", ["sum"], ["u.out"]), ("Identity", ["ok"], ["ok.out"])]
            inner = onnx_file.graph([onnx_file.node(*each) for each in nodes], [("j", "i64", []), ("ok", "bool", []), port("u", v)],
                                    [("ok.out", "bool", []), port("u.out", v)], [("weight", weight)])
            body = loop_body(v, x, outer, inner)

        def compute(trips, on, v, x, rounds=rounds, weight=weight.astype(float), outer=outer.astype(float)):
            scanned = []
            for _ in range(rounds):
                scanned.append(v)
                v = numpy.tanh(v * weight + x) * outer
            return [v, numpy.stack(scanned) if scanned else numpy.zeros((0, *v.shape))]

        def terms(trips, on, v, x, rounds=rounds, weight=weight, outer=outer):
            size = (rounds * (1 + numpy.abs(v) + numpy.abs(x))) * ((1 + numpy.abs(weight).max()) * (1 + numpy.abs(outer).max())) ** rounds
            return [size, numpy.broadcast_to(size, (rounds, *v.shape))]

        operands = [graph.constant(numpy.asarray(rounds, numpy.int64)), graph.constant(numpy.asarray(True)), v]
        v, _ = graph.node("Loop", operands, compute, terms=terms, count=4 * rounds + 4, captured=[x], body=body)


@op(2)
def scan(graph):
    """s = tanh(s * weight + row) along dim 1."""
    x = graph.pick("f32", lambda x: len(x.shape) >= 2 and x.shape[1])
    state = graph.constant(graph.content((x.shape[0], *x.shape[2:])))
    weight = inner_weight(graph, state)
    nodes = [("Mul", ["s", "weight"], ["scaled"]), ("Add", ["scaled", "row"], ["sum"]), ("Tanh", ["sum"], ["s.out"]), ("Neg", ["s.out"], ["row.out"])]
    ports = [port(name, state) for name in ("s", "row", "s.out", "row.out")]
    body = onnx_file.graph([onnx_file.node(*each) for each in nodes], ports[:2], ports[2:], [("weight", weight)])

    def compute(s, x):
        rows = []
        for row in numpy.moveaxis(x, 1, 0):
            s = numpy.tanh(s * weight.astype(float) + row)
            rows.append(-s)
        return [s, numpy.stack(rows)]

    def terms(s, x):
        size = x.shape[1] * (1 + numpy.abs(s) + numpy.abs(x).max(axis=1)) * (1 + numpy.abs(weight).max()) ** x.shape[1]
        return [size, numpy.broadcast_to(size, (x.shape[1], *s.shape))]

    graph.node("Scan", [state, x], compute, terms=terms, count=4 * x.shape[1], body=body, num_scan_inputs=1, scan_input_axes=[1])


@op(3)
def function(graph):
    """One of two functions that call a third; names within them are those of the graph around."""
    x = graph.pick("f32")
    y = graph.pick("f32", lambda y: graph.broadcasts(x, y))
    name = graph.choose.choice(["First", "Second"])
    node = onnx_file.node
    call = lambda inputs, output: node("Third", inputs, [output], domain="local")
    bodies = {
        "First": lambda opset: onnx_file.function("First", ["x0", "v0"], ["v1"], [node("Tanh", ["x0"], ["c0"]), call(["c0", "v0"], "v1")], "local", opset),
        "Second": lambda opset: onnx_file.function("Second", ["v0", "x0"], ["c0"], [call(["v0", "x0"], "v1"), call(["v1", "x0"], "c0")], "local", opset),
        "Third": lambda opset: onnx_file.function("Third", ["v1", "x0"], ["v0"], [node("Mul", ["v1", "x0"], ["c0"]), node("Sub", ["c0", "v1"], ["v0"])], "local", opset),
    }
    graph.functions.update({each: bodies[each] for each in (name, "Third")})
    third = lambda x, y: x * y - x
    compute = (lambda x, y: [third(numpy.tanh(x), y)]) if name == "First" else (lambda x, y: [third(third(x, y), y)])
    graph.node(name, [x, y], compute, terms=lambda x, y: [(1 + numpy.abs(x)) * (1 + numpy.abs(y)) ** 2], count=6)


@op(4)
def einsum(graph):
    """x by a weight that has some of its dims and a new one; what is in neither result nor weight is summed."""
    choose, letters = graph.choose, "abcdef"
    x = graph.pick(("f32", "f32", "f16", "f64"), lambda x: 0 < len(x.shape) <= 4)
    own = letters[: len(x.shape)]
    shared = "".join(choose.sample(own, choose.randint(0, len(own))))
    weight_letters = shared + choose.choice(["z", ""])
    size = dict(zip(own, x.shape), z=3)
    weight = graph.weight([size[letter] for letter in weight_letters], x.kind)
    everything = own + weight_letters.replace(shared, "", 1) if shared else own + weight_letters
    result = "".join(choose.sample(everything, choose.randint(0, len(everything))))
    left, right, out = (own, weight_letters, result)
    if own[0] not in weight_letters and own[0] in result and choose.random() < 0.3:  # the first dim by dots
        left, out = "..." + own[1:], "..." + result.replace(own[0], "")
        result = own[0] + result.replace(own[0], "")
    compute = lambda x, w: [numpy.asarray(numpy.einsum(f"{own},{weight_letters}->{result}", x, w))]
    summed = math.prod(size[letter] for letter in everything if letter not in result)
    graph.node("Einsum", [x, weight], compute, terms=magnitudes(compute), count=summed + 1, equation=f"{left},{right}->{out}")


@op(1)
def diagonal(graph):
    x = graph.pick("f32", lambda x: len(x.shape) >= 2 and x.shape[-1] == x.shape[-2])
    graph.node("Einsum", [x], lambda x: [numpy.einsum("...ii->...i", x)], equation="...ii->...i", terms=MOVES)
