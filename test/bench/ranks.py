#!/usr/bin/env python3
"""What ranks beyond cores cost: the same forward and the same training step by 2 ranks and by more, taking turns: python3 test/bench/ranks.py MODEL.onnx [--bin=build/bin] [--rounds=5]

Prints minima, medians and their ratios to the first layout; ranks that waited for each other without giving up their core would show here. Then, run by run, how much of the cores' time
nobody used, of the whole machine by /proc/stat, what a hypervisor took left out: that is what is lost to waiting (it needs a quiet machine). The first --settle seconds, when pages are touched
for the first time, do not count. One thread a rank. Needs numpy and the model's weights.
"""
import argparse, json, statistics, subprocess, tempfile, time
import numpy

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("model"), parser.add_argument("--bin", default="build/bin"), parser.add_argument("--rounds", type=int, default=5)
parser.add_argument("--forward", default="1x512"), parser.add_argument("--step", default="4x64")
parser.add_argument("--layouts", default="tp=2,tp=4 pp=2,tp=2 pp=4", help="the first is what others are compared with; a step adds dp=2 tp=4")
parser.add_argument("--vocabulary", type=int, default=50257), parser.add_argument("--settle", type=float, default=20), parser.add_argument("--watch", type=float, default=12, help="seconds")
args = parser.parse_args()

def forward(plan, data, times):
    return [f"{args.bin}/hpc-run", plan, f"--input={data}", f"--repeat={times}", "--threads=1"]

def time_forward(plan, data):
    return [json.loads(subprocess.run(forward(plan, data, 3), check=True, capture_output=True, text=True).stdout)["min_ms"]]

def step(plan, data, times):
    return [f"{args.bin}/hpc-run", plan, "--train", f"--data={data}", f"--steps={times}", "--lr=1e-4", "--threads=1"]

def time_step(plan, data):
    with tempfile.NamedTemporaryFile("r", suffix=".jsonl") as metrics:
        subprocess.run([*step(plan, data, 4), f"--metrics={metrics.name}"], check=True, capture_output=True)
        return [json.loads(line)["ms"] for line in metrics][1:]

def cores_time():
    """Ticks that all cores were idle (waiting for disks included), and all but those that a hypervisor took."""
    with open("/proc/stat") as file:
        user, nice, system, idle, disks, interrupts, soft, *_ = map(int, file.readline().split()[1:])
    return idle + disks, user + nice + system + idle + disks + interrupts + soft

def idle_share(command):
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        time.sleep(args.settle)
        before = cores_time()
        time.sleep(args.watch)
        idle, total = (after - first for after, first in zip(cores_time(), before))
        if process.poll() is not None:
            raise SystemExit(f"ranks.py: {' '.join(command)} ended before it was watched")
        process.kill()
    return idle / total

with tempfile.TemporaryDirectory() as folder:
    for name, shape, flags, run, command in (("forward", args.forward, [], time_forward, forward), ("training step", args.step, ["--train", "--clip=1"], time_step, step)):
        batch, length = map(int, shape.split("x"))
        data = f"{folder}/ids.npz"
        numpy.savez(data, input_ids=numpy.random.default_rng(0).integers(0, args.vocabulary, (batch, length)))
        times = {}
        for layout in args.layouts.split(",") + (["dp=2 tp=4"] if flags and batch % 2 == 0 else []):
            times[layout] = []
            subprocess.run([f"{args.bin}/hpc-opt", args.model, *flags, *(f"--{each}" for each in layout.split()), f"--dim=batch_size={batch}", f"--dim=sequence_length={length}",
                            "-o", f"{folder}/{layout}.plan"], check=True)
        for _ in range(args.rounds):
            for layout in times:
                times[layout] += run(f"{folder}/{layout}.plan", data)
        first = next(iter(times.values()))
        for layout, values in times.items():
            print(f"{name} {shape}, {layout}: min {min(values):.0f} ms ({min(values) / min(first):.2f}), median {statistics.median(values):.0f} ms "
                  f"({statistics.median(values) / statistics.median(first):.2f}), cores idle {idle_share(command(f'{folder}/{layout}.plan', data, 1000000)):.1%}", flush=True)
