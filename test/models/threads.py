#!/usr/bin/python3
"""hpc-run --threads: outputs, losses and trained weights have the same bits for every number of threads a rank.

  test/models/threads.py [--bin=build/bin] [--models=gpt2-tiny,gpt2-odd] [--layouts=";--tp=2"] [--threads=1,2,3,5,8] [--steps=5] [--no-train]

Sizes are such that products and kernels are cut into several pieces.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile

import numpy

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
LAYOUTS = ["", "--tp=2", "--tp=3 --dp=2", "--pp=2 --micro-batches=2", "--tp=2 --pp=2 --dp=2 --micro-batches=2", "--dtype=bf16"]
# vocabulary, dims
MODELS = {"gpt2-tiny": (257, {"batch_size": 16, "sequence_length": 64}), "gpt2-odd": (503, {"batch_size": 24, "sequence_length": 47})}

parser = argparse.ArgumentParser()
parser.add_argument("--bin", default=os.path.join(ROOT, "build", "bin"))
parser.add_argument("--models", default=",".join(MODELS))
parser.add_argument("--layouts", default=";".join(LAYOUTS))
parser.add_argument("--threads", default="1,2,3,5,8")
parser.add_argument("--steps", type=int, default=5)
parser.add_argument("--no-train", action="store_true")
parser.add_argument("--run-flags", default="", help="of hpc-run")
options = parser.parse_args()


def run(tool, *arguments):
    done = subprocess.run([os.path.join(options.bin, tool), *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=600)
    if done.returncode:
        raise RuntimeError(f"{tool} {' '.join(arguments)}\n{done.stdout[-2000:]}")


def results(model, layout, folder):
    """What a step gives, and what training leaves, by number of threads."""
    file = os.path.join(ROOT, "models", model, "dynamo-eager-op18.onnx")
    vocabulary, dims = MODELS[model]
    random = numpy.random.default_rng(7)
    path = lambda name: os.path.join(folder, name)
    numpy.savez(path("in.npz"), input_ids=random.integers(0, vocabulary, list(dims.values())))
    numpy.save(path("tokens.npy"), random.integers(0, vocabulary, 8 * dims["batch_size"] * dims["sequence_length"]))
    flags = [*layout.split(), *(f"--dim={name}={size}" for name, size in dims.items())]
    run("hpc-opt", file, *flags, "-o", path("infer.plan"))
    if not options.no_train:
        run("hpc-opt", file, "--train", "--optimizer=adamw", "--clip=1.0", *flags, "-o", path("train.plan"))
    for threads in options.threads.split(","):
        with_threads = [f"--threads={threads}", *options.run_flags.split()]
        run("hpc-run", path("infer.plan"), f"--input={path('in.npz')}", f"--output={path('out.npz')}", *with_threads)
        found = {"outputs": numpy.load(path("out.npz"))["logits"].tobytes()}
        if not options.no_train:
            run("hpc-run", path("train.plan"), "--train", f"--data={path('tokens.npy')}", f"--steps={options.steps}", "--lr=3e-3", f"--metrics={path('m.jsonl')}",
                f"--save={path('w.safetensors')}", *with_threads)
            found["losses"] = [(line["loss"], line["grad_norm"]) for line in map(json.loads, open(path("m.jsonl")))]
            assert len(found["losses"]) == options.steps
            found["weights"] = open(path("w.safetensors"), "rb").read()
        yield threads, found


same = failed = 0
for model in options.models.split(","):
    for layout in options.layouts.split(";"):
        with tempfile.TemporaryDirectory(prefix="hpc-threads-") as folder:
            first = None
            try:
                for threads, found in results(model, layout, folder):
                    first = first or found
                    differ = [what for what in first if found[what] != first[what]]
                    if differ:
                        print(f"FAILED: {model} '{layout}' on {threads} threads: other {', '.join(differ)}")
                    failed += bool(differ)
                    same += not differ
            except (RuntimeError, AssertionError, subprocess.TimeoutExpired) as error:
                print(f"FAILED: {model} '{layout}': {error}")
                failed += 1
print(f"{same} runs have the bits of one thread, {failed} do not")
sys.exit(failed > 0)
