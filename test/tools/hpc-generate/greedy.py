"""greedy.py PLAN ANSWERS.jsonl COUNT: whether each new id is the largest logit of the whole forward pass over the ids before it; there are COUNT answers.
PLAN is the model compiled for [COUNT, L]; ids after the answers' ends change nothing, since attention is causal."""
import json
import subprocess
import sys
import tempfile

import numpy

plan, answers, count = sys.argv[1], [json.loads(line) for line in open(sys.argv[2])], int(sys.argv[3])
assert len(answers) == count, len(answers)
facts = json.loads(subprocess.run(["hpc-plan", plan, "--json"], capture_output=True, text=True, check=True).stdout)
shapes = {port["name"]: port["shape"] for port in facts["inputs"]}
ids = numpy.zeros(shapes["input_ids"], numpy.int64)
for row, answer in zip(ids, answers):
    whole = answer["prompt_ids"] + answer["ids"]
    row[: len(whole) - 1] = whole[:-1]  # the last id is nobody's input
inputs = {name: ids if name == "input_ids" else numpy.ones(shape, numpy.int64) for name, shape in shapes.items()}
with tempfile.TemporaryDirectory() as folder:
    numpy.savez(f"{folder}/in.npz", **inputs)
    subprocess.run(["hpc-run", plan, f"--input={folder}/in.npz", f"--output={folder}/out.npz"], check=True)
    logits = next(iter(numpy.load(f"{folder}/out.npz").values()))
for number, answer in enumerate(answers):
    begin = len(answer["prompt_ids"])
    for step, new in enumerate(answer["ids"]):
        row = logits[number, begin + step - 1]
        assert row[new] >= row.max() - 1e-5, f"answer {number}, new id {step}: {new} with logit {row[new]}, and {row.argmax()} has {row.max()}"
print(f"{sum(len(answer['ids']) for answer in answers)} ids are the largest logits")
