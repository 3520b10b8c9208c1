#!/usr/bin/env python3
"""A step of decoding of gpt2-124m: one query, KEYS keys, past keys and values as inputs.

  python3 test/bench/decode.py [--bin=build/bin] [--keys=512] [--rounds=5] [--folder=/tmp/decode] [-- FLAGS of hpc-run]

Exports the model with PyTorch (weights at random, kept in --folder) in two ways: `copied` gives all keys and values back, as exporters like it, `new` those of
the query alone, for a caller that keeps a cache. For each, in f32, bf16 and with weights in int8, prints the time of a step and how many times as long it takes as to read all
weights once, and weights, inputs and outputs once, at the bandwidth at which as many threads as this process may use read memory, measured before the
step, round by round; least time and most bandwidth of all rounds. The logits are compared with PyTorch's. Needs torch, transformers, onnx, onnxscript.
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
model, inputs, truth = f"{folder}/{{}}{arguments.keys}.onnx", f"{folder}/in{arguments.keys}.npz", f"{folder}/out{arguments.keys}.npz"

def export(kind):
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
            cache = DynamicCache(tuple(zip(past[0::2], past[1::2])))
            out = self.network(input_ids=ids, attention_mask=mask, position_ids=positions, past_key_values=cache, use_cache=True)
            present = (each for layer in out.past_key_values for each in layer[:2])
            return (out.logits,) + tuple(each if kind == "copied" else each[:, :, -1:] for each in present)

    past = arguments.keys - 1
    cache = [torch.randn(1, config.n_head, past, config.n_embd // config.n_head) for _ in range(2 * config.n_layer)]
    given = (torch.zeros(1, 1, dtype=torch.int64), torch.ones(1, past + 1, dtype=torch.int64), torch.full((1, 1), past, dtype=torch.int64), *cache)
    parts = [f"{layer}.{part}" for layer in range(config.n_layer) for part in ("key", "value")]
    names = ["input_ids", "attention_mask", "position_ids"] + [f"past_key_values.{part}" for part in parts]
    with torch.no_grad():
        program = torch.onnx.export(Step(), given, None, input_names=names, output_names=["logits"] + [f"present.{part}" for part in parts],
                                    opset_version=18, dynamo=True)
        logits = Step()(*given)[0]
    program.save(model.format(kind), external_data=True)
    numpy.savez(inputs, **{name: value.numpy() for name, value in zip(names, given)})
    numpy.savez(truth, logits=logits.numpy())

threads = len(os.sched_getaffinity(0))
pool = concurrent.futures.ThreadPoolExecutor(threads)
streams = [numpy.ones(64 << 20, numpy.float32) for _ in range(threads)]

def bandwidth():
    """GB/s of reads alone, of one place a thread or of two, the best of five each."""
    best = 1e30
    for parts in (1, 2):
        for _ in range(5):
            start = time.perf_counter()
            list(pool.map(lambda stream: stream[:stream.size // parts].dot(stream[-(stream.size // parts):]), streams))
            best = min(best, time.perf_counter() - start)
    return sum(stream.nbytes for stream in streams) / best * 1e-9

os.makedirs(folder, exist_ok=True)
for kind in ("copied", "new"):
    if not os.path.exists(model.format(kind)):
        export(kind)
    for dtype, flag, width in (("f32", "--dtype=model", 4), ("bf16", "--dtype=bf16", 2), ("int8", "--weights=int8", 1)):
        plan, got = f"{folder}/{kind}.{dtype}.plan", f"{folder}/got.npz"
        subprocess.run([f"{arguments.bin}/hpc-opt", model.format(kind), flag, "-o", plan], check=True)
        speed, milliseconds = 0.0, 1e30
        for _ in range(arguments.rounds):
            speed = max(speed, bandwidth())
            out = subprocess.run([f"{arguments.bin}/hpc-run", plan, f"--input={inputs}", f"--output={got}", "--repeat=20", *arguments.flags],
                                 check=True, capture_output=True, text=True).stdout
            milliseconds = min(milliseconds, json.loads(out.splitlines()[0])["min_ms"])
        weights = (50257 * 768 + 12 * 12 * 768 * 768) * width
        every = weights + sum(each.nbytes for file in (inputs, got) for each in numpy.load(file).values())
        logits, true = numpy.load(got)["logits"], numpy.load(truth)["logits"]
        print(f"{kind}, {dtype}: {milliseconds:.1f} ms a step, {milliseconds * speed * 1e6 / weights:.2f} times the weights, {milliseconds * speed * 1e6 / every:.2f} times "
              f"all bytes at {speed:.1f} GB/s; logits within {numpy.abs(logits - true).max() / numpy.abs(true).max():.1e} of PyTorch's", flush=True)
