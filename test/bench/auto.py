#!/usr/bin/env python3
"""--auto on two ranks against every layout by hand: test/bench/auto.py MODEL124/model.onnx --machine=FILE [--rounds=3] [--times=FILE.json] [--only=REGEX]

MODEL124 is a copy of ../shared/models/gpt2-124m with weights (fill.py), FILE what hpc-calibrate -o FILE has measured here. For a forward pass of 1 x 64 and 1 x 512 tokens and a training step of 4 x 64:
compiles all layouts of LAYOUTS and the one that --auto chooses, runs them in turns, one thread a rank, and prints the least time of each. Then the same under --memory at 60% of what the fastest takes.
Fails where --auto is more than 5% slower than the best. --times keeps measured times by the plan's content; what it has is not run again. Needs numpy and a quiet machine.
"""
import argparse, hashlib, json, os, re, subprocess, sys
import numpy

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("model"), parser.add_argument("--machine", required=True), parser.add_argument("--rounds", type=int, default=3), parser.add_argument("--times"), parser.add_argument("--only", default="")
parser.add_argument("--bin", default=os.path.join(ROOT, "build", "bin")), parser.add_argument("--plans", default="/tmp/hpc-auto"), parser.add_argument("--compile", action="store_true", help="only compile")
args = parser.parse_args()

FORWARD = ["--tp=2", "--tp=2 --sp", "--cp=2", "--cp=2 --cp-mode=ring", "--cp=2 --cp-mode=ulysses", "--pp=2"]
TRAIN = [layout + more for layout in ["--tp=2", "--tp=2 --sp", "--cp=2", "--dp=2", "--dp=2 --zero=1", "--dp=2 --zero=2", "--dp=2 --zero=3", "--pp=2"]
         for more in ["", " --micro-batches=2", " --recompute=full", " --recompute=attention"]] + ["--pp=2 --micro-batches=4", "--pp=2 --micro-batches=4 --recompute=full", "--tp=2 --micro-batches=4"]
CASES = [("forward 1x64", "1x64", "", FORWARD), ("forward 1x512", "1x512", "", FORWARD), ("training 4x64", "4x64", "--train", TRAIN)]
times = {}
if args.times and os.path.exists(args.times):
    with open(args.times) as file:
        times = json.load(file)


def run(tool, *words):
    return subprocess.run([os.path.join(args.bin, tool), *words], capture_output=True, text=True)


class Plan:
    """One that does not compile (it does not fit, or the layout does not go) is None."""

    def __init__(self, case, shape, kind, flags):
        self.flags, self.kind = flags, kind
        self.path = os.path.join(args.plans, re.sub(r"[^a-z0-9]+", "-", f"{case} {flags}") + ".plan")
        self.data = os.path.join(args.plans, f"{shape}{'-steps' if kind else ''}.npz")
        batch, length = map(int, shape.split("x"))
        if not os.path.exists(self.data):
            numpy.savez(self.data, input_ids=numpy.random.default_rng(0).integers(0, 50257, (*((4,) if kind else ()), batch, length)))
        if "--auto" in flags or not os.path.exists(self.path):
            done = run("hpc-opt", args.model, *kind.split(), *flags.split(), f"--dim=batch_size={batch}", f"--dim=sequence_length={length}", "-o", self.path)
            self.error = done.stderr.strip() if done.returncode else ""
        else:
            self.error = ""
        if self.error:
            return
        facts = json.loads(run("hpc-plan", self.path, "--json").stdout)
        self.memory = max(stage["memory_per_rank"]["total"] for stage in facts["stages"])
        with open(self.path, "rb") as file:
            self.key = hashlib.sha256(file.read()).hexdigest()

    def measure(self):
        if not self.kind:
            done = run("hpc-run", self.path, f"--input={self.data}", "--repeat=8", "--threads=1")
            return [json.loads(done.stdout)["min_ms"]]
        done = run("hpc-run", self.path, "--train", f"--data={self.data}", "--steps=5", "--lr=1e-5", "--threads=1", "--metrics=/dev/stdout")
        return [json.loads(line)["ms"] for line in done.stdout.splitlines() if line.startswith("{")][2:]

    def least(self):
        return min(times[self.key])


def measure(plans):
    missing = {plan.key: plan for plan in plans if plan.key not in times}
    for _ in range(args.rounds):
        for key, plan in missing.items():
            times.setdefault(key, []).extend(plan.measure())
            if args.times:
                with open(args.times, "w") as file:
                    json.dump(times, file, indent=0)


def compare(name, auto, plans):
    if auto.error:
        print(f"{name}: --auto: {auto.error}")
        return False
    measure([auto, *plans])
    plans = sorted(plans, key=Plan.least)
    for plan in plans:
        print(f"{name:34} {plan.flags:46} {plan.least():10.1f} ms {plan.memory / 2**20:8.0f} MiB")
    ratio = auto.least() / plans[0].least()
    same = [plan.flags for plan in plans if plan.key == auto.key]
    print(f"{name:34} --auto {'= ' + same[0] if same else '':39} {auto.least():10.1f} ms {auto.memory / 2**20:8.0f} MiB, {ratio:.3f} of the best", flush=True)
    return ratio <= 1.05


os.makedirs(args.plans, exist_ok=True)
good = True
for case, shape, kind, layouts in CASES:
    if not re.search(args.only, case):
        continue
    made = [Plan(case, shape, kind, flags) for flags in layouts]
    for plan in made:
        if plan.error:
            print(f"{case:34} {plan.flags:46} {plan.error.splitlines()[0][:120]}")
    plans = [plan for plan in made if not plan.error]
    if args.compile:
        continue
    auto = f"--auto --devices=2 --machine={args.machine}"
    good &= compare(case, Plan(case, shape, kind, auto), plans)
    limit = int(0.6 * min(plans, key=Plan.least).memory) >> 20
    fitting = [plan for plan in plans if plan.memory <= limit << 20]
    if fitting:
        good &= compare(f"{case} in {limit} MiB", Plan(case, shape, kind, f"{auto} --memory={limit}MiB"), fitting)
    else:
        print(f"{case} in {limit} MiB: no layout by hand fits; --auto: {Plan(case, shape, kind, f'{auto} --memory={limit}MiB').error or 'a plan'}")
sys.exit(not good)
