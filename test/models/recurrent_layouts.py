#!/usr/bin/python3
"""recurrent_layouts.py: RNN, GRU and LSTM, one way and both ways, on --tp=2: equal to numpy in float64, and no weight is gathered in a run: those of a
large layer are cut and its products halved, those of a small one are whole. Needs hpc-opt and hpc-run on the PATH."""
import os
import re
import sys
import tempfile

import numpy

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import onnx_file  # noqa: E402
from model_checks import EPSILON, product_flops, run, run_plan  # noqa: E402

RANDOM = numpy.random.default_rng(3)
GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
STEPS, BATCH, FEATURES = 6, 2, 5


def sigmoid(x):
    return 1 / (1 + numpy.exp(-x))


def one_way(kind, x, w, r, b, resets_after):
    """States of all steps, [steps, batch, hidden]."""
    hidden = r.shape[1]
    h, c, states = numpy.zeros((x.shape[1], hidden)), numpy.zeros((x.shape[1], hidden)), []
    wb, rb = b[:b.size // 2], b[b.size // 2:]
    part = lambda a, i: a[..., i * hidden:(i + 1) * hidden]
    for step in x:
        i, s = step @ w.T + wb, h @ r.T + rb
        if kind == "RNN":
            h = numpy.tanh(i + s)
        elif kind == "GRU":
            z, reset = sigmoid(part(i, 0) + part(s, 0)), sigmoid(part(i, 1) + part(s, 1))
            own = reset * part(s, 2) if resets_after else (reset * h) @ r[2 * hidden:].T + part(rb, 2)
            h = (1 - z) * numpy.tanh(part(i, 2) + own) + z * h
        else:
            a = i + s
            c = sigmoid(part(a, 2)) * c + sigmoid(part(a, 0)) * numpy.tanh(part(a, 3))
            h = sigmoid(part(a, 1)) * numpy.tanh(c)
        states.append(h)
    return numpy.stack(states)


def check(kind, hidden, ways, resets_after, isCut, folder):
    path = lambda file: os.path.join(folder, file)
    gates, shape = GATES[kind], numpy.array([STEPS, BATCH, ways * hidden])
    draw = lambda *sizes: (RANDOM.standard_normal(sizes) / sizes[-1] ** 0.5).astype(numpy.float32)
    held = {"W": draw(ways, gates * hidden, FEATURES), "R": draw(ways, gates * hidden, hidden), "B": draw(ways, 2 * gates * hidden), "D": draw(ways * hidden, 3)}
    x = RANDOM.standard_normal((STEPS, BATCH, FEATURES)).astype(numpy.float32)
    own = {"hidden_size": hidden, "direction": "bidirectional" if ways == 2 else "forward", **({"linear_before_reset": int(resets_after)} if kind == "GRU" else {})}
    nodes = [onnx_file.node(kind, ["x", "W", "R", "B"], ["h"], **own), onnx_file.node("Transpose", ["h"], ["t"], perm=[0, 2, 1, 3]),
             onnx_file.node("Reshape", ["t", "shape"], ["f"]), onnx_file.node("MatMul", ["f", "D"], ["y"])]
    with open(path("m.onnx"), "wb") as file:
        file.write(onnx_file.model(nodes, [("x", "f32", x.shape)], [("y", "f32", [STEPS, BATCH, 3])], [*held.items(), ("shape", shape)], opset=14))
    numpy.savez(path("in.npz"), x=x)
    wide = {name: array.astype(numpy.float64) for name, array in held.items()}
    states = [one_way(kind, x.astype(numpy.float64), wide["W"][0], wide["R"][0], wide["B"][0], resets_after)]
    if ways == 2:
        states.append(one_way(kind, x[::-1].astype(numpy.float64), wide["W"][1], wide["R"][1], wide["B"][1], resets_after)[::-1])
    truth = numpy.concatenate(states, axis=2) @ wide["D"]
    label, flops = f"{kind} of {hidden}, {own['direction']}", {}
    for flags in ([], ["--tp=2"]):
        said = run("hpc-opt", path("m.onnx"), *flags, f"--verify={path('in.npz')}", "--explain", "-o", path("p.plan"))
        flops[len(flags)] = product_flops(said)
        error = numpy.abs(run_plan(path("p.plan"), path("in.npz"))["y"] - truth).max() / numpy.abs(truth).max()
        if not error <= 16 * hidden ** 0.5 * EPSILON:
            sys.exit(f"{label} {flags}: off by {error:.2g}")
    gathered = [int(size) for size in re.findall(r"(?:all_gather|all_to_all) +tp +(\d+)", said)]
    if gathered and max(gathered) >= held["R"].nbytes // ways // gates:
        sys.exit(f"{label}: {max(gathered)} bytes are gathered, as many as a weight has\n{said}")
    share = flops[1] / flops[0]
    if not (share < 0.6 if isCut else share > 0.95):
        sys.exit(f"{label}: a rank computes {share:.2f} of the products\n{said}")
    print(f"{label}: {'cut' if isCut else 'whole'}, equal")


with tempfile.TemporaryDirectory() as scratch:
    for kind in GATES:
        for ways in (1, 2):
            check(kind, 16, ways, True, False, scratch)
    check("LSTM", 128, 1, True, True, scratch)
    check("GRU", 192, 1, True, True, scratch)
    check("GRU", 256, 1, False, True, scratch)
    check("RNN", 256, 2, True, True, scratch)
