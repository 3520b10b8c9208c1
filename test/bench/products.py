#!/usr/bin/env python3
"""The host backend's matrix products beside a current oneDNN, one thread, in turns.

  ninja -C build hpc-bench-products && python3 test/bench/products.py [--rounds=3] [--cpu=0] [--types=f32,bf16,f16]

Debian's oneDNN is 2.6.3, and PyPI's own is built with SYCL, so the peer is the oneDNN inside PyTorch's wheel (`mkldnn._linear_pointwise`): A [M, K] times a weight [N, K] in the form
that the library chose for M rows, made ahead. Ours has B as a plan stores it, [K, N] or (1 in the first column) [N, K], and writes f32 where oneDNN writes the operands' type. Prints our time,
GFLOP/s and oneDNN's time / ours: above 1 ours is faster. The last line of a type has the geometric mean.
"""
import argparse, math, os, subprocess, sys, time

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
# gpt2-124m's four weights, its head, and products with unround extents.
SHAPES = [(transpose, m, n, k) for m in (1, 4, 64, 128, 512) for n, k in ((2304, 768), (768, 768), (3072, 768), (768, 3072)) for transpose in (0, 1)]
SHAPES += [(1, m, 50257, 768) for m in (1, 64, 512)] + [(0, 768, 3072, 512), (0, 130, 770, 766), (1, 130, 770, 766)]

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--rounds", type=int, default=3)
parser.add_argument("--cpu", type=int, default=0)
parser.add_argument("--types", default="f32,bf16,f16")
parser.add_argument("--bin", default=os.path.join(TOP, "build", "bin"))
arguments = parser.parse_args()
os.sched_setaffinity(0, {arguments.cpu})
os.environ["OMP_NUM_THREADS"] = "1"
import torch

torch.set_num_threads(1)
print("PyTorch", torch.__version__, *(line.split(" (Git")[0].strip(" -") for line in torch.__config__.show().splitlines() if line.strip().startswith("- Intel(R) MKL-DNN")))


def peer(type, m, n, k):
    """Microseconds, the least of the calls of a fifth of a second."""
    dtype = {"f32": torch.float32, "bf16": torch.bfloat16, "f16": torch.float16}[type]
    weight, x = torch.ops.mkldnn._reorder_linear_weight(torch.zeros(n, k, dtype=dtype), m), torch.zeros(m, k, dtype=dtype)
    least, sum, calls = math.inf, 0, 0
    while calls < 5 or sum < 0.2:
        start = time.perf_counter()
        torch.ops.mkldnn._linear_pointwise(x, weight, None, "none", [], "")
        one = time.perf_counter() - start
        least, sum, calls = min(least, one), sum + one, calls + 1
    return least * 1e6


for type in arguments.types.split(","):
    ratios = []
    with subprocess.Popen([f"{arguments.bin}/hpc-bench-products"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as ours:
        for transpose, m, n, k in SHAPES:
            mine = theirs = math.inf
            for _ in range(arguments.rounds):
                ours.stdin.write(f"{type} {transpose} {m} {n} {k}\n")
                ours.stdin.flush()
                mine, theirs = min(mine, float(ours.stdout.readline())), min(theirs, peer(type, m, n, k))
            ratios.append(theirs / mine)
            print(f"{type:5} {transpose} {m:4} {n:6} {k:5} {mine:10.1f} us {2e-3 * m * n * k / mine:8.0f} GFLOP/s {theirs / mine:6.2f}", flush=True)
        ours.stdin.close()
    print(f"{type}: geometric mean {math.exp(sum(map(math.log, ratios)) / len(ratios)):.2f}, least {min(ratios):.2f}, most {max(ratios):.2f}", flush=True)
