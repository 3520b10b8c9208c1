"""Prints a serial program of `nn` that is long, deep or repeats itself: programs.py FAMILY N. Every family grows by one piece per N.
FAMILIES below says what each is for. Values have 4x8 elements unless a family says otherwise; the one weight is 8x8 and inside."""
import sys

X = "tensor<4x8xf32>"


class Program:
    def __init__(self, arguments, result):
        self.arguments, self.result = arguments, result
        self.lines, self.count = [], 0

    def op(self, text, operands, types, result, attributes=""):
        self.count += 1
        name = f"%{self.count}"
        self.lines.append(f"    {name} = nn.{text} {', '.join(operands)}{attributes} : {', '.join(types)} -> {result}")
        return name

    def unary(self, text, x, type=X):
        return self.op(text, [x], [type], type)

    def binary(self, text, x, y, type=X):
        return self.op(text, [x, y], [type, type], type)

    def source(self, text):
        self.count += 1
        self.lines.append(f"    %{self.count} = nn.{text}")
        return f"%{self.count}"

    def weight(self, name="w"):
        return self.source(f'parameter "{name}" {{value = dense<0.125> : tensor<8x8xf32>}} : tensor<8x8xf32>')

    def product(self, x, weight):
        return self.op("matmul", [x, weight], [X, "tensor<8x8xf32>"], X)

    def text(self, result):
        arguments = ", ".join(f'%{name}: {type} {{nn.name = "{name}"}}' for name, type in self.arguments.items())
        body = "\n".join(self.lines)
        return (f"module {{\n  func.func @main({arguments}) -> {self.result} {{\n{body}\n"
                f"    return {result} : {self.result}\n  }}\n}}")


def between_products(piece):
    """A product with a weight, N pieces, the product again: what tensor parallelism traces through."""
    def family(n):
        program = Program({"x": X, "y": X}, X)
        weight = program.weight()
        x = program.product("%x", weight)
        for i in range(n):
            x = piece(program, i, x)
        return program.text(program.product(x, weight))
    return family


def chain(program, i, x):
    return program.unary(["tanh", "sin", "neg", "relu", "exp", "sigmoid"][i % 6], x)


def views(program, i, x):
    parted = program.op("reshape", [x], [X], "tensor<4x2x4xf32>")
    turned = program.op("transpose", [parted], ["tensor<4x2x4xf32>"], "tensor<4x4x2xf32>", " {permutation = array<i64: 0, 2, 1>}")
    return program.op("reshape", [turned], ["tensor<4x4x2xf32>"], X)


def norms(program, i, x):
    return program.op("layer_norm", [x], [X], X, " {epsilon = 1.0e-5 : f64}")


def layers(n):
    """Products with N different weights, a residual round each."""
    program = Program({"x": X}, X)
    x = "%x"
    for i in range(n):
        x = program.binary("add", x, program.unary("relu", program.product(x, program.weight(f"w{i}"))))
    return program.text(x)


def fan(n):
    """A chain whose every value is read once more at the end, the last one first: all are live at once."""
    program = Program({"x": X}, X)
    values = [program.product("%x", program.weight())]
    for i in range(n):
        values.append(chain(program, i, values[-1]))
    total = values.pop()
    while values:
        total = program.binary("add", total, values.pop())
    return program.text(total)


