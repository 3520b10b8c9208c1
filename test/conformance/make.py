#!/usr/bin/env python3
"""Writes the ONNX project's own node tests into one archive: CASE/model (the bytes of the .onnx), CASE/input/NAME, CASE/output/NAME.

    make.py cases.npz [OP ...]       needs onnx and numpy; nothing in a test needs this script
    BESIDES=attention.npz make.py cases.npz       no case of another archive
    LARGE=1 BESIDES=cases.npz make.py attention.npz Attention RotaryEmbedding       big data too

Without a list of ops those that the tables of compiler/Import/OnnxOps name (cases-images.npz: those of images). Inputs that say a shape, axes or an amount become initializers, since
the compiler wants those known. Cases with types or values that are no tensors of numpy's types, and cases with big data, are left out."""
import os
import pathlib
import re
import sys

import numpy
import onnx
from onnx import numpy_helper
from onnx.backend.test.case.node import collect_testcases

from run import fixed_inputs

MAX_BYTES = 1 << 17 if os.environ.get("LARGE") else 4096 if "images" in sys.argv[1] else 2048


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
    if any(each.dtype.kind not in "fiub" or each.nbytes > MAX_BYTES for each in arrays):
        return "type or size"
    inputs, outputs = arrays[: len(inputs)], arrays[len(inputs):]
    names = [each.name for each in graph.input]
    fixed = fixed_inputs(graph, set(names))
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


# Tables whose ops are in cases-images.npz.
IMAGES = {"ChannelNorm", "Convolution", "GridSample", "Pooling", "QuantizedConvolution", "Resize", "Spatial"}


def imported_ops(of_images):
    tables = pathlib.Path(__file__).resolve().parents[2] / "compiler/Import/OnnxOps"
    return {name for path in tables.glob("*.cpp") if (path.stem in IMAGES) == of_images
            for name in re.findall(r'\{"(\w+)", \d+, ', path.read_text())}


def main():
    path, ops = sys.argv[1], set(sys.argv[2:]) or imported_ops("images" in sys.argv[1])
    archive = {}
    known = {key.split("/")[0] for key in numpy.load(os.environ["BESIDES"]).files} if "BESIDES" in os.environ else set()
    for case in collect_testcases(None):
        if "_expanded" in case.name or case.model.graph.node[0].op_type not in ops or case.name in known:
            continue
        why = write(case, archive)
        if why:
            print(f"{case.name}: left out, {why}")
    numpy.savez_compressed(path, **archive)


main()
