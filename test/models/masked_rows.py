#!/usr/bin/python3
"""Attention of queries that see no key, in every spelling: values and gradients of mse, executed through plans, against formulas in float64.

  test/models/masked_rows.py [--bin=build/bin] [--cases=NAME,..] [--layouts="--tp=2;--dp=2"]

A case lists what becomes of the scores on their way to the softmax; `reference` follows the list forwards and backwards. A query that sees nothing has weights that are
equal (the scores are replaced by a number), 0 (the op, or PyTorch's guard) or those of its scores (a number is added). In float64 PyTorch gives the same. Needs numpy.
"""
import argparse
import os
import subprocess
import sys
import tempfile

import numpy

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
sys.path.insert(0, os.path.join(ROOT, "test"))
from onnx_file import model, node  # noqa: E402

parser = argparse.ArgumentParser()
parser.add_argument("--bin", default=os.path.join(ROOT, "build", "bin"))
parser.add_argument("--cases", default="")
parser.add_argument("--layouts", default=";--tp=2;--dp=2 --micro-batches=2")
options = parser.parse_args()

B, H, G, S, K, D, W = 4, 4, 2, 3, 5, 4, 6  # batch, heads, groups, queries, keys, size of a head, width of x
LOWEST = float(numpy.finfo(numpy.float32).min)


