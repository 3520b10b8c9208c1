#!/usr/bin/python3
"""Convolutions of every kind against their definition, in numpy's float64: results, and gradients of images and weights.

  test/models/convolutions.py [--bin=build/bin] [--train] [--layout="--tp=2"]

Every case is a node of one model. Inference writes its result; a step's loss is the sum of all results, each times a parameter of its shape: so the gradient of that is the
result, and those of image and weight are sums over the same offsets. Needs numpy only.
"""
import argparse
import itertools
import math
import os
import subprocess
import sys
import tempfile

import numpy

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import onnx_file  # noqa: E402

# Name: image [batch, channels, ..], weight [out, in / groups, ..] ([in, out / groups, ..] where transposed), then attributes that are not 1 or 0.
CASES = {
    "line": ((2, 1, 203), (32, 1, 10), dict(strides=[5])),
    "deep-line": ((2, 48, 61), (40, 48, 7), dict(dilations=[3], pads=[4, 9])),
    "even-line": ((1, 40, 50), (24, 40, 4), dict(strides=[2], pads=[1, 1])),
    "square": ((2, 3, 13, 11), (8, 3, 3, 3), dict(pads=[1, 1, 1, 1])),
    "deep-square": ((2, 32, 15, 14), (64, 32, 3, 3), dict(strides=[2, 2], pads=[0, 1, 1, 2])),
    "odd-channels": ((1, 17, 9, 30), (23, 17, 3, 5), dict(strides=[1, 2], pads=[1, 2, 1, 2])),
    "many-channels": ((2, 80, 7, 7), (128, 80, 3, 3), dict(pads=[1, 1, 1, 1])),
    "groups": ((2, 12, 12, 10), (24, 4, 5, 3), dict(group=3, dilations=[1, 2], pads=[2, 0, 2, 3])),
    "depthwise": ((2, 16, 9, 9), (16, 1, 3, 3), dict(group=16, pads=[1, 1, 1, 1])),
    "multiplied": ((2, 6, 17, 20), (12, 1, 3, 3), dict(group=6, strides=[2, 2], dilations=[2, 1], pads=[1, 1, 0, 2])),
    "long-depthwise": ((2, 10, 70), (10, 1, 31), dict(group=10, pads=[15, 15])),
    "cube": ((1, 8, 9, 8, 10), (16, 8, 3, 3, 3), dict(strides=[1, 2, 2], pads=[1, 1, 1, 1, 1, 1])),
    "depthwise-cube": ((2, 4, 6, 7, 8), (4, 1, 3, 2, 3), dict(group=4, strides=[2, 1, 3], pads=[1, 0, 1, 1, 1, 1])),
    "every-third": ((2, 20, 10, 11), (9, 20, 1, 1), dict(strides=[3, 3])),
    "larger-than-image": ((1, 12, 3, 4), (5, 12, 5, 5), dict(pads=[2, 2, 2, 2])),
    "turned-line": ((2, 16, 25), (16, 8, 16), dict(strides=[8], pads=[4, 4], transposed=True)),
    "turned-square": ((2, 8, 6, 7), (8, 4, 2, 2), dict(strides=[2, 2], transposed=True)),
    "turned-groups": ((2, 8, 6, 5), (8, 3, 3, 3), dict(group=2, strides=[2, 2], pads=[1, 1, 1, 1], output_padding=[1, 1], transposed=True)),
    "turned-dilated": ((1, 5, 6, 7), (5, 4, 3, 4), dict(strides=[3, 1], dilations=[2, 2], pads=[0, 1, 2, 1], transposed=True)),
    "turned-dense": ((2, 6, 12), (6, 5, 5), dict(pads=[2, 1], transposed=True)),
    "turned-cube": ((1, 4, 3, 4, 5), (4, 3, 2, 3, 2), dict(strides=[2, 1, 3], transposed=True)),
}


