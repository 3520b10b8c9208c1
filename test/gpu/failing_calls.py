#!/usr/bin/python3
"""A model in a layout, run on the stand-in with one call of the driver or the libraries failing, call after call: each time one clear error and nothing left
behind (the stand-in ends a program with status 3 that leaves something or misuses it), no output, no hang. All ranks on one card, then a card for each, where
the third step is captured and the fourth replayed. --train: training steps and the checkpoint after them, without --poison, whose fills would be half of the
calls. Needs python3 and numpy. The last line is `N calls failed as they should, N did not`.

  test/gpu/failing_calls.py                         # every call of inference
  test/gpu/failing_calls.py --train --model=models/decoder/model.onnx --dims=batch=2,time=3 --input=tokens --tp=1      # every call of training
  test/gpu/failing_calls.py --stride=211 [--first=13] [--seconds=60] [--jobs=4]    # some of them
"""
import argparse
import collections
import concurrent.futures
import os
import subprocess
import sys
import tempfile
import time

import numpy

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--bin", default=os.path.join(ROOT, "build", "bin"))
parser.add_argument("--model", default=os.path.join(ROOT, "models", "gpt2-odd", "dynamo-eager-op18.onnx"))
parser.add_argument("--dims", default="batch_size=2,sequence_length=3", help="small: which calls there are does not depend on it")
parser.add_argument("--input", default="input_ids", help="the model's one input, ids of these dims")
parser.add_argument("--dtype", default="model", help="bf16: calls of cuDNN are among them")
parser.add_argument("--tp", type=int, default=2)
parser.add_argument("--pp", type=int, default=2)
parser.add_argument("--train", action="store_true", help="training steps with AdamW and clipping")
parser.add_argument("--stride", type=int, default=1, help="try every N-th call")
parser.add_argument("--first", type=int, default=0)
parser.add_argument("--seconds", type=float, default=1e5, help="then stop, and say where")
parser.add_argument("--jobs", type=int, default=2 * os.cpu_count(), help="runs at a time; each waits for half of its time")
options = parser.parse_args()
RANKS = options.tp * options.pp
SIZES = [int(dim.split("=")[1]) for dim in options.dims.split(",")]

# How a run ended: what is wrong with that, or None; whether the call was reached.
Ending = collections.namedtuple("Ending", "problem reached")


def make_plan(folder):
    """The plan, and the data of its steps."""
    ids = numpy.arange(4 * numpy.prod(SIZES)).reshape(4, *SIZES) * 7 % 13  # rows that every vocabulary has
    numpy.savez(os.path.join(folder, "data.npz"), **{options.input: ids if options.train else ids[0]})
    training = ["--train", "--optimizer=adamw", "--clip=1"] if options.train else []
    dims = [part for dim in options.dims.split(",") for part in ("--dim", dim)]
    subprocess.run([os.path.join(options.bin, "hpc-opt"), options.model, "--target=cuda", f"--tp={options.tp}", f"--pp={options.pp}", "--micro-batches=2",
                    f"--dtype={options.dtype}", *training, *dims, "-o", os.path.join(folder, "model.plan")], check=True)


def run(folder, cards, call):
    """With this call failing, or none."""
    output = os.path.join(folder, f"{cards}-{call}.safetensors" if options.train else f"{cards}-{call}.npz")
    data = os.path.join(folder, "data.npz")
    command = [os.path.join(options.bin, "hpc-run"), os.path.join(folder, "model.plan"), "--backend=cuda", f"--ranks-per-gpu={RANKS // cards}"]
    if options.train:  # where ranks share a card nothing is captured, and the second step finds all that the first has made
        command += ["--train", "--data", data, f"--steps={4 if cards == RANKS else 2}", "--lr=1e-3", "--save", output]
    else:
        command += ["--repeat=2", "--input", data, "--output", output, "--poison"]
    environment = dict(os.environ, HPC_CUDA_LIBRARIES=os.path.join(os.path.dirname(os.path.abspath(options.bin)), "test", "gpu", "standin"),
                       HPC_STANDIN_DEVICES=str(cards), **({} if call is None else {"HPC_STANDIN_FAILING_CALL": str(call)}))
    try:
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)
    except subprocess.TimeoutExpired:
        return Ending("no end after 60 s", True)
    has_output = os.path.exists(output)
    if has_output:
        os.remove(output)
    lines = done.stderr.splitlines()
    if done.returncode == 0:
        return Ending(None if has_output and not lines else f"it ended well, and said {lines}", False)
    if done.returncode not in (1, 2) or len(lines) != 1 or not lines[0].startswith("hpc-run: error["):
        return Ending(f"exit {done.returncode}: {done.stderr}", True)
    return Ending("there is an output" if has_output else None, True)


def fail_all(folder, cards, end):
    """How many calls failed as they should, and how many did not; stops behind the last call that a run makes."""
    counts, stop = collections.Counter(), []

    def attempt(call):
        return None if stop else "late" if time.time() > end else run(folder, cards, call)

    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        waiting, call = collections.deque(), options.first
        while not stop:
            while len(waiting) < 2 * options.jobs:
                waiting.append((call, pool.submit(attempt, call)))
                call += options.stride
            number, future = waiting.popleft()
            ending = future.result()
            if ending == "late":
                stop.append(f"stopped before call {number}")
            elif ending.problem:
                print(f"FAIL call {number} on {cards} cards: {ending.problem}", flush=True)
                counts["failed"] += 1
                if not ending.reached:
                    stop.append(f"at most {number} calls")
            elif ending.reached:
                counts["passed"] += 1
            else:
                stop.append(f"at most {number} calls")
    print(f"{cards} cards: {stop[0]}, {counts['passed']} failed as they should", flush=True)
    return counts


def main():
    counts, end = collections.Counter(), time.time() + options.seconds
    with tempfile.TemporaryDirectory(prefix="hpc-failing-calls-") as folder:
        make_plan(folder)
        for cards in sorted({1, RANKS}):
            problem = run(folder, cards, None).problem
            if problem:
                sys.exit(f"without any failing: {problem}")
            counts += fail_all(folder, cards, end)
    print(f"{counts['passed']} calls failed as they should, {counts['failed']} did not")
    return 1 if counts["failed"] or not counts["passed"] else 0


if __name__ == "__main__":
    sys.exit(main())
