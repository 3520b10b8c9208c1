"""If and Loop whose condition and trip count are known, and Einsum."""
import math

import numpy

import onnx_file
from ops import magnitudes, op
from values import FLOATS, MOVES


def port(name, value):
    return name, value.kind, value.shape


@op(3)
def condition(graph):
    """Each branch reads a value of the graph around it."""
    x = graph.pick(FLOATS)
    y = graph.pick(x.kind)
    holds = graph.choose.random() < 0.5
    branch = lambda name, value, result: onnx_file.graph([onnx_file.node(name, [value.name], [result])], [], [port(result, value)])
    compute = lambda c, x, y: [numpy.tanh(x) if holds else numpy.negative(y)]
    graph.node("If", [graph.constant(numpy.asarray(holds))], compute, count=4, captured=[x, y],
               then_branch=branch("Tanh", x, "then.out"), else_branch=branch("Neg", y, "else.out"))


@op(3)
def loop(graph):
    """v = tanh(v * c + x), a known number of times; what v was is scanned."""
    v = graph.pick("f32")
    x = graph.pick("f32", lambda x: x.shape == v.shape)
    rounds = graph.choose.choice([0, 1, 2, 3] if graph.has_empty else [1, 2, 3])
    factor = numpy.float32(0.5)
    nodes = [("Identity", ["on"], ["on.out"]), ("Mul", ["v", "factor"], ["scaled"]), ("Add", ["scaled", x.name], ["sum"]),
             ("Tanh", ["sum"], ["v.out"]), ("Identity", ["v"], ["v.scan"])]
    body = onnx_file.graph([onnx_file.node(*each) for each in nodes], [("i", "i64", []), ("on", "bool", []), port("v", v)],
                           [("on.out", "bool", []), port("v.out", v), port("v.scan", v)], [("factor", factor)])

    def compute(trips, on, v, x):
        scanned = []
        for _ in range(rounds):
            scanned.append(v)
            v = numpy.tanh(v * 0.5 + x)
        return [v, numpy.stack(scanned) if scanned else numpy.zeros((0, *v.shape))]

    operands = [graph.constant(numpy.asarray(rounds, numpy.int64)), graph.constant(numpy.asarray(True)), v]
    terms = lambda trips, on, v, x: [rounds * (1 + numpy.abs(v) + numpy.abs(x)), numpy.broadcast_to(rounds * (1 + numpy.abs(v) + numpy.abs(x)), (rounds, *v.shape))]
    graph.node("Loop", operands, compute, terms=terms, count=4 * rounds + 4, captured=[x], body=body)


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
