#!/usr/bin/env python3
"""Step times and memory that others have published, against what a simulation of our plans of the same configurations says. Nothing runs, no weights are read.

  test/bench/published.py [--only=M21-11,K22] [--table=megatron] [--bin=build/bin] [--cache=/tmp/published] [--markdown] [--list]

published/rows.csv has the runs (../shared/published.md says where each stands), published/models.csv the shapes; models/transformer.py writes the graphs. Plans stay in the folder of --cache.
A run that hpc-opt has no equivalent of is listed with the reason. Five differences between our plans and what these frameworks did are counted, each by one rule for all runs (whole_layers,
sent_twice, hidden, rounded_again, summed_after); both times are printed.
"""
import argparse
import csv
import hashlib
import json
import math
import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(1, os.path.join(ROOT, "test"))
from plan_memory import Refused, compile_plan, largest_rank  # noqa: E402

NUMBERS = ("gpus", "tp", "pp", "chunks", "dp", "cp", "sequences", "micro", "length")
# Megatron-LM and its descendants computed attention through a matrix of scores in memory until 2022, with dropout.
WITH_SCORES = ("M20", "M21", "K22", "BS", "NL")
# NVIDIA's recipes for the H100, which overlap communication with products.
OVERLAPPED = ("DX", "NM", "ML", "MC", "MB")
# Models whose layers do not divide into equal stages.
SPLITS = {"bs-182B": ",".join(["7"] * 11 + ["1"])}
# The network of a node in bytes a second of a rank, where it is not that of the shipped machine.
NETWORKS = {"BS": 4 * 12.5e9 / 8, "FM-A": 50e9 / 8, "FM-H": 100e9 / 8}
# torchtitan's H100 have less memory bandwidth and power (500 W: a share of the peak that nobody states).
DEVICES = {"H100-96t": {"bytes_per_s": 2400e9}}
MACHINES = {"A100-80": "a100-80g", "A100-40": "a100-40g", "H100-80": "h100", "H100-96t": "h100", "V100-32": "v100-32g", "H200": "h200"}


def read(name):
    with open(os.path.join(HERE, "published", name), newline="") as file:
        return list(csv.DictReader(file))


def reason_against(run, models):
    """Why a run is not simulated, or nothing."""
    if run["type"] not in ("bf16", "fp16"):
        return f"{run['type']}: plans have products of 16 bits at least"
    if run["gpu"] not in MACHINES:
        return f"no machine file for {run['gpu']}"
    if run["zero"] == "hsdp":
        return "parameters cut inside of a node alone (HSDP): ZeRO cuts over all of dp"
    if not run["micro"]:
        return "the source does not say the micro-batch"
    if run["recompute"] == "?":
        return "the source does not say what is recomputed"
    if run["recompute"] in ("selective", "partial", "mlp"):
        return "recomputes a choice of ops that --recompute has no name for"
    if run["seen"] == "memory":
        return "not verified"
    if not run["seconds"] and not run["memory"]:
        return "no time of a step is published"
    if run["model"] not in models:
        return f"the shape of {run['model']} is not known"
    return None


def graph_of(run, models, options):
    model = models[run["model"]]
    flags = [f"--{name}={model[name]}" for name in ("family", "layers", "width", "heads", "groups", "inner", "vocabulary") if model[name]]
    flags += [*model["extra"].split(), f"--positions={run['length']}", f"--dtype={'float16' if run['gpu'] == 'V100-32' else 'bfloat16'}"]
    if run["id"].startswith(WITH_SCORES):
        flags += ["--scores", "--dropout=0.1"]
    path = os.path.join(options.cache, f"{run['model']}-{hashlib.sha256(' '.join(flags).encode()).hexdigest()[:8]}.onnx")
    if not os.path.exists(path):
        subprocess.run([sys.executable, os.path.join(ROOT, "models", "transformer.py"), path, *flags], check=True)
    return path


