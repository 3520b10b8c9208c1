#!/usr/bin/env python3
"""Times the forward of a GPT-2 in 16 bits in hpc-run and in PyTorch, taking turns, and prints minima, medians and their ratios.

  python3 test/bench/against_pytorch.py MODEL.onnx [--bin=build/bin] [--shapes=1x64,1x512,4x128] [--layouts=tp=1,tp=2] [--dtype=bf16] [--rounds=5]

The peer is Hugging Face's GPT2LMHeadModel with the file's own weights, with as many threads as there are cores: its weights converted (`to`) or products alone in 16
bits (`autocast`, which is what --dtype does); each eager, by torch.compile, and with weights that torch.compile may pack (`frozen`). All logits are compared with PyTorch's in f32
before anything is believed. Needs torch, transformers, onnx (PyPI). The peer is a process that sleeps while ours runs.
"""
import argparse, json, os, statistics, subprocess, sys, tempfile

RUNS = 3
MODES = ["to", "to, compile", "to, frozen", "autocast", "autocast, compile", "autocast, frozen"]
ERRORS = {"bf16": 4e-2, "fp16": 5e-3}  # of the largest logit; a residual in 16 bits is rounded in every block, 8 bits are 2^-9 each

def peer(model_file, inputs_file, dtype, folder, threads):
    """For each mode on stdin, or "f32": runs once, writes the logits, then RUNS times for the best of them in milliseconds."""
    import contextlib, copy, time
    import numpy, torch
    from pytorch_gpt2 import load
    torch.set_num_threads(threads)
    narrow = {"bf16": torch.bfloat16, "fp16": torch.float16}[dtype]
    wide = load(model_file).eval()
    models, called = {"f32": wide, "autocast": wide, "to": copy.deepcopy(wide).to(narrow)}, {}
    ids = torch.from_numpy(numpy.load(inputs_file)["input_ids"])
    for line in sys.stdin:
        mode = line.strip()
        how = mode.split(", ")
        with torch.no_grad(), torch.autocast("cpu", narrow) if how[0] == "autocast" else contextlib.nullcontext():
            if mode not in called:
                model = models[how[0]]
                called[mode] = model if len(how) == 1 else torch.compile(model, options={"freezing": how[1] == "frozen"})
                called[mode](ids)
                numpy.save(f"{folder}/{mode}.npy", called[mode](ids).logits.float().numpy())
            best = 1e30
            for _ in range(RUNS):
                start = time.perf_counter()
                called[mode](ids)
                best = min(best, 1e3 * (time.perf_counter() - start))
        print(best, flush=True)

def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model"), parser.add_argument("--bin", default="build/bin"), parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--shapes", default="1x64,1x512,4x128"), parser.add_argument("--layouts", default="tp=1,tp=2")
    parser.add_argument("--dtype", default="bf16", choices=ERRORS), parser.add_argument("--modes", default=":".join(MODES), help="of PyTorch, between colons")
    parser.add_argument("--torch", default=sys.executable, help="the Python that has torch and transformers")
    args = parser.parse_args()
    import numpy
    threads, modes = str(len(os.sched_getaffinity(0))), args.modes.split(":")
    for shape in args.shapes.split(","):
        batch, length = map(int, shape.split("x"))
        with tempfile.TemporaryDirectory() as folder:
            inputs, plans = f"{folder}/ids.npz", {}
            numpy.savez(inputs, input_ids=numpy.random.default_rng(0).integers(0, 50257, (batch, length)))
            for layout in args.layouts.split(","):
                plans[layout] = f"{folder}/{layout}.plan"
                subprocess.run([f"{args.bin}/hpc-opt", args.model, f"--{layout}", f"--dtype={args.dtype}", f"--dim=batch_size={batch}", f"--dim=sequence_length={length}",
                                "-o", plans[layout]], check=True)
            theirs = subprocess.Popen([args.torch, __file__, "--peer", os.path.abspath(args.model), inputs, args.dtype, folder, threads],
                                      stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

            def ask(mode):
                print(mode, file=theirs.stdin, flush=True)
                return float(theirs.stdout.readline())

            def ours(plan, *extra):
                return json.loads(subprocess.run([f"{args.bin}/hpc-run", plan, f"--input={inputs}", f"--repeat={RUNS}", *extra], check=True, capture_output=True,
                                                 text=True).stdout)["min_ms"]

            for mode in ["f32", *modes]:
                ask(mode)  # compiles
            for layout, plan in plans.items():
                ours(plan, f"--output={folder}/{layout}.npz")
            truth = numpy.load(f"{folder}/f32.npy")
            errors = {}
            for name in [*modes, *plans]:
                logits = numpy.load(f"{folder}/{name}.npy") if name in modes else numpy.load(f"{folder}/{name}.npz")["logits"]
                errors[name] = abs(logits - truth).max() / abs(truth).max()
                assert errors[name] < ERRORS[args.dtype], f"{name}: logits are off by {errors[name]} of the largest"
            times = {name: [] for name in errors}
            for _ in range(args.rounds):
                for mode in modes:
                    times[mode].append(ask(mode))
                for layout, plan in plans.items():
                    times[layout].append(ours(plan))
            theirs.stdin.close(), theirs.wait()
            for name, values in times.items():
                ratios = [f"{min(times[mode]) / min(values):.2f} times {mode} ({statistics.median(times[mode]) / statistics.median(values):.2f})" for mode in modes if name in plans]
                print(f"{shape} {'hpc-run ' if name in plans else 'PyTorch '}{name}: min {min(values):.1f} ms, median {statistics.median(values):.1f} ms, "
                      f"off by {errors[name]:.1e}" + ("; as fast as " if ratios else "") + ", ".join(ratios), flush=True)

if sys.argv[1:2] == ["--peer"]:
    peer(*sys.argv[2:6], int(sys.argv[6]))
else:
    main()