class Case:
    """Inputs x [B, s, W] and z [B, k, W]; q, k and v are products of them. `steps`: ("where", condition, number), ("add", term) or, in f32, ("absorb", term), in order."""

    def __init__(self, seed, queries=S, keys=K, groups=H):
        self.random = numpy.random.default_rng(seed)
        self.queries, self.keys, self.groups = queries, keys, groups
        self.inputs = {name: self.normal(B, size, W) for name, size in (("x", queries), ("z", keys))}
        self.weights = {"wq": self.normal(W, H * D), "wk": self.normal(W, groups * D), "wv": self.normal(W, groups * D)}
        self.steps, self.cap, self.opset = [], 0, 18
        self.blind = "weights"  # what a row of -inf gives: NaN, or 0 where it is "zero"
        self.nodes, self.constants = [], {}
        self.scale = 1 / numpy.sqrt(D)

    def normal(self, *shape):
        return self.random.standard_normal(shape).astype(numpy.float32)

    def node(self, op, inputs, name, **attributes):
        self.nodes.append(node(op, inputs, [name], **attributes))
        return name

    def constant(self, name, value, kind=numpy.float32):
        self.constants[name] = numpy.asarray(value, kind)
        return name

    def products(self):
        return [self.node("MatMul", [x, w], name) for x, w, name in (("x", "wq", "q"), ("z", "wk", "k"), ("z", "wv", "v"))]

    def op(self, mask=None, **attributes):
        """The standard's own op."""
        self.opset, self.blind = max(self.opset, 23), "zero"
        heads = {"q_num_heads": H, "kv_num_heads": self.groups}
        self.nodes.append(node("Attention", [*self.products(), *([mask] if mask else [])], ["y"], **heads, **attributes))

    def scores(self, k):
        """q k^T, scaled, and v, with heads apart."""
        heads = {}
        for name, positions, order in (("q", self.queries, [0, 2, 1, 3]), ("k", self.keys, [0, 2, 3, 1]), ("v", self.keys, [0, 2, 1, 3])):
            apart = self.node("Reshape", [k if name == "k" else name, self.constant(f"shape_{name}", [0, positions, H, D], numpy.int64)], f"{name}_apart")
            heads[name] = self.node("Transpose", [apart], f"{name}_heads", perm=order)
        product = self.node("MatMul", [heads["q"], heads["k"]], "product")
        return self.node("Mul", [product, self.constant("scale", self.scale)], "s0"), heads["v"]

    def spelled(self, masks, guarded=False, weights_only=False):
        """`masks`: (kind, name of the mask or condition, the mask, a number); of "added" a condition is first made 0 or the number."""
        self.products()
        if "more" in self.inputs:
            self.node("Add", ["k", "more"], "k_more")
        s, v = self.scores("k_more" if "more" in self.inputs else "k")
        for i, (kind, name, mask, number) in enumerate(masks):
            low = self.constant(f"low{i}", number)
            if kind == "where":
                s = self.node("Where", [name, s, low], f"s{i + 1}")
                self.steps.append(("where", mask, number))
            else:
                term = self.node("Where", [name, self.constant("zero", 0), low], f"t{i}")
                s = self.node("Add", [s, term], f"s{i + 1}")
                self.steps.append(("add", numpy.where(mask, 0, number)))
        p = self.node("Softmax", [s], "p", axis=-1)
        if guarded:
            self.blind = "zero"
            p = self.node("Where", [self.node("IsNaN", [p], "isnan"), self.constant("zero", 0), p], "guarded")
        y = p if weights_only else self.node("MatMul", [p, v], "heads")
        turned = self.node("Transpose", [y], "turned", perm=[0, 2, 1, 3])
        self.node("Reshape", [turned, self.constant("flat", [0, self.queries, -1], numpy.int64)], "y")
        self.weights_only = weights_only

    weights_only = False
    lost = 0
    forward_only = False

    def see(self, name, mask):
        """A mask that is an input."""
        self.inputs[name] = mask
        return name

    # ---- what is right -----------------------------------------------------------------------

    def reference(self):
        """The result, and the gradients of the mean of (y - labels)^2."""
        x, z, wq, wk, wv = (numpy.asarray(each, numpy.float64) for each in (self.inputs["x"], self.inputs["z"], *self.weights.values()))
        split = lambda a, heads: a.reshape(*a.shape[:2], heads, D).transpose(0, 2, 1, 3)
        repeat = H // self.groups
        keys = z @ wk + numpy.asarray(self.inputs.get("more", 0), numpy.float64)
        q, k, v = split(x @ wq, H), split(keys, self.groups).repeat(repeat, 1), split(z @ wv, self.groups).repeat(repeat, 1)
        with numpy.errstate(invalid="ignore"):  # NaN that a selection hides
            s = q @ k.swapaxes(-1, -2) * self.scale
        slope = 1
        if self.cap:
            s = self.cap * numpy.tanh(s / self.cap)
            slope = 1 - (s / self.cap) ** 2
        for kind, *rest in self.steps:
            if kind == "add":
                s = s + rest[0]
            elif kind == "absorb":
                s = (s.astype(numpy.float32) + rest[0].astype(numpy.float32)).astype(numpy.float64)
            else:
                s = numpy.where(rest[0], s, rest[1])
                slope = slope * numpy.broadcast_to(rest[0], s.shape)
        top = s.max(-1, keepdims=True)
        e = numpy.exp(s - numpy.where(numpy.isinf(top), 0, top))
        total = e.sum(-1, keepdims=True)
        p = e / numpy.where(total == 0, 1, total)  # 0 where nothing is seen
        result = p if self.weights_only else p @ v
        y = result.transpose(0, 2, 1, 3).reshape(B, self.queries, -1)
        labels = self.random.standard_normal(y.shape).astype(numpy.float32)
        g = split_like(2 * (y - labels) / y.size, result)
        dp, dv = (g, 0 * v) if self.weights_only else (g @ v.swapaxes(-1, -2), p.swapaxes(-1, -2) @ g)
        ds = p * (dp - (dp * p).sum(-1, keepdims=True)) * slope * self.scale
        k = numpy.where(numpy.isfinite(k), k, 0)
        dq, dk = ds @ k, ds.swapaxes(-1, -2) @ q
        join = lambda a, heads: a.reshape(B, heads, -1, *a.shape[2:]).sum(2).transpose(0, 2, 1, 3).reshape(B, a.shape[2], -1)
        towards = lambda a, b: numpy.einsum("bsw,bsd->wd", a, b)
        gradients = {"wq": towards(x, join(dq, H)), "wk": towards(z, join(dk, self.groups)), "wv": towards(z, join(dv, self.groups))}
        if self.weights_only:
            del gradients["wv"]
        return y, labels, {"loss": ((y - labels) ** 2).mean(), **gradients}


def split_like(g, result):
    return g.reshape(B, result.shape[2], H, -1).transpose(0, 2, 1, 3)


def hides_rows(shape, random):
    """Of a mask [.., queries, keys]: some rows see nothing, the others at least one key."""
    mask = random.random(shape) < 0.7
    mask[..., 0] |= ~mask.any(-1)
    mask[1, ..., -1, :] = mask[2] = False
    return mask


def causal(queries, keys, offset=0):
    return numpy.arange(keys) <= numpy.arange(queries)[:, None] + offset


