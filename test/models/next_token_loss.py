"""Whether the mean cross entropy of the next token, of the logits in each OUTPUT.npz, is the last loss of METRICS.jsonl: next_token_loss.py DATA.npz METRICS.jsonl OUTPUT.npz ..."""
import json
import sys

import numpy

data, metrics, *outputs = sys.argv[1:]
ids = numpy.load(data)["input_ids"]
with open(metrics) as file:
    wanted = json.loads(file.read().splitlines()[-1])["loss"]
for output in outputs:
    logits = numpy.load(output)["logits"].astype(numpy.float64)[:, :-1]
    largest = logits.max(-1, keepdims=True)
    log_sum = largest[..., 0] + numpy.log(numpy.exp(logits - largest).sum(-1))
    loss = (log_sum - numpy.take_along_axis(logits, ids[:, 1:, None], -1)[..., 0]).mean()
    print(f"{'equal' if abs(loss - wanted) <= 2e-6 * wanted else f'NOT {wanted}'}: {loss:.7f}")
