#!/usr/bin/python3
"""The entry `evaluate` of training plans against PyTorch in float64: the loss of held-out batches, by the weights of the model and by those after 3 steps of sgd on other batches, on every
layout, alone and beside training; and that a run which evaluates after every step trains to the same bits as one that never does. Needs python3 and numpy only.

  test/models/evaluation.py [--bin=build/bin] [--models=gpt2-odd/dynamo-eager-op18] ["--layouts=;--tp=2 --pp=2 --dp=2 --micro-batches=2"] [--processes=2] [--random=0.1]
  test/models/evaluation.py --golden      # computes the numbers below, with torch and transformers

--random=RATE: the model has dropout, which training draws and an evaluation does not. The same of another export of the model without dropout, with the weights of the trained one, is compared with too.
"""
import argparse
import json
import os
import re
import sys
import tempfile

import numpy

from model_checks import run_processes

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SHARED = os.path.join(os.path.dirname(ROOT), "shared", "models")
# By PyTorch in float64 (--golden): the loss over the last 4 batches of padded labels, a mean over all of their tokens that count, and their number; by the weights as they are, and after 3
# steps of sgd of rate 0.05 on the first batches without padding.
GOLDEN = {
    "gpt2-tiny": (10.080228271405208, 8.832856917375421, 302),
    "gpt2-odd": (11.004227577571388, 9.6438919781431, 302),
}
BOUND = 2e-6  # relative; as of losses in test/models/train.py

parser = argparse.ArgumentParser()
parser.add_argument("--bin", default=os.path.join(ROOT, "build", "bin"))
parser.add_argument("--models", default="gpt2-odd/dynamo-eager-op18")
parser.add_argument("--layouts", default=";--tp=2;--dp=2;--tp=2 --pp=2 --dp=2 --micro-batches=2")
parser.add_argument("--processes", type=int, default=1)
parser.add_argument("--random", type=float)
parser.add_argument("--golden", action="store_true")
options = parser.parse_args()
folder = tempfile.TemporaryDirectory(prefix="hpc-evaluation-")


def path(name):
    return os.path.join(folder.name, name)


def batches(family):
    tokens = numpy.load(os.path.join(SHARED, family, "train_tokens.npz"))
    return tokens["input_ids"], tokens["padded_labels"]


def golden(family, layers, width, heads, vocabulary, positions, inner):
    import torch
    from transformers import GPT2Config, GPT2LMHeadModel
    model = GPT2LMHeadModel(GPT2Config(n_layer=layers, n_embd=width, n_head=heads, vocab_size=vocabulary, n_positions=positions, n_inner=inner, use_cache=False)).double().eval()
    weights = numpy.load(os.path.join(SHARED, family, "weights.npz"))
    missing = model.load_state_dict({name: torch.tensor(value).double() for name, value in weights.items()}, strict=False)
    assert missing.missing_keys in ([], ["lm_head.weight"]) and not missing.unexpected_keys, missing
    model.tie_weights()
    ids, padded = (torch.tensor(array).long() for array in batches(family))

    def loss(ids, labels, reduction):
        logits = model(input_ids=ids).logits[:, :-1]
        return torch.nn.functional.cross_entropy(logits.reshape(-1, vocabulary), labels[:, 1:].reshape(-1), ignore_index=-100, reduction=reduction)

    def evaluate():
        with torch.no_grad():
            return sum(loss(*batch, "sum").item() for batch in zip(ids[16:], padded[16:])) / (padded[16:, :, 1:] != -100).sum().item()

    numbers = [evaluate()]
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for batch in ids[:3]:
        optimizer.zero_grad()
        loss(batch, batch, "mean").backward()
        optimizer.step()
    return (*numbers, evaluate(), (padded[16:, :, 1:] != -100).sum().item())


def run(tool, *arguments, count=1):
    failed, said = run_processes([os.path.join(options.bin, tool), *arguments], count)
    if failed:
        sys.exit(f"{tool} {' '.join(arguments)}\n" + "\n".join(text[-2000:] for text in said))
    return said[0]


def evaluations(text):
    """(loss, valid tokens) of each line of an evaluation."""
    return [(float(loss), int(count)) for loss, count in re.findall(r"^evaluation.*: loss (\S+), perplexity \S+, valid tokens (\d+), 4 batches", text, re.M)]


def check(what, found, wanted, bound=BOUND):
    error = abs(found / wanted - 1)
    if not error <= bound:
        sys.exit(f"FAILED {what}: {found:.9g}, {wanted:.9g} is right: {error:.1e} of {bound:.0e}")
    return error


def case(model, layout):
    family = model.split("/")[0]
    ids, padded = batches(family)
    numpy.savez(path("train.npz"), input_ids=ids[:3].astype(numpy.int64))
    numpy.savez(path("valid.npz"), input_ids=ids[16:].astype(numpy.int64), labels=padded[16:].astype(numpy.int64))
    before, after, count = GOLDEN[family]
    flags = ["--dim=batch_size=4", "--dim=sequence_length=32", "--train", "--optimizer=sgd"]
    rate = [] if options.random is None else [f"--dropout={options.random}"]
    run("hpc-opt", os.path.join(SHARED, model + ".onnx"), *flags, *rate, "--evaluate", *layout.split(), "-o", path("p.plan"))
    several = {"count": options.processes}
    said = evaluations(run("hpc-run", path("p.plan"), "--evaluate=" + path("valid.npz"), **several))
    if len(said) != 1 or said[0][1] != count:
        sys.exit(f"FAILED {model} {layout}: {said}")
    worst = check(f"{model} {layout}", said[0][0], before)
    train = ["--train", "--data=" + path("train.npz"), "--steps=3", "--lr=0.05"]
    text = run("hpc-run", path("p.plan"), *train, "--evaluate=" + path("valid.npz"), "--eval-every=1", "--poison", "--save=" + path("a.safetensors"), "--metrics=" + path("m.jsonl"), **several)
    said = evaluations(text)
    if [line["step"] for line in map(json.loads, open(path("m.jsonl"))) if "evaluation" in line] != [0, 1, 2] or len(said) != 3:
        sys.exit(f"FAILED {model} {layout}: {text}")
    if options.random is None:
        worst = max(worst, check(f"{model} {layout} after 3 steps", said[2][0], after))
    else:
        run("hpc-opt", os.path.join(SHARED, model.replace("-dropout", "") + ".onnx"), *flags, "--evaluate", "-o", path("none.plan"))
        other = evaluations(run("hpc-run", path("none.plan"), "--evaluate=" + path("valid.npz"), "--load=" + path("a.safetensors")))
        worst = max(worst, check(f"{model} {layout} against the model without dropout", said[2][0], other[0][0]))
    # What evaluates between two steps changes none.
    run("hpc-opt", os.path.join(SHARED, model + ".onnx"), *flags, *rate, *layout.split(), "-o", path("t.plan"))
    run("hpc-run", path("t.plan"), *train, "--save=" + path("b.safetensors"), **several)
    if open(path("a.safetensors"), "rb").read() != open(path("b.safetensors"), "rb").read():
        sys.exit(f"FAILED {model} {layout}: weights differ from those of a run without evaluation")
    return worst


if options.golden:
    for name, sizes in {"gpt2-tiny": (4, 32, 4, 257, 64, None), "gpt2-odd": (3, 40, 5, 503, 48, 72)}.items():
        print(f'    "{name}": {golden(name, *sizes)},')
    sys.exit(0)
errors = [case(model, layout) for model in options.models.split(",") for layout in options.layouts.split(";")]
print(f"{len(errors)} passed, worst {max(errors):.1e} of {BOUND:.0e}")