def cases():
    """By name."""
    made = {}

    def case(name, **sizes):
        made[name] = Case(len(made), **sizes)
        return made[name]

    # The standard's own op: a query that sees nothing gives 0 and no gradient.
    for name, sizes, attributes, shape in (
        ("op-bool", {}, {}, (B, 1, S, K)), ("op-bool-heads", {}, {}, (B, H, S, K)), ("op-padding", {}, {}, (B, 1, 1, K)), ("op-24", {}, {}, (B, 1, S, K)),
        ("op-groups", {"groups": G}, {}, (B, 1, S, K)), ("op-causal", {}, {"is_causal": 1}, (B, 1, 1, K)),
        ("op-causal-one-query", {"queries": 1}, {"is_causal": 1}, (B, 1, 1, K)), ("op-causal-more-queries", {"queries": 7, "keys": 3}, {"is_causal": 1}, (B, 1, 1, 3)),
        ("op-softcap", {}, {"softcap": 1.5}, (B, 1, S, K)), ("op-causal-softcap", {"groups": G}, {"softcap": 1.5, "is_causal": 1}, (B, 1, 1, K)),
        ("op-many-queries", {"queries": 40, "keys": 100}, {"is_causal": 1}, (B, 1, 1, 100)),
    ):
        c = case(name, **sizes)
        mask = hides_rows(shape, c.random)
        if "is_causal" in attributes:
            mask[0, ..., 0] = False  # left padding: the first queries see nothing
            c.steps.append(("where", causal(c.queries, c.keys), -numpy.inf))
        c.steps.append(("where", mask, -numpy.inf))
        c.opset, c.cap = 24 if name == "op-24" else 23, attributes.get("softcap", 0)
        c.op(c.see("mask", mask), **attributes)
    c = case("op-float")
    mask = numpy.where(hides_rows((B, 1, S, K), c.random), c.normal(B, 1, S, K), -numpy.inf).astype(numpy.float32)
    c.steps.append(("add", mask))
    c.op(c.see("mask", mask))
    for is_causal in (0, 1):  # keys of a cache that is not full: of some entries none
        c = case(f"op-lengths-{is_causal}")
        lengths = numpy.array([K, 0, 2, 1], numpy.int64)
        c.opset = 24
        c.products()
        c.nodes.append(node("Attention", ["q", "k", "v", "", "", "", c.see("lengths", lengths)], ["y"], q_num_heads=H, kv_num_heads=H, is_causal=is_causal))
        c.blind = "zero"
        c.steps.append(("where", numpy.arange(K) < lengths[:, None, None, None], -numpy.inf))
        if is_causal:
            at = numpy.arange(S)[:, None] + lengths[:, None, None, None] - S
            c.steps.append(("where", numpy.arange(K) <= at, -numpy.inf))
    # A number in place of scores: equal weights where nothing is seen, and no gradient to queries and keys.
    for name, number in (("lowest", LOWEST), ("1e30", -1e30), ("2e38", -2e38), ("1e9", -1e9), ("1e4", -1e4)):
        c = case(f"where-{name}")
        mask = hides_rows((B, 1, 1 if name == "2e38" else S, K), c.random)
        c.spelled([("where", c.see("mask", mask), mask, number)])
    # Whatever a selection hides does not show, NaN and numbers beyond the mask's own neither.
    for name, number, score in (("nan", -1e30, numpy.nan), ("infinite", LOWEST, numpy.inf), ("minus-infinite", -numpy.inf, -numpy.inf), ("larger", -1e30, 3e31), ("larger-causal", LOWEST, 3e31)):
        is_causal = name == "larger-causal"
        c = case(f"hidden-{name}", keys=S)
        mask = causal(S, S) if is_causal else numpy.ones((B, 1, 1, S), bool)
        c.inputs["more"] = numpy.zeros((B, S, 1), numpy.float32)
        if is_causal:
            c.constant("see", mask, numpy.bool_)
        else:
            mask[..., -1] = False
            mask[2] = number == -numpy.inf
            mask[2, ..., -1] = False
            c.inputs["see"] = mask
        c.inputs["more"][:, -1] = score
        c.forward_only = not numpy.isfinite(score) or is_causal  # gradients of queries are products with such keys
        c.spelled([("where", "see", mask, number)])
    c = case("where-causal-and-padding", keys=S)
    mask = hides_rows((B, 1, 1, S), c.random)
    mask[0, ..., 0] = False
    c.constant("causal", causal(S, S), numpy.bool_)
    c.spelled([("where", "causal", causal(S, S), LOWEST), ("where", c.see("mask", mask), mask, LOWEST)])
    # As the tracing exporter writes GPT-2: causal by selection, then padding by addition.
    c = case("where-then-add", keys=S)
    mask = numpy.broadcast_to(hides_rows((B, 1, 1, S), c.random), (B, 1, 1, S)).copy()
    mask[0, ..., 0] = False
    c.constant("causal", causal(S, S), numpy.bool_)
    c.spelled([("where", "causal", causal(S, S), -1e30), ("add", c.see("mask", mask), mask, -1e30)])
    c = case("add-then-where")
    mask, other = hides_rows((B, 1, S, K), c.random), hides_rows((B, H, 1, K), c.random)
    c.spelled([("add", c.see("mask", mask), mask, -1e30), ("where", c.see("other", other), other, -1e30)])
    # A number that is added: what is hidden as a whole is seen as before, as far as f32 holds the sum.
    for name, number in (("lowest", LOWEST), ("1e3", -1024.0)):
        c = case(f"add-{name}")
        mask = hides_rows((B, 1, S, K), c.random)
        c.lost = 0 if name == "lowest" else 4 * 2.0**-14  # roundings of 1024
        c.spelled([("add", c.see("mask", mask), mask, number)])
    # Beside -1e9 f32 keeps multiples of 64 of the scores: what of a hidden row is as large counts, and gradients flow.
    for seed in (20,):
        random = numpy.random.default_rng(seed)
        made["add-1e9"] = c = Case(seed, queries=int(random.integers(1, 9)), keys=int(random.integers(1, 40)))
        random.choice(4)
        mask = random.random((B, 1, 1, c.keys)) < 0.6
        mask[random.integers(0, 4)] = False
        random.integers(0, 3)
        c.weights = {name: each * numpy.float32(random.choice([0.3, 1, 3])) for name, each in c.weights.items()}
        mask = numpy.where(mask, 0, -1e9).astype(numpy.float32)
        c.op(c.see("mask", mask))
        c.lost = 2.0**-18
        c.steps.append(("absorb", mask))
    # PyTorch's guard, with and without the product that makes it an attention.
    for weights_only in (False, True):
        for kind in ("add", "where"):
            c = case(f"guarded-{kind}" + ("-weights" if weights_only else ""))
            mask = hides_rows((B, 1, S, K), c.random)
            c.spelled([(kind, c.see("mask", mask), mask, -numpy.inf)], guarded=True, weights_only=weights_only)
    c = case("guarded-causal-and-padding", keys=S)
    mask = hides_rows((B, 1, 1, S), c.random)
    mask[0, ..., 0] = False
    c.constant("causal", causal(S, S), numpy.bool_)
    c.spelled([("where", "causal", causal(S, S), -numpy.inf), ("add", c.see("mask", mask), mask, -numpy.inf)], guarded=True)
    return made


