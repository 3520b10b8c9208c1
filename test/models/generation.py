#!/usr/bin/env python3
"""generation.py MODEL.onnx GOLDEN.json MAX-LENGTH [--every] [LAYOUT...]: whether hpc-generate gives Hugging Face's answers (generation/make_generation.py) on each layout, a text of flags of
hpc-opt. All prompts of a case are in batches of 8 rows, and answers stand in one plan of each layout. The first layout, and with --every all of them, takes every case; the others one of each strategy."""
import json
import os
import subprocess
import sys
import tempfile

model, golden, length, *layouts = sys.argv[1:]
every = "--every" in layouts
layouts = [layout for layout in layouts if layout != "--every"] or [""]
cases = json.load(open(golden))["cases"]


def flags_of(options):
    flags = []
    for name, value in options.items():
        flags += [f"--end-token={each}" for each in value] if name == "end-tokens" else [f"--{name}={value}"]
    return flags


def check(plan, prompts, case, layout):
    words = ["hpc-generate", plan, f"--ids={prompts}", *flags_of(case["options"])]
    lines = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=True).stdout.splitlines()
    answers = [json.loads(line) for line in lines]
    expected = [(prompt, answer) for prompt, some in zip(case["prompts"], case["answers"]) for answer in some]
    assert len(answers) == len(expected), (layout, case["options"], len(answers))
    for answer, (prompt, want) in zip(answers, expected):
        assert answer["prompt_ids"] == prompt and answer["ids"] == want["ids"], (layout, case["options"], answer, want)
        assert abs(answer.get("score", 0) - want.get("score", 0)) < 1e-4, (layout, case["options"], answer, want)
        ends = want["ids"][-1] in case["options"].get("end-tokens", [])
        assert answer["finish_reason"] == ("end_token" if ends else "length"), (layout, case["options"], answer)


with tempfile.TemporaryDirectory() as folder:
    plan, prompts = os.path.join(folder, "a.plan"), os.path.join(folder, "prompts.jsonl")
    for number, layout in enumerate(layouts):
        subprocess.run(["hpc-opt", model, "--generate", "--batch=8", f"--max-length={length}", "--prefill-chunk=4", *layout.split(), "-o", plan], check=True)
        seen = set()
        for case in cases:
            strategy = case["options"]["strategy"]
            if number == 0 or every or strategy not in seen:
                with open(prompts, "w") as file:
                    file.writelines(json.dumps({"ids": prompt}) + "\n" for prompt in case["prompts"])
                check(plan, prompts, case, layout)
            seen.add(strategy)
        print(f"{layout or 'serial'}: as Hugging Face")
