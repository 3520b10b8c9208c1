#!/usr/bin/env python3
"""Plans whose kernels are made for AVX2 alone, and whose products use no tile registers, against the true logits.

  avx2.py [--shared] [--bin=build/bin]

Every GPT-2 export of models/ (--shared: of ../shared/models) is compiled to the phase `kernels`, its code made again for x86-64-v3, compiled on and
run, one device and --tp=2 --pp=2, in f32 and bf16; the gradients of a training step are compared with those of the code for this machine, which
train.py compares with the truth. The bounds are those of grid.py, precision.test and train.py. It ends with how many runs there were and how many are FAR.
"""
import argparse, os, subprocess, sys, tempfile
import numpy

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--shared", action="store_true")
parser.add_argument("--bin", default=None)
arguments = parser.parse_args()
FOLDER = os.path.join(ROOT, "../shared/models") if arguments.shared else os.path.join(ROOT, "models")

def tool(name, *how):
    done = subprocess.run([os.path.join(arguments.bin, name) if arguments.bin else name, *how], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{name} {' '.join(how)}:\n{done.stdout}{done.stderr}")
    return done.stdout

def compiled(model, folder, *flags):
    """The path of a plan for AVX2."""
    host, narrow, plan = (f"{folder}/{name}" for name in ("host.mlir", "avx2.mlir", "a.plan"))
    tool("hpc-opt", model, *flags, "--compile-to=kernels", "-o", host)
    tool("hpc-opt", host, "--hpc-emit-kernels=cpu=x86-64-v3", "-o", narrow)
    tool("hpc-opt", narrow, "-o", plan)
    printed = tool("hpc-plan", plan)
    if "avx512" in printed or "avx2" not in printed:
        sys.exit(f"{model}: the plan is not for AVX2")
    return plan

runs = far = 0
def compare(what, got, true, bound):
    global runs, far
    error = numpy.abs(got.astype("d") - true).max() / max(numpy.abs(true).max(), 1e-30)
    runs += 1
    far += not error <= bound
    print(f"{'near' if error <= bound else 'FAR'}: {what}: {error:.2g}, the bound is {bound:g}")

with tempfile.TemporaryDirectory() as folder:
    for family in ("gpt2-odd", "gpt2-tiny"):
        source = os.path.join(FOLDER, family)
        if not os.path.exists(f"{source}/expected_1.npz"):
            continue
        true = numpy.load(f"{source}/expected_1.npz")
        ids = numpy.load(f"{source}/inputs_1.npz")
        for name in sorted(os.listdir(source)):
            if not name.endswith(".onnx") or "past" in name or "dropout" in name:
                continue
            for layout in ([], ["--tp=2", "--pp=2"]):
                for dtype, bound in (([], 3e-6), (["--dtype=bf16"], 2e-2)):
                    batch, length = ids["input_ids"].shape
                    flags = [*layout, *dtype, "--dim", f"batch_size={batch}", "--dim", f"sequence_length={length}"]
                    plan = compiled(f"{source}/{name}", folder, *flags)
                    tool("hpc-run", plan, f"--input={source}/inputs_1.npz", f"--output={folder}/out.npz", "--no-tiles", "--poison")
                    logits, expected = numpy.load(f"{folder}/out.npz")["logits"], true["masked_logits" if "mask" in name else "logits"]
                    if "mask" in name:
                        seen = ids["attention_mask"].astype(bool)
                        logits, expected = logits[seen], expected[seen]
                    compare(f"{family}/{name} {' '.join(layout + dtype)}", logits, expected, bound)
        model, first = f"{source}/dynamo-eager-op18.onnx", f"{source}/inputs_0.npz"
        batch, length = numpy.load(first)["input_ids"].shape
        numpy.savez(f"{folder}/data.npz", input_ids=numpy.load(first)["input_ids"][None])
        flags = ["--train", "--dim", f"batch_size={batch}", "--dim", f"sequence_length={length}"]
        tool("hpc-opt", model, *flags, "-o", f"{folder}/host.plan")
        for plan, out in ((f"{folder}/host.plan", "host.npz"), (compiled(model, folder, *flags), "avx2.npz")):
            tool("hpc-run", plan, f"--gradients={folder}/{out}", f"--data={folder}/data.npz", "--poison", *(["--no-tiles"] if out == "avx2.npz" else []))
        got, expected = numpy.load(f"{folder}/avx2.npz"), numpy.load(f"{folder}/host.npz")
        for key in expected.files:
            compare(f"{family} gradient of {key}", got[key], expected[key], 1e-5)
print(f"{runs} runs, {far} far")
