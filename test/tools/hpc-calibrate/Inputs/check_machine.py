"""check_machine.py FILE --ranks=N: whether a measured machine has what hpc-calibrate promises, in the ranges that a machine of this decade has."""
import argparse, json

parser = argparse.ArgumentParser()
parser.add_argument("file"), parser.add_argument("--ranks", type=int)
args = parser.parse_args()
with open(args.file) as file:
    machine = json.load(file)
assert f"measured with {args.ranks} rank" in machine["name"], machine["name"]
assert machine["ranks_per_host"] == "all" and 1 <= machine["cores"] <= args.ranks, machine
device = machine["device"]
assert set(device["flops"]) == {"f32", "bf16", "f16"}
for type, flops in device["flops"].items():
    assert 1e8 < flops < 1e14, (type, flops)
    shares = device["efficiency"][type]
    assert len(shares) >= 2 and max(shares.values()) > 0.99, shares  # the peak is the best of them
    assert list(map(int, shares)) == sorted(map(int, shares)), shares
assert 1e8 < device["bytes_per_s"] < 1e13 and 1e8 < device["elements_per_s"] < 1e13, device
assert 1e-9 < device["launch_s"] < 1e-3, device
link, = machine["links"]
assert link["ranks"] == "all" and 1e-9 <= link["latency_s"] < 0.1 and 1e6 < link["bytes_per_s"] < 1e13, link
