"""curves.py FOLDER METRICS: whether TensorBoard's own reader finds in FOLDER what the metrics of the same run have, each step once."""
import json
import sys

import numpy
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

folder, metrics = sys.argv[1:]
reader = EventAccumulator(folder)
reader.Reload()
found = {tag: {event.step: event.value for event in reader.Scalars(tag)} for tag in reader.Tags()["scalars"]}
for tag in found:
    assert len(reader.Scalars(tag)) == len(found[tag]), f"{tag} has a step twice"
records = list(map(json.loads, open(metrics)))
steps = [record for record in records if "loss" in record]
evaluations = [record for record in records if "evaluation" in record]
single = lambda value: float(numpy.float32(value))
expected = {f"train/{tag}": {record["step"] + 1: single(record[key]) for record in steps}
            for tag, key in (("loss", "loss"), ("learning_rate", "lr"), ("grad_norm", "grad_norm"))}
for key in "loss", "perplexity":
    expected[f"eval/{key}"] = {record["step"] + 1: single(record["evaluation"][key]) for record in evaluations}
expected["train/epoch_loss"] = {record["step"] + 1: single(record["epoch_mean"]["loss"]) for record in steps if "epoch_mean" in record}
for tag, points in expected.items():
    assert found.get(tag, {}) == points, (tag, found.get(tag), points)
for tag, key in ("train/tokens_per_second", "tokens_per_s"), ("train/mfu", "mfu"):
    if any(key in record for record in steps):
        for record in steps:
            assert abs(found[tag][record["step"] + 1] / record[key] - 1) < 1e-3, (tag, record, found[tag])
print(*(f"{tag}:{len(points)}" for tag, points in sorted(found.items())))
