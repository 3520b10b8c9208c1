#!/usr/bin/env python3
"""Compiles models in turns and prints time, CPU and peak memory of each, the least of all rounds.

  python3 test/bench/compile.py [--bin=build/bin] [--rounds=3] MODEL.onnx[=LAYERS] ... [-- FLAGS of hpc-opt]

A model with a number of LAYERS gets a column of milliseconds a layer, beside which the next should not stand out: compile time is to
grow with the layers, not faster. For example

  python3 test/bench/compile.py ../shared/models/gpt2-124m/model.onnx=12 ../shared/models/gpt2-1558m/model.onnx=48 \\
    -- --tp=2 --pp=2 --dim batch_size=2 --dim sequence_length=64
"""
import argparse, os, subprocess, sys, tempfile, time

own, flags = (sys.argv[1:], []) if "--" not in sys.argv else (sys.argv[1:sys.argv.index("--")], sys.argv[sys.argv.index("--") + 1:])
parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("models", nargs="+", metavar="MODEL.onnx[=LAYERS]")
parser.add_argument("--bin", default="build/bin")
parser.add_argument("--rounds", type=int, default=3)
args = parser.parse_args(own)


def compile_once(model, plan):
    """Seconds on the clock, seconds of CPU, peak MiB, bytes of the plan."""
    start = time.perf_counter()
    process = subprocess.Popen([f"{args.bin}/hpc-opt", model, *flags, "-o", plan], stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - start
    if status:
        sys.exit(f"{model}: hpc-opt failed")
    return seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024, os.path.getsize(plan)


models = [name.rpartition("=")[::2] if name.rpartition("=")[0] else (name, "") for name in args.models]
least = {}
with tempfile.TemporaryDirectory() as folder:
    for _ in range(args.rounds):
        for model, _ in models:
            measured = compile_once(model, f"{folder}/plan")
            least[model] = tuple(map(min, zip(measured, least.get(model, measured))))
print(f"{'model':40} {'seconds':>8} {'CPU s':>8} {'peak MiB':>9} {'plan KiB':>9} {'ms a layer':>10}")
for model, layers in models:
    seconds, cpu, peak, size = least[model]
    name = "/".join(model.split("/")[-2:])
    print(f"{name:40} {seconds:8.2f} {cpu:8.2f} {peak:9.0f} {size / 1024:9.0f} {1e3 * cpu / int(layers) if layers else float('nan'):10.1f}")
