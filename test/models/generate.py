#!/usr/bin/python3
"""Decoders of models/decoders (decoders.py made them) against the ids that Hugging Face's generate() made of the same weights in float64.

  generate.py forward NAME FLAGS...    for each string of flags: the plan of the whole text finds each of those ids after the text before it
  generate.py tokens NAME FLAGS...     hpc-generate gives those ids for all prompts at once and for the first alone, and beams with their scores where there are golden ones

A line each, with what the layout gathers; exit status 1 if one is FAR. Needs hpc-opt, hpc-run and hpc-generate on the PATH and numpy.
"""
import collections
import json
import os
import re
import subprocess
import sys
import tempfile

import numpy

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
from decoder_weights import inputs_of, write  # noqa: E402

FOLDER = os.path.join(os.path.dirname(os.path.dirname(HERE)), "models", "decoders")
with open(os.path.join(FOLDER, "golden.json")) as file:
    GOLDEN = json.load(file)
PROMPTS = GOLDEN.pop("prompts")
LENGTH = 56  # of the longest text and one more


def run(*command):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(command)}\n{done.stderr[-2000:]}")
    return done.stdout


def attention(text):
    """What an nn.attention is, by its text."""
    heads, groups = (re.findall(r"tensor<[0-9]+x([0-9]+)x", text.split("}")[-1])[i] for i in (0, 1))
    masks = "".join(f" with {mask}" for mask in ("bias", "visible") if f" {mask} %" in text)
    return f"{'causal' if 'causal_offset' in text else 'other'} attention of {heads} heads in {groups}{masks}"


def forward(name, layouts):
    failed = 0
    with tempfile.TemporaryDirectory() as scratch:
        model = write(os.path.join(FOLDER, name + ".onnx"), scratch)
        plan, given, got = (os.path.join(scratch, each) for each in ("p.plan", "in.npz", "out.npz"))
        texts = [prompt + ids for prompt, ids in zip(PROMPTS, GOLDEN[name]["greedy"])]
        ids = numpy.array([text + [0] * (LENGTH - len(text)) for text in texts])
        numpy.savez(given, input_ids=ids)
        known = []
        for other, value in (("attention_mask", numpy.ones_like(ids)), ("position_ids", numpy.arange(LENGTH) + 0 * ids)):
            if other in inputs_of(model):
                numpy.save(os.path.join(scratch, other + ".npy"), value)
                known.append(f"--const={other}={scratch}/{other}.npy")
        compiled = ["hpc-opt", model, f"--dim=batch={len(ids)}", f"--dim=sequence={LENGTH}", *known]
        raised = collections.Counter(map(attention, re.findall(r"= nn.attention (.*)", run(*compiled, "--compile-to=raise"))))
        print(f"raised {name}: " + ", ".join(f"{count} {each}" for each, count in raised.items()))
        for flags in layouts:
            told = run(*compiled, "--explain=json", "-o", plan, *flags.split())
            run("hpc-run", plan, "--poison", f"--input={given}", f"--output={got}")
            best = numpy.load(got)["logits"].argmax(-1)
            wrong = sum(int((best[i, len(prompt) - 1:len(text) - 1] != text[len(prompt):]).sum()) for i, (prompt, text) in enumerate(zip(PROMPTS, texts)))
            failed += wrong
            sent = collections.Counter((each["kind"], each["bytes"]) for each in json.JSONDecoder().raw_decode(told)[0]["collectives"])
            print(f"{'FAR' if wrong else 'equal'} {name} [{flags}]: {wrong} other ids; "
                  + (", ".join(f"{count} {kind} of {size} bytes" for (kind, size), count in sorted(sent.items())) or "nothing sent"))
    return not failed


def tokens(name, layouts):
    failed = 0
    golden = GOLDEN[name]
    runs = [("greedy", [], [[{"ids": ids}] for ids in golden["greedy"]])]
    runs.append(("alone", [], runs[0][2][:1]))
    if "beams" in golden:
        how = golden["how"]
        runs.append(("beams", [f"--beams={how['num_beams']}", f"--num-return-sequences={how['num_return_sequences']}", f"--length-penalty={how['length_penalty']}",
                               f"--early-stopping={'yes' if how['early_stopping'] else 'no'}", f"--end-token={how['eos_token_id']}"], golden["beams"]))
    with tempfile.TemporaryDirectory() as scratch:
        model = write(os.path.join(FOLDER, name + ".onnx"), scratch)
        prompts, answers = (os.path.join(scratch, each) for each in ("prompts.jsonl", "answers.jsonl"))
        for flags in layouts:
            for kind, how, expected in runs:
                with open(prompts, "w") as out:
                    out.writelines(json.dumps({"ids": prompt}) + "\n" for prompt in PROMPTS[:len(expected)])
                run("hpc-generate", model, f"--ids={prompts}", f"--max-new-tokens={len(golden['greedy'][0])}", f"--output={answers}", "--poison", *how, *flags.split())
                with open(answers) as lines:
                    got = [json.loads(line) for line in lines]
                expected = [each for answers_of in expected for each in answers_of]
                equal = len(got) == len(expected) and all(a["ids"] == b["ids"] for a, b in zip(got, expected))
                equal = equal and all(abs(a["score"] - b["score"]) <= 1e-5 for a, b in zip(got, expected) if "score" in b)
                failed += not equal
                print(f"{'equal' if equal else 'FAR'} {name} {kind} [{flags}]: {sum(len(each['ids']) for each in got)} ids")
    return not failed


if __name__ == "__main__":
    sys.exit(not {"forward": forward, "tokens": tokens}[sys.argv[1]](sys.argv[2], sys.argv[3:]))
