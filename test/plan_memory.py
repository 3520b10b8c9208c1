"""Memory of a plan by its own numbers, of a model whose weights are not read: nothing runs."""
import json
import os
import resource
import subprocess

CLASSES = ("weight", "state", "step", "slot", "temp")  # weights, states, accumulators, activations in flight, buffers


class Refused(Exception):
    """The compiler's last line."""


def compile_plan(binaries, model, flags, plan):
    """The facts of the plan (hpc-plan --json), and the seconds of CPU that hpc-opt took."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run([os.path.join(binaries, "hpc-opt"), model, "--no-weights", "--no-code", *flags, "-o", plan], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        raise Refused(done.stderr.strip().split("\n")[-1])
    facts = json.loads(subprocess.run([os.path.join(binaries, "hpc-plan"), plan, "--json"], check=True, capture_output=True).stdout)
    return facts, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def largest_rank(facts):
    """Bytes by class of the rank that takes most."""
    return max((stage["memory_per_rank"] for stage in facts["stages"]), key=lambda memory: memory["total"])
