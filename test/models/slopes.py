#!/usr/bin/python3
"""Gradients at the points where a formula divides by zero, where pieces meet and where elements are equal: those that hpc-run writes against PyTorch's.

  test/models/slopes.py [--bin=build/bin] [--layout="--tp=2"]      compares, needs numpy only
  test/models/slopes.py --torch                                    computes the table's last column again, in float64; needs PyTorch

Every case is a parameter of one model, whose loss is the sum of all results; results are weighted 1, 2, 3, .. in row-major order, so that a gradient that goes to a wrong element shows.
"""
import argparse
import os
import subprocess
import sys
import tempfile

import numpy

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import onnx_file  # noqa: E402

INF, NAN = float("inf"), float("nan")
PLANE = [[[[1, 1, 0, 2], [0, 1, 2, 2], [-1, -1, 3, 0], [-1, -1, 0, 3]]]]
# Name: (op, attributes, further inputs; what PyTorch computes of x; values of x; PyTorch's gradient).
CASES = {
    "length": ("ReduceL2", {}, [numpy.array([1])], "torch.linalg.vector_norm(x, dim=1)", [[0, 0], [3, 4]], [[0, 0], [1.2, 1.6]]),
    "length-of-all": ("ReduceL2", {}, [], "torch.linalg.vector_norm(x)", [0, 0, 0], [0, 0, 0]),
    "magnitudes": ("ReduceL1", {}, [numpy.array([1])], "torch.linalg.vector_norm(x, 1, dim=1)", [[0, 0], [0, -4]], [[0, 0], [0, -2]]),
    "pool-of-lengths": ("LpPool", {"kernel_shape": [2], "strides": [2], "p": 2}, [], "F.lp_pool1d(x, 2., 2)", [[[0, 0, 3, 4]]], [[[0, 0, 1.2, 1.6]]]),
    "pool-of-cubes": ("LpPool", {"kernel_shape": [2], "strides": [2], "p": 3}, [], "F.lp_pool1d(x, 3., 2)", [[[0, 0, 0, 4]]], [[[0, 0, 0, 2]]]),
    "plane's-length": ("GlobalLpPool", {"p": 2}, [], "torch.linalg.vector_norm(x, dim=2, keepdim=True)", [[[0, 0], [3, 4]]], [[[0, 0], [1.2, 1.6]]]),
    "abs": ("Abs", {}, [], "x.abs()", [0, -2], [0, -2]),
    "sqrt": ("Sqrt", {}, [], "x.sqrt()", [0, 4], [INF, 0.5]),
    "reciprocal": ("Reciprocal", {}, [], "1 / x", [2, 1], [-0.25, -2]),
    "power-0": ("Pow", {}, [numpy.float32(0)], "x ** 0.", [0, 2], [0, 0]),
    "power-1": ("Pow", {}, [numpy.float32(1)], "x ** 1.", [0, 2], [1, 2]),
    "power-half": ("Pow", {}, [numpy.float32(0.5)], "x ** 0.5", [0, 4], [INF, 0.5]),
    "power-3": ("Pow", {}, [numpy.float32(3)], "x ** 3.", [0, -1], [0, 6]),
    "asin": ("Asin", {}, [], "x.asin()", [1, 0], [INF, 2]),
    "acos": ("Acos", {}, [], "x.acos()", [-1, 0], [-INF, -2]),
    "acosh": ("Acosh", {}, [], "x.acosh()", [1], [INF]),
    "sign": ("Sign", {}, [], "x.sign()", [0, 1], [0, 0]),
    "relu": ("Relu", {}, [], "x.relu()", [0, 1], [0, 2]),
    "relu6": ("Clip", {}, [numpy.float32(0), numpy.float32(6)], "F.relu6(x)", [0, 6, 5, 7], [0, 0, 3, 0]),
    "clamp": ("Clip", {}, [numpy.float32(-1), numpy.float32(1)], "x.clamp(-1, 1)", [-1, 1, 0.5], [0, 0, 3]),
    "clamp-below": ("Clip", {}, [numpy.float32(-1)], "x.clamp(min=-1)", [-1, 1, -2], [0, 2, 0]),
    "max": ("Max", {}, [numpy.float32(0)], "torch.maximum(x, torch.zeros(()))", [0, 1], [0.5, 2]),
    "min": ("Min", {}, [numpy.float32(0)], "torch.minimum(x, torch.zeros(()))", [0, 1], [0.5, 0]),
    "leaky-relu": ("LeakyRelu", {"alpha": 0.25}, [], "F.leaky_relu(x, 0.25)", [0, -1, 1], [0.25, 0.5, 3]),
    "prelu": ("PRelu", {}, [numpy.array([0.25], numpy.float32)], "F.prelu(x, torch.tensor([0.25]))", [0, -1, 1], [0.25, 0.5, 3]),
    "elu": ("Elu", {"alpha": 2.0}, [], "F.elu(x, 2.)", [0, 1000, 1], [2, 2, 3]),
    "selu": ("Selu", {}, [], "F.selu(x)", [0, 1000], [1.7580993408473766, 2.101401974671108]),
    "celu": ("Celu", {"alpha": 2.0}, [], "F.celu(x, 2.)", [0, 1000, 1], [1, 2, 3]),
    "softplus": ("Softplus", {}, [], "F.softplus(x)", [0, 800, -800], [0.5, 2, 0]),
    "mish": ("Mish", {}, [], "F.mish(x)", [0, 800], [0.6, 2]),
    "softsign": ("Softsign", {}, [], "F.softsign(x)", [0, 1], [1, 0.5]),
    "hard-sigmoid": ("HardSigmoid", {"alpha": 0.25, "beta": 0.5}, [], "F.hardtanh(0.25 * x + 0.5, 0, 1)", [-2, 2, 1], [0, 0, 0.75]),
    "hard-swish": ("HardSwish", {}, [], "F.hardswish(x)", [-3, 3, -4, 4], [0, 2, 0, 4]),
    "threshold": ("ThresholdedRelu", {"alpha": 1.0}, [], "F.threshold(x, 1., 0.)", [1, 2], [0, 2]),
    "hard-shrink": ("Shrink", {"lambd": 0.5}, [], "F.hardshrink(x, 0.5)", [-0.5, 0.5, 1], [0, 0, 3]),
    "largest": ("ReduceMax", {}, [numpy.array([1])], "x.amax(1)", [[1, 1, 0], [2, 2, 2]], [[0.5, 0.5, 0], [2 / 3, 2 / 3, 2 / 3]]),
    "product": ("ReduceProd", {}, [numpy.array([1])], "x.prod(1)", [[0, 2, 3], [0, 0, 3]], [[6, 0, 0], [0, 0, 0]]),
    "pool": ("MaxPool", {"kernel_shape": [2, 2], "strides": [2, 2]}, [], "F.max_pool2d(x, 2)", PLANE,
             [[[[1, 0, 0, 2], [0, 0, 0, 0], [3, 0, 4, 0], [0, 0, 0, 0]]]]),
    "pool-overlapping": ("MaxPool", {"kernel_shape": [3, 3], "strides": [1, 1], "pads": [1, 1, 1, 1]}, [], "F.max_pool2d(x, 3, 1, 1)", PLANE,
                         [[[[6, 0, 0, 7], [0, 9, 2, 0], [13, 0, 99, 0], [0, 0, 0, 0]]]]),
    "pool-of-plane": ("GlobalMaxPool", {}, [], "F.adaptive_max_pool1d(x, 1)", [[[1, 1, 0, 1]]], [[[1, 0, 0, 0]]]),
    "log-sum-exp": ("ReduceLogSumExp", {}, [numpy.array([1])], "x.logsumexp(1)", [[1e8, 1e8], [1e6, 1e6 + 1]],
                    [[0.5, 0.5], [0.5378828427399902, 1.4621171572600098]]),
    "log-softmax": ("LogSoftmax", {"axis": 1}, [], "x.log_softmax(1)", [[1e8, 1e8], [1e6, 1e6 + 1]], [[-0.5, 0.5], [1.1174100185101794, -1.1174100185101794]]),
    "lp-normalization": ("LpNormalization", {"axis": 1, "p": 2}, [], "x / torch.where(x.norm(dim=1, keepdim=True) == 0, 1., torch.linalg.vector_norm(x, dim=1, keepdim=True))",
                         [[0, 0], [4, 3]], [[1, 2], [-0.168, 0.224]]),
    "mean-variance": ("MeanVarianceNormalization", {"axes": [1]}, [], "(x - x.mean(1, keepdim=True)) / (x.std(1, correction=0, keepdim=True) + 1e-9)", [[1, 1, 1, 1]], [[-1.5e9, -0.5e9, 0.5e9, 1.5e9]]),
    "layer-norm": ("LayerNormalization", {"axis": 1}, [numpy.ones(4, numpy.float32)], "F.layer_norm(x, (4,))", [[1, 1, 1, 1]], [[-474.3416490252569, -158.11388300841896, 158.11388300841896, 474.3416490252569]]),
}


