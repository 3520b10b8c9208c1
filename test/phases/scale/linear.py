"""Compiles programs of growing size and compares the processor time: linear.py 'FAMILY FLAGS'... Eight times the program may take at most 24 times
the time beyond that of a program of eight pieces; a walk that is quadratic takes 64 times. Prints a line a family, exits 1 if one is above."""
import os
import resource
import subprocess
import sys
import tempfile

import programs

SMALL, FACTOR, BOUND, NOISE = 500, 8, 24, 0.1


def seconds(family, flags, pieces, folder):
    """Processor time of the quicker of two compilations."""
    path = os.path.join(folder, "program.mlir")
    with open(path, "w") as file:
        file.write(programs.FAMILIES[family](pieces))
    times = []
    for _ in range(2):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(["hpc-opt", path, *flags, "-o", os.path.join(folder, "program.plan")], check=True, stderr=subprocess.DEVNULL)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        times.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return min(times)


failed = False
with tempfile.TemporaryDirectory() as folder:
    for case in sys.argv[1:]:
        family, *flags = case.split()
        base = seconds(family, flags, 8, folder)
        small, large = (max(seconds(family, flags, SMALL * factor, folder) - base, 0) for factor in (1, FACTOR))
        isLinear = large <= BOUND * small + NOISE
        failed |= not isLinear
        print(f"{case}: {small:.2f} s for {SMALL} pieces, {large:.2f} s for {SMALL * FACTOR}: {'linear' if isLinear else 'ABOVE THE BOUND'}")
sys.exit(failed)
