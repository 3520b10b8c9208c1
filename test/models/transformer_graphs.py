"""Graphs of models/transformer.py: ONNX Runtime gives the same logits, and a training step has the products of Narayanan et al. 2021 (arXiv 2104.04473), section 5.1, without recomputation.

  transformer_graphs.py FOLDER --bin=build/bin
"""
import argparse
import json
import os
import subprocess
import sys

import numpy
import onnx
import onnxruntime

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
LAYERS, WIDTH, HEADS, VOCABULARY, BATCH, LENGTH = 16, 48, 4, 96, 4, 24
SHAPE = [f"--layers={LAYERS}", f"--width={WIDTH}", f"--heads={HEADS}", f"--vocabulary={VOCABULARY}", f"--positions={LENGTH}"]
CASES = {"gpt": [], "scores": ["--scores"], "llama": ["--family=llama", "--groups=2", "--inner=64"], "nemotron": ["--family=llama", "--groups=2", "--activation=relu2", "--norm=layer"],
         "mpt": ["--no-biases", "--norm=layer-without-bias"]}

parser = argparse.ArgumentParser()
parser.add_argument("folder")
parser.add_argument("--bin", required=True)
options = parser.parse_args()
os.makedirs(options.folder, exist_ok=True)


def path(name):
    return os.path.join(options.folder, name)


def graph(name, *flags):
    file = path(f"{name}.onnx")
    subprocess.run([sys.executable, os.path.join(ROOT, "models", "transformer.py"), file, *SHAPE, *flags], check=True)
    return file


def fill(file):
    """Weights for the places of the graph."""
    draw = numpy.random.default_rng(1)
    tensors = [tensor for tensor in onnx.load(file, load_external_data=False).graph.initializer if tensor.data_location == onnx.TensorProto.EXTERNAL]
    with open(path("model.onnx.data"), "wb") as data:
        for tensor in tensors:
            place = {entry.key: entry.value for entry in tensor.external_data}
            values = draw.standard_normal(tuple(tensor.dims)) * (0.2 if len(tensor.dims) > 1 else 0.1) + (1 if "ln" in tensor.name and tensor.name.endswith("weight") else 0)
            data.seek(int(place["offset"]))
            data.write(values.astype(numpy.float32).tobytes())


def tool(name, *flags):
    return subprocess.run([os.path.join(options.bin, name), *flags], check=True, capture_output=True, text=True).stdout


SIZES = [f"--dim=batch_size={BATCH}", f"--dim=sequence_length={LENGTH}"]
ids = numpy.random.default_rng(0).integers(0, VOCABULARY, (BATCH, LENGTH))
numpy.savez(path("inputs.npz"), input_ids=ids)
for name, flags in CASES.items():
    file = graph(name, *flags)
    fill(file)
    expected = onnxruntime.InferenceSession(file, providers=["CPUExecutionProvider"]).run(None, {"input_ids": ids})[0]
    tool("hpc-opt", file, "--tp=2", *SIZES, "-o", path("a.plan"))
    tool("hpc-run", path("a.plan"), f"--input={path('inputs.npz')}", f"--output={path('outputs.npz')}")
    error = numpy.abs(numpy.load(path("outputs.npz"))["logits"] - expected).max() / numpy.abs(expected).max()
    print(f"{name}: {'equal' if error < 1e-5 else f'off by {error}'}")

def operations(file, *flags):
    """Of all products of a training step."""
    tool("hpc-opt", file, "--no-weights", "--train", *flags, *SIZES, "-o", path("b.plan"))
    stages = json.loads(tool("hpc-plan", path("b.plan"), "--json"))["stages"]
    return sum(stage["product_flops_per_step"] * (stage["ranks"][1] - stage["ranks"][0] + 1) for stage in stages)


# As many stages as layers, in 16 bits: values travel through all of them.
products = 6 * BATCH * LENGTH * (12 * LAYERS * WIDTH**2 + VOCABULARY * WIDTH) + 12 * LAYERS * BATCH * LENGTH**2 * WIDTH
for name, graph_flags, layout in (("scores", ["--dropout=0.1"], ["--tp=2"]), ("scores by stages", [], ["--pp=16", "--micro-batches=2", "--pp-split=uniform"])):
    found = operations(graph("b", "--scores", "--dtype=bfloat16", *graph_flags), *layout)
    print(f"{name}: {'as many products' if found == products else f'{found} operations, not {products}'}")
# Ranks that share sequences see the causal half of the scores together.
whole, shared = operations(graph("b")), operations(graph("b"), "--cp=2")
print(f"shared sequences: {'as many products' if whole == shared else f'{shared} operations, not {whole}'}")
