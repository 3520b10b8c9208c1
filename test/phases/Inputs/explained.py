"""What --explain=json says of gpt2-odd with tp=2, pp=2, two micro-batches: the keys that runtime/plan/README.md promises, and the sums."""
import json, sys

told = json.load(open(sys.argv[1]))
assert list(told) == ["model", "collectives", "transfers", "kept", "stages", "time_units", "bubble"], list(told)
keys = {"stage", "program", "instruction", "kind", "bytes", "runs", "node", "path", "cause", "avoid"}
for entry in told["collectives"]:
    assert set(entry) == keys | {"axes", "groups", "beside_computation"} and entry["beside_computation"] is False, entry
    assert (entry["kind"], entry["axes"], entry["bytes"], entry["runs"]) == ("all_reduce", ["tp"], 10560, 2), entry
    assert entry["cause"] and entry["avoid"], entry
for entry in told["transfers"]:
    assert set(entry) == keys | {"peer", "senders"}, sorted(entry)
blocks = [entry["path"] for entry in told["collectives"]]
assert blocks == ["transformer.wte"] + [f"transformer.h.{i}.{part}.c_proj" for i in range(3) for part in ("attn", "mlp")], blocks
assert len({entry["node"] for entry in told["collectives"]}) == 7
total = sum(e["bytes"] * e["runs"] * e.get("groups", e.get("senders")) for e in told["collectives"] + told["transfers"])
assert total == 190080, total
for stage in told["stages"]:
    assert stage["memory_per_rank"]["total"] > 0 and stage["product_flops_per_step"] > 0
