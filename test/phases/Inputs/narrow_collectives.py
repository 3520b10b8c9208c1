"""What gpt2-tiny's training step moves in 16 bits, from what it moves in f32: narrow_collectives.py ZERO F32.json BF16.json FP16.json, each what --explain=json printed. Every
collective of the f32 plan is there, with half the bytes where it sums activations or their gradients over tp (bf16), or gathers a weight that only products read (ZeRO 3)."""
import collections
import json
import sys

zero = int(sys.argv[1])
wide, bf16, fp16 = (json.load(open(path))["collectives"] for path in sys.argv[2:])
TABLES = ("transformer.wte", "transformer.wpe")  # looked up in f32
activation = max((each["bytes"] for each in wide if each["axes"] == ["tp"]), default=0)


def is_sum_over_tp(each):
    return each["axes"] == ["tp"] and each["bytes"] == activation and each["path"] not in TABLES


def is_weight(each):
    return zero == 3 and each["kind"] == "all_gather" and each["path"] not in TABLES


def counted(collectives, is_halved):
    return collections.Counter((each["stage"], each["kind"], *each["axes"], each["runs"], each["bytes"] // (1 + is_halved(each))) for each in collectives)


assert not activation or sum(map(is_sum_over_tp, wide)) >= 16, "two sums a block, forwards and backwards"
assert zero < 3 or sum(map(is_weight, wide)) >= 16, "four weights a block"
for name, narrow, is_halved in (("bf16", bf16, lambda each: is_sum_over_tp(each) or is_weight(each)), ("fp16", fp16, is_weight)):
    expected, found = counted(wide, is_halved), counted(narrow, lambda each: False)
    assert found == expected, f"{name}: not expected {found - expected}, missing {expected - found}"
