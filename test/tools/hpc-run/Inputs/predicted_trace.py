"""predicted_trace.py TRACE.json PREDICTION.json: the timeline of a predicted step against what is said of it. Prints how many lines it has."""
import collections
import json
import sys

trace, said = (json.load(open(path)) for path in sys.argv[1:3])
events = [event for event in trace["traceEvents"] if event["ph"] == "X"]
ranks = len(said["by_rank"])


def near(one, other):
    return abs(one - other) <= 1e-6 + 1e-6 * said["seconds"]  # the trace has nanoseconds


assert near(max(event["ts"] + event["dur"] for event in events) / 1e6, said["seconds"])
assert near(sum(part["seconds"] for part in said["critical_path"]), said["seconds"])
lines = collections.defaultdict(list)
for event in events:
    lines[event["tid"]].append(event)
for tid, line in lines.items():
    line.sort(key=lambda event: (event["ts"], event["dur"]))
    rank = said["by_rank"][tid % ranks]
    standing = ("wait", "all_reduce", "all_gather", "reduce_scatter", "all_to_all", "permute")
    if tid < ranks:
        assert all(one["ts"] + one["dur"] <= next["ts"] + 2e-3 for one, next in zip(line, line[1:])), f"rank {tid} does two things at once"
        computing = sum(event["dur"] for event in line if event["cat"] not in standing) / 1e6
        stands = sum(event["dur"] for event in line if event["cat"] in standing) / 1e6
        assert near(computing, rank["computing"]), (tid, computing, rank)
        assert stands <= rank["exposed"] + rank["idle"] + 1e-6, (tid, stands, rank)
        assert near(rank["computing"] + rank["exposed"] + rank["idle"], said["seconds"])
    else:
        assert near(sum(event["dur"] for event in line) / 1e6, rank["communicating"]), (tid, rank)
print(len([tid for tid in lines if tid < ranks]), "ranks,", len([tid for tid in lines if tid >= ranks]), "with transfers")
