"""Makes golden.json: the loss and every gradient of the cases of cases.py, in float64 by PyTorch's own ops and autograd, of which each ONNX node below is one.
Needs PyTorch and onnx; test/models/losses.py, which compares, needs neither. A gradient is kept as its norm and its projection on a fixed direction.
"""
import json
import os

import numpy
import onnx
import torch
import torch.nn.functional as F

import cases


def convolution(x, w, b=None, strides=None, pads=(0, 0, 0, 0), dilations=(1, 1), group=1, **rest):
    assert pads[:2] == pads[2:] or list(pads[:2]) == list(pads[2:])
    return F.conv2d(x, w, b, stride=tuple(strides or (1, 1)), padding=tuple(pads[:2]), dilation=tuple(dilations), groups=group)


def gemm(a, b, c, transA=0, transB=0, alpha=1.0, beta=1.0):
    return alpha * (a.T if transA else a) @ (b.T if transB else b) + beta * c


def reshape(x, shape):
    return x.reshape([x.shape[i] if size == 0 else size for i, size in enumerate(shape.tolist())])


OPS = {
    "Add": torch.add, "Sub": torch.sub, "Mul": torch.mul, "Div": torch.div, "MatMul": torch.matmul, "Tanh": torch.tanh, "Relu": torch.relu, "Erf": torch.erf,
    "Equal": torch.eq, "Where": torch.where, "Conv": convolution, "Gemm": gemm, "Reshape": reshape,
    "Transpose": lambda x, perm: x.permute(perm), "Shape": lambda x: torch.tensor(x.shape), "Expand": lambda x, shape: x.expand(torch.broadcast_shapes(x.shape, shape.tolist())),
    "Gather": lambda x, index, axis=0: torch.index_select(x, axis, index.reshape(-1)).reshape(*x.shape[:axis], *index.shape, *x.shape[axis + 1:]),
    "Concat": lambda *parts, axis: torch.cat(parts, axis), "Squeeze": lambda x, axes: x.squeeze(tuple(axes.tolist())), "Flatten": lambda x, axis: x.flatten(axis),
    "ConstantOfShape": lambda shape, value: torch.full(shape.tolist(), value.item(), dtype=value.dtype),
    "Split": lambda x, axis: torch.split(x, 1, axis), "Softmax": lambda x, axis: torch.softmax(x, axis), "LogSoftmax": lambda x, axis: torch.log_softmax(x, axis),
    "LayerNormalization": lambda x, w, b, axis, epsilon: F.layer_norm(x, x.shape[axis:], w, b, epsilon),
    "BatchNormalization": lambda x, w, b, mean, variance, epsilon: F.batch_norm(x, mean, variance, w, b, eps=epsilon),
    "MaxPool": lambda x, kernel_shape, strides, pads: F.max_pool2d(x, kernel_shape, strides, pads[:2]),
    "GlobalAveragePool": lambda x: x.mean((2, 3), keepdim=True), "ReduceMean": lambda x, keepdims: x.mean(),
    "Constant": lambda value: value, "Unsqueeze": lambda x, axes: x.unsqueeze(axes.item()), "GatherElements": lambda x, index, axis: torch.gather(x, axis, index),
    "Not": torch.logical_not, "Cast": lambda x, to: x.to(torch.float64), "ReduceSum": lambda x, keepdims: x.sum(), "Sqrt": torch.sqrt,
    "Neg": torch.neg, "Round": torch.round, "Identity": lambda x: x,
    "SoftmaxCrossEntropyLoss": lambda x, t, w=None, reduction=b"mean", ignore_index=-100: F.cross_entropy(x, t, w, ignore_index=ignore_index, reduction=reduction.decode()),
    "NegativeLogLikelihoodLoss": lambda x, t, w=None, reduction=b"mean", ignore_index=-100: F.nll_loss(x, t, w, ignore_index=ignore_index, reduction=reduction.decode()),
}


def tensor_of(proto):
    array = onnx.numpy_helper.to_array(proto)
    return torch.from_numpy(array.astype(numpy.float64) if array.dtype == numpy.float32 else array.copy())


def attribute_of(attribute):
    value = onnx.helper.get_attribute_value(attribute)
    return tensor_of(value) if isinstance(value, onnx.TensorProto) else value


def detach_if_said(node, results):
    return results.detach() if any("aten.detach" in each.value for each in node.metadata_props) else results


def run(case):
    graph = onnx.load_from_string(case.model).graph
    values = {name: torch.from_numpy(array.astype(numpy.float64) if array.dtype == numpy.float32 else array) for name, array in case.inputs.items()}
    # What is not trained: statistics, and the weights of classes, which PyTorch's losses take for constants too.
    constants = {"BatchNormalization": 3, "SoftmaxCrossEntropyLoss": 2, "NegativeLogLikelihoodLoss": 2}
    constants = {name for node in graph.node if node.op_type in constants for name in node.input[constants[node.op_type]:]}
    parameters = {}
    for proto in graph.initializer:
        values[proto.name] = tensor = tensor_of(proto)
        if tensor.is_floating_point() and tensor.ndim and proto.name not in constants:  # single numbers are part of a formula
            parameters[proto.name] = tensor.requires_grad_()
    for node in graph.node:
        results = OPS[node.op_type](*[values[name] for name in node.input], **{a.name: attribute_of(a) for a in node.attribute})
        results = detach_if_said(node, results)
        values.update(zip(node.output, results if isinstance(results, tuple) else [results]))
    output = values[graph.output[0].name]
    loss = {"output:loss": lambda: output, "mse": lambda: F.mse_loss(output, values["labels"]), "classification": lambda: F.cross_entropy(output, values["labels"])}[case.loss]()
    loss.backward()
    gradients = {name: tensor.grad.numpy() for name, tensor in parameters.items()}
    return {"loss": loss.item(), "gradients": {name: [float(numpy.linalg.norm(g)), float((g * cases.direction(name, g.shape)).sum())] for name, g in gradients.items()}}


golden = {name: run(case) for name, case in cases.cases().items()}
with open(os.path.join(cases.HERE, "golden.json"), "w") as file:
    json.dump(golden, file, indent=0)
    file.write("\n")
for name, result in golden.items():
    print(name, result["loss"], len(result["gradients"]))
