#!/usr/bin/python3
"""Assembles the code for devices of every model of the equality grid, ../shared/models included where it is, in four layouts, in f32 and in bf16:
ptxas for sm_80 and sm_90, each module of equal text once. A spill is reported, an error of ptxas is a failure. Without ptxas (a CUDA toolkit, or
PyPI's nvidia-cuda-nvcc with its bin in PATH) everything is skipped, and counted. The last line is `N passed, N failed, N skipped`.

  test/gpu/ptx.py [--bin=build/bin] [--models=gpt2-odd,mlp] [--jobs=2]
"""
import argparse
import collections
import concurrent.futures
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "test", "models"))
import grid  # noqa: E402

LAYOUTS = ((1, 1), (2, 1), (3, 1), (1, 2))  # tp, pp
ARCHITECTURES = ("sm_80", "sm_90")

Kernel = collections.namedtuple("Kernel", "name registers spills")


def call(command):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
    return done.returncode, done.stdout


def module_of(options, model, tp, pp, dtype, stem):
    """(text of the PTX, or None; what went wrong)"""
    case = grid.Case(model, grid.MODELS[model].sets[0], tp, pp, 1, 1)
    compiling = argparse.Namespace(bin=options.bin, gpu=True, dtype=dtype)
    code, said = call(grid.compile_command(compiling, case, False, stem + ".plan", os.path.join(os.path.dirname(stem), "kernels")))
    if code:
        return None, said
    done = subprocess.run([os.path.join(options.bin, "hpc-plan"), stem + ".plan", "--ptx"], stdout=subprocess.PIPE, text=True)
    return (done.stdout, "") if done.returncode == 0 else (None, "hpc-plan --ptx failed")


def kernels_of(said):
    """What ptxas -v says of each function."""
    found = []
    for name, text in re.findall(r"Compiling entry function '(\w+)'(.*?)(?=Compiling entry|\Z)", said, re.S):
        registers = re.search(r"Used (\d+) registers", text)
        spills = re.search(r"(\d+) bytes spill stores", text)
        found.append(Kernel(name, int(registers.group(1)) if registers else 0, int(spills.group(1)) if spills else 0))
    return found


def assemble(text, architecture, stem):
    with open(stem + ".ptx", "w") as file:
        file.write(text)
    code, said = call(["ptxas", "-v", "-arch=" + architecture, stem + ".ptx", "-o", stem + ".cubin"])
    os.remove(stem + ".ptx")
    return code, said


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", default=os.path.join(ROOT, "build", "bin"))
    parser.add_argument("--models", help="comma-separated, as grid.py has them (default: all)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    options = parser.parse_args()
    if os.path.isdir(grid.SHARED):
        grid.MODELS.update(grid.shared_models())
    models = options.models.split(",") if options.models else list(grid.MODELS)
    if not shutil.which("ptxas"):
        print("ptx.py: there is no ptxas in PATH")
        print(f"0 passed, 0 failed, {len(models)} skipped")
        return 0
    counts, assembled, kernels, failures = collections.Counter(), {}, [], []
    with tempfile.TemporaryDirectory(prefix="hpc-ptx-") as folder, concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:

        def run(number, model, tp, pp, dtype):
            stem = os.path.join(folder, str(number))
            text, said = module_of(options, model, tp, pp, dtype, stem)
            if text is None:
                shallow = model in grid.SHALLOW and "places to cut" in said
                return ("skipped" if shallow else "failed"), said, None
            return "passed", "", text

        work = [(model, tp, pp, dtype) for model in models for tp, pp in LAYOUTS for dtype in ("model", "bf16")]
        for case, (result, said, text) in zip(work, pool.map(lambda numbered: run(numbered[0], *numbered[1]), enumerate(work))):
            if result != "passed":
                counts[result] += 1
                failures += [(case, said)] if result == "failed" else []
                continue
            for architecture in ARCHITECTURES:
                key = hashlib.sha256((architecture + text).encode()).hexdigest()
                if key not in assembled:
                    assembled[key] = pool.submit(assemble, text, architecture, os.path.join(folder, key))
                counts["modules"] += 1
            code = max(assembled[hashlib.sha256((a + text).encode()).hexdigest()].result()[0] for a in ARCHITECTURES)
            counts["passed" if code == 0 else "failed"] += 1
            failures += [(case, "ptxas refuses the module")] if code else []
    for future in assembled.values():
        code, said = future.result()
        if code:
            print(said[-2000:])
        kernels += kernels_of(said)
    for case, said in failures:
        print("FAILED:", *case, said[-1000:])
    for kernel in sorted({kernel for kernel in kernels if kernel.spills}):
        print(f"spills: {kernel.name}, {kernel.spills} bytes at {kernel.registers} registers")
    print(f"{counts['modules']} modules of {len(work)} plans, {len(assembled)} of them different, assembled {len(kernels)} kernels "
          f"({len({kernel.name for kernel in kernels})} names), at most {max((kernel.registers for kernel in kernels), default=0)} registers, "
          f"{sum(kernel.spills > 0 for kernel in kernels)} with spills")
    print(f"{counts['passed']} passed, {counts['failed']} failed, {counts['skipped']} skipped")
    return 1 if counts["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