def flags_of(run):
    micro = run["sequences"] // (run["dp"] * run["micro"])
    flags = ["--train", "--optimizer=adam", "--clip=1", f"--tp={run['tp']}", f"--pp={run['pp']}", f"--dp={run['dp']}", f"--cp={run['cp']}", f"--zero={run['zero']}",
             f"--micro-batches={micro}", f"--pp-split={SPLITS.get(run['model'], 'uniform')}", f"--dim=batch_size={run['sequences']}", f"--dim=sequence_length={run['length']}"]
    if run["sp"] == "1":
        flags.append("--sp")
    if run["chunks"] > 1:
        flags.append(f"--pp-chunks={run['chunks']}")
    # With sequence parallelism these frameworks gather rows again for gradients, which is --recompute=attention here.
    recompute = "attention" if run["sp"] == "1" and run["recompute"] == "none" else run["recompute"]
    return [*flags, f"--recompute={recompute}"]


def facts_of(run, models, options):
    """What hpc-plan says of the plan, and the plan. Both are kept."""
    graph, flags = graph_of(run, models, options), flags_of(run)
    key = hashlib.sha256(" ".join([os.path.basename(graph), *flags]).encode()).hexdigest()[:12]
    plan, kept = os.path.join(options.cache, f"{key}.plan"), os.path.join(options.cache, f"{key}.json")
    if not os.path.exists(kept) or not os.path.exists(plan):
        if options.cached:
            raise Refused("not simulated yet: a plan takes 5 s to 2 minutes of a quiet core")
        facts, seconds = compile_plan(options.bin, graph, flags, plan)
        memory = [stage["memory_per_rank"] for stage in facts["stages"]]
        flops = [stage["product_flops_per_step"] for stage in facts["stages"]]
        with open(kept, "w") as file:
            json.dump({"id": run["id"], "flags": flags, "memory": memory, "flops": flops, "seconds": seconds}, file)
    with open(kept) as file:
        return json.load(file), plan


def machine_of(run, options):
    """A file: the shipped machine, with the network of the run's hosts."""
    name = MACHINES[run["gpu"]]
    path = os.path.join(ROOT, "runtime", "cost", "machines", f"{name}.json")
    network = next((bytes_ for begin, bytes_ in NETWORKS.items() if run["id"].startswith(begin)), None)
    changes = DEVICES.get(run["gpu"], {})
    if not network and not changes:
        return path
    with open(path) as file:
        machine = json.load(file)
    machine["device"].update(changes)
    if network:
        link = machine["links"][-1]
        share = network / link["bytes_per_s"]
        for protocol in [link, *link.get("other_protocols", [])]:
            protocol["bytes_per_s"] *= share
    path = os.path.join(options.cache, f"{name}-{run['gpu']}-{int(network or 0)}.json")
    with open(path, "w") as file:
        json.dump(machine, file)
    return path


def prediction_of(run, plan, options):
    done = subprocess.run([os.path.join(options.bin, "hpc-run"), plan, "--backend=null", f"--machine={machine_of(run, options)}", "--json"], capture_output=True, text=True)
    if done.returncode:
        raise Refused(done.stderr.strip().split("\n")[-1])
    return json.loads(done.stdout)


def share_of(points, size):
    """As runtime/cost/Machine.cpp has it: linear in the logarithm of the size."""
    points = sorted((float(least), share) for least, share in points.items())
    above = next((i for i, point in enumerate(points) if point[0] >= size), len(points))
    if above in (0, len(points)):
        return points[min(above, len(points) - 1)][1]
    (low, first), (high, last) = points[above - 1], points[above]
    return first + math.log(size / low) / math.log(high / low) * (last - first)


