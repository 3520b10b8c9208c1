#!/usr/bin/python3
"""Random graphs in random layouts: compiled with --verify, run with --poison, compared with what numpy says (README.md).

  test/random/graphs.py [--bin=build/bin] [--seed=0] [--count=200] [--jobs=2] [--keep=FOLDER] [--reference=onnxruntime]

Prints each failure, made smaller, and a last line `N passed, N failed, N skipped`. A graph that has too few places to cut, or statistics over the batch,
is compiled again without stages and micro-batches; skipped are graphs without a node.
"""
import argparse
import collections
import concurrent.futures
import math
import os
import random
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

import numpy

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path[:0] = [HERE, os.path.dirname(HERE)]
import onnx_file  # noqa: E402
from arrangements import ARRANGED, SEQUENCE, ranks  # noqa: E402
import images  # noqa: E402,F401  adds to OPS
from ops import OPS  # noqa: E402
import attention, control, indices, integers, masks, quantised, views  # noqa: E402,E401,F401  so do these
from values import INTEGERS, Reject, Value, evaluate, exact, from_file, same_class  # noqa: E402

MOST_ELEMENTS = 20000
MOST_RANKS = 16
Node = collections.namedtuple("Node", "op operands captured results attributes evaluate arguments kind steps")
Layout = collections.namedtuple("Layout", "flags dp pp micro_batches")  # flags: of tensor and context parallelism
# Whose result, where the type holds it, has no rounding.
BASIC = {"Add", "Sub", "Mul", "Neg", "Abs", "Round", "Floor", "Ceil", "Sign", "Relu", "Max", "Min", "Identity", "ReduceMax", "ReduceMin"}
# What a graph may have too little of, by the words of the refusal.
TOO_SMALL = re.compile("places? to cut|use --micro-batches=1|use --pp=1")
# A program that ranks cannot share the positions of a sequence in.
NO_SEQUENCE = re.compile("has no attention|no attention is in|needs all positions of a sequence at once")


class Graph:
    """What has been chosen so far; all of it follows from the seed."""

    def __init__(self, seed):
        self.choose, self.numbers = random.Random(seed), numpy.random.default_rng(seed)
        self.inputs, self.constants, self.nodes, self.values, self.functions = [], {}, [], [], {}
        self.opset = self.choose.choice([18, 18, 23, 26])
        self.disputed = False  # whether ONNX Runtime differs from the standard
        self.folds = False  # whether its inputs are constants as well, so that nothing is left to compute
        self.has_empty = self.choose.random() < 0.06  # whether a dim may be 0

    def content(self, shape, kind="f32"):
        """Random numbers that every type holds."""
        if kind == "bool":
            return self.numbers.integers(0, 2, shape).astype(bool)
        if kind in INTEGERS:
            return numpy.asarray(self.numbers.integers(0 if kind[0] == "u" else -9, 10, shape)).astype({"u": "uint", "i": "int"}[kind[0]] + kind[1:])
        return numpy.asarray(self.numbers.standard_normal(shape))

    def input(self, shape, kind="f32"):
        self.values.append(self.given(self.content(shape, kind), kind))

    def given(self, array, kind="f32"):
        """An input that nothing but the node in question reads."""
        value = exact(f"x{len(self.inputs)}", numpy.asarray(array), kind)
        self.inputs.append(value)
        return value

    def constant(self, array, kind="f32"):
        """Integers and bool say their type, floats are of `kind`."""
        value = exact(f"c{len(self.constants)}", numpy.asarray(array), kind)
        self.constants[value.name] = value
        return value

    def weight(self, shape, kind="f32"):
        return self.constant(self.numbers.standard_normal(shape) / math.sqrt(shape[0] if shape else 1), kind)

    def has(self, kind):
        return any(value.kind == kind for value in self.values)

    def pick(self, kind=None, where=lambda value: True, empty=False, wild=False):
        """An earlier value, mostly one of the last; of a kind or one of several. `empty`: one without elements will do; `wild`: one with NaN or infinities."""
        kinds = (kind,) if isinstance(kind, str) else kind
        fitting = [value for value in self.values if (kinds is None or value.kind in kinds) and (empty or value.data.size) and (wild or value.is_finite) and where(value)]
        if not fitting:
            raise Reject
        return self.choose.choice(fitting[-6:] if self.choose.random() < 0.7 else fitting)

    @staticmethod
    def broadcasts(x, y):
        return all(a == b or 1 in (a, b) for a, b in zip(x.shape[::-1], y.shape[::-1]))

    def node(self, op, operands, compute, terms=None, count=1, taken=None, skipped=(), captured=(), kind=None, wild=False, steps=None, **attributes):
        """Adds a node and returns its results. `compute` gets the first `taken` operands (all), without those `skipped` (the rest says a shape)
        and those left out (None), then the values that its subgraphs have `captured`. Floats it gives are of `kind`, by default the first float operand's.
        `steps`: the nodes of the file that do it together."""
        arguments = [operand for i, operand in enumerate(operands) if operand and (taken is None or i < taken) and i not in skipped] + list(captured)
        kind = kind or next((each.kind for each in arguments if each.is_float), "f32")
        judge = lambda arguments: evaluate(compute, arguments, terms, count, kind, wild, op in BASIC)
        results = judge(arguments)
        if any(data.size > MOST_ELEMENTS or data.ndim > 6 for data, _ in results):
            raise Reject
        values = [Value(f"v{len(self.nodes)}" + (f".{i}" if i else ""), data, bound, kind) for i, (data, bound) in enumerate(results)]
        self.nodes.append(Node(op, operands, list(captured), values, attributes, judge, arguments, kind, steps.nodes if steps else None))
        self.values += values
        return values


