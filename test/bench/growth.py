#!/usr/bin/env python3
"""Compiles programs of growing size and compares the processor time, the quicker of two runs each.

  python3 test/bench/growth.py [--bin=build/bin] ['FAMILY FLAGS' ...]

Families are those of test/phases/scale/programs.py. Eight times the program takes about 8 times the time beyond that of a program of eight
pieces where every walk is linear, 64 times where one is quadratic: the last column is that ratio.
"""
import argparse
import os
import resource
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "phases", "scale"))
import programs

SMALL, FACTOR = 500, 8
parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("cases", nargs="*", metavar="FAMILY FLAGS",
                    default=["chain", "views", "norms", "fan", "scalars", "sum --tp=2", "layers --tp=2 --pp=4"])
parser.add_argument("--bin", default="build/bin")
args = parser.parse_args()


def seconds(family, flags, pieces, folder):
    """Processor time of the quicker of two compilations."""
    path = os.path.join(folder, "program.mlir")
    with open(path, "w") as file:
        file.write(programs.FAMILIES[family](pieces))
    times = []
    for _ in range(2):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([f"{args.bin}/hpc-opt", path, *flags, "-o", os.path.join(folder, "program.plan")], check=True, stderr=subprocess.DEVNULL)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        times.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return min(times)


print(f"{'family':24} {SMALL:>7} s {SMALL * FACTOR:>7} s {'times':>7}")
with tempfile.TemporaryDirectory() as folder:
    for case in args.cases:
        family, *flags = case.split()
        base = seconds(family, flags, 8, folder)
        small, large = (seconds(family, flags, SMALL * factor, folder) - base for factor in (1, FACTOR))
        print(f"{case:24} {small:9.2f} {large:9.2f} {large / max(small, 1e-3):7.1f}")
