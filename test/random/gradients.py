#!/usr/bin/python3
"""Gradients of random graphs in random layouts, compared with PyTorch's in float64 (README.md).

  test/random/gradients.py [--bin=build/bin] [--seed=0] [--count=100] [--jobs=2] [--keep=FOLDER] [--no-verify]     # with a Python of test/environment.sh

Prints each failure and a last line `N passed, N failed, N skipped`; skipped are graphs whose gradients rounding decides.
"""
import argparse
import collections
import concurrent.futures
import os
import random
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

import numpy
import onnx
import torch

import graphs
from graphs import Case, Graph, Reject, OPS
from torch_evaluator import Evaluator

# A correct step may be off by as much as the gradient moves when each operand of each op does by so many roundings of f32, forward and back.
ROUNDINGS = 8
SAMPLES = 4
WIDEST = 3e-3  # of its largest element: a wider bound would let a missing term pass
# Modules whose ops have no gradient.
WITHOUT = ("integers", "quantised")
ATTEMPTS = 5  # of a seed, until there is a graph that is a test
MISSING = re.compile("there is nothing to train")


def trained_graph(seed):
    """A graph whose float inputs meet a parameter first, so that all that is computed has a gradient."""
    graph = Graph(seed)
    graph.has_empty = False
    choose = graph.choose
    batch, length, width = choose.choice([2, 3, 4, 6]), choose.choice([1, 3, 5, 8]), choose.choice([4, 6, 8, 10, 12])
    graph.opset = choose.choice([18, 23])
    shapes = [(batch, length, width)]
    if choose.random() < 0.3:
        shapes.append(choose.choice([(batch, length, width), (batch, 1, width), (batch, width)]))
    if choose.random() < 0.3:
        shapes.append((batch, choose.choice([2, 3, 4, 6]), *choose.sample([4, 5, 6, 7, 9], choose.randint(1, 2))))
    for shape in shapes:
        graph.input(shape)
        x = graph.values.pop()
        graph.node("Add", [x, graph.weight(shape[1:])], lambda x, y: [x + y])
    if choose.random() < 0.3:
        graph.input((batch, length), choose.choice(["i64", "bool"]))
    weights, functions = zip(*((weight, function) for weight, function in OPS if function.__module__ not in WITHOUT))
    for _ in range(choose.randint(4, 16)):
        try:
            choose.choices(functions, weights)[0](graph)
        except Reject:
            pass
    layout = graphs.drawn_layout(graph, [1, 2, 2, 3, 4])
    if choose.random() < 0.4:
        layout = layout._replace(micro_batches=choose.choice([each for each in (1, 2, 3) if batch % each == 0]))
    flags = []
    if layout.dp > 1 or layout.flags in graphs.ARRANGED:
        flags.append(f"--zero={choose.choice([0, 1, 2, 3])}")
    if choose.random() < 0.25:
        flags.append("--recompute=full")
    if layout.pp > 1 and choose.random() < 0.5:
        flags.append(f"--pp-schedule={choose.choice(['gpipe', '1f1b', 'zb-h1'])}")
    flags.append(f"--optimizer={choose.choice(['sgd', 'adamw'])}")
    return graph, layout, flags


# ---- the loss --------------------------------------------------------------------------------------

def deep(graph, rank=None):
    """A float that much is computed for."""
    made = [value for node in graph.nodes for value in node.results if value.kind == "f32" and value.data.size and (rank is None or len(value.shape) == rank)]
    if not made:
        raise Reject
    makers = {value.name: node for node in graph.nodes for value in node.results}

    def depth(value, known={}):
        node = makers.get(value.name)
        return 1 + max(depth(each) for each in node.operands + node.captured if each) if node and any(node.operands + node.captured) else 0
    return max(graph.choose.sample(made, min(4, len(made))), key=depth)


def own_loss(graph):
    """One number that the graph computes: --loss=output."""
    parts = []
    for _ in range(graph.choose.randint(1, 2)):
        y, kind = deep(graph), graph.choose.choice(["sum", "sum", "mean", "squares", "cross entropy"])
        if kind == "cross entropy" and len(y.shape) >= 2 and y.shape[1] > 1:
            labels = graph.given(graph.numbers.integers(0, y.shape[1], (y.shape[0], *y.shape[2:])))
            graph.node("SoftmaxCrossEntropyLoss", [y, labels], lambda y, labels: [numpy.asarray(cross_entropy(y, labels))], terms=lambda y, labels: [1 + numpy.abs(y).max()],
                       count=y.shape[1] + 8)
        else:
            (y,) = graph.node("Mul", [y, y if kind == "squares" else graph.constant(graph.content(y.shape))], lambda x, y: [x * y])
            mean = kind == "mean"
            reduce = lambda x: [numpy.asarray(x.mean() if mean else x.sum())]
            graph.node("ReduceMean" if mean else "ReduceSum", [y], reduce, terms=lambda x: reduce(numpy.abs(x)), count=y.data.size, keepdims=0)
        parts.append(graph.values[-1])
    return parts[0] if len(parts) == 1 else graph.node("Add", parts, lambda x, y: [x + y])[0]


