"""A value of a random graph: content in double, and the bound within which a correct program in f32 lies."""
import numpy

EPSILON = 2.0 ** -23  # one rounding in f32, and a half more for approximations that are off by an ulp


class Reject(Exception):
    """The node that was tried makes no good test: too large, not finite, or decided by rounding."""


class Value:
    """`data` is double, int64 or bool; `bound` (same shape) is 0 where nothing was rounded."""

    def __init__(self, name, data, bound=None):
        self.name, self.data = name, data
        self.bound = numpy.zeros(data.shape) if bound is None else bound

    @property
    def shape(self):
        return self.data.shape

    @property
    def kind(self):
        return {"f": "f32", "i": "i64", "b": "bool"}[self.data.dtype.kind]

    def stored(self):
        """As a file holds it."""
        return self.data.astype(numpy.float32) if self.kind == "f32" else self.data


def exact(name, array):
    """A value as it stands in a file or an input: what f32 holds of it."""
    array = numpy.asarray(array)
    return Value(name, array.astype(numpy.float32).astype(numpy.float64) if array.dtype.kind == "f" else array)


def moved(value, random):
    """The content at the edge of its bound, each element to a side of its own."""
    if value.kind != "f32":
        return value.data
    return value.data + random.choice([-1.0, 1.0], value.shape) * value.bound


def evaluate(compute, operands, terms, count):
    """The results of `compute` on the operands' content: a list of (data, bound).

    `terms`: computes the sum of the magnitudes that are added for each element, from the operands' magnitudes; None: the magnitude of the result.
    `count`: how many roundings a result goes through.
    """
    random = numpy.random.default_rng(7)
    with numpy.errstate(all="ignore"):
        results = [numpy.asarray(each) for each in compute(*(value.data for value in operands))]
        if any(each.dtype.kind == "f" and not numpy.isfinite(each).all() for each in results):
            raise Reject
        spreads = [numpy.zeros(each.shape) for each in results]
        for place, operand in enumerate(operands):
            if not operand.bound.any():
                continue
            # Each by itself: what two operands do together may cancel.
            furthest = [numpy.zeros(each.shape) for each in results]
            for _ in range(4):
                contents = [moved(value, random) if i == place else value.data for i, value in enumerate(operands)]
                for distance, center, there in zip(furthest, results, compute(*contents)):
                    if center.dtype.kind == "f":
                        numpy.maximum(distance, numpy.abs(there - center), out=distance)
                    elif not numpy.array_equal(center, there):
                        raise Reject
            spreads = [spread + distance for spread, distance in zip(spreads, furthest)]
        sizes = [numpy.abs(each) for each in results] if terms is None else [numpy.asarray(each) for each in terms(*(value.data for value in operands))]
    bounds = []
    for data, spread, size in zip(results, spreads, sizes):
        if data.dtype.kind != "f":
            bounds.append(None)
            continue
        # A move to random sides does not find the worst one; sums of n bounds grow with n, the moves found sqrt(n) of it.
        bound = 4 * spread * max(1.0, numpy.sqrt(count) / 2) + (count + 4) * EPSILON * numpy.broadcast_to(size, data.shape)
        if not numpy.isfinite(bound).all() or bound.max(initial=0) > 1e-2 * max(1.0, numpy.abs(data).max(initial=0)):
            raise Reject  # such a bound would let a missing term pass
        bounds.append(bound)
    return list(zip(results, bounds))
