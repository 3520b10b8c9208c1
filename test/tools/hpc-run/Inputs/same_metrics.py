"""Whether two files of metrics have the same lines but for times: same_metrics.py A.jsonl B.jsonl."""
import json
import sys

TIMES = ("ms", "reader_ms", "tokens_per_s", "samples_per_s", "mfu")
a, b = ([{key: value for key, value in json.loads(line).items() if key not in TIMES} for line in open(name)] for name in sys.argv[1:])
assert a == b, (a, b)