def random_graph(seed):
    graph = Graph(seed)
    choose = graph.choose
    batch, length, width = choose.choice([1, 2, 3, 4, 6]), choose.choice([1, 3, 5, 8]), choose.choice([4, 6, 8, 10, 12])
    narrow = lambda: choose.choice(["f32"] * 8 + ["f16", "f16", "bf16", "f64"])
    graph.input((batch, length, width), narrow())
    if choose.random() < 0.4:
        graph.input(choose.choice([(batch, length, width), (batch, 1, width), (batch, width)]), narrow())
    if choose.random() < 0.3:
        graph.input((batch, length), choose.choice(["i64", "i64", *INTEGERS, "bool"]))
    if choose.random() < 0.3:
        graph.input((batch, choose.choice([2, 3, 4, 6]), *choose.sample([4, 5, 6, 7, 9], choose.randint(1, 2))))
    if choose.random() < 0.1:
        graph.input((), choose.choice(["f32", "i64", "bool"]))
    if graph.has_empty:
        graph.input((batch, 0, width) if choose.random() < 0.7 else (0,), choose.choice(["f32", "i64"]))
    for _ in range(choose.choice([0, 0, 1, 3])):  # what is made of these alone is folded
        kind = choose.choice(["f32", "f32", "i64", "bool", "f16", "u8", "i32"])
        graph.values.append(graph.constant(graph.content(choose.choice([(), (width,), (length, width), (batch, length)]), kind), kind))
    functions, weights = [function for _, function in OPS], [weight for weight, _ in OPS]
    for _ in range(choose.randint(4, 18)):
        try:
            choose.choices(functions, weights)[0](graph)
        except Reject:
            pass
    layout = drawn_layout(graph, [1, 2, 2, 3, 4, 5])
    if choose.random() < 0.3:
        layout = layout._replace(micro_batches=choose.choice([each for each in (1, 2, 3) if batch % each == 0]))
    graph.folds = choose.random() < 0.05
    made = [value for node in graph.nodes for value in node.results]
    return graph, chosen_outputs(graph, made), layout


