#!/usr/bin/python3
"""What of a plan a host reads: everything but the code for devices and, of each kernel, how a device launches it and which library might take its place.
Prints the hash of that part of each plan, and ends with 1 where they differ. Speaks protobuf's wire format (field numbers: runtime/plan/plan.proto).

  test/models/host_part.py host.plan both.plan
"""
import hashlib
import sys

FILE_PLAN = 5
PLAN_STAGES, PLAN_MODULES, MODULE_TARGET = 8, 9, 1
# From a stage to what its kernels say to devices: programs, instructions, the kernel among the actions.
TO_KERNELS = (3, 3, 2)
KERNEL_LAUNCH, KERNEL_ATTENTION = 5, 6


def varint(data, at):
    value = shift = 0
    while True:
        value, shift, at = value | (data[at] & 127) << shift, shift + 7, at + 1
        if data[at - 1] < 128:
            return value, at


def fields(data):
    """(number, bytes with the tag, content or None where it is a number)"""
    at = 0
    while at < len(data):
        begin = at
        key, at = varint(data, at)
        content = None
        if key & 7 == 0:
            _, at = varint(data, at)
        else:
            length = {1: 8, 5: 4}.get(key & 7)
            if length is None:
                length, at = varint(data, at)
            content, at = data[at:at + length], at + length
        yield key >> 3, data[begin:at], content


def without_devices(stage, path):
    """A message below a stage, as a tree, its kernels without what devices are told."""
    if not path:
        return [raw for number, raw, _ in fields(stage) if number not in (KERNEL_LAUNCH, KERNEL_ATTENTION)]
    return [without_devices(content, path[1:]) if number == path[0] else raw for number, raw, content in fields(stage)]


def host_part(file):
    with open(file, "rb") as plan:
        content = next(content for number, _, content in fields(plan.read()) if number == FILE_PLAN)
    parts, modules = [], []
    for number, raw, content in fields(content):
        if number == PLAN_MODULES:
            target = next(value for field, _, value in fields(content) if field == MODULE_TARGET)
            modules.append(target)
            parts += [raw] if target != b"ptx" else []
        else:
            parts.append(without_devices(content, TO_KERNELS) if number == PLAN_STAGES else raw)
    return hashlib.sha256(repr(parts).encode()).hexdigest(), b" and ".join(modules).decode()


def main(files):
    found = [host_part(file) for file in files]
    for file, (digest, modules) in zip(files, found):
        print(f"{digest[:16]} {file}: code for {modules}")
    return len({digest for digest, _ in found}) != 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
