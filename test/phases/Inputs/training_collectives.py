"""The collectives of gpt2-odd's training step with tp=2 and two micro-batches, of 4 x 33 tokens: an activation box [2, 33, 40] is 10,560 bytes, a row statistic [2, 33] 264."""
import collections
import json
import sys

told = json.load(open(sys.argv[1]))
assert {tuple(entry["axes"]) for entry in told["collectives"]} == {("tp",)}
assert {entry["kind"] for entry in told["collectives"]} == {"all_reduce"}, "nothing is gathered: no logits, no gradient"
count = collections.Counter((entry["bytes"], entry["runs"]) for entry in told["collectives"])
assert count.pop((10560, 2)) == 14, count
# Of the loss: maximum, sum of exponentials and the label's logit; the last two may be one.
small = {key: number for key, number in count.items() if key[1] == 2}
assert sum(small.values()) <= 3 and all(bytes in (264, 528) for bytes, _ in small), count
# The norm: squares of what is cut are partial sums, of what is whole counted once.
assert {key: number for key, number in count.items() if key[1] == 1} == {(4, 1): 1}, count
backward = [entry["path"] for entry in told["collectives"] if entry["bytes"] == 10560][7:]
print(len(told["collectives"]), "collectives; those of backward:", backward)
