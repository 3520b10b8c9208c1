"""log_lines.py OUTPUT METRICS RANKS TOKENS EVERY STEPS STEPS_OF_AN_EPOCH: whether the lines of OUTPUT parse as PaddleFleetX's do (the expression is
made from the line in program.md), and every field is what the metrics of the same run give."""
import json
import re
import sys

LINE = re.compile(
    r"\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3}\] \[    INFO\] - global step (\d+), epoch: (\d+), batch: (\d+), loss: (\d+\.\d{9}), "
    r"avg_reader_cost: (\d+\.\d{5}) sec, avg_batch_cost: (\d+\.\d{5}) sec, speed: (\d+\.\d\d) step/s, ips_total: (\d+) tokens/s, "
    r"ips: (\d+) tokens/s, learning rate: (\d\.\d{5}e[-+]\d\d)")
output, metrics, *numbers = sys.argv[1:]
ranks, tokens, every, steps, epoch_steps = map(int, numbers)
records = [record for record in map(json.loads, open(metrics)) if "loss" in record]
assert [record["step"] for record in records] == list(range(steps)), records
lines = [match for match in map(LINE.fullmatch, open(output).read().splitlines()) if match]
ends = [step for step in range(1, steps + 1) if step % every == 0 or step == steps]
assert [int(line[1]) for line in lines] == ends, (lines, ends)
begin = 0
for line, end in zip(lines, ends):
    last, since = records[end - 1], records[begin:end]
    begin = end
    assert (int(line[2]), int(line[3])) == ((end - 1) // epoch_steps, (end - 1) % epoch_steps), line[0]
    assert abs(float(line[4]) - last["loss"]) <= 5.1e-10 and line[10] == f"{last['lr']:.5e}", (line[0], last)
    cost = sum(record["ms"] for record in since) / len(since) / 1000
    reader = sum(record["reader_ms"] for record in since) / len(since) / 1000
    assert abs(float(line[5]) - reader) <= 7e-6 and abs(float(line[6]) - cost) <= 7e-6, (line[0], cost, reader)
    assert abs(float(line[7]) - 1 / cost) <= 0.006 + 1e-3 / cost, (line[0], cost)
    assert abs(int(line[8]) - tokens / cost) <= 1 + 1e-3 * tokens / cost and abs(int(line[9]) - int(line[8]) / ranks) <= 1, (line[0], cost)
for number in range(steps // epoch_steps):
    mean = sum(record["loss"] for record in records[number * epoch_steps:(number + 1) * epoch_steps]) / epoch_steps
    kept = records[(number + 1) * epoch_steps - 1]["epoch_mean"]
    assert abs(kept["loss"] - mean) < 1e-12 and kept["steps"] == epoch_steps, (kept, mean)
print(f"{len(lines)} lines of {steps} steps")
