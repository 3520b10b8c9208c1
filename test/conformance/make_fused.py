#!/usr/bin/env python3
"""Writes one-node models of ONNX Runtime's own ops (com.microsoft) with what ONNX Runtime computes, in the form of make.py's archive.

    make_fused.py fused.npz          needs onnx, onnxruntime and numpy; nothing in a test needs this script

fused.npz: onnxruntime 1.32. BiasSplitGelu, which it has on GPUs alone, is computed here in float64."""
import math
import sys

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

random = np.random.default_rng(7)
def floats(*shape):
    return random.standard_normal(shape).astype(np.float32)
def int32(*values):
    return np.array(values, dtype=np.int32)

archive = {}
def given_by(op, inputs, outputs, **attributes):
    """What ONNX Runtime computes for another spelling of a case that it has on GPUs alone."""
    case("other", op, inputs, outputs, **attributes)
    values = [archive[f"other/output/{n}"] for n in outputs if n]
    for key in [key for key in archive if key.startswith("other/")]:
        del archive[key]
    return values
def case(name, op, inputs, outputs, fixed=(), expected=None, **attributes):
    """`inputs`: arrays or None; those in `fixed` become initializers. `outputs`: names, "" for one that the node does not have, "_name" for one that nobody
    reads."""
    names = [f"in{i}" if value is not None else "" for i, value in enumerate(inputs)]
    node = helper.make_node(op, names, outputs, name=name, domain="com.microsoft", **attributes)
    code = lambda value: helper.np_dtype_to_tensor_dtype(value.dtype)
    given = {n: v for i, (n, v) in enumerate(zip(names, inputs)) if v is not None and i not in fixed}
    graph = helper.make_graph([node], name, [helper.make_tensor_value_info(n, code(v), v.shape) for n, v in given.items()],
                              [helper.make_tensor_value_info(n, TensorProto.FLOAT, None) for n in outputs if n and n[0] != "_"],
                              [numpy_helper.from_array(inputs[i], names[i]) for i in fixed])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)], ir_version=8)
    wanted = [n for n in outputs if n and n[0] != "_"]
    if expected is None:
        for output in model.graph.output:
            output.type.Clear()
        session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
        expected = session.run(wanted, given)
    for output, value in zip(model.graph.output, expected):
        output.CopyFrom(helper.make_tensor_value_info(output.name, code(value), value.shape))
    archive[name + "/model"] = np.frombuffer(model.SerializeToString(), dtype=np.uint8)
    archive.update({f"{name}/input/{n}": v for n, v in given.items()})
    archive.update({f"{name}/output/{n}": v for n, v in zip(wanted, expected)})

B, S, H, D = 2, 5, 3, 8
W = H * D
# ---- Attention
x, weights, bias = floats(B, S, 12), floats(12, 3 * W), floats(3 * W)
mask = np.array([[1, 1, 1, 1, 1], [0, 1, 1, 1, 0]], dtype=np.int32)
case("attention", "Attention", [x, weights, bias], ["y"], num_heads=H)
case("attention_scaled", "Attention", [x, weights, bias], ["y"], num_heads=H, scale=0.3)
case("attention_causal", "Attention", [x, weights, bias], ["y"], num_heads=H, unidirectional=1)
case("attention_mask_2d", "Attention", [x, weights, bias, mask], ["y"], num_heads=H)
case("attention_mask_2d_causal", "Attention", [x, weights, bias, np.array([[1] * 5, [1, 1, 1, 1, 0]], dtype=np.int32)], ["y"], num_heads=H, unidirectional=1)
case("attention_mask_ends", "Attention", [x, weights, bias, int32(5, 3)], ["y"], num_heads=H)
case("attention_mask_ends_starts", "Attention", [x, weights, bias, int32(5, 4, 1, 2)], ["y"], num_heads=H)
case("attention_mask_3d", "Attention", [x, weights, bias, (random.random((B, S, S)) < 0.7).astype(np.int32)], ["y"], num_heads=H)
case("attention_all_masked", "Attention", [x, weights, bias, np.array([[1] * 5, [0] * 5], dtype=np.int32)], ["y"], num_heads=H)
case("attention_mask_filter_value", "Attention", [x, weights, bias, mask], ["y"], num_heads=H, mask_filter_value=-2.0)
case("attention_past", "Attention", [x, weights, bias, None, floats(2, B, H, 4, D)], ["y", "present"], num_heads=H, unidirectional=1)
case("attention_past_mask", "Attention", [x, weights, bias, np.array([[1] * 9, [0, 0] + [1] * 7], dtype=np.int32), floats(2, B, H, 4, D)], ["y", "present"], num_heads=H, unidirectional=1)
case("attention_bias_added", "Attention", [x, weights, bias, None, None, floats(B, H, S, S)], ["y"], num_heads=H)
case("attention_bias_broadcast", "Attention", [x, weights, bias, None, None, floats(1, 1, S, S)], ["y"], num_heads=H)
case("attention_other_value_size", "Attention", [x, floats(12, W + W + 12), floats(2 * W + 12)], ["y"], num_heads=H, qkv_hidden_sizes=[W, W, 12])
case("attention_no_bias", "Attention", [x, weights], ["y"], num_heads=H, expected=given_by("Attention", [x, weights, 0 * bias], ["y"], num_heads=H))
square = np.tril(np.ones((B, 1, 8, 8), dtype=np.int32))
square[1, 0, :, 1] = 0
case("attention_mask_4d", "Attention", [x, weights, bias, square], ["y"], num_heads=H,
     expected=given_by("Attention", [x, weights, bias, np.ascontiguousarray(square[:, 0, :S, :S])], ["y"], num_heads=H))
