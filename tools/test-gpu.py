"""Runs the plans of a folder on the host and on the GPU, all ranks on one card, and compares the outputs; some of them once more as a process a rank,
with NCCL, 16-bit ones without cuDNN as well, and one below compute-sanitizer; ten steps of training against the host's, or three on the stand-in; then the models at full size (test-gpu-speed.py). A line a case, one JSON of figures; what cannot be done
here says so in a line. Called by test-gpu.sh; needs Python's own library alone, for it runs on bare machines.

    test-gpu.py HPC_RUN PLANS JSON
"""
import array
import concurrent.futures
import io
import json
import math
import os
import pathlib
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
import zipfile

SECONDS = float(os.environ.get("HPC_TEST_GPU_SECONDS", 470))  # for everything: under 8 minutes
# Parts of the largest |value|; f32: the order of sums; 16 bits: roundings of 2^-9 or 2^-12 through some 20 products.
BOUNDS = {"f32": 1e-5, "bf16": 2e-2, "fp16": 2.5e-3}
REFERENCE = "f32-tp1-pp1.plan"
BY_PROCESSES = ("f32-tp2-pp1", "f32-tp1-pp2", "f32-tp2-pp2")  # NCCL; each rank calls its host by another name, else NCCL refuses one card for two
SANITIZED = "f32-tp2-pp1"
WITHOUT_CUDNN = ("bf16-tp1-pp1", "bf16-tp2-pp2")  # attention by the plan's own kernels: if only one of the two is wrong, it is known which
WITHOUT_EPILOGUES = ("f32-tp1-pp1",)  # bias and activation by kernels: likewise
DIAGNOSED = 3  # failures at most
JOBS = max(1, min(4, (os.cpu_count() or 1) // 4))  # cases at a time: most of a small one's time is the start of a program
LIBRARIES = pathlib.Path(os.environ.get("HPC_CUDA_LIBRARIES", ""))
IS_STAND_IN = (LIBRARIES / "libhpc_gpu_standin.so").exists()  # whose times say nothing
TRAINING = ["--train", f"--steps={3 if IS_STAND_IN and not os.environ.get('HPC_TEST_ALL') else 10}", "--lr=1e-3"]
started = time.time()


def seconds_left(most):
    return max(1, min(most, SECONDS - (time.time() - started)))


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


def difference(wanted, got):
    """The largest, as a part of the largest |wanted value|; NaN counts as infinite."""
    worst = 0.0
    for name, values in wanted.items():
        scale = max(map(abs, values)) or 1.0
        for left, right in zip(values, got[name], strict=True):
            apart = abs(left - right) / scale
            worst = worst if apart <= worst else apart if apart == apart else float("inf")
    return worst


def call(commands, most=120):
    """Of commands that run at the same time: the errors' last lines, none where all succeed."""
    running = [subprocess.Popen(command, env={**os.environ, **env}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for command, env in commands]
    errors = []
    for process in running:
        try:
            said = process.communicate(timeout=seconds_left(most))
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            errors.append("no end in time")
            continue
        if process.returncode:
            errors.append(([line for text in said for line in text.strip().splitlines()] or [f"exit {process.returncode}, no message"])[-1])
    return errors


class Cases:
    def __init__(self, hpc_run, folder):
        self.hpc_run, self.top, self.results = hpc_run, folder, []
        self.references, self.diagnosed, self.thread = {}, 0, threading.local()

    @property
    def folder(self):
        """For files of the case that this thread runs."""
        if not hasattr(self.thread, "folder"):
            self.thread.folder = pathlib.Path(tempfile.mkdtemp(dir=self.top))
        return self.thread.folder

    def each(self, case, plans):
        with concurrent.futures.ThreadPoolExecutor(JOBS) as pool:
            list(pool.map(case, plans))

    def reference(self, plan):
        model = plan.parent
        if model not in self.references:
            output = self.folder / "host.npz"
            errors = call([([self.hpc_run, str(model / REFERENCE), f"--input={model / 'inputs.npz'}", f"--output={output}"], {})])
            self.references[model] = errors or read_npz(output)
        return self.references[model]

    def add(self, name, passed, text, **figures):
        self.results.append({"case": name, "passed": passed, **figures})
        print(f"{'ok  ' if passed else 'FAIL'} {name}: {text}\n", end="", flush=True)  # one write

    def skip(self, name, reason):
        self.results.append({"case": name, "skipped": reason})
        print(f"skip {name}: {reason}", flush=True)

    def compare(self, name, plan, commands):
        """Runs `commands`, the first of which writes gpu.npz."""
        if seconds_left(1e9) <= 1:
            return self.skip(name, f"the {SECONDS} seconds are over")
        wanted = self.reference(plan)
        if isinstance(wanted, list):
            return self.add(name, False, "host: " + wanted[0], error="host: " + wanted[0])
        errors = call(commands)
        if errors:
            return self.add(name, False, errors[0], error=errors[0])
        worst, bound = difference(wanted, read_npz(self.folder / "gpu.npz")), BOUNDS[plan.stem.split("-")[0]]
        self.add(name, worst <= bound, f"difference {worst:.2g} of max (bound {bound:g})", difference=worst, bound=bound)

    def diagnose(self, plan):
        """A case that failed, with one part of the backend left out at a time: the part that is wrong."""
        name = f"{plan.parent.name} {plan.stem}"
        if self.diagnosed >= DIAGNOSED or not any(result["case"] == name and not result.get("passed", True) for result in self.results):
            return
        self.diagnosed += 1
        print(f"     {name}, one part left out at a time:", flush=True)
        for flag in ("--sync-each-op", "--no-cuda-graph", "--no-cudnn", "--epilogues=none"):
            errors = call([(self.command(plan) + [f"--ranks-per-gpu={ranks_of(plan)}", flag], {})])
            text = errors[0] if errors else f"difference {difference(self.reference(plan), read_npz(self.folder / 'gpu.npz')):.2g}"
            print(f"     {flag}: {text}", flush=True)

    def one_card(self, plan):
        self.compare(f"{plan.parent.name} {plan.stem}", plan, [(self.command(plan) + [f"--ranks-per-gpu={ranks_of(plan)}"], {})])

    def without_cudnn(self, plan):
        self.compare(f"{plan.parent.name} {plan.stem} without cuDNN", plan, [(self.command(plan) + [f"--ranks-per-gpu={ranks_of(plan)}", "--no-cudnn"], {})])

    def without_epilogues(self, plan):
        self.compare(f"{plan.parent.name} {plan.stem} without epilogues", plan, [(self.command(plan) + [f"--ranks-per-gpu={ranks_of(plan)}", "--epilogues=none"], {})])

    def same_bits(self, plans):
        """The results of --deterministic on the card, which any layout must have."""
        name, results = f"{plans[0].parent.name} the same bits by {' and '.join(plan.stem for plan in plans)}", []
        for plan in plans:
            errors = call([(self.command(plan) + [f"--ranks-per-gpu={ranks_of(plan)}"], {})])
            if errors:
                return self.add(name, False, errors[0], error=errors[0])
            results.append(read_npz(self.folder / "gpu.npz"))
        worst = max(difference(results[0], other) for other in results[1:])
        self.add(name, worst == 0, "yes" if worst == 0 else f"difference {worst:.2g} of max", difference=worst, bound=0)

    def training(self, plan):
        """Steps on both: their losses."""
        name, losses = f"{plan.parent.name} {plan.stem} training", []
        if seconds_left(1e9) <= 1:
            return self.skip(name, f"the {SECONDS} seconds are over")
        for where in ([], ["--backend=cuda", f"--ranks-per-gpu={ranks_of(plan)}"]):
            metrics = self.folder / "metrics.jsonl"
            errors = call([([self.hpc_run, str(plan), *TRAINING, f"--data={plan.parent / 'inputs.npz'}", f"--metrics={metrics}", *where], {})])
            if errors:
                return self.add(name, False, errors[0], error=errors[0])
            losses.append([json.loads(line)["loss"] for line in metrics.read_text().splitlines()])
        worst = max(abs(host - gpu) / abs(host) for host, gpu in zip(*losses, strict=True))
        bound = BOUNDS[plan.stem.split("-")[0]]
        self.add(name, worst <= bound and losses[0][-1] < losses[0][0], f"losses from {losses[1][0]:.4f} to {losses[1][-1]:.4f}, difference {worst:.2g} (bound {bound:g})",
                 difference=worst, bound=bound, losses=losses[1])

    def generation(self, plan):
        """A step of each entry on both, from caches of zeros: the logits of its last row."""
        for entry in ("prefill", "decode"):
            name, results = f"{plan.parent.name} {plan.stem} {entry}", []
            for where in ([], ["--backend=cuda", f"--ranks-per-gpu={ranks_of(plan)}"]):
                output = self.folder / "logits.npz"
                errors = call([([self.hpc_run, str(plan), f"--entry={entry}", f"--input={plan.parent / entry}.npz", f"--output={output}", *where], {})])
                if errors:
                    self.add(name, False, errors[0], error=errors[0])
                    break
                results.append(read_npz(output))
            else:
                worst, bound = difference(*results), BOUNDS["bf16" if "bf16" in plan.stem else "f32"]
                self.add(name, worst <= bound, f"difference {worst:.2g} of max (bound {bound:g})", difference=worst, bound=bound)

    def processes(self, plan):
        with socket.socket() as one:
            one.bind(("127.0.0.1", 0))
            port = str(one.getsockname()[1])
        count = ranks_of(plan)
        start = [(self.command(plan), {"RANK": str(rank), "WORLD_SIZE": str(count), "LOCAL_RANK": str(rank), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port,
                                       "NCCL_HOSTID": f"host{rank}"}) for rank in range(count)]
        self.compare(f"{plan.parent.name} {plan.stem} in {count} processes by NCCL", plan, start)

    def sanitized(self, plan):
        name = f"{plan.parent.name} {plan.stem} under compute-sanitizer"
        tool = shutil.which("compute-sanitizer", path=os.environ.get("PATH", "") + ":/usr/local/cuda/bin")
        if not tool or IS_STAND_IN:
            return self.skip(name, "a stand-in looks by itself" if tool else "there is no compute-sanitizer")
        self.compare(name, plan, [([tool, "--error-exitcode=9", *self.command(plan), f"--ranks-per-gpu={ranks_of(plan)}"], {})])

    def command(self, plan):
        return [self.hpc_run, str(plan), f"--input={plan.parent / 'inputs.npz'}", f"--output={self.folder / 'gpu.npz'}", "--backend=cuda"]


def ranks_of(plan):
    return math.prod(int(size) for size in re.findall(r"(?:^|-)(?:tp|pp|dp|cp)(\d+)", plan.stem))


def gpu_name():
    try:
        done = subprocess.run(["nvidia-smi", "--query-gpu=name,driver_version,memory.total", "--format=csv,noheader"], capture_output=True, text=True, timeout=20)
        return done.stdout.strip().splitlines()[0] if done.returncode == 0 else "unknown"
    except (OSError, subprocess.TimeoutExpired, IndexError):
        return "unknown"


def calibrate(cases):
    """The machine file that hpc-calibrate makes of the card: its figures."""
    if IS_STAND_IN:
        return cases.skip("hpc-calibrate", "a stand-in's times say nothing")
    machine = cases.folder / "machine.json"
    errors = call([([str(pathlib.Path(cases.hpc_run).with_name("hpc-calibrate")), "--target=cuda", f"--output={machine}"], {})])
    if errors:
        return cases.add("hpc-calibrate", False, errors[0], error=errors[0])
    found = json.loads(machine.read_text())
    cases.add("hpc-calibrate", True, json.dumps(found), machine=found)


def measure(cases, plans, report):
    """Speed, in a program of its own: it needs numpy, and PyTorch for the peer."""
    if IS_STAND_IN:
        return cases.skip("speed", "a stand-in's times say nothing")
    if not plans.is_dir():
        return cases.skip("speed", "the folder was packed without ../shared/models")
    program = pathlib.Path(__file__).parent / "test-gpu-speed.py"
    figures = report.with_suffix(".speed.json")
    figures.unlink(missing_ok=True)
    left = int(seconds_left(SECONDS))
    try:
        code = subprocess.run([sys.executable, str(program), cases.hpc_run, str(plans), str(figures), str(left - 5)], timeout=left).returncode
    except subprocess.TimeoutExpired:
        code = 124
    if figures.exists():
        for result in json.loads(figures.read_text()):
            cases.results.append(result)
        figures.unlink()
    if code:
        cases.add("speed", False, f"test-gpu-speed.py ended with {code}", error=f"exit {code}")


def main():
    hpc_run, plans, report = sys.argv[1], pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3])
    gpu = "stand-in" if IS_STAND_IN else gpu_name()
    with tempfile.TemporaryDirectory() as folder:
        cases = Cases(hpc_run, pathlib.Path(folder))
        found = sorted((plans / "models").glob("*/*.plan"))
        for plan in found:
            cases.reference(plan)
        cases.each(cases.one_card, found)
        for plan in found:
            cases.diagnose(plan)
        gpt2s = [plan for plan in found if plan.parent.name.startswith("gpt2")]
        cases.each(cases.without_cudnn, [plan for plan in gpt2s if plan.stem in WITHOUT_CUDNN])
        cases.each(cases.without_epilogues, [plan for plan in gpt2s if plan.stem in WITHOUT_EPILOGUES])
        if len(deterministic := [plan for plan in found if plan.stem.endswith("-deterministic")]) > 1:
            cases.same_bits(deterministic)
        cases.each(cases.training, sorted((plans / "training").glob("*/*.plan")))
        cases.each(cases.generation, sorted((plans / "generation").glob("*/*.plan")))
        for plan in gpt2s:
            if plan.stem in BY_PROCESSES:
                cases.processes(plan)
        for plan in found:
            if plan.stem == SANITIZED:
                cases.sanitized(plan)
        calibrate(cases)
        measure(cases, plans / "speed", report)
    passed = sum(result.get("passed", False) for result in cases.results)
    failed = sum(not result.get("passed", True) for result in cases.results)
    skipped = sum("skipped" in result for result in cases.results)
    report.write_text(json.dumps({"gpu": gpu, "seconds": round(time.time() - started), "results": cases.results}, indent=1) + "\n")
    print(f"{passed} passed, {failed} failed, {skipped} skipped on {gpu} in {time.time() - started:.0f} s; figures in {report}")
    return 0 if passed and not failed else 1


if __name__ == "__main__":
    sys.exit(main())
