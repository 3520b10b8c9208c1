#!/usr/bin/env python3
"""hpc-opt --export=trained.onnx is the model that was trained, and nothing else of it is changed.

  test/models/trained_onnx.py FOLDER [--stored] MODEL.onnx...    with onnx, onnxruntime and numpy; hpc-opt and hpc-run on the PATH

For each model: two steps of training, the checkpoint as .onnx, and then
- all of the file but the elements of tensors is that of the model, and every trained tensor has the checkpoint's value;
- ONNX Runtime's logits of it are those of an inference plan with the checkpoint's weights, and others than the model's own;
- it trains again: its first step has the loss that the training would have gone on with.
--stored: the models too with their tensors in other fields: float_data, one file of external data, a file for each tensor, Constant nodes, f16 as int32_data and raw_data.
FOLDER gets the files. A line each.
"""
import json
import os
import subprocess
import sys

import numpy
import onnx
import onnxruntime
from onnx import numpy_helper
from safetensors.numpy import load_file

SIZES = {"past_sequence_length": 8, "batch_size": 2, "sequence_length": 16}


def run(*command):
    result = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    if result.returncode:
        sys.exit(f"{' '.join(map(str, command))}\n{result.stdout}{result.stderr}")
    return result


def inputs_of(model, random):
    arrays = {}
    initializers = {each.name for each in model.graph.initializer}
    for port in model.graph.input:
        if port.name in initializers:
            continue
        kind = port.type.tensor_type
        shape = []
        for dim in kind.shape.dim:
            for name, size in SIZES.items():
                dim.dim_param = dim.dim_param.replace(name, str(size))
            shape.append(eval(dim.dim_param) if dim.dim_param else dim.dim_value)
        if kind.elem_type == onnx.TensorProto.INT64:
            arrays[port.name] = numpy.ones(shape, numpy.int64) if "mask" in port.name else \
                numpy.broadcast_to(numpy.arange(shape[-1]), shape).copy() if "position" in port.name else random.integers(0, 257, shape)
        else:
            arrays[port.name] = random.standard_normal(shape).astype(numpy.float32)
    return arrays


def elements(message, found):
    """All tensors of a message by name."""
    for each in message.initializer:
        found[each.name] = numpy_helper.to_array(each)
    for node in message.node:
        for attribute in node.attribute:
            if attribute.HasField("t") and node.op_type == "Constant":
                found[node.output[0]] = numpy_helper.to_array(attribute.t)
            if attribute.HasField("g"):
                elements(attribute.g, found)
    return found


def without_elements(message):
    for each in message.initializer:
        for name in ("raw_data", "float_data", "int32_data", "external_data"):
            each.ClearField(name)
    for node in message.node:
        for attribute in node.attribute:
            if attribute.HasField("t") and node.op_type == "Constant":
                attribute.t.ClearField("raw_data")
    return message


def logits_of(path, arrays):
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    return dict(zip([each.name for each in session.get_outputs()], session.run(None, arrays)))


