"""frozen_tensors.py BEFORE.safetensors AFTER.safetensors PATTERN: both have the same tensors; those that match are the same to the bit, all others have moved. Prints their names."""
import fnmatch
import json
import sys


def tensors(path):
    data = open(path, "rb").read()
    size = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + size])
    header.pop("__metadata__", None)
    return {name: data[8 + size + entry["data_offsets"][0] : 8 + size + entry["data_offsets"][1]] for name, entry in header.items()}


before, after = tensors(sys.argv[1]), tensors(sys.argv[2])
assert before.keys() == after.keys(), before.keys() ^ after.keys()
for name in before:
    assert (before[name] == after[name]) == fnmatch.fnmatchcase(name, sys.argv[3]), name
print(", ".join(sorted(after)))
