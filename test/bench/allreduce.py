#!/usr/bin/python3
"""All-reduces of 64 KiB, 1 MiB and 64 MiB of f32 between two ranks: two threads; two processes by our collectives over MPI, in turns with plain
MPI_Allreduce; two processes over UCX. All of them start by turns, several times: minimum and median of all rounds, and how many times as fast as plain
MPI_Allreduce each is by minima. Then 20 in place of 8 MiB, one after the other and all posted before the first wait. Beside other work: `nice -n -15`.

  test/bench/allreduce.py [--bin=build/bin] [--times=3]
"""
import argparse
import collections
import json
import os
import statistics
import subprocess

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--bin", default="build/bin")
parser.add_argument("--times", type=int, default=3)
options = parser.parse_args()
program = os.path.join(options.bin, "hpc-bench-allreduce")
root = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
PLAIN = "plain MPI_Allreduce"

rounds = collections.defaultdict(lambda: collections.defaultdict(list))
buckets = collections.defaultdict(lambda: collections.defaultdict(list))
for time in range(options.times):
    lines = subprocess.run([program], check=True, capture_output=True, text=True).stdout
    lines += subprocess.run(["mpirun", "--oversubscribe", "-n", "2", program], check=True, capture_output=True, text=True, env=root).stdout
    pair = [subprocess.Popen([program], stdout=subprocess.PIPE, text=True,
                             env=dict(os.environ, RANK=str(r), WORLD_SIZE="2", MASTER_ADDR="127.0.0.1", MASTER_PORT=str(29477 + time))) for r in (0, 1)]
    lines += "".join(process.communicate()[0] for process in pair)
    for one in (json.loads(line) for line in lines.splitlines() if line.startswith("{")):
        if one["how"] == "one":
            rounds[one["bytes"]][one["who"]] += one["us"]
        else:
            buckets[one["who"]][one["how"]] += one["us"]

who = list(rounds[65536])
print("| bytes | " + " | ".join(f"{name}: min, median us (of plain)" for name in who) + " |")
print("|" + "---|" * (len(who) + 1))
for size, row in rounds.items():
    plain = min(row[PLAIN])
    print(f"| {size} | " + " | ".join(f"{min(row[name]):.0f}, {statistics.median(row[name]):.0f} ({plain / min(row[name]):.2f})" for name in who) + " |")

print()
print("| 20 x 8 MiB | plain: min, median ms | posted: min, median ms |")
print("|---|---|---|")
for name, row in buckets.items():
    print(f"| {name} | " + " | ".join(f"{min(row[how]) / 1e3:.1f}, {statistics.median(row[how]) / 1e3:.1f}" for how in ("plain", "posted")) + " |")
