#!/usr/bin/python3
"""Whether two builds make the same plans: every export of ../shared/models and models/ in 20 layouts, byte by byte.

  test/models/plans.py OLD/bin build/bin [--models=gpt2-odd] [--layouts=train,tp=2] [--jobs=2] [--printed]

--printed compares what each build's hpc-plan prints instead: what ranks do, hold and send, but not machine code or what is only for people. It prints each model and layout whose plan, or whose refusal, differs; the last line counts. Needs python3 only. Models of hundreds of gigabytes are
compiled without their weights, one layout of each kind.
"""
import argparse
import concurrent.futures
import hashlib
import os
import re
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
FOLDERS = [os.path.join(os.path.dirname(ROOT), "shared", "models"), os.path.join(ROOT, "models")]
LAYOUTS = [
    "", "--tp=2", "--tp=3", "--tp=5", "--pp=2", "--dp=2", "--tp=2 --dp=2", "--tp=2 --pp=2 --micro-batches=2", "--tp=2 --dtype=bf16", "--tp=2 --weights=int8",
    "--train", "--train --tp=2 --optimizer=adamw --clip=1.0", "--train --pp=2 --micro-batches=4 --schedule=1f1b", "--train --pp=2 --micro-batches=4 --schedule=zb-h1",
    "--train --dp=2 --zero=1 --optimizer=adam", "--train --dp=2 --zero=3 --micro-batches=2 --optimizer=adam", "--train --tp=2 --pp=2 --dp=2 --micro-batches=2",
    "--train --tp=2 --recompute=full", "--train --tp=2 --dtype=fp16 --optimizer=adamw", "--train --dp=2 --deterministic",
]
# By the names of open dims that the exports use.
DIMS = {"batch_size": 4, "batch": 4, "sequence_length": 16, "time": 16, "past_sequence_length": 8, "past_sequence_length + sequence_length": 24,
        "past_sequence_length + 1": 9, "total_sequence_length": 24}


def models(only):
    found = []
    for folder in FOLDERS:
        for path, _, files in sorted(os.walk(folder)):
            found += [os.path.join(path, file) for file in sorted(files) if file.endswith(".onnx")]
    return [path for path in found if not only or only in path]


def is_large(path):
    """Whether the export is a graph without weights beside it: such models are named by their number of parameters, as gpt2-124m."""
    return re.search(r"-\d+[mbt]$", os.path.basename(os.path.dirname(path))) is not None


def plan(build, path, layout, dims, printed):
    """The hash of the plan, or of its text, or the text of the refusal without the paths of this run."""
    with tempfile.TemporaryDirectory() as scratch:
        out = os.path.join(scratch, "p.plan")
        flags = layout.split() + [f"--dim={name}={size}" for name, size in dims] + (["--no-weights"] if is_large(path) else [])
        if "dropout" in path and "--train" not in flags:
            flags.append("--inference")
        run = subprocess.run([os.path.join(build, "hpc-opt"), path, *flags, "-o", out], capture_output=True, text=True)
        if run.returncode:
            return "refused: " + run.stderr.replace(scratch, "").strip()
        if printed:
            text = subprocess.run([os.path.join(build, "hpc-plan"), out], capture_output=True, check=True).stdout
            return hashlib.sha256(text).hexdigest()
        with open(out, "rb") as file:
            return hashlib.sha256(file.read()).hexdigest()


def open_dims(build, path):
    """Those of DIMS that the model has: an unknown name would be refused."""
    missing = subprocess.run([os.path.join(build, "hpc-opt"), path, "--no-weights", "-o", os.devnull], capture_output=True, text=True).stderr
    return [(name, size) for name, size in DIMS.items() if f"'{name}'" in missing or f"{name}=" in missing]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old")
    parser.add_argument("new")
    parser.add_argument("--models", default="", help="only paths with this in them")
    parser.add_argument("--layouts", default="", help="only layouts with one of these in them, separated by commas")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--printed", action="store_true", help="compare what hpc-plan prints")
    options = parser.parse_args()
    layouts = [flags for flags in LAYOUTS if any(part in flags for part in options.layouts.split(","))]
    cases = [(path, layout, tuple(open_dims(options.old, path))) for path in models(options.models) for layout in (layouts if not is_large(path) else layouts[1::5])]
    same = different = refused = 0
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        results = pool.map(lambda case: (case, [plan(build, *case, options.printed) for build in (options.old, options.new)]), cases)
        for (path, layout, _), (old, new) in results:
            refused += old == new and old.startswith("refused")
            same += old == new
            different += old != new
            if old != new:
                print(f"{os.path.relpath(path, os.path.dirname(ROOT))} [{layout}]: {old[:300]} -> {new[:300]}", flush=True)
    print(f"{same} equal ({refused} of them refused alike), {different} different")
    return different != 0


if __name__ == "__main__":
    sys.exit(main())
