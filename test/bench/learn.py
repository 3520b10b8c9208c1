#!/usr/bin/env python3
"""Does it learn? A GPT-2 of 6.4 M parameters, fresh, reads English text (the licences of Debian's base-files, as bytes) for 300 steps: PyTorch and hpc-run
--tp=2 --pp=2 with the same weights, data and recipe. Prints how far apart the losses are and draws both curves. Needs PyTorch, transformers and numpy.

  python3 test/bench/learn.py FOLDER [--bin=build/bin] [--picture=docs/learning.svg] [--only=export,torch,ours,picture]

Model, batches and curves lie in FOLDER (the model is 25 MB and made by seed 0), so that a part can be done again.

Norms and biases begin near 1 and 0, not at them: PyTorch's exporter merges initializers of equal content, so all norms of a fresh model would be one parameter, and all
biases another, in the file and so in training.
"""
import argparse
import json
import math
import os
import subprocess
import sys
import time

import numpy

STEPS, BATCH, SEQUENCE, WARMUP, RATE = 300, 8, 64, 30, 1e-3
BETAS, EPSILON, DECAY, CLIP = (0.9, 0.95), 1e-8, 0.1, 1.0
TEXTS = "Apache-2.0 Artistic CC0-1.0 GFDL-1.3 GPL-1 GPL-2 GPL-3 LGPL-2.1 LGPL-3 MPL-1.1 MPL-2.0".split()

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("folder")
parser.add_argument("--bin", default="build/bin")
parser.add_argument("--picture", default="learning.svg")
parser.add_argument("--only", default="export,torch,ours,picture")
options = parser.parse_args()


def path(name):
    return os.path.join(options.folder, name)


def run(*command):
    print(" ".join(command), flush=True)
    begin = time.perf_counter()
    subprocess.run(command, check=True, stdout=open(path("log.txt"), "a"))
    print(f"  {time.perf_counter() - begin:.1f} s", flush=True)


def export():
    """The model by GPT-2's own rule of initialisation (normal, 0.02, residual projections divided by sqrt(2 layers)), vectors moved by a normal number of 0.01, and one
    batch a step out of the text."""
    import torch
    import transformers

    torch.manual_seed(0)
    config = transformers.GPT2Config(n_layer=8, n_embd=256, n_head=8, vocab_size=256, n_positions=SEQUENCE, use_cache=False, resid_pdrop=0, embd_pdrop=0, attn_pdrop=0)
    model = transformers.GPT2LMHeadModel._from_config(config, attn_implementation="eager").eval()
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.ndim == 1:
                parameter += 0.01 * torch.randn(parameter.shape)
    torch.save(model, path("model.pt"))

    class Logits(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.model = model

        def forward(self, input_ids):
            return self.model(input_ids=input_ids).logits

    sizes = {0: torch.export.Dim("batch_size"), 1: torch.export.Dim("sequence_length", min=2)}
    torch.onnx.export(Logits(), (torch.zeros(2, 16, dtype=torch.int64),), path("model.onnx"), input_names=["input_ids"], output_names=["logits"], opset_version=18,
                      dynamo=True, dynamic_shapes=(sizes,), external_data=False, verbose=False)
    text = numpy.frombuffer(b"\n".join(open(f"/usr/share/common-licenses/{name}", "rb").read() for name in TEXTS), numpy.uint8)
    begins = numpy.random.default_rng(0).integers(0, len(text) - SEQUENCE, (STEPS, BATCH, 1))
    numpy.savez(path("tokens.npz"), input_ids=text[begins + numpy.arange(SEQUENCE)].astype(numpy.int32))
    print(f"{sum(p.numel() for p in model.parameters())} parameters, {len(text)} bytes of text")


def rate(step):
    return RATE * (step + 1) / WARMUP if step < WARMUP else RATE * 0.5 * (1 + math.cos(math.pi * (step - WARMUP) / (STEPS - WARMUP)))


def train_torch():
    import torch

    model = torch.load(path("model.pt"), weights_only=False).train()
    batches = torch.from_numpy(numpy.load(path("tokens.npz"))["input_ids"].astype(numpy.int64))
    decayed, others = ([p for p in model.parameters() if (p.ndim >= 2) == matrices] for matrices in (True, False))
    optimizer = torch.optim.AdamW([{"params": decayed}, {"params": others, "weight_decay": 0}], lr=RATE, betas=BETAS, eps=EPSILON, weight_decay=DECAY)
    losses = []
    begin = time.perf_counter()
    for step, ids in enumerate(batches):
        for group in optimizer.param_groups:
            group["lr"] = rate(step)
        logits = model(input_ids=ids).logits[:, :-1]
        loss = torch.nn.functional.cross_entropy(logits.reshape(-1, logits.shape[-1]), ids[:, 1:].reshape(-1))
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), CLIP)
        optimizer.step()
        losses.append(loss.item())
        if step % 50 == 0:
            print(f"PyTorch step {step}: {losses[-1]:.4f}", flush=True)
    print(f"PyTorch: {time.perf_counter() - begin:.1f} s")
    json.dump(losses, open(path("torch.json"), "w"))