class Case:
    def __init__(self, name, image, weight, attributes):
        self.name, self.transposed = name, attributes.pop("transposed", False)
        rank, random = len(image) - 2, numpy.random.default_rng(len(name))
        self.group = attributes.get("group", 1)
        self.strides, self.dilations = (attributes.get(key, [1] * rank) for key in ("strides", "dilations"))
        pads, more = attributes.get("pads", [0] * 2 * rank), attributes.pop("output_padding", [0] * rank)
        self.sizes = weight[2:]
        self.attributes = dict(attributes, **({"output_padding": more} if self.transposed else {}))
        extents = [(size - 1) * dilation + 1 for size, dilation in zip(self.sizes, self.dilations)]
        low, high = pads[:rank], pads[rank:]
        if self.transposed:  # the windows lie in the result, whose border `pads` takes away
            self.counts = image[2:]
            full = [(dim - 1) * stride + extent + added for dim, stride, extent, added in zip(image[2:], self.strides, extents, more)]
            result = (image[0], weight[1] * self.group, *(dim - a - b for dim, a, b in zip(full, low, high)))
        else:
            self.counts = [(dim + a + b - extent) // stride + 1 for dim, a, b, extent, stride in zip(image[2:], low, high, extents, self.strides)]
            result = (image[0], weight[0], *self.counts)
        self.pads = list(zip(low, high))
        self.image, self.weight, self.times = (random.standard_normal(shape).astype(numpy.float32) for shape in (image, weight, result))

    def padded(self, x):
        return numpy.pad(x, [(0, 0), (0, 0), *self.pads])

    def kept(self, x):
        """The reverse."""
        return x[(slice(None), slice(None), *(slice(low, x.shape[2 + d] - high) for d, (low, high) in enumerate(self.pads)))]

    def offsets(self):
        """(offset, where in a padded image its elements lie under all windows)."""
        for offset in itertools.product(*map(range, self.sizes)):
            starts = [k * dilation for k, dilation in zip(offset, self.dilations)]
            yield offset, (..., *(slice(start, start + (count - 1) * stride + 1, stride) for start, count, stride in zip(starts, self.counts, self.strides)))

    def grouped(self, x):
        return x.reshape(x.shape[0], self.group, -1, *x.shape[2:])

    def weights(self, w):
        """[group, windows' side, image's side, sizes..]"""
        return w.reshape(self.group, -1, *w.shape[1:])

    def gather(self, wide, w):
        """From what the windows lie in to positions."""
        total = 0
        for offset, where in self.offsets():
            total = total + numpy.einsum("ngc...,gmc->ngm...", self.grouped(wide[where]), self.weights(w)[(..., *offset)])
        return total.reshape(total.shape[0], -1, *total.shape[3:])

    def scatter(self, positions, w, wide):
        """The reverse, into zeros of the shape `wide`."""
        total = numpy.zeros(wide)
        for offset, where in self.offsets():
            part = numpy.einsum("ngm...,gmc->ngc...", self.grouped(positions), self.weights(w)[(..., *offset)])
            total[where] += part.reshape(part.shape[0], -1, *part.shape[3:])
        return total

    def correlate(self, wide, positions):
        """What falls to each element of the weight."""
        total = numpy.zeros_like(self.weights(self.weight), float)
        for offset, where in self.offsets():
            total[(..., *offset)] = numpy.einsum("ngmx,ngcx->gmc", self.flat(positions), self.flat(wide[where]))
        return total.reshape(self.weight.shape)

    def flat(self, x):
        return self.grouped(x).reshape(x.shape[0], self.group, x.shape[1] // self.group, -1)

    def compute(self, image, weight, times):
        """The result, and the gradients of image and weight of sum(result * times)."""
        if not self.transposed:
            wide = self.padded(image)
            return self.gather(wide, weight), self.kept(self.scatter(times, weight, wide.shape)), self.correlate(wide, times)
        wide = self.padded(times)
        return self.kept(self.scatter(image, weight, wide.shape)), self.gather(wide, weight), self.correlate(wide, image)

    def truth(self):
        """By name of array: (right value, bound): some roundings, as many as a walk along the sum takes, of the sum of all magnitudes."""
        arrays = [x.astype(float) for x in (self.image, self.weight, self.times)]
        values, sizes = self.compute(*arrays), self.compute(*map(numpy.abs, arrays))
        length = max(self.weight[0].size * self.weight.shape[0], self.times.size)
        return {key: (value, 4 * math.sqrt(length) * 2.0**-24 * size) for key, value, size in zip("cxw", values, sizes)}


def model(cases, trains):
    nodes, initializers, inputs, outputs = [], [], [], []
    for case in cases:
        name = case.name
        initializers.append((f"w.{name}", case.weight))
        nodes.append(onnx_file.node("ConvTranspose" if case.transposed else "Conv", [f"x.{name}", f"w.{name}"], [f"y.{name}"], **case.attributes))
        if trains:
            initializers += [(f"x.{name}", case.image), (f"c.{name}", case.times)]
            nodes.append(onnx_file.node("Mul", [f"y.{name}", f"c.{name}"], [f"p.{name}"]))
            nodes.append(onnx_file.node("ReduceSum", [f"p.{name}"], [f"s.{name}"], keepdims=0))
        else:
            inputs.append((f"x.{name}", "f32", ["batch" if case.image.shape[0] == 2 else 1, *case.image.shape[1:]]))
            outputs.append((f"y.{name}", "f32", [inputs[-1][2][0], *case.times.shape[1:]]))
    if trains:
        inputs, outputs = [("data", "f32", ["batch", 2])], [("loss", "f32", [])]
        nodes.append(onnx_file.node("ReduceMean", ["data"], ["mean"], keepdims=0))
        nodes.append(onnx_file.node("Sum", [*(f"s.{case.name}" for case in cases), "mean"], ["loss"]))
    return onnx_file.model(nodes, inputs, outputs, initializers, kinds=[(name, "PARAMETER") for name, _ in initializers])


def run(cases, options):
    """Arrays by name."""
    with tempfile.TemporaryDirectory() as scratch:
        path, plan, data, written = (os.path.join(scratch, name) for name in ("m.onnx", "m.plan", "d.npz", "o.npz"))
        with open(path, "wb") as file:
            file.write(model(cases, options.train))
        arrays = {"data": numpy.ones((2, 2), numpy.float32)} if options.train else {f"x.{case.name}": case.image for case in cases}
        numpy.savez(data, **arrays)
        flags = ["--train", "--loss=output:loss", "--optimizer=sgd"] if options.train else []
        outputs = [f"--gradients={written}", f"--data={data}"] if options.train else [f"--input={data}", f"--output={written}", "--poison"]
        for command in ([f"{options.bin}/hpc-opt", path, *flags, "--dim=batch=2", *options.layout.split(), "-o", plan], [f"{options.bin}/hpc-run", plan, *outputs],
                        [f"{options.bin}/hpc-plan", plan]):
            done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            if done.returncode:
                sys.exit(done.stdout)
        if " = window_" in done.stdout:  # a kernel is named by what it writes
            sys.exit("FAIL: columns are written out, several times the image")
        return dict(numpy.load(written))


parser = argparse.ArgumentParser()
parser.add_argument("--bin", default="build/bin"), parser.add_argument("--layout", default="")
parser.add_argument("--train", action="store_true")
options = parser.parse_args()
cases = [Case(name, image, weight, dict(attributes)) for name, (image, weight, attributes) in CASES.items()]
found, failed = run(cases, options), 0
for case in cases:
    for key, (right, bound) in case.truth().items():
        if not options.train and key != "c":
            continue
        got = found.get(f"{key}.{case.name}" if options.train else f"y.{case.name}")
        off = numpy.inf if got is None or got.shape != right.shape else (numpy.abs(got.astype(float) - right) / (bound + 1e-30)).max()
        if not off <= 1:  # NaN, too
            failed += 1
            print(f"FAIL: {case.name}: {dict(c='result', x='gradient of the image', w='gradient of the weight')[key]} is off by {off:.3g} of the bound")
print(f"{len(cases)} cases, {failed} failed")
sys.exit(failed > 0)
