#!/usr/bin/env python3
"""What large compilations and refusals cost: seconds of CPU and peak memory, by plans alone (nothing runs, no weights are read); and the prediction of their steps. Needs ../shared/models.

  test/bench/costs.py [--bin=build/bin] [--models=FOLDER] [--only=REGEX] [--rounds=1]
"""
import argparse, os, re, subprocess, sys, tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--bin", default=os.path.join(ROOT, "build", "bin"))
parser.add_argument("--models", default=os.path.join(os.path.dirname(ROOT), "shared", "models"))
parser.add_argument("--only", default="", help="cases whose name matches")
parser.add_argument("--rounds", type=int, default=1, help="the least of so many")
args = parser.parse_args()

# Name, model, tokens of a step, flags; a refusal ends with exit code 1.
CASES = [
    ("gpt2-124m, forward", "gpt2-124m", 2, 64, "", False),
    ("gpt2-124m, training", "gpt2-124m", 8, 64, "--train --tp=2 --pp=2 --dp=2 --micro-batches=2", False),
    ("gpt2-1558m, training", "gpt2-1558m", 8, 512, "--train --tp=8", False),
    ("gpt2-1558m, refused", "gpt2-1558m", 8, 512, "--train --tp=2 --memory=4GiB", True),
    ("gpt2-1558m, refused, inference", "gpt2-1558m", 8, 512, "--tp=2 --memory=1GiB", True),
    ("gpt3-175b, training on 1,024 ranks", "gpt3-175b", 1536, 2048, "--train --tp=8 --pp=16 --dp=8 --micro-batches=192 --zero=1 --recompute=full", False),
    ("llama3-405b, training on 1,024 ranks", "llama3-405b", 1024, 2048, "--train --tp=8 --pp=16 --dp=8 --micro-batches=128 --zero=1 --recompute=full", False),
    ("megatron-1t, training on 3,072 ranks", "megatron-1t", 3072, 2048, "--train --tp=8 --pp=64 --dp=6 --micro-batches=512 --zero=1 --recompute=full", False),
]


def compile_once(model, batch, sequence, flags, is_refused, folder):
    """Seconds of CPU, peak MiB, bytes of the plan, seconds of CPU of hpc-run --backend=null --machine."""
    plan = os.path.join(folder, "a.plan")
    command = [os.path.join(args.bin, "hpc-opt"), os.path.join(args.models, model, "model.onnx"), "--no-weights", "--dim", f"batch_size={batch}",
               "--dim", f"sequence_length={sequence}", *flags.split(), "-o", plan]
    cpu, peak = usage_of(command, int(is_refused))
    predicted = 0 if is_refused else usage_of([os.path.join(args.bin, "hpc-run"), plan, "--backend=null", "--machine=a100-80g"], 0)[0]
    return cpu, peak, 0 if is_refused else os.path.getsize(plan), predicted


def usage_of(command, code):
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    errors = process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    if os.waitstatus_to_exitcode(status) != code:
        sys.exit(f"{' '.join(command)}: {errors}")
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


print(f"{'case':40} {'CPU s':>8} {'peak MiB':>9} {'plan KiB':>9} {'predicting':>10}")
with tempfile.TemporaryDirectory() as scratch:
    for name, *case in CASES:
        if re.search(args.only, name):
            cpu, peak, size, predicted = map(min, zip(*(compile_once(*case, scratch) for _ in range(args.rounds))))
            print(f"{name:40} {cpu:8.2f} {peak:9.0f} {size / 1024:9.0f} {predicted:10.2f}", flush=True)
