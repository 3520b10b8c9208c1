#!/usr/bin/python3
"""The equality grid: every model x input set x layout of ../arrangements.py x pp, dp x micro-batches is compiled, run by hpc-run and compared with the true result.
Within 3e-6 of max |logit| (--dtype=bf16: 2e-2, fp16: 2.5e-3) or it has failed; the first case of each layout is also compiled with --verify. Needs python3 and numpy only.

  test/models/grid.py [--bin=build/bin] [--run-bin=build-thread/bin] [--models=gpt2-odd,mlp] [--jobs=2] [--sample=24] [--resume=grid.json]
  test/models/grid.py --gpu [--dtype=bf16]    # on a GPU, all ranks on one; HPC_CUDA_LIBRARIES=build/test/gpu/standin: on its stand-in
  test/models/grid.py --layout="--tp=4 --tp-layout=2d" [--layout=...]    # these alone, beside other pp, dp and micro-batches
  test/models/grid.py --shared    # every export of ../shared/models that has weights and results, in the same layouts

A --sample is chosen without chance: it touches every value of every parameter, then as many pairs of values as N cases can.
--resume keeps in a file what has passed with these binaries, and does not run it again. The last line is `N passed, N failed, N skipped`.
"""
import argparse
import collections
import concurrent.futures
import hashlib
import itertools
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time

import numpy

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(1, os.path.join(ROOT, "test"))
from arrangements import ARRANGED, PLAIN, SEQUENCE, ranks  # noqa: E402

# Of max |logit|, by --dtype. A model here rounds the operands of at most 26 products on the way, each by at most half a unit in the last place
# (bf16: 2^-9, fp16: 2^-12); errors that are independent make sqrt(2 * 26) times that, and twice it is the bound.
BOUNDS = {"model": 3e-6, "bf16": 2e-2, "fp16": 2.5e-3}
MOST_RANKS, MOST_ARRANGED = 8, 16
PP, DP, MICRO_BATCHES = (1, 2, 3), (1, 2), (1, 2)
TIMEOUT_SECONDS = 600

# A model: its file, its input, the names of the input's symbolic dims (None: not symbolic), its output; the array of the true results where that is
# called otherwise; the input that says which of them count (no query that is padding does); flags.
Model = collections.namedtuple("Model", "file input dims output sets expected mask flags", defaults=(None, None, ()))
MODELS = {
    "gpt2-tiny": Model("dynamo-eager-op18.onnx", "input_ids", ("batch_size", "sequence_length"), "logits", (0, 1, 2)),
    "gpt2-odd": Model("dynamo-eager-op18.onnx", "input_ids", ("batch_size", "sequence_length"), "logits", (0, 1, 2)),
    "mlp": Model("dynamo-op18.onnx", "x", ("batch", None), "y", (0,)),
    "decoder": Model("model.onnx", "tokens", ("batch", "time"), "scores", (0, 1, 2)),
}
SHARED = os.path.join(os.path.dirname(ROOT), "shared", "models")
# Exports of decoding steps have no true results here: past and present are another test's.
LEFT_OUT = "-past.onnx"
# Only a model this shallow may have fewer places to cut than the grid has stages.
SHALLOW = {"mlp", "shared/mlp/dynamo-op18"}
# Without positions, so no layout cuts sequences.
WITHOUT_SEQUENCES = SHALLOW


def shared_models():
    """The exports of ../shared/models whose folder has true results and whose weights are there, by their path."""
    models = {}
    for name in ("gpt2-tiny", "gpt2-odd"):
        own = MODELS[name]
        for file in sorted(os.listdir(os.path.join(SHARED, name))):
            if not file.endswith(".onnx") or file.endswith(LEFT_OUT):
                continue
            masked = {"expected": "masked_logits", "mask": "attention_mask"} if file.endswith("-mask.onnx") else {}
            flags = ("--inference",) if "dropout" in file else ()
            models[f"shared/{name}/{file[:-len('.onnx')]}"] = own._replace(file=file, flags=flags, **masked)
    models["shared/mlp/dynamo-op18"] = MODELS["mlp"]
    return models


Case = collections.namedtuple("Case", "model set layout pp dp micro_batches")


def folder(model):
    if model.startswith("shared/"):
        return os.path.join(SHARED, os.path.dirname(model[len("shared/"):]))
    return os.path.join(ROOT, "models", model)


def inputs_file(case):
    return os.path.join(folder(case.model), f"inputs_{case.set}.npz")


def input_shape(case):
    return numpy.load(inputs_file(case))[MODELS[case.model].input].shape


def layouts(model, chosen):
    """Of a model: plain ones with all pp and dp, the others with at most one more of each."""
    for layout in chosen or PLAIN + ARRANGED + SEQUENCE:
        if layout in SEQUENCE and model in WITHOUT_SEQUENCES:
            continue
        plain = layout in PLAIN
        for pp, dp in itertools.product(PP, DP) if plain or chosen else ((1, 1), (2, 1), (1, 2)):
            if ranks(layout) * pp * dp <= (MOST_RANKS if plain else MOST_ARRANGED):
                yield layout, pp, dp


