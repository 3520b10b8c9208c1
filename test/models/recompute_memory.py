"""--recompute of gpt2-124m and gpt2-tiny by their plans: bytes and operations of none, full, and auto with room for three quarters of what lies between.

  test/models/recompute_memory.py BIN MODELS    # folders of the programs and of the shared models
"""
import json
import os
import subprocess
import sys
import tempfile

BIN, MODELS = sys.argv[1:]
CASES = [("gpt2-124m/model.onnx", "--pp=2 --micro-batches=4 --schedule=gpipe --dim batch_size=8 --dim sequence_length=256"),
         ("gpt2-tiny/dynamo-eager-op18.onnx", "--tp=2 --micro-batches=1 --dim batch_size=8 --dim sequence_length=64")]


def facts(model, flags, folder):
    """Of the largest stage: bytes, and of all: operations of its products."""
    plan = os.path.join(folder, "a.plan")
    subprocess.run([os.path.join(BIN, "hpc-opt"), os.path.join(MODELS, model), "--no-weights", "--train", *flags.split(), "-o", plan], check=True)
    stages = json.loads(subprocess.run([os.path.join(BIN, "hpc-plan"), plan, "--json"], check=True, capture_output=True).stdout)["stages"]
    return max(s["memory_per_rank"]["total"] for s in stages), sum(s["product_flops_per_step"] for s in stages)


with tempfile.TemporaryDirectory() as folder:
    for model, flags in CASES:
        bytes_none, flops_none = facts(model, flags, folder)
        bytes_full, flops_full = facts(model, flags + " --recompute=full", folder)
        memory = bytes_full + 3 * (bytes_none - bytes_full) // 4
        bytes_auto, flops_auto = facts(model, f"{flags} --recompute=auto --memory={memory}", folder)
        print(f"{model} {flags}: none {bytes_none} {flops_none}, full {bytes_full} {flops_full}, auto within {memory}: {bytes_auto} {flops_auto}")
        assert bytes_full < bytes_none and flops_full > flops_none, "full computes more to keep less"
        assert bytes_auto <= memory, "auto keeps to its memory"
        # A quarter of what full saves is there in elementwise ops, or in a few layers.
        assert flops_auto <= flops_none + 0.5 * (flops_full - flops_none), "auto computes no more than it must"
