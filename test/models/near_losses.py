"""Whether two runs' losses (--metrics) stay within BOUND of each other, relatively, step by step: near_losses.py A.jsonl B.jsonl BOUND."""
import json
import sys

first, second, bound = sys.argv[1:]
losses = [[json.loads(line)["loss"] for line in open(file)] for file in (first, second)]
worst = max(abs(a - b) / abs(a) for a, b in zip(*losses, strict=True))
print(f"{'near' if worst <= float(bound) else 'FAR'}: {worst:.3g} apart at most in {len(losses[0])} steps, the bound is {bound}")
