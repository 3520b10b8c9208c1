"""gpt2-odd's training step of 4 x 33 tokens in two micro-batches, as the worked example has it: training_collectives.py WHICH EXPLAINED.json, where WHICH is tp (tp=2), dp (tp=2
dp=2) or pp (tp=2 pp=2). An activation box [2, 33, 40] is 10,560 bytes, a row statistic [2, 33] 264, half of each with dp."""
import collections
import json
import sys

which, file = sys.argv[1:]
told = json.load(open(file))
half = 2 if which == "dp" else 1
over = collections.defaultdict(list)
for entry in told["collectives"]:
    over[tuple(entry["axes"])].append(entry)
assert set(over) == ({("tp",), ("dp",)} if which == "dp" else {("tp",)}), set(over)
assert {entry["kind"] for entry in told["collectives"]} == {"all_reduce"}, "nothing is gathered: no logits, no gradient"
count = collections.Counter((entry["bytes"], entry["runs"]) for entry in over[("tp",)])
assert count.pop((10560 // half, 2)) == 14, count
# Of the loss: maximum, sum of exponentials and the label's logit; the last two may be one.
small = {key: number for key, number in count.items() if key[1] == 2}
assert sum(small.values()) <= 3 and all(bytes in (264 // half, 528 // half) for bytes, _ in small), count
# The norm: squares of what is cut are partial sums, of what is whole counted once.
assert {key: number for key, number in count.items() if key[1] == 1} == {(4, 1): 1}, count
backward = [entry["path"] for entry in over[("tp",)] if entry["bytes"] == 10560 // half and entry["program"] != "forward"]

if which == "dp":
    # Every gradient once a step, cut ones by their box; the sum of the loss and the count of tokens.
    block = 2 * 40 + 40 * 72 + 72 + 24 * 40 + 40 + 2 * 40 + 40 * 36 + 36 + 36 * 40 + 40
    numbers = 252 * 40 + 48 * 40 + 3 * block + 2 * 40
    assert all(entry["runs"] == 1 for entry in over[("dp",)])
    assert sum(entry["bytes"] for entry in over[("dp",)]) == 4 * (numbers + 2), (sum(entry["bytes"] for entry in over[("dp",)]), 4 * numbers)

if which == "pp":
    transfers = collections.Counter((entry["bytes"], entry["runs"], entry["stage"]) for entry in told["transfers"])
    # The activation forwards, its gradient backwards, in each micro-batch; the tied embedding's gradient once a step each way; single numbers: the norm, loss and count.
    assert transfers.pop((10560, 2, 0)) == 1 and transfers.pop((10560, 2, 1)) == 1, transfers
    assert transfers.pop((40320, 1, 0)) == 1 and transfers.pop((40320, 1, 1)) == 1, transfers
    assert all(bytes == 4 and runs == 1 for bytes, runs, _ in transfers), transfers
    # What waits for gradients, of a block: two values of each of its norms, q, k, v and the attention's result of the rank's heads, what goes into GELU and comes out of it. Stage 0
    # has two blocks and two micro-batches in flight. Stage 1 has one of each, but for the activation that is received for the next; and the last norm, the logits once, a number a row.
    activation, heads, inner, logits, row = 4 * 2 * 33 * 40, 4 * 2 * 33 * 3 * 8, 4 * 2 * 33 * 36, 4 * 2 * 33 * 252, 4 * 2 * 33
    block = 4 * activation + 4 * heads + 2 * inner
    assert [(kept["stage"], kept["values"], kept["bytes"], kept["repeated_instructions"]) for kept in told["kept"]] == [
        (0, 20, 2 * 2 * block, 0), (1, 14, activation + block + 2 * activation + logits + row, 0)], told["kept"]
else:
    assert not told["transfers"]
print(which, len(told["collectives"]), "collectives; those of backward:", backward)
print("kept:", told["kept"])
