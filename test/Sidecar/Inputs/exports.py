"""ColoTensor's rules over every export of a GPT-2: each runs, equals, and has 2 gathers and 1 all-reduce a block, one gather and one all-reduce at the ends.
exports.py FOLDER SIDECAR BLOCKS"""
import json, pathlib, subprocess, sys

folder, sidecar, blocks = pathlib.Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
files = sorted(folder.glob("*.onnx"))
assert len(files) >= 10, files
for number, file in enumerate(files):
    sizes = {"batch_size": 2, "sequence_length": 1 if "past" in file.name else 6}
    if "past" in file.name:
        sizes["past_sequence_length"] = 5
    flags = [part for size in sizes.items() for part in ("--dim", "%s=%d" % size)]
    mesh = ["--tp=3", "--pp=2", "--dp=2"] if number % 2 else ["--tp=2"]
    run = subprocess.run(["hpc-opt", file, f"--spec={sidecar}", *mesh, *flags, "--inference", "--explain=json", "--verify"], capture_output=True, text=True)
    assert run.returncode == 0, f"{file.name}: {run.stderr}"
    told, proof = run.stdout.rsplit("verified: ", 1)
    kinds = [entry["kind"] for entry in json.loads(told)["collectives"]]
    assert proof and (kinds.count("all_gather"), kinds.count("all_reduce")) == (2 * blocks + 1, blocks + 1), f"{file.name}: {kinds}"
print(len(files), "exports")