def model():
    """A sum of sums from each result on to the last counts the first one once, the second twice."""
    nodes, initializers, terms = [], [], []
    for name, (op, attributes, more, _, values, _) in CASES.items():
        initializers.append((name, numpy.array(values, numpy.float32)))
        names = []
        for i, array in enumerate(more):
            names.append(f"{name}.{i}")
            nodes.append(onnx_file.node("Constant", [], [names[-1]], value=numpy.asarray(array)))
        nodes.append(onnx_file.node(op, [name, *names], [f"{name}.y"], **attributes))
        nodes.append(onnx_file.node("Reshape", [f"{name}.y", "flat"], [f"{name}.flat"]))
        nodes.append(onnx_file.node("CumSum", [f"{name}.flat", "first"], [f"{name}.sums"], reverse=1))
        nodes.append(onnx_file.node("ReduceSum", [f"{name}.sums"], [f"{name}.sum"], keepdims=0))
        terms.append(f"{name}.sum")
    nodes.append(onnx_file.node("ReduceMean", ["x"], ["mean"], keepdims=0))
    nodes.append(onnx_file.node("Sum", [*terms, "mean"], ["loss"]))
    constants = [onnx_file.node("Constant", [], ["flat"], value=numpy.array([-1])), onnx_file.node("Constant", [], ["first"], value=numpy.array(0))]
    return onnx_file.model(constants + nodes, [("x", "f32", ["batch", 2])], [("loss", "f32", [])], initializers,
                           kinds=[(name, "PARAMETER") for name, _ in initializers])  # equal ones are several


