"""A checkpoint as releases before November 2026 wrote it, with its states among the weights, and one whose learning rate is text: old_checkpoint.py NEW.safetensors OLD.safetensors BAD.safetensors."""
import json
import os
import sys


def read(path):
    data = open(path, "rb").read()
    size = int.from_bytes(data[:8], "little")
    return json.loads(data[8 : 8 + size]), data[8 + size :]


header, data = read(sys.argv[1])
metadata = header.pop("__metadata__")
states = sys.argv[1].removesuffix(".safetensors") + ".states"
if os.path.exists(states):
    more, behind = read(states)
    del more["__metadata__"]
    for entry in more.values():
        entry["data_offsets"] = [offset + len(data) for offset in entry["data_offsets"]]
    header.update(more)
    data += behind


def write(name, changed):
    text = json.dumps({"__metadata__": changed, **header}).encode()
    text += b" " * (-len(text) % 8)
    open(name, "wb").write(len(text).to_bytes(8, "little") + text + data)


write(sys.argv[2], {key: value for key, value in metadata.items() if not key.startswith("run.") and key not in ("updates", "format")})
write(sys.argv[3], {**metadata, "run.lr": "fast"})
