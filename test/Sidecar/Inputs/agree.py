"""Holds docs/shard.schema.json against hpc-opt's reader: over a good sidecar and every small change of it, both must say the same.
agree.py SCHEMA FOLDER: writes each document to FOLDER and asks `hpc-opt --spec` about it."""
import copy, json, re, subprocess, sys

schema = json.load(open(sys.argv[1]))
folder = sys.argv[2]
TYPES = {"object": dict, "array": list, "string": str, "boolean": bool}
KNOWN = {"$schema", "title", "description", "$defs", "$ref", "type", "const", "required", "additionalProperties", "properties", "items",
         "minItems", "minimum", "maximum", "pattern", "not", "anyOf", "dependentRequired"}


def same(a, b):
    return isinstance(a, bool) == isinstance(b, bool) and a == b


def valid(value, rule):
    """JSON Schema 2020-12, the keywords that the schema uses."""
    assert set(rule) <= KNOWN, set(rule) - KNOWN
    if "$ref" in rule and not valid(value, schema["$defs"][rule["$ref"].split("/")[-1]]):
        return False
    if "const" in rule and not same(value, rule["const"]):
        return False
    if "not" in rule and valid(value, rule["not"]):
        return False
    if "anyOf" in rule and not any(valid(value, each) for each in rule["anyOf"]):
        return False
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if "type" in rule:
        kind = rule["type"]
        if not (number and value == int(value) if kind == "integer" else isinstance(value, TYPES[kind])):
            return False
    if number and not (rule.get("minimum", value) <= value <= rule.get("maximum", value)):
        return False
    if isinstance(value, str) and "pattern" in rule and not re.search(rule["pattern"], value):
        return False
    if isinstance(value, list):
        return len(value) >= rule.get("minItems", 0) and all(valid(item, rule.get("items", {})) for item in value)
    if isinstance(value, dict):
        properties = rule.get("properties", {})
        return (all(key in value for key in rule.get("required", []))
                and (rule.get("additionalProperties", True) or all(key in properties for key in value))
                and all(valid(item, properties.get(key, {})) for key, item in value.items())
                and all(other in value for key, others in rule.get("dependentRequired", {}).items() if key in value for other in others))
    return True


GOOD = {
    "$schema": "shard.schema.json", "version": 1, "mesh": {"mb": 2, "dp": 1, "pp": 2, "tp": 2},
    "params": [{"match": "*.c_fc.*", "shard": [{"dim": -1, "axis": "tp", "parts": 2}], "compute": "TP1D", "output_replicate": True},
               {"match": "[a-c]?", "shard": [{"dim": 1, "of": [3, 12, 64], "at": 1, "axis": "tp"}], "inferred": True},
               {"match": "*", "trainable": False}],
    "tensors": [{"match": "/h.0/mlp/*", "shard": [], "optional": False}],
    "stages": [{"match": "transformer.h.[0-1].*", "stage": 0, "chunk": 0, "optional": True}],
}
OTHERS = [None, True, 0, -1, 1.5, 2.0, 2**63, "x", "", [], {}]


def changes(value):
    """Every document that differs in one place: a value replaced, a member left out or added."""
    for other in OTHERS:
        if not (type(other) is type(value) and other == value):
            yield other
    if isinstance(value, dict):
        for key in value:
            yield {k: v for k, v in value.items() if k != key}
            for changed in changes(value[key]):
                yield {**value, key: changed}
        yield {**value, "unknown": 1}
    if isinstance(value, list):
        for index, item in enumerate(value):
            for changed in changes(item):
                yield value[:index] + [changed] + value[index + 1:]


documents = [GOOD, {"version": 1}, {"version": 1.0}] + list(changes(GOOD))
documents += [{"version": 1, "params": [{"match": "a", "shard": [], "inferred": a, "output_replicate": b}]} for a in (True, False) for b in (True, False)]
documents += [{"version": 1, "params": [{"match": "a", "trainable": a, **more}]} for a in (True, False, 0)
              for more in ({}, {"shard": []}, {"compute": "TP1D"}, {"output_replicate": False}, {"inferred": True}, {"shard": [], "inferred": True})]
documents += [{"version": 1, "mesh": {"tp": 65537}}, {"version": 1, "stages": [{"match": "a\0b", "stage": 65535}, {"match": "b", "stage": 65536}]}]
open(f"{folder}/empty.mlir", "w").write("module {\n  func.func @main() {\n    return\n  }\n}\n")
# Every third of the changes: the reader is a process each time. Those left out are taken by GOOD's other lists.
counts = {True: 0, False: 0}
for number, document in enumerate(documents):
    if 20 < number < len(documents) - 24 and number % 3:
        continue
    path = f"{folder}/{number}.json"
    json.dump(document, open(path, "w"))
    run = subprocess.run(["hpc-opt", f"{folder}/empty.mlir", f"--spec={path}", "--compile-to=import"], capture_output=True, text=True)
    assert run.returncode == 0 or (run.returncode == 1 and run.stderr.startswith(f"hpc-opt: error[sidecar]: {path}:1: ")), run.stderr
    said = valid(document, schema)
    assert said == (run.returncode == 0), f"schema: {said}, reader: {run.returncode} {run.stderr}\n{json.dumps(document)}"
    counts[said] += 1
assert counts[True] >= 5 and counts[False] >= 50, counts
print(f"schema and reader agree on {counts[True]} good and {counts[False]} bad sidecars")
