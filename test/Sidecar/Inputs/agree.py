"""Holds docs/shard.schema.json against hpc-opt's reader: over a good sidecar and every small change of it, both must say the same.
agree.py SCHEMA FOLDER: writes each document to FOLDER and asks `hpc-opt --spec` about it."""
import json, subprocess, sys

from json_schema import changes, valid

schema = json.load(open(sys.argv[1]))
folder = sys.argv[2]

GOOD = {
    "$schema": "shard.schema.json", "version": 1, "mesh": {"mb": 2, "dp": 1, "pp": 2, "tp": 2},
    "plan": {"chunks": 1, "zero": 0, "memory": 5, "schedule": "1f1b", "recompute": "auto", "cp_mode": "ring"},
    "params": [{"match": "*.c_fc.*", "shard": [{"dim": -1, "axis": "tp", "parts": 2}], "compute": "TP1D", "output_replicate": True},
               {"match": "[a-c]?", "shard": [{"dim": 1, "of": [3, 12, 64], "at": 1, "axis": "tp"}], "inferred": True},
               {"match": "*", "trainable": False}],
    "tensors": [{"match": "/h.0/mlp/*", "shard": [], "optional": False}],
    "stages": [{"match": "transformer.h.[0-1].*", "stage": 0, "chunk": 0, "optional": True}],
}
documents = [GOOD, {"version": 1}, {"version": 1.0}] + list(changes(GOOD))
documents += [{"version": 1, "params": [{"match": "a", "shard": [], "inferred": a, "output_replicate": b}]} for a in (True, False) for b in (True, False)]
documents += [{"version": 1, "params": [{"match": "a", "trainable": a, **more}]} for a in (True, False, 0)
              for more in ({}, {"shard": []}, {"compute": "TP1D"}, {"output_replicate": False}, {"inferred": True}, {"shard": [], "inferred": True})]
documents += [{"version": 1, "mesh": {"tp": 65537}}, {"version": 1, "stages": [{"match": "a\0b", "stage": 65535}, {"match": "b", "stage": 65536}]}]
open(f"{folder}/empty.mlir", "w").write("module {\n  func.func @main() {\n    return\n  }\n}\n")
# Every third of the changes: the reader is a process each time. Those left out are taken by GOOD's other lists.
counts = {True: 0, False: 0}
for number, document in enumerate(documents):
    if 20 < number < len(documents) - 24 and number % 3:
        continue
    path = f"{folder}/{number}.json"
    json.dump(document, open(path, "w"))
    run = subprocess.run(["hpc-opt", f"{folder}/empty.mlir", f"--spec={path}", "--compile-to=import"], capture_output=True, text=True)
    assert run.returncode == 0 or (run.returncode == 1 and run.stderr.startswith(f"hpc-opt: error[sidecar]: {path}:1: ")), run.stderr
    said = valid(document, schema)
    assert said == (run.returncode == 0), f"schema: {said}, reader: {run.returncode} {run.stderr}\n{json.dumps(document)}"
    counts[said] += 1
assert counts[True] >= 5 and counts[False] >= 50, counts
print(f"schema and reader agree on {counts[True]} good and {counts[False]} bad sidecars")
