"""Evaluates an ONNX file by PyTorch's functions, so that autograd gives its gradients: the ops that random graphs have.

    Evaluator(onnx.load(file), torch.float64).run({"x": array}, trained=["w"]) -> values by name, and the leaves of `trained`

Floats have the dtype given, whatever the file says: float64 is the truth, float32 shows what rounding does. `noise` moves the operands of each op by a share of themselves that
follows from their magnitude, so that equal ones stay equal. What softmax makes of a row that sees nothing is NaN, as PyTorch's; like its attention it passes
no gradient back there. Needs torch and onnx.
"""
import math

import onnx
import torch
import torch.nn.functional as F
from onnx import numpy_helper

FLOATS = (onnx.TensorProto.FLOAT, onnx.TensorProto.DOUBLE, onnx.TensorProto.FLOAT16, onnx.TensorProto.BFLOAT16)
OTHERS = {onnx.TensorProto.BOOL: torch.bool, onnx.TensorProto.INT64: torch.int64, onnx.TensorProto.INT32: torch.int32, onnx.TensorProto.INT16: torch.int16,
          onnx.TensorProto.INT8: torch.int8, onnx.TensorProto.UINT8: torch.uint8}


def integers(tensor):
    return [round(each) for each in tensor.reshape(-1).tolist()]


class Softmax(torch.autograd.Function):
    """A row that sees nothing is NaN, and its gradient 0, as that of F.scaled_dot_product_attention."""

    @staticmethod
    def forward(context, x, axis):
        y = torch.softmax(x, axis)
        context.save_for_backward(y)
        context.axis = axis
        return y

    @staticmethod
    def backward(context, dy):
        (y,) = context.saved_tensors
        y = torch.where(torch.isnan(y), 0, y)
        return y * (dy - (dy * y).sum(context.axis, keepdim=True)), None


REDUCTIONS = {
    "Sum": lambda x, axes, keep: x.sum(axes, keepdim=keep), "Mean": lambda x, axes, keep: x.mean(axes, keepdim=keep), "Max": lambda x, axes, keep: x.amax(axes, keepdim=keep),
    "Min": lambda x, axes, keep: x.amin(axes, keepdim=keep), "L1": lambda x, axes, keep: torch.linalg.vector_norm(x, 1, axes, keep),
    "L2": lambda x, axes, keep: torch.linalg.vector_norm(x, 2, axes, keep), "SumSquare": lambda x, axes, keep: (x * x).sum(axes, keepdim=keep),
    "LogSumExp": lambda x, axes, keep: torch.logsumexp(x, axes, keepdim=keep),
}


def reduce(node, name, x, axes=None):
    axes = integers(axes) if axes is not None else list(node.get("axes", [])) or list(range(x.dim()))
    return REDUCTIONS[name](x, axes, bool(node.get("keepdims", 1))) if axes else x


def cross_entropy(node, log_probabilities, labels, weight):
    return F.nll_loss(log_probabilities, labels, weight, ignore_index=node.get("ignore_index", -100), reduction=node.get("reduction", b"mean").decode())


def along(x, each):
    return each.reshape(-1, *[1] * (x.dim() - 2))


