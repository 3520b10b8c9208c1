#!/usr/bin/env python3
"""Plans that --auto chooses compute what the serial model does: `hpc-opt --auto --devices=N --verify` on each model, forward and training.

  test/models/auto.py [--bin=build/bin] [--devices=4] [--jobs=N] [MODEL ...]
"""
import argparse
import os
import re
import subprocess
from concurrent.futures import ThreadPoolExecutor

MODELS = {
    "mlp": ("mlp/dynamo-op18.onnx", ["batch=8"]),
    "gpt2-tiny": ("gpt2-tiny/dynamo-eager-op18.onnx", ["batch_size=4", "sequence_length=16"]),
    "gpt2-odd": ("gpt2-odd/dynamo-eager-op18.onnx", ["batch_size=4", "sequence_length=9"]),
    "decoder": ("decoder/model.onnx", ["batch=4", "time=9"]),
    "vit": ("vit/model.onnx", ["batch=4"]),
}
here = os.path.dirname(os.path.abspath(__file__))
parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("models", nargs="*", metavar="MODEL", default=list(MODELS))
parser.add_argument("--bin", default="build/bin")
parser.add_argument("--devices", type=int, default=4)
parser.add_argument("--jobs", type=int, default=1)
args = parser.parse_args()


def check(case):
    name, training = case
    model, dims = MODELS[name]
    command = [f"{args.bin}/hpc-opt", os.path.join(here, "..", "..", "models", model), *(f"--dim={dim}" for dim in dims), "--auto", f"--devices={args.devices}", "--verify", *training]
    run = subprocess.run(command, capture_output=True, text=True)
    chosen = re.search(r"chosen: (.*)", run.stdout)
    failed = run.returncode or not chosen or f"verified: " not in run.stdout
    return failed, f"{'FAILED' if failed else 'equal '} {name} {' '.join(training)} {chosen and chosen.group(1)}" + (f"\n{' '.join(command)}\n{run.stdout}{run.stderr}" if failed else "")


with ThreadPoolExecutor(args.jobs) as pool:
    results = list(pool.map(check, [(name, training) for name in args.models for training in ([], ["--train"])]))
for _, text in results:
    print(text)
print(f"{len(results)} plans, {sum(bool(failed) for failed, _ in results)} failed")
