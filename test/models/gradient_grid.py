"""The grid of training steps whose gradients and states train.py --grid compares with the truth: which cases there are, and in which order they are run.
The order is chosen without chance: each case adds as many new pairs of values (export, schedule, layout, ...) as one can, so a grid that is stopped has seen most.
"""
import collections
import itertools
import os
import sys

import numpy

sys.path.insert(1, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from arrangements import ARRANGED, PLAIN, SEQUENCE, ranks  # noqa: E402

MOST_RANKS, MOST_ARRANGED = 8, 16
PP, DP, MICRO_BATCHES, ZERO = (1, 2, 3), (1, 2), (1, 2), (0, 1, 2, 3)
SCHEDULES = ("gpipe", "1f1b", "interleaved", "zb-h1", "file")
OPTIMIZERS = ("sgd", "momentum", "adamw", "lamb")
FOLDERS = ("gpt2-tiny", "gpt2-odd")

Case = collections.namedtuple("Case", "export layout pp dp zero micro_batches schedule optimizer")


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
    return [*case.layout.split(), f"--pp={case.pp}", f"--dp={case.dp}", f"--zero={case.zero}", f"--micro-batches={case.micro_batches * repeats(case)}",
            f"--pp-schedule={schedule(case, folder)}", f"--pp-chunks={chunks(case)}"]


def is_asked(case, blocks):
    """No more parts can be cut than there are blocks. ZeRO is about ranks with other rows. Of layouts that are not plain, one of each kind of ZeRO, and a schedule
    for stages and one without."""
    if case.pp * chunks(case) > blocks[case.export] or case.layout == "--tp=5":
        return False
    if case.layout in PLAIN:
        return ranks(case.layout) * case.pp * case.dp <= MOST_RANKS and (case.dp > 1 or case.zero == 0)
    return (ranks(case.layout) * case.pp * case.dp <= MOST_ARRANGED and case.pp < 3 and case.zero in (0, 1, 3) and
            case.schedule == ("gpipe" if case.pp == 1 else "1f1b" if case.micro_batches == 1 else "zb-h1"))


def all_cases(blocks):
    """All of them, given how many blocks each export has. Each case draws one optimizer, always the same."""
    every = (Case(*values, None) for values in itertools.product(blocks, PLAIN + ARRANGED + SEQUENCE, PP, DP, ZERO, MICRO_BATCHES, SCHEDULES))
    cases = [case for case in every if is_asked(case, blocks)]
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
