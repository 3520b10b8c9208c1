#!/usr/bin/env python3
"""Does it learn? The training of README.md, and the same in PyTorch: weights, tokens, order of rows and recipe are those of hpc-train, all computed anew here. Compares the
loss of each step, the held-out losses, the checkpoint and the trained model, and draws both curves.

  test/bench/learn.py FOLDER [--bin=build/bin] [--text=FILE] [--small] [--only=export,text,ours,torch,compare] [--picture=docs/learning.svg]

The text is the manual pages of Perl (Debian's perl-doc, which apt-get downloads into FOLDER; the licence is Perl's: Artistic or GPL-1+). --small: a tiny model on the pages of
docs/, in seconds. Model, text and curves lie in FOLDER, so that a part can be done again. Needs test/requirements.txt.
"""
import argparse
import glob
import json
import math
import os
import resource
import subprocess
import sys
import time

import numpy

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(TOP, "models"))
import gpt2  # noqa: E402

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("folder")
parser.add_argument("--bin", default=os.path.join(TOP, "build", "bin"))
parser.add_argument("--text")
parser.add_argument("--small", action="store_true")
parser.add_argument("--only", default="export,text,ours,torch,compare")
parser.add_argument("--picture")
options = parser.parse_args()
CONFIG = os.path.join(TOP, "models", "configs", "gpt2_6m.toml")
SIZES = ["--n_layer=2", "--n_embd=32", "--n_head=4", "--n_positions=32"] if options.small else ["--n_positions=128"]
CHANGES = {"seq": 32, "global-batch": 4, "micro-batch": 1, "steps": 25, "lr-steps": 25, "warmup": 5, "eval-every": 10, "save-every": 10} if options.small else {}


def recipe():
    """The flags of the run, of the file and of this call."""
    import tomllib

    with open(CONFIG, "rb") as file:
        return tomllib.load(file) | CHANGES


def path(*names):
    return os.path.join(options.folder, *names)


def run(*command):
    print("$", *command, flush=True)
    begin, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(f"  {time.perf_counter() - begin:.1f} s, {after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime:.1f} s of CPU", flush=True)


def export():
    run(sys.executable, os.path.join(TOP, "models", "gpt2.py"), "6m", path("gpt2"), *SIZES)


def text():
    files = [options.text] if options.text else sorted(glob.glob(os.path.join(TOP, "docs", "*.md")))
    if not options.small and not options.text:
        os.makedirs(path("debian"), exist_ok=True)
        subprocess.run(["apt-get", "download", "perl-doc"], check=True, cwd=path("debian"))
        subprocess.run(["dpkg", "-x", *glob.glob(path("debian", "*.deb")), path("debian")], check=True)
        files = sorted(glob.glob(path("debian", "usr", "share", "perl", "5.*", "pod", "perl*.pod")))
    with open(path("text.txt"), "wb") as joined:
        for name in files:
            with open(name, "rb") as file:
                joined.write(file.read())
    print(f"{os.path.getsize(path('text.txt')):,} bytes of {len(files)} files")


def ours():
    run("rm", "-rf", path("run"))
    run(f"{options.bin}/hpc-train", path("gpt2", "model.onnx"), "-c", CONFIG, f"--data={path('text.txt')}", f"--tokenizer={path('gpt2')}", f"--run={path('run')}",
        *[f"--{key}={value}" for key, value in CHANGES.items()])


def tokens():
    """By the library tokenizers; hpc-train's must be the same."""
    import tokenizers

    encoder = tokenizers.ByteLevelBPETokenizer(path("gpt2", "vocab.json"), path("gpt2", "merges.txt"))
    encoder.add_special_tokens(["<|endoftext|>"])
    with open(path("text.txt"), encoding="utf-8", newline="") as file:
        ids = numpy.array(encoder.encode(file.read()).ids + [encoder.token_to_id("<|endoftext|>")])
    kept, = glob.glob(path("text.txt." + 16 * "?" + ".npy"))
    assert numpy.array_equal(numpy.load(kept), ids), "hpc-train has other tokens"
    return ids


def philox4x32(counter, key):
    """Random123's Philox 4x32-10 (Salmon et al., SC 2011); the counter's words may be arrays."""
    a, b, c, d = (numpy.uint64(word) if numpy.isscalar(word) else word.astype(numpy.uint64) for word in counter)
    low, word = numpy.uint64(0xFFFFFFFF), numpy.uint64(32)
    keys = list(key)
    for _ in range(10):
        first, second = a * numpy.uint64(0xD2511F53), c * numpy.uint64(0xCD9E8D57)
        a, b, c, d = second >> word ^ b ^ numpy.uint64(keys[0]), second & low, first >> word ^ d ^ numpy.uint64(keys[1]), first & low
        keys = [(keys[0] + 0x9E3779B9) & 0xFFFFFFFF, (keys[1] + 0xBB67AE85) & 0xFFFFFFFF]
    return a


