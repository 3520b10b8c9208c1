"""gpt2-odd's training step of 4 x 33 tokens in two micro-batches, as the worked example has it: training_collectives.py WHICH EXPLAINED.json PLAN.json, where WHICH is tp (tp=2),
dp (tp=2 dp=2), pp (tp=2 pp=2) or zb (as pp, zb-h1); PLAN.json is what hpc-plan says of it. An activation box [2, 33, 40] is 10,560 bytes, a row statistic [2, 33] 264, half of each with dp."""
import collections
import json
import sys

which, explained, plan = sys.argv[1:]
told, stages = json.load(open(explained)), json.load(open(plan))["stages"]
isPiped = which in ("pp", "zb")
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
# By what each serves: embedding, two a block and the loss forwards; the head and two a block backwards.
parts = collections.Counter((i["part"], i["text"].split("(")[1].split(" ")[0]) for stage in stages for program in stage["programs"] for i in program["instructions"]
                            if i["kind"] == "all_reduce" and "over {tp}" in i["text"])
assert parts == {("forward", str(10560 // half)): 7, ("forward", str(264 // half)): 3, ("gradient", str(10560 // half)): 7, ("update", "4"): 1}, parts

# What waits for gradients, of a block: of each of its norms the result and the operand, q, k, v and the attention's result
# of the rank's heads, what goes into GELU's product and its slope.
activation, heads, inner, logits, row = 4 * 2 * 33 * 40 // half, 4 * 2 * 33 * 3 * 8 // half, 4 * 2 * 33 * 36 // half, 4 * 2 * 33 * 252 // half, 4 * 2 * 33 // half
block = 4 * activation + 4 * heads + 2 * inner

# Of the loss: logits once, the maximum and 1 / sum a row, which class each row has (64 bits) and whether it counts.
loss = logits + 2 * row + 2 * row + row

if which == "dp":
    # Every gradient once a step, cut ones by their box; the sum of the loss and the count of tokens.
    numbers = 2 * 40 + 40 * 72 + 72 + 24 * 40 + 40 + 2 * 40 + 40 * 36 + 36 + 36 * 40 + 40
    numbers = 252 * 40 + 48 * 40 + 3 * numbers + 2 * 40
    # They go together, each term on a boundary of 64 bytes: both numbers of the loss, all gradients. They run beside what is left of the last micro-batch.
    assert all(entry["runs"] == 1 for entry in over[("dp",)])
    loss_sums, gradients = sorted(entry["bytes"] for entry in over[("dp",)])
    assert loss_sums == 64 + 4 and 0 <= gradients - 4 * numbers < 40 * 64, (loss_sums, gradients, 4 * numbers)
    instructions = {program["kind"]: program["instructions"] for program in stages[0]["programs"]}
    posted = [i["text"] for i in instructions["forward"] if i["kind"] == "all_reduce" and "over {dp}" in i["text"]]
    assert len(posted) == 2 and all("request" in text and "when 0 / 1" in text for text in posted), posted
    assert len([i for i in instructions["update"] if i["kind"] == "wait"]) == 2, instructions["update"]

if isPiped:
    transfers = collections.Counter((entry["bytes"], entry["runs"], entry["stage"]) for entry in told["transfers"])
    # The activation forwards, its gradient backwards, in each micro-batch; the tied embedding's gradient once a step each way; single numbers: the norm, loss and count.
    assert transfers.pop((10560, 2, 0)) == 1 and transfers.pop((10560, 2, 1)) == 1, transfers
    assert transfers.pop((40320, 1, 0)) == 1 and transfers.pop((40320, 1, 1)) == 1, transfers
    assert all(bytes == 4 and runs == 1 for bytes, runs, _ in transfers), transfers
    # Stage 0 has two blocks and two micro-batches in flight. Stage 1 has one of each, but for the activation that is received for the next; and the last norm and the loss.
    kept = [(0, 20, 2 * 2 * block), (1, 17, activation + block + 2 * activation + loss)]
    # Receives are posted in a program of their own and sends completed in one, where there is a neighbour; W is apart where the schedule wants it.
    first, last = ["forward", "drain", "receive gradient", "backward"], ["receive", "forward", "backward", "drain gradient"]
    apart = ["weight gradient"] if which == "zb" else []
    programs = [first + apart + ["update"], last + apart + ["update"]]
    schedules = {"pp": ["F0 RB0 F1 RB1 B0 B1 DF0 DF1 U", "RF0 F0 RF1 B0 F1 B1 DB0 DB1 U"],
                 "zb": ["F0 RB0 F1 B0 RB1 W0 B1 W1 DF0 DF1 U", "RF0 F0 RF1 B0 F1 B1 W0 W1 DB0 DB1 U"]}[which]
else:
    assert not told["transfers"]
    # One program does F, B and W of a micro-batch, so one micro-batch is in flight; norms keep a scale a row, and embedding_grad reads the ids (64 bits).
    kept = [(0, 39, 3 * (block + 2 * row) + 2 * activation + row + loss + 2 * row)]
    programs, schedules = [["forward", "update"]], ["F0 F1 U"]
assert [(one["stage"], one["values"], one["bytes"]) for one in told["kept"]] == kept, (told["kept"], kept)
assert all(one["repeated_instructions"] == 0 for one in told["kept"])
assert [[program["kind"] for program in stage["programs"]] for stage in stages] == programs
assert [stage["schedule"] for stage in stages] == schedules, [stage["schedule"] for stage in stages]
print(which, len(told["collectives"]), "collectives; kept:", told["kept"])
