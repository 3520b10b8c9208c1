#!/usr/bin/python3
"""cut_queries.py: attention whose rows a sidecar cuts over tp or dp, or context parallelism over cp, into parts that are not equal, while its keys are whole: causal,
with distances within a window, with keys of earlier rows. Results and gradients are those of numpy in float64. Keys and values alone are gathered; in zigzag, where a
rank's rows are two intervals, also the rows of the last product. Needs hpc-opt and hpc-run on the PATH."""
import json
import os
import sys
import tempfile

import numpy

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import onnx_file  # noqa: E402
from model_checks import EPSILON, run, run_plan  # noqa: E402

RANDOM = numpy.random.default_rng(29)
BATCH, ROWS, WIDTH, GROUPS, REPEAT, DEPTH, PAST = 2, 11, 24, 2, 3, 4, 6
HEADS, INF = GROUPS * REPEAT, float("inf")


def draw(*sizes):
    return (RANDOM.standard_normal(sizes) / sizes[0] ** 0.5).astype(numpy.float32)


def mask_of(kind):
    """What is added to the scores besides the causal mask, [heads, rows, keys]: distances (ALiBi) within a window of 4."""
    keys = ROWS + (PAST if kind == "past" else 0)
    distance = numpy.arange(ROWS)[:, None] + keys - ROWS - numpy.arange(keys)
    if kind == "window":
        slopes = 2.0 ** -numpy.arange(1, HEADS + 1)
        return numpy.where(distance < 4, -distance * slopes[:, None, None], -INF)
    return numpy.zeros((HEADS, ROWS, keys))


def window_nodes():
    """The same mask as a model makes it, from positions."""
    return [onnx_file.node("Range", ["zero", "rows", "one"], ["i"]), onnx_file.node("Unsqueeze", ["i", "one_axis"], ["column"]), onnx_file.node("Sub", ["column", "i"], ["distance"]),
            onnx_file.node("Cast", ["distance"], ["real"], to=1), onnx_file.node("Mul", ["real", "slopes"], ["lower"]), onnx_file.node("Less", ["distance", "four"], ["near"]),
            onnx_file.node("Where", ["near", "lower", "low"], ["mask"])]


def model(kind, groups=GROUPS):
    """y = attention(x q, x k, x v) o, keys of earlier rows before them where `kind` is past."""
    held = {"wq": draw(WIDTH, HEADS * DEPTH), "wk": draw(WIDTH, groups * DEPTH), "wv": draw(WIDTH, groups * DEPTH), "wo": draw(HEADS * DEPTH, WIDTH)}
    inputs = {"x": RANDOM.standard_normal((BATCH, ROWS, WIDTH)).astype(numpy.float32)}
    nodes = [onnx_file.node("MatMul", ["x", "w" + name], [name]) for name in "qkv"]
    constants = []
    if kind == "window":
        nodes += window_nodes()
        constants = [("zero", numpy.array(0)), ("rows", numpy.array(ROWS)), ("one", numpy.array(1)), ("one_axis", numpy.array([1])), ("four", numpy.array(4)),
                     ("slopes", (-2.0 ** -numpy.arange(1, HEADS + 1)).astype(numpy.float32).reshape(1, HEADS, 1, 1)), ("low", numpy.array(-numpy.inf, numpy.float32))]
    operands = ["q", "k", "v", "mask" if kind == "window" else ""]
    results = ["a"]
    if kind == "past":
        for name in ("past_k", "past_v"):
            inputs[name] = RANDOM.standard_normal((BATCH, GROUPS, PAST, DEPTH)).astype(numpy.float32)
        operands += ["past_k", "past_v"]
        results += ["present_k", "present_v"]
    while not operands[-1]:
        operands.pop()
    nodes += [onnx_file.node("Attention", operands, results, is_causal=1, q_num_heads=HEADS, kv_num_heads=groups), onnx_file.node("MatMul", ["a", "wo"], ["y"])]
    file = onnx_file.model(nodes, [(name, "f32", array.shape) for name, array in inputs.items()], [("y", "f32", (BATCH, ROWS, WIDTH))], [*held.items(), *constants], opset=23)
    return file, held, inputs


def truth(kind, held, inputs, labels):
    """y, and the gradients of the weights where the loss is the mean of (y - labels)^2."""
    w = {name: array.astype(numpy.float64) for name, array in held.items()}
    x = inputs["x"].astype(numpy.float64)
    heads = lambda t, count: t.reshape(BATCH, ROWS, count, DEPTH).transpose(0, 2, 1, 3)
    merged = lambda t: t.transpose(0, 2, 1, 3).reshape(BATCH, ROWS, -1)
    q, k, v = heads(x @ w["wq"], HEADS), heads(x @ w["wk"], GROUPS), heads(x @ w["wv"], GROUPS)
    if kind == "past":
        k, v = (numpy.concatenate([inputs[name], t], 2) for name, t in (("past_k", k), ("past_v", v)))
    keys = k.shape[2]
    seen = numpy.arange(ROWS)[:, None] + keys - ROWS >= numpy.arange(keys)
    k, v = (numpy.repeat(t, REPEAT, 1) for t in (k, v))
    scores = numpy.where(seen, q @ k.transpose(0, 1, 3, 2) / DEPTH ** 0.5 + mask_of(kind), -INF)
    p = numpy.exp(scores - scores.max(-1, keepdims=True))
    p /= p.sum(-1, keepdims=True)
    a = merged(p @ v)
    y = a @ w["wo"]
    dy = 2 * (y - labels) / y.size
    dp_v = heads(dy @ w["wo"].T, HEADS)
    dp = dp_v @ v.transpose(0, 1, 3, 2)
    ds = p * (dp - (dp * p).sum(-1, keepdims=True)) / DEPTH ** 0.5
    of_group = lambda t: t.reshape(BATCH, GROUPS, REPEAT, keys, DEPTH).sum(2)[:, :, keys - ROWS:]
    dk, dv = of_group(ds.transpose(0, 1, 3, 2) @ q), of_group(p.transpose(0, 1, 3, 2) @ dp_v)
    of = lambda left, right: numpy.einsum("bri,brj->ij", left, right)
    return y, {"wo": of(a, dy), "wq": of(x, merged(ds @ k)), "wk": of(x, merged(dk)), "wv": of(x, merged(dv))}