def all_cases(models, chosen=()):
    cases = []
    for model in models:
        for layout, pp, dp in layouts(model, chosen):
            for s in MODELS[model].sets:
                for m in reversed(MICRO_BATCHES):  # the first case of a layout is verified: let it have micro-batches
                    case = Case(model, s, layout, pp, dp, m)
                    if input_shape(case)[0] % m == 0:
                        cases.append(case)
    return cases


def values(case):
    """The values that a sample has to touch; a set belongs to its model."""
    return ["model=" + case.model, f"set={case.model}/{case.set}", case.layout, f"pp={case.pp}", f"dp={case.dp}", f"mb={case.micro_batches}"]


def sample(cases, count):
    chosen, rest, seen = [], list(cases), set()

    def gain(case):
        new = [v for v in values(case) if v not in seen]
        pairs = [p for p in itertools.combinations(values(case), 2) if p not in seen]
        return 1000 * len(new) + len(pairs)

    while rest and len(chosen) < count:
        best = max(rest, key=gain)
        rest.remove(best)
        chosen.append(best)
        seen.update(values(best), itertools.combinations(values(best), 2))
    left = sorted({v for case in cases for v in values(case)} - seen)
    if left:
        sys.exit(f"grid.py: --sample={count} is too few: it leaves out {', '.join(left)}")
    return sorted(chosen, key=cases.index)


def compile_command(options, case, verify, plan, kernels=None):
    """`kernels`: a folder for machine code, most of which the layouts of a model share."""
    model = MODELS[case.model]
    command = [os.path.join(options.bin, "hpc-opt"), os.path.join(folder(case.model), model.file), *case.layout.split(), f"--pp={case.pp}",
               f"--dp={case.dp}", f"--micro-batches={case.micro_batches}", *model.flags]
    for name, size in zip(model.dims, input_shape(case)):
        if name:
            command += ["--dim", f"{name}={size}"]
    if options.dtype != "model":
        command.append("--dtype=" + options.dtype)
    if kernels:
        command.append("--kernel-cache=" + kernels)
    return command + (["--target=host,cuda"] if options.gpu else []) + (["--verify"] if verify else []) + ["-o", plan]


def call(command):
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=TIMEOUT_SECONDS, text=True, errors="replace")
        return done.returncode, done.stdout
    except subprocess.TimeoutExpired:
        return 124, f"no end after {TIMEOUT_SECONDS} s\n"
    except OSError as error:
        return 127, f"{error}\n"


def difference(case, file, bound):
    """None where the result is right, else what is wrong with it; and max |got - true| / max |true|."""
    model = MODELS[case.model]
    name = model.output
    want = numpy.load(os.path.join(folder(case.model), f"expected_{case.set}.npz"))[model.expected or name]
    arrays = numpy.load(file)
    if name not in arrays:
        return f"{file} has no array {name}, only {', '.join(arrays.files)}", numpy.inf
    got = arrays[name]
    if got.shape != want.shape or got.dtype != want.dtype:
        return f"{name} is {got.dtype} {got.shape}, not {want.dtype} {want.shape}", numpy.inf
    off = numpy.abs(got.astype(numpy.float64) - want)
    if model.mask:
        off[numpy.load(inputs_file(case))[model.mask] == 0] = 0
    scale = numpy.abs(want).max()
    error = off.max() / scale
    if error <= bound:  # NaN is not
        return None, error
    where = numpy.unravel_index(numpy.argmax(numpy.where(numpy.isnan(off), numpy.inf, off)), off.shape)
    return f"{name}{list(map(int, where))} is {got[where]}, not {want[where]}: {error:.3g} of max |logit|, the bound is {bound}", error


def commands(options, case, verify, stem, kernels=None):
    plan = stem + ".plan"
    gpu = ["--backend=cuda", f"--ranks-per-gpu={ranks(case.layout) * case.pp * case.dp}"] if options.gpu else []
    return [compile_command(options, case, verify, plan, kernels),
            [os.path.join(options.run_bin, "hpc-run"), plan, "--input=" + inputs_file(case), "--output=" + stem + ".npz", *gpu]]


