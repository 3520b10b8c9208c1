#!/usr/bin/env python3
"""Times each kind of generated kernel and its gradient beside a copy of as many bytes: python3 test/bench/kernel_speed.py [BIN ...] [--only=NAME] [--rounds=5]

A line for each: bytes that it has to read and write once, the time of a copy of as many (numpy's, one thread, in turns; of an embedding from as many random places), the time of as many arithmetic operations on vectors as its
formula has (OPERATIONS below, at the speed of multiplications on operands in the nearest cache, in turns too), and its own best time over the longer of the two: 1.0 is the speed of memory
or of arithmetic. Then the same for operands that lie in the caches. The code of hpc-opt is called here, kernel after kernel, without what
brings inputs and takes results away in a run. BIN is a folder with hpc-opt (build/bin if none is named), several are timed in turns. Gradients are those that
hpc-build-gradients makes, the optimizer is hpc-append-optimizer's. Needs numpy.
"""
import argparse, ctypes, re, subprocess, tempfile, time
import numpy

def tensor(*shape, element="f32"):
    return "tensor<" + "".join(f"{size}x" for size in shape) + element + ">"

class Case:
    """A function of parameters (which gradients are of) and inputs, given as {name: type}; `body` computes %y of the type `result`."""
    def __init__(self, parameters, inputs, body, result, indices=0):
        self.parameters, self.inputs, self.body, self.result, self.indices = parameters, inputs, body, result, indices

    def module(self, gradient):
        inputs = dict(self.inputs, **({"g": self.result} if gradient else {}))
        lines = [f'%{name} = nn.parameter "{name}" stored <file = "w", bytes = {bytes_of(type)}> : {type}' for name, type in self.parameters.items()]
        lines += self.body
        if gradient:  # of the sum of y * g
            ones = re.sub(r"\d+x", "1x", self.result)
            rank = self.result.count("x")
            lines += [f"%p = nn.mul %y, %g : {self.result}, {self.result} -> {self.result}",
                      f"%s = nn.reduce sum %p {{axes = array<i64: {', '.join(map(str, range(rank)))}>}} : {self.result} -> {ones}",
                      f"%loss = nn.reshape %s : {ones} -> tensor<f32>", "return %loss : tensor<f32>"]
            results = 'tensor<f32> {nn.name = "loss"}'
        else:
            lines.append(f"return %y : {self.result}")
            results = f'{self.result} {{nn.name = "y"}}'
        return function(inputs, results, lines)

def function(inputs, results, lines):
    arguments = ", ".join(f'%{name}: {type} {{nn.name = "{name}"}}' for name, type in inputs.items())
    return f"module {{\nfunc.func @main({arguments}) -> ({results}) {{\n" + "\n".join(lines) + "\n}\n}\n"

def shape_of(type):
    return [int(size) for size in re.findall(r"(\d+)x", type)]

def bytes_of(type):
    return int(numpy.prod(shape_of(type), dtype=int)) * int(re.search(r"[fi](\d+)>", type)[1]) // 8

def standalone(text):
    """The function with parameters, states and step scalars as inputs, and all that it returns as results but what is no tensor or an input."""
    text = re.sub(r' loc\(.*?\)$', "", text, flags=re.M)
    inputs = {name: (type, re.search(r'"([^"]*)"', attributes)[1]) for name, type, attributes in
              re.findall(r"(%\w+): (tensor<\w+>) \{([^}]*)\}", text[:text.index("->")])}
    for value, name, type in re.findall(r'(%\w+) = nn\.parameter "(\w+)" \{.*?\} : (tensor<\w+>)', text):
        inputs[value] = (type, name)
    values, types = re.search(r"return (.*?) : (.*)", text).groups()
    results = [(value, type) for value, type in zip(values.split(", "), types.split(", ")) if value not in inputs and "x" in type]
    body = [line for line in text[text.index("{\n", text.index("func.func")) + 2:text.index("return ")].splitlines() if "nn.parameter" not in line]
    arguments = ", ".join(f'{value}: {type} {{nn.name = "{name}"}}' for value, (type, name) in inputs.items())
    named = ", ".join(f'{type} {{nn.name = "r{i}"}}' for i, (_, type) in enumerate(results))
    text = (f'module attributes {{hpc.phase = "raise"}} {{\nfunc.func @main({arguments}) -> ({named}) {{\n' + "\n".join(body)
            + f"\nreturn {', '.join(value for value, _ in results)} : {', '.join(type for _, type in results)}\n}}\n}}\n")
    return text, {name: type for type, name in inputs.values()}, [type for _, type in results]

