#!/usr/bin/env python3
"""Runs the ONNX project's node tests from end to end: hpc-opt, hpc-run, comparison with the expected values.

    run.py BUILD/bin OUT ["FLAGS of hpc-opt"]       needs onnx and numpy

Inputs that the compiler must know (shapes, axes, amounts, conditions; FIXED below) are bound by --const. OUT/result.json lists every case with
its outcome; what is printed: counts, everything that is neither equal nor refused, and the reasons of what is refused. Values are compared with a
tolerance from their type; memory is poisoned before the run."""
import collections
import concurrent.futures
import json
import os
import re
import subprocess
import sys

import numpy
import onnx
from onnx import numpy_helper
from onnx.backend.test.case.node import collect_testcases

FIXED = {
    "AffineGrid": [1], "BlackmanWindow": [0], "CenterCropPad": [1], "Compress": [1], "ConstantOfShape": [0], "Col2Im": [1, 2], "CumProd": [1], "CumSum": [1],
    "DFT": [1, 2], "Dropout": [1, 2], "Expand": [1], "HammingWindow": [0], "HannWindow": [0], "If": [0], "Loop": [0, 1], "MelWeightMatrix": [0, 1, 2, 3, 4],
    "NonZero": [0], "OneHot": [1], "Pad": [1, 2, 3], "Range": [0, 1, 2], "Reshape": [1], "Resize": [1, 2, 3], "Slice": [1, 2, 3, 4], "Split": [1],
    "Squeeze": [1], "STFT": [1, 3], "Tile": [1], "TopK": [1], "Trilu": [1], "Unsqueeze": [1], "Upsample": [1],
    **{"Reduce" + kind: [1] for kind in "Sum Mean Max Min Prod L1 L2 SumSquare LogSum LogSumExp".split()},
}
MAX_BYTES = 1 << 26
with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "rounded.txt")) as file:
    ROUNDED = set(file.read().split())  # expected values of four digits
with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "superseded.txt")) as file:
    SUPERSEDED = set(file.read().split()) if tuple(map(int, onnx.__version__.split(".")[:2])) < (1, 23) else set()
TOLERANCE = {"float64": (1e-7, 1e-7), "float32": (2e-5, 2e-6), "float16": (2e-3, 1e-3), "bfloat16": (2e-2, 2e-2)}  # relative, absolute


def as_array(value):
    """A numpy array of a test's value, with ml_dtypes' types for what numpy lacks; None for what is no tensor of numbers."""
    if isinstance(value, onnx.TensorProto):
        value = numpy_helper.to_array(value)
    if not isinstance(value, (numpy.ndarray, numpy.generic)):
        return None
    value = numpy.asarray(value)
    return value if value.dtype.kind in "fiubV" and value.dtype.names is None else None


def is_only_stored(dtype):
    """Whether it is one of ml_dtypes' floats and integers of at most 8 bits."""
    return dtype.itemsize == 1 and (dtype.kind == "V" or dtype.name.startswith("float"))


def saved(array):
    """As hpc-run reads it: bf16 as raw pairs of bytes, types that are only stored as the bytes that hold them."""
    if is_only_stored(array.dtype):
        return array.astype(numpy.int8) if array.dtype.name.startswith("int") else array.view(numpy.uint8)
    return array.view(numpy.dtype(("V", array.dtype.itemsize))) if array.dtype.kind == "V" else array


def fixed_inputs(graph, names):
    """The graph's inputs that a node needs to know: its own, and those of a function's body that lead there through other nodes."""
    makers = {output: node for node in graph.node for output in node.output}

    def reads(node):
        inner = [each for attribute in node.attribute for each in attribute.g.node]
        return [*node.input, *(name for each in inner for name in reads(each))]

    open_names = [node.input[i] for node in graph.node for i in FIXED.get(node.op_type, []) if i < len(node.input)]
    found = set()
    seen = set()
    while open_names:
        name = open_names.pop()
        if name in seen or not name:
            continue
        seen.add(name)
        if name in names:
            found.add(name)
        elif name in makers and makers[name].op_type not in ("Shape", "Size"):
            open_names.extend(reads(makers[name]))
    return found


def difference(have, want, is_rounded):
    if have.dtype.itemsize == want.dtype.itemsize and (want.dtype.kind == "V" or is_only_stored(want.dtype)):
        have = have.astype(want.dtype) if want.dtype.name.startswith(("int", "uint")) else have.view(want.dtype)
    if have.shape != want.shape or have.dtype != want.dtype:
        return f"{have.dtype}{have.shape}, expected {want.dtype}{want.shape}"
    if want.dtype.kind in "iub":
        return None if numpy.array_equal(have, want) else "integers differ"
    relative, absolute = (1e-4, 1e-4) if is_rounded else TOLERANCE.get(want.dtype.name, (0, 0))
    a, b = have.astype(numpy.float64), want.astype(numpy.float64)
    return None if numpy.allclose(a, b, rtol=relative, atol=absolute, equal_nan=True) else f"off by {numpy.nanmax(numpy.abs(a - b))}"


