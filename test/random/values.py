"""A value of a random graph: content in double, and the bound within which a correct program lies.

The bound follows the value's own type: f16 and bf16 are computed in f32 and rounded after every node (docs/numerics.md).
"""
import numpy

INTEGERS = ("i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64")
FLOATS = ("f32", "f64", "f16", "bf16")
# One rounding, and a half more for approximations that are off by an ulp. f64: numpy, the reference, rounds in it as well.
EPSILON = {"f32": 2.0**-23, "f64": 2.0**-50, "f16": 2.0**-10, "bf16": 2.0**-7}
LARGEST = {"f32": 1e30, "f64": 1e100, "f16": 2e4, "bf16": 1e30}
SMALLEST = {"f32": 1e-37, "f64": 1e-300, "f16": 2.0**-22, "bf16": 1e-37}
# The share of the largest element that a bound may be: a wider one would let a missing term pass.
WIDEST = {"f32": 1e-2, "f64": 1e-6, "f16": 3e-2, "bf16": 0.2}
LOWEST = float(numpy.finfo(numpy.float32).min)  # what masks are filled with
ROUNDINGS = 6  # of a node in a narrow type, where it is computed in several steps
BFLOAT16 = numpy.dtype("V2")  # numpy has none: files hold its bytes


# The `terms` of a node that only moves elements: the bounds move as the content does.
MOVES = object()


class Reject(Exception):
    """The node that was tried makes no good test: too large, not finite, or decided by rounding."""


def kind_of(dtype):
    """The name of numpy's integer types and bool; of floats the content is always double."""
    return "bool" if dtype.kind == "b" else dtype.kind + str(8 * dtype.itemsize)


def as_bfloat16(data):
    """The bytes of the nearest bf16, ties to even."""
    bits = numpy.asarray(data, numpy.float32).reshape(-1).view(numpy.uint32).astype(numpy.int64)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(numpy.uint16).view(BFLOAT16).reshape(numpy.shape(data))


def from_file(array):
    """The content of an array as files hold it: floats in double."""
    if array.dtype == BFLOAT16:
        return (array.reshape(-1).view(numpy.uint16).astype(numpy.uint32) << 16).view(numpy.float32).astype(numpy.float64).reshape(array.shape)
    return array.astype(numpy.float64) if array.dtype.kind == "f" else array


class Value:
    """`data` is double, an integer type or bool; `bound` (same shape) is 0 where nothing was rounded."""

    def __init__(self, name, data, bound=None, kind="f32"):
        self.name, self.data = name, data
        self.bound = numpy.zeros(data.shape) if bound is None else bound
        self.kind = kind if data.dtype.kind == "f" else kind_of(data.dtype)

    @property
    def shape(self):
        return self.data.shape

    @property
    def is_float(self):
        return self.kind in FLOATS

    @property
    def is_finite(self):
        return not self.is_float or bool(numpy.isfinite(self.data).all())

    def stored(self):
        """As a file holds it."""
        if self.kind == "bf16":
            return as_bfloat16(self.data)
        return self.data.astype({"f32": numpy.float32, "f16": numpy.float16}.get(self.kind, self.data.dtype))


def exact(name, array, kind="f32"):
    """A value as it stands in a file or an input: what its type holds of it."""
    value = Value(name, numpy.asarray(array), kind=kind)
    value.data = from_file(value.stored())
    return value


def same_class(x, y):
    """Whether each element is finite in both, or the same infinity, or NaN."""
    return numpy.isfinite(x) & numpy.isfinite(y) | (x == y) | numpy.isnan(x) & numpy.isnan(y)


def moved(value, sides):
    """The content at the edge of its bound; `sides` are 1 or -1."""
    return value.data + sides * value.bound if value.is_float else value.data


def evaluate(compute, operands, terms, count, kind, wild=False, basic=False):
    """The results of `compute` on the operands' content: a list of (data, bound).

    `terms`: computes the sum of the magnitudes that are added for each element, from the operands' content; None: the magnitude of the result; or MOVES.
    `count`: how many roundings a result goes through. `kind`: the type of results that are floats. `wild`: NaN and infinities are results too, and exact.
    `basic`: a result that its type holds is exact where the operands are.
    """
    random = numpy.random.default_rng(7)
    with numpy.errstate(all="ignore"):
        results = [numpy.asarray(each) for each in compute(*(value.data for value in operands))]
        for each in results:
            if each.dtype.kind == "f" and not ((numpy.abs(each) <= LARGEST[kind]) | wild & ~numpy.isfinite(each)).all():
                raise Reject
        if terms is MOVES:
            return list(zip(results, compute(*(value.bound if value.is_float else value.data for value in operands))))
        spreads = [numpy.zeros(each.shape) for each in results]
        for place, operand in enumerate(operands):
            if not operand.bound.any():
                continue
            # Each by itself: what two operands do together may cancel.
            furthest = [numpy.zeros(each.shape) for each in results]
            # By chance, and all one way: the larger of equal elements moves up alone.
            for sides in [random.choice([-1.0, 1.0], operand.shape) for _ in range(4)] + [1.0, -1.0]:
                contents = [moved(value, sides) if i == place else value.data for i, value in enumerate(operands)]
                for distance, center, there in zip(furthest, results, compute(*contents)):
                    if center.dtype.kind == "f" and same_class(center, there).all():
                        numpy.fmax(distance, numpy.where(numpy.isfinite(center), numpy.abs(there - center), 0), out=distance)
                    elif center.dtype.kind == "f" or not numpy.array_equal(center, there):
                        raise Reject
            spreads = [spread + distance for spread, distance in zip(spreads, furthest)]
        sizes = [numpy.abs(each) for each in results] if terms is None else [numpy.asarray(each) for each in terms(*(value.data for value in operands))]
    bounds = []
    for data, spread, size in zip(results, spreads, sizes):
        if data.dtype.kind != "f":
            bounds.append(None)
            continue
        finite = numpy.isfinite(data)
        # Sums are those of f32 in all types but f64; narrow types round each step to their own.
        rounding = (count + 4) * EPSILON["f64" if kind == "f64" else "f32"] + (ROUNDINGS * EPSILON[kind] if kind in ("f16", "bf16") else 0)
        # A move to random sides does not find the worst one; sums of n bounds grow with n, the moves found sqrt(n) of it.
        bound = 4 * spread * max(1.0, numpy.sqrt(count) / 2) + rounding * numpy.where(finite, numpy.broadcast_to(size, data.shape), 0) + SMALLEST[kind]
        is_exact = ~finite | (spread == 0) & (exact("", data, kind).data == data) if basic else ~finite
        bound = numpy.where(is_exact, 0, bound)
        if not numpy.isfinite(bound).all() or bound.max(initial=0) > WIDEST[kind] * max(1.0, numpy.abs(data[finite]).max(initial=0)):
            raise Reject
        bounds.append(bound)
    return list(zip(results, bounds))
