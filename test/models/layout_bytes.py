#!/usr/bin/python3
"""What a rank receives in a layout along two axes, against the formulas of its papers, number by number: gpt2-tiny's blocks, head and loss on 4 x 16 tokens, by plans alone.
Exact, since all sizes divide. layout_bytes.py [--bin=build/bin] [--models=FOLDER]. Optimus: arXiv 2104.05343; Tesseract: arXiv 2105.14500."""
import argparse
import collections
import json
import os
import subprocess
import sys
import tempfile
from fractions import Fraction

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--bin", default=os.path.join(ROOT, "build", "bin"))
parser.add_argument("--models", default=os.path.join(os.path.dirname(ROOT), "shared", "models"))
options = parser.parse_args()
BLOCKS, WIDTH, ROWS, NUMBER = 4, 32, 4 * 16, 4
NORMS = 2  # in a block


def received(flags):
    """Numbers that a rank receives, by the part of the model, the kind and the axes."""
    with tempfile.TemporaryDirectory() as folder:
        plan = os.path.join(folder, "a.plan")
        subprocess.run([os.path.join(options.bin, "hpc-opt"), os.path.join(options.models, "gpt2-tiny", "dynamo-eager-op18.onnx"), "--dim=batch_size=4", "--dim=sequence_length=16",
                        *flags.split(), "-o", plan], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        facts = json.loads(subprocess.run([os.path.join(options.bin, "hpc-plan"), plan, "--json"], check=True, capture_output=True).stdout)
    sizes = {axis["name"]: axis["size"] for axis in facts["axes"]}
    numbers = collections.Counter()
    for entry in facts["collectives"]:
        part = "block" if entry["path"].startswith("transformer.h.") else "rest"
        ranks = 1
        for axis in entry["axes"]:
            ranks *= sizes[axis]
        passes = 2 if entry["kind"].startswith("all_reduce") else 1
        key = (part, entry["kind"], "+".join(entry["axes"]))
        numbers[key] += Fraction(entry["bytes"] * entry["runs"] * passes * (ranks - 1), NUMBER * ranks)
    return numbers


failed = 0


def check(flags, what, value, formula):
    global failed
    failed += value != formula
    print(f"{'equal' if value == formula else 'DIFFERENT'} [{flags}]: {what}: {value} numbers, by the formula {formula}")


def check_layout(flags, q, depth, trains, keeps):
    """`keeps`: gathered activations are kept for backward."""
    numbers = received(flags)
    rows = ROWS // depth
    share = Fraction(q - 1, q * q)
    weights, activations = (3, 2 if keeps else 3) if trains else (1, 1)
    block = {key[1:]: value for key, value in numbers.items() if key[0] == "block"}
    over = lambda axis: sum(block.get((kind, axis), 0) for kind in ("all_gather", "reduce_scatter"))
    check(flags, "weights of a block over x", over("tp.x") / BLOCKS, weights * share * 12 * WIDTH**2)
    check(flags, "activations of a block over y", over("tp.y") / BLOCKS, activations * share * 7 * rows * WIDTH)
    # A norm: two sums a row forward and, with the gradients, two more.
    check(flags, "sums of a norm's rows", block.get(("all_reduce", "tp.y"), 0) / BLOCKS / NORMS, 2 * Fraction(q - 1, q) * (4 if trains else 2) * Fraction(rows, q))
    # Gradients of matrices are summed over z, in pieces; those of vectors share a bucket outside of the blocks.
    check(flags, "gradients of a block over z", block.get(("all_reduce", "tp.z"), Fraction(0)) / BLOCKS, 2 * Fraction(depth - 1, depth) * Fraction(12 * WIDTH**2, q * q) * trains)
    known = [("all_reduce", "tp.y"), ("all_reduce", "tp.z")] + [(kind, axis) for kind in ("all_gather", "reduce_scatter") for axis in ("tp.x", "tp.y")]
    check(flags, "all else in a block", sum((value for key, value in block.items() if key not in known), Fraction(0)), 0)
    # The head is a product like others, and logits stay where they are. The table has its layout: the lookup sums over y, and its gradient gathers rows.
    rest = sum(numbers[("rest", kind, "tp.y")] for kind in ("all_gather", "reduce_scatter"))
    check(flags, "activations of head and lookup over y", rest, (activations + (2 if trains else 1)) * share * rows * WIDTH)


for flags, q, depth in (("--tp=4 --tp-layout=2d", 2, 1), ("--tp=16 --tp-layout=2d", 4, 1), ("--tp=8 --tp-layout=2.5d", 2, 2)):
    check_layout(flags, q, depth, False, False)
    check_layout(flags + " --train", q, depth, True, False)
check_layout("--tp=4 --tp-layout=2d --train --recompute=auto --memory=1GiB", 2, 1, True, True)
print(f"{failed} different" if failed else "all equal")
sys.exit(failed != 0)
