#!/usr/bin/python3
"""What of a plan a host reads: everything but the code for devices and, of each kernel, how a device launches it and which library might take its place.
Prints the hash of that part of each plan, and ends with 1 where they differ. Field numbers are those of runtime/plan/plan.proto.

  test/models/host_part.py host.plan both.plan
"""
import hashlib
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from wire_format import fields  # noqa: E402

FILE_PLAN = 5
PLAN_STAGES, PLAN_MODULES, MODULE_TARGET = 8, 9, 1
# From a stage to what its kernels say to devices: programs, instructions, the kernel among the actions.
TO_KERNELS = (3, 3, 2)
KERNEL_LAUNCH, KERNEL_ATTENTION, KERNEL_EPILOGUE = 5, 6, 8


def without_devices(stage, path):
    """A message below a stage, as a tree, its kernels without what devices are told."""
    if not path:
        return [part.raw for part in fields(stage) if part.number not in (KERNEL_LAUNCH, KERNEL_ATTENTION, KERNEL_EPILOGUE)]
    return [without_devices(part.value, path[1:]) if part.number == path[0] else part.raw for part in fields(stage)]


def host_part(file):
    with open(file, "rb") as plan:
        content = next(part.value for part in fields(plan.read()) if part.number == FILE_PLAN)
    parts, modules = [], []
    for part in fields(content):
        if part.number == PLAN_MODULES:
            target = next(fact.value for fact in fields(part.value) if fact.number == MODULE_TARGET)
            modules.append(target)
            parts += [part.raw] if target != b"ptx" else []
        else:
            parts.append(without_devices(part.value, TO_KERNELS) if part.number == PLAN_STAGES else part.raw)
    return hashlib.sha256(repr(parts).encode()).hexdigest(), b" and ".join(modules).decode()


def main(files):
    found = [host_part(file) for file in files]
    for file, (digest, modules) in zip(files, found):
        print(f"{digest[:16]} {file}: code for {modules}")
    return len({digest for digest, _ in found}) != 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
