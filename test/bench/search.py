#!/usr/bin/env python3
"""Times whole searches without code generation, and prints what they found beside what they should take on two quiet cores.

  python3 test/bench/search.py [--bin=build/bin] [--models=../shared/models] [CASE ...]

A case is a name of the table below. The columns: seconds of the command, of both cores together, the limit; candidates, how many of them were estimated and compiled; the
step of the winner, the gap to the bound, and the winner's flags.
"""
import argparse
import json
import os
import resource
import subprocess
import time

# Model, dims, ranks, flags, most seconds.
CASES = {
    "gpt2-124m": ("gpt2-124m", {"batch_size": 32, "sequence_length": 512}, 8, ["--machine=a100-80g"], 2),
    "gpt3-175b": ("gpt3-175b", {"batch_size": 1536, "sequence_length": 2048}, 1024, ["--machine=a100-80g", "--dtype=bf16"], 20),
    "llama3-405b": ("llama3-405b", {"batch_size": 1024, "sequence_length": 4096}, 1024, ["--machine=h100", "--dtype=bf16"], 20),
}
parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("cases", nargs="*", metavar="CASE", default=list(CASES))
parser.add_argument("--bin", default="build/bin")
parser.add_argument("--models", default=os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..", "shared", "models"))
args = parser.parse_args()

print(f"{'model':12} {'ranks':>5} {'s':>6} {'cpu s':>6} {'limit':>5} {'candidates':>10} {'estimated':>9} {'compiled':>8} {'step s':>9} {'gap':>6}  plan")
slow = []
for name in args.cases:
    model, dims, ranks, flags, limit = CASES[name]
    command = [f"{args.bin}/hpc-opt", os.path.join(args.models, model, "model.onnx"), "--no-weights", "--train", f"--devices={ranks}", "--rank-layouts=10", "--json", *flags]
    command += [f"--dim={dim}={size}" for dim, size in dims.items()]
    before, begun = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    run = subprocess.run(command, capture_output=True, text=True)
    taken, after = time.monotonic() - begun, resource.getrusage(resource.RUSAGE_CHILDREN)
    if run.returncode:
        raise SystemExit(f"{' '.join(command)}\n{run.stderr}")
    answer = json.loads(run.stdout)
    best, cpu = answer["plans"][0], after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    print(f"{name:12} {ranks:5} {taken:6.2f} {cpu:6.2f} {limit:5} {answer['candidates']:10} {answer['estimated']:9} {answer['compiled']:8} {best['seconds']:9.4g} "
          f"{1 - answer['least_seconds'] / best['seconds']:6.1%}  {best['flags']}", flush=True)
    slow += [name] if taken > limit else []
print("all within their limits" if not slow else "too slow: " + ", ".join(slow))
