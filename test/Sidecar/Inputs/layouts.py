"""Layouts that people try, each compiled and proved equal, on two meshes by turns. layouts.py MODEL FOLDER: a GPT-2 of 5 heads of 8."""
import json, pathlib, subprocess, sys

model, folder = sys.argv[1], pathlib.Path(sys.argv[2])


def cut(match, *cuts, **more):
    return {"match": match, "shard": [dict(zip(("dim", "axis", "of", "at"), each)) for each in cuts], **more}


LAYOUTS = {
    "heads of a fused qkv": [cut("*.c_attn.*", (-1, "tp", [3, 5, 8], 1))],
    "heads of its weight, the bias follows": [cut("*.c_attn.weight", (1, "tp", [3, 5, 8], 1))],
    "inside heads": [cut("*.c_attn.*", (-1, "tp", [3, 5, 8], 2))],
    "q, k and v on ranks of their own": [cut("*.c_attn.*", (-1, "tp", [3, 5, 8], 0))],
    "rows everywhere, biases too": [cut("transformer.h.*.c_*.weight", (0, "tp")), cut("*.bias", (0, "tp"))],
    "columns everywhere, gathered": [cut("transformer.h.*.c_*", (-1, "tp"), output_replicate=True)],
    "the vocabulary, logits gathered": [cut("lm_head*", (0, "tp"), output_replicate=True)],
    "the width of the table": [cut("transformer.wte*", (1, "tp"))],
    "everything whole": [cut("*")],
    "norms": [cut("*.ln_*", (0, "tp"))],
    "storage over dp": [cut("*", (0, "dp"))],
    "columns, then rows by the letter": [cut("*.c_fc.*", (-1, "tp", [8, 9], 1)), cut("*.mlp.c_proj.weight", (0, "tp", [8, 9], 1))],
    "storage over dp, use over tp": [cut("*.weight", (0, "dp"), (-1, "tp"))],
    "the vocabulary": [cut("lm_head*", (0, "tp"))],
    "both axes on one dim": [cut("*.bias", (0, "dp"), (0, "tp"))],
}
for number, (name, rules) in enumerate(LAYOUTS.items()):
    spec = folder / f"{number}.json"
    spec.write_text(json.dumps({"version": 1, "params": rules}))
    mesh = ["--tp=3", "--pp=2"] if number % 2 else ["--tp=2", "--dp=2"]
    run = subprocess.run(["hpc-opt", model, f"--spec={spec}", *mesh, "--dim", "batch_size=2", "--dim", "sequence_length=7", "--verify"],
                         capture_output=True, text=True)
    assert run.returncode == 0 and run.stdout.startswith("verified: "), f"{name} {mesh}: {run.stdout}{run.stderr}"
print(len(LAYOUTS), "layouts are equal")
