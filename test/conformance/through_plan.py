#!/usr/bin/env python3
"""Takes cases of an archive (README.md) through hpc-opt and hpc-run, in layouts.

The programs are those on the PATH; memory starts poisoned. Prints what differs and how many cases agree; a case that is refused must say error[unsupported]."""
import argparse
import pathlib
import subprocess
import sys
import tempfile

import numpy

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("archive")
parser.add_argument("--only", default="", help="prefixes of names, with commas between them")
parser.add_argument("--layout", action="append", help="flags of hpc-opt, as one word: --layout='--tp=2 --dp=2'")
args = parser.parse_args()
archive = numpy.load(args.archive)
names = sorted(name for name in {key.split("/")[0] for key in archive.files} if name.startswith(tuple(args.only.split(","))))
TOLERANCE = {"float64": 1e-6, "float32": 2e-5, "float16": 4e-3}


def run(*command):
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


def check(name, flags, folder):
    """Nothing when the case agrees, else why not."""
    part = lambda kind: {key.split("/", 2)[2]: archive[key] for key in archive.files if key.startswith(f"{name}/{kind}/")}
    model, plan, given, made = (str(folder / each) for each in ("model.onnx", "plan", "in.npz", "out.npz"))
    pathlib.Path(model).write_bytes(archive[name + "/model"].tobytes())
    numpy.savez(given, **part("input"))
    compiled = run("hpc-opt", model, "-o", plan, *flags)
    if compiled.returncode:
        return "refused" if compiled.returncode == 1 and "error[unsupported]" in compiled.stderr else compiled.stderr.strip()[:300]
    ran = run("hpc-run", plan, "--poison", *(["--input=" + given] if part("input") else []), "--output=" + made)
    if ran.returncode:
        return ran.stderr.strip()[:300]
    results = numpy.load(made)
    for output, expected in part("output").items():
        result = results[output]
        bound = TOLERANCE.get(str(expected.dtype), 0)
        if result.shape != expected.shape or result.dtype != expected.dtype:
            return f"{output} is {result.dtype} {result.shape}, expected {expected.dtype} {expected.shape}"
        if not numpy.allclose(result, expected, rtol=bound, atol=bound, equal_nan=True):
            return f"{output} differs by up to {numpy.nanmax(numpy.abs(result.astype(float) - expected))}"
    return None


wrong = 0
for layout in args.layout or [""]:
    counts = {"agree": 0, "refused": 0}
    for name in names:
        with tempfile.TemporaryDirectory() as folder:
            why = check(name, layout.split(), pathlib.Path(folder))
        counts["agree" if why is None else "refused"] += why in (None, "refused")
        if why not in (None, "refused"):
            wrong += 1
            print(f"{name} {layout}: {why}")
    print(f"{layout or 'one rank'}: {counts['agree']} agree, {counts['refused']} refused, of {len(names)}")
sys.exit(wrong > 0)
