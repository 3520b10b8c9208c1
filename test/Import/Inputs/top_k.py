"""TopK of few out of many, and of many, against a sort in Python: ties, NaN, infinities and zeros of both signs, in layouts. top_k.py FOLDER"""
import pathlib, subprocess, sys

import numpy

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
import onnx_file

folder = pathlib.Path(sys.argv[1])
CASES = [  # type, shape, axis, k, layout
    ("f32", (3, 64), 1, 8, ["--tp=3", "--verify"]),
    ("f32", (64, 3), 0, 5, ["--dp=3"]),
    ("f16", (1, 50), -1, 6, ["--tp=2"]),
    ("f32", (2, 40), 1, 40, ["--tp=2"]),
    ("i32", (2, 50), -1, 4, ["--dp=2"]),
    ("u8", (2, 50), 1, 6, ["--tp=2", "--pp=1"]),
    ("f32", (2, 50257), -1, 2, []),
]


def content(kind, shape):
    numbers = numpy.random.default_rng(1)
    if kind[0] != "f":
        return numbers.integers(0, 9, shape).astype({"i32": numpy.int32, "u8": numpy.uint8}[kind])
    x = numbers.standard_normal(shape).astype({"f32": numpy.float32, "f16": numpy.float16}[kind])
    x.reshape(-1)[[3, 7, 9, 11, 20, 21, 30, -1]] = [numpy.nan, numpy.inf, -numpy.inf, -numpy.inf, 0, -0.0, numpy.inf, numpy.nan]
    return x


def order(row, largest):
    """Positions, NaN above all numbers, equal ones as they stand."""
    place = lambda i: (numpy.isnan(row[i]), 0 if numpy.isnan(row[i]) else float(row[i]))
    return sorted(range(len(row)), key=lambda i: tuple(-float(part) if largest else float(part) for part in place(i)))


def run(*command):
    done = subprocess.run([str(each) for each in command], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


for kind, shape, axis, k, layout in CASES:
    for largest in (0, 1):
        x = content(kind, shape)
        to = [k if dim == axis % len(shape) else size for dim, size in enumerate(shape)]
        node = onnx_file.node("TopK", ["x", "k"], ["v", "i"], axis=axis, largest=largest)
        model = onnx_file.model([node], [("x", kind, shape)], [("v", kind, to), ("i", "i64", to)], [("k", numpy.array([k], numpy.int64))])
        (folder / "a.onnx").write_bytes(model)
        numpy.savez(folder / "in.npz", x=x)
        run("hpc-opt", folder / "a.onnx", *layout, "-o", folder / "a.plan")
        run("hpc-run", folder / "a.plan", "--poison", f"--input={folder}/in.npz", f"--output={folder}/out.npz")
        got = numpy.load(folder / "out.npz")
        want = numpy.apply_along_axis(lambda row: numpy.array(order(row, largest)[:k]), axis, x)
        case = f"{kind} {shape} axis {axis} k {k} largest {largest} {layout}"
        assert numpy.array_equal(got["i"], want), f"{case}: {got['i']}, expected {want}"
        assert numpy.array_equal(got["v"], numpy.take_along_axis(x, want, axis), equal_nan=kind[0] == "f"), case
print(2 * len(CASES), "are equal")
