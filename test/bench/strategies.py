#!/usr/bin/env python3
"""Strategies that users hold for good against what --auto chooses, both by simulation on the same machine: PaddleFleetX's GPTs (ppfleetx/configs/nlp/gpt/pretrain_gpt_*.yaml; 345M as its
automatic-parallel configs_345M_dp8), and GPT-3 on 96 (Colossal-AI's gpt3 example) and 1,024 GPUs (Narayanan et al. 2021). Nothing runs; fails where --auto is slower.

  test/bench/strategies.py [--only=paddle-345M] [--bin=build/bin] [--cache=/tmp/published] [--machine=a100-80g]
"""
import argparse
import json
import os
import subprocess
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
# Layers, width, heads, vocabulary; GPUs, sequences of a step, their length; the users' flags.
STRATEGIES = {
    "paddle-345M": (24, 1024, 16, 50304, 8, 64, 1024, "--dp=8"),
    "paddle-1.3B": (24, 2048, 16, 50304, 8, 64, 1024, "--dp=8 --recompute=full"),
    "paddle-6.7B": (32, 4096, 32, 50304, 16, 128, 1024, "--dp=16 --zero=2 --recompute=full"),
    "paddle-175B": (96, 12288, 96, 51200, 128, 1536, 1024, "--tp=8 --pp=16 --micro-batches=1536 --recompute=full"),
    "gpt3-96": (96, 12288, 96, 51200, 96, 96, 2048, "--tp=4 --pp=24 --micro-batches=24 --recompute=full"),
    "gpt3-1024": (96, 12288, 96, 51200, 1024, 1536, 2048, "--tp=8 --pp=16 --dp=8 --micro-batches=192 --recompute=full"),
}
parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--bin", default=os.path.join(ROOT, "build", "bin"))
parser.add_argument("--cache", default="/tmp/published")
parser.add_argument("--machine", default="a100-80g")
parser.add_argument("--only", default="", help="names, by commas")
options = parser.parse_args()
os.makedirs(options.cache, exist_ok=True)


def run(tool, *flags):
    done = subprocess.run([os.path.join(options.bin, tool), *flags], capture_output=True, text=True)
    return done.returncode, done.stdout, done.stderr.strip()


def simulated(model, plan, flags):
    """Seconds of the step and of the compilation, GB of the largest rank, and what the compiler printed; or its error."""
    start = time.time()
    code, answer, messages = run("hpc-opt", model, "--no-weights", "--no-code", "--train", "--optimizer=adam", "--clip=1", "--dtype=bf16", f"--machine={options.machine}", *flags, "-o", plan)
    seconds = time.time() - start
    if code:
        return None, messages
    facts = json.loads(run("hpc-plan", plan, "--json")[1])
    memory = max(stage["memory_per_rank"]["total"] for stage in facts["stages"]) / 1e9
    _, text, error = run("hpc-run", plan, "--backend=null", f"--machine={options.machine}", "--json")
    return ((json.loads(text)["seconds"], seconds, memory) if text else None), answer + messages + error


failed = 0
print("| model | GPUs | users' strategy | s/step | GB | --auto | s/step | GB | searched in s | users' / --auto |")
print("|---|---|---|---|---|---|---|---|---|---|")
for name, (layers, width, heads, vocabulary, gpus, sequences, length, flags) in STRATEGIES.items():
    if options.only and name not in options.only.split(","):
        continue
    model, plan = (os.path.join(options.cache, f"{name}.{kind}") for kind in ("onnx", "plan"))
    subprocess.run([sys.executable, os.path.join(ROOT, "models", "transformer.py"), model, f"--layers={layers}", f"--width={width}", f"--heads={heads}", f"--vocabulary={vocabulary}",
                    f"--positions={length}"], check=True)
    sizes = [f"--dim=batch_size={sequences}", f"--dim=sequence_length={length}"]
    theirs, reason = simulated(model, plan, [*sizes, *flags.split()])
    choice = os.path.join(options.cache, f"{name}.json")
    ours, messages = simulated(model, plan, [*sizes, "--auto", f"--devices={gpus}", f"--write-spec={choice}"])
    if not theirs or not ours:
        failed += 1
        print(f"| {name} | {gpus} | `{flags}` | {'' if theirs else reason} | {'' if ours else messages} |", flush=True)
        continue
    failed += ours[0] > theirs[0]
    chosen = next(line.removeprefix("chosen: ").split(" (")[0] for line in messages.split("\n") if line.startswith("chosen: "))
    print(f"| {name} | {gpus} | `{flags}` | {theirs[0]:.4g} | {theirs[2]:.1f} | `{chosen}` | {ours[0]:.4g} | {ours[2]:.1f} | {ours[1]:.1f} | {theirs[0] / ours[0]:.3f} |", flush=True)
sys.exit(1 if failed else 0)