def compiled(step):
    """None where the command succeeds, else the outcome and why."""
    try:
        done = subprocess.run(step, capture_output=True, text=True, timeout=120)
    except subprocess.TimeoutExpired:
        return "hang", step[0]
    if done.returncode == 1 and step[0].endswith("hpc-opt") and "[unsupported]" in done.stderr:
        first, *reasons = done.stderr.strip().split("\n")
        why = " ".join(line.strip() for line in reasons) or re.sub(r"^.*\.onnx: input '.*' has", "an input has", first)
        return "refused", re.sub(r": nodes? .*", "", why)
    if done.returncode != 0:
        return ("error" if done.returncode == 1 else "crash"), os.path.basename(step[0]) + ": " + done.stderr.strip()[:300]
    return None


def run(case, binaries, folder, flags):
    model = onnx.ModelProto()
    model.CopyFrom(case.model)
    graph = model.graph
    inputs, outputs = ([as_array(each) for each in part] for part in case.data_sets[0])
    base = os.path.join(folder, case.name)
    given = dict(zip([each.name for each in graph.input], inputs))
    for each in graph.input:  # ranks are declared, sizes may not be
        shape = each.type.tensor_type.shape
        if given[each.name] is not None and len(shape.dim) == len(given[each.name].shape):
            for dim, size in zip(shape.dim, given[each.name].shape):
                dim.dim_value = size
    if any(each is None for each in inputs + outputs):  # sequences, strings: there is nothing to run, but the compiler has to say so
        with open(base + ".onnx", "wb") as file:
            file.write(model.SerializeToString())
        return compiled([binaries + "/hpc-opt", base + ".onnx", "-o", base + ".plan", *flags]) or ("not tensors", "")
    if any(each.nbytes > MAX_BYTES for each in inputs + outputs):
        return "too big", ""
    bound = fixed_inputs(graph, set(given))
    with open(base + ".onnx", "wb") as file:
        file.write(model.SerializeToString())
    numpy.savez(base + ".npz", **{name: saved(value) for name, value in given.items() if name not in bound})
    consts = []
    for name in bound:
        with open(f"{base}.{len(consts)}.pb", "wb") as file:
            file.write(numpy_helper.from_array(given[name], name).SerializeToString())
        consts.append(f"--const={name}={file.name}")
    steps = [[binaries + "/hpc-opt", base + ".onnx", "-o", base + ".plan", *flags, *consts],
             [binaries + "/hpc-run", base + ".plan", "--poison", "--output=" + base + ".out.npz",
              *(["--input=" + base + ".npz"] if len(bound) < len(given) else [])]]
    for step in steps:
        ended = compiled(step)
        if ended:
            return ended
    results = numpy.load(base + ".out.npz")
    for output, want in zip(graph.output, outputs):
        wrong = "is missing" if output.name not in results else difference(results[output.name], want, case.name in ROUNDED)
        if wrong:
            return "superseded" if case.name in SUPERSEDED else "wrong", f"{output.name}: {wrong}"
    return "equal", ""


def main():
    binaries, folder, flags = sys.argv[1], sys.argv[2], (sys.argv[3] if len(sys.argv) > 3 else "").split()
    os.makedirs(folder, exist_ok=True)
    wanted = re.compile(os.environ.get("CASES", ""))
    cases = [case for case in collect_testcases(None) if wanted.search(case.name)]
    outcomes = collections.defaultdict(list)
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for case, (outcome, why) in zip(cases, pool.map(lambda case: run(case, binaries, folder, flags), cases)):
            outcomes[outcome].append((case.name, why))
    with open(os.path.join(folder, "result.json"), "w") as file:
        json.dump(outcomes, file, indent=1)
    for outcome, found in sorted(outcomes.items()):
        print(outcome, len(found))
    for outcome in sorted(set(outcomes) - {"equal", "refused", "not tensors", "superseded", "too big"}):
        for name, why in outcomes[outcome]:
            print(f"  {outcome}: {name}: {why}")
    reasons = collections.Counter(why for _, why in outcomes["refused"])
    for why, count in reasons.most_common():
        print(f"  refused {count}: {why}")


if __name__ == "__main__":
    main()