def cross_entropy(scores, labels):
    shifted = scores - scores.max(axis=1, keepdims=True)
    logs = shifted - numpy.log(numpy.exp(shifted).sum(axis=1, keepdims=True))
    return -numpy.take_along_axis(logs, numpy.expand_dims(labels, 1), 1).mean()


class Loss:
    """What hpc-opt is told, what its data are, and what it is in PyTorch."""

    def __init__(self, graph):
        kind = graph.choose.choice(["output"] * 5 + ["mse", "classification", "causal-lm"])
        rank = {"classification": 2, "causal-lm": 3}.get(kind)
        self.kind, self.labels = kind, None
        self.output = own_loss(graph) if kind == "output" else deep(graph, rank)
        shape = self.output.shape
        if kind == "mse":
            self.labels = graph.content(shape).astype(numpy.float32)
        elif kind != "output":
            self.labels = graph.numbers.integers(0, shape[-1], shape[:-1])
            self.labels[graph.numbers.random(self.labels.shape) < 0.2] = -100
            if (self.labels[:, 1:] if kind == "causal-lm" else self.labels).max(initial=-1) < 0:
                raise Reject

    def compute(self, y):
        labels = None if self.labels is None else torch.tensor(self.labels)
        if self.kind == "mse":
            return ((y - labels) ** 2).mean()
        if self.kind == "classification":
            return torch.nn.functional.cross_entropy(y, labels)
        if self.kind == "causal-lm":
            return torch.nn.functional.cross_entropy(y[:, :-1].flatten(0, 1), labels[:, 1:].flatten())
        return y.reshape(())


# ---- a case ----------------------------------------------------------------------------------------

class Step:
    def __init__(self, graph, loss, layout, flags):
        self.case, self.loss, self.layout, self.flags = Case(graph, [loss.output], layout), loss, layout, flags

    def write(self, stem):
        self.case.write(stem)
        self.feeds = dict(numpy.load(stem + ".npz"))
        more = {} if self.loss.labels is None else {"labels": self.loss.labels}
        numpy.savez(stem + ".data.npz", **self.feeds, **more)

    def commands(self, options, stem):
        layout = self.layout
        return [[f"{options.bin}/hpc-opt", stem + ".onnx", "--train", "--loss=" + self.loss.kind, *layout.flags.split(), f"--dp={layout.dp}", f"--pp={layout.pp}",
                 f"--micro-batches={layout.micro_batches}", *self.flags, *([] if options.no_verify else ["--verify"]), "-o", stem + ".plan"],
                [f"{options.bin}/hpc-run", stem + ".plan", f"--gradients={stem}.out.npz", f"--data={stem}.data.npz"]]

    def gradients(self, model, names, dtype, noise=0.0, salt=0):
        evaluator = Evaluator(model, dtype, noise, salt)
        scope, leaves = evaluator.run(self.feeds, names)
        loss = self.loss.compute(evaluator.moved(scope[self.loss.output.name]))
        found = torch.autograd.grad(loss, list(leaves.values()), allow_unused=True) if loss.requires_grad else [None] * len(leaves)
        zeros = (torch.zeros_like(leaf) for leaf in leaves.values())
        return {"loss": loss.detach().numpy(), **{name: (zero if each is None else each).numpy() for name, each, zero in zip(leaves, found, zeros)}}

    def expected(self, stem, names):
        """(truth, bound) by name."""
        model = onnx.load(stem + ".onnx")
        truth = self.gradients(model, names, torch.float64)
        samples = [self.gradients(model, names, torch.float64, ROUNDINGS * 2.0**-23, salt) for salt in range(1, SAMPLES + 1)]
        samples.append(self.gradients(model, names, torch.float32))
        bounds = {}
        # What cancels to nothing is off by roundings of what is added up on the way: of the graph's largest gradient at most.
        least = ROUNDINGS * 2.0**-23 * max((numpy.abs(truth[name]).max(initial=0) for name in names), default=0)
        for name, value in truth.items():
            if not numpy.isfinite(value).all():
                raise Reject
            moves = numpy.max([numpy.abs(each[name] - value) for each in samples], axis=0)
            largest = numpy.abs(value).max(initial=0)
            # Of few elements all may move little by chance: each has the largest move of its tensor's.
            bounds[name] = numpy.full(value.shape, 6 * moves.max(initial=0) + ROUNDINGS * 2.0**-23 * largest + 1e-30)
            if not numpy.isfinite(bounds[name]).all() or bounds[name].max(initial=0) > WIDEST * max(largest, 1e-3 * abs(float(truth["loss"]))):
                raise Reject
            bounds[name] += 0 if name == "loss" else least
        return truth, bounds

    def untrained(self):
        """Constants that are no parameters: statistics, and biases that hide."""
        statistics = {operand.name for node in self.case.nodes if node.op == "BatchNormalization" for operand in node.operands[3:]}
        return statistics | {value.name for value in self.case.constants if value.is_float and (~(numpy.abs(value.data) < 1e9)).any()}

    def run(self, options, stem):
        """('passed' | 'failed' | 'skipped', what is wrong)."""
        self.write(stem)
        for command in self.commands(options, stem):
            try:
                done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", timeout=options.timeout)
            except subprocess.TimeoutExpired:
                return "failed", f"{os.path.basename(command[0])}: no end after {options.timeout} s"
            if done.returncode == 1 and graphs.TOO_SMALL.search(done.stdout) and (self.layout.pp, self.layout.micro_batches) != (1, 1):
                self.layout = self.layout._replace(pp=1, micro_batches=1)
                self.flags = [flag for flag in self.flags if not flag.startswith("--pp-")]
                return self.run(options, stem)
            if done.returncode == 1 and graphs.NO_SEQUENCE.search(done.stdout) and self.layout.flags in graphs.SEQUENCE:
                self.layout = self.layout._replace(flags="--tp=2")
                return self.run(options, stem)
            if done.returncode:
                return ("skipped" if MISSING.search(done.stdout) else "failed"), f"{os.path.basename(command[0])}: exit {done.returncode}\n{done.stdout[-2000:]}"
        got = dict(numpy.load(stem + ".out.npz"))
        floats = {value.name for value in self.case.constants if value.kind == "f32"}
        try:
            truth, bounds = self.expected(stem, sorted(floats))
        except Reject:
            return "skipped", "decided by rounding"
        except Exception as error:
            return "failed", f"PyTorch: {error!r}"
        for name, value in truth.items():
            if name not in got:
                if value.size > 1 and numpy.abs(value).max() > bounds[name].max() and name not in self.untrained():
                    return "failed", f"no gradient of '{name}'"
                continue
            if got[name].shape != value.shape:
                return "failed", f"gradient of '{name}' is {got[name].shape}, not {value.shape}"
            wrong = ~(numpy.abs(got[name] - value) <= bounds[name])
            if wrong.any():
                at = tuple(int(each) for each in numpy.argwhere(wrong)[0])
                return "failed", f"gradient of '{name}'{list(at)} is {got[name][at]}, not {value[at]} (bound {bounds[name][at]:.3g}); {wrong.sum()} of {wrong.size} elements"
        return "passed", ""