def scalars(n):
    """A constant behind N views, as a factor."""
    program = Program({"x": X}, X)
    scalar = program.source("constant dense<2.0> : tensor<1x1xf32> : tensor<1x1xf32>")
    x = "%x"
    for i in range(n):
        scalar = program.op("reshape" if i % 2 else "broadcast", [scalar], ["tensor<1x1xf32>" if i % 2 == 0 else "tensor<1x1x1xf32>"],
                            "tensor<1x1x1xf32>" if i % 2 == 0 else "tensor<1x1xf32>")
    last = "tensor<1x1x1xf32>" if n % 2 else "tensor<1x1xf32>"
    x = program.op("reshape", [scalar], [last], "tensor<1x1xf32>")
    for _ in range(max(1, n // 2)):
        product = program.op("mul", ["%x", x], [X, "tensor<1x1xf32>"], X)
    return program.text(product)


SCORES, HEADS, MASK, BIAS = "tensor<2x3x8x8xf32>", "tensor<2x3x8x4xf32>", "tensor<1x1x8x8xi1>", "tensor<1x1x8x8xf32>"


def attention(change):
    """softmax(change(q k^T)) v."""
    def family(n):
        program = Program({"q": HEADS, "k": HEADS, "v": HEADS, "m": MASK, "b": BIAS}, HEADS)
        scores = program.op("matmul", ["%q", "%k"], [HEADS, HEADS], SCORES, " {transpose_rhs}")
        weights = program.unary("softmax", change(program, n, scores), SCORES)
        return program.text(program.op("matmul", [weights, "%v"], [SCORES, HEADS], HEADS))
    return family


def and_mask(program, n, scores):
    mask = "%m"
    for _ in range(n):
        mask = program.binary("and", mask, mask, MASK)
    low = program.source("constant dense<0xFF800000> : tensor<f32> : tensor<f32>")
    return program.op("select", [mask, scores, low], [MASK, SCORES, "tensor<f32>"], SCORES)


def doubled_bias(program, n, scores):
    bias = "%b"
    for _ in range(n):
        bias = program.binary("add", bias, bias, BIAS)
    return program.op("add", [scores, bias], [SCORES, BIAS], SCORES)


def doubled_scores(program, n, scores):
    for _ in range(n):
        scores = program.binary("add", scores, scores, SCORES)
    return scores


def doubled_positions(program, n, scores):
    row = program.source("iota {dim = 2 : i64, start = 0 : i64, step = 1 : i64} : tensor<1x1x8x1xi64>")
    column = program.source("iota {dim = 3 : i64, start = 0 : i64, step = 1 : i64} : tensor<1x1x1x8xi64>")
    for _ in range(n):
        row = program.binary("add", row, row, "tensor<1x1x8x1xi64>")
    mask = program.op("compare ge", [row, column], ["tensor<1x1x8x1xi64>", "tensor<1x1x1x8xi64>"], MASK)
    low = program.source("constant dense<0xFF800000> : tensor<f32> : tensor<f32>")
    return program.op("select", [mask, scores, low], [MASK, SCORES, "tensor<f32>"], SCORES)


def given_attention(n):
    """An attention of the model's own with a bias that is added to itself N times."""
    program = Program({"q": HEADS, "k": HEADS, "v": HEADS, "b": BIAS}, HEADS)
    bias = "%b"
    for _ in range(n):
        bias = program.binary("add", bias, bias, BIAS)
    return program.text(program.op(f"attention %q, %k, %v bias {bias} : {BIAS}", [], [HEADS, HEADS, HEADS], HEADS,
                                   "{scale = 0.5 : f64}"))


def gelu_argument(program, i, x):
    """tanh of a polynomial whose terms double, and what doubles behind it: half of the pieces each."""
    return program.binary("add", program.binary("mul", x, x), x)


def gelu(n):
    program = Program({"x": X}, X)
    x = "%x"
    for i in range(n):
        x = gelu_argument(program, i, x)
    x = program.unary("tanh", x)
    for i in range(n):
        x = gelu_argument(program, i, x)
    return program.text(x)


FAMILIES = {
    # deep: a walk that recurses along operands or users runs out of stack
    "chain": between_products(chain),
    "sum": between_products(lambda program, i, x: program.binary("add", x, "%y")),
    "views": between_products(views),
    "norms": between_products(norms),
    "layers": layers,
    "fan": fan,
    "scalars": scalars,
    # doubling: a walk that visits a value once per path needs 2^N steps
    "doubled": between_products(lambda program, i, x: program.binary("add", x, x)),
    "squared": between_products(lambda program, i, x: program.binary("mul", x, x)),
    "swish": between_products(lambda program, i, x: program.binary("mul", x, program.unary("sigmoid", x))),
    "gelu": gelu,
    "and-mask": attention(and_mask),
    "doubled-bias": attention(doubled_bias),
    "doubled-scores": attention(doubled_scores),
    "doubled-positions": attention(doubled_positions),
    "given-attention": given_attention,
}

if __name__ == "__main__":
    print(FAMILIES[sys.argv[1]](int(sys.argv[2])))
