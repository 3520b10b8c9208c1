#!/usr/bin/env python3
"""Writes whole models as ONNX Runtime's optimizers leave them, with what the models they were made of give, in the form of make.py's archive.

    make_optimized.py optimized.npz          needs onnx, onnxruntime, sympy and numpy; nothing in a test needs this script

`*-session`: saved by a session at its highest level. `*-transformers`: by onnxruntime.transformers.optimizer. The models: test/models/bert.py and
models/gpt2-odd. optimized.npz: onnxruntime 1.31."""
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import onnx
import onnxruntime
from onnxruntime.transformers import optimizer

root = pathlib.Path(__file__).resolve().parents[2]
archive = {}


def by_session(source, target):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
    options.optimized_model_filepath = str(target)
    onnxruntime.InferenceSession(str(source), options, providers=["CPUExecutionProvider"])


def add(name, path, inputs, outputs):
    model = onnx.load(path)
    for port in [*model.graph.input, *model.graph.output]:
        for dim, size in zip(port.type.tensor_type.shape.dim, {**inputs, **outputs}[port.name].shape):
            dim.dim_value = size
    del model.graph.value_info[:]
    archive[name + "/model"] = np.frombuffer(model.SerializeToString(), dtype=np.uint8)
    archive.update({f"{name}/input/{key}": value for key, value in inputs.items()})
    archive.update({f"{name}/output/{key}": value for key, value in outputs.items()})
    print(name, sorted({node.op_type for node in model.graph.node if node.domain == "com.microsoft"}))


def take(name, source, inputs, **sizes):
    session = onnxruntime.InferenceSession(str(source), providers=["CPUExecutionProvider"])
    outputs = {port.name: value for port, value in zip(session.get_outputs(), session.run(None, inputs))}
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "model.onnx"
        by_session(source, path)
        add(name + "-session", path, inputs, outputs)
        if sizes:
            optimizer.optimize_model(str(source), opt_level=0, **sizes).save_model_to_file(str(path))
            add(name + "-transformers", path, inputs, outputs)


with tempfile.TemporaryDirectory() as folder:
    model, given = f"{folder}/bert.onnx", f"{folder}/in.npz"
    subprocess.run([sys.executable, root / "test/models/bert.py", model, given], check=True)
    inputs = dict(np.load(given))
    take("bert", model, inputs, model_type="bert", num_heads=3, hidden_size=24)
ids = np.random.default_rng(3).integers(0, 503, (2, 6))
take("gpt2-odd", root / "models/gpt2-odd/dynamo-eager-op18.onnx", {"input_ids": ids})
np.savez_compressed(sys.argv[1], **archive)
