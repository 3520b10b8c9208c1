"""Whether two checkpoints hold the same tensors to some rounding (f32 alone): names, shapes, numbers, metadata; weights, and the states beside them.

  same_tensors.py A.safetensors B.safetensors TOLERANCE
"""
import json
import os
import sys

import numpy


def read(path):
    data = open(path, "rb").read()
    size = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + size])
    metadata = header.pop("__metadata__")
    tensors = {}
    for name, entry in header.items():
        begin, end = entry["data_offsets"]
        assert entry["dtype"] == "F32", entry
        tensors[name] = numpy.frombuffer(data[8 + size + begin : 8 + size + end], numpy.float32).reshape(entry["shape"])
    return metadata, tensors


def checkpoint(path):
    metadata, tensors = read(path)
    states = path.removesuffix(".safetensors") + ".states"
    if os.path.exists(states):
        about, more = read(states)
        assert about.pop("hpc.weights") and {**about, "format": "pt"} == metadata and not tensors.keys() & more.keys()
        tensors.update(more)
    return metadata, tensors


(metadata_a, a), (metadata_b, b) = checkpoint(sys.argv[1]), checkpoint(sys.argv[2])
# What a plan was compiled with is known of those that hpc-opt --train made alone.
both = {key for key in metadata_a if not key.startswith("run.")} | {key for key in metadata_b if not key.startswith("run.")} | (metadata_a.keys() & metadata_b.keys())
assert all(metadata_a.get(key) == metadata_b.get(key) for key in both), (metadata_a, metadata_b)
assert a.keys() == b.keys(), (a.keys(), b.keys())
for name in a:
    assert a[name].shape == b[name].shape, name
    worst = numpy.abs(a[name] - b[name]).max() / max(numpy.abs(a[name]).max(), 1e-30)
    assert worst <= float(sys.argv[3]), (name, worst)
print(len(a), "tensors:", ", ".join(sorted(a)))
