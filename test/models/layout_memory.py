#!/usr/bin/python3
"""Memory of gpt2-1558m's training step, 4 x 512 tokens, in each layout against one device, by plans alone: weights and states within 2% of their fraction, values that forward keeps for backward
within 10% of theirs. Fails where one is beyond. layout_memory.py [--bin=build/bin] [--models=FOLDER]"""
import argparse
import os
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(1, os.path.join(ROOT, "test"))
from plan_memory import compile_plan, largest_rank  # noqa: E402

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--bin", default=os.path.join(ROOT, "build", "bin"))
parser.add_argument("--models", default=os.path.join(os.path.dirname(ROOT), "shared", "models"))
parser.add_argument("--few", action="store_true", help="2d and 3d alone")
options = parser.parse_args()
WITHIN_STORED, WITHIN_KEPT = 1.02, 1.1
# Flags, one part of weights and states of so many, and one of what is kept. The 25 heads divide by 5; only --recompute=attention gathers shared rows again.
LAYOUTS = [("--tp=4 --tp-layout=2d", 4, 4), ("--tp=8 --tp-layout=2.5d", 4, 8), ("--tp=8 --tp-layout=3d", 8, 8), ("--tp=5 --sp --recompute=attention", 5, 5)]


def bytes_of(flags, folder):
    """Weights, states, and what forward keeps, without tables that are no parameters and whole on every rank."""
    facts, _ = compile_plan(options.bin, os.path.join(options.models, "gpt2-1558m", "model.onnx"),
                            ["--train", "--dim=batch_size=4", "--dim=sequence_length=512", *flags.split()], os.path.join(folder, "a.plan"))
    memory = largest_rank(facts)
    return memory["weight"], memory["state"], sum(stage["bytes"] for stage in facts["kept"])


with tempfile.TemporaryDirectory() as scratch:
    weights, states, kept = bytes_of("", scratch)
    tables = weights - states / 2  # adamw: two states a parameter, which have its size
    failed = 0
    for flags, stored_parts, kept_parts in LAYOUTS[::2] if options.few else LAYOUTS:
        for what, own, whole, parts, bound in zip(("weights", "states", "kept"), bytes_of(flags, scratch), (weights, states, kept), (stored_parts, stored_parts, kept_parts),
                                                  (WITHIN_STORED, WITHIN_STORED, WITHIN_KEPT)):
            own, whole = (own - tables, whole - tables) if what == "weights" else (own, whole)
            times = own / (whole / parts)
            failed += times > bound
            print(f"{'beyond' if times > bound else 'within'} {flags}: {what} {own / 2**20:.1f} MiB, {times:.3f} times 1/{parts} of {whole / 2**20:.1f} (at most {bound})", flush=True)
print(f"{failed} beyond" if failed else "all within")
sys.exit(failed != 0)
