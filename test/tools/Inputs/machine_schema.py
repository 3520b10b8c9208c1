"""Holds docs/machine.schema.json against hpc-opt's reader: over a good machine and small changes of it, both must say the same, but for relations between numbers, which no schema can state.
machine_schema.py ROOT FOLDER: writes each document to FOLDER and asks `hpc-opt --machine` about it."""
import concurrent.futures, json, subprocess, sys

root, folder = sys.argv[1:]
sys.path.insert(0, f"{root}/test/Sidecar/Inputs")
from json_schema import changes, valid

schema = json.load(open(f"{root}/docs/machine.schema.json"))
GOOD = {
    "$schema": "machine.schema.json", "name": "m", "ranks_per_host": 4, "hosts": 2, "cores": 2, "wake_s": 2e-5, "memory": "40GiB",
    "device": {"flops": {"f32": 2e12, "bf16": 3e13}, "efficiency": {"f32": 0.9, "bf16": {"64": 0.2}}, "elements_per_s": 1e12, "bytes_per_s": 1e12, "cache": {"bytes": 2097152, "bytes_per_s": 5e12}, "launch_s": 0},
    "links": [{"ranks": 4, "latency_s": 4e-6, "bytes_per_s": 2e11, "start_s": 1e-5, "tree_latency_s": 5e-6, "other_protocols": [{"latency_s": 1e-6, "bytes_per_s": 1e11}]},
              {"ranks": "all", "latency_s": 1.2e-5, "bytes_per_s": 2e10, "other_protocols": [{"latency_s": 3e-6, "bytes_per_s": 1e10}]}],
    "overlap_slowdown": 1.1, "differences": [{"first_rank": 4, "ranks": 4, "speed": 0.5, "memory": "24GB"}],
}
RELATIONS = ["one of them has another unit", "the link's own numbers", "those of one place are used together", "divisor of ranks_per_host", "hosts * ranks_per_host", "a multiple of the",
             "the last link", "is of a type that device.flops does not have", "hosts is", "from 1MiB to 64TiB", "differs in nothing", "ranks is", "cores is missing"]
documents = [GOOD] + [json.load(open(f"{root}/runtime/cost/machines/{name}.json")) for name in ("a100-80g", "v100-32g")] + list(changes(GOOD))


def ask(number):
    path = f"{folder}/{number}.json"
    json.dump(documents[number], open(path, "w"))
    run = subprocess.run(["hpc-opt", f"{folder}/none.onnx", f"--machine={path}"], capture_output=True, text=True)
    assert run.returncode == 1, run.stderr
    said = valid(documents[number], schema)
    if f"error[usage]: --machine: {path}: " not in run.stderr:
        assert said and "none.onnx" in run.stderr, f"schema: {said}, reader: {run.stderr}\n{json.dumps(documents[number])}"
        return "good"
    if not said:
        return "bad"
    assert any(text in run.stderr for text in RELATIONS), f"the schema takes what the reader refuses: {run.stderr}\n{json.dumps(documents[number])}"
    return "related"


# Every fourth of the changes: the reader is a process each time.
asked = [number for number in range(len(documents)) if number < 12 or number % 4 == 0]
with concurrent.futures.ThreadPoolExecutor(2) as threads:
    found = list(threads.map(ask, asked))
counts = {kind: found.count(kind) for kind in ("good", "bad", "related")}
assert counts["good"] >= 5 and counts["bad"] >= 60, counts
print(f"schema and reader agree on {counts['good']} good and {counts['bad']} bad machines")
