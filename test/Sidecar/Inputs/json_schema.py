"""valid(value, schema): JSON Schema 2020-12, the keywords that the schemas in docs/ use. An unknown keyword is an error. changes(value): documents that differ in one place."""
import re

TYPES = {"object": dict, "array": list, "string": str, "boolean": bool}
KNOWN = {"$schema", "title", "description", "$defs", "$ref", "type", "const", "enum", "required", "additionalProperties", "properties", "propertyNames",
         "minProperties", "items", "minItems", "maxItems", "minLength", "maxLength", "minimum", "maximum", "pattern", "not", "anyOf", "dependentRequired"}


def same(a, b):
    return isinstance(a, bool) == isinstance(b, bool) and a == b


def valid(value, schema, rule=None):
    rule = schema if rule is None else rule
    fits = lambda item, other: valid(item, schema, other)
    assert set(rule) <= KNOWN, set(rule) - KNOWN
    if "$ref" in rule and not fits(value, schema["$defs"][rule["$ref"].split("/")[-1]]):
        return False
    if "const" in rule and not same(value, rule["const"]):
        return False
    if "enum" in rule and not any(same(value, each) for each in rule["enum"]):
        return False
    if "not" in rule and fits(value, rule["not"]):
        return False
    if "anyOf" in rule and not any(fits(value, each) for each in rule["anyOf"]):
        return False
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if "type" in rule:
        kind = rule["type"]
        if not (number and value == int(value) if kind == "integer" else number if kind == "number" else isinstance(value, TYPES[kind])):
            return False
    if number and not (rule.get("minimum", value) <= value <= rule.get("maximum", value)):
        return False
    if isinstance(value, str) and ("pattern" in rule and not re.search(rule["pattern"], value)
                                   or not rule.get("minLength", 0) <= len(value) <= rule.get("maxLength", len(value))):
        return False
    if isinstance(value, list):
        return rule.get("minItems", 0) <= len(value) <= rule.get("maxItems", len(value)) and all(fits(item, rule.get("items", {})) for item in value)
    if isinstance(value, dict):
        properties, others = rule.get("properties", {}), rule.get("additionalProperties", True)
        others = {} if others is True else {"not": {}} if others is False else others
        return (all(key in value for key in rule.get("required", []))
                and len(value) >= rule.get("minProperties", 0)
                and all(fits(key, rule.get("propertyNames", {})) for key in value)
                and all(fits(item, properties.get(key, others)) for key, item in value.items())
                and all(other in value for key, needed in rule.get("dependentRequired", {}).items() if key in value for other in needed))
    return True


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