def run_case(options, case, verify, scratch):
    """('passed' | 'failed' | 'skipped', text, error)."""
    stem = os.path.join(scratch, re.sub("[^-.=0-9a-zA-Z]+", "_", "-".join(map(str, case))))
    plan, output = stem + ".plan", stem + ".npz"
    result, error, text = "passed", 0.0, ""
    for step in commands(options, case, verify, stem, os.path.join(scratch, "kernels")):
        code, said = call(step)
        if code != 0:
            result = "skipped" if case.model in SHALLOW and "places to cut" in said else "failed"
            text = f"exit {code}\n{said[-4000:]}"
            break
    else:
        problem, error = difference(case, output, BOUNDS[options.dtype])
        if problem:
            result, text = "failed", problem + "\n"
    if result == "failed":
        text += "  again: " + " && ".join(map(shlex.join, commands(options, case, verify, "/tmp/again")))
    for file in (plan, output):
        if os.path.exists(file):
            os.remove(file)
    return result, text, error


def fingerprint(options):
    """What a state file belongs to: results of other binaries, or of another way to run them, say nothing."""
    digest = hashlib.sha256(f"{options.gpu} {options.dtype}".encode())
    for file in (os.path.join(options.bin, "hpc-opt"), os.path.join(options.run_bin, "hpc-run")):
        if os.path.exists(file):
            with open(file, "rb") as binary:
                digest.update(binary.read())
    return digest.hexdigest()


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", default=os.path.join(ROOT, "build", "bin"), help="folder of hpc-opt (and hpc-run)")
    parser.add_argument("--run-bin", help="folder of hpc-run where it is another one")
    parser.add_argument("--models", default=",".join(MODELS), help="comma-separated, of " + ", ".join(MODELS))
    parser.add_argument("--shared", action="store_true", help="the exports of ../shared/models instead")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--sample", type=int, metavar="N", help="N cases that touch every value")
    parser.add_argument("--resume", metavar="FILE", help="state of finished cases; made where it is missing")
    parser.add_argument("--no-verify", action="store_true", help="leave --verify out")
    parser.add_argument("--gpu", action="store_true", help="run on the GPU, all ranks on one; HPC_CUDA_LIBRARIES=build/test/gpu/standin: on its stand-in")
    parser.add_argument("--dtype", choices=BOUNDS, default="model", help="of the operands of products, as hpc-opt has it")
    parser.add_argument("--layout", action="append", default=[], metavar="FLAGS", help="only this one (and others given so), as in --layout='--tp=4 --tp-layout=2d'")
    parser.add_argument("--list", action="store_true", help="print the cases, run nothing")
    options = parser.parse_args()
    options.run_bin = options.run_bin or options.bin
    if options.shared:
        if not os.path.isdir(SHARED):
            sys.exit(f"grid.py: --shared needs {SHARED}")
        MODELS.update(shared_models())
        if options.models == parser.get_default("models"):
            options.models = ",".join(name for name in MODELS if name.startswith("shared/"))
    options.models = options.models.split(",")
    for name in options.models:
        if name not in MODELS:
            sys.exit(f"grid.py: no model {name}; there are {', '.join(MODELS)}")
    return options


def main():
    options = arguments()
    cases = all_cases(options.models, options.layout)
    if options.sample:
        cases = sample(cases, options.sample)
    verified, work = set(), []
    for case in cases:
        layout = (case.model, case.layout, case.pp, case.dp)
        work.append((case, not options.no_verify and layout not in verified))
        verified.add(layout)
    if options.list:
        for case, verify in work:
            print(" ".join(values(case)), "verify" if verify else "")
        return 0

    state, tools = {}, fingerprint(options)
    if options.resume and os.path.exists(options.resume):
        with open(options.resume) as file:
            state = json.load(file)
        if state.get("tools") != tools:
            print(f"{options.resume} is of other binaries: starting anew")
            state = {}
    state["tools"] = tools
    key = lambda case, verify: "-".join(map(str, case)) + ("-verify" if verify else "")
    counts, worst, started = collections.Counter(), (0.0, None), time.time()
    scratch = tempfile.mkdtemp(prefix="hpc-grid-")
    try:
        with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
            futures = {}
            for case, verify in work:
                if state.get(key(case, verify)) in ("passed", "skipped"):
                    counts[state[key(case, verify)]] += 1
                    continue
                futures[pool.submit(run_case, options, case, verify, scratch)] = (case, verify)
            for future in concurrent.futures.as_completed(futures):
                case, verify = futures[future]
                result, text, error = future.result()
                counts[result] += 1
                state[key(case, verify)] = result
                if result == "passed":
                    worst = max(worst, (float(error), key(case, verify)))
                else:
                    print(f"{result.upper()}: {' '.join(values(case))}{' --verify' if verify else ''}: {text}", flush=True)
                if options.resume:
                    with open(options.resume + ".new", "w") as file:
                        json.dump(state, file, indent=0, sort_keys=True)
                    os.replace(options.resume + ".new", options.resume)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    if worst[1]:
        print(f"worst of what passed: {worst[0]:.3g} of max |logit| (bound {BOUNDS[options.dtype]}), {worst[1]}; {time.time() - started:.0f} s")
    print(f"{counts['passed']} passed, {counts['failed']} failed, {counts['skipped']} skipped")
    return 1 if counts["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