def train_ours():
    run(f"{options.bin}/hpc-opt", path("model.onnx"), "--train", "--tp=2", "--pp=2", "--micro-batches=4", "--pp-schedule=1f1b", f"--dim=batch_size={BATCH}",
        f"--dim=sequence_length={SEQUENCE}", "--optimizer=adamw", f"--betas={BETAS[0]},{BETAS[1]}", f"--epsilon={EPSILON}", f"--weight-decay={DECAY}", "--decay=matrices",
        f"--clip={CLIP}", "-o", path("model.plan"))
    run(f"{options.bin}/hpc-run", path("model.plan"), "--train", f"--data={path('tokens.npz')}", f"--steps={STEPS}", f"--lr={RATE}", "--lr-schedule=cosine",
        f"--warmup={WARMUP}", f"--metrics={path('ours.jsonl')}")


def polyline(losses, style):
    points = " ".join(f"{60 + 600 * step / STEPS:.1f},{20 + 300 * (1 - loss / 6):.2f}" for step, loss in enumerate(losses))
    return f'<polyline points="{points}" fill="none" {style}/>'


def picture():
    ours, torch = [json.loads(line)["loss"] for line in open(path("ours.jsonl"))], json.load(open(path("torch.json")))
    apart = [abs(a - b) / b for a, b in zip(ours, torch, strict=True)]
    summary = f"loss {torch[0]:.3f} to {torch[-1]:.3f}; ours {ours[-1]:.4f}, at most {100 * max(apart):.2g}% from PyTorch's (step {int(numpy.argmax(apart))})"
    grid = [f'<path d="M60 {20 + 300 * (1 - y / 6)}h600" stroke="#ddd"/><text x="50" y="{24 + 300 * (1 - y / 6)}" text-anchor="end">{y}</text>' for y in range(7)]
    grid += [f'<text x="{60 + 600 * x / STEPS}" y="340" text-anchor="middle">{x}</text>' for x in range(0, STEPS + 1, 50)]
    with open(options.picture, "w") as file:
        file.write("\n".join([
            '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 680 370" font-family="sans-serif" font-size="12">', '<rect width="680" height="370" fill="white"/>', *grid,
            polyline(torch, 'stroke="#e0842c" stroke-width="5" opacity="0.6"'), polyline(ours, 'stroke="#1c4e80" stroke-width="1.2"'),
            '<text x="360" y="360" text-anchor="middle">step</text>', '<text x="640" y="40" text-anchor="end" fill="#e0842c">PyTorch 2.15 (wide)</text>',
            '<text x="640" y="58" text-anchor="end" fill="#1c4e80">hpc-run, tp=2 pp=2, 4 micro-batches (thin)</text>', "</svg>", ""]))
    print(summary)
    return max(apart) > 0.01


os.makedirs(options.folder, exist_ok=True)
parts = {"export": export, "torch": train_torch, "ours": train_ours, "picture": picture}
sys.exit(any([parts[name]() for name in options.only.split(",")]))
