#!/usr/bin/python3
"""Steps that are skipped (NaN or an infinity in the data, no label that counts) change nothing. Of ../../models/mlp with each optimizer: eight steps of which three are skipped
  golden   have PyTorch's losses and end in its weights, GradScaler and all (skipped/golden.json, float64), with a curve that goes on in every step;
  without  have the bits of weights and states that a run of the other five has, at a constant rate;
  resume   have the bits of the run at one stretch when they are saved and loaded behind each step.

  test/models/skipped.py [--bin=build/bin] [--cases="adam;momentum --tp=2;adamw --dp=2 --zero=3 --dtype=fp16"] [--only=golden,without,resume]
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile

import numpy

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(HERE, "skipped"))
from cases import OPTIMIZERS, SKIPPED, STEPS, batches  # noqa: E402

GOLDEN = json.load(open(os.path.join(HERE, "skipped", "golden.json")))
LAYOUTS = ["", "--tp=2", "--dp=2", "--pp=2 --micro-batches=2", "--pp=3 --micro-batches=4 --schedule=zb-h1", "--dp=2 --zero=1", "--tp=2 --dp=2 --zero=2 --micro-batches=2", "--pp=2 --dp=2 --zero=3", "--deterministic --tp=2 --dp=2",
           "--dtype=bf16 --dp=2 --zero=1", "--dtype=fp16 --tp=2 --pp=2"]
parser = argparse.ArgumentParser()
parser.add_argument("--bin", default=os.path.join(ROOT, "build", "bin"))
parser.add_argument("--cases", default=";".join(f"{name} {layout}" for name in OPTIMIZERS for layout in LAYOUTS))
parser.add_argument("--only", default="golden,without,resume")
options = parser.parse_args()
folder = tempfile.TemporaryDirectory(prefix="hpc-skipped-")


def path(name):
    return os.path.join(folder.name, name)


def run(tool, *arguments):
    done = subprocess.run([os.path.join(options.bin, tool), *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert done.returncode == 0, f"{tool} {' '.join(arguments)}\n{done.stdout[-2000:]}"


def read_tensors(file):
    """By name."""
    data = open(file, "rb").read()
    size = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + size])
    header.pop("__metadata__")
    return {name: numpy.frombuffer(data[8 + size + entry["data_offsets"][0] : 8 + size + entry["data_offsets"][1]], numpy.float32) for name, entry in header.items()}


def compile(recipe, layout):
    flags = [f"--optimizer={recipe['optimizer']}"] + [f"--{flag}={recipe[key]!r}" for key, flag in (("momentum", "momentum"), ("weight_decay", "weight-decay"), ("eps", "epsilon")) if key in recipe]
    flags += ["--nesterov"] * recipe.get("nesterov", False) + [f"--betas={b[0]},{b[1]}" for b in [recipe.get("betas")] if b]
    run("hpc-opt", os.path.join(ROOT, "models", "mlp", "dynamo-op18.onnx"), "--train", "--loss=classification", "--dim", "batch=8", *flags, *layout.split(), f"--kernel-cache={path('kernels')}", "-o", path("m.plan"))


def train(recipe, data, steps, *flags):
    if "--load" not in "".join(flags) and os.path.exists(path("w.states")):
        os.remove(path("w.states"))
    run("hpc-run", path("m.plan"), "--train", f"--data={path(data)}", f"--steps={steps}", f"--lr={recipe['lr']!r}", f"--save={path('w.safetensors')}", *flags)
    states = read_tensors(path("w.states")) if os.path.exists(path("w.states")) else {}
    assert bool(states) == (recipe["optimizer"] != "sgd" or "momentum" in recipe), f"states {sorted(states)}"
    return {**read_tensors(path("w.safetensors")), **states}


def check_golden(name, recipe, layout):
    bound = 1e-2 if "--dtype" in layout else 1e-5
    weights = train(recipe, "all.npz", STEPS, "--lr-schedule=linear", f"--metrics={path('m.jsonl')}")
    lines = [json.loads(line) for line in open(path("m.jsonl"))]
    assert [line["step"] for line in lines if line["skipped"]] == list(SKIPPED), "other steps are skipped"
    for line, loss in zip(lines, GOLDEN[name]["losses"]):
        assert loss is None or abs(line["loss"] - loss) <= bound * loss, f"step {line['step']}: loss {line['loss']} instead of {loss}"
    for weight, (norm, *first) in GOLDEN[name]["weights"].items():
        found = numpy.array([numpy.linalg.norm(weights[weight].astype(float)), *weights[weight][:4]])
        assert numpy.abs(found - [norm, *first]).max() <= bound * norm, f"{weight}: {found} instead of {[norm, *first]}"


def check_without(name, recipe, layout):
    """The loss scale of fp16 is halved from the second overflow on: a power of two, which shows where an f16 is too small to have all its bits."""
    scale = ["--loss-scale=1024"] if "fp16" in layout else []
    mine, other = train(recipe, "all.npz", STEPS, *scale), train(recipe, "kept.npz", STEPS - len(SKIPPED), *scale)
    assert mine.keys() == other.keys()
    for tensor in mine:
        same = numpy.array_equal(mine[tensor], other[tensor]) if not scale else numpy.allclose(mine[tensor], other[tensor], 1e-3, 1e-3 * numpy.abs(other[tensor]).max())
        assert same, f"{tensor} is not what the steps that are not skipped make of it"


def check_resume(name, recipe, layout):
    flags = ["--lr-schedule=linear", f"--lr-steps={STEPS}"]
    whole = train(recipe, "all.npz", STEPS, *flags)
    names = ["w.safetensors", "w.states"] if os.path.exists(path("w.states")) else ["w.safetensors"]
    reference = [open(path(name), "rb").read() for name in names]
    for step in range(1, STEPS + 1):
        train(recipe, "all.npz", step, *flags, *([f"--load={path('w.safetensors')}"] if step > 1 else []))
    assert [open(path(name), "rb").read() for name in names] == reference, "step by step with --load gives another file"
    assert whole


def main():
    passed = failed = 0
    for data, skipped in (("all.npz", True), ("kept.npz", False)):
        x, labels = batches(skipped)
        numpy.savez(path(data), x=x, labels=labels)
    for case in options.cases.split(";"):
        name, _, layout = case.strip().partition(" ")
        try:
            compile(OPTIMIZERS[name], layout)
            for check in options.only.split(","):
                {"golden": check_golden, "without": check_without, "resume": check_resume}[check](name, OPTIMIZERS[name], layout)
            passed += 1
        except AssertionError as error:
            failed += 1
            print(f"FAIL: {case}: {error}")
        sys.stdout.flush()
    print(f"{passed} passed, {failed} failed")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