def drawn_layout(graph, tp):
    """One of a list of plain tp, or one of two others: along several axes of tp, or of sequences, which mostly attention has."""
    choose = graph.choose
    kind = choose.random()
    attends = any("Attention" in node.op for node in graph.nodes)
    flags = f"--tp={choose.choice(tp)}" if kind < 0.6 else choose.choice(SEQUENCE) if attends or kind > 0.99 else choose.choice(ARRANGED)
    layout = Layout(flags, choose.choice([1, 1, 2, 3]), choose.choice([1, 1, 2, 3]), 1)
    return layout._replace(dp=1) if ranks(flags) * layout.dp * layout.pp > MOST_RANKS else layout


def chosen_outputs(graph, made):
    """One or two of the last values; at times a number of rank 0 or a value without elements that was made on the way, an input or a constant."""
    choose = graph.choose
    depths = {}
    for node in graph.nodes:
        depths.update((value.name, 1 + max((depths.get(each.name, 0) for each in node.operands + node.captured if each), default=0)) for value in node.results)
    outputs = choose.sample(made[-5:], min(len(made[-5:]), choose.randint(1, 2)))
    if made and choose.random() < 0.7:  # what most is computed for
        outputs[0] = max(made, key=lambda value: depths[value.name])
        outputs = outputs[:1] + [value for value in outputs[1:] if value is not outputs[0]]
    rare = [value for value in made if (not value.shape or not value.data.size) and value not in outputs]
    if rare and choose.random() < 0.5:
        outputs.append(choose.choice(rare))
    if outputs and choose.random() < 0.05:
        outputs.append(choose.choice(graph.inputs + list(graph.constants.values())))
    return outputs


