#!/usr/bin/python3
"""Networks that are no plain stack of layers, node by node as PyTorch's exporters spell them: encoders with decoders, mixtures of experts, sound.

  networks.py write NAME FILE.onnx INPUTS.npz    writes the model and its inputs
  networks.py run NAME FLAGS...                  compiles with --verify for each string of flags, runs the plan with poisoned memory and compares the
                                                 result with PyTorch's own model on these weights, in float64: within 3e-6 of the largest
"""
import math
import os
import subprocess
import sys
import tempfile

import numpy

from families import BOUND, LOWEST, Graph, noise, onnx_file

BATCH, LAYERS, VOCABULARY = 4, 2, 61


class Net(Graph):
    def split_heads(self, x, heads, dim):
        """[batch, length, heads * dim] -> [batch, heads, length, dim], whatever the length."""
        return self.op("Transpose", self.op("Reshape", x, self.constant([0, -1, heads, dim])), perm=[0, 2, 1, 3])

    def merge_heads(self, x, width):
        return self.op("Reshape", self.op("Transpose", x, perm=[0, 2, 1, 3]), self.constant([0, -1, width]))

    def length(self, ids):
        return self.op("Squeeze", self.size(ids, 1))

    def range(self, end):
        return self.op("Range", self.constant(0), end, self.constant(1))

    def hidden(self, mask):
        """[batch, keys] of 1 and 0 -> [batch, 1, 1, keys], the lowest number where a key is hidden."""
        shown = self.op("Cast", self.op("Unsqueeze", mask, self.constant([1, 2])), to=1)
        return self.op("Mul", self.op("Sub", self.scalar(1), shown), self.scalar(LOWEST))


def t5(g):
    """Relative positions whose bias all layers share, scores that are not scaled, RMS norms, gated GELU; cross-attention; a tied head."""
    width, heads, dim, inner, buckets, distance = 24, 3, 8, 36, 8, 12
    table = g.table("shared", VOCABULARY, width)

    def bucket(far, count, causal):
        """Of each distance key - query [queries, keys]: half of the buckets for each number, the rest for logarithms."""
        if causal:
            side, near = g.constant(0), g.op("Neg", g.op("Min", far, g.op("ConstantOfShape", g.op("Shape", far), value=numpy.array([0]))))
        else:
            count //= 2
            side = g.op("Mul", g.op("Cast", g.op("Greater", far, g.constant(0)), to=7), g.constant(count))
            near = g.op("Abs", far)
        exact = count // 2
        ratio = g.op("Div", g.op("Log", g.op("Div", g.op("Cast", near, to=1), g.scalar(exact))), g.scalar(math.log(distance / exact)))
        logarithm = g.op("Add", g.op("Cast", g.op("Mul", ratio, g.scalar(count - exact)), to=7), g.constant(exact))
        last = g.op("ConstantOfShape", g.op("Shape", logarithm), value=numpy.array([count - 1]))
        return g.op("Add", side, g.op("Where", g.op("Less", near, g.constant(exact)), near, g.op("Min", logarithm, last)))

    def positions(name, length, causal):
        queries, keys = (g.op("Unsqueeze", g.range(length), g.constant([axis])) for axis in (1, 0))
        rows = g.table(name + "0.layer.0.SelfAttention.relative_attention_bias", buckets, heads)
        bias = g.op("Gather", rows, bucket(g.op("Sub", keys, queries), buckets, causal))
        return g.op("Unsqueeze", g.op("Transpose", bias, perm=[2, 0, 1]), g.constant([0]))

    def attention(name, x, memory, bias):
        q = g.op("MatMul", x, g.weight(name + "q.weight", (width, width), scale=0.85 / math.sqrt(width)))
        q, k, v = (g.split_heads(each, heads, dim) for each in (q, *(g.linear(memory, name + part, width, width, False) for part in "kv")))
        scores = g.op("MatMul", q, g.op("Transpose", k, perm=[0, 1, 3, 2]))
        seen = g.op("MatMul", g.op("Softmax", g.op("Add", scores, bias), axis=-1), v)
        return g.linear(g.merge_heads(seen, width), name + "o", width, width, False)

    def feed(name, x):
        gate, up = (g.linear(x, f"{name}DenseReluDense.wi_{i}", width, inner, False) for i in range(2))
        return g.linear(g.op("Mul", g.tanh_gelu(gate), up), name + "DenseReluDense.wo", inner, width, False)

    def stack(name, ids, bias, memory=None, hidden=None):
        x = g.op("Gather", table, g.op("Reshape", ids, g.op("Concat", g.constant([-1]), g.size(ids, 1), axis=0)))
        for layer in range(LAYERS):
            base = f"{name}{layer}.layer."
            h = g.rms_norm(x, base + "0.layer_norm", width)
            x = g.op("Add", x, attention(base + "0.SelfAttention.", h, h, bias))
            if memory:
                x = g.op("Add", x, attention(base + "1.EncDecAttention.", g.rms_norm(x, base + "1.layer_norm", width), memory, hidden))
            base += "2." if memory else "1."
            x = g.op("Add", x, feed(base, g.rms_norm(x, base + "layer_norm", width)))
        return g.rms_norm(x, name[:-6] + "final_layer_norm", width)

    hidden, target = g.hidden("attention_mask"), g.length("decoder_input_ids")
    memory = stack("encoder.block.", "input_ids", g.op("Add", positions("encoder.block.", g.length("input_ids"), False), hidden))
    sees = g.op("LessOrEqual", *(g.op("Unsqueeze", g.range(target), g.constant([axis])) for axis in (0, 1)))
    bias = g.op("Add", positions("decoder.block.", target, True), g.op("Where", sees, g.scalar(0), g.scalar(LOWEST)))
    x = stack("decoder.block.", "decoder_input_ids", bias, memory, hidden)
    return g.op("MatMul", g.op("Mul", x, g.scalar(width**-0.5)), g.op("Transpose", table, perm=[1, 0]))


