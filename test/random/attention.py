"""Attention and rotary positions, as the standard has them from opset 23 on."""
import math

import numpy

from ops import op
from values import LOWEST, MOVES, Reject


def softmax(x):
    """A query that sees no key has weights of 0 (errata of opset 23)."""
    sees = (x > -numpy.inf).any(axis=-1, keepdims=True)
    shifted = numpy.exp(x - numpy.where(sees, x.max(axis=-1, keepdims=True), 0))
    return shifted / numpy.where(sees, shifted.sum(axis=-1, keepdims=True), 1)


@op(6)
def attention(graph):
    """Queries are an earlier value of three dims (or of four), keys and values products of it; one to three of Y, present_key, present_value."""
    if graph.opset < 23:
        raise Reject
    choose = graph.choose
    x = graph.pick(("f32", "f32", "f16", "bf16"), lambda x: len(x.shape) in (3, 4) and x.shape[-1] > 1)
    apart = len(x.shape) == 4
    if apart:
        batch, heads, length, size = x.shape
        kv_heads = heads
        keys, values = x, x
    else:
        batch, length, width = x.shape
        heads = choose.choice([each for each in range(1, width + 1) if width % each == 0 and each <= 6])
        kv_heads = choose.choice([each for each in range(1, heads + 1) if heads % each == 0])
        size = width // heads
        product = lambda width: graph.node("MatMul", [x, graph.weight((x.shape[-1], width), x.kind)], lambda x, w: [x @ w], count=x.shape[-1],
                                           terms=lambda x, w: [numpy.abs(x) @ numpy.abs(w)])[0]
        keys, values = product(kv_heads * size), product(kv_heads * choose.choice([size, 3]))
    past = choose.choice([0, 0, 0, 2, 3]) if not apart else 0
    causal, capped, scaled = choose.random() < 0.4, choose.random() < 0.25, choose.random() < 0.3
    total = length + past
    form = choose.choice(["none", "none", "bool", "float"])
    mask = None
    if form != "none":
        shape = choose.choice([(length, total), (batch, 1, length, total), (batch, heads, length, total), (1, 1, length, total)])
        sees = graph.numbers.integers(0, 2, shape).astype(bool)
        if choose.random() < 0.6:
            sees[..., 0] = True
        else:
            sees[..., choose.randrange(length), :] = False
        hidden = choose.choice([0, -numpy.inf, *([LOWEST, -1e30] if x.kind == "f32" else [])])  # 0: a bias that hides nothing
        # Of a row of these alone ONNX Runtime makes, in some forms, something else than the standard's reference.
        graph.disputed |= hidden in (LOWEST, -1e30) and not sees.any(axis=-1).all()
        mask = sees if form == "bool" else numpy.where(sees, graph.content(shape), hidden or graph.content(shape))
        mask = graph.given(mask, x.kind) if choose.random() < 0.3 and shape[0] == batch else graph.constant(mask, x.kind)
    value_size = values.shape[-1] // kv_heads if not apart else size
    pasts = [graph.constant(graph.content((batch, kv_heads, past, each)), x.kind) for each in (size, value_size)] if past else [None, None]
    cap, scale = 2.0, 0.25 if scaled else 1 / math.sqrt(size)
    split = lambda x, count: x if apart else x.reshape(batch, length, count, -1).transpose(0, 2, 1, 3)

    def compute(q, k, v, *rest):
        rest = list(rest)
        bias = rest.pop(0) if mask else numpy.zeros((length, total))
        bias = numpy.where(bias, 0, -numpy.inf) if bias.dtype.kind == "b" else bias
        if causal:
            bias = numpy.where(numpy.arange(total) <= numpy.arange(length)[:, None] + past, bias, -numpy.inf)
        q, k, v = split(q, heads), split(k, kv_heads), split(v, kv_heads)
        if past:
            k, v = numpy.concatenate([rest[0], k], axis=2), numpy.concatenate([rest[1], v], axis=2)
        scores = q @ k.repeat(heads // kv_heads, 1).swapaxes(-1, -2) * scale
        scores = cap * numpy.tanh(scores / cap) if capped else scores
        y = softmax(scores + bias) @ v.repeat(heads // kv_heads, 1)
        y = y if apart else y.transpose(0, 2, 1, 3).reshape(batch, length, -1)
        return [y, k, v] if past else [y]

    def terms(q, k, v, *rest):
        """Scores are rounded before exp: their size, which is at most that of the magnitudes' product, counts."""
        k, v = split(k, kv_heads), split(v, kv_heads)
        most = numpy.abs(v).max() if not past else max(numpy.abs(v).max(), numpy.abs(rest[-1]).max())
        reach = numpy.abs(q).max() * (numpy.abs(k).max() if not past else max(numpy.abs(k).max(), numpy.abs(rest[-2]).max())) * size * scale
        y, *presents = compute(q, split_back(k), split_back(v), *rest)
        return [numpy.full(y.shape, most * (1 + reach)), *map(numpy.abs, presents)]

    split_back = lambda x: x if apart else x.transpose(0, 2, 1, 3).reshape(batch, length, -1)
    operands = [x, keys, values, mask, *pasts]
    while operands[-1] is None:
        operands.pop()
    more = {} if apart else dict(q_num_heads=heads, kv_num_heads=kv_heads)
    more.update({"is_causal": 1} if causal else {}, **({"softcap": cap} if capped else {}), **({"scale": scale} if scaled else {}))
    graph.node("Attention", operands, compute, terms=terms, count=total + 8, **more)


@op(3)
def rotary(graph):
    if graph.opset < 23:
        raise Reject
    choose = graph.choose
    x = graph.pick(("f32", "f32", "f16"), lambda x: len(x.shape) == 3 and x.shape[-1] % 2 == 0 or len(x.shape) == 4 and x.shape[-1] % 2 == 0)
    apart = len(x.shape) == 4
    batch, length = x.shape[0], x.shape[2 if apart else 1]
    heads = 1 if apart else choose.choice([each for each in range(1, 7) if x.shape[2] % each == 0 and x.shape[2] // each % 2 == 0])
    size = x.shape[-1] // heads
    turned = choose.choice([size, size, *range(2, size + 1, 2)])
    interleaved, looked_up = choose.randint(0, 1), choose.random() < 0.5
    angles = graph.numbers.standard_normal((length + 3, turned // 2) if looked_up else (batch, length, turned // 2))
    caches = [graph.constant(function(angles), x.kind) for function in (numpy.cos, numpy.sin)]
    positions = [graph.constant(graph.numbers.integers(0, length + 3, (batch, length)))] if looked_up else []

    def compute(x, cos, sin, *positions):
        y = x.transpose(0, 2, 1, 3) if apart else x.reshape(batch, length, heads, size)
        cos, sin = (each[positions[0]] if positions else each for each in (cos, sin))
        cos, sin = cos[:, :, None], sin[:, :, None]
        part, rest = y[..., :turned], y[..., turned:]
        a, b = (part[..., 0::2], part[..., 1::2]) if interleaved else (part[..., : turned // 2], part[..., turned // 2 :])
        real, imaginary = cos * a - sin * b, sin * a + cos * b
        both = numpy.stack([real, imaginary], -1).reshape(part.shape) if interleaved else numpy.concatenate([real, imaginary], -1)
        y = numpy.concatenate([both, rest], -1)
        return [y.transpose(0, 2, 1, 3) if apart else y.reshape(x.shape)]

    terms = lambda x, *rest: [numpy.broadcast_to(2 * numpy.abs(x).max(), x.shape)]
    more = {} if apart else {"num_heads": heads}
    graph.node("RotaryEmbedding", [x, *caches, *positions], compute, terms=terms, count=4, interleaved=interleaved,
               rotary_embedding_dim=turned if turned != size else 0, **more)
