#!/usr/bin/python3
"""linear_bytes.py EXPLAINED.json PATH Q M K N: numbers that a rank receives for the linear layer at PATH (M rows of K to N) in a training step on Q x Q x Q ranks, against Bian et al.
(arXiv 2105.14450): 2 (Q-1)/Q^3 (MK + KN + MN), and (Q-1)/Q^3 (MK + KN) for what is gathered again. Fails where they differ."""
import json
import sys

file, path, *sizes = sys.argv[1:]
q, m, k, n = map(int, sizes)
with open(file, encoding="utf8") as text:
    facts, _ = json.JSONDecoder().raw_decode(text.read())
FLOAT = 4
# A gather's array is its result, a reduce-scatter's its operand: all but its own part of either comes from others.
arrays = {again: sum(each["bytes"] * each["runs"] for each in facts["collectives"] if each["path"] == path and each["bytes"] > 4 * m and ("run again" in each["cause"]) == again) for again in (False, True)}
received = {again: bytes * (q - 1) // q // FLOAT for again, bytes in arrays.items()}
wanted = {False: 2 * (q - 1) * (m * k + k * n + m * n) // q**3, True: (q - 1) * (m * k + k * n) // q**3}
print(f"{path}: {received[False]} numbers and {received[True]} again; formula {wanted[False]} and {wanted[True]}")
sys.exit(received != wanted)
