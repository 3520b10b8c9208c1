#!/usr/bin/env python3
"""A step of decoding of gpt2-124m: one query, KEYS keys, past keys and values as inputs, present ones as outputs.

  python3 test/bench/decode.py [--bin=build/bin] [--keys=512] [--rounds=5] [--folder=/tmp/decode] [-- FLAGS of hpc-run]

Exports the model with PyTorch (weights at random, kept in --folder), and prints for f32 and bf16 the time of a step, and how many times as long it
takes as to read all weights once, at the bandwidth at which as many threads as this process may use read memory, measured round by round before
the step. Keys and values are copied into the outputs beside that: 75 MB more in f32 with 512 keys. The logits are compared with PyTorch's.
Needs torch, transformers, onnx, onnxscript.
"""
import argparse, concurrent.futures, json, os, subprocess, time
os.environ["OPENBLAS_NUM_THREADS"] = "1"  # a thread of this script each
import numpy

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--bin", default="build/bin")
parser.add_argument("--keys", type=int, default=512)
parser.add_argument("--rounds", type=int, default=5)
parser.add_argument("--folder", default="/tmp/decode")
parser.add_argument("flags", nargs="*")
arguments = parser.parse_args()
folder = arguments.folder
model, inputs, truth = (f"{folder}/{name}" for name in (f"decode{arguments.keys}.onnx", f"in{arguments.keys}.npz", f"out{arguments.keys}.npz"))

def export():
    import torch
    from transformers import GPT2Config, GPT2LMHeadModel
    from transformers.cache_utils import DynamicCache
    config = GPT2Config(resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0)
    torch.manual_seed(0)
    network = GPT2LMHeadModel._from_config(config, attn_implementation="eager").eval()

    class Step(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.network = network
        def forward(self, ids, mask, positions, *past):
            cache = DynamicCache.from_legacy_cache(tuple(zip(past[0::2], past[1::2])))
            out = self.network(input_ids=ids, attention_mask=mask, position_ids=positions, past_key_values=cache, use_cache=True)
            return (out.logits,) + tuple(each for layer in out.past_key_values.to_legacy_cache() for each in layer)

    past = arguments.keys - 1
    cache = [torch.randn(1, config.n_head, past, config.n_embd // config.n_head) for _ in range(2 * config.n_layer)]
    given = (torch.zeros(1, 1, dtype=torch.int64), torch.ones(1, past + 1, dtype=torch.int64), torch.full((1, 1), past, dtype=torch.int64), *cache)
    parts = [f"{layer}.{part}" for layer in range(config.n_layer) for part in ("key", "value")]
    names = ["input_ids", "attention_mask", "position_ids"] + [f"past_key_values.{part}" for part in parts]
    with torch.no_grad():
        program = torch.onnx.export(Step(), given, None, input_names=names, output_names=["logits"] + [f"present.{part}" for part in parts],
                                    opset_version=18, dynamo=True)
        logits = Step()(*given)[0]
    program.save(model, external_data=True)
    numpy.savez(inputs, **{name: value.numpy() for name, value in zip(names, given)})
    numpy.savez(truth, logits=logits.numpy())

threads = len(os.sched_getaffinity(0))
pool = concurrent.futures.ThreadPoolExecutor(threads)
streams = [numpy.ones(64 << 20, numpy.float32) for _ in range(threads)]

def bandwidth():
    """GB/s of reads alone, the best of five."""
    best = 1e30
    for _ in range(5):
        start = time.perf_counter()
        list(pool.map(lambda stream: stream.dot(stream), streams))
        best = min(best, time.perf_counter() - start)
    return sum(stream.nbytes for stream in streams) / best * 1e-9

os.makedirs(folder, exist_ok=True)
if not os.path.exists(truth):
    export()
for dtype, width in (("model", 4), ("bf16", 2)):
    plan = f"{folder}/{dtype}.plan"
    subprocess.run([f"{arguments.bin}/hpc-opt", model, f"--dtype={dtype}", "-o", plan], check=True)
    best, least = None, None
    for _ in range(arguments.rounds):
        speed = bandwidth()
        out = subprocess.run([f"{arguments.bin}/hpc-run", plan, f"--input={inputs}", f"--output={folder}/got.npz", "--repeat=10", *arguments.flags],
                             check=True, capture_output=True, text=True).stdout
        milliseconds = json.loads(out.splitlines()[0])["min_ms"]
        floor = (50257 * 768 + 12 * 12 * 768 * 768) * width / speed * 1e-6
        if best is None or milliseconds / floor < best:
            best, least = milliseconds / floor, (milliseconds, floor, speed)
    got, true = numpy.load(f"{folder}/got.npz")["logits"], numpy.load(truth)["logits"]
    print(f"{dtype}: {least[0]:.1f} ms a step, {best:.2f} times the {least[1]:.1f} ms of the weights at {least[2]:.1f} GB/s; "
          f"logits within {numpy.abs(got - true).max() / numpy.abs(true).max():.1e} of PyTorch's")