def mixture(g, mix):
    """A decoder of two layers; `mix` is the feed-forward: x [batch, length, width], router [width, experts], five experts of inner width 20."""
    width, heads, dim = 24, 3, 8
    x = g.op("Gather", g.table("embedding", VOCABULARY, width), "input_ids")
    length = g.length("input_ids")
    sees = g.op("LessOrEqual", *(g.op("Unsqueeze", g.range(length), g.constant([axis])) for axis in (0, 1)))
    bias = g.op("Where", sees, g.scalar(0), g.scalar(LOWEST))
    for layer in range(LAYERS):
        base = f"layers.{layer}."
        h = g.linear(g.layer_norm(x, base + "norm1", width), base + "qkv", width, 3 * width)
        h = g.op("Transpose", g.op("Reshape", h, g.constant([0, -1, 3, heads, dim])), perm=[2, 0, 3, 1, 4])
        q, k, v = (g.op("Gather", h, g.constant(part), axis=0) for part in range(3))
        scores = g.op("Mul", g.op("MatMul", q, g.op("Transpose", k, perm=[0, 1, 3, 2])), g.scalar(dim**-0.5))
        seen = g.op("MatMul", g.op("Softmax", g.op("Add", scores, bias), axis=-1), v)
        x = g.op("Add", x, g.linear(g.merge_heads(seen, width), base + "out", width, width))
        h = g.layer_norm(x, base + "norm2", width)
        router = g.op("Softmax", g.linear(h, base + "router", width, EXPERTS), axis=-1)
        x = g.op("Add", x, mix(g, base, h, router, width, 20))
    return g.linear(g.layer_norm(x, "norm", width), "head", width, VOCABULARY)


EXPERTS = 5


def stacked_weights(g, base, width, inner):
    """Of all experts: [experts, width, inner], [experts, 1, inner], [experts, inner, width], [experts, 1, width]."""
    scale = 2.4 / math.sqrt(width)
    return [g.weight(base + name, (EXPERTS, *shape), scale=scale if len(shape) == 2 and shape[0] > 1 else 0.3)
            for name, shape in (("up", (width, inner)), ("up_bias", (1, inner)), ("down", (inner, width)), ("down_bias", (1, width)))]


def batched(g, base, x, router, width, inner):
    """Every expert computes every token, in one product for all; the router's weights mix them."""
    up, up_bias, down, down_bias = stacked_weights(g, base, width, inner)
    tokens = g.op("Reshape", x, g.constant([1, -1, width]))
    tokens = g.op("Expand", tokens, g.constant([EXPERTS, 1, 1]))
    h = g.gelu(g.op("Add", g.op("MatMul", tokens, up), up_bias))
    h = g.op("Add", g.op("MatMul", h, down), down_bias)
    weights = g.op("Unsqueeze", g.op("Transpose", g.op("Reshape", router, g.constant([-1, EXPERTS])), perm=[1, 0]), g.constant([2]))
    mixed = g.op("ReduceSum", g.op("Mul", h, weights), g.constant([0]), keepdims=0)
    return g.op("Reshape", mixed, g.op("Shape", x))


def einsum(g, base, x, router, width, inner):
    """The two best experts of each token, as sums over indices; SiLU."""
    up, up_bias, down, down_bias = stacked_weights(g, base, width, inner)
    h = g.op("Add", g.op("Einsum", x, up, equation="btd,edf->ebtf"), g.op("Unsqueeze", up_bias, g.constant([1])))
    h = g.op("Add", g.op("Einsum", g.silu(h), down, equation="ebtf,efd->ebtd"), g.op("Unsqueeze", down_bias, g.constant([1])))
    return g.op("Einsum", h, best(g, router), equation="ebtd,bte->btd")


