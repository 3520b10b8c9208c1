"""FlexAttention of the preview opset against numpy: grouped heads, and subgraphs that change scores and weights, in layouts. flex_attention.py FOLDER"""
import pathlib, subprocess, sys

import numpy

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
import onnx_file
from onnx_file import node

folder = pathlib.Path(sys.argv[1])
B, H, G, L, S, E, X = 2, 6, 3, 5, 7, 4, 3
SCORES = [B, H, L, S]


def subgraph(nodes, constants):
    return onnx_file.graph(nodes, [("s", "f32", SCORES)], [("t", "f32", SCORES)], constants)


# name, score_mod, prob_mod, what they mean
causal = numpy.arange(L)[:, None] >= numpy.arange(S)
bias = (-0.75 * numpy.abs(numpy.arange(L)[:, None] - numpy.arange(S))).astype(numpy.float32)
CASES = [
    ("plain", None, None, lambda s: s, lambda p: p),
    ("causal", subgraph([node("Where", ["m", "s", "low"], ["t"])], [("m", causal), ("low", numpy.float32(-numpy.inf))]), None,
     lambda s: numpy.where(causal, s, -numpy.inf), lambda p: p),
    ("both", subgraph([node("Tanh", ["s"], ["u"]), node("Add", ["u", "b"], ["t"])], [("b", bias)]), subgraph([node("Mul", ["s", "c"], ["t"])], [("c", numpy.float32(0.5))]),
     lambda s: numpy.tanh(s) + bias, lambda p: p * 0.5),
]


def run(*command):
    done = subprocess.run([str(each) for each in command], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


numbers = numpy.random.default_rng(3)
q, k, v = (numbers.standard_normal(shape).astype(numpy.float32) for shape in ((B, H, L, E), (B, G, S, E), (B, G, S, X)))
for name, score_mod, prob_mod, of_scores, of_weights in CASES:
    scores = of_scores(q.astype(float) @ k.astype(float).repeat(H // G, 1).swapaxes(-1, -2) * 0.3)
    weights = numpy.exp(scores - scores.max(-1, keepdims=True))
    want = of_weights(weights / weights.sum(-1, keepdims=True)) @ v.astype(float).repeat(H // G, 1)
    mods = {key: value for key, value in (("score_mod", score_mod), ("prob_mod", prob_mod)) if value}
    flex = node("FlexAttention", ["q", "k", "v"], ["y"], domain="ai.onnx.preview", scale=0.3, **mods)
    ports = [(key, "f32", value.shape) for key, value in (("q", q), ("k", k), ("v", v))]
    (folder / "a.onnx").write_bytes(onnx_file.model([flex], ports, [("y", "f32", want.shape)], opset=26, ir=11, domains=["ai.onnx.preview"]))
    numpy.savez(folder / "in.npz", q=q, k=k, v=v)
    for layout in ([], ["--tp=2", "--dp=2", "--verify"]):
        run("hpc-opt", folder / "a.onnx", *layout, "-o", folder / "a.plan")
        run("hpc-run", folder / "a.plan", "--poison", f"--input={folder}/in.npz", f"--output={folder}/out.npz")
        got = numpy.load(folder / "out.npz")["y"]
        assert numpy.abs(got - want).max() < 2e-6, f"{name} {layout}: off by {numpy.abs(got - want).max()}"
print(2 * len(CASES), "are equal")
