"""schedules.py PLAN DATA: learning rates of hpc-run against PyTorch's schedulers, and those of transformers; by steps and by epochs (3 steps each)."""
import json
import os
import subprocess
import sys
import tempfile

import torch
import transformers
from torch.optim.lr_scheduler import ConstantLR, CosineAnnealingLR, LinearLR, PolynomialLR, SequentialLR

plan, data = sys.argv[1:]
PEAK, LEAST, STEPS, WARMUP, EPOCH = 0.01, 0.002, 12, 3, 3


def curve_of(make, warmup, steps, every=1):
    """The rates of `steps` steps under a scheduler that is told after every `every` of them."""
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=PEAK)
    scheduler = SequentialLR(optimizer, [LinearLR(optimizer, 1 / warmup, 1, warmup - 1), make(optimizer)], [warmup]) if warmup else make(optimizer)
    rates = []
    for step in range(steps):
        rates.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        if (step + 1) % every == 0:
            scheduler.step()
    return rates


def mine(*flags):
    with tempfile.TemporaryDirectory() as folder:
        metrics = os.path.join(folder, "m.jsonl")
        subprocess.run(["hpc-run", plan, "--train", f"--data={data}", f"--lr={PEAK}", f"--metrics={metrics}", *flags], check=True, stdout=subprocess.DEVNULL)
        return [json.loads(line)["lr"] for line in open(metrics)]


cosine = lambda span, least=0: lambda optimizer: CosineAnnealingLR(optimizer, span, eta_min=least)
linear = lambda span, least=0: lambda optimizer: LinearLR(optimizer, 1, least / PEAK, span)
polynomial = lambda span, power: lambda optimizer: PolynomialLR(optimizer, span, power)
lasting = lambda optimizer: ConstantLR(optimizer, 1, 1)
power_to = lambda span, power: lambda optimizer: transformers.get_polynomial_decay_schedule_with_warmup(optimizer, 0, span, lr_end=LEAST, power=power)
rest, all_steps = STEPS - WARMUP, f"--steps={STEPS}"
cases = [
    (("--lr-schedule=constant", f"--warmup={WARMUP}", all_steps), curve_of(lasting, WARMUP, STEPS)),
    (("--lr-schedule=cosine", f"--warmup={WARMUP}", all_steps), curve_of(cosine(rest), WARMUP, STEPS)),
    (("--lr-schedule=cosine", f"--warmup={WARMUP}", f"--min-lr={LEAST}", all_steps), curve_of(cosine(rest, LEAST), WARMUP, STEPS)),
    (("--lr-schedule=linear", f"--warmup={WARMUP}", f"--min-lr={LEAST}", all_steps), curve_of(linear(rest, LEAST), WARMUP, STEPS)),
    (("--lr-schedule=linear", all_steps), curve_of(linear(STEPS), 0, STEPS)),
    (("--lr-schedule=polynomial", "--lr-power=3", f"--warmup={WARMUP}", all_steps), curve_of(polynomial(rest, 3), WARMUP, STEPS)),
    (("--lr-schedule=polynomial", "--lr-power=1.5", f"--min-lr={LEAST}", "--lr-steps=9", all_steps), curve_of(power_to(9, 1.5), 0, STEPS)),
    (("--lr-schedule=cosine", "--lr-by=epoch", f"--min-lr={LEAST}", "--epochs=4"), curve_of(cosine(4, LEAST), 0, STEPS, EPOCH)),
    (("--lr-schedule=linear", "--lr-by=epoch", "--warmup=2", "--epochs=4"), curve_of(linear(2), 2, STEPS, EPOCH)),
    (("--lr-schedule=linear", "--lr-by=epoch", "--lr-steps=4", "--steps=11"), curve_of(linear(4), 0, 11, EPOCH)),
]
for flags, expected in cases:
    rates = mine(*flags)
    assert len(rates) == len(expected) and all(abs(a - b) <= 1e-9 * PEAK + 1e-7 * abs(b) for a, b in zip(rates, expected)), (flags, rates, expected)
print(f"{len(cases)} curves")
