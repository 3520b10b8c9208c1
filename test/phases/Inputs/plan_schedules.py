"""plan_schedules.py MODEL.onnx SCRATCH: compiles training plans of every named schedule over stages and micro-batches, and compares with the papers what hpc-plan says of them: the bubble, the
micro-batches in flight, and the copies that the plan keeps of a saved activation. Needs hpc-opt and hpc-plan on the PATH. A program takes one unit, the update too."""
import json
import os
import re
import subprocess
import sys

model, scratch = sys.argv[1:]
# (schedule, stages, chunks, micro-batches)
CASES = [(kind, stages, 1, count) for kind in ("gpipe", "1f1b", "zb-h1") for stages, count in ((2, 2), (2, 6), (3, 4), (4, 4), (4, 6))] + [("interleaved", 2, 2, 2), ("interleaved", 2, 2, 4)]
if not os.environ.get("HPC_TEST_ALL"):
    CASES = CASES[1::2]  # each kind, each number of stages


def facts(kind, stages, chunks, count):
    plan = f"{scratch}/{kind}.plan"
    subprocess.run(["hpc-opt", model, "--train", f"--pp={stages}", f"--pp-schedule={kind}", f"--pp-chunks={chunks}", f"--micro-batches={count}", f"--dim=batch_size={count}",
                    "--dim=sequence_length=4", "-o", plan], check=True, stdout=subprocess.DEVNULL)
    return json.loads(subprocess.run(["hpc-plan", plan, "--json"], check=True, stdout=subprocess.PIPE, text=True).stdout)


def bubble(kind, p, v, m):
    """Huang et al. 2019; Narayanan et al. 2021, section 2.2; Qi et al. 2023, table 1; and one unit more for the update."""
    work, idle = (3 * m, p - 1) if kind == "zb-h1" else (2 * v * m, 2 * (p - 1))
    return idle / (work + 1 + idle)


def in_flight(kind, p, v, m, stage):
    if kind == "gpipe":
        return m
    return min(m * v, 2 * (p - stage - 1) + (v - 1) * p + 1) if kind == "interleaved" else min(m, p - stage)


def peak(schedule, until):
    """The most forwards without their backward at once: F0 or F0.1, B or W."""
    most = now = 0
    for word in schedule.split():
        now += (word[0] == "F") - (word[0] == until)
        most = max(most, now)
    return most


for kind, p, v, m in CASES:
    plan = facts(kind, p, v, m)
    where = f"{kind} pp={p} chunks={v} micro-batches={m}"
    assert abs(plan["bubble"] - bubble(kind, p, v, m)) < 1e-12, f"{where}: bubble {plan['bubble']}, the paper's is {bubble(kind, p, v, m)}"
    for number, stage in enumerate(plan["stages"]):
        wanted = in_flight(kind, p, v, m, number)
        assert re.fullmatch(r"((F|B|W|RF|RB|DF|DB)[\d.]+ |RU |DU )*U( D\w+)*", stage["schedule"]), stage["schedule"]
        assert peak(stage["schedule"], "B") == wanted, f"{where}: stage {number} has {peak(stage['schedule'], 'B')} in flight, the paper {wanted}: {stage['schedule']}"
        # What a transfer posts early or drains late has a copy more.
        texts = [each["text"] for program in stage["programs"] for each in program["instructions"] if each["kind"] in ("send", "recv")]
        sent = {int(re.match(r"(?:send|recv) b(\d+)", text)[1]) for text in texts}
        copies = max(buffer["slots"] for index, buffer in enumerate(stage["buffers"]) if buffer["lifetime"] == "micro-batch" and index not in sent)
        # What W reads lives longer: up to the first stage's number.
        least, most = wanted, min(m, p) if kind == "zb-h1" else wanted
        assert v > 1 or least <= copies <= most, f"{where}: stage {number} keeps {copies} copies of an activation, {least} are in flight"
print(len(CASES), "schedules as the papers have them")