def permutation(size, seed, epoch):
    """runtime/train/Permutation.h once more: eight rounds of a Feistel network over the next power of 4, walked down to `size`."""
    half = 1
    while 1 << (2 * half) < size:
        half += 1
    mask, shift = numpy.uint64((1 << half) - 1), numpy.uint64(half)

    def encrypt(values):
        left, right = values >> shift, values & mask
        for turn in range(8):
            left, right = right, left ^ (philox4x32((right, turn, 0, epoch), (seed & 0xFFFFFFFF, seed >> 32)) & mask)
        return left << shift | right

    values = encrypt(numpy.arange(size, dtype=numpy.uint64))
    while (outside := values >= size).any():
        values[outside] = encrypt(values[outside])
    return values.astype(numpy.int64)


def data(flags):
    """Rows of the training, shuffled in each epoch, and held-out rows, which are at the end of the text."""
    ids, length = tokens(), flags["seq"]
    rows = ids[:len(ids) // length * length].reshape(-1, length)
    shares = numpy.array([float(share) for share in flags["split"].split(",")])
    first, second = (math.floor(len(rows) * share + 0.5) for share in numpy.cumsum(shares / shares.sum())[:2])
    needed, order = flags["steps"] * flags["global-batch"], []
    while sum(len(epoch) for epoch in order) < needed:
        order.append(permutation(first, flags.get("seed", 0), len(order)))
    return rows[:first][numpy.concatenate(order)[:needed]].reshape(flags["steps"], -1, length), rows[first:second]


def loss_of(model, ids):
    import torch

    logits = model(input_ids=ids).logits[:, :-1]
    return torch.nn.functional.cross_entropy(logits.reshape(-1, logits.shape[-1]), ids[:, 1:].reshape(-1))


def held_out_loss(model, rows):
    import torch

    with torch.no_grad():
        return sum(loss_of(model, part).item() * len(part) for part in torch.from_numpy(rows).split(8)) / len(rows)


def rate(flags, step):
    warmup, steps = flags["warmup"], flags["steps"]
    return flags["lr"] * ((step + 1) / warmup if step < warmup else 0.5 * (1 + math.cos(math.pi * (step - warmup) / (steps - warmup))))


def fresh_model():
    import logging

    import transformers

    logging.disable(logging.WARNING)
    config = transformers.GPT2Config.from_pretrained(path("gpt2"), attn_pdrop=0, resid_pdrop=0, embd_pdrop=0)
    return gpt2.build(config, seed=0)


def train_torch():
    import torch

    if options.small:
        torch.set_num_threads(1)  # tests run beside others
    flags = recipe()
    batches, held_out = data(flags)
    model = fresh_model()
    decayed, others = ([p for p in model.parameters() if (p.ndim >= 2) == matrices] for matrices in (True, False))
    optimizer = torch.optim.AdamW([{"params": decayed}, {"params": others, "weight_decay": 0}], lr=flags["lr"], betas=[float(beta) for beta in flags["betas"].split(",")],
                                  eps=1e-8, weight_decay=flags["weight-decay"])
    curve = {"losses": [], "evaluations": {}}
    begin, cpu = time.perf_counter(), time.process_time()
    for step, ids in enumerate(torch.from_numpy(batches)):
        for group in optimizer.param_groups:
            group["lr"] = rate(flags, step)
        loss = loss_of(model, ids)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), flags["clip"])
        optimizer.step()
        curve["losses"].append(loss.item())
        if (step + 1) % flags["eval-every"] == 0 or step + 1 == flags["steps"]:
            curve["evaluations"][step] = held_out_loss(model, held_out)
            print(f"PyTorch, step {step}: loss {loss.item():.4f}, held out {curve['evaluations'][step]:.4f}", flush=True)
    print(f"PyTorch: {time.perf_counter() - begin:.1f} s, {time.process_time() - cpu:.1f} s of CPU")
    with open(path("torch.json"), "w") as file:
        json.dump(curve, file)


