#!/usr/bin/python3
"""The layouts that the field's examples train, compiled: bytes of a training step's largest rank by class. Fails where a layout takes more than one device does, or where a block of GPT-3 takes more
than 1.5 times as long to compile in 2D as in 1D. Nothing runs, no weights are read. Needs ../shared/models.

  test/bench/seed_table.py [--bin=build/bin] [--models=FOLDER] [--only=gpt2-124m]
"""
import argparse
import os
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(1, os.path.join(ROOT, "test"))
from plan_memory import CLASSES, Refused, compile_plan, largest_rank  # noqa: E402

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--bin", default=os.path.join(ROOT, "build", "bin"))
parser.add_argument("--models", default=os.path.join(os.path.dirname(ROOT), "shared", "models"))
parser.add_argument("--only", default="", help="a model")
options = parser.parse_args()

# Name in the field's configurations, and the flags. The first of a model is one device.
GPT2 = [("vanilla", ""), ("dp2", "--dp=2"), ("1d tp2", "--tp=2"), ("2d tp4", "--tp=4 --tp-layout=2d"), ("2.5d tp2", "--tp=2 --tp-layout=2.5d:1x1x2"), ("3d tp8", "--tp=8 --tp-layout=3d"),
        ("pp2", "--pp=2 --micro-batches=4"), ("zero2", "--dp=2 --zero=2"), ("zero3", "--dp=2 --zero=3"), ("pp1d", "--tp=2 --pp=2 --dp=2 --micro-batches=4")]
GPT3 = [("vanilla", ""), ("1d tp4 pp24", "--tp=4 --pp=24"), ("2d tp4 pp24", "--tp=4 --pp=24 --tp-layout=2d"), ("2.5d tp4 pp24", "--tp=4 --pp=24 --tp-layout=2.5d:2x2x1"),
        ("1d tp4 pp32", "--tp=4 --pp=32"), ("2d tp4 pp32", "--tp=4 --pp=32 --tp-layout=2d")]
# 24 micro-batches of 4 sequences fill 24 stages.
CASES = [("gpt2-124m", ["--dim=batch_size=8", "--dim=sequence_length=512"], GPT2),
         ("gpt3-175b", ["--dim=batch_size=96", "--dim=sequence_length=2048", "--micro-batches=24", "--recompute=full"], GPT3)]
MOST_TIMES_1D, BLOCKS = 1.5, 96


def compiled(name, sizes, flags):
    return compile_plan(options.bin, os.path.join(options.models, name, "model.onnx"), ["--train", *sizes, *flags.split()], os.path.join(scratch, "a.plan"))



failed = 0
print("| model | layout | ranks | GiB of the largest rank | of one device | weights | states | accumulators | activations | buffers | compiled in s of CPU |")
print("|---|---|---|---|---|---|---|---|---|---|---|")
with tempfile.TemporaryDirectory() as scratch:
    for name, sizes, layouts in CASES:
        if options.only and name != options.only:
            continue
        one, seconds = None, {}
        for layout, flags in layouts:
            try:
                facts, seconds[layout] = compiled(name, sizes, flags)
            except Refused as reason:
                failed += 1
                print(f"| {name} | {layout} | {reason} |", flush=True)
                continue
            memory = largest_rank(facts)
            one = one or memory["total"]
            failed += memory["total"] > one
            parts = " | ".join(f"{memory[key] / 2**30:.2f}" for key in CLASSES)
            print(f"| {name} | {layout}{f': `{flags}`' if flags else ''} | {facts['ranks']} | {memory['total'] / 2**30:.2f} | {memory['total'] / one:.3f} | {parts} | {seconds[layout]:.1f} |", flush=True)
        if name == "gpt3-175b" and "2d tp4 pp24" in seconds:
            plain, arranged = (min([seconds[layout]] + [compiled(name, sizes, dict(layouts)[layout])[1] for _ in range(2)]) for layout in ("1d tp4 pp24", "2d tp4 pp24"))
            failed += arranged > MOST_TIMES_1D * plain
            print(f"\na block of {name}: {1e3 * plain / BLOCKS:.0f} ms of CPU to compile in 1d, {1e3 * arranged / BLOCKS:.0f} in 2d, {arranged / plain:.2f} times as long (at most {MOST_TIMES_1D})\n")
print(f"{failed} failed" if failed else "none is above one device")
sys.exit(failed != 0)
