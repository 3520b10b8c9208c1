#!/usr/bin/env python3
"""Other arrangements of tp's ranks against 1d with as many ranks, in turns: python3 test/bench/layouts.py MODEL.onnx [--bin=build/bin] [--shape=4x512] [--rounds=5]

2d 2x2 and its panels beside tp=4, and --sp beside tp=2: the forward pass and a training step, one thread a rank. A line for each has the minima of the time of a
pass or step, and of the processors' time that it takes (which other work on the machine changes less), and both over those of 1d; for panels also over gathered. Needs numpy and the model's weights.
"""
import argparse, json, resource, subprocess, tempfile
import numpy

GROUPS = {"2d": {"1d": "--tp=4", "2d": "--tp=4 --tp-layout=2d", "2d panels": "--tp=4 --tp-layout=2d --panels"}, "sp": {"1d": "--tp=2", "sp": "--tp=2 --sp"}}
KINDS = {"forward": [], "step": ["--train", "--clip=1"]}
PEERS = {"2d": ["1d"], "2d panels": ["1d", "2d"], "sp": ["1d"]}
MANY, FEW = 4, 1  # passes or steps of two runs: their difference has no start in it

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("model"), parser.add_argument("--bin", default="build/bin"), parser.add_argument("--shape", default="4x512")
parser.add_argument("--rounds", type=int, default=5)
parser.add_argument("--only", default="2d,sp", help="groups: 2d, sp"), parser.add_argument("--kinds", default="forward,step"), parser.add_argument("--vocabulary", type=int, default=50257)
args = parser.parse_args()


def run(plan, kind, count, folder):
    """Least time of a pass or step, and the processors' time of all, in ms."""
    command = [f"{args.bin}/hpc-run", plan, "--threads=1"]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    if kind == "forward":
        out = subprocess.run([*command, f"--input={folder}/ids.npz", f"--repeat={count}"], check=True, capture_output=True, text=True).stdout
        least = json.loads(out.strip().splitlines()[-1])["min_ms"]
    else:
        subprocess.run([*command, "--train", f"--data={folder}/ids.npz", f"--steps={count}", "--lr=1e-4", f"--metrics={folder}/metrics.jsonl"], check=True, capture_output=True)
        with open(f"{folder}/metrics.jsonl") as file:
            least = min(json.loads(line)["ms"] for line in file)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return least, 1e3 * (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)


def measure(plans, kind, folder):
    times = {layout: [] for layout in plans}
    for _ in range(args.rounds):
        for layout, plan in plans.items():
            least, all_of_many = run(plan, kind, MANY, folder)
            times[layout].append((least, (all_of_many - run(plan, kind, FEW, folder)[1]) / (MANY - FEW)))
    return {layout: tuple(map(min, zip(*values))) for layout, values in times.items()}


with tempfile.TemporaryDirectory() as folder:
    batch, length = map(int, args.shape.split("x"))
    numpy.savez(f"{folder}/ids.npz", input_ids=numpy.random.default_rng(0).integers(0, args.vocabulary, (batch, length)))
    for kind in args.kinds.split(","):
        for group in args.only.split(","):
            plans = {}
            for layout, flags in GROUPS[group].items():
                plans[layout] = f"{folder}/{layout.replace(' ', '-')}.plan"
                subprocess.run([f"{args.bin}/hpc-opt", args.model, *KINDS[kind], *flags.split(), f"--dim=batch_size={batch}", f"--dim=sequence_length={length}",
                                "-o", plans[layout]], check=True)
            found = measure(plans, kind, folder)
            for layout, (least, cpu) in found.items():
                ratios = [f"{least / found[peer][0]:.2f} of {peer} (processors' time {cpu / found[peer][1]:.2f})" for peer in PEERS.get(layout, [])]
                print(f"{args.shape} {kind} {GROUPS[group][layout]}: {least:.0f} ms, processors {cpu:.0f} ms" + "".join(f", {ratio}" for ratio in ratios), flush=True)