# ---- MultiHeadAttention
q, k, v = floats(B, S, W), floats(B, 7, W), floats(B, 7, W)
case("mha", "MultiHeadAttention", [q, k, v], ["y"], num_heads=H)
case("mha_filter_alone", "MultiHeadAttention", [q, k, v], ["y"], num_heads=H, mask_filter_value=-2.0)
case("mha_bias", "MultiHeadAttention", [q, k, v, floats(3 * W)], ["y"], num_heads=H)
case("mha_other_value_size", "MultiHeadAttention", [q, k, floats(B, 7, 12), floats(2 * W + 12)], ["y"], num_heads=H)
case("mha_causal", "MultiHeadAttention", [q, floats(B, S, W), floats(B, S, W)], ["y"], num_heads=H, unidirectional=1)
case("mha_padding", "MultiHeadAttention", [q, k, v, None, np.array([[1] * 7, [1] * 4 + [0] * 3], dtype=np.int32)], ["y"], num_heads=H)
case("mha_padding_3d", "MultiHeadAttention", [q, k, v, None, (random.random((B, S, 7)) < 0.7).astype(np.int32)], ["y"], num_heads=H, mask_filter_value=-3.0)
case("mha_attention_bias", "MultiHeadAttention", [q, k, v, None, None, floats(1, H, S, 7)], ["y"], num_heads=H, scale=0.25)
case("mha_past", "MultiHeadAttention", [q, floats(B, S, W), floats(B, S, W), None, None, None, floats(B, H, 4, D), floats(B, H, 4, D)],
     ["y", "present_key", "present_value"], num_heads=H, unidirectional=1)
case("mha_cross", "MultiHeadAttention", [q, floats(B, H, 7, D), floats(B, H, 7, D)], ["y"], num_heads=H)
parts = floats(B, S, H, 3, D)
case("mha_packed", "MultiHeadAttention", [parts], ["y"], num_heads=H,
     expected=given_by("MultiHeadAttention", [np.ascontiguousarray(parts[:, :, :, i]).reshape(B, S, W) for i in range(3)], ["y"], num_heads=H))
parts = floats(B, 7, H, 2, D)
case("mha_packed_keys", "MultiHeadAttention", [q, parts], ["y"], num_heads=H,
     expected=given_by("MultiHeadAttention", [q, *(np.ascontiguousarray(parts[:, :, :, i]).reshape(B, 7, W) for i in range(2))], ["y"], num_heads=H))
