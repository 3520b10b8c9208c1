"""Runs every plan of a folder on the host and on the GPU, all ranks on one card, and compares the outputs; a line a case,
one JSON of figures. Called by test-gpu.sh; needs Python's own library alone, for it runs on bare machines.

    test-gpu.py HPC_RUN PLANS JSON
"""
import array
import io
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import zipfile

BOUND = 1e-5  # of the largest |value|: sums in f32 in another order


def read_npz(path):
    """{name: values} of an .npz of f32 arrays."""
    arrays = {}
    with zipfile.ZipFile(path) as file:
        for name in file.namelist():
            data = io.BytesIO(file.read(name))
            data.seek(8)
            header = data.read(int.from_bytes(data.read(2), "little")).decode()
            assert re.search(r"'descr': '<f4'", header), header
            values = array.array("f")
            values.frombytes(data.read())
            arrays[name] = values
    return arrays


def run(hpc_run, plan, inputs, output, *flags):
    """(seconds a step, or None; the last line of an error)"""
    command = [hpc_run, str(plan), f"--input={inputs}", *flags]
    done = subprocess.run([*command, f"--output={output}"], capture_output=True, text=True, timeout=120)
    if done.returncode:
        return None, (done.stderr.strip().splitlines() or ["no message"])[-1]
    if "HPC_CUDA_LIBRARIES" in os.environ:  # a stand-in, whose times say nothing
        return {}, ""
    timed = subprocess.run([*command, "--repeat=10"], capture_output=True, text=True, timeout=120)
    return (json.loads(timed.stdout.strip().splitlines()[-1]) if timed.returncode == 0 else {}), ""


def compare(hpc_run, plan, folder):
    ranks = 1
    for part in re.findall(r"(?:tp|pp)(\d+)", plan.stem):
        ranks *= int(part)
    inputs = plan.parent / "inputs.npz"
    host, error = run(hpc_run, plan, inputs, folder / "host.npz")
    if error:
        return {"plan": plan.stem, "error": "host: " + error}
    gpu, error = run(hpc_run, plan, inputs, folder / "gpu.npz", "--backend=cuda", f"--ranks-per-gpu={ranks}")
    if error:
        return {"plan": plan.stem, "error": error}
    wanted, got = read_npz(folder / "host.npz"), read_npz(folder / "gpu.npz")
    worst = 0.0
    for name, values in wanted.items():
        scale = max(abs(value) for value in values) or 1.0
        for left, right in zip(values, got[name], strict=True):
            # Written so that NaN counts as a difference.
            worst = worst if abs(left - right) / scale <= worst else abs(left - right) / scale
            if worst != worst:
                worst = float("inf")
    return {"plan": plan.stem, "difference": worst, "host": host, "gpu": gpu}


def main():
    hpc_run, plans, report = sys.argv[1:]
    results = []
    with tempfile.TemporaryDirectory() as folder:
        for plan in sorted(pathlib.Path(plans).glob("*.plan")):
            result = compare(hpc_run, plan, pathlib.Path(folder))
            result["passed"] = result.get("difference", float("inf")) <= BOUND
            results.append(result)
            print(f"{'ok  ' if result['passed'] else 'FAIL'} {plan.stem}: "
                  f"{result.get('error') or 'difference %.2g of max' % result['difference']}", flush=True)
    pathlib.Path(report).write_text(json.dumps(results, indent=1) + "\n")
    passed = sum(result["passed"] for result in results)
    print(f"{passed} passed, {len(results) - passed} failed; figures in {report}")
    return 0 if results and passed == len(results) else 1


if __name__ == "__main__":
    sys.exit(main())
