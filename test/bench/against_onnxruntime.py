#!/usr/bin/env python3
"""Times a model in hpc-run and in ONNX Runtime, taking turns, and prints medians, minima and their ratio.

  python3 test/bench/against_onnxruntime.py MODEL.onnx INPUTS.npz [--bin=build/bin] [--rounds=5] [--layouts=1,2]

Needs numpy and onnxruntime (PyPI). Both get as many threads as this process may use: ONNX Runtime as intra-op threads, hpc-run as ranks (a layout is tp).
"""
import argparse, json, os, statistics, subprocess, tempfile, time
import numpy
import onnxruntime

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("model"), parser.add_argument("inputs")
parser.add_argument("--bin", default="build/bin"), parser.add_argument("--rounds", type=int, default=5)
parser.add_argument("--layouts", default="1,2", help="values of --tp")
args = parser.parse_args()

options = onnxruntime.SessionOptions()
options.intra_op_num_threads = len(os.sched_getaffinity(0))
session = onnxruntime.InferenceSession(args.model, options, providers=["CPUExecutionProvider"])
arrays = numpy.load(args.inputs)
feed = {port.name: arrays[port.name] for port in session.get_inputs()}
dims = {name: size for port in session.get_inputs() for name, size in zip(port.shape, feed[port.name].shape) if isinstance(name, str)}

def ours(plan):
    line = subprocess.run([f"{args.bin}/hpc-run", plan, f"--input={args.inputs}", "--repeat=3"], check=True, capture_output=True, text=True).stdout
    return json.loads(line)["min_ms"]

def theirs():
    session.run(None, feed)
    best = 1e30
    for _ in range(3):
        start = time.perf_counter()
        session.run(None, feed)
        best = min(best, 1e3 * (time.perf_counter() - start))
    return best

with tempfile.TemporaryDirectory() as folder:
    plans = {}
    for tp in args.layouts.split(","):
        plans[tp] = f"{folder}/tp{tp}.plan"
        subprocess.run([f"{args.bin}/hpc-opt", args.model, f"--tp={tp}", *(f"--dim={n}={s}" for n, s in dims.items()), "-o", plans[tp]], check=True)
    times = {name: [] for name in ["onnxruntime", *plans]}
    for _ in range(args.rounds):
        times["onnxruntime"].append(theirs())
        for tp, plan in plans.items():
            times[tp].append(ours(plan))
for name, values in times.items():
    ratios = [mine / theirs for mine, theirs in zip(values, times["onnxruntime"])]
    label = name if name == "onnxruntime" else f"hpc-run, tp={name}"
    print(f"{label}: min {min(values):.1f} ms, median {statistics.median(values):.1f} ms, median ratio to onnxruntime {statistics.median(ratios):.2f}")