class Case:
    """A part of a graph: what its outputs need, up to values that are made inputs."""

    def __init__(self, graph, outputs, layout, cut=()):
        self.outputs, self.layout, self.cut, self.opset, self.functions = outputs, layout, set(cut), graph.opset, graph.functions
        self.disputed = graph.disputed
        producer = {value.name: node for node in graph.nodes for value in node.results if value.name not in self.cut}
        needed, pending, nodes = {}, list(outputs), set()
        while pending:
            value = pending.pop()
            if value.name in needed:
                continue
            needed[value.name] = value
            node = producer.get(value.name)
            if node:
                nodes.add(id(node))
                pending += [operand for operand in node.operands + node.captured if operand]
        self.nodes = [node for node in graph.nodes if id(node) in nodes]
        self.constants = [value for name, value in graph.constants.items() if name in needed]
        # All inputs of the graph stay: the first dim of any may be the batch.
        self.inputs = [value for value in graph.inputs if value.name in needed or not cut]
        self.inputs += [value for name, value in needed.items() if name in self.cut]
        if graph.folds:
            self.inputs, self.constants = [], self.constants + self.inputs

    def values(self):
        return self.inputs + self.constants + [value for node in self.nodes for value in node.results]

    def expected(self):
        """The outputs by name, computed from what the inputs hold after rounding."""
        known = {value.name: exact(value.name, value.data, value.kind) for value in self.inputs + self.constants}
        for node in self.nodes:
            results = node.evaluate([known[value.name] for value in node.arguments])
            known.update({value.name: Value(value.name, *result, node.kind) for value, result in zip(node.results, results)})
        return {value.name: known[value.name] for value in self.outputs}

    def write(self, stem):
        nodes = []
        for node in self.nodes:
            nodes += node.steps or [onnx_file.node(node.op, [value.name if value else "" for value in node.operands], [value.name for value in node.results],
                                                   f"/{node.results[0].name}/{node.op}", "local" if node.op in self.functions else "", **node.attributes)]
        port = lambda value: (value.name, value.kind, value.shape)
        with open(stem + ".onnx", "wb") as file:
            file.write(onnx_file.model(nodes, map(port, self.inputs), map(port, self.outputs), [(value.name, value.stored()) for value in self.constants],
                                       opset=self.opset, ir=8 if self.opset < 21 else 11, domains=["local"] if self.functions else [],
                                       functions=[make(self.opset) for make in self.functions.values()]))
        numpy.savez(stem + ".npz", **{value.name: value.stored() for value in self.inputs})

    def commands(self, binaries, stem):
        layout = self.layout
        return [[f"{binaries}/hpc-opt", stem + ".onnx", *layout.flags.split(), f"--dp={layout.dp}", f"--pp={layout.pp}",
                 f"--micro-batches={layout.micro_batches}", "--verify", "-o", stem + ".plan"],
                [f"{binaries}/hpc-run", stem + ".plan", "--poison", *([f"--input={stem}.npz"] if self.inputs else []), f"--output={stem}.out.npz"]]

    def run(self, options, stem):
        """('passed' | 'failed' | 'skipped', what is wrong)."""
        try:
            expected = self.expected()
        except Reject:
            return "skipped", "no test in this form"
        self.write(stem)
        for command in self.commands(options.bin, stem):
            try:
                done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", timeout=options.timeout)
            except subprocess.TimeoutExpired:
                return "failed", f"{os.path.basename(command[0])}: no end after {options.timeout} s"
            if done.returncode == 1 and TOO_SMALL.search(done.stdout) and (self.layout.pp, self.layout.micro_batches) != (1, 1):
                self.layout = self.layout._replace(pp=1, micro_batches=1)
                return self.run(options, stem)
            if done.returncode == 1 and NO_SEQUENCE.search(done.stdout) and self.layout.flags in SEQUENCE:
                self.layout = self.layout._replace(flags="--tp=2")
                return self.run(options, stem)
            if done.returncode:
                return "failed", f"{os.path.basename(command[0])}: exit {done.returncode}\n{done.stdout[-2000:]}"
        if options.reference == "onnxruntime" and not self.disputed and not any(value.kind == "bf16" for value in self.values()):
            try:
                problem = self.compare(self.onnxruntime(stem), expected, 1e-6)
            except Exception as error:  # onnxruntime's own, by many names
                problem = None if re.search("NOT_IMPLEMENTED|type is not supported", str(error)) else str(error)
            if problem:
                return "failed", "onnxruntime: " + problem
        problem = self.compare(numpy.load(stem + ".out.npz"), expected)
        return ("failed", problem) if problem else ("passed", "")

    def onnxruntime(self, stem):
        import onnxruntime
        onnxruntime.set_default_logger_severity(4)
        settings = onnxruntime.SessionOptions()
        settings.intra_op_num_threads = 1
        settings.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL  # what is asked is the meaning of nodes
        session = onnxruntime.InferenceSession(stem + ".onnx", settings, providers=["CPUExecutionProvider"])
        names = [value.name for value in self.outputs]
        wanted = {each.name for each in session.get_inputs()}
        return dict(zip(names, session.run(names, {value.name: value.stored() for value in self.inputs if value.name in wanted})))

    @staticmethod
    def compare(got, expected, slack=0):
        """What differs; `slack` of the largest element is free, for those whose functions are less exact than ours."""
        for name, value in expected.items():
            if name not in got:
                return f"no output {name}"
            have = got[name]
            if have.shape != value.shape or have.dtype != value.stored().dtype:
                return f"{name} is {have.dtype} {have.shape}, not {value.stored().dtype} {value.shape}"
            have = from_file(have)
            if value.is_float:
                finite = numpy.isfinite(value.data)
                off = numpy.abs(numpy.where(finite, have, 0) - numpy.where(finite, value.data, 0))
                wrong = ~(same_class(have, value.data) & (off <= value.bound + slack * numpy.abs(value.data[finite]).max(initial=0)))
            else:
                wrong = have != value.data
            if wrong.any():
                at = tuple(int(each) for each in numpy.argwhere(wrong)[0])
                return f"{name}{list(at)} is {have[at]}, not {value.data[at]} (bound {value.bound[at]}); {wrong.sum()} of {wrong.size} elements"
        return None


