"""Quantisation: what rounds to whole numbers is computed as the standard says it, in f32."""
import numpy

from ops import RANGES, axis_of, op, signed
from values import MOVES, Reject

BYTES = ("u8", "i8")


def saturated(real, kind):
    """round(real), which must not be near a half, in the range of the type."""
    if (numpy.abs(real - numpy.floor(real) - 0.5) < 1e-4).any():
        raise Reject
    limits = RANGES[kind]
    return numpy.clip(numpy.rint(real), limits.min, limits.max).astype(limits.dtype)


def scales(graph, shape, axis, kind):
    """(scale, zero point, as they broadcast): one number, or one for each index of the axis."""
    per_axis = graph.choose.random() < 0.4
    size = (shape[axis],) if per_axis else ()
    scale = graph.constant(graph.numbers.uniform(0.02, 0.2, size))
    zero = graph.constant(graph.numbers.integers(-20 if kind[0] == "i" else 100, 21 if kind[0] == "i" else 140, size).astype(RANGES[kind].dtype))
    along = lambda each: each.reshape([-1 if place == axis else 1 for place in range(len(shape))]) if per_axis else each
    return scale, zero, along


@op(4)
def quantize(graph):
    x = graph.pick("f32", lambda x: x.shape)
    axis, kind = axis_of(graph, x), graph.choose.choice(BYTES if graph.opset < 21 else (*BYTES, "u16", "i16"))
    scale, zero, along = scales(graph, x.shape, axis, kind)
    compute = lambda x, scale, zero: [saturated(x / along(scale) + along(zero), kind)]
    (whole,) = graph.node("QuantizeLinear", [x, scale, zero], compute, axis=signed(graph, axis, x))
    if graph.choose.random() < 0.6:
        graph.node("DequantizeLinear", [whole, scale, zero], lambda x, scale, zero: [(x.astype(numpy.float64) - along(zero)) * along(scale)], count=3,
                   axis=signed(graph, axis, x))


@op(2)
def dequantize(graph):
    x = graph.pick(("u8", "i8", "i32"), lambda x: x.shape)
    axis = axis_of(graph, x)
    scale, zero, along = scales(graph, x.shape, axis, x.kind)
    compute = lambda x, scale, *zero: [(x.astype(numpy.float64) - (along(zero[0]) if zero else 0)) * along(scale)]
    graph.node("DequantizeLinear", [x, scale] + ([zero] if x.kind != "i32" else []), compute, count=3, axis=signed(graph, axis, x))


@op(2)
def dynamic(graph):
    x = graph.pick("f32", lambda x: x.shape)

    def compute(x):
        high, low = numpy.maximum(x.max(), 0), numpy.minimum(x.min(), 0)
        if high == low:
            raise Reject
        scale = (high - low) / 255
        zero = saturated(numpy.clip(-low / scale, 0, 255), "u8")
        return [saturated(x / scale + zero, "u8"), numpy.asarray(scale), zero]

    graph.node("DynamicQuantizeLinear", [x], compute, count=3)


@op(4)
def product_of_integers(graph):
    """MatMulInteger, of bytes that the graph made or of those that a quantisation makes on the spot."""
    x = graph.pick((*BYTES, "f32"), lambda x: len(x.shape) >= 2)
    if x.kind == "f32":
        compute = lambda x, scale, zero: [saturated(x / scale + zero, "u8")]
        (x,) = graph.node("QuantizeLinear", [x, graph.constant(0.05), graph.constant(numpy.uint8(128))], compute)
    width = graph.choose.choice([1, 3, 4, 6])
    kind = graph.choose.choice(BYTES)
    limits = RANGES[kind]
    weight = graph.constant(graph.numbers.integers(limits.min, limits.max + 1, (x.shape[-1], width)).astype(limits.dtype))
    zeros = [graph.constant(numpy.asarray(3, x.data.dtype)), graph.constant(numpy.asarray(graph.numbers.integers(0, 9, graph.choose.choice([(), (width,)]))).astype(limits.dtype))]
    if graph.choose.random() < 0.5:
        compute = lambda x, w, x_zero, w_zero: [((x.astype(numpy.int64) - x_zero) @ (w.astype(numpy.int64) - w_zero)).astype(numpy.int32)]
        graph.node("MatMulInteger", [x, weight, *zeros], compute)
        return
    x_scale, w_scale, y_scale = (graph.constant(value) for value in (0.05, 0.02, 0.9))
    w_zero = graph.constant(numpy.asarray(2, limits.dtype))
    to = x.kind
    zero = graph.constant(numpy.asarray(1, x.data.dtype))

    def compute(x, x_scale, x_zero, w, w_scale, w_zero, y_scale, y_zero):
        product = (x.astype(numpy.int64) - x_zero) @ (w.astype(numpy.int64) - w_zero)
        return [saturated(product * (x_scale * w_scale / y_scale) + y_zero, to)]

    graph.node("QLinearMatMul", [x, x_scale, zeros[0], weight, w_scale, w_zero, y_scale, zero], compute)