def cases(rows, wide):
    """`rows` of 768 numbers; `wide`: of a vocabulary's."""
    x, w, y = tensor(rows, 768), tensor(768), tensor(rows // 4, 3072)
    logits, labels, losses = tensor(wide, 50257), tensor(wide, element="i64"), tensor(wide)
    table, ids = tensor(50257, 768), tensor(rows, element="i64")
    return {
        "layer norm": Case({"x": x, "w": w, "b": w}, {}, [f"%y = nn.layer_norm %x weight %w : {w} bias %b : {w} {{epsilon = 1.0e-5 : f64}} : {x} -> {x}"], x),
        "softmax": Case({"x": x}, {}, [f"%y = nn.softmax %x : {x} -> {x}"], x),
        "GELU (tanh)": Case({"x": y}, {}, [f"%y = nn.gelu %x {{tanh_approximation}} : {y} -> {y}"], y),
        "GELU (erf)": Case({"x": y}, {}, [f"%y = nn.gelu %x : {y} -> {y}"], y),
        "cross entropy": Case({"x": logits}, {"labels": labels},
                              [f"%y, %t, %share = nn.cross_entropy %x, %labels {{ignore_index = -100 : i64}} : {logits}, {labels} -> {losses}, {losses}, {losses}"], losses),
        "embedding": Case({"x": table}, {"ids": ids}, [f"%y = nn.embedding %x, %ids {{vocabulary = 50257 : i64}} : {table}, {ids} -> {x}"], x, rows * 768 * 4),
        "AdamW": Case({"x": y}, {}, [], y),
    }

# Vector operations of an element, forward and in the gradient, as the ops' definitions and passes/Kernels/Elements/Approximations.cpp have them: an fma, a comparison, a selection or a division counts
# as one. exp: 18 (14 below 0, as of a row minus its maximum), 1 + exp: 14, erf: 31.
OPERATIONS = {"layer norm": (8, 21), "softmax": (18, 22), "GELU (tanh)": (18, 26), "GELU (erf)": (27, 59), "cross entropy": (17, 40), "embedding": (0, 0), "AdamW": (0, 14)}

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("bins", nargs="*", default=["build/bin"]), parser.add_argument("--only", default="")
parser.add_argument("--rounds", type=int, default=5)
arguments = parser.parse_args()
random = numpy.random.default_rng(0)

NUMPY = {"f32": "f4", "f64": "f8", "i64": "i8", "i1": "u1"}

def split(list):
    """What commas divide outside of brackets."""
    parts, depth = [""], 0
    for character in list:
        depth += (character in "([<{") - (character in ")]>}")
        if character == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    return [part.strip() for part in parts if part.strip()]

def array_of(type):
    """Filled, and at the start of a page as the runtime's buffers are."""
    element = numpy.dtype(NUMPY[re.search(r"(\w+?)(, #.*)?>$", type)[1].split("x")[-1]])
    count = int(numpy.prod(shape_of(type), dtype=int))
    room = numpy.empty(count * element.itemsize + 4096, "u1")
    start = -room.ctypes.data % 4096
    array = room[start:start + count * element.itemsize].view(element)
    array[:] = random.integers(0, 50257, count) if element.kind == "i" else numpy.abs(random.standard_normal(count))
    return array

class Kernels:
    """The kernels of a module behind the phase of that name, in their order, on memory of their own."""
    def __init__(self, binary, module, object):
        text = subprocess.run([f"{binary}/hpc-opt", module, "--compile-to=kernels"], check=True, capture_output=True, text=True).stdout
        open(object, "wb").write(bytes.fromhex(re.search(r'hpc\.code = dense<"0x([0-9A-F]*)">', text)[1]))
        code, values, self.calls = ctypes.CDLL(object), {}, []
        for line in text.splitlines():
            if found := re.match(r"\s*\^bb0\((.*)\):$", line):
                if not self.calls and not values:  # the stage's
                    values = {name: array_of(type) for name, type in (argument.split(": ", 1) for argument in split(found[1]))}
            elif found := re.match(r"\s*(%\w+) = nn\.reshape (%[\w#]+) ", line):
                values[found[1]] = values.get(found[2])  # inside a region nobody asks
            elif found := re.match(r'\s*(%\w+)(:\d+)? = nn\.fused "(\w+)"\((.*?)\) \{(.*)rows = (\d+) : i64, scalars = \[\]\} : \(.*?\) -> (.*) \{$', line):
                name, several, symbol, operands, attributes, rows, types = found.groups()
                taken = [values[operand] for operand in split(operands)]
                types = split(types[1:-1] if types.startswith("(") else types)
                in_place = re.search(r"in_place = array<i64: ([-\d, ]*)>", attributes)
                places = [int(place) for place in in_place[1].split(",")] if in_place else [-1] * len(types)
                results = [taken[place] if place >= 0 else array_of(type) for place, type in zip(places, types)]
                for i, result in enumerate(results):
                    values[f"{name}#{i}" if several else name] = result
                function = code[symbol]
                function.argtypes, function.restype = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64], None
                self.calls.append((function, (ctypes.c_void_p * len(taken + results))(*(array.ctypes.data for array in taken + results)), int(rows)))
            elif "nn.fused" in line:
                raise SystemExit(f"{module}: a kernel that this program cannot call: {line.strip()}")
        self.values = values  # whose memory the calls use

    def seconds(self, repeat):
        """Without what it takes Python to call them."""
        def best(share):
            least = 1e9
            for _ in range(repeat):
                start = time.perf_counter()
                for function, arguments, rows in self.calls:
                    function(arguments, None, 0, rows * share)
                least = min(least, time.perf_counter() - start)
            return least
        return best(1) - best(0)

