#!/usr/bin/python3
"""Schedules of steps that train a part of ../../models/mlp: each schedule, also from a file that names F, B, W and U of every stage, on one stage and on two and three. The gradients are those
that PyTorch has in float64 (skipped/golden.json), and no others. test/models/frozen-schedules.test runs it. Needs python3 and numpy only.

  test/models/frozen_schedules.py [--bin=build/bin]
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile

import numpy

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(HERE, "skipped"))
from cases import GRADIENTS_OF, batches  # noqa: E402

GOLDEN = json.load(open(os.path.join(HERE, "skipped", "golden.json")))["gradients"]
FROZEN = {"fc*,head.weight": ["head.bias"], "fc*": ["head.bias", "head.weight"], "fc2*,head*": ["fc1.bias", "fc1.weight"], "*bias": ["fc1.weight", "fc2.weight", "head.weight"],
          "*weight": ["fc1.bias", "fc2.bias", "head.bias"]}
STAGES, SCHEDULES = (1, 2, 3), ("", "gpipe", "1f1b", "zb-h1", "file")
parser = argparse.ArgumentParser()
parser.add_argument("--bin", default=os.path.join(ROOT, "build", "bin"))
options = parser.parse_args()
folder = tempfile.TemporaryDirectory(prefix="hpc-frozen-")


def path(name):
    return os.path.join(folder.name, name)


def run(tool, *arguments):
    done = subprocess.run([os.path.join(options.bin, tool), *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert done.returncode == 0, f"{tool}: {done.stdout[-1000:]}"
    return done.stdout


def check(frozen, stages, schedule):
    flags = [f"--pp={stages}", "--micro-batches=2", f"--freeze={frozen}"]
    if schedule == "file":
        with open(path("s.txt"), "w") as file:
            file.write("F0 F1 B0 B1 W0 W1 U\n" * stages)
    if schedule:
        flags.append("--schedule=" + (path("s.txt") if schedule == "file" else schedule))
    told = run("hpc-opt", os.path.join(ROOT, "models", "mlp", "dynamo-op18.onnx"), "--train", "--loss=classification", "--dim", "batch=8", *flags, f"--kernel-cache={path('kernels')}", "-o", path("m.plan"))
    assert ("left out" in told) <= (schedule == "file"), told
    run("hpc-run", path("m.plan"), f"--gradients={path('g.npz')}", f"--data={path('d.npz')}")
    found = dict(numpy.load(path("g.npz")))
    found.pop("loss")
    assert sorted(found) == FROZEN[frozen], f"gradients of {sorted(found)}"
    for name, gradient in found.items():
        norm, *first = GOLDEN[name]
        mine = numpy.array([numpy.linalg.norm(gradient.astype(float)), *gradient.flatten()[:4]])
        assert numpy.abs(mine - [norm, *first]).max() <= 2e-6 * norm, f"gradient of {name}: {mine} instead of {[norm, *first]}"


passed = failed = 0
x, labels = batches()
numpy.savez(path("d.npz"), x=x[GRADIENTS_OF], labels=labels[GRADIENTS_OF])
for case in ((frozen, stages, schedule) for frozen in FROZEN for stages in STAGES for schedule in SCHEDULES):
    try:
        check(*case)
        passed += 1
    except AssertionError as error:
        failed += 1
        print(f"FAIL: --freeze={case[0]} --pp={case[1]} --schedule={case[2]}: {error}")
print(f"{passed} passed, {failed} failed")
sys.exit(failed > 0)
