"""Makes model.onnx, inputs_N.npz and expected_N.npz of this folder: a small residual network with every kind of block that its family has.
Needs onnx (and onnxruntime for the check at the end); nothing that uses the files needs this script. The expected values are
computed in float64 by numpy from the float32 weights and rounded once.

A strided stem with a max pool; basic blocks (3x3, 3x3); a bottleneck (1x1, grouped 3x3, 1x1) whose shortcut is a strided 1x1; an inverted
bottleneck (1x1, depthwise 3x3 with dilation, 1x1) without shortcut; batch norms with their own statistics, as exports for inference keep
them; global average pool and a linear head. Channels and image sizes divide by little.
"""
import math
import os
import zlib

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

CLASSES, EPSILON = 11, 1e-5
HERE = os.path.dirname(os.path.abspath(__file__))


class Net:
    """Builds the graph and computes it in float64 in one go."""

    def __init__(self, image):
        self.nodes, self.weights, self.values = [], {}, {"image": image.astype(np.float64)}

    def weight(self, name, *shape, kind="weight"):
        r = np.random.default_rng(zlib.crc32(name.encode())).standard_normal(shape)
        fan = math.prod(shape[1:]) if kind == "weight" else 1
        r = {"weight": 1.4 * r / math.sqrt(fan), "gain": 1 + 0.2 * r, "shift": 0.2 * r, "variance": 0.5 + np.abs(r)}[kind]
        self.weights[name] = r.astype(np.float32)
        return name

    def node(self, name, op, inputs, value, **attributes):
        self.nodes.append(helper.make_node(op, inputs, [name + "_out"], name=name, **attributes))
        self.values[name + "_out"] = value
        return name + "_out"

    def conv(self, name, x, out, size=1, stride=1, pad=0, dilation=1, group=1, bias=False):
        a = self.values[x]
        w = self.weight(name + ".weight", out, a.shape[1] // group, size, size)
        names = [x, w] + ([self.weight(name + ".bias", out, kind="shift")] if bias else [])
        y = convolve(a, *(self.weights[n].astype(np.float64) for n in names[1:]), stride=stride, pad=pad, dilation=dilation, group=group)
        return self.node("/" + name + "/Conv", "Conv", names, y, kernel_shape=[size] * 2, strides=[stride] * 2, pads=[pad] * 4,
                         dilations=[dilation] * 2, group=group)

    def norm(self, name, x):
        a = self.values[x]
        names = [self.weight(f"{name}.{part}", a.shape[1], kind=kind)
                 for part, kind in (("weight", "gain"), ("bias", "shift"), ("running_mean", "shift"), ("running_var", "variance"))]
        gain, shift, mean, variance = (self.weights[n].astype(np.float64)[:, None, None] for n in names)
        y = (a - mean) / np.sqrt(variance + float(np.float32(EPSILON))) * gain + shift
        return self.node("/" + name + "/BatchNormalization", "BatchNormalization", [x] + names, y, epsilon=EPSILON)

    def relu(self, name, x):
        return self.node("/" + name + "/Relu", "Relu", [x], np.maximum(self.values[x], 0))

    def add(self, name, x, y):
        return self.node("/" + name + "/Add", "Add", [x, y], self.values[x] + self.values[y])

    def conv_norm(self, name, x, out, relu=True, **kw):
        y = self.norm(name + ".norm", self.conv(name + ".conv", x, out, **kw))
        return self.relu(name, y) if relu else y


def convolve(x, w, bias=None, stride=1, pad=0, dilation=1, group=1):
    x = np.pad(x, ((0, 0), (0, 0), (pad, pad), (pad, pad)))
    size = w.shape[2]
    height, width = ((n - (size - 1) * dilation - 1) // stride + 1 for n in x.shape[2:])
    xs = x.reshape(x.shape[0], group, -1, *x.shape[2:])
    ws = w.reshape(group, -1, *w.shape[1:])
    y = 0
    for i in range(size):
        for j in range(size):
            part = xs[..., i * dilation: i * dilation + (height - 1) * stride + 1: stride, j * dilation: j * dilation + (width - 1) * stride + 1: stride]
            y = y + np.einsum("ngchw,gmc->ngmhw", part, ws[..., i, j])
    y = y.reshape(x.shape[0], -1, height, width)
    return y if bias is None else y + bias[:, None, None]


def max_pool(x):
    x = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)), constant_values=-np.inf)
    height, width = ((n - 3) // 2 + 1 for n in x.shape[2:])
    return np.max([x[..., i: i + 2 * height - 1: 2, j: j + 2 * width - 1: 2] for i in range(3) for j in range(3)], axis=0)


def build(image):
    n = Net(image)
    x = n.conv_norm("stem", "image", 10, size=3, stride=2, pad=1)
    x = n.node("/pool/MaxPool", "MaxPool", [x], max_pool(n.values[x]), kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)
    for i in range(2):
        h = n.conv_norm(f"basic.{i}.1", x, 10, size=3, pad=1)
        h = n.conv_norm(f"basic.{i}.2", h, 10, size=3, pad=1, relu=False)
        x = n.relu(f"basic.{i}", n.add(f"basic.{i}", h, x))
    h = n.conv_norm("bottleneck.1", x, 12)
    h = n.conv_norm("bottleneck.2", h, 12, size=3, stride=2, pad=1, group=3)
    h = n.conv_norm("bottleneck.3", h, 15, relu=False)
    x = n.relu("bottleneck", n.add("bottleneck", h, n.conv_norm("bottleneck.shortcut", x, 15, stride=2, relu=False)))
    h = n.conv_norm("inverted.1", x, 22)
    h = n.conv_norm("inverted.2", h, 22, size=3, pad=2, dilation=2, group=22)
    x = n.conv("inverted.3", h, 9, bias=True)
    x = n.node("/head/GlobalAveragePool", "GlobalAveragePool", [x], n.values[x].mean((2, 3), keepdims=True))
    x = n.node("/head/Flatten", "Flatten", [x], n.values[x].reshape(len(image), -1), axis=1)
    w, b = n.weight("head.weight", CLASSES, 9), n.weight("head.bias", CLASSES, kind="shift")
    y = n.values[x] @ n.weights[w].astype(np.float64).T + n.weights[b].astype(np.float64)
    n.nodes.append(helper.make_node("Gemm", [x, w, b], ["scores"], name="/head/Gemm", transB=1))
    return n, y.astype(np.float32)


def model(n, image):
    shape = ["batch", *image.shape[1:]]
    graph = helper.make_graph(n.nodes, "resnet", [helper.make_tensor_value_info("image", TensorProto.FLOAT, shape)],
                              [helper.make_tensor_value_info("scores", TensorProto.FLOAT, ["batch", CLASSES])],
                              [numpy_helper.from_array(a, name) for name, a in n.weights.items()])
    m = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], producer_name="make.py")
    m.ir_version = 8
    onnx.checker.check_model(m)
    return m


def main():
    import onnxruntime
    file = os.path.join(HERE, "model.onnx")
    for i, batch in enumerate((4, 6)):
        image = np.random.default_rng(40 + i).standard_normal((batch, 3, 29, 23)).astype(np.float32)
        net, truth = build(image)
        if i == 0:
            onnx.save(model(net, image), file)
        got, = onnxruntime.InferenceSession(file, providers=["CPUExecutionProvider"]).run(None, {"image": image})
        print(f"set {i}: max |score| {np.abs(truth).max():.3f}, onnxruntime is off by {np.abs(got - truth).max() / np.abs(truth).max():.2g} of it")
        np.savez(os.path.join(HERE, f"inputs_{i}.npz"), image=image)
        np.savez(os.path.join(HERE, f"expected_{i}.npz"), scores=truth)


main()
