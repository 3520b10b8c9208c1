"""random_program.py SEED: prints a random program of products, lookups, sums and activations on four rows, every value of which may be
read much later and returned: what pipeline cuts and fused regions find hard. The weights are inside."""
import random
import sys

import numpy as np

TYPE = "tensor<4x8xf32>"
choose, numbers = random.Random(int(sys.argv[1])), np.random.default_rng(int(sys.argv[1]))
lines, values = [], ["%x"]


def emit(text, operands):
    """A line whose result has the next number; text and operands come before and after the first colon."""
    name = f"%{len(lines)}"
    lines.append(f'{name} = nn.{text} : {operands} -> {TYPE} loc("n{len(lines)}")')
    values.append(name)


def weight(*shape):
    name, kind = f"%{len(lines)}", "tensor<" + "x".join(str(size) for size in shape) + "xf32>"
    data = (numbers.standard_normal(shape) / np.sqrt(shape[0])).astype("<f4").tobytes().hex().upper()
    lines.append(f'{name} = nn.parameter "w{len(lines)}" {{value = dense<"0x{data}"> : {kind}}} : {kind}')
    return name, kind


for _ in range(choose.randint(12, 28)):
    near, far = choose.choice(values[-3:]), choose.choice(values)
    kind = choose.random()
    if kind < 0.4:
        w, shape = weight(8, 8)
        emit(f"matmul {near}, {w}", f"{TYPE}, {shape}")
    elif kind < 0.6:
        emit(f"{choose.choice(['add', 'mul', 'sub'])} {near}, {far}", f"{TYPE}, {TYPE}")
    elif kind < 0.75:
        emit(f"{choose.choice(['tanh', 'sigmoid', 'neg', 'relu'])} {near}", TYPE)
    elif kind < 0.85:
        rows = choose.choice([2, 5, 300])
        table, shape = weight(rows, 8)
        emit(f"embedding {table}, %ids {{vocabulary = {rows} : i64}}", f"{shape}, tensor<4xi64>")
    else:
        w, shape = weight(8)
        emit(f"add {near}, {w}", f"{TYPE}, {shape}")

results = [values[-1]] + [choose.choice(values[1:]) for _ in range(choose.randint(0, 2))]
print(f'func.func @main(%x: {TYPE} {{nn.name = "x"}}, %ids: tensor<4xi64> {{nn.name = "ids"}}) -> ('
      + ", ".join(f'{TYPE} {{nn.name = "y{i}"}}' for i in range(len(results))) + ") {")
print("  " + "\n  ".join(lines))
print(f'  return {", ".join(results)} : {", ".join([TYPE] * len(results))}\n}}')
