# Prints a function whose fusion meets a limit: chains.py KIND COUNT
import sys

kind, count = sys.argv[1], int(sys.argv[2])
square = "tensor<4x4xf32>"


def unary(name, result, operand):
    return f"%{result} = nn.{name} %{operand} : {square} -> {square}"


def turned(result, operand):
    return f"%{result} = nn.transpose %{operand} {{permutation = array<i64: 1, 0>}} : {square} -> {square}"


def running(result, operand, shape="4x4"):
    return f"%{result} = nn.cumsum %{operand} {{axis = 0 : i64}} : tensor<{shape}xf32> -> tensor<{shape}xf32>"


last, shape = f"v{count - 1}", "4x4"
if kind == "ops":
    lines = [unary("abs" if i % 2 else "neg", f"v{i}", f"v{i - 1}" if i else "x") for i in range(count)]
    lines += [f"return %{last} : {square}"]
elif kind == "reads":  # of two concatenations
    parts, types, whole = ", ".join(["%x"] * count), ", ".join([square] * count), f"tensor<{4 * count}x4xf32>"
    lines = [f"%{name} = nn.concat {parts} {{axis = 0 : i64}} : {types} -> {whole}" for name in ("p", "q")]
    lines += [f"%s = nn.add %p, %q : {whole}, {whole} -> {whole}", f"return %s : {whole}"]
    shape = f"{4 * count}x4"
else:  # what two readers would compute again
    if kind == "free":
        lines = ["%i = nn.iota {dim = 0 : i64} : tensor<4x4xi64>", f"%v1 = nn.cast %i : tensor<4x4xi64> -> {square}"]
        lines += [unary("neg", f"v{i}", f"v{i - 1}") for i in range(2, count)]
    else:
        views = count if kind == "views" else count - 1
        lines = [turned(f"v{i}", f"v{i - 1}" if i else "x") for i in range(views)]
    if kind == "reshape":
        shape = "2x2x4"
        lines += [f"%{last} = nn.reshape %v{count - 2} : {square} -> tensor<2x2x4xf32>"]
    if kind == "parts":
        shape = "4x2"
        lines += [f"%{last} = nn.add %v{count - 2}, %b : {square}, tensor<4xf32> -> {square}"]
        lines += [f"%p{i} = nn.slice %{last} {{starts = array<i64: 0, {2 * i}>, steps = array<i64: 1, 1>}} : {square} -> tensor<4x2xf32>" for i in range(2)]
        lines += [running(f"r{i}", f"p{i}", shape) for i in range(2)]
    else:
        lines += [running(f"r{i}", last, shape) for i in range(2)]
    lines += [f"return %r0, %r1 : tensor<{shape}xf32>, tensor<{shape}xf32>"]
results = f"tensor<{shape}xf32>" if kind in ("ops", "reads") else f"(tensor<{shape}xf32>, tensor<{shape}xf32>)"
print(f"func.func @main(%x: {square}, %b: tensor<4xf32>) -> {results} {{")
print("\n".join("  " + line for line in lines) + "\n}")