# ---- GroupQueryAttention
G, R = 2, 4
def angles(count, size):
    table = np.outer(np.arange(count), 1.0 / 100 ** (np.arange(size // 2) / (size // 2)))
    return np.cos(table).astype(np.float32), np.sin(table).astype(np.float32)
E = 16  # rotary inside wants heads of 16
cos, sin = angles(16, E)
def gqa(name, length, past, seqlens, total, packed=False, outputs=("y", "present_key", "present_value"), extra=(), **attributes):
    width = (R + 2 * G) * E
    qkv = [floats(B, length, width), None, None] if packed else [floats(B, length, R * E), floats(B, length, G * E), floats(B, length, G * E)]
    cache = [floats(B, G, past, E), floats(B, G, past, E)] if past else [None, None]
    case(name, "GroupQueryAttention", [*qkv, *cache, int32(*seqlens), int32(total)[0].reshape(()), *extra], list(outputs), fixed=[6], num_heads=R, kv_num_heads=G, **attributes)
gqa("gqa_prompt", S, 0, [S - 1] * B, S)
gqa("gqa_prompt_packed", S, 0, [S - 1] * B, S, packed=True, scale=0.2)
gqa("gqa_prompt_rotary", S, 0, [S - 1] * B, S, extra=[cos, sin], do_rotary=1)
gqa("gqa_prompt_rotary_interleaved", S, 0, [S - 1] * B, S, packed=True, extra=[cos, sin], do_rotary=1, rotary_interleaved=1)
gqa("gqa_decode", 1, 6, [6, 6], 7)
gqa("gqa_decode_lengths", 1, 6, [6, 3], 7, extra=[cos, sin], do_rotary=1, outputs=["y", "_key", "_value"])
gqa("gqa_decode_softcap", 1, 6, [6, 6], 7, softcap=1.5)
gqa("gqa_window", S, 0, [S - 1] * B, S, local_window_size=2)
gqa("gqa_decode_window", 1, 6, [6, 4], 7, local_window_size=3, outputs=["y", "_key", "_value"])
gqa("gqa_decode_position_ids", 1, 6, [6, 4], 7, extra=[cos, sin, np.array([[6], [4]], dtype=np.int64)], do_rotary=1, outputs=["y", "_key", "_value"])
# ---- RotaryEmbedding
cos, sin = angles(16, D)
ids = np.array([[3, 0, 7, 1, 2], [1, 2, 3, 4, 9]], dtype=np.int64)
case("rotary", "RotaryEmbedding", [floats(B, S, W), ids, cos, sin], ["y"])
case("rotary_4d", "RotaryEmbedding", [floats(B, H, S, D), ids, cos, sin], ["y"])
case("rotary_interleaved", "RotaryEmbedding", [floats(B, S, W), ids, cos, sin], ["y"], interleaved=1)
case("rotary_offset", "RotaryEmbedding", [floats(B, S, W), np.array([4], dtype=np.int64), cos, sin], ["y"])
case("rotary_partial", "RotaryEmbedding", [floats(B, S, W), ids, *angles(16, 4)], ["y"], num_heads=H, rotary_embedding_dim=4)
# ---- norms
skip, gamma, beta = floats(B, S, W), floats(W), floats(W)
case("skip_layer_norm", "SkipLayerNormalization", [q, skip, gamma, beta, floats(W)], ["y", "", "", "sum"], epsilon=1e-5)
case("skip_layer_norm_plain", "SkipLayerNormalization", [q, skip, gamma], ["y"], epsilon=1e-5)
case("skip_layer_norm_broadcast", "SkipLayerNormalization", [q, floats(S, W), gamma, beta], ["y"], epsilon=1e-5)
case("skip_rms_norm", "SkipSimplifiedLayerNormalization", [q, skip, gamma, floats(W)], ["y", "", "", "sum"], epsilon=1e-5)
case("skip_rms_norm_plain", "SkipSimplifiedLayerNormalization", [q, skip, gamma], ["y"], epsilon=1e-5)
tokens = random.integers(0, 11, (B, S)).astype(np.int32)
tables = [floats(11, W), floats(9, W), floats(2, W)]
segments = random.integers(0, 2, (B, S)).astype(np.int32)
case("embed_layer_norm", "EmbedLayerNormalization", [tokens, segments, *tables, gamma, beta, mask], ["y", "mask_index", "sum"], epsilon=1e-5)
case("embed_layer_norm_positions", "EmbedLayerNormalization",
     [tokens, None, tables[0], tables[1], None, gamma, beta, None, random.integers(0, 9, (B, S)).astype(np.int32)], ["y", "mask_index"], epsilon=1e-5)
case("skip_layer_norm_statistics", "SkipLayerNormalization", [q, skip, gamma, beta], ["y", "mean", "deviation", "sum"], epsilon=1e-5,
     expected=[(np.float64(1) * v).astype(np.float32) for v in (lambda s, m, d: ((s - m) * d * gamma + beta, m, d, s))(
         q + skip, (q + skip).mean(-1, keepdims=True), 1 / np.sqrt((q.astype(np.float64) + skip).var(-1, keepdims=True) + 1e-5))])
# ---- activations
case("quick_gelu", "QuickGelu", [q], ["y"])
case("quick_gelu_alpha", "QuickGelu", [q], ["y"], alpha=0.7)
case("gelu", "Gelu", [q], ["y"])
case("bias_gelu", "BiasGelu", [q, floats(W)], ["y"])
case("fast_gelu", "FastGelu", [q, floats(W)], ["y"])
case("fast_gelu_plain", "FastGelu", [q], ["y"])
x, bias = floats(B, S, W), floats(W)
left, right = np.split(x.astype(np.float64) + bias, 2, axis=2)
erf = np.vectorize(math.erf)
case("bias_split_gelu", "BiasSplitGelu", [x, bias], ["y"], expected=[(left * right * 0.5 * (1 + erf(right / math.sqrt(2)))).astype(np.float32)])
# ---- products
case("fused_matmul", "FusedMatMul", [floats(2, 3, 4), floats(2, 4, 5)], ["y"], alpha=0.5)
case("fused_matmul_transposed", "FusedMatMul", [floats(2, 4, 3), floats(2, 5, 4)], ["y"], transA=1, transB=1)
case("fused_matmul_batch", "FusedMatMul", [floats(3, 2, 4), floats(4, 2, 5)], ["y"], transBatchA=1, transBatchB=1)
case("fused_matmul_batch_transposed", "FusedMatMul", [floats(4, 2, 6, 3), floats(5, 2, 6, 4)], ["y"], transBatchA=1, transBatchB=1, transA=1, transB=1)
def nbits(name, n, k, size, bits=4, zeros=None, bias=False, **attributes):
    blocks = -(-k // size)
    packed = random.integers(0, 256, (n, blocks, size * bits // 8)).astype(np.uint8)
    scales = (random.random((n, blocks)) * 0.1 + 0.05).astype(np.float32)
    points = None if zeros is None else random.integers(0, 256, (n, -(-blocks * bits // 8))).astype(np.uint8) if zeros == "packed" else floats(n, blocks)
    case(name, "MatMulNBits", [floats(3, k), packed, scales, points, None, floats(n) if bias else None], ["y"],
         fixed=[1, 2] + ([3] if points is not None else []), K=k, N=n, bits=bits, block_size=size, **attributes)
nbits("matmul_4bits", 6, 32, 16)
nbits("matmul_4bits_uneven", 6, 40, 16, bias=True)
nbits("matmul_4bits_zero_points", 6, 48, 16, zeros="packed")
nbits("matmul_8bits", 6, 32, 16, bits=8)
nbits("matmul_4bits_accuracy", 6, 32, 16, accuracy_level=1)
a, b, c = floats(3, 4), floats(4, 5), floats(5)
for kind, numbers in {"Relu": {}, "LeakyRelu": {"alpha": 0.2}, "HardSigmoid": {"alpha": 0.3, "beta": 0.4}, "Tanh": {}}.items():
    case(f"fused_gemm_{kind}", "FusedGemm", [a, b, c], ["y"], fixed=[1, 2], activation=kind, alpha=0.5, beta=2.0, **{f"activation_{name}": number for name, number in numbers.items()})
case("fused_gemm_transposed", "FusedGemm", [floats(4, 3), floats(5, 4), c], ["y"], activation="Sigmoid", transA=1, transB=1)
image, kernel, kernel_bias = floats(2, 3, 6, 5), floats(4, 3, 3, 3), floats(4)
for kind, numbers in {"Relu": None, "LeakyRelu": [0.2], "Clip": [-0.5, 1.0], "HardSigmoid": [0.3, 0.4]}.items():
    case(f"fused_conv_{kind}", "FusedConv", [image, kernel, kernel_bias], ["y"], fixed=[1, 2], activation=kind, pads=[1, 1, 1, 1], **({"activation_params": numbers} if numbers else {}))
case("fused_conv_sum", "FusedConv", [image, kernel, kernel_bias, floats(2, 4, 4, 3)], ["y"], fixed=[1, 2], activation="Relu")
np.savez_compressed(sys.argv[1], **archive)
