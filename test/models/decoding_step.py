#!/usr/bin/python3
"""Steps of decoding of gpt2-odd against PyTorch's logits of the whole text: keys and values of the text before are inputs, made by the steps before. The last one gives logits alone,
so its keys are put together with the others nowhere, and no kernel of its plan is a concatenation.

  decoding_step.py FOLDER_OF_GPT2_ODD SCRATCH "BOUND FLAGS" ...     for each string of flags: how far off it is, of max |logit|; FAR if by more than BOUND

Needs hpc-opt, hpc-run and hpc-plan on the PATH and numpy.
"""
import os
import subprocess
import sys

import numpy

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from wire_format import BYTES, field, fields  # noqa: E402

folder, scratch, *runs = sys.argv[1:]
model, logits_alone = f"{folder}/torchscript-op14-past.onnx", f"{scratch}.onnx"
tokens, true = numpy.load(f"{folder}/inputs_1.npz")["input_ids"], numpy.load(f"{folder}/expected_1.npz")["logits"]
BATCH, STEPS = len(tokens), 9


def without_present(data):
    """The model without the outputs that are not logits: fields 12 of its graph, field 7, named by field 1 each."""
    def kept(graph):
        outputs = [each for each in fields(graph) if each.number == 12]
        assert any(b"logits" in each.value for each in outputs) and len(outputs) > 1
        return b"".join(each.raw for each in fields(graph) if each.number != 12 or b"logits" in each.value)
    return b"".join(field(7, kept(each.value)) if (each.number, each.kind) == (7, BYTES) else each.raw for each in fields(data))


def run(*command, **options):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **options)
    if done.returncode:
        sys.exit(f"{' '.join(command)}\n{done.stdout}")
    return done.stdout


def step(path, flags, past, cache, on=()):
    """What a model makes of the token behind `past` others, and the plan."""
    plan, given, got = f"{scratch}.plan", f"{scratch}.in.npz", f"{scratch}.out.npz"
    run("hpc-opt", path, f"--dim=batch_size={BATCH}", "--dim=sequence_length=1", f"--dim=past_sequence_length={past}", *flags, "-o", plan)
    numpy.savez(given, input_ids=tokens[:, past:past + 1], attention_mask=numpy.ones((BATCH, past + 1), numpy.int64),
                position_ids=numpy.full((BATCH, 1), past), **cache)
    run("hpc-run", plan, f"--input={given}", f"--output={got}", "--poison", *on)
    return dict(numpy.load(got)), run("hpc-plan", plan)


with open(model, "rb") as file, open(logits_alone, "wb") as copy:
    copy.write(without_present(file.read()))
cache = {f"past_key_values.{layer}.{part}": numpy.zeros((BATCH, 5, 0, 8), numpy.float32) for layer in range(3) for part in ("key", "value")}
for past in range(STEPS):
    present, _ = step(model, (), past, cache)
    cache = {name.replace("present", "past_key_values"): value for name, value in present.items() if name != "logits"}
for line in runs:
    bound, *flags = line.split()
    for on in [()] if "--target=host,cuda" not in flags else [(), ("--backend=cuda", "--ranks-per-gpu=8")]:
        outputs, plan = step(logits_alone, flags, STEPS, cache, on)
        error = numpy.abs(outputs["logits"].astype(numpy.float64) - true[:, STEPS:STEPS + 1]).max() / numpy.abs(true).max()
        print(f"{'near' if error <= float(bound) else 'FAR'}: {error:.2g}, {' '.join((*flags, *on)) or 'one rank'}")
        if "concat" in plan:
            print("COPIED: keys or values are put together in memory")
