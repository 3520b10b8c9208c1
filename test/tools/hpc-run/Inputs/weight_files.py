"""weight_files.py FOLDER: a small model and files with its weights, other ones, in every form that --weights takes and some that it does not; then
weight_files.py FOLDER check y.npz [exact]: whether an output is that of the other weights (numpy, float64).

m.onnx: y = relu(x @ enc.0.weight + enc.0.bias) @ head.weight, the weights that it is compiled with. The other weights are multiples of 1/8, exact in f16 and bf16.
"""
import io
import json
import os
import pickle
import sys
import zipfile

import numpy

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", ".."))
from onnx_file import graph, model, node, tensor  # noqa: E402
from wire_format import field, tag, varint  # noqa: E402

folder = sys.argv[1]
SHAPES = {"enc.0.weight": (6, 5), "enc.0.bias": (5,), "head.weight": (5, 7)}
random = numpy.random.default_rng(3)
x = random.integers(-8, 9, (4, 6)).astype(numpy.float32) / 4
first = {name: random.standard_normal(shape).astype(numpy.float32) for name, shape in SHAPES.items()}
other = {name: random.integers(-16, 17, shape).astype(numpy.float32) / 8 for name, shape in SHAPES.items()}


def expected(weights):
    wide = {name: array.astype(numpy.float64) for name, array in weights.items()}
    return numpy.maximum(x.astype(numpy.float64) @ wide["enc.0.weight"] + wide["enc.0.bias"], 0) @ wide["head.weight"]


if sys.argv[2:3] == ["check"]:
    found, right = numpy.load(sys.argv[3])["y"], expected(other)
    assert found.shape == right.shape and abs(found - right).max() <= 20 * 2**-24 * abs(right).max(), abs(found - right).max()
    print("right")
    sys.exit()


def write(name, content):
    os.makedirs(os.path.dirname(os.path.join(folder, name)), exist_ok=True)
    with open(os.path.join(folder, name), "wb") as file:
        file.write(content)


NODES = [node("MatMul", ["x", "enc.0.weight"], ["a"]), node("Add", ["a", "enc.0.bias"], ["b"]), node("Relu", ["b"], ["c"]), node("MatMul", ["c", "head.weight"], ["y"])]
PORTS = dict(inputs=[("x", "f32", [4, 6])], outputs=[("y", "f32", [4, 7])])


def typed(name, array):
    """A TensorProto with its elements in the typed field: floats one by one, f16 as numbers."""
    dims = b"".join(field(1, size) for size in array.shape)
    if array.dtype == numpy.float16:
        return dims + field(2, 10) + field(8, name) + field(5, b"".join(varint(int(bits)) for bits in array.reshape(-1).view(numpy.uint16)))
    return dims + field(2, 1) + b"".join(tag(4, 5) + number.tobytes() for number in array.reshape(-1)) + field(8, name)


def external(name, array, location, offset):
    entries = {"location": location, "offset": str(offset), "length": str(array.nbytes)}
    return (b"".join(field(1, size) for size in array.shape) + field(2, 1) + field(8, name) + b"".join(field(13, field(1, key) + field(2, value)) for key, value in entries.items())
            + field(14, 1))


def reexported(tensors):
    """The model written by another exporter: something before the graph, tensors in another order."""
    body = graph(NODES, PORTS["inputs"], PORTS["outputs"]) + b"".join(field(5, each) for each in tensors)
    return field(1, 8) + field(2, "another exporter, whose name moves all that follows") + field(7, body) + field(8, field(1, "") + field(2, 18))


def safetensors(tensors, names=lambda name: name, kinds={"float32": "F32", "float16": "F16", "uint16": "BF16"}):
    header, data = {"__metadata__": {"format": "pt"}}, b""
    for name, array in tensors.items():
        header[names(name)] = {"dtype": kinds[str(array.dtype)], "shape": list(array.shape), "data_offsets": [len(data), len(data) + array.nbytes]}
        data += array.tobytes()
    text = json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + data


def saved(**arrays):
    content = io.BytesIO()
    numpy.savez(content, **arrays)
    return content.getvalue()


def bfloat(array):
    return (array.view(numpy.uint32) >> 16).astype(numpy.uint16)


reverse = dict(reversed(other.items()))
write("x.npz", saved(x=x))
write("m.onnx", model(NODES, **PORTS, initializers=list(first.items())))
write("raw.onnx", reexported([tensor(name, array) for name, array in reverse.items()]))
write("typed.onnx", reexported([typed(name, array) for name, array in reverse.items()]))
write("half.onnx", reexported([typed(name, array.astype(numpy.float16)) for name, array in reverse.items()]))
write("constants.onnx", field(1, 8) + field(7, graph([node("Constant", [], [name], value=array) for name, array in reverse.items()] + NODES, PORTS["inputs"], PORTS["outputs"]))
      + field(8, field(1, "") + field(2, 18)))
offset, parts = 64, []
data = b"\0" * 64
for name, array in reverse.items():
    parts.append(external(name, array, "data.bin", len(data)))
    data += array.tobytes()
write("external/fine.onnx", reexported(parts))
write("external/data.bin", data)
write("ckpt", safetensors(other))
write("wrong-name.onnx", safetensors(reverse))
write("array.bin", saved(**{name: array for name, array in other.items()}))
write("half", safetensors({name: array.astype(numpy.float16) for name, array in other.items()}))
write("bfloat", safetensors({name: bfloat(array) for name, array in other.items()}))
for prefix in ["model.", "transformer.", "module.", "_orig_mod.", "_orig_mod.module.model."]:
    write("prefix-" + prefix.rstrip("."), safetensors(other, lambda name: prefix + name))
write("no-prefix", safetensors(other, lambda name: name.removeprefix("enc.")))
names = list(other)
write("hub/model-00001-of-00002.safetensors", safetensors({name: other[name] for name in names[:1]}))
write("hub/model-00002-of-00002.safetensors", safetensors({name: other[name] for name in names[1:]}))
write("hub/model.safetensors.index.json", json.dumps({"metadata": {}, "weight_map": {name: f"model-0000{1 + (name != names[0])}-of-00002.safetensors" for name in names}}).encode())
write("hub/config.json", b"{}")
write("one/model.safetensors", safetensors(other))
write("one/tokenizer.json", b"{}")

# What is refused.
write("transposed", safetensors({**other, "head.weight": numpy.ascontiguousarray(other["head.weight"].T)}))
write("wide", safetensors({name: array.astype(numpy.float64) for name, array in other.items()}, kinds={"float64": "F64"}))
write("lacking", safetensors({"enc.0.weight": other["enc.0.weight"], "head.wieght": other["head.weight"]}))
write("cut/model.safetensors.index.json", json.dumps({"weight_map": {"head.weight": "model-1.safetensors", "enc.0.bias": "model-1.safetensors"}}).encode())
write("cut/model-1.safetensors", safetensors({"head.weight": other["head.weight"]}))
write("none/notes.txt", b"nothing here")
write("pointer", b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 123\n")
write("old.pt", pickle.dumps({"a": [1.0, 2.0]}, protocol=2))
content = io.BytesIO()
with zipfile.ZipFile(content, "w") as archive:
    archive.writestr("m/data.pkl", b"\x80\x02}q\x00.")
    archive.writestr("m/data/0", other["head.weight"].tobytes())
write("torch/pytorch_model.bin", content.getvalue())
write("two/a.safetensors", safetensors(other))
write("two/b.safetensors", safetensors(first))
