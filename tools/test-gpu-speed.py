"""Models at full size on one card: weights made by fill.py, true logits where they are known, then the forward pass in bf16 of 16 x 1024 tokens beside
PyTorch's, eager and compiled, in turns with ours, and steps of training of 8 x 1024 likewise. A line a case, and a JSON of them. Needs numpy; without
PyTorch the peer is left out, in a line.

    test-gpu-speed.py HPC_RUN PLANS JSON SECONDS
"""
import importlib.util
import json
import math
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import time

BOUNDS = {"f32": 1e-5, "bf16": 2e-2}
BATCH, LENGTH, REPEAT, TURNS = 16, 1024, 10, 3
BYTES_PER_SECOND = 60e6  # of weights, for all that is done with a model
TRAINED, STEPS, RATE = 8, 12, 1e-4  # sequences of a step, steps, learning rate
# Dense bf16 flops a second of the tensor cores, and bytes a second of the memory, by a part of the card's name (NVIDIA's data sheets).
PEAKS = {"H200": (989e12, 4.8e12), "H100 PCIe": (756e12, 2.0e12), "H100": (989e12, 3.35e12), "A100": (312e12, 2.0e12), "L40S": (362e12, 0.86e12), "4090": (165e12, 1.0e12)}
HEADS = {"gpt2-124m": 12, "gpt2-1558m": 25}


def stored_tensors(plan):
    """{name: shape} of a plan's weights, from the output of hpc-plan --json."""
    return {binding["tensor"]: binding["shape"] for stage in plan["stages"] for binding in stage["bindings"] if "tensor" in binding and binding["stored_dtype"] == "f32"}


