#!/usr/bin/python3
"""Same bits: each loss and gradient norm of a training run as it is printed, and the checkpoint at the end to the byte. With --deterministic for every layout; with --without for layouts that
differ in what is computed again alone; with --runs for several runs of one plan.

  test/models/same_bits.py [--bin=build/bin] [--models=gpt2-tiny/dynamo-eager-op18] [--layouts=";--tp=2"] [--steps=20] [--flags="--clip=1"] [--without] [--runs=2 [--processes=4]]
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SHARED = os.path.join(os.path.dirname(ROOT), "shared", "models")
LAYOUTS = ["", "--tp=2", "--tp=4", "--tp=3", "--dp=2", "--dp=4", "--dp=3", "--micro-batches=2", "--micro-batches=4", "--pp=2", "--pp=2 --micro-batches=4 --schedule=gpipe",
           "--pp=2 --micro-batches=4 --schedule=1f1b", "--pp=3 --micro-batches=2 --schedule=zb-h1", "--tp=2 --pp=2 --dp=2 --micro-batches=2", "--tp=2 --dp=2 --zero=1", "--dp=2 --zero=2 --micro-batches=2",
           "--dp=4 --zero=3", "--recompute=full", "--tp=2 --pp=2 --dp=2 --micro-batches=2 --zero=1 --recompute=auto --memory=between"]

parser = argparse.ArgumentParser()
parser.add_argument("--bin", default=os.path.join(ROOT, "build", "bin"))
parser.add_argument("--models", default="gpt2-tiny/dynamo-eager-op18,gpt2-odd/torchscript-op17")
parser.add_argument("--layouts", default=";".join(LAYOUTS))
parser.add_argument("--steps", type=int, default=20)
parser.add_argument("--flags", default="--optimizer=adamw --weight-decay=0.01 --clip=1.0", help="of hpc-opt")
parser.add_argument("--without", action="store_true", help="leave --deterministic out: layouts that cut differently differ then")
parser.add_argument("--runs", type=int, default=1, help="of each plan; they are compared with each other, not with other plans")
parser.add_argument("--processes", type=int, default=1, help="of each run, by mpirun")
options = parser.parse_args()
MPIRUN = ["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", str(options.processes)]


def run(tool, *arguments, launcher=()):
    done = subprocess.run([*launcher, os.path.join(options.bin, tool), *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode:
        raise RuntimeError(f"{tool} {' '.join(arguments)}\n{done.stdout[-2000:]}")
    return done.stdout


def compile(model, layout, plan):
    run("hpc-opt", os.path.join(SHARED, model + ".onnx"), "--train", *([] if options.without else ["--deterministic"]), *options.flags.split(), *layout.split(), "--dim", "batch_size=4", "--dim",
        "sequence_length=32", "-o", plan)
    return max(stage["memory_per_rank"]["total"] for stage in json.loads(run("hpc-plan", plan, "--json"))["stages"])


def plan_of(model, layout, folder):
    """`--memory=between` stands for the middle of what --recompute=none and =full take."""
    plan = os.path.join(folder, "m.plan")
    if "--memory=between" in layout:
        none, full = (compile(model, layout.replace("--memory=between", "").replace("--recompute=auto", "--recompute=" + policy), plan) for policy in ("none", "full"))
        assert full < none, f"{model}: --recompute=full takes {full} bytes, none {none}"
        layout = layout.replace("between", str((none + full) // 2))
    compile(model, layout, plan)
    return plan


def result(model, plan, folder):
    metrics, checkpoint = os.path.join(folder, "m.jsonl"), os.path.join(folder, "m.safetensors")
    run("hpc-run", plan, "--train", f"--data={os.path.join(SHARED, os.path.dirname(model), 'train_tokens.npz')}", f"--steps={options.steps}", "--lr=3e-3", "--lr-schedule=cosine",
        f"--warmup={min(5, options.steps)}", f"--metrics={metrics}", f"--save={checkpoint}", launcher=MPIRUN if options.processes > 1 else ())
    numbers = [(line["loss"], line["grad_norm"]) for line in map(json.loads, open(metrics))]
    assert len(numbers) == options.steps and None not in numbers[-1]
    return numbers, open(checkpoint, "rb").read()


failed = cases = 0
for model in options.models.split(","):
    first = None
    for layout in options.layouts.split(";"):
        cases += 1
        if options.runs > 1:
            first = None
        with tempfile.TemporaryDirectory(prefix="hpc-bits-") as folder:
            try:
                plan = plan_of(model, layout, folder)
                results = [result(model, plan, folder) for _ in range(options.runs)]
            except (RuntimeError, AssertionError) as error:
                print(f"FAILED: {model} '{layout}': {error}")
                failed += 1
                continue
        first = first or results[0]
        for found in results:
            steps = [step for step, (mine, other) in enumerate(zip(found[0], first[0])) if mine != other]
            if steps or found[1] != first[1]:
                print(f"FAILED: {model} '{layout}': " + (f"step {steps[0]} has {found[0][steps[0]]}, not {first[0][steps[0]]}" if steps else "weights or states differ"))
                failed += 1
                break
print(f"{cases - failed} layouts have the bits of the first{' run' if options.runs > 1 else ''}, {failed} failed")
sys.exit(failed > 0)