def check(folder, path, plain):
    """`plain`: the same model in one file."""
    os.makedirs(folder)
    model = onnx.load(path, load_external_data=False)
    arrays = inputs_of(onnx.load(path), numpy.random.default_rng(0))
    numpy.savez(f"{folder}/one.npz", **arrays)
    numpy.savez(f"{folder}/steps.npz", **{name: numpy.stack([array] * 3) for name, array in arrays.items()})
    dims = [word for name, size in SIZES.items() for word in ("--dim", f"{name}={size}") if any(name in str(port.type) for port in model.graph.input)]
    train = ["--train", "--optimizer=sgd", "--tp=2", *dims]
    if "dropout" in path:
        train.append("--dropout=0")
    run("hpc-opt", path, *train, "-o", f"{folder}/train.plan")
    step = ["--train", f"--data={folder}/steps.npz", "--lr=0.3"]
    run("hpc-run", f"{folder}/train.plan", *step, "--steps=2", f"--save={folder}/run/")
    run("hpc-run", f"{folder}/train.plan", *step, "--steps=3", f"--load={folder}/run", f"--metrics={folder}/on.jsonl")
    exported = f"{folder}/trained.onnx"
    run("hpc-opt", path, f"--trained={folder}/run", f"--export={exported}")

    # 1. Only elements differ, and those of trained tensors are the checkpoint's.
    trained = onnx.load(exported, load_external_data=False)
    onnx.checker.check_model(exported)
    before, after = elements(onnx.load(path).graph, {}), elements(onnx.load(exported).graph, {})
    assert without_elements(model.graph) and without_elements(trained.graph)
    assert model.SerializeToString(deterministic=True) == trained.SerializeToString(deterministic=True), path
    saved = load_file(f"{folder}/run/model.safetensors")
    changed = {name for name in before if before[name].dtype != after[name].dtype or not numpy.array_equal(before[name], after[name])}
    for name in changed:  # by its own name, or that of a tied one, perhaps transposed
        values = [saved[name]] if name in saved else [turned for value in saved.values() for turned in (value, value.T)]
        assert any(value.shape == after[name].shape and numpy.array_equal(value.astype(after[name].dtype), after[name]) for value in values), name
    for name, value in saved.items():
        others = [after[name]] if name in after else after.values()
        assert any(other.shape == value.shape and numpy.array_equal(value.astype(other.dtype), other) for other in others), name

    # 2. The logits. ONNX Runtime would draw masks for dropouts, and a plan in f16 takes no weights in f32.
    worst = 0
    if not any(word in path for word in ("dropout", "half")):
        run("hpc-opt", plain, "--no-weights", *dims, "-o", f"{folder}/any.plan")
        run("hpc-run", f"{folder}/any.plan", f"--input={folder}/one.npz", f"--weights={folder}/run", f"--output={folder}/out.npz")
        ours, right, old = numpy.load(f"{folder}/out.npz"), logits_of(exported, arrays), logits_of(path, arrays)
        for name in right:
            worst = max(worst, abs(ours[name] - right[name]).max() / abs(right[name]).max())
        assert worst <= 5e-6, (path, worst)  # f32: 4 layers, sums of up to 128 terms
        assert abs(old["logits"] - right["logits"]).max() > 1e-3 * abs(right["logits"]).max(), path

    # 3. It trains again.
    run("hpc-opt", exported, *train, "-o", f"{folder}/again.plan")
    run("hpc-run", f"{folder}/again.plan", *step, "--steps=1", f"--metrics={folder}/again.jsonl")
    on, again = ([json.loads(line) for line in open(f"{folder}/{name}.jsonl")] for name in ("on", "again"))
    assert abs(on[-1]["loss"] - again[0]["loss"]) < 1e-6 * on[-1]["loss"], (path, on[-1], again[0])
    print(f"{os.path.basename(path)}: {len(changed)} of {len(before)} tensors are new, logits within {worst:.1e}", flush=True)


def stored(folder, path):
    """The model with its tensors in other fields."""
    os.makedirs(folder)
    model = onnx.load(path)
    onnx.save_model(model, f"{folder}/external.onnx", save_as_external_data=True, location="external.bin", size_threshold=100)
    model = onnx.load(path)
    os.makedirs(f"{folder}/files")
    onnx.save_model(model, f"{folder}/files/model.onnx", save_as_external_data=True, all_tensors_to_one_file=False, size_threshold=100)
    model = onnx.load(path)
    for each in model.graph.initializer:
        if each.data_type == onnx.TensorProto.FLOAT and each.raw_data:
            each.float_data.extend(numpy_helper.to_array(each).ravel().tolist())
            each.ClearField("raw_data")
    onnx.save_model(model, f"{folder}/float_data.onnx")
    model = onnx.load(path)
    nodes = [onnx.helper.make_node("Constant", [], [each.name], value=each) for each in model.graph.initializer] + list(model.graph.node)
    model.graph.ClearField("initializer")
    model.graph.ClearField("node")
    model.graph.node.extend(nodes)
    onnx.save_model(model, f"{folder}/constants.onnx")
    subprocess.run([sys.executable, os.path.join(os.path.dirname(os.path.abspath(__file__)), "narrow_model.py"), path, "f16", f"{folder}/half.onnx"], check=True)
    model = onnx.load(f"{folder}/half.onnx")
    for each in model.graph.initializer[::2]:
        if each.data_type == onnx.TensorProto.FLOAT16:
            each.int32_data.extend(numpy.frombuffer(each.raw_data, numpy.uint16).tolist())
            each.ClearField("raw_data")
    onnx.save_model(model, f"{folder}/half.onnx")
    return [f"{folder}/{name}.onnx" for name in ("external", "files/model", "float_data", "constants", "half")]


if __name__ == "__main__":
    folder, *models = sys.argv[1:]
    if models[0] == "--stored":
        models = [(form, path) for index, path in enumerate(models[1:]) for form in (path, *stored(f"{folder}/stored{index}", path))]
    else:
        models = [(path, path) for path in models]
    for index, (path, plain) in enumerate(models):
        check(f"{folder}/{index}", path, plain)
    print(f"{len(models)} equal")
