#!/usr/bin/python3
"""image_nets.py NAME FILE: writes a small convolutional network with random weights as an ONNX file.

  unet       an encoder and a decoder over skip connections: group norms, one transposed convolution, one linear resize
  mobile     three inverted bottlenecks with squeeze-and-excitation
  alexnet    grouped convolutions, local response norms, pools, two linear layers
  residual   five blocks of two convolutions, norms folded into them, two with a shortcut of its own: a small ResNet-18 as PyTorch exports it
"""
import os
import sys

import numpy

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import onnx_file  # noqa: E402


class Net:
    def __init__(self):
        self.random, self.nodes, self.weights = numpy.random.default_rng(5), [], []

    def constant(self, array):
        self.weights.append((f"w{len(self.weights)}", numpy.asarray(array, numpy.float32)))
        return self.weights[-1][0]

    def weight(self, *shape):
        return self.constant(self.random.standard_normal(shape) / max(1, numpy.prod(shape[1:])) ** 0.5)

    def op(self, kind, *inputs, **attributes):
        name = f"{kind}.{len(self.nodes)}"
        self.nodes.append(onnx_file.node(kind, inputs, [name], **attributes))
        return name

    def conv(self, x, channels, out, size=3, **attributes):
        weight = self.weight(out, channels // attributes.get("group", 1), size, size)
        return self.op("Conv", x, weight, self.weight(out), pads=[size // 2] * 4, **attributes)

    def relu(self, x):
        return self.op("Relu", x)


def unet(net):
    def block(x, channels, out):
        for _ in range(2):
            x = net.relu(net.op("GroupNormalization", net.conv(x, channels, out), net.weight(out), net.weight(out), num_groups=3))
            channels = out
        return x

    half = dict(kernel_shape=[2, 2], strides=[2, 2])
    first = block("x", 3, 6)
    second = block(net.op("MaxPool", first, **half), 6, 12)
    third = block(net.op("MaxPool", second, **half), 12, 18)
    up = net.op("ConvTranspose", third, net.weight(18, 12, 2, 2), net.weight(12), strides=[2, 2])
    second = block(net.op("Concat", up, second, axis=1), 24, 12)
    up = net.op("Resize", second, net.constant(numpy.zeros(0)), net.constant([1, 1, 2, 2]), mode="linear")
    first = block(net.op("Concat", net.conv(up, 12, 6, 1), first, axis=1), 12, 6)
    return net.conv(first, 6, 2, 1), [16, 12], [4, 2, 16, 12]


def mobile(net):
    x = net.conv("x", 3, 8, strides=[2, 2])
    for _ in range(3):
        h = net.relu(net.conv(net.relu(net.conv(x, 8, 24, 1)), 24, 24, group=24))
        gate = net.relu(net.conv(net.op("GlobalAveragePool", h), 24, 6, 1))
        h = net.op("Mul", h, net.op("Sigmoid", net.conv(gate, 6, 24, 1)))
        x = net.op("Add", x, net.conv(h, 24, 8, 1))
    return x, [14, 10], [4, 8, 7, 5]


def alexnet(net):
    x = net.op("LRN", net.relu(net.conv("x", 3, 9, 5, strides=[2, 2])), size=5, alpha=0.02)
    x = net.op("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2])
    x = net.op("LRN", net.relu(net.conv(x, 9, 12, group=3)), size=3)
    x = net.op("AveragePool", net.conv(x, 12, 10), kernel_shape=[2, 2], pads=[1] * 4, strides=[2, 2])
    x = net.relu(net.op("Gemm", net.op("Flatten", x), net.weight(20, 160), net.weight(20), transB=1))
    return net.op("Gemm", x, net.weight(7, 20), net.weight(7), transB=1), [28, 28], [4, 7]


def residual(net):
    x = net.relu(net.conv("x", 3, 16, strides=[2, 2]))
    x = net.op("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)
    channels = 16
    for out in (16, 16, 32, 32, 48):
        stride = dict(strides=[1 + (out > channels)] * 2)
        h = net.conv(net.relu(net.conv(x, channels, out, **stride)), out, out)
        x = net.relu(net.op("Add", h, net.conv(x, channels, out, 1, **stride) if out > channels else x))
        channels = out
    x = net.op("Flatten", net.op("GlobalAveragePool", x))
    return net.op("Gemm", x, net.weight(7, 48), net.weight(7), transB=1), [24, 24], [4, 7]


name, file = sys.argv[1:]
net = Net()
result, image, shape = {"unet": unet, "mobile": mobile, "alexnet": alexnet, "residual": residual}[name](net)
with open(file, "wb") as out:  # from opset 21 on, scale and bias of a group norm belong to channels
    out.write(onnx_file.model(net.nodes, [("x", "f32", [4, 3, *image])], [(result, "f32", shape)], net.weights, opset=21, ir=10))