def within(label, found, wanted, bound):
    error = numpy.abs(found - wanted).max() / numpy.abs(wanted).max()
    if not error <= bound:
        sys.exit(f"{label}: off by {error:.2g} of the largest, the bound is {bound:.2g}")


def gathered(text):
    """What --explain lists as gathered, as often as it says."""
    lines = [line for line in text.splitlines() if line.lstrip().startswith("all_gather")]
    return sum(int(line.rsplit(", ", 1)[1].split()[0]) if line.endswith("times") else 1 for line in lines)


def check(kind, axis, size, folder, flags=(), layout=()):
    path = lambda name: os.path.join(folder, name)
    file, held, inputs = model(kind)
    with open(path("m.onnx"), "wb") as out:
        out.write(file)
    with open(path("m.json"), "w") as out:
        json.dump({"version": 1, "params": [{"match": "*", "shard": []}],
                   "tensors": [{"match": name, "shard": [{"dim": 1, "axis": axis}]} for name in ("x", "q", "k", "v", "a", "y")]}, out)
    numpy.savez(path("in.npz"), **inputs)
    labels = RANDOM.standard_normal((BATCH, ROWS, WIDTH)).astype(numpy.float32)
    y, gradients = truth(kind, held, inputs, labels)
    label = f"{kind}, {axis}={size} {' '.join((*layout, *flags))}".rstrip()
    cut = [f"--{axis}={size}", *layout, "--spec=none" if axis == "cp" else f"--spec={path('m.json')}"] if size > 1 else ["--spec=none"]
    gathers = 3 if axis == "cp" and not layout else 2
    # Sums of at most 24 terms in products, 17 in the softmax and in attention's own sums, each of the size of the largest number.
    said = run("hpc-opt", path("m.onnx"), *cut, f"--verify={path('in.npz')}", "--explain", "-o", path("p.plan"))
    within(label, run_plan(path("p.plan"), path("in.npz"))["y"], y, 2 * (WIDTH + ROWS + PAST) ** 0.5 * EPSILON)
    if size > 1 and gathered(said) != gathers:
        sys.exit(f"{label}: {gathered(said)} gathers, there should be {gathers}\n{said}")
    data = {name: array[None] for name, array in (*inputs.items(), ("labels", labels))}
    numpy.savez(path("d.npz"), **data)
    run("hpc-opt", path("m.onnx"), *cut, "--train", "--loss=mse", "--optimizer=sgd", "--verify", *flags, "-o", path("t.plan"))
    run("hpc-run", path("t.plan"), f"--gradients={path('g.npz')}", f"--data={path('d.npz')}", "--poison")
    found = dict(numpy.load(path("g.npz")))
    for name, wanted in gradients.items():
        within(f"{label}, gradient of {name}", found[name], wanted, 8 * (BATCH * ROWS + WIDTH) ** 0.5 * EPSILON)


def check_bits(groups, layouts, folder):
    """With --deterministic a cut changes no bit of a gradient: neither one of queries nor, where all heads share one key, one of heads."""
    path = lambda name: os.path.join(folder, name)
    file, _, inputs = model("causal", groups)
    with open(path("m.onnx"), "wb") as out:
        out.write(file)
    numpy.savez(path("d.npz"), x=inputs["x"][None], labels=RANDOM.standard_normal((1, BATCH, ROWS, WIDTH)).astype(numpy.float32))
    first = None
    for layout in ("--spec=none", *layouts):
        run("hpc-opt", path("m.onnx"), *layout.split(), "--train", "--loss=mse", "--optimizer=sgd", "--deterministic", "-o", path("t.plan"))
        run("hpc-run", path("t.plan"), f"--gradients={path('g.npz')}", f"--data={path('d.npz')}")
        found = {name: array.tobytes() for name, array in numpy.load(path("g.npz")).items()}
        first = first or found
        if found != first:
            sys.exit(f"{groups} groups, {layout}, --deterministic: {[name for name in found if found[name] != first[name]]} have other bits")


CASES = [("causal", "tp", 1), ("causal", "tp", 2), ("causal", "tp", 4), ("causal", "dp", 3), ("window", "tp", 3), ("window", "dp", 2), ("past", "tp", 2), ("past", "tp", 5)]
SHARED = [("causal", 2), ("causal", 4), ("window", 3), ("past", 2)]
with tempfile.TemporaryDirectory() as scratch:
    for each in CASES:
        check(*each, scratch)
    check("causal", "tp", 2, scratch, ("--recompute=full",))
    for kind, size in SHARED:
        check(kind, "cp", size, scratch)
    check("window", "cp", 2, scratch, layout=("--cp-balance=plain",))
    check_bits(GROUPS, [f"--tp=3 --spec={scratch}/m.json"], scratch)
    check_bits(1, ["--tp=2 --spec=none", "--tp=4 --spec=none"], scratch)
    print(f"{len(CASES) + len(SHARED) + 2} equal")
