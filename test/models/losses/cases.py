"""Models that end in a loss of their own, or are given one by hpc-opt --loss, with inputs: what losses.py runs and make_losses.py computes golden numbers of.
Everything is drawn by numpy's generator with fixed seeds, so nothing but the golden numbers needs a file.
"""
import collections
import os
import sys
import zlib

import numpy

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(HERE)))
sys.path.insert(0, os.path.join(ROOT, "test"))
import onnx_file  # noqa: E402

BATCH, IN, INNER, CLASSES, LENGTH = 8, 6, 9, 5, 4

# loss: what --loss is told; model: the ONNX file's bytes; inputs: by name, `labels` included where hpc-opt appends the loss; dims: what --dim binds.
Case = collections.namedtuple("Case", "loss model inputs dims")


def direction(name, shape):
    """What a gradient is projected on: with its norm it tells two gradients apart."""
    return numpy.random.default_rng(zlib.crc32(name.encode())).standard_normal(shape)


def network(tail, outputs, more_inputs=(), sequence=False):
    """Two layers, [batch, (length,) in] -> `scores` [batch, (length,) classes], then the nodes of the tail."""
    draw = numpy.random.default_rng(1)
    weights = [("first.weight", draw.standard_normal((IN, INNER)) / 2), ("first.bias", draw.standard_normal(INNER) / 4),
               ("second.weight", draw.standard_normal((INNER, CLASSES))), ("second.bias", draw.standard_normal(CLASSES) / 4)]
    nodes = [onnx_file.node("MatMul", ["x", "first.weight"], ["h1"]), onnx_file.node("Add", ["h1", "first.bias"], ["h2"]), onnx_file.node("Tanh", ["h2"], ["h3"]),
             onnx_file.node("MatMul", ["h3", "second.weight"], ["h4"]), onnx_file.node("Add", ["h4", "second.bias"], ["scores"])]
    constants = [("class_weights", numpy.array([0.5, 2, 1, 0.25, 3], numpy.float32))] if any(b"class_weights" in node for node in tail) else []
    rows = ["batch", LENGTH] if sequence else ["batch"]
    return onnx_file.model(nodes + list(tail), [("x", "f32", rows + [IN]), *more_inputs], outputs, [(name, array.astype(numpy.float32)) for name, array in weights] + constants)


def with_own_loss(tail, target, sequence=False):
    draw = numpy.random.default_rng(2)
    rows = (BATCH, LENGTH) if sequence else (BATCH,)
    x = draw.standard_normal((*rows, IN)).astype(numpy.float32)
    target = draw.standard_normal((*rows, CLASSES)).astype(numpy.float32) if target == "f32" else draw.integers(0, CLASSES, rows)
    kind = "f32" if target.dtype == numpy.float32 else "i64"
    names = ["batch", *target.shape[1:]]
    return Case("output:loss", network(tail, [("loss", "f32", [])], [("target", kind, names)], sequence), {"x": x, "target": target}, {"batch": BATCH})


def with_appended_loss(loss):
    given = with_own_loss([], "f32" if loss == "mse" else "i64")
    labels = given.inputs["target"]
    if loss == "classification":
        labels[[2, 5]] = -100  # count as none
    return given._replace(loss=loss, model=network([], [("scores", "f32", ["batch", CLASSES])]), inputs={"x": given.inputs["x"], "labels": labels})


def of_file(folder, file, loss, classes):
    """A model of ../../../models with its first inputs."""
    path = os.path.join(ROOT, "models", folder)
    inputs = dict(numpy.load(os.path.join(path, "inputs_0.npz")))
    batch = len(next(iter(inputs.values())))
    draw = numpy.random.default_rng(3)
    inputs["labels"] = draw.integers(0, classes, batch) if loss == "classification" else draw.standard_normal((batch, classes)).astype(numpy.float32)
    return Case(loss, open(os.path.join(path, file), "rb").read(), inputs, {"batch": batch})


def entropy(result="loss", **attributes):
    weights = ["class_weights"] if attributes.pop("weighted", False) else []
    return onnx_file.node("SoftmaxCrossEntropyLoss", ["scores", "target", *weights], [result], **attributes)