def write_weights(numpy, fill, shapes, path):
    """A .safetensors of f32, tensor by tensor."""
    header, offset = {}, 0
    for name, shape in shapes.items():
        size = 4 * int(numpy.prod(shape))
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [offset, offset + size]}
        offset += size
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 64)
    with open(path, "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for name, shape in shapes.items():
            file.write(numpy.ascontiguousarray(fill(name, tuple(shape)), dtype=numpy.float32).tobytes())
    return 8 + len(text), header


class Gpt2:
    """The peer: GPT-2 in PyTorch as one would write it. Weights by the names of the export, in one type."""

    def __init__(self, torch, numpy, path, start, header, heads, dtype):
        self.torch, self.heads = torch, heads
        data = numpy.memmap(path, numpy.uint8, "r")
        self.weights = {}
        for name, entry in header.items():
            begin, end = (start + at for at in entry["data_offsets"])
            values = numpy.array(data[begin:end]).view(numpy.float32).reshape(entry["shape"])
            self.weights[name.removeprefix("transformer.")] = torch.from_numpy(values).to("cuda", dtype)
        self.layers = 1 + max(int(found.group(1)) for name in self.weights if (found := re.match(r"h\.(\d+)\.", name)))

    def logits(self, ids):
        functional, w = self.torch.nn.functional, self.weights
        table = w.get("wte.weight", w.get("lm_head.weight"))
        norm = lambda x, name: functional.layer_norm(x, x.shape[-1:], w[name + ".weight"], w[name + ".bias"])
        linear = lambda x, name: x @ w[name + ".weight"] + w[name + ".bias"]
        x = table[ids] + w["wpe.weight"][: ids.shape[1]]
        for layer in range(self.layers):
            h = f"h.{layer}."
            q, k, v = (part.unflatten(-1, (self.heads, -1)).transpose(1, 2) for part in linear(norm(x, h + "ln_1"), h + "attn.c_attn").chunk(3, -1))
            seen = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + linear(seen.transpose(1, 2).flatten(2), h + "attn.c_proj")
            x = x + linear(functional.gelu(linear(norm(x, h + "ln_2"), h + "mlp.c_fc"), approximate="tanh"), h + "mlp.c_proj")
        return norm(x, "ln_f") @ table.T

    def __call__(self, ids):
        return self.logits(ids).argmax(-1)

    def loss(self, ids):
        return self.torch.nn.functional.cross_entropy(self.logits(ids)[:, :-1].flatten(0, 1), ids[:, 1:].flatten())


def timed(torch, model, ids):
    """Milliseconds of REPEAT calls after 2, each until its result is there."""
    times = []
    with torch.inference_mode():
        for i in range(REPEAT + 2):
            torch.cuda.synchronize()
            start = time.perf_counter()
            result = model(ids)
            torch.cuda.synchronize()
            if i > 1:
                times.append(1e3 * (time.perf_counter() - start))
    return times, result


class Bench:
    def __init__(self, hpc_run, seconds):
        self.hpc_run, self.end, self.results = hpc_run, time.time() + seconds, []

    def add(self, name, text, **figures):
        self.results.append({"case": name, **figures})
        state = "skip" if "skipped" in figures else "ok  " if figures.get("passed", True) else "FAIL"
        print(f"{state} {name}: {text}", flush=True)

    def left(self):
        return max(1, self.end - time.time())

    def run(self, plan, weights, inputs, *flags):
        command = [self.hpc_run, str(plan), f"--weights={weights}", "--backend=cuda", *([f"--input={inputs}"] if inputs else []), *flags]
        done = subprocess.run(command, capture_output=True, text=True, timeout=self.left())
        if done.returncode:
            raise RuntimeError((done.stderr.strip().splitlines() or ["no message"])[-1])
        return done.stdout


def compare_logits(bench, numpy, folder, weights, scratch):
    """The export's own outputs against the true ones."""
    for dtype, bound in BOUNDS.items():
        plan, expected = folder / f"{dtype}.plan", folder / "expected_0.npz"
        if not (plan.exists() and expected.exists()):
            continue
        true = numpy.load(expected)
        numpy.savez(scratch / "ids.npz", input_ids=true["input_ids"])
        bench.run(plan, weights, scratch / "ids.npz", f"--output={scratch / 'logits.npz'}")
        got = numpy.load(scratch / "logits.npz")["logits"].astype(numpy.float64)
        scale = max(numpy.abs(true["logits_last"]).max(), numpy.abs(true["logits_first_100"]).max())
        worst = max(numpy.abs(got[:, -1].reshape(true["logits_last"].shape) - true["logits_last"]).max(),
                    numpy.abs(got[..., :100] - true["logits_first_100"]).max()) / scale
        passed = bool(worst <= bound)
        bench.add(f"{folder.name} {dtype} logits", f"difference {worst:.2g} of max (bound {bound:g})", passed=passed, difference=float(worst), bound=bound)


def add_times(bench, name, tokens, times, plan, gpu):
    """A line a program: the median of its times, in ms."""
    flops = sum(stage["product_flops_per_step"] for stage in plan["stages"])
    peak = next((peak for part, peak in PEAKS.items() if part in gpu), None)
    for program, values in times.items():
        median = statistics.median(values)
        text, figures = f"{tokens / median * 1e3:,.0f} tokens/s, {median:.2f} ms", {"ms": median, "tokens_per_second": tokens / median * 1e3}
        if peak:
            figures["share_of_peak"] = flops / peak[0] / (median / 1e3)
            text += f", {100 * figures['share_of_peak']:.0f}% of {peak[0] / 1e12:.0f} TFLOP/s for {flops / 1e12:.2f} TFLOP of products"
        bench.add(f"{name}, {program}", text, **figures)


def measure_training(bench, numpy, torch, gpu, folder, weights, start, header, scratch):
    """Steps on one batch, forward, backward and AdamW: ours, and the peers in autocast with weights in f32. The time of one from its third on (a step is
    captured after two), until its loss is known."""
    ids = numpy.random.default_rng(2).integers(0, 50257, (1, TRAINED, LENGTH))
    numpy.savez(scratch / "batch.npz", input_ids=ids)
    bench.run(folder / "training.plan", weights, None, "--train", f"--data={scratch / 'batch.npz'}", f"--steps={STEPS}", f"--lr={RATE}", f"--metrics={scratch / 'metrics.jsonl'}")
    steps = [json.loads(line) for line in (scratch / "metrics.jsonl").read_text().splitlines()]
    times, losses = {"hpc-run": [step["ms"] for step in steps[3:]]}, {"hpc-run": [step["loss"] for step in steps]}
    for name in ("PyTorch eager", "torch.compile") if torch else ():
        try:
            model = Gpt2(torch, numpy, weights, start, header, HEADS[folder.name], torch.float32)
            optimizer = torch.optim.AdamW([weight.requires_grad_() for weight in model.weights.values()], lr=RATE, weight_decay=0.0, fused=True)
            loss_of, batch = torch.compile(model.loss) if name == "torch.compile" else model.loss, torch.from_numpy(ids[0]).cuda()
            for step in range(STEPS):
                began = time.perf_counter()
                with torch.autocast("cuda", torch.bfloat16):
                    loss = loss_of(batch)
                loss.backward()
                optimizer.step()
                optimizer.zero_grad(set_to_none=True)
                losses.setdefault(name, []).append(loss.item())
                torch.cuda.synchronize()
                if step >= 3:
                    times.setdefault(name, []).append(1e3 * (time.perf_counter() - began))
        except Exception as error:  # whatever a compiler of another project throws
            bench.add(f"{folder.name} training, {name}", f"it ends with {type(error).__name__}", skipped=f"{type(error).__name__}: {str(error)[:200]}")
    add_times(bench, f"{folder.name} training step, bf16, {TRAINED} x {LENGTH}", TRAINED * LENGTH, times, json.loads((folder / "training.json").read_text()), gpu)
    for name, values in losses.items():
        if name != "hpc-run":
            worst = max(abs(a - b) / abs(b) for a, b in zip(losses["hpc-run"], values))
            bench.add(f"{folder.name} losses of {STEPS} steps", f"from {values[0]:.4f} to {values[-1]:.4f}, ours apart by {worst:.2g} from those of {name} (bound {BOUNDS['bf16']:g})",
                      passed=worst <= BOUNDS["bf16"], difference=worst, losses=losses["hpc-run"])


def measure(bench, numpy, torch, gpu, folder, plan, weights, start, header, scratch):
    """Ours and the peers in turns: TURNS times each, so that a card that gets warm is so for all."""
    ids = numpy.random.default_rng(1).integers(0, 50257, (BATCH, LENGTH))
    numpy.savez(scratch / "ids.npz", input_ids=ids)
    peers, times, tokens_of = {}, {"hpc-run": []}, {}
    if torch:
        model = Gpt2(torch, numpy, weights, start, header, HEADS[folder.name], torch.bfloat16)
        peers = {"PyTorch eager": model, "torch.compile": torch.compile(model)}
        device_ids = torch.from_numpy(ids).cuda()
    for turn in range(TURNS):
        said = json.loads(bench.run(folder / "speed.plan", weights, scratch / "ids.npz", f"--repeat={REPEAT}").strip().splitlines()[-1])
        times["hpc-run"] += [said["median_ms"]]
        for name, peer in list(peers.items()):
            try:
                ms, tokens_of[name] = timed(torch, peer, device_ids)
                times.setdefault(name, []).append(statistics.median(ms))
            except Exception as error:  # whatever a compiler of another project throws
                bench.add(f"{folder.name} {name}", f"it ends with {type(error).__name__}", skipped=f"{type(error).__name__}: {str(error)[:200]}")
                del peers[name]
        if turn == 0 and bench.left() < 60:
            break
    add_times(bench, f"{folder.name} forward, bf16, {BATCH} x {LENGTH}", BATCH * LENGTH, times, plan, gpu)
    if torch and "PyTorch eager" in tokens_of:
        bench.run(folder / "speed.plan", weights, scratch / "ids.npz", f"--output={scratch / 'next.npz'}")
        same = float((numpy.load(scratch / "next.npz")["next_token"] == tokens_of["PyTorch eager"].cpu().numpy()).mean())
        bench.add(f"{folder.name} next tokens", f"{100 * same:.1f}% are PyTorch's, which rounds more", same=same)


def main():
    hpc_run, plans, report, seconds = sys.argv[1], pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3]), float(sys.argv[4])
    bench = Bench(hpc_run, seconds)
    try:
        import numpy
    except ImportError:
        bench.add("speed", "this machine's python3 has no numpy, which makes the weights", skipped="no numpy")
        report.write_text(json.dumps(bench.results))
        return 0
    try:
        import torch
        gpu = torch.cuda.get_device_name() if torch.cuda.is_available() else ""
        torch = torch if gpu else None
    except ImportError:
        torch, gpu = None, ""
    if not torch:
        bench.add("PyTorch", "this machine's python3 has none that sees a GPU, so ours stands alone", skipped="no PyTorch with a GPU")
        gpu = subprocess.run("nvidia-smi --query-gpu=name --format=csv,noheader", shell=True, capture_output=True, text=True).stdout
    specification = importlib.util.spec_from_file_location("fill", plans / "fill.py")
    fill = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(fill)
    for folder in sorted(path for path in plans.iterdir() if path.is_dir()):
        try:
            plan = json.loads((folder / "speed.json").read_text())
            # Weights are made and read several times.
            needed = 45 + sum(4 * math.prod(shape) for shape in stored_tensors(plan).values()) / BYTES_PER_SECOND
            if bench.left() < needed:
                bench.add(folder.name, f"it needs {needed:.0f} s, and {bench.left():.0f} are left", skipped="out of time")
                continue
            with tempfile.TemporaryDirectory() as scratch:
                scratch = pathlib.Path(scratch)
                weights = scratch / "weights.safetensors"
                start, header = write_weights(numpy, fill.fill, stored_tensors(plan), weights)
                compare_logits(bench, numpy, folder, weights, scratch)
                measure(bench, numpy, torch, gpu, folder, plan, weights, start, header, scratch)
                if (folder / "training.plan").exists():
                    if torch:
                        torch.cuda.empty_cache()  # for ours, another process
                    measure_training(bench, numpy, torch, gpu, folder, weights, start, header, scratch)
        except (RuntimeError, subprocess.TimeoutExpired, OSError, KeyError, ValueError) as error:
            bench.add(folder.name, f"{error}", passed=False, error=str(error)[:300])
        report.write_text(json.dumps(bench.results))
    return 0


if __name__ == "__main__":
    sys.exit(main())