def grouped_norm(node, x, groups, scale, bias):
    parts = x.reshape(x.shape[0], groups, -1)
    centered = parts - parts.mean(2, keepdim=True)
    y = (centered / torch.sqrt((centered * centered).mean(2, keepdim=True) + node.get("epsilon", 1e-5))).reshape(x.shape)
    spread = lambda each: along(x, each.repeat_interleave(x.shape[1] // each.numel()))
    return y * spread(scale) + spread(bias)


UPDATES = {"add": "sum", "mul": "prod", "max": "amax", "min": "amin"}


def padded(node, x, value=0.0):
    pads, rank = node.get("pads", [0] * (2 * (x.dim() - 2))), x.dim() - 2
    return F.pad(x, [pads[side * rank + dim] for dim in reversed(range(rank)) for side in (0, 1)], value=value)


def window(node, x):
    rank = x.dim() - 2
    return dict(stride=list(node.get("strides", [1] * rank))), list(node.get("dilations", [1] * rank))


# Functions of the operands alone.
SIMPLE = dict(
    Relu=torch.relu, Tanh=torch.tanh, Sigmoid=torch.sigmoid, Neg=torch.neg, Abs=torch.abs, Erf=torch.erf, Floor=torch.floor, Ceil=torch.ceil, Round=torch.round,
    Sign=torch.sign, Cos=torch.cos, Sin=torch.sin, Softplus=F.softplus, Reciprocal=torch.reciprocal, Identity=lambda x: x, Exp=torch.exp, Sqrt=torch.sqrt,
    Log=torch.log, Not=torch.logical_not, IsNaN=torch.isnan, IsInf=torch.isinf, Add=torch.add, Sub=torch.sub, Mul=torch.mul, Pow=torch.pow,
    Greater=torch.gt, Less=torch.lt, GreaterOrEqual=torch.ge, LessOrEqual=torch.le, Equal=torch.eq, And=torch.logical_and, Or=torch.logical_or,
    Xor=torch.logical_xor, Where=torch.where, MatMul=torch.matmul, Shape=lambda x: torch.tensor(x.shape), Size=lambda x: torch.tensor(x.numel()),
    Expand=lambda x, shape: x.expand(torch.broadcast_shapes(x.shape, integers(shape))), Tile=lambda x, times: x.tile(integers(times)),
    GlobalAveragePool=lambda x: x.mean(tuple(range(2, x.dim())), keepdim=True), GlobalMaxPool=lambda x: F.adaptive_max_pool1d(x.flatten(2), 1).reshape(*x.shape[:2], *[1] * (x.dim() - 2)),
    Div=lambda x, y: x / y if x.is_floating_point() else torch.div(x, y, rounding_mode="trunc"), Mod=lambda x, y: torch.remainder(x, y),
)


class Ops:
    """The others by their names: functions of the node and its operands."""
    Clip = lambda node, x, low=None, high=None: torch.clamp(x, low, high)
    Einsum = lambda node, *operands: torch.einsum(node.attributes["equation"].decode(), *operands)
    Softmax = lambda node, x: Softmax.apply(x, node.get("axis", -1))
    LogSoftmax = lambda node, x: torch.log_softmax(x, node.get("axis", -1))
    NegativeLogLikelihoodLoss = lambda node, logs, labels, weight=None: cross_entropy(node, logs, labels, weight)
    RMSNormalization = lambda node, x, scale: x / torch.sqrt((x * x).mean(-1, keepdim=True) + node.get("epsilon", 1e-5)) * scale
    BatchNormalization = lambda node, x, scale, bias, mean, variance: (x - along(x, mean)) / torch.sqrt(along(x, variance) + node.get("epsilon", 1e-5)) * along(x, scale) + along(x, bias)
    InstanceNormalization = lambda node, x, scale, bias: grouped_norm(node, x, x.shape[1], scale, bias)
    GroupNormalization = lambda node, x, scale, bias: grouped_norm(node, x, node.attributes["num_groups"], scale, bias)
    Reshape = lambda node, x, shape: x.reshape([x.shape[i] if size == 0 and not node.get("allowzero", 0) else size for i, size in enumerate(integers(shape))])
    Transpose = lambda node, x: x.permute(list(node.get("perm", reversed(range(x.dim())))))
    Split = lambda node, x, sizes=None: torch.split(x, integers(sizes) if sizes is not None else x.shape[node.get("axis", 0)] // node.outputs, node.get("axis", 0))
    Concat = lambda node, *parts: torch.cat(parts, node.attributes["axis"])
    Squeeze = lambda node, x, axes=None: x.squeeze(tuple(integers(axes))) if axes is not None else x.squeeze()
    Trilu = lambda node, x, k=None: (torch.triu if node.get("upper", 1) else torch.tril)(x, int(k) if k is not None else 0)
    ArgMin = lambda node, x: Ops.ArgMax(node, -x)

    def Max(node, first, *others):
        for other in others:
            first = torch.maximum(first, other)
        return first

    def Min(node, first, *others):
        for other in others:
            first = torch.minimum(first, other)
        return first

    def Cast(node, x):
        if node.attributes["to"] in FLOATS:
            return x if x.is_floating_point() else x.to(node.dtype)
        return x.to(OTHERS[node.attributes["to"]])

    def Gemm(node, a, b, c=None):
        a, b = (each.T if node.get(flag, 0) else each for each, flag in ((a, "transA"), (b, "transB")))
        y = node.get("alpha", 1.0) * (a @ b)
        return y if c is None else y + node.get("beta", 1.0) * c

    def CumSum(node, x, axis):
        axis = int(axis)
        x = x.flip(axis) if node.get("reverse", 0) else x
        total = torch.cumsum(x, axis)
        if node.get("exclusive", 0):
            total = torch.cat([torch.zeros_like(x.narrow(axis, 0, 1)), total.narrow(axis, 0, x.shape[axis] - 1)], axis)
        return total.flip(axis) if node.get("reverse", 0) else total

    def SoftmaxCrossEntropyLoss(node, scores, labels, weight=None):
        logs = torch.log_softmax(scores, 1)
        return (cross_entropy(node, logs, labels, weight), logs)[: node.outputs]

    def LayerNormalization(node, x, scale, bias=None):
        axes = tuple(range(node.get("axis", -1) % x.dim(), x.dim()))
        centered = x - x.mean(axes, keepdim=True)
        y = centered / torch.sqrt((centered * centered).mean(axes, keepdim=True) + node.get("epsilon", 1e-5)) * scale
        return y if bias is None else y + bias

    def LpNormalization(node, x):
        """As F.normalize: a row of zeros stays, and passes back what 1 / 1e-12 makes of it; ours is 0 there, as the standard's."""
        axis, p = node.get("axis", -1), node.get("p", 2)
        norm = torch.linalg.vector_norm(x, p, axis, True)
        return x / torch.where(norm == 0, 1, norm)

    def Slice(node, x, starts, ends, axes=None, steps=None):
        starts, ends = integers(starts), integers(ends)
        axes = integers(axes) if axes is not None else range(len(starts))
        steps = integers(steps) if steps is not None else [1] * len(starts)
        for start, end, axis, step in zip(starts, ends, axes, steps):
            x = x.index_select(axis, torch.tensor(range(x.shape[axis])[start:end:step] if end > -(2**61) else range(x.shape[axis])[start::step], dtype=torch.int64))
        return x

    def Pad(node, x, amounts, value=None):
        amounts, rank = integers(amounts), x.dim()
        return F.pad(x, [amounts[side * rank + dim] for dim in reversed(range(rank)) for side in (0, 1)], value=0.0 if value is None else value.item())

    def Unsqueeze(node, x, axes):
        for axis in sorted(axis % (x.dim() + axes.numel()) for axis in integers(axes)):
            x = x.unsqueeze(axis)
        return x

    def Gather(node, x, indices):
        axis = node.get("axis", 0) % x.dim()
        rows = x.index_select(axis, torch.remainder(indices.reshape(-1).long(), x.shape[axis]))
        return rows.reshape(*x.shape[:axis], *indices.shape, *x.shape[axis + 1 :])

    def GatherElements(node, x, indices):
        axis = node.get("axis", 0) % x.dim()
        return torch.gather(x, axis, torch.remainder(indices.long(), x.shape[axis]))

    def GatherND(node, x, indices):
        if node.get("batch_dims", 0):
            return torch.stack([row[tuple(at.long().unbind(-1))] for row, at in zip(x, indices)])
        return x[tuple(indices.long().unbind(-1))]

    def ScatterElements(node, x, indices, updates):
        axis, how = node.get("axis", 0) % x.dim(), node.get("reduction", b"none").decode()
        at = torch.remainder(indices.long(), x.shape[axis])
        return x.scatter(axis, at, updates) if how == "none" else x.scatter_reduce(axis, at, updates, UPDATES[how])

    def ScatterND(node, x, indices, updates):
        """Rows are scattered as elements of x with the dims that the tuples name made one."""
        how, length = node.get("reduction", b"none").decode(), indices.shape[-1]
        place = torch.zeros(indices.shape[:-1], dtype=torch.int64)
        for dim, each in enumerate(indices.long().unbind(-1)):
            place = place * x.shape[dim] + torch.remainder(each, x.shape[dim])
        flat, updates = x.reshape(math.prod(x.shape[:length]), -1), updates.reshape(place.numel(), -1)
        at = place.reshape(-1, 1).expand(updates.shape)
        return (flat.scatter(0, at, updates) if how == "none" else flat.scatter_reduce(0, at, updates, UPDATES[how])).reshape(x.shape)

    def ReverseSequence(node, x, lengths):
        batch, time = node.get("batch_axis", 1), node.get("time_axis", 0)
        rows = [torch.cat([row[:length].flip(0), row[length:]]) for row, length in zip(x.movedim((batch, time), (0, 1)), integers(lengths))]
        return torch.stack(rows).movedim((0, 1), (batch, time))

    def TopK(node, x, k):
        axis = node.get("axis", -1)
        order = torch.sort(x.detach(), stable=True, dim=axis, descending=bool(node.get("largest", 1))).indices.narrow(axis, 0, int(k))
        return torch.gather(x, axis, order), order

    def ArgMax(node, x):
        axis, keep = node.get("axis", 0), bool(node.get("keepdims", 1))
        if node.get("select_last_index", 0):
            return x.shape[axis] - 1 - x.detach().flip(axis).argmax(axis, keepdim=keep)
        return x.detach().argmax(axis, keepdim=keep)

    def Hardmax(node, x):
        axis = node.get("axis", -1)
        return torch.zeros_like(x).scatter(axis, x.detach().argmax(axis, keepdim=True), 1.0)

    def OneHot(node, indices, depth, values):
        axis, depth = node.get("axis", -1) % (indices.dim() + 1), int(depth)
        at = torch.arange(depth).reshape([-1 if each == axis else 1 for each in range(indices.dim() + 1)])
        return torch.where(torch.remainder(indices, depth).unsqueeze(axis) == at, values[1], values[0])

    def Conv(node, x, w, bias=None):
        strides, dilation = window(node, x)
        return (F.conv1d if x.dim() == 3 else F.conv2d)(padded(node, x), w, bias, dilation=dilation, groups=node.get("group", 1), **strides)

    def ConvTranspose(node, x, w, bias=None):
        strides, dilation = window(node, x)
        rank = x.dim() - 2
        more, pads = node.get("output_padding", [0] * rank), node.get("pads", [0] * (2 * rank))
        y = (F.conv_transpose1d if rank == 1 else F.conv_transpose2d)(x, w, bias, dilation=dilation, groups=node.get("group", 1), **strides)
        y = F.pad(y, [size for dim in reversed(range(rank)) for size in (0, more[dim])])
        for dim in range(rank):
            y = y.narrow(2 + dim, pads[dim], y.shape[2 + dim] - pads[dim] - pads[rank + dim])
        return y

    def MaxPool(node, x):
        strides, dilation = window(node, x)
        y, at = (F.max_pool1d if x.dim() == 3 else F.max_pool2d)(padded(node, x, -math.inf), list(node.attributes["kernel_shape"]), dilation=dilation, return_indices=True, **strides)
        positions = padded(node, torch.arange(x.numel()).reshape(x.shape), -1)
        return (y, positions.flatten(2).gather(2, at.flatten(2)).reshape(y.shape))[: node.outputs]

    def AveragePool(node, x):
        strides, _ = window(node, x)
        pool = lambda x: (F.avg_pool1d if x.dim() == 3 else F.avg_pool2d)(padded(node, x), list(node.attributes["kernel_shape"]), **strides)
        return pool(x) if node.get("count_include_pad", 0) else pool(x) / pool(torch.ones_like(x))

    def LpPool(node, x):
        strides, dilation = window(node, x)
        ones = torch.ones(x.shape[1], 1, *node.attributes["kernel_shape"], dtype=x.dtype)
        return (F.conv1d if x.dim() == 3 else F.conv2d)(padded(node, x.abs()), ones, dilation=dilation, groups=x.shape[1], **strides)

    def Resize(node, x, region, scales):
        for axis, times in enumerate(integers(scales)):
            x = x.repeat_interleave(times, axis)
        return x

    def DepthToSpace(node, x):
        n, c, h, w = x.shape
        b = node.attributes["blocksize"]
        return x.reshape(n, b, b, -1, h, w).permute(0, 3, 4, 1, 5, 2).reshape(n, -1, h * b, w * b)

    def SpaceToDepth(node, x):
        n, c, h, w = x.shape
        b = node.attributes["blocksize"]
        return x.reshape(n, c, h // b, b, w // b, b).permute(0, 3, 5, 1, 2, 4).reshape(n, -1, h // b, w // b)

    def Attention(node, q, k, v, mask=None, past_key=None, past_value=None, lengths=None):
        """A query that sees no key: 0, and no gradient."""
        whole, (batch, length) = q.dim() == 3, (q.shape[0], q.shape[-2])
        if whole:
            apart = lambda x, count: x.reshape(batch, x.shape[1], count, -1).transpose(1, 2)
            q, k, v = apart(q, node.attributes["q_num_heads"]), apart(k, node.attributes["kv_num_heads"]), apart(v, node.attributes["kv_num_heads"])
        past = 0 if past_key is None else past_key.shape[2]
        if past_key is not None:
            k, v = torch.cat([past_key, k], 2), torch.cat([past_value, v], 2)
        keys, groups = k.shape[2], q.shape[1] // k.shape[1]
        scores = q @ k.repeat_interleave(groups, 1).transpose(-1, -2) * node.get("scale", 1 / math.sqrt(q.shape[-1]))
        if node.get("softcap", 0.0):
            scores = node.get("softcap") * torch.tanh(scores / node.get("softcap"))
        if mask is not None:
            scores = scores.masked_fill(~mask, -math.inf) if mask.dtype == torch.bool else scores + mask
        if node.get("is_causal", 0):
            scores = scores.masked_fill(torch.arange(keys) > torch.arange(length)[:, None] + past, -math.inf)
        if lengths is not None:
            scores = scores.masked_fill(torch.arange(keys) >= lengths[:, None, None, None], -math.inf)
        sees = (scores > -math.inf).any(-1, keepdim=True)
        y = torch.where(sees, torch.softmax(torch.where(sees, scores, 0), -1), 0) @ v.repeat_interleave(groups, 1)
        return (y.transpose(1, 2).reshape(batch, length, -1) if whole else y, k, v)[: node.outputs]

    def RotaryEmbedding(node, x, cos, sin, positions=None):
        y = x.transpose(1, 2) if x.dim() == 4 else x.reshape(*x.shape[:2], node.attributes["num_heads"], -1)
        cos, sin = ((each[positions] if positions is not None else each)[:, :, None] for each in (cos, sin))
        turned = node.get("rotary_embedding_dim", 0) or y.shape[-1]
        part, rest = y[..., :turned], y[..., turned:]
        a, b = (part[..., 0::2], part[..., 1::2]) if node.get("interleaved", 0) else part.chunk(2, -1)
        real, imaginary = cos * a - sin * b, sin * a + cos * b
        both = torch.stack([real, imaginary], -1).reshape(part.shape) if node.get("interleaved", 0) else torch.cat([real, imaginary], -1)
        y = torch.cat([both, rest], -1)
        return y.transpose(1, 2) if x.dim() == 4 else y.reshape(x.shape)


def compute(node, name, operands):
    if name.startswith("Reduce"):
        return reduce(node, name[len("Reduce"):], *operands)
    return SIMPLE[name](*operands) if name in SIMPLE else getattr(Ops, name)(node, *operands)


class Node:
    """What an op sees of its node."""

    def __init__(self, proto, dtype):
        self.attributes = {each.name: onnx.helper.get_attribute_value(each) for each in proto.attribute}
        self.get, self.outputs, self.dtype = self.attributes.get, len(proto.output), dtype


class Evaluator:
    def __init__(self, model, dtype, noise=0.0, salt=0):
        self.model, self.dtype, self.noise, self.salt, self.count = model, dtype, noise, salt, 0
        self.functions = {(each.domain, each.name): each for each in model.functions}

    def tensor(self, array):
        made = torch.tensor(array)
        return made.to(self.dtype) if made.is_floating_point() else made

    def initializers(self, graph):
        return {each.name: self.tensor(numpy_helper.to_array(each).copy()) for each in graph.initializer}

    def moved(self, x):
        if not self.noise or x is None or not x.is_floating_point():
            return x
        return x * (1 + self.noise * torch.nan_to_num(torch.sin(x.detach().abs() * (3e3 + 17 * self.salt) + self.salt + self.count)))

    def run(self, feeds, trained=()):
        scope = self.initializers(self.model.graph)
        leaves = {name: scope[name].requires_grad_() for name in trained}
        scope.update({name: self.tensor(array) for name, array in feeds.items()})
        self.evaluate(self.model.graph.node, scope)
        return scope, leaves

    def body(self, graph, outer, inputs):
        """The outputs of a body: its names are its own, what it does not have is the outer scope's."""
        scope = {**outer, **self.initializers(graph), **{port.name: value for port, value in zip(graph.input, inputs)}}
        self.evaluate(graph.node, scope)
        return [scope[each.name] for each in graph.output]

    def evaluate(self, nodes, scope):
        for proto in nodes:
            operands = [scope[name] if name else None for name in proto.input]
            node = Node(proto, self.dtype)
            if (proto.domain, proto.op_type) in self.functions:
                function = self.functions[proto.domain, proto.op_type]
                inner = dict(zip(function.input, operands))
                self.evaluate(function.node, inner)
                results = [inner[name] for name in function.output]
            elif proto.op_type == "If":
                results = self.body(node.attributes["then_branch" if operands[0] else "else_branch"], scope, [])
            elif proto.op_type == "Loop":
                results = self.loop(node, operands, scope)
            elif proto.op_type == "Scan":
                results = self.scan(node, operands, scope)
            else:
                self.count += 1
                results = compute(node, proto.op_type, map(self.moved, operands))
            scope.update(zip(proto.output, results if isinstance(results, (list, tuple)) else [results]))

    def scan(self, node, operands, scope):
        count = len(operands) - node.attributes["num_scan_inputs"]
        carried, rows = operands[:count], []
        parts = [each.movedim(axis, 0) for each, axis in zip(operands[count:], node.get("scan_input_axes", [0] * len(operands)))]
        for part in zip(*parts):
            results = self.body(node.attributes["body"], scope, [*carried, *part])
            carried = results[:count]
            rows.append(results[count:])
        return [*carried, *map(torch.stack, zip(*rows))]

    def loop(self, node, operands, scope):
        body, (trips, on, *carried) = node.attributes["body"], operands
        scanned = [[] for _ in body.output[1 + len(carried) :]]
        for i in range(int(trips)):
            if on is not None and not on:
                break
            on, *results = self.body(body, scope, [torch.tensor(i), on, *carried])
            carried = results[: len(carried)]
            for rows, each in zip(scanned, results[len(carried) :]):
                rows.append(each)
        dims = lambda port: [each.dim_value for each in port.type.tensor_type.shape.dim]
        empty = [torch.zeros(0, *dims(port), dtype=self.dtype) for port in body.output[1 + len(carried) :]]
        return [*carried, *(torch.stack(rows) if rows else none for rows, none in zip(scanned, empty))]