def likelihood(result, **attributes):
    """Of a sequence: classes are dim 1, as the standard has it."""
    return [onnx_file.node("Transpose", ["scores"], ["turned"], perm=[0, 2, 1]), onnx_file.node("LogSoftmax", ["turned"], ["logs"], axis=1),
            onnx_file.node("NegativeLogLikelihoodLoss", ["logs", "target", *(["class_weights"] if attributes.pop("weighted", False) else [])], [result], **attributes)]


def picked():
    """The mean of each token's own log-probability, picked by index, as policies are trained and likelihoods are written by hand."""
    return [onnx_file.node("LogSoftmax", ["scores"], ["logs"], axis=2), onnx_file.node("Constant", [], ["last"], value=numpy.array([2])),
            onnx_file.node("Unsqueeze", ["target", "last"], ["places"]), onnx_file.node("GatherElements", ["logs", "places"], ["own"], axis=2),
            onnx_file.node("ReduceMean", ["own"], ["mean"], keepdims=0), onnx_file.node("Neg", ["mean"], ["loss"])]


DETACH = "aten.detach.default](args = (%x,), kwargs = {})"


def rounded():
    """Scores rounded by a straight-through estimate, x + detach(round(x) - x), drawn to where they were rounded to: mean((x - detach(round(x)))^2)."""
    return [onnx_file.node("Round", ["scores"], ["whole"]), onnx_file.node("Sub", ["whole", "scores"], ["step"]),
            onnx_file.node("Identity", ["step"], ["still"], torch_call=DETACH), onnx_file.node("Add", ["scores", "still"], ["through"]),
            onnx_file.node("Identity", ["through"], ["code"], torch_call=DETACH), onnx_file.node("Sub", ["scores", "code"], ["far"]),
            onnx_file.node("Mul", ["far", "far"], ["drawn"]), onnx_file.node("Sub", ["through", "target"], ["off"]), onnx_file.node("Mul", ["off", "off"], ["square"]),
            onnx_file.node("Add", ["square", "drawn"], ["each"]), onnx_file.node("ReduceMean", ["each"], ["loss"], keepdims=0)]


def two_means():
    """An entropy over the rows that count and a penalty over all activations: two means with different counts."""
    return [entropy(reduction="mean", weighted=True, ignore_index=2, result="fit"), onnx_file.node("Mul", ["h3", "h3"], ["squares"]),
            onnx_file.node("ReduceMean", ["squares"], ["size"], keepdims=0), onnx_file.node("Add", ["fit", "size"], ["loss"])]


def weighted_within():
    """Every row's weight is its part of the sum of all weights, taken before the rows are added up."""
    return [entropy(reduction="none", result="rows"), onnx_file.node("Constant", [], ["one"], value=numpy.array(1)), onnx_file.node("Equal", ["target", "one"], ["isOne"]),
            onnx_file.node("Not", ["isOne"], ["counts"]), onnx_file.node("Cast", ["counts"], ["weights"], to=1), onnx_file.node("ReduceSum", ["weights"], ["all"], keepdims=0),
            onnx_file.node("Div", ["weights", "all"], ["parts"]), onnx_file.node("Mul", ["rows", "parts"], ["shares"]), onnx_file.node("ReduceSum", ["shares"], ["loss"], keepdims=0)]


def mean_and_root():
    """A mean that is read twice."""
    return [onnx_file.node("Sub", ["scores", "target"], ["off"]), onnx_file.node("Mul", ["off", "off"], ["square"]), onnx_file.node("ReduceMean", ["square"], ["mean"], keepdims=0),
            onnx_file.node("Sqrt", ["mean"], ["root"]), onnx_file.node("Add", ["mean", "root"], ["loss"])]


