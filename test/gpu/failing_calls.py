#!/usr/bin/python3
"""A model in a layout, run on the stand-in with one call of the driver or the libraries failing, call after call: each time one clear error and nothing left
behind (the stand-in ends a program with status 3 that leaves something or misuses it), no output, no hang. Four steps each, so that with a card for each rank
steps are captured and replayed, too. --train: training steps and the checkpoint after them. Needs python3, with numpy for --train. The last line is `N calls failed as they should, N did not`.

  test/gpu/failing_calls.py [--bin=build/bin] [--model=models/gpt2-odd/dynamo-eager-op18.onnx] [--stride=1] [--first=0] [--seconds=100000] [--tp=2] [--pp=2] [--dtype=bf16] [--train]
"""
import argparse
import os
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
parser = argparse.ArgumentParser()
parser.add_argument("--bin", default=os.path.join(ROOT, "build", "bin"))
parser.add_argument("--model", default=os.path.join(ROOT, "models", "gpt2-odd", "dynamo-eager-op18.onnx"))
parser.add_argument("--dims", default="batch_size=4,sequence_length=33")
parser.add_argument("--inputs", default="inputs_1.npz")
parser.add_argument("--dtype", default="model", help="bf16: calls of cuDNN are among them")
parser.add_argument("--tp", type=int, default=2)
parser.add_argument("--pp", type=int, default=2)
parser.add_argument("--stride", type=int, default=1, help="try every N-th call")
parser.add_argument("--first", type=int, default=0)
parser.add_argument("--seconds", type=float, default=1e5, help="then stop, and say where")
parser.add_argument("--train", action="store_true", help="four training steps with AdamW and clipping")
options = parser.parse_args()
RANKS = options.tp * options.pp


def environment(cards, call):
    return dict(os.environ, HPC_CUDA_LIBRARIES=os.path.join(os.path.dirname(os.path.abspath(options.bin)), "test", "gpu", "standin"),
                HPC_STANDIN_DEVICES=str(cards), **({} if call is None else {"HPC_STANDIN_FAILING_CALL": str(call)}))


def run(plan, output, cards, call):
    """What is wrong with how the run ended, or None; and whether the call was reached."""
    if os.path.exists(output):
        os.remove(output)
    command = [os.path.join(options.bin, "hpc-run"), plan, "--backend=cuda", f"--ranks-per-gpu={RANKS // cards}", "--poison"]
    if options.train:
        command += ["--train", "--data", os.path.join(os.path.dirname(plan), "data.npz"), "--steps=4", "--lr=1e-3", "--save", output]
    else:
        command += ["--repeat=2", "--input", os.path.join(os.path.dirname(options.model), options.inputs), "--output", output]
    try:
        done = subprocess.run(command, env=environment(cards, call), capture_output=True, text=True, timeout=60)
    except subprocess.TimeoutExpired:
        return "no end after 60 s", True
    lines = [line for line in done.stderr.splitlines() if not line.startswith("note:")]
    if options.train:  # of those that went well
        lines = [line for line in lines if not line.startswith("step ")]
    if done.returncode == 0:
        return (None if os.path.exists(output) and not lines else f"it ended well, and said {lines}"), False
    if done.returncode not in (1, 2) or len(lines) != 1 or not lines[0].startswith("hpc-run: error["):
        return f"exit {done.returncode}: {done.stderr}", True
    return ("there is an output" if os.path.exists(output) else None), True


def main():
    failed = passed = 0
    end = time.time() + options.seconds
    with tempfile.TemporaryDirectory(prefix="hpc-failing-calls-") as folder:
        plan, output = os.path.join(folder, "model.plan"), os.path.join(folder, "out.safetensors" if options.train else "out.npz")
        training = []
        if options.train:
            import numpy
            training = ["--train", "--optimizer=adamw", "--clip=1"]
            sizes = [int(dim.split("=")[1]) for dim in options.dims.split(",")]
            numpy.savez(os.path.join(folder, "data.npz"), input_ids=numpy.arange(4 * sizes[0] * sizes[1]).reshape(4, *sizes) * 7 % 257)
        dims = [part for dim in options.dims.split(",") if dim for part in ("--dim", dim)]
        subprocess.run([os.path.join(options.bin, "hpc-opt"), options.model, "--target=cuda", f"--tp={options.tp}", f"--pp={options.pp}", "--micro-batches=2", f"--dtype={options.dtype}", *training, *dims,
                        "-o", plan], check=True)
        for cards in (1, RANKS):
            problem, _ = run(plan, output, cards, None)
            if problem:
                sys.exit(f"without any failing: {problem}")
            call = options.first
            while time.time() < end:
                problem, reached = run(plan, output, cards, call)
                if problem:
                    print(f"FAIL call {call} on {cards} cards: {problem}", flush=True)
                failed += problem is not None
                passed += problem is None and reached
                if not reached:
                    print(f"{cards} cards: less than {call + 1} calls", flush=True)
                    break
                call += options.stride
            else:
                print(f"{cards} cards: stopped before call {call}", flush=True)
    print(f"{passed} calls failed as they should, {failed} did not")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