def whole_layers(run, models, options, bubble):
    """Seconds of a step that a framework takes which computes whole layers again: the last product of each and its sum over tp, which no gradient reads and plans leave out."""
    if run["recompute"] != "full":
        return 0
    with open(machine_of(run, options)) as file:
        machine = json.load(file)
    model, tp = models[run["model"]], run["tp"]
    width, inner = int(model["width"]), int(model["inner"] or 4 * int(model["width"]))
    rows, micro = run["micro"] * run["length"] // run["cp"], run["sequences"] // (run["dp"] * run["micro"])
    device = machine["device"]
    dtype = "bf16" if "bf16" in device["flops"] else "f16"
    product = 2 * rows * width * inner / tp / device["flops"][dtype] / share_of(device["efficiency"][dtype], min(rows, width, inner // tp))
    total = 2 * (tp - 1) / tp * 2 * rows * width / machine["links"][0]["bytes_per_s"]
    return int(model["layers"]) / run["pp"] * micro * (product + total) / (1 - bubble)


def sent_twice(run, prediction):
    """Seconds on the critical path of messages that Megatron-LM does not send: there each rank of tp sends its part of an activation to the next stage, which gathers it (Narayanan et al. 2021,
    section 4.1). Ranks of our plans send all of it, but with sequence parallelism."""
    messages = sum(part["seconds"] for part in prediction["critical_path"] if part["what"] == "messages")
    return messages * (1 - 1 / run["tp"]) if run["sp"] == "0" and not run["id"].startswith(OVERLAPPED) else 0


def hidden(run, prediction):
    """Seconds that a rank stands at gathers and scatters of tp and dp and at messages, which NVIDIA's recipes for the H100 do beside products."""
    if not run["id"].startswith(OVERLAPPED):
        return 0
    return sum(each["exposed"] for each in prediction["transfers"] if re.match(r"((all_gather|reduce_scatter) over (tp|dp)|messages)$", each["what"]))


def rounded_again(run, facts, bubble, options):
    """Seconds in which our plans round weights to 16 bits: in each micro-batch for every product that reads one. These frameworks keep a copy in 16 bits, which the update writes; with ZeRO 3 both round
    what a rank holds."""
    if run["zero"] == "3":
        return 0
    with open(machine_of(run, options)) as file:
        bandwidth = json.load(file)["device"]["bytes_per_s"]
    micro = run["sequences"] // (run["dp"] * run["micro"])
    weights = sum(memory["weight"] for memory in facts["memory"]) / len(facts["memory"]) / 4
    moved = 6 * (3 if run["recompute"] == "full" else 2) * micro - 2
    return weights * moved / bandwidth / (1 - bubble)


def summed_after(run, prediction):
    """Seconds that the sums of gradients over dp take longer in Megatron-LM and its descendants until 2022: they begin after backward, where our plans begin as soon as a gradient is complete. Those of
    fp16 are added up in 16 bits, ours in f32."""
    if not run["id"].startswith(WITH_SCORES):
        return 0
    return sum(each["seconds"] * (0.5 if run["type"] == "fp16" else 1) - each["exposed"] for each in prediction["transfers"] if each["what"] in ("all_reduce over dp", "reduce_scatter over dp"))


def describe(run):
    parts = [f"tp {run['tp']}{'+sp' if run['sp'] == '1' else ''}", f"pp {run['pp']}" + (f" x {run['chunks']}" if run["chunks"] > 1 else ""), f"dp {run['dp']}"]
    parts += [f"cp {run['cp']}"] if run["cp"] > 1 else []
    parts += [f"ZeRO {run['zero']}"] if run["zero"] != "0" else []
    return ", ".join(parts) + f"; {run['sequences']} x {run['length']} by {run['micro']}; {run['recompute']}"


def order_of(runs):
    """Of pairs whose published rates (operations of a GPU in a second) differ by more than 5%: how many are predicted in that order."""
    right = pairs = 0
    rates = [(run["flops"] / run["gpus"] / float(run["seconds"]), run["flops"] / run["gpus"] / run["predicted"]) for run in runs]
    for i, (published, predicted) in enumerate(rates):
        for other, guess in rates[:i]:
            if max(published, other) > 1.05 * min(published, other):
                pairs += 1
                right += (published > other) == (predicted > guess)
    return right, pairs


TITLES = {"megatron": "Megatron-LM, full recomputation (M20: V100 and A100, M21: A100)", "bigscience": "BigScience, 250 k vocabulary, ZeRO 1 (A100, 4 x 100 Gb/s a host)",
          "bigscience-v100": "BigScience, 1.3B (V100)", "korthikanti": "Sequence parallelism and selective recomputation (A100)", "fsdp": "ZeRO 3 and FSDP alone", "data": "ZeRO 1 alone",
          "dgx": "NVIDIA's recipes", "torchtitan": "FSDP with tensor and pipeline parallelism", "nanotron": "nanotron's best layouts (H100)", "others": "Others"}


def error_of(run):
    return 100 * (run["predicted"] / float(run["seconds"]) - 1)


def show(run):
    error = f"{error_of(run):+.1f}%" if run["seconds"] else "-"
    print(f"{run['id']:12} {run['seconds'] or '-':>7} s published, {run['predicted']:.4g} predicted ({run['plan_seconds']:.4g} of the plan): {error}; "
          f"{run['gigabytes']:.1f} GB of {run['memory'] or '-'}; {run['path']}", flush=True)


def summary(runs):
    timed = [run for run in runs if run["seconds"]]
    if not timed:
        return "no times"
    right, pairs = order_of(timed)
    errors = sorted(abs(error_of(run)) for run in timed)
    return f"{sum(error <= 10 for error in errors)} of {len(timed)} within 10%, median {errors[len(errors) // 2]:.1f}%; order: {right} of {pairs} pairs"


def print_tables(tables, left_out):
    """For docs/published.md."""
    for table, runs in tables.items():
        print(f"### {TITLES[table]}\n\n{summary(runs)}.\n")
        print("| run | model | layout; sequences x length by micro-batch; recomputed | published s | plan s | theirs s | error | critical path of the plan, s | GB (published) |")
        print("|---|---|---|---|---|---|---|---|---|")
        for run in runs:
            memory = f"{run['gigabytes']:.1f}" + (f" ({run['memory']})" if run["memory"] else "")
            error = f"{error_of(run):+.1f}%" if run["seconds"] else "-"
            print(f"| {run['id']} | {run['model']} | {describe(run)} | {run['seconds'] or '-'} | {run['plan_seconds']:.4g} | {run['predicted']:.4g} | {error} | {run['path']} | {memory} |")
        print()
    print("| left out because | runs |\n|---|---|")
    for reason, ids in left_out.items():
        print(f"| {reason} | {', '.join(ids)} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", default=os.path.join(ROOT, "build", "bin"))
    parser.add_argument("--cache", default="/tmp/published")
    parser.add_argument("--only", default="", help="ids, or what they begin with up to - or ., by commas")
    parser.add_argument("--table", default="")
    parser.add_argument("--markdown", action="store_true", help="the tables of docs/published.md")
    parser.add_argument("--compile-only", action="store_true")
    parser.add_argument("--cached", action="store_true", help="only runs whose plan is there already")
    parser.add_argument("--list", action="store_true", help="only what each run is, and why it is left out")
    options = parser.parse_args()
    os.makedirs(options.cache, exist_ok=True)
    tables, left_out = {}, {}
    models = {model["model"]: model for model in read("models.csv")}
    only = [name for name in options.only.split(",") if name]
    for run in read("rows.csv"):
        if (only and not any(re.fullmatch(re.escape(name) + r"([-.].*)?", run["id"]) for name in only)) or options.table not in ("", run["table"]):
            continue
        reason = reason_against(run, models)
        if reason or options.list:
            left_out.setdefault(reason or "simulated", []).append(run["id"])
            continue
        run.update({name: int(run[name]) for name in NUMBERS})
        try:
            facts, plan = facts_of(run, models, options)
            if options.compile_only:
                print(f"{run['id']:12} compiled in {facts['seconds']:.0f} s", flush=True)
                continue
            prediction = prediction_of(run, plan, options)
        except Refused as refusal:
            left_out.setdefault(str(refusal), []).append(run["id"])
            continue
        seconds = prediction["seconds"]
        theirs = seconds + whole_layers(run, models, options, prediction["bubble"]) - sent_twice(run, prediction) - hidden(run, prediction)
        theirs += summed_after(run, prediction) - rounded_again(run, facts, prediction["bubble"], options)
        run.update(plan_seconds=seconds, predicted=theirs, flops=prediction["flops"] - prediction["repeated_flops"], gigabytes=max(each["total"] for each in facts["memory"]) / 1e9,
                   path=", ".join(f"{part['what']} {part['seconds']:.3g}" for part in prediction["critical_path"][:4]))
        tables.setdefault(run["table"], []).append(run)
        if not options.markdown:
            show(run)
    if options.markdown:
        return print_tables(tables, left_out)
    for reason, ids in left_out.items():
        print(f"{reason}: {', '.join(ids)}")
    for table, runs in tables.items():
        print(f"{table}: {summary(runs)}")


if __name__ == "__main__":
    main()