def copy_seconds(size):
    source = numpy.ones(size // 8, "f4")  # half is read, half written
    room = numpy.zeros(size // 8 + 2048, "f4")
    start = (source.ctypes.data + 2048 - room.ctypes.data) % 4096 // 4  # half a page apart: as far as loads and stores can be from looking alike
    target = room[start:start + size // 8]
    return least_seconds(size, lambda: numpy.copyto(target, source))

def lookup_seconds(size, table):
    """The same of rows from random places of a table."""
    vocabulary, width = shape_of(table)
    source, target = array_of(table).reshape(vocabulary, width), numpy.zeros((size // 8 // width, width), "f4")
    ids = array_of(tensor(len(target), element="i64"))
    return least_seconds(size, lambda: numpy.take(source, ids, axis=0, out=target, mode="clip"))

def least_seconds(size, copy):
    best = 1e9
    for _ in range(max(10, min(3000, (1 << 30) // size))):
        start = time.perf_counter()
        copy()
        best = min(best, time.perf_counter() - start)
    return best

class Arithmetic:
    """Many rows of products with one row in the nearest cache, added up: how long an operation on an element takes where nothing else is to do."""
    FACTORS, ROWS, LENGTH = 8, 256, 2048
    def __init__(self, folder):
        row, rows, factor = tensor(self.LENGTH), tensor(self.ROWS, self.LENGTH), tensor(self.ROWS, 1)
        lines = [f"%p0 = nn.mul %x, %f : {row}, {factor} -> {rows}"]
        lines += [f"%p{i} = nn.mul %p{i - 1}, %f : {rows}, {factor} -> {rows}" for i in range(1, self.FACTORS)]
        lines += [f"%y = nn.reduce sum %p{self.FACTORS - 1} {{axes = array<i64: 1>}} : {rows} -> {factor}", f"return %y : {factor}"]
        text = function({"x": row, "f": factor}, f'{factor} {{nn.name = "y"}}', lines)
        open(f"{folder}/arithmetic.mlir", "w").write(text.replace("module {", 'module attributes {hpc.phase = "raise"} {', 1))
        self.kernels = Kernels(arguments.bins[0], f"{folder}/arithmetic.mlir", f"{folder}/arithmetic.so")
    def seconds(self):
        return self.kernels.seconds(50) / ((self.FACTORS + 1) * self.ROWS * self.LENGTH)

def measure(folder, arithmetic, case, kind, operations):
    if kind == "optimizer":
        (name, type), = case.parameters.items()
        text = function({"g": type}, f'{type} {{nn.gradient = "{name}"}}', [case.module(False).splitlines()[2], f"return %g : {type}"])
        passes = ["--hpc-append-optimizer=optimizer=adamw weight-decay=0.01"]
    else:
        text, passes = case.module(kind == "gradient"), ["--hpc-build-gradients"] if kind == "gradient" else []
    open(f"{folder}/a.mlir", "w").write(text)
    best, copied, computed, kernels = [1e9] * len(arguments.bins), 1e9, 1e9, []
    elements = max(bytes_of(type) for type in case.parameters.values()) // 4
    for i, each in enumerate(arguments.bins):
        made = subprocess.run([f"{each}/hpc-opt", f"{folder}/a.mlir", *passes], check=True, capture_output=True, text=True).stdout
        text, inputs, results = standalone(made)
        open(f"{folder}/b.mlir", "w").write(text)
        kernels.append(Kernels(each, f"{folder}/b.mlir", f"{folder}/{i}-{time.monotonic_ns()}.so"))
    used = {name: type for name, type in inputs.items() if re.search(rf'nn.name = "{re.escape(name)}"', text)}
    size = sum(map(bytes_of, [*used.values(), *results]))
    is_lookup = case.indices and kind == "forward"
    if is_lookup:  # of the table only the rows that are named
        size += case.indices - bytes_of(case.parameters["x"])
    for _ in range(arguments.rounds):
        copied = min(copied, lookup_seconds(size, case.parameters["x"]) if is_lookup else copy_seconds(size))
        computed = min(computed, arithmetic.seconds() * operations * elements)
        for i, each in enumerate(kernels):
            best[i] = min(best[i], each.seconds(max(10, min(2000, (1 << 30) // size))))
    return size, copied, computed, best

with tempfile.TemporaryDirectory() as folder:
    arithmetic = Arithmetic(folder)
    for name in cases(1, 1):
        if arguments.only not in name:
            continue
        for kind in ["optimizer"] if name == "AdamW" else ["forward", "gradient"]:
            texts = []
            for rows, wide in ((2048, 32), (64, 1)):  # short enough for a busy machine to leave alone
                operations = OPERATIONS[name][kind != "forward"]
                size, copied, computed, best = measure(folder, arithmetic, cases(rows, wide)[name], kind, operations)
                times = ", ".join(f"{1e6 * time:6.0f} us ({time / max(copied, computed):.2f})" for time in best)
                texts.append(f"{size / 1e6:6.2f} MB, copy {1e6 * copied:5.0f}, arithmetic {1e6 * computed:5.0f}: {times}")
            print(f"{name + ('' if kind == 'optimizer' else ', ' + kind):24} {texts[0]}; in caches {texts[1]}", flush=True)
