"""A checkpoint as releases before November 2026 wrote it, and one whose learning rate is text: old_checkpoint.py NEW.safetensors OLD.safetensors BAD.safetensors."""
import json
import sys

data = open(sys.argv[1], "rb").read()
size = int.from_bytes(data[:8], "little")
header = json.loads(data[8 : 8 + size])
metadata = header["__metadata__"]


def write(name, changed):
    text = json.dumps({**header, "__metadata__": changed}).encode()
    text += b" " * (-len(text) % 8)
    open(name, "wb").write(len(text).to_bytes(8, "little") + text + data[8 + size :])


write(sys.argv[2], {key: value for key, value in metadata.items() if not key.startswith("run.") and key != "updates"})
write(sys.argv[3], {**metadata, "run.lr": "fast"})