def best(g, router):
    """The two largest weights of each token, made to sum to one; the others zero."""
    values, places = g.op("TopK", router, g.constant([2]), outputs=2, axis=-1)
    values = g.op("Div", values, g.op("ReduceSum", values, g.constant([-1]), keepdims=1))
    zeros = g.op("ConstantOfShape", g.op("Shape", router), value=numpy.zeros(1, numpy.float32))
    return g.op("ScatterElements", zeros, places, values, axis=-1)


def loop(g, base, x, router, width, inner):
    """The two best experts of each token, each expert with weights of its own (SwiGLU), one after the other."""
    weights, mixed = best(g, router), None
    for expert in range(EXPERTS):
        name = f"{base}experts.{expert}."
        gate, up = (g.linear(x, name + part, width, inner) for part in ("w1", "w3"))
        h = g.linear(g.op("Mul", g.silu(gate), up), name + "w2", inner, width)
        h = g.op("Mul", g.op("Unsqueeze", g.op("Gather", weights, g.constant(expert), axis=2), g.constant([-1])), h)
        mixed = g.op("Add", mixed, h) if mixed else h
    return mixed


def whisper(g):
    """The encoder of sound: two convolutions in one dim, positions, layers whose keys have no bias."""
    width, heads, dim, inner, mels = 24, 3, 8, 40, 10
    x = "input_features"
    for name, channels, stride in (("conv1", mels, 1), ("conv2", width, 2)):
        weight = g.weight(name + ".weight", (width, channels, 3), scale=2.4 / math.sqrt(3 * channels))
        x = g.gelu(g.op("Conv", x, weight, g.weight(name + ".bias", (width,)), kernel_shape=[3], pads=[1, 1], strides=[stride]))
    x = g.op("Add", g.op("Transpose", x, perm=[0, 2, 1]), g.table("embed_positions", 12, width))
    for layer in range(LAYERS):
        base = f"layers.{layer}."
        h = g.layer_norm(x, base + "self_attn_layer_norm", width)
        q, k, v = (g.split_heads(g.linear(h, f"{base}self_attn.{part}_proj", width, width, part != "k"), heads, dim) for part in "qkv")
        scores = g.op("MatMul", g.op("Mul", q, g.scalar(dim**-0.5)), g.op("Transpose", k, perm=[0, 1, 3, 2]))
        seen = g.merge_heads(g.op("MatMul", g.op("Softmax", scores, axis=-1), v), width)
        x = g.op("Add", x, g.linear(seen, base + "self_attn.out_proj", width, width))
        h = g.gelu(g.linear(g.layer_norm(x, base + "final_layer_norm", width), base + "fc1", width, inner))
        x = g.op("Add", x, g.linear(h, base + "fc2", inner, width))
    return g.layer_norm(x, "layer_norm", width)


def tokens(seed, length):
    return ((noise((BATCH, length), seed) + 1) / 2 * VOCABULARY).astype(numpy.int64)


