#!/usr/bin/python3
"""The table of memory in README.md: what the largest rank of a training step takes, by plans alone (nothing runs, no weights are read). Bytes are place's numbers, which the
runtime allocates. Needs ../shared/models.

  test/bench/memory.py [--bin=build/bin] [--models=FOLDER] [--only=gpt2-124m]
"""
import argparse
import os
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(1, os.path.join(ROOT, "test"))
from plan_memory import CLASSES, Refused, compile_plan, largest_rank  # noqa: E402

parser = argparse.ArgumentParser()
parser.add_argument("--bin", default=os.path.join(ROOT, "build", "bin"))
parser.add_argument("--models", default=os.path.join(os.path.dirname(ROOT), "shared", "models"))
parser.add_argument("--only", default="", help="a model")
options = parser.parse_args()

# Tokens of a step, and layouts; the first of a model is one device.
GPT2 = ["", "--recompute=full", "--micro-batches=4", "--tp=2", "--tp=2 --recompute=full", "--pp=2 --micro-batches=4", "--pp=2 --micro-batches=4 --recompute=full",
        "--tp=2 --pp=2 --micro-batches=4", "--dp=2", "--dp=2 --zero=1", "--dp=2 --zero=2 --micro-batches=2", "--dp=2 --zero=3", "--tp=2 --pp=2 --dp=2 --zero=3 --micro-batches=2 --recompute=full"]
CASES = [("gpt2-124m", 4, 512, GPT2), ("gpt2-1558m", 4, 512, GPT2),
         ("gpt3-175b", 16, 2048, ["--tp=8 --pp=16 --zero=1 --micro-batches=16", "--tp=8 --pp=16 --zero=1 --micro-batches=16 --recompute=full"])]


def compiled(model, batch, sequence, flags, folder):
    """What a rank takes by class, operations of all products, and seconds of CPU of the compiler."""
    sizes = [f"--dim=batch_size={batch}", f"--dim=sequence_length={sequence}"]
    try:
        facts, seconds = compile_plan(options.bin, os.path.join(options.models, model, "model.onnx"), ["--train", *sizes, *flags.split()], os.path.join(folder, "a.plan"))
    except Refused as reason:
        return None, str(reason)
    return largest_rank(facts), (sum(stage["product_flops_per_step"] * (stage["ranks"][1] - stage["ranks"][0] + 1) for stage in facts["stages"]), seconds)


print("| model, tokens a step | layout | GiB of the largest rank | of one device | weights | states | accumulators | activations | buffers | operations | compiled in s of CPU |")
print("|---|---|---|---|---|---|---|---|---|---|---|")
with tempfile.TemporaryDirectory() as scratch:
    for name, rows, columns, layouts in CASES:
        if options.only and name != options.only:
            continue
        one = base = None
        for layout in layouts:
            memory, rest = compiled(name, rows, columns, layout, scratch)
            if memory is None:
                print(f"| {name}, {rows} x {columns} | `{layout}` | {rest} |")
                continue
            work, seconds = rest
            if not layout:
                one, base = memory["total"], work
            parts = " | ".join(f"{memory[key] / 2**30:.2f}" for key in CLASSES)
            share, more = (f"{memory['total'] / one:.2f}", f"{work / base:.2f}") if one else ("", "")
            print(f"| {name}, {rows} x {columns} | {'`' + layout + '`' if layout else 'one device'} | {memory['total'] / 2**30:.2f} | {share} | {parts} | {more} | {seconds:.1f} |")
            sys.stdout.flush()
