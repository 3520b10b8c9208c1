#!/usr/bin/python3
"""All-reduces of 64 KiB, 1 MiB and 64 MiB of f32 between two ranks: two threads, two processes by our collectives over MPI in turns with plain
MPI_Allreduce, two processes over UCX. Needs `ninja -C build hpc-bench-allreduce`.

  test/bench/allreduce.py [--bin=build/bin]
"""
import argparse
import json
import os
import subprocess

parser = argparse.ArgumentParser()
parser.add_argument("--bin", default="build/bin")
program = os.path.join(parser.parse_args().bin, "hpc-bench-allreduce")
root = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
lines = subprocess.run([program], check=True, capture_output=True, text=True).stdout
lines += subprocess.run(["mpirun", "--oversubscribe", "-n", "2", program], check=True, capture_output=True, text=True, env=root).stdout
pair = [subprocess.Popen([program], stdout=subprocess.PIPE, text=True,
                         env=dict(os.environ, RANK=str(r), WORLD_SIZE="2", MASTER_ADDR="127.0.0.1", MASTER_PORT="29477")) for r in (0, 1)]
lines += "".join(process.communicate()[0] for process in pair)

times = {}
for line in lines.splitlines():
    if line.startswith("{"):
        one = json.loads(line)
        times.setdefault(one["bytes"], {})[one["who"]] = one
print("| bytes | " + " | ".join(f"{who}: min, median us" for who in times[65536]) + " |")
print("|" + "---|" * (len(times[65536]) + 1))
for size, row in times.items():
    print(f"| {size} | " + " | ".join(f"{one['min_us']:.0f}, {one['median_us']:.0f}" for one in row.values()) + " |")