def one(options, seed, scratch):
    for attempt in range(ATTEMPTS):
        graph, layout, flags = trained_graph(seed + attempt * 2**32)
        try:
            step = Step(graph, Loss(graph), layout, flags)
        except Reject:
            result, text = "skipped", "no loss"
            continue
        result, text = step.run(options, f"{scratch}/{seed}")
        if result != "skipped":
            break
    if result == "failed":
        os.makedirs(options.keep, exist_ok=True)
        stem = os.path.join(options.keep, f"gradient-{seed}")
        text = f"{step.run(options, stem)[1]}\n  {len(step.case.nodes)} nodes: {' '.join(node.op for node in step.case.nodes)}\n  "
        text += " && ".join(map(shlex.join, step.commands(options, stem)))
    for end in ("onnx", "npz", "data.npz", "plan", "out.npz"):
        if os.path.exists(f"{scratch}/{seed}.{end}"):
            os.remove(f"{scratch}/{seed}.{end}")
    return result, text


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", default=os.path.join(graphs.ROOT, "build", "bin"), help="folder of hpc-opt and hpc-run")
    parser.add_argument("--seed", type=int, default=0, help="the first graph's")
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--keep", default=os.path.join(graphs.ROOT, "build", "random"), help="where failing graphs go")
    parser.add_argument("--no-verify", action="store_true", help="leave --verify out")
    parser.add_argument("--timeout", type=int, default=120, help="seconds for a command before it counts as hanging")
    parser.add_argument("--verbose", action="store_true", help="why a graph is skipped")
    options = parser.parse_args()
    torch.set_num_threads(1)
    counts = collections.Counter()
    scratch = tempfile.mkdtemp(prefix="hpc-gradients-")
    try:
        with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
            seeds = range(options.seed, options.seed + options.count)
            for seed, (result, text) in zip(seeds, pool.map(lambda seed: one(options, seed, scratch), seeds)):
                counts[result] += 1
                if result == "failed" or options.verbose and result == "skipped":
                    print(f"{result.upper()}: graph {seed}: {text}", flush=True)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    print(f"{counts['passed']} passed, {counts['failed']} failed, {counts['skipped']} skipped")
    return 1 if counts["failed"] or not counts["passed"] else 0


if __name__ == "__main__":
    sys.exit(main())
