#!/usr/bin/python3
"""Weights of the decoders of models/decoders, whose files have none: integer arithmetic from their names, so they are the same on every machine.

  decoder_weights.py FILE.onnx FOLDER     copies the file to FOLDER, with its weights beside it
"""
import math
import os
import shutil
import sys
import zlib

import numpy

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.dirname(HERE)]
from families import noise  # noqa: E402
from wire_format import fields  # noqa: E402

EMBEDDINGS = ("embed_tokens", "embed_in", "embed_positions", "word_embeddings", "wte", "wpe")


def lively(path, shape):
    """Weights that make every term matter: attention is not uniform, no bias is zero, no norm's weight is one."""
    values = noise(shape, zlib.crc32(path.encode()))
    isEmbedding = any(part in path for part in EMBEDDINGS)  # small, so that a tied head does not repeat the last token
    if len(shape) == 1:
        values = 0.3 * values + (0 if path.endswith("bias") else 1)
    elif not isEmbedding:
        values *= 3 / math.sqrt(shape[1])
    return (0.3 * values if isEmbedding else values).astype(numpy.float32)


def external_tensors(data):
    """Name, dims, file, offset of what the model's graph (field 7) has as initializers (5) with external data (13)."""
    for graph in (each.value for each in fields(data) if each.number == 7):
        for tensor in (list(fields(each.value)) for each in fields(graph) if each.number == 5):
            places = [{part.number: part.value.decode() for part in fields(each.value)} for each in tensor if each.number == 13]
            if places:
                place = {each[1]: each[2] for each in places}
                yield next(each.value.decode() for each in tensor if each.number == 8), dims(tensor), place["location"], int(place["offset"])


def inputs_of(file):
    """Names of the inputs (11) of a model's graph."""
    with open(file, "rb") as model:
        graph = next(each.value for each in fields(model.read()) if each.number == 7)
    return [next(part.value.decode() for part in fields(each.value) if part.number == 1) for each in fields(graph) if each.number == 11]


def dims(tensor):
    return tuple(each.value for each in tensor if each.number == 1)


def weight(name, shape):
    """As the file has it: `.T` at the end of the name is PyTorch's weight transposed."""
    return numpy.ascontiguousarray(lively(name[:-2], shape[::-1]).T) if name.endswith(".T") else lively(name, shape)


def write(file, folder):
    with open(file, "rb") as model:
        tensors = list(external_tensors(model.read()))
    for name, shape, location, offset in tensors:
        path = os.path.join(folder, location)
        with open(path, "r+b" if offset else "wb") as out:
            out.seek(offset)
            out.write(weight(name, shape).tobytes())
    shutil.copy(file, folder)
    return os.path.join(folder, os.path.basename(file))


if __name__ == "__main__":
    write(*sys.argv[1:])
