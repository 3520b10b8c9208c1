"""The grid of training steps whose gradients and states train.py --grid compares with the truth: which cases there are, and in which order they are run.
The order is chosen without chance: each case adds as many new pairs of values (export, schedule, tp, ...) as one can, so a grid that is stopped has seen most.
"""
import collections
import itertools
import os

import numpy

MOST_RANKS = 8
TP, PP, DP, MICRO_BATCHES, ZERO = (1, 2, 3, 4), (1, 2, 3), (1, 2), (1, 2), (0, 1, 2, 3)
SCHEDULES = ("gpipe", "1f1b", "interleaved", "zb-h1", "file")
OPTIMIZERS = ("sgd", "momentum", "adamw", "lamb")
FOLDERS = ("gpt2-tiny", "gpt2-odd")

Case = collections.namedtuple("Case", "export tp pp dp zero micro_batches schedule optimizer")


def exports(shared):
    """Every export that has gradients: a decoding step (-past) has none."""
    files = [(folder, file) for folder in FOLDERS for file in sorted(os.listdir(os.path.join(shared, folder)))]
    return [f"{folder}/{file[:-len('.onnx')]}" for folder, file in files if file.endswith(".onnx") and not file.endswith("-past.onnx")]


def chunks(case):
    """Only interleaved has parts of the model that are no neighbours on a stage."""
    return 2 if case.schedule == "interleaved" else 1


def repeats(case):
    """How often the batch is repeated, which changes neither the loss nor gradients: a user's own order of micro-batches is one from three on, as 0 has to be first."""
    return 2 if case.schedule == "file" and case.micro_batches > 1 else 1


def schedule(case, folder):
    """Its name; of "file" a file like no other schedule: weights' gradients when all else is done, each kind of program in an order of its own."""
    if case.schedule != "file":
        return case.schedule
    order = ([0], [0], [0]) if case.micro_batches == 1 else ([0, 3, 1, 2], [0, 2, 3, 1], [0, 1, 3, 2])
    stage = [f"{kind}{i}" for kind, numbers in zip("FBW", order) for i in numbers] + ["U"]
    name = os.path.join(folder, f"pp{case.pp}-mb{case.micro_batches}.txt")
    with open(name, "w") as file:
        file.write((" ".join(stage) + "\n") * case.pp)
    return name


def flags(case, folder):
    """What hpc-opt is told; a file of a schedule is written into the folder."""
    return [f"--tp={case.tp}", f"--pp={case.pp}", f"--dp={case.dp}", f"--zero={case.zero}", f"--micro-batches={case.micro_batches * repeats(case)}",
            f"--pp-schedule={schedule(case, folder)}", f"--pp-chunks={chunks(case)}"]


def all_cases(blocks):
    """All of them, given how many blocks each export has: no more parts can be cut. ZeRO is about dp, so without it there is level 0 only. Each case draws one
    optimizer, always the same."""
    every = (Case(*values, None) for values in itertools.product(blocks, TP, PP, DP, ZERO, MICRO_BATCHES, SCHEDULES))
    cases = [c for c in every if c.tp * c.pp * c.dp <= MOST_RANKS and c.pp * chunks(c) <= blocks[c.export] and (c.dp > 1 or c.zero == 0)]
    drawn = numpy.random.default_rng(28).integers(0, len(OPTIMIZERS), len(cases))
    return [case._replace(optimizer=OPTIMIZERS[number]) for case, number in zip(cases, drawn)]


def ordered(cases):
    """The cases that cover all pairs of values, as few as a greedy choice gives, before all others; and how many those are."""
    numbers = {}
    rows = [[numbers.setdefault(pair, len(numbers)) for pair in itertools.combinations(enumerate(case), 2)] for case in cases]
    holds = numpy.zeros((len(cases), len(numbers)), numpy.float32)
    for case, row in enumerate(rows):
        holds[case, row] = 1
    missing, first = numpy.ones(len(numbers), numpy.float32), []
    while missing.any():
        first.append(int(numpy.argmax(holds @ missing)))
        missing[rows[first[-1]]] = 0
    chosen = set(first)
    return [cases[i] for i in first] + [case for i, case in enumerate(cases) if i not in chosen], len(first)