KINDS = {"float32": "f32", "bool": "bool", "int64": "i64"}


def run(tool, *arguments):
    done = subprocess.run([os.path.join(options.bin, tool), *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return done.returncode, done.stdout


def check(c, layout, scratch):
    """What is wrong, or None."""
    y, labels, expected = c.reference()
    paths = [os.path.join(scratch, name) for name in ("m.onnx", "i.npz", "l.npz", "d.npz", "p.plan", "y.npz", "g.npz")]
    file, inputs, labelled, data, plan, output, gradients = paths
    with open(file, "wb") as to:
        to.write(model(c.nodes, [(name, KINDS[each.dtype.name], each.shape) for name, each in c.inputs.items()], [("y", "f32", y.shape)],
                       [*c.weights.items(), *c.constants.items()], opset=c.opset, ir=10))
    numpy.savez(inputs, **c.inputs)
    numpy.savez(labelled, labels=labels, **c.inputs)
    numpy.savez(data, labels=labels[None], **{name: each[None] for name, each in c.inputs.items()})
    for arguments in ([file, f"--verify={inputs}"], [file, "--train", "--loss=mse", "--optimizer=sgd", f"--verify={labelled}"]):
        isTraining = "--train" in arguments
        if isTraining and c.forward_only:
            break
        code, text = run("hpc-opt", *arguments, *layout, "-o", plan)
        if code:
            return text
        code, text = run("hpc-run", plan, "--poison", *([f"--gradients={gradients}", f"--data={data}"] if isTraining else [f"--input={inputs}", f"--output={output}"]))
        if code:
            return text
        found, right = (dict(numpy.load(gradients)), expected) if isTraining else (dict(numpy.load(output)), {"y": y})
        if found.keys() - {"valid"} != right.keys():
            return f"there are {sorted(found)}, not {sorted(right)}"
        for name, value in right.items():
            off, most = numpy.abs(found[name] - value).max(), numpy.abs(value).max()
            # A sum of a few hundred terms of f32: 64 roundings of the largest, and what scores lose beside a number that is added.
            if not off <= (64 * 2.0**-24 + c.lost) * max(most, 1e-3):
                return f"'{name}' is off by {off:.3g}, the largest is {most:.3g}"
    return None


def main():
    passed, failed = 0, 0
    every = cases()
    with tempfile.TemporaryDirectory() as scratch:
        for name in options.cases.split(",") if options.cases else every:
            for layout in options.layouts.split(";"):
                problem = check(every[name], layout.split(), scratch)
                passed, failed = passed + (problem is None), failed + (problem is not None)
                if problem:
                    print(f"FAIL: {name} [{layout}]: {problem}", flush=True)
    print(f"{passed} passed, {failed} failed")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
