"""Nodes over [batch, channel, spatial..]: convolutions, pools, norms and resizes of random graphs, as ops.py has the others."""
import itertools
import math

import numpy

from ops import EPSILON, magnitudes, op, sizes
from values import Reject


def image(graph):
    return graph.pick("f32", lambda x: len(x.shape) in (3, 4))


class Window:
    """A random sliding window over the spatial dims of x."""

    def __init__(self, graph, x, most=3, dilates=True):
        choose, dims, self.dilates = graph.choose, x.shape[2:], dilates
        self.sizes = [choose.randint(1, most) for _ in dims]
        self.strides = [choose.choice([1, 1, 2, 3]) for _ in dims]
        self.dilations = [choose.choice([1, 1, 2]) if dilates else 1 for _ in dims]
        self.pads = [choose.randint(0, size - 1) for size in self.sizes * 2]
        rank = len(dims)
        self.padding = [(0, 0), (0, 0), *zip(self.pads[:rank], self.pads[rank:])]
        extents = [(size - 1) * dilation + 1 for size, dilation in zip(self.sizes, self.dilations)]
        self.counts = [(dim + low + high - extent) // stride + 1 for dim, (low, high), extent, stride in zip(dims, self.padding[2:], extents, self.strides)]
        if min(self.counts) < 1:
            raise Reject

    def attributes(self):
        dilations = {"dilations": self.dilations} if self.dilates else {}
        return dict(kernel_shape=self.sizes, strides=self.strides, pads=self.pads, **dilations)

    def parts(self, x, fill=0.0):
        """(offset, x under it at all positions) for each offset in the window."""
        x = numpy.pad(x, self.padding, constant_values=fill)
        for offset in itertools.product(*map(range, self.sizes)):
            starts = [k * dilation for k, dilation in zip(offset, self.dilations)]
            yield offset, x[(..., *(slice(start, start + (count - 1) * stride + 1, stride) for start, count, stride in zip(starts, self.counts, self.strides)))]


def divisors(*numbers):
    return [d for d in range(1, math.gcd(*numbers) + 1) if math.gcd(*numbers) % d == 0]


@op(8)
def convolution(graph):
    x = image(graph)
    window, channels = Window(graph, x), graph.choose.choice([1, 3, 4, 6, x.shape[1]])
    group = graph.choose.choice(divisors(x.shape[1], channels))
    weight, bias = graph.weight((channels, x.shape[1] // group, *window.sizes)), graph.weight((channels,))

    def compute(x, w, *bias):
        total = 0
        w = w.reshape(group, channels // group, *w.shape[1:])
        for offset, part in window.parts(x):
            part = part.reshape(part.shape[0], group, -1, *part.shape[2:])
            total = total + numpy.einsum("ngc...,gmc->ngm...", part, w[(..., *offset)])
        total = total.reshape(x.shape[0], channels, *window.counts)
        return [total + bias[0].reshape(-1, *[1] * len(window.sizes)) if bias else total]

    operands = [x, weight] + ([bias] if graph.choose.random() < 0.5 else [])
    graph.node("Conv", operands, compute, terms=magnitudes(compute), count=x.shape[1] // group * math.prod(window.sizes) + 1, group=group, **window.attributes())


@op(3)
def transposed_convolution(graph):
    x = image(graph)
    rank, channels = len(x.shape) - 2, graph.choose.choice([1, 3, 4])
    size, stride, dilation = (graph.choose.randint(1, most) for most in (3, 3, 2))
    extent = (size - 1) * dilation + 1
    more = graph.choose.randint(0, stride - 1)
    low, high = graph.choose.randint(0, extent - 1), graph.choose.randint(0, extent - 1)
    full = [(dim - 1) * stride + extent + more for dim in x.shape[2:]]
    if min(full) - low - high < 1:
        raise Reject
    weight = graph.weight((x.shape[1], channels, *[size] * rank))

    def compute(x, w):
        y = numpy.zeros((x.shape[0], channels, *full))
        for offset in itertools.product(range(size), repeat=rank):
            at = tuple(slice(k * dilation, k * dilation + (dim - 1) * stride + 1, stride) for k, dim in zip(offset, x.shape[2:]))
            y[(..., *at)] += numpy.einsum("nc...,cm->nm...", x, w[(..., *offset)])
        return [y[(..., *(slice(low, dim - high) for dim in full))]]

    graph.node("ConvTranspose", [x, weight], compute, terms=magnitudes(compute), count=x.shape[1] * size**rank, strides=[stride] * rank, dilations=[dilation] * rank,
               pads=[low] * rank + [high] * rank, output_padding=[more] * rank)


@op(4)
def pool(graph):
    x = image(graph)
    name = graph.choose.choice(["MaxPool", "AveragePool", "LpPool"])
    window = Window(graph, x, dilates=name != "AveragePool")  # which has them from opset 19 on
    count = math.prod(window.sizes)
    if name == "MaxPool":
        def compute(x):
            under = numpy.stack([part for _, part in window.parts(x, -numpy.inf)])
            if not where:
                return [under.max(axis=0)]
            positions = numpy.stack([part for _, part in window.parts(numpy.arange(x.size).reshape(x.shape), -1)])
            first = under.argmax(axis=0)[None]
            return [numpy.take_along_axis(each, first, 0)[0] for each in (under, positions)]

        where = graph.choose.random() < 0.4
        graph.node(name, [x], compute, **window.attributes())
        return
    total = lambda x: sum(part for _, part in window.parts(x))
    if name == "LpPool":
        graph.node(name, [x], lambda x: [total(numpy.abs(x))], count=count, p=1, **window.attributes())
        return
    counts_all = graph.choose.randint(0, 1)
    counted = count if counts_all else total(numpy.ones(x.shape))
    if numpy.min(counted) == 0:
        raise Reject
    compute = lambda x: [total(x) / counted]
    graph.node(name, [x], compute, terms=magnitudes(compute), count=count + 1, count_include_pad=counts_all, **window.attributes())


@op(2)
def global_pool(graph):
    x = image(graph)
    axes = tuple(range(2, len(x.shape)))
    if graph.choose.random() < 0.5:
        graph.node("GlobalMaxPool", [x], lambda x: [x.max(axis=axes, keepdims=True)])
        return
    compute = lambda x: [x.mean(axis=axes, keepdims=True)]
    graph.node("GlobalAveragePool", [x], compute, terms=magnitudes(compute), count=math.prod(x.shape[2:]) + 1)


@op(3)
def batch_norm(graph):
    x = image(graph)
    scale, bias, mean = (graph.weight((x.shape[1],)) for _ in range(3))
    variance = graph.constant((numpy.abs(graph.numbers.standard_normal(x.shape[1])) + 0.3).astype(numpy.float32))
    along = lambda each: each.reshape(-1, *[1] * (len(x.shape) - 2))
    compute = lambda x, s, b, m, v: [(x - along(m)) / numpy.sqrt(along(v) + EPSILON) * along(s) + along(b)]
    terms = lambda x, s, b, m, v: [(numpy.abs(x) + numpy.abs(along(m))) / numpy.sqrt(along(v) + EPSILON) * numpy.abs(along(s)) + numpy.abs(along(b))]
    graph.node("BatchNormalization", [x, scale, bias, mean, variance], compute, terms=terms, count=8, epsilon=EPSILON)


@op(3)
def statistics_norm(graph):
    """Instance norm; group norm, whose scale and bias belong to groups in opset 18, to channels from 21 on."""
    x = image(graph)
    groups = graph.choose.choice([None, *divisors(x.shape[1])])
    parts = x.shape[1] if groups is None else groups
    channels = parts if graph.opset < 21 else x.shape[1]
    scale, bias = graph.weight((channels,)), graph.weight((channels,))
    spread = lambda each: each.repeat(x.shape[1] // channels).reshape(-1, *[1] * (len(x.shape) - 2))
    grouped = lambda x: x.reshape(x.shape[0], parts, -1)
    mean = lambda x: x.mean(axis=2, keepdims=True)

    def compute(x, scale, bias):
        centered = grouped(x) - mean(grouped(x))
        return [(centered / numpy.sqrt(mean(centered**2) + EPSILON)).reshape(x.shape) * spread(scale) + spread(bias)]

    def terms(x, scale, bias):
        deviation = numpy.sqrt(grouped(x).var(axis=2, keepdims=True) + EPSILON)
        size = (numpy.abs(grouped(x)) + mean(numpy.abs(grouped(x)))) / deviation
        return [(size * (1 + size)).reshape(x.shape) * numpy.abs(spread(scale)) + numpy.abs(spread(bias))]

    name, more = ("InstanceNormalization", {}) if groups is None else ("GroupNormalization", dict(num_groups=groups))
    graph.node(name, [x, scale, bias], compute, terms=terms, count=math.prod(x.shape[1:]) // parts + 6, epsilon=EPSILON, **more)


@op(2)
def doubled(graph):
    """Every element some times, by the rule that needs no rounding."""
    x = image(graph)
    times = [1, 1] + [graph.choose.randint(1, 3) for _ in x.shape[2:]]

    def compute(x):
        for axis, count in enumerate(times):
            x = x.repeat(count, axis)
        return [x]

    graph.node("Resize", [x, graph.constant(numpy.zeros(0, numpy.float32)), graph.constant(numpy.float32(times))], compute, taken=1, mode="nearest", coordinate_transformation_mode="asymmetric",
               nearest_mode="floor")


@op(2)
def depth_and_space(graph):
    x = graph.pick("f32", lambda x: len(x.shape) == 4)
    batch, channels, height, width = x.shape
    block = graph.choose.choice([2, 3])
    if channels % block**2 == 0:
        compute = lambda x: [x.reshape(batch, block, block, -1, height, width).transpose(0, 3, 4, 1, 5, 2).reshape(batch, -1, height * block, width * block)]
        graph.node("DepthToSpace", [x], compute, blocksize=block)
    elif height % block == 0 and width % block == 0:
        compute = lambda x: [x.reshape(batch, channels, height // block, block, width // block, block).transpose(0, 3, 5, 1, 2, 4)
                             .reshape(batch, -1, height // block, width // block)]
        graph.node("SpaceToDepth", [x], compute, blocksize=block)
    else:
        raise Reject
