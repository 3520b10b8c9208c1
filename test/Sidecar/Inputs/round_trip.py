"""--write-spec, then --spec alone, leads to the same plan, byte for byte; and so does writing it once more. round_trip.py MODELS FOLDER"""
import filecmp, json, pathlib, re, subprocess, sys

models, folder = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
GPT2 = ["--dim", "batch_size=4", "--dim", "sequence_length=9"]
COLOTENSOR = f"--spec={models}/gpt2.colotensor.shard.json"
CASES = [
    ("gpt2-tiny/dynamo-eager-op18.onnx", GPT2, ["--tp=3", "--pp=2"]),
    ("gpt2-tiny/dynamo-eager-op18.onnx", [*GPT2, "--pp-chunks=2"], ["--pp=2", "--micro-batches=2"]),
    ("gpt2-odd/dynamo-eager-op18.onnx", GPT2, ["--tp=2"]),
    ("gpt2-odd/dynamo-eager-op18.onnx", GPT2, ["--tp=2", "--pp=3", "--dp=2", "--micro-batches=2"]),
    ("gpt2-odd/dynamo-eager-op18.onnx", GPT2, ["--tp=2", "--pp=2", COLOTENSOR]),
    ("decoder/model.onnx", ["--dim", "batch=4", "--dim", "time=9"], ["--tp=4", "--pp=2"]),
    ("mlp/dynamo-op18.onnx", ["--dim", "batch=4"], ["--tp=2", "--pp=3", "--dp=2"]),
    ("mlp/dynamo-op18.onnx", ["--dim", "batch=4"], []),
    ("resnet/model.onnx", ["--dim", "batch=4"], ["--tp=2", "--dp=2"]),
    ("vit/model.onnx", ["--dim", "batch=4"], ["--tp=3", "--pp=2"]),
]


def compile(model, *flags):
    run = subprocess.run(["hpc-opt", str(models / model), *flags], capture_output=True, text=True)
    assert run.returncode == 0 and not run.stderr, (model, flags, run.stderr)


for model, sizes, degrees in CASES:
    first, second, spec, again = (folder / name for name in ("a.plan", "b.plan", "a.json", "b.json"))
    compile(model, *sizes, *degrees, f"--write-spec={spec}", "-o", first)
    compile(model, *sizes, f"--spec={spec}", f"--write-spec={again}", "-o", second)
    assert filecmp.cmp(first, second, shallow=False), f"{model} {degrees}: another plan from\n{spec.read_text()}"
    parameters = subprocess.run(["hpc-opt", str(models / model), *sizes[:4], "--list-params"], capture_output=True, text=True).stdout
    rules = json.loads(spec.read_text())["params"]
    assert len(rules) == int(re.search(r"(?m)^(\d+) parameters?,", parameters).group(1)), f"{model}: {len(rules)} rules for\n{parameters}"
    assert spec.read_text() == again.read_text(), f"{model} {degrees}:\n{spec.read_text()}{again.read_text()}"
print(len(CASES), "round trips")