def smaller(graph, case, fails):
    """The first of a row of simpler cases that still fails, as long as there is one."""
    made = {value.name: value for node in graph.nodes for value in node.results}
    while True:
        layout, needed = case.layout, {value.name for node in case.nodes for value in node.results}
        candidates = [Case(graph, [value], layout, case.cut) for value in case.outputs] if len(case.outputs) > 1 else []
        candidates += [Case(graph, [value], layout, case.cut) for name, value in made.items() if name in needed and value not in case.outputs]
        candidates += [Case(graph, case.outputs, layout, case.cut | {name}) for name in sorted(needed - case.cut) if made[name] not in case.outputs]
        candidates += [Case(graph, case.outputs, layout._replace(**{field: 1}), case.cut) for field in Layout._fields[1:] if getattr(layout, field) > 1]
        candidates += [Case(graph, case.outputs, layout._replace(flags=flags), case.cut) for flags in ("--tp=1", "--tp=2") if len(flags) < len(layout.flags)]
        for candidate in candidates:
            if fails(candidate):
                case = candidate
                break
        else:
            return case


def sort_of(text):
    """What kind of failure it is, so that a smaller case is one of the same."""
    tag = re.search(r"error\[\w+\]", text)
    return tag.group() if tag else text[:12]


def one(options, seed, scratch):
    graph, outputs, layout = random_graph(seed)
    if not outputs:
        return "skipped", ""
    case = Case(graph, outputs, layout)
    result, text = case.run(options, f"{scratch}/{seed}")
    if result == "failed":
        sort = sort_of(text)

        def fails(candidate):
            result, text = candidate.run(options, f"{scratch}/{seed}")
            return result == "failed" and sort_of(text) == sort

        case = case if options.whole else smaller(graph, case, fails)
        os.makedirs(options.keep, exist_ok=True)
        stem = os.path.join(options.keep, str(seed))
        text = f"{case.run(options, stem)[1]}\n  {len(case.nodes)} nodes: {' '.join(node.op for node in case.nodes)}\n  "
        text += " && ".join(map(shlex.join, case.commands(options.bin, stem)))
        numpy.savez(stem + ".expected.npz", **{name: value.stored() for name, value in case.expected().items()})
    for end in ("onnx", "npz", "plan", "out.npz"):
        if os.path.exists(f"{scratch}/{seed}.{end}"):
            os.remove(f"{scratch}/{seed}.{end}")
    return result, text


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", default=os.path.join(ROOT, "build", "bin"), help="folder of hpc-opt and hpc-run")
    parser.add_argument("--seed", type=int, default=0, help="the first graph's")
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--keep", default=os.path.join(ROOT, "build", "random"), help="where failing graphs go")
    parser.add_argument("--reference", choices=["numpy", "onnxruntime"], default="numpy", help="whether onnxruntime has to agree with numpy first")
    parser.add_argument("--whole", action="store_true", help="failing graphs are kept as they are")
    parser.add_argument("--timeout", type=int, default=120, help="seconds for a command before it counts as hanging")
    options = parser.parse_args()
    counts = collections.Counter()
    scratch = tempfile.mkdtemp(prefix="hpc-random-")
    try:
        with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
            seeds = range(options.seed, options.seed + options.count)
            for seed, (result, text) in zip(seeds, pool.map(lambda seed: one(options, seed, scratch), seeds)):
                counts[result] += 1
                if result == "failed":
                    print(f"FAILED: graph {seed}: {text}", flush=True)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    print(f"{counts['passed']} passed, {counts['failed']} failed, {counts['skipped']} skipped")
    return 1 if counts["failed"] or not counts["passed"] else 0


if __name__ == "__main__":
    sys.exit(main())
