"""--write-spec, then --spec alone, leads to the same plan, byte for byte; and so does writing it once more. The model with the layout as ONNX annotations sends the
same bytes in as much memory; reasons in the plan differ. round_trip.py MODELS FOLDER N: every N-th case."""
import filecmp, json, pathlib, re, subprocess, sys

sys.path.insert(1, str(pathlib.Path(__file__).resolve().parents[2]))
from arrangements import ARRANGED, SEQUENCE  # noqa: E402

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
    # Axes of a layout stand in the mesh, with its name.
    ("gpt2-odd/dynamo-eager-op18.onnx", GPT2, ["--tp=6", "--tp-layout=2d:2x3", "--pp=2"]),
    ("gpt2-tiny/dynamo-eager-op18.onnx", GPT2, ["--tp=8", "--tp-layout=2.5d:2x2x2"]),
    ("gpt2-odd/dynamo-eager-op18.onnx", GPT2, ["--tp=8", "--tp-layout=3d"]),
    ("mlp/dynamo-op18.onnx", ["--dim", "batch=4"], ["--tp=4", "--tp-layout=2d"]),
    ("gpt2-odd/dynamo-eager-op18.onnx", [*GPT2, "--cp-mode=ulysses"], ["--cp=2", "--tp=2"]),
    ("gpt2-odd/dynamo-eager-op18.onnx", [*GPT2, "--train", "--zero=1"], ["--tp=4", "--tp-layout=2d", "--dp=2", "--micro-batches=2"]),
    ("gpt2-tiny/dynamo-eager-op18.onnx", [*GPT2, "--train"], ["--tp=8", "--tp-layout=3d"]),
    # Choices beside degrees and cuts stand in the section plan.
    ("gpt2-tiny/dynamo-eager-op18.onnx", [*GPT2, "--train"], ["--pp=2", "--pp-chunks=2", "--micro-batches=2", "--dp=2", "--zero=1", "--recompute=full"]),
    ("gpt2-tiny/dynamo-eager-op18.onnx", [*GPT2, "--train"], ["--pp=2", "--micro-batches=4", "--pp-schedule=zb-h1", "--recompute=auto", "--memory=1MiB"]),
    ("gpt2-tiny/dynamo-eager-op18.onnx", [*GPT2, "--train"], ["--pp=2", "--micro-batches=2", "--pp-split=1,3"]),
    ("gpt2-odd/dynamo-eager-op18.onnx", GPT2, ["--cp=2", "--cp-mode=ring"]),
]
# Each arrangement of ranks, in turns forward and a training step with parameters in pieces; flags that say how, not how many, are given again.
HOW = ("--cp-mode=", "--cp-balance=", "--panels")
for number, flags in enumerate(ARRANGED + SEQUENCE):
    how = [flag for flag in flags.split() if flag.startswith(HOW)] + (["--train", "--zero=3"] if number % 2 else [])
    CASES.append(("gpt2-odd/dynamo-eager-op18.onnx", [*GPT2, *how], [flag for flag in flags.split() if not flag.startswith(HOW)] + (["--dp=2"] if number % 2 else [])))


def compile(model, *flags):
    run = subprocess.run(["hpc-opt", str(models / model), *flags], capture_output=True, text=True)
    told = "".join(line for line in run.stderr.splitlines(True) if "remark: taking the annotations" not in line)
    assert run.returncode == 0 and not told, (model, flags, told)


def traffic(plan):
    """What the ranks of a plan send, and what they hold."""
    facts = json.loads(subprocess.run(["hpc-plan", plan, "--json"], capture_output=True, check=True).stdout)
    return sorted((one["kind"], one["axes"], one["bytes"] * one["runs"]) for one in facts["collectives"]), [stage["memory_per_rank"] for stage in facts["stages"]]


CASES = CASES[:: int(sys.argv[3])]
for model, sizes, degrees in CASES:
    first, second, spec, again = (folder / name for name in ("a.plan", "b.plan", "a.json", "b.json"))
    compile(model, *sizes, *degrees, f"--write-spec={spec}", "-o", first)
    compile(model, *sizes, f"--spec={spec}", f"--write-spec={again}", "-o", second)
    annotated, third = folder / "a.onnx", folder / "c.plan"
    # The standard has no word for chunks, nor for what the section plan says.
    if "--pp-chunks=2" not in sizes and not any(flag.startswith(("--pp-chunks", "--pp-schedule", "--pp-split", "--cp-mode")) for flag in degrees):
        compile(model, *sizes, *degrees, f"--write-onnx-annotations={annotated}")
        compile(annotated, *sizes, *(flag for flag in degrees if flag.startswith("--micro-batches")), "-o", third)
        assert traffic(first) == traffic(third), f"{model} {degrees}: other traffic or memory from annotations"
    assert filecmp.cmp(first, second, shallow=False), f"{model} {degrees}: another plan from\n{spec.read_text()}"
    parameters = subprocess.run(["hpc-opt", str(models / model), *sizes[:4], "--list-params"], capture_output=True, text=True).stdout
    rules = json.loads(spec.read_text())["params"]
    assert len(rules) == int(re.search(r"(?m)^(\d+) parameters?,", parameters).group(1)), f"{model}: {len(rules)} rules for\n{parameters}"
    assert spec.read_text() == again.read_text(), f"{model} {degrees}:\n{spec.read_text()}{again.read_text()}"
print(len(CASES), "round trips")