MASK = (numpy.arange(9) < numpy.array([[9], [6], [9], [1]])).astype(numpy.int64)
NETWORKS = {  # what builds it; inputs; last dims of the result
    "t5": (t5, lambda: {"input_ids": tokens(997, 9), "attention_mask": MASK, "decoder_input_ids": tokens(998, 5)}, [5, VOCABULARY]),
    "whisper": (whisper, lambda: {"input_features": noise((BATCH, 10, 24), 996).astype(numpy.float32)}, [12, 24]),
    **{mix.__name__: (lambda g, mix=mix: mixture(g, mix), lambda: {"input_ids": tokens(997, 9)}, [9, VOCABULARY]) for mix in (batched, einsum, loop)},
}
# Of PyTorch 2.15 in float64 (t5, whisper: Hugging Face transformers 4.57): every so many-th element, and the largest absolute value.
GOLDEN = {
    "t5": (33, 2.10086197, [
        -1.32132296, -0.039050718, 0.894905574, 0.659052844, 0.496882985, 0.368281458, -0.214343217, 0.247051079, 0.0849351086, 0.430242509, 0.0486163903,
        -0.129311821, -0.218278625, -0.704872646, 0.141114396, -0.485031256, 0.582213365, 0.160218934, 0.215150253, -0.313224429, 0.277076194,
        -0.0922455766, 0.632134834, 0.494466052, 0.44745812, 0.059357633, -1.11365885, 0.0886449398, -0.242280206, 0.0132303161, 0.12110617, -0.252939262,
        -0.377303829, -0.591496902, -0.632592956, 0.166176152, -0.214473069]),
    "whisper": (31, 3.36334805, [
        -0.157444839, 1.60810221, 0.830348288, 1.80405652, 1.54289132, 0.603800054, 0.187093346, 0.850754496, -2.0670923, 0.403191994, 0.544000582,
        0.11893044, -0.197873001, -0.366826655, 1.97063425, 0.228344066, -0.682632766, 0.463971972, 0.472311297, 0.921810358, -0.35922766, 1.08824691,
        -1.47559197, 0.934896782, 0.00498189458, 1.2969771, 0.416925823, 1.20005738, -0.11395369, 0.156600895, -0.521747251, 0.373884558, -1.42585529,
        0.756706859, 0.576240224, 0.0600606429, 0.727915949, -0.845757612]),
    "batched": (59, 4.22638859, [
        -0.841547871, -2.686117, 1.99590502, 1.68748827, 0.171319595, 0.914853135, -0.620966213, -0.0658960522, -2.38907913, 1.66837845, 0.11939719,
        -2.03410479, -0.912283534, 0.209450972, -2.05523981, 0.360925756, 2.24149558, 0.666740627, 2.44975138, -1.66622363, -1.93282136, -0.796469196,
        0.0455182438, -1.22607397, -1.35051574, 1.01813145, -1.38825167, -0.507018068, -1.45250913, 0.51222406, 0.0201094905, 0.848524419, 0.472176384,
        0.817494066, 1.46497159, 0.648481168, 1.06298287, -1.69242483]),
    "einsum": (59, 4.90758388, [
        -1.98946125, -0.751425754, 1.57761178, -3.16482085, 0.844677345, -0.501595046, 0.0680924846, -1.08172138, 1.40007587, -0.135451411, 1.67826936,
        0.128859099, -0.842296571, 0.9410811, 1.02667251, -1.41926727, 0.362584997, 0.313151318, 0.0831064499, -1.26799924, -1.94821386, -0.887014623,
        -1.05555461, 1.24877422, -0.578738739, 0.0494920743, -0.121103868, 0.4203847, -1.73136264, -0.792894925, 2.76627408, 0.331566081, 0.63952386,
        -1.6070474, -0.234049324, -0.504961739, -0.401032118, 1.50955727]),
    "loop": (59, 4.7448389, [
        2.63437647, 1.69769065, -1.48044601, 1.46858116, 1.56254613, 0.645360514, 2.67841317, -0.386803542, 3.458126, -1.18512992, -1.31104338, 1.16307011,
        1.91427961, -2.07625134, 0.77244884, -0.130021153, -1.84534331, 0.569930605, 1.19429803, -0.493677786, 3.83391756, -0.647752007, -3.14770568,
        -1.01961367, -2.13827442, 1.59080085, 0.62356016, -0.600741072, -1.79219789, 1.87621027, 0.341682614, -0.394181817, -2.10440973, 0.432039697,
        -2.77910384, -0.144764299, 0.490762013, 2.36281135]),
}


def write(name, model, inputs):
    build, arrays, dims = NETWORKS[name]
    graph, arrays = Net(), arrays()
    result = build(graph)
    declared = [(key, onnx_file.NAMES[array.dtype], ["batch", *array.shape[1:]]) for key, array in arrays.items()]
    with open(model, "wb") as out:
        out.write(onnx_file.model(graph.nodes, declared, [(result, "f32", ["batch", *dims])], graph.weights, opset=18))
    numpy.savez(inputs, **arrays)


def error_of(name, output):
    """How far a result is from PyTorch's; NaN where its size is another."""
    step, largest, expected = GOLDEN[name]
    found = output.ravel()[::step]
    return numpy.abs(found - numpy.array(expected)).max() / largest if found.shape == (len(expected),) else numpy.nan


def run(name, layouts):
    """Whether all are equal."""
    good = True
    with tempfile.TemporaryDirectory() as scratch:
        model, inputs, plan, output = (os.path.join(scratch, each) for each in ("m.onnx", "i.npz", "p.plan", "o.npz"))
        write(name, model, inputs)
        for flags in layouts:
            subprocess.run(["hpc-opt", model, f"--dim=batch={BATCH}", f"--verify={inputs}", "-o", plan, *flags.split()], check=True, stdout=subprocess.DEVNULL)
            subprocess.run(["hpc-run", plan, "--poison", f"--input={inputs}", f"--output={output}"], check=True, stdout=subprocess.DEVNULL)
            error = error_of(name, *numpy.load(output).values())
            good &= bool(error <= BOUND)  # false for NaN
            print(f"{name} [{flags}]: off by {error:.2g} of the largest")
    print("all equal" if good else "failed")
    return good


if __name__ == "__main__":
    if sys.argv[1] == "write":
        write(*sys.argv[2:])
    else:
        sys.exit(not run(sys.argv[2], sys.argv[3:]))
