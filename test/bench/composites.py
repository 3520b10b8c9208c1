#!/usr/bin/env python3
"""Times kernels of composites as fusion makes them, by one or more builds in turns: python3 test/bench/composites.py [BIN ...]

Each BIN is a folder with hpc-opt and hpc-run (build/bin if none is named); ratios are to the first. Needs numpy.
"""
import json, os, statistics, subprocess, sys, tempfile
import numpy

ROWS = "4x64"
def program(arguments, body, columns):
    t = f"tensor<{ROWS}x{columns}xf32>"
    return (f'module attributes {{hpc.phase = "raise"}} {{\nfunc.func @main({", ".join(arguments)}) -> ({t} {{nn.name = "r"}}) {{\n'
            + body + f"  return %r : {t}\n}}\n}}\n").replace("$T", t).replace("$V", f"tensor<{columns}xf32>")
def argument(name, type="$T"):
    return f'%{name}: {type} {{nn.name = "{name}"}}'
HALF = "  %c = nn.constant dense<0.5> : tensor<f32> : tensor<f32>\n"
CASES = {
    "softmax": ([argument("x")], "  %r = nn.softmax %x : $T -> $T\n"),
    "scaled, masked softmax": ([argument("x"), argument("m", "$V")], HALF + "  %0 = nn.mul %x, %c : $T, tensor<f32> -> $T\n"
        "  %1 = nn.add %0, %m : $T, $V -> $T\n  %r = nn.softmax %1 : $T -> $T\n"),
    "softmax, read once more": ([argument("x"), argument("y")], "  %0 = nn.softmax %x : $T -> $T\n  %r = nn.mul %0, %y : $T, $T -> $T\n"),
    "layer norm of a sum": ([argument("x"), argument("y"), argument("w", "$V")], "  %0 = nn.add %x, %y : $T, $T -> $T\n"
        "  %r = nn.layer_norm %0 weight %w : $V bias %w : $V {epsilon = 1.0e-5 : f64} : $T -> $T\n"),
    "rms norm": ([argument("x"), argument("w", "$V")], "  %r = nn.rms_norm %x weight %w : $V {epsilon = 1.0e-5 : f64} : $T -> $T\n"),
}

bins = sys.argv[1:] or ["build/bin"]
with tempfile.TemporaryDirectory() as folder:
    for name, (arguments, body) in CASES.items():
        for columns in (64, 768):
            path = f"{folder}/program.mlir"
            open(path, "w").write(program(arguments, body, columns))
            shape = (4, 64, columns)
            random = numpy.random.default_rng(0)
            values = {each.split(":")[0][1:]: random.standard_normal((columns,) if "$V" in each else shape).astype("f") for each in arguments}
            numpy.savez(f"{folder}/in.npz", **values)
            for i, each in enumerate(bins):
                subprocess.run([f"{each}/hpc-opt", path, "-o", f"{folder}/{i}.plan"], check=True)
            times = [[] for _ in bins]
            for _ in range(5):
                for i, each in enumerate(bins):
                    out = subprocess.run([f"{each}/hpc-run", f"{folder}/{i}.plan", f"--input={folder}/in.npz", "--repeat=300"], check=True,
                                         capture_output=True, text=True).stdout
                    times[i].append(json.loads(out)["min_ms"])
            print(f"{name}, {columns} columns: " + "; ".join(f"{os.path.normpath(each)} min {min(t):.2f} ms, median {statistics.median(t):.2f}"
                  f" ({statistics.median([a / b for a, b in zip(t, times[0])]):.2f})" for each, t in zip(bins, times)))