def torch_gradients():
    import torch
    import torch.nn.functional as F
    torch.set_default_dtype(torch.float64)
    found = {}
    for name, (_, _, _, formula, values, _) in CASES.items():
        x = torch.tensor(numpy.array(values, numpy.float32).astype(float), requires_grad=True)
        y = eval(formula, {"torch": torch, "F": F, "x": x}).reshape(-1)  # noqa: S307
        (y * torch.arange(1, len(y) + 1)).sum().backward()
        found[name] = x.grad.numpy()
    return found


def run_gradients(options):
    with tempfile.TemporaryDirectory() as scratch:
        path, plan, data, gradients = (os.path.join(scratch, name) for name in ("m.onnx", "m.plan", "d.npz", "g.npz"))
        with open(path, "wb") as file:
            file.write(model())
        numpy.savez(data, x=numpy.ones((2, 2), numpy.float32))
        for command in ([f"{options.bin}/hpc-opt", path, "--train", "--loss=output:loss", "--optimizer=sgd", "--dim=batch=2", *options.layout.split(), "-o", plan],
                        [f"{options.bin}/hpc-run", plan, f"--gradients={gradients}", f"--data={data}"]):
            done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            if done.returncode:
                sys.exit(done.stdout)
        return dict(numpy.load(gradients))


parser = argparse.ArgumentParser()
parser.add_argument("--bin", default="build/bin")
parser.add_argument("--layout", default="")
parser.add_argument("--torch", action="store_true")
options = parser.parse_args()
found = torch_gradients() if options.torch else run_gradients(options)
failed = 0
for name, case in CASES.items():
    right = numpy.array(case[-1], float)
    # The longest formulas round eight times.
    gradient = found.get(name, numpy.zeros(right.shape))  # none flows back at all
    if not numpy.allclose(gradient.astype(float), right, rtol=8 * 2.0**-23, atol=0 if name != "softplus" else 1e-30, equal_nan=True):
        failed += 1
        print(f"FAIL: {name}: {gradient.tolist()}, not {right.tolist()}")
print(f"{len(CASES) - failed} passed, {failed} failed")
sys.exit(failed > 0)