def check_trained(flags, last):
    """The newest checkpoint gives PyTorch the held-out loss that hpc-train printed, and trained.onnx has its weights."""
    import onnx
    import safetensors.torch
    from onnx import numpy_helper

    saved = path("run", "checkpoints", f"step-{flags['steps']:08}")
    tensors = {name: tensor for file in glob.glob(f"{saved}/model*.safetensors") for name, tensor in safetensors.torch.load_file(file).items()}
    model = fresh_model()
    model.load_state_dict(tensors, strict=False)
    assert not {name for name, _ in model.named_parameters()} - set(tensors), sorted(tensors)
    loss = held_out_loss(model, data(flags)[1])
    assert abs(loss - last) < 1e-5 * last, (loss, last)
    for tensor in onnx.load(path("run", "trained.onnx")).graph.initializer:
        if tensor.name in tensors:
            assert numpy.array_equal(numpy_helper.to_array(tensor), tensors.pop(tensor.name).numpy()), tensor.name
    assert set(tensors) <= {"lm_head.weight", "transformer.wte.weight"}, sorted(tensors)  # one of the tied names
    print(f"the checkpoint's held-out loss in PyTorch: {loss:.6f}; trained.onnx has its weights")


def polyline(losses, style, top):
    points = " ".join(f"{60 + 600 * step / len(losses):.1f},{20 + 300 * (1 - loss / top):.1f}" for step, loss in enumerate(losses))
    return f'<polyline points="{points}" fill="none" {style}/>'


def picture(losses, right, held_out):
    top, steps = 12, len(losses)
    grid = [f'<path d="M60 {20 + 300 * (1 - y / top):g}h600" stroke="#ddd"/><text x="50" y="{24 + 300 * (1 - y / top):g}" text-anchor="end">{y}</text>' for y in range(0, top + 1, 2)]
    grid += [f'<text x="{60 + 600 * x / steps:g}" y="340" text-anchor="middle">{x}</text>' for x in range(0, steps + 1, steps // 5)]
    points = [f'<circle cx="{60 + 600 * step / steps:.1f}" cy="{20 + 300 * (1 - loss / top):.1f}" r="4" fill="#b02020"/>' for step, loss in held_out.items()]
    with open(options.picture, "w") as file:
        file.write("\n".join([
            '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 680 370" font-family="sans-serif" font-size="12">', '<rect width="680" height="370" fill="white"/>', *grid,
            polyline(right, 'stroke="#e0842c" stroke-width="5" opacity="0.6"', top), polyline(losses, 'stroke="#1c4e80" stroke-width="1"', top), *points,
            '<text x="360" y="360" text-anchor="middle">step</text>', '<text x="640" y="40" text-anchor="end" fill="#e0842c">PyTorch (wide)</text>',
            '<text x="640" y="58" text-anchor="end" fill="#1c4e80">hpc-train, tp=2 pp=2 (thin)</text>',
            '<text x="640" y="76" text-anchor="end" fill="#b02020">held-out loss</text>', "</svg>", ""]))


def compare():
    flags = recipe()
    with open(path("torch.json")) as file:
        right = json.load(file)
    with open(path("run", "metrics.jsonl")) as file:
        lines = [json.loads(line) for line in file]
    losses = [line["loss"] for line in lines if "loss" in line]
    held_out = {line["step"]: line["evaluation"]["loss"] for line in lines if "evaluation" in line}
    assert len(losses) == len(right["losses"]) == flags["steps"], (len(losses), len(right["losses"]))
    assert set(held_out) == set(map(int, right["evaluations"])), held_out
    apart = [abs(a - b) / b for a, b in zip(losses, right["losses"])]
    apart_held_out = [abs(loss - right["evaluations"][str(step)]) / loss for step, loss in held_out.items()]
    last = held_out[flags["steps"] - 1]
    print(f"loss {losses[0]:.4f} to {losses[-1]:.4f}, held out {last:.4f}; PyTorch {right['losses'][-1]:.4f} and {right['evaluations'][str(flags['steps'] - 1)]:.4f}; a step's loss is at "
          f"most {100 * max(apart):.2g}% off (step {int(numpy.argmax(apart))}), a held-out one {100 * max(apart_held_out):.2g}%")
    check_trained(flags, last)
    if options.picture:
        picture(losses, right["losses"], held_out)
    # So few steps of f32 end much nearer; a wrong order of rows or a forgotten term is off by several percent.
    bound = 2e-5 if options.small else 5e-3
    good = max(apart) < bound and max(apart_held_out) < bound and losses[-1] < 0.97 * losses[0]
    print("equal" if good else "DIFFERENT")
    return not good


os.makedirs(options.folder, exist_ok=True)
parts = {"export": export, "text": text, "ours": ours, "torch": train_torch, "compare": compare}
sys.exit(any([parts[name]() for name in options.only.split(",")]))
