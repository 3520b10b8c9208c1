#!/usr/bin/env python3
"""Writes the ONNX project's tests of sequences into an archive of the form of make.py's: node tests, expanded ones included, and the models `sequence_model*`.

    make_sequences.py sequences.npz       needs onnx and numpy; nothing in a test needs this script

A sequence among inputs is put together from an input for each tensor, one among outputs taken apart, with its length as one more output. Positions, sizes of parts, rounds and
conditions become initializers, since the compiler wants those known."""
import os
import sys

import numpy
import onnx
from onnx import helper, numpy_helper
from onnx.backend.test.case.node import collect_testcases
from onnx.backend.test.loader import load_model_tests

KNOWN = {"SequenceAt": [1], "SequenceErase": [1], "SequenceInsert": [2], "SplitToSequence": [1]}


def written(archive, name, model, inputs, outputs):
    graph = model.graph
    stored = {each.name for each in graph.initializer}
    known = {node.input[i] for node in graph.node for i in KNOWN.get(node.op_type, []) if i < len(node.input)}
    nodes, taken, data = [], [], {}

    def tensor(each, array):
        return helper.make_tensor_value_info(each, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)

    ports = []
    for port, value in zip([each for each in graph.input if each.name not in stored], inputs):
        if isinstance(value, list):
            names = [f"{port.name}_{i}" for i in range(len(value))]
            nodes.append(helper.make_node("SequenceConstruct", names, [port.name], name="build_" + port.name))
        else:
            value, names = [value], [port.name]
        for each, array in zip(names, map(numpy.asarray, value)):
            if each in known:
                graph.initializer.append(numpy_helper.from_array(array, each))
            else:
                ports.append(tensor(each, array))
                data["input/" + each] = array
    made = []
    for port, value in zip(list(graph.output), outputs):
        names = [port.name]
        if isinstance(value, list):
            names = [f"{port.name}_{i}" for i in range(len(value))] + [port.name + "_length"]
            for i, each in enumerate(names[:-1]):
                graph.initializer.append(numpy_helper.from_array(numpy.array(i), each + "_at"))
                taken.append(helper.make_node("SequenceAt", [port.name, each + "_at"], [each], name="take_" + each))
            taken.append(helper.make_node("SequenceLength", [port.name], names[-1:], name="length_" + port.name))
            value = value + [numpy.array(len(value))]
        else:
            value = [value]
        for each, array in zip(names, map(numpy.asarray, value)):
            made.append(tensor(each, array))
            data["output/" + each] = array
    nodes += list(graph.node) + taken
    for field, content in (("input", ports), ("output", made), ("node", nodes)):
        del getattr(graph, field)[:]
        getattr(graph, field).extend(content)
    data["model"] = numpy.frombuffer(model.SerializeToString(), dtype=numpy.uint8)
    archive.update({name + "/" + key: value for key, value in data.items()})


def files(folder, model):
    """The first set of data of a test on disk; all of them are tensors."""
    data = os.path.join(folder, "test_data_set_0")
    for what in ("input", "output"):
        count = len([each for each in os.listdir(data) if each.startswith(what)])
        yield [numpy_helper.to_array(onnx.load_tensor(os.path.join(data, f"{what}_{i}.pb"))) for i in range(count)]


def main():
    archive = {}
    for case in collect_testcases(None):
        ops = {node.op_type for node in case.model.graph.node}
        if any("Sequence" in op and op != "ReverseSequence" for op in ops):
            model = onnx.ModelProto()
            model.CopyFrom(case.model)
            inputs, outputs = case.data_sets[0]
            written(archive, case.name, model, inputs, outputs)
    for case in load_model_tests(kind="simple"):
        if "sequence_model" in case.name:
            model = onnx.load(os.path.join(case.model_dir, "model.onnx"))
            written(archive, case.name, model, *files(case.model_dir, model))
    print(len({key.split("/")[0] for key in archive}), "cases")
    numpy.savez_compressed(sys.argv[1], **archive)


main()
