"""Products of whole numbers, which wrap as sums of their type do, against numpy, in layouts. integer_product.py FOLDER"""
import pathlib, subprocess, sys

import numpy

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
import onnx_file

folder = pathlib.Path(sys.argv[1])
numbers = numpy.random.default_rng(2)
CASES = [("i64", numpy.int64, 2**62), ("i32", numpy.int32, 2**31), ("u32", numpy.uint32, 2**32), ("u64", numpy.uint64, 2**63)]


def run(*command):
    done = subprocess.run([str(each) for each in command], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


for kind, dtype, most in CASES:
    for layout in ([], ["--tp=3", "--dp=2", "--verify"]):
        draw = lambda shape: numbers.integers(-most if kind[0] == "i" else 0, most, shape, dtype=dtype)
        x, weight, other = draw((4, 5, 7)), draw((7, 6)), draw((4, 6, 3))
        nodes = [onnx_file.node("MatMul", ["x", "w"], ["p"]), onnx_file.node("MatMul", ["p", "o"], ["y"])]
        model = onnx_file.model(nodes, [("x", kind, x.shape), ("o", kind, other.shape)], [("y", kind, (4, 5, 3))], [("w", weight)])
        (folder / "a.onnx").write_bytes(model)
        numpy.savez(folder / "in.npz", x=x, o=other)
        run("hpc-opt", folder / "a.onnx", *layout, "-o", folder / "a.plan")
        run("hpc-run", folder / "a.plan", "--poison", f"--input={folder}/in.npz", f"--output={folder}/out.npz")
        got, want = numpy.load(folder / "out.npz")["y"], x @ weight @ other
        assert got.dtype == dtype and numpy.array_equal(got, want), f"{kind} {layout}: {got}, expected {want}"
print(2 * len(CASES), "are equal")
