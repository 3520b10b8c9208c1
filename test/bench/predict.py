#!/usr/bin/env python3
"""Predicted against measured seconds of a step: test/bench/predict.py MODEL124/model.onnx --machine=FILE [--times=FILE.json] [--rounds=3] [--only=REGEX]

MODEL124 is a copy of ../shared/models/gpt2-124m with weights (fill.py); FILE is what hpc-calibrate -o FILE has measured on the same machine. Each plan is compiled, run for some steps in each of
--rounds rounds, all plans in turns, one thread a rank, and predicted by hpc-run --backend=null --machine=FILE. The measured time is the least of all steps. --times keeps all measured times; plans
whose times it has are not run again, so that a change of the model of cost needs no new measurement. Prints a line a plan, then errors, and the share of pairs of plans of one model and step
that differ by more than 10% and are predicted in the right order. Needs numpy and a quiet machine.
"""
import argparse, itertools, json, os, re, statistics, subprocess, sys
import numpy

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("model"), parser.add_argument("--machine"), parser.add_argument("--times"), parser.add_argument("--rounds", type=int, default=3)
parser.add_argument("--bin", default=os.path.join(ROOT, "build", "bin")), parser.add_argument("--only", default="")
parser.add_argument("--models", default=os.path.join(os.path.dirname(ROOT), "shared", "models"))
parser.add_argument("--plans", default="/tmp/hpc-predict", help="folder of the plans; those that are there are not compiled again")
parser.add_argument("--compile", action="store_true", help="only compile")
args = parser.parse_args()

MODELS = {"tiny": (os.path.join(args.models, "gpt2-tiny", "dynamo-sdpa-op18.onnx"), 257), "odd": (os.path.join(args.models, "gpt2-odd", "dynamo-sdpa-op18.onnx"), 503), "124m": (args.model, 50257)}

# Model, batch x tokens, flags of a training step or of a forward pass; the pairs whose order is judged are those of one row.
FORWARD, TRAIN = "", "--train "
CASES = [
    ("tiny", "8x64", FORWARD, ["", "--tp=2", "--dp=2", "--pp=2 --micro-batches=4", "--tp=4"]),
    ("tiny", "8x64", TRAIN, ["", "--tp=2", "--dp=2", "--pp=2 --micro-batches=4", "--tp=2 --pp=2 --dp=2 --micro-batches=2"]),
    ("odd", "16x48", FORWARD, ["", "--tp=2", "--dp=2"]),
    ("odd", "16x48", TRAIN, ["", "--tp=2", "--dp=2", "--pp=3 --micro-batches=4"]),
    ("124m", "1x64", FORWARD, ["", "--tp=2", "--pp=2", "--dtype=bf16", "--dtype=bf16 --tp=2"]),
    ("124m", "1x512", FORWARD, ["", "--tp=2", "--tp=2 --sp", "--tp=4 --tp-layout=2d", "--cp=2", "--dtype=bf16 --tp=2"]),
    ("124m", "4x64", TRAIN, ["", "--tp=2", "--tp=2 --sp", "--dp=2", "--dp=2 --zero=1", "--dp=2 --zero=3", "--pp=2 --micro-batches=4", "--tp=2 --recompute=full", "--tp=4", "--tp=4 --tp-layout=2d",
                             "--tp=2 --pp=2 --micro-batches=4", "--tp=2 --pp=2 --dp=2 --micro-batches=2", "--dtype=bf16", "--dtype=bf16 --tp=2", "--dtype=bf16 --dp=2"]),
]


class Case:
    def __init__(self, model, shape, kind, flags):
        self.model, self.shape, self.kind, self.flags = model, shape, kind, flags
        self.row = f"{model} {shape} {'training' if kind else 'forward'}"
        self.name = f"{self.row} {flags}".strip()
        self.plan = os.path.join(args.plans, re.sub(r"[^a-z0-9]+", "-", self.name) + ".plan")
        self.data = os.path.join(args.plans, f"{model}-{shape}-{'steps' if kind else 'ids'}.npz")

    def compile(self):
        batch, length = self.shape.split("x")
        if not os.path.exists(self.data):
            batches = (4,) if self.kind else ()
            numpy.savez(self.data, input_ids=numpy.random.default_rng(0).integers(0, MODELS[self.model][1], (*batches, int(batch), int(length))))
        if not os.path.exists(self.plan):
            run("hpc-opt", MODELS[self.model][0], *self.kind.split(), *self.flags.split(), f"--dim=batch_size={batch}", f"--dim=sequence_length={length}", "-o", self.plan)

    def measure(self):
        """Milliseconds of some steps; the first ones touch memory for the first time."""
        steps = 5 if self.model == "124m" else 200
        if not self.kind:
            return [json.loads(run("hpc-run", self.plan, f"--input={self.data}", f"--repeat={2 * steps}", "--threads=1"))["min_ms"]]
        lines = run("hpc-run", self.plan, "--train", f"--data={self.data}", f"--steps={steps}", "--lr=1e-5", "--threads=1", "--metrics=/dev/stdout")
        return [line["ms"] for line in map(json.loads, filter(lambda line: line.startswith("{"), lines.splitlines()))][2:]

    def predict(self):
        return 1e3 * json.loads(run("hpc-run", self.plan, "--backend=null", f"--machine={args.machine}", "--json"))["seconds"]


def run(tool, *words):
    done = subprocess.run([os.path.join(args.bin, tool), *words], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"predict.py: {tool} {' '.join(words)}: {done.stderr}")
    return done.stdout


os.makedirs(args.plans, exist_ok=True)
cases = [case for model, shape, kind, layouts in CASES for case in (Case(model, shape, kind, flags) for flags in layouts) if re.search(args.only, case.name)]
for case in cases:
    case.compile()
if args.compile:
    sys.exit()
times = {}
if args.times and os.path.exists(args.times):
    with open(args.times) as file:
        times = json.load(file)
missing = [case for case in cases if case.name not in times]
for _ in range(args.rounds):
    for case in missing:
        times.setdefault(case.name, []).extend(case.measure())
        if args.times:
            with open(args.times, "w") as file:
                json.dump(times, file, indent=0)
if not args.machine:
    sys.exit()

errors, right, pairs, rows = [], 0, 0, {}
print(f"{'plan':70} {'measured, ms':>13} {'predicted':>10} {'error':>7}")
for case in cases:
    measured, predicted = min(times[case.name]), case.predict()
    errors.append(abs(predicted / measured - 1))
    rows.setdefault(case.row, []).append((measured, predicted))
    print(f"{case.name:70} {measured:13.3f} {predicted:10.3f} {predicted / measured - 1:+7.1%}")
for row in rows.values():
    for (first, one), (second, other) in itertools.combinations(row, 2):
        if max(first, second) > 1.1 * min(first, second):
            pairs += 1
            right += (first < second) == (one < other)
print(f"{len(errors)} plans: median error {statistics.median(errors):.1%}, worst {max(errors):.1%}; {right} of {pairs} pairs in order")
