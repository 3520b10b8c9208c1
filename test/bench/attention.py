#!/usr/bin/env python3
"""Times attention and its gradient as one kernel, by one or more builds in turns: python3 test/bench/attention.py [BIN ...]

Each BIN is a folder with hpc-opt and hpc-run (build/bin if none is named); minima, and the largest difference to the first. Heads lie side
by side in one buffer of q, k and v, as exporters have them. GFLOP/s count what is not masked. Needs numpy.
"""
import json, subprocess, sys, tempfile
import numpy

HEADS, DEPTH = 12, 64


def program(batch, positions, gradient):
    t = f"tensor<{batch}x{HEADS}x{positions}x{DEPTH}xf32>"
    r = f"tensor<{batch}x{positions}x{HEADS}x{DEPTH}xf32>"
    p = f"tensor<{batch}x{positions}x{HEADS * DEPTH}xf32>"
    x = f"tensor<{batch}x{positions}x{3 * HEADS * DEPTH}xf32>"
    lines = []

    def heads(name, source):
        lines.append(f"%{name}r = nn.reshape %{source} : {p} -> {r}")
        lines.append(f"%{name} = nn.transpose %{name}r {{permutation = array<i64: 0, 2, 1, 3>}} : {r} -> {t}")

    for i, name in enumerate("qkv"):
        lines.append(f"%{name}s = nn.slice %x {{starts = array<i64: 0, 0, {i * HEADS * DEPTH}>, steps = array<i64: 1, 1, 1>}} : {x} -> {p}")
        heads(name, name + "s")
    attributes = "{scale = 0.125 : f64, causal_offset = 0 : i64}"
    results = 3 if gradient else 1
    if gradient:
        heads("g", "gs")
        lines.append(f"%a0, %a1, %a2 = nn.attention_grad %q, %k, %v, %g {attributes} : {t}, {t}, {t}, {t} -> {t}, {t}, {t}")
    else:
        lines.append(f"%a0 = nn.attention %q, %k, %v {attributes} : {t}, {t}, {t} -> {t}")
    for i in range(results):
        lines.append(f"%b{i} = nn.transpose %a{i} {{permutation = array<i64: 0, 2, 1, 3>}} : {t} -> {r}")
        lines.append(f"%c{i} = nn.reshape %b{i} : {r} -> {p}")
    lines.append("return " + ", ".join(f"%c{i}" for i in range(results)) + " : " + ", ".join([p] * results))
    arguments = f'%x: {x} {{nn.name = "x"}}' + (f', %gs: {p} {{nn.name = "g"}}' if gradient else "")
    outputs = ", ".join(f'{p} {{nn.name = "r{i}"}}' for i in range(results))
    return (f'module attributes {{hpc.phase = "raise"}} {{\nfunc.func @main({arguments}) -> ({outputs}) {{\n  ' + "\n  ".join(lines)
            + "\n}\n}\n")


bins = sys.argv[1:] or ["build/bin"]
random = numpy.random.default_rng(0)
with tempfile.TemporaryDirectory() as folder:
    for gradient in (False, True):
        for batch, positions in ((1, 64), (1, 512), (4, 128), (1, 1024)):
            open(f"{folder}/p.mlir", "w").write(program(batch, positions, gradient))
            numpy.savez(f"{folder}/in.npz", x=random.standard_normal((batch, positions, 3 * HEADS * DEPTH)).astype("f"),
                        **({"g": random.standard_normal((batch, positions, HEADS * DEPTH)).astype("f")} if gradient else {}))
            for i, each in enumerate(bins):
                subprocess.run([f"{each}/hpc-opt", f"{folder}/p.mlir", "-o", f"{folder}/{i}.plan"], check=True)
            best, outputs = [1e9] * len(bins), [None] * len(bins)
            repeat = max(3, 10 * 512 * 512 // (batch * positions * positions))
            for _ in range(4):
                for i, each in enumerate(bins):
                    out = subprocess.run([f"{each}/hpc-run", f"{folder}/{i}.plan", f"--input={folder}/in.npz", f"--output={folder}/out.npz",
                                          f"--repeat={repeat}"], check=True, capture_output=True, text=True).stdout
                    best[i] = min(best[i], json.loads(out)["min_ms"])
                    outputs[i] = dict(numpy.load(f"{folder}/out.npz"))
            flops = batch * HEADS * positions * positions * DEPTH * 2 * (2.5 if gradient else 1)
            print(f"{'gradient' if gradient else 'forward'} {batch} x {positions}: " + "; ".join(
                f"{each} min {time:.2f} ms ({flops / time / 1e6:.0f} GFLOP/s), off by "
                f"{max(abs(ours[name] - outputs[0][name]).max() for name in ours):.1e}" for each, time, ours in zip(bins, best, outputs)), flush=True)