def far_from_zero(offset, loss):
    """Scores that are inputs in another order, times the unit matrix, plus zeros, so that f32 holds them as they are, with a large common offset: what is rounded is the loss alone.
    Own: entropies weighted and with an ignored class, of targets picked by index, of smoothed labels and of probabilities."""
    draw = numpy.random.default_rng(4)
    x = (offset + 8 * draw.integers(-2, 3, (BATCH, CLASSES)) + (3 * draw.standard_normal((BATCH, CLASSES)) if offset < 1e6 else 0)).astype(numpy.float32)
    labels = draw.integers(0, CLASSES, BATCH)
    unit = numpy.eye(CLASSES, dtype=numpy.float32)
    weights = [("first.weight", unit[::-1].copy()), ("second.weight", unit), ("second.bias", numpy.zeros(CLASSES, numpy.float32))]
    nodes = [onnx_file.node("MatMul", ["x", "first.weight"], ["h1"]), onnx_file.node("MatMul", ["h1", "second.weight"], ["h2"]), onnx_file.node("Add", ["h2", "second.bias"], ["scores"])]
    if loss == "classification":
        labels[1] = -100
        file = onnx_file.model(nodes, [("x", "f32", ["batch", CLASSES])], [("scores", "f32", ["batch", CLASSES])], weights)
        return Case(loss, file, {"x": x, "labels": labels}, {"batch": BATCH})
    nodes += [entropy("weighed", reduction="mean", weighted=True, ignore_index=2), onnx_file.node("LogSoftmax", ["scores"], ["logs"], axis=1),
              onnx_file.node("Constant", [], ["last"], value=numpy.array([1])), onnx_file.node("Unsqueeze", ["target", "last"], ["places"]),
              onnx_file.node("LogSoftmax", ["scores"], ["more"], axis=1), onnx_file.node("GatherElements", ["more", "places"], ["own"], axis=1),
              onnx_file.node("ReduceMean", ["own"], ["picked"], keepdims=0), onnx_file.node("Mul", ["logs", "shares"], ["parts"]),
              onnx_file.node("ReduceMean", ["parts"], ["shared"], keepdims=0), onnx_file.node("ReduceMean", ["logs"], ["smooth"], keepdims=0),
              onnx_file.node("Add", ["picked", "shared"], ["two"]), onnx_file.node("Add", ["two", "smooth"], ["three"]), onnx_file.node("Sub", ["weighed", "three"], ["loss"])]
    constants = [("class_weights", numpy.array([0.5, 2, 1, 0.25, 3], numpy.float32))]
    shares = draw.random((BATCH, CLASSES)).astype(numpy.float32)
    file = onnx_file.model(nodes, [("x", "f32", ["batch", CLASSES]), ("target", "i64", ["batch"]), ("shares", "f32", ["batch", CLASSES])], [("loss", "f32", [])], weights + constants)
    return Case("output:loss", file, {"x": x, "target": labels, "shares": shares}, {"batch": BATCH})


def cases():
    mean = dict(keepdims=0)
    return {
        "classification": with_appended_loss("classification"),
        "mse": with_appended_loss("mse"),
        "own-mean-of-squares": with_own_loss([onnx_file.node("Sub", ["scores", "target"], ["off"]), onnx_file.node("Mul", ["off", "off"], ["square"]),
                                              onnx_file.node("ReduceMean", ["square"], ["loss"], **mean)], "f32"),
        "entropy-mean": with_own_loss([entropy(reduction="mean")], "i64"),
        "entropy-sum": with_own_loss([entropy(reduction="sum")], "i64"),
        "entropy-none-mean": with_own_loss([onnx_file.node("SoftmaxCrossEntropyLoss", ["scores", "target"], ["rows"], reduction="none"),
                                            onnx_file.node("ReduceMean", ["rows"], ["loss"], **mean)], "i64"),
        "entropy-weighted-sum": with_own_loss([entropy(reduction="sum", weighted=True)], "i64"),
        "entropy-weighted-mean": with_own_loss([entropy(reduction="mean", weighted=True)], "i64"),
        "entropy-ignore-mean": with_own_loss([entropy(reduction="mean", ignore_index=2)], "i64"),
        "likelihood-weighted-ignore-mean": with_own_loss(likelihood("loss", weighted=True, ignore_index=1), "i64", sequence=True),
        "likelihood-sum": with_own_loss(likelihood("loss", reduction="sum"), "i64", sequence=True),
        "likelihood-by-index": with_own_loss(picked(), "i64", sequence=True),
        "two-means": with_own_loss(two_means(), "i64"),
        "weighted-within": with_own_loss(weighted_within(), "i64"),
        "mean-and-root": with_own_loss(mean_and_root(), "f32"),
        "detached": with_own_loss(rounded(), "f32"),
        **{f"offset-{offset:.0e}-{loss}": far_from_zero(offset, loss) for offset in (1e3, 1e6, 1e8) for loss in ("classification", "own")},
        "mlp-mse": of_file("mlp", "dynamo-op18.onnx", "mse", 7),
        "vit-classification": of_file("vit", "model.onnx", "classification", 13),
        "resnet-classification": of_file("resnet", "model.onnx", "classification", 11),
    }
