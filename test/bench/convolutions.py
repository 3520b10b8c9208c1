#!/usr/bin/env python3
"""Writes networks of convolutions with random weights, for against_onnxruntime.py: NAME.onnx and NAME.npz into FOLDER.

  test/bench/convolutions.py FOLDER [--batch=1] [--only=resnet18]
  for m in FOLDER/*.onnx; do echo $m; python3 test/bench/against_onnxruntime.py $m ${m%.onnx}.npz --layouts=1 --rounds=10; done

Shapes are those of ResNet-18 and 50 and MobileNet (images of 224 x 224), of wav2vec 2's features (5 s of sound), an EnCodec-like encoder (2 s), a HiFi-GAN-like vocoder (200
frames), a U-Net (128 x 128) and convolutions of volumes. Needs numpy and onnx.
"""
import argparse, os
import numpy as np
import onnx
from onnx import helper, numpy_helper

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("folder"), parser.add_argument("--batch", type=int, default=1), parser.add_argument("--only", default="")
args = parser.parse_args()
os.makedirs(args.folder, exist_ok=True)
random = np.random.default_rng(0)


class Network:
    """Nodes in order; `op` and `conv` return the names of their results."""

    def __init__(self, channels, spatial):
        self.nodes, self.weights, self.channels, self.shape = [], [], {"x": channels}, [args.batch, channels, *spatial]

    def op(self, kind, inputs, channels, **attributes):
        name = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, inputs, [name], name=name, **attributes))
        self.channels[name] = channels
        return name

    def conv(self, x, out, size, stride=1, pad=None, groups=1, dilation=1, activation="Relu", transposed=False):
        rank, inside = len(self.shape) - 2, self.channels[x]
        shape = [inside, out // groups] if transposed else [out, inside // groups]
        w, b = f"w{len(self.nodes)}", f"b{len(self.nodes)}"
        scale = (inside // groups * size ** rank) ** -0.5
        self.weights += [numpy_helper.from_array((random.standard_normal(shape + [size] * rank) * scale).astype("f4"), w),
                         numpy_helper.from_array((random.standard_normal(out) * .1).astype("f4"), b)]
        pad = (size - 1) * dilation // 2 if pad is None else pad
        y = self.op("ConvTranspose" if transposed else "Conv", [x, w, b], out, strides=[stride] * rank, group=groups,
                    dilations=[dilation] * rank, pads=[pad] * 2 * rank, kernel_shape=[size] * rank)
        return self.op(activation, [y], out) if activation else y

    def save(self, name, y):
        graph = helper.make_graph(self.nodes, name, [helper.make_tensor_value_info("x", 1, self.shape)],
                                  [helper.make_tensor_value_info(y, 1, None)], self.weights)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
        onnx.save(onnx.shape_inference.infer_shapes(model), f"{args.folder}/{name}.onnx")
        np.savez(f"{args.folder}/{name}.npz", x=random.standard_normal(self.shape).astype("f4"))


def resnet(name, blocks, bottleneck):
    n = Network(3, [224, 224])
    x = n.op("MaxPool", [n.conv("x", 64, 7, 2)], 64, kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)
    for stage, count in enumerate(blocks):
        for block in range(count):
            width, stride = 64 << stage, 2 if stage and not block else 1
            out = width * (4 if bottleneck else 1)
            y = n.conv(n.conv(x, width, 1), width, 3, stride) if bottleneck else n.conv(x, width, 3, stride)
            y = n.conv(y, out, 1 if bottleneck else 3, activation=None)
            if n.channels[x] != out:
                x = n.conv(x, out, 1, stride, activation=None)
            x = n.op("Relu", [n.op("Add", [y, x], out)], out)
    n.save(name, n.op("GlobalAveragePool", [x], n.channels[x]))


def mobilenet():
    n = Network(3, [224, 224])
    x = n.conv("x", 32, 3, 2)
    for out, stride in [(64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2)] + [(512, 1)] * 5 + [(1024, 2), (1024, 1)]:
        x = n.conv(n.conv(x, n.channels[x], 3, stride, groups=n.channels[x]), out, 1)
    n.save("mobilenet", n.op("GlobalAveragePool", [x], 1024))


def wav2vec2():
    n, x = Network(1, [80000]), "x"
    for size, stride in [(10, 5), (3, 2), (3, 2), (3, 2), (3, 2), (2, 2), (2, 2)]:
        x = n.conv(x, 512, size, stride, 0)
    n.save("wav2vec2", n.conv(x, 512, 3, groups=16))


def encodec():
    n = Network(1, [48000])
    x, width = n.conv("x", 32, 7, activation="Elu"), 32
    for stride in [2, 4, 5, 8]:
        for dilation in [1, 3]:
            x = n.op("Add", [x, n.conv(n.conv(x, width // 2, 3, dilation=dilation, activation="Elu"), width, 1, activation="Elu")], width)
        width *= 2
        x = n.conv(x, width, 2 * stride, stride, stride // 2, activation="Elu")
    n.save("encodec", n.conv(x, 128, 7, activation=None))


def vocoder():
    n = Network(80, [200])
    x, width = n.conv("x", 256, 7, activation="LeakyRelu"), 256
    for stride in [8, 8, 2, 2]:
        width //= 2
        x = n.conv(x, width, 2 * stride, stride, stride // 2, activation="LeakyRelu", transposed=True)
        for size, dilation in [(3, 1), (7, 3), (11, 5)]:
            x = n.op("Add", [x, n.conv(x, width, size, dilation=dilation, activation="LeakyRelu")], width)
    n.save("vocoder", n.conv(x, 1, 7, activation="Tanh"))


def unet():
    n = Network(1, [128, 128])
    x, kept = n.conv("x", 32, 3), []
    for width in [32, 64, 128]:
        x = n.conv(x, width, 3)
        kept.append(x)
        x = n.conv(x, 2 * width, 3, 2)
    for skip in reversed(kept):
        x = n.conv(x, n.channels[skip], 2, 2, 0, transposed=True)
        x = n.conv(n.op("Concat", [x, skip], 2 * n.channels[skip], axis=1), n.channels[skip], 3)
    n.save("unet", n.conv(x, 2, 1, activation=None))


def volumes():
    n = Network(4, [32, 64, 64])
    n.save("volumes", n.conv(n.conv(n.conv(n.conv("x", 16, 3), 32, 3, 2), 64, 3), 64, 3, 2))


def resnet18():
    resnet("resnet18", [2, 2, 2, 2], False)


def resnet50():
    resnet("resnet50", [3, 4, 6, 3], True)


for network in (resnet18, resnet50, mobilenet, wav2vec2, encodec, vocoder, unet, volumes):
    if args.only in ("", network.__name__):
        network()
