#!/usr/bin/env python3
"""Writes the ONNX project's own node tests into one archive: CASE/model (the bytes of the .onnx), CASE/input/NAME, CASE/output/NAME.

    make.py cases.npz [OP ...]       needs onnx and numpy; nothing in a test needs this script
    LARGE=1 BESIDES=cases.npz make.py attention.npz Attention RotaryEmbedding       big data too, but no case of another archive

Inputs that say a shape, axes or an amount become initializers, since the compiler wants those known. Cases with types or
values that are no tensors, and cases with big data, are left out. cases.npz: onnx 1.22, all ops of compiler/Import/OnnxOps."""
import os
import sys

import numpy
import onnx
from onnx import numpy_helper
from onnx.backend.test.case.node import collect_testcases

FIXED = {  # inputs that become initializers, by op
    "Reshape": [1], "Expand": [1], "Slice": [1, 2, 3, 4], "Squeeze": [1], "Unsqueeze": [1], "Tile": [1], "Pad": [1, 2, 3],
    "CumSum": [1], "Split": [1], "Trilu": [1], "Range": [0, 1, 2], "ConstantOfShape": [0], "Dropout": [1, 2],
    "Resize": [1, 2, 3], "Upsample": [1], "Col2Im": [1, 2], "CenterCropPad": [1],
    **{"Reduce" + kind: [1] for kind in "Sum Mean Max Min Prod L1 L2 SumSquare LogSum LogSumExp".split()},
}


def write(case, archive):
    model = onnx.ModelProto()
    model.CopyFrom(case.model)
    graph = model.graph
    if len(graph.node) != 1 or len(case.data_sets) < 1:
        return "more than one node"
    inputs, outputs = case.data_sets[0]
    arrays = list(inputs) + list(outputs)
    if not all(isinstance(each, (numpy.ndarray, numpy.generic)) for each in arrays):
        return "not tensors"
    arrays = [numpy.asarray(each) for each in arrays]
    if any(each.dtype.kind not in "fiub" or each.nbytes > (1 << 17 if os.environ.get("LARGE") else 4096) for each in arrays):
        return "type or size"
    inputs, outputs = arrays[: len(inputs)], arrays[len(inputs):]
    names = [each.name for each in graph.input]
    fixed = [graph.node[0].input[i] for i in FIXED.get(graph.node[0].op_type, []) if i < len(graph.node[0].input)]
    data = {}
    for name, value in zip(names, inputs):
        if name in fixed:
            graph.initializer.append(numpy_helper.from_array(value, name))
            graph.input.remove(next(each for each in graph.input if each.name == name))
        else:
            data["input/" + name] = value
            for dim, size in zip(next(each for each in graph.input if each.name == name).type.tensor_type.shape.dim, value.shape):
                dim.dim_value = size
    for each, value in zip(graph.output, outputs):
        data["output/" + each.name] = value
    data["model"] = numpy.frombuffer(model.SerializeToString(), dtype=numpy.uint8)
    archive.update({case.name + "/" + key: value for key, value in data.items()})
    return None


def main():
    path, ops = sys.argv[1], sys.argv[2:]
    archive = {}
    known = {key.split("/")[0] for key in numpy.load(os.environ["BESIDES"]).files} if "BESIDES" in os.environ else set()
    for case in collect_testcases(None):
        op = case.model.graph.node[0].op_type
        if "_expanded" in case.name or (ops and op not in ops) or case.name in known:
            continue
        why = write(case, archive)
        if why:
            print(f"{case.name}: left out, {why}")
    numpy.savez_compressed(path, **archive)


main()
