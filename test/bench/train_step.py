#!/usr/bin/env python3
"""Times a training step of a GPT-2 in hpc-run and in PyTorch, taking turns, and prints minima, medians and their ratios.

  python3 test/bench/train_step.py MODEL.onnx [--bin=build/bin] [--shapes=4x64,1x512] [--layouts=tp=1,tp=2,dp=2,pp=2:2] [--rounds=5]

A step is forward, backward, clipping and AdamW in f32. The peer is Hugging Face's GPT2LMHeadModel with the file's own weights, eager and by torch.compile, with as
many threads as there are cores; its fused AdamW. A layout may say the threads of a rank, pp=2:2; hpc-run shares out the cores by itself. All start from the same weights, and the losses of the first steps are compared before anything is believed.
Needs torch, transformers and onnx (PyPI). Each peer is a process that sleeps while the others run; ours starts anew every round, and its first step does not count.
"""
import argparse, json, os, statistics, subprocess, sys, tempfile

STEPS, RATE, DECAY, CLIP = 4, 1e-4, 0.01, 1.0

def peer(model_file, batch_file, mode, threads):
    """Does STEPS steps for every line on stdin; prints losses and milliseconds of each."""
    import time
    import numpy, torch
    from pytorch_gpt2 import load
    torch.set_num_threads(threads)
    model = load(model_file)
    vocabulary = model.config.vocab_size
    model.train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=RATE, weight_decay=DECAY, fused=True)
    ids = torch.from_numpy(numpy.load(batch_file)["input_ids"])
    called = torch.compile(model) if mode == "compile" else model

    def step():
        logits = called(ids).logits
        loss = torch.nn.functional.cross_entropy(logits[:, :-1].reshape(-1, vocabulary), ids[:, 1:].reshape(-1))
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), CLIP)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        return loss.item()

    for _ in sys.stdin:
        lines = []
        for _ in range(STEPS):
            start = time.perf_counter()
            loss = step()
            lines.append((loss, 1e3 * (time.perf_counter() - start)))
        print(json.dumps(lines), flush=True)

def ours(args, plan, batch_file, extra=()):
    with tempfile.NamedTemporaryFile("r", suffix=".jsonl") as metrics:
        out = subprocess.run([f"{args.bin}/hpc-run", plan, "--train", f"--data={batch_file}", f"--steps={STEPS}", f"--lr={RATE}", f"--metrics={metrics.name}", *extra],
                             check=True, capture_output=True, text=True).stdout
        return [(line["loss"], line["ms"]) for line in map(json.loads, metrics)], out

def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model"), parser.add_argument("--bin", default="build/bin"), parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--shapes", default="4x64,1x512"), parser.add_argument("--layouts", default="tp=1,tp=2,dp=2,pp=2,pp=2:2")
    parser.add_argument("--torch", default=sys.executable, help="the Python that has torch and transformers"), parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--profile", action="store_true", help="print where the time of each layout goes")
    args = parser.parse_args()
    import numpy
    with tempfile.TemporaryDirectory() as folder:
        for shape in args.shapes.split(","):
            batch, length = map(int, shape.split("x"))
            data = f"{folder}/{shape}.npz"
            numpy.savez(data, input_ids=numpy.random.default_rng(args.seed).integers(0, 50257, (batch, length)))
            plans = {}
            for layout in args.layouts.split(","):
                axis, degree = layout.split(":")[0].split("=")
                if axis == "dp" and batch % int(degree):
                    continue  # nothing to deal out
                several = [f"--micro-batches={min(batch, int(degree))}", "--schedule=zb-h1"] if axis == "pp" and batch > 1 else []
                plans[layout] = f"{folder}/{shape}-{axis}{degree}.plan"
                if os.path.exists(plans[layout]):
                    continue
                subprocess.run([f"{args.bin}/hpc-opt", args.model, "--train", f"--{axis}={degree}", *several, "--optimizer=adamw", f"--weight-decay={DECAY}", f"--clip={CLIP}",
                                f"--dim=batch_size={batch}", f"--dim=sequence_length={length}", "-o", plans[layout]], check=True)
            threads = str(len(os.sched_getaffinity(0)))
            peers = {mode: subprocess.Popen([args.torch, __file__, "--peer", os.path.abspath(args.model), data, mode, threads], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
                     for mode in ("eager", "compile")}
            def ask(mode):
                print("go", file=peers[mode].stdin, flush=True)
                return json.loads(peers[mode].stdout.readline())
            first = {mode: ask(mode) for mode in peers}  # warms up and compiles; starts from the file's weights, as ours do
            times = {name: [] for name in [*peers, *plans]}
            for round in range(args.rounds):
                for mode in peers:
                    times[mode] += [ms for _, ms in ask(mode)]
                for layout, plan in plans.items():
                    flags = [f"--threads={layout.split(':')[1]}"] if ":" in layout else []
                    steps, out = ours(args, plan, data, flags + (["--profile"] if args.profile and round == 0 else []))
                    if args.profile and round == 0:
                        print(f"\n{shape}, {layout}. {out[out.index('Profile of'):]}")
                    for (loss, _), (wanted, _) in zip(steps, first["eager"]):
                        assert abs(loss - wanted) < 1e-4 * wanted, f"{layout}: losses {steps}, PyTorch's {first['eager']}"
                    times[layout] += [ms for _, ms in steps[1:]]
            for process in peers.values():
                process.stdin.close(), process.wait()
            for name, values in times.items():
                best = {mode: min(times[mode]) / min(values) for mode in peers}
                middle = {mode: statistics.median(times[mode]) / statistics.median(values) for mode in peers}
                print(f"{shape} {'PyTorch ' if name in peers else 'hpc-run '}{name}: min {min(values):.0f} ms, median {statistics.median(values):.0f} ms; "
                      + ", ".join(f"{best[mode]:.2f} times as fast as {mode} ({middle[mode]:.2f} by medians)" for mode in peers if mode != name), flush=True)

if sys.argv[1:2] == ["--peer"]:
    peer(*sys.argv[2:5], int(sys.argv[5]))
else:
    main()
