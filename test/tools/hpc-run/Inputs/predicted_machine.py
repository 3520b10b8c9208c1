"""predicted_machine.py FLOPS CORES [HOSTS RANKS_PER_HOST [SPEED]]: a machine as --machine takes it; SPEED is that of its last host."""
import json
import sys

flops, cores = float(sys.argv[1]), int(sys.argv[2])
hosts, ranks = (int(word) for word in sys.argv[3:5]) if len(sys.argv) > 3 else (2, 4)
machine = {"name": "made by hand", "ranks_per_host": ranks, "hosts": hosts, "memory": "16GB",
           "device": {"flops": {"f32": flops}, "efficiency": {}, "bytes_per_s": 2 * flops / 20, "launch_s": 1e-6},
           "links": [{"ranks": ranks, "latency_s": 1e-6, "bytes_per_s": flops / 100}, {"ranks": "all", "latency_s": 5e-6, "bytes_per_s": flops / 500}]}
if len(sys.argv) > 5:
    machine["differences"] = [{"first_rank": (hosts - 1) * ranks, "ranks": ranks, "speed": float(sys.argv[5])}]
if cores:
    machine["cores"] = cores
json.dump(machine, sys.stdout)
