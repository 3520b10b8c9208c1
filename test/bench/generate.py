#!/usr/bin/env python3
"""Decoding and prefill of gpt2-124m by hpc-generate: a caller's whole loop, with choosing ids.

  python3 test/bench/generate.py FOLDER/model.onnx [--bin=build/bin] [--rounds=5] [--keys=512] [--scratch=/tmp/generate]

Prints, for f32, bf16 and int8 weights, the time of a step with KEYS keys as a ratio to reading weights, keys and values once, at the bandwidth at which as many threads as this process may
use read memory; the time of a prefill of KEYS tokens as a ratio to the plan of the forward pass; a step at position 100 against one at 1000; and, where PyPI's llama-cpp-python and gguf
are installed, llama.cpp's time of the same step with the same weights (q8_0 beside int8). Round by round in turns; least time of each and most bandwidth of all rounds.
FOLDER is a copy of ../shared/models/gpt2-124m with weights (fill.py). Needs numpy; the peer needs onnx as well.
"""
import argparse, concurrent.futures, importlib.util, json, os, re, subprocess, time
os.environ["OPENBLAS_NUM_THREADS"] = "1"  # a thread of this script each
import numpy

LAYERS, WIDTH, HEADS, VOCABULARY, POSITIONS, STEPS = 12, 768, 12, 50257, 1024, 16
parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("model")
parser.add_argument("--bin", default="build/bin")
parser.add_argument("--rounds", type=int, default=5)
parser.add_argument("--keys", type=int, default=512)
parser.add_argument("--scratch", default="/tmp/generate")
arguments = parser.parse_args()
os.makedirs(arguments.scratch, exist_ok=True)
threads = len(os.sched_getaffinity(0))
pool = concurrent.futures.ThreadPoolExecutor(threads)
streams = [numpy.ones(64 << 20, numpy.float32) for _ in range(threads)]
ids = numpy.random.default_rng(1).integers(0, VOCABULARY, POSITIONS)


def at(name):
    return os.path.join(arguments.scratch, name)


def run(tool, *flags):
    done = subprocess.run([f"{arguments.bin}/{tool}", *flags], capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{tool} {' '.join(flags)}\n{done.stdout}{done.stderr}")
    return done.stdout + done.stderr


def bandwidth():
    """GB/s of reads alone."""
    best = 1e30
    for _ in range(5):
        start = time.perf_counter()
        list(pool.map(lambda stream: stream[:stream.size // 2].dot(stream[-(stream.size // 2):]), streams))
        best = min(best, time.perf_counter() - start)
    return sum(stream.nbytes for stream in streams) / best * 1e-9


def generated(plan, keys):
    """Milliseconds of the prefill and of a step; the steps' keys are `keys` in the mean."""
    given = keys - STEPS // 2
    with open(at("prompt.jsonl"), "w") as out:
        print(json.dumps({"ids": ids[:given].tolist()}), file=out)
    told = run("hpc-generate", plan, f"--ids={at('prompt.jsonl')}", f"--max-new-tokens={STEPS + 1}", f"--output={at('answer.jsonl')}")
    parts = [re.search(rf"{part}: (\d+) tokens in (\S+) s", told) for part in ("prefill", "decoding")]
    prefill, steps = (float(part[2]) * 1e3 for part in parts)
    return prefill, steps / int(parts[1][1])


def forward(plan):
    told = run("hpc-run", plan, f"--input={at('in.npz')}", f"--output={at('out.npz')}", "--repeat=5")
    return json.loads(told.splitlines()[0])["min_ms"]


def write_gguf(path, kind):
    import gguf, onnx
    from onnx import numpy_helper
    types = {"f32": gguf.GGMLQuantizationType.F32, "bf16": gguf.GGMLQuantizationType.BF16, "int8": gguf.GGMLQuantizationType.Q8_0}
    tensors = {each.name: numpy_helper.to_array(each, os.path.dirname(os.path.abspath(arguments.model))) for each in onnx.load(arguments.model, load_external_data=False).graph.initializer
               if each.name.startswith(("transformer.", "lm_head."))}
    tensors.setdefault("transformer.wte.weight", tensors.get("lm_head.weight"))  # tied; an exporter keeps either name
    out = gguf.GGUFWriter(path, "gpt2")
    out.add_context_length(POSITIONS), out.add_embedding_length(WIDTH), out.add_feed_forward_length(4 * WIDTH), out.add_block_count(LAYERS), out.add_head_count(HEADS)
    out.add_layer_norm_eps(1e-5), out.add_tokenizer_model("no_vocab"), out.add_vocab_size(VOCABULARY)
    names = {"wte.weight": "token_embd.weight", "wpe.weight": "position_embd.weight", "ln_f": "output_norm"}
    parts = {"ln_1": "attn_norm", "attn.c_attn": "attn_qkv", "attn.c_proj": "attn_output", "ln_2": "ffn_norm", "mlp.c_fc": "ffn_up", "mlp.c_proj": "ffn_down"}
    names.update({f"h.{i}.{ours}": f"blk.{i}.{theirs}" for i in range(LAYERS) for ours, theirs in parts.items()})
    for ours, theirs in names.items():
        for end in [""] if ours.endswith(".weight") else [".weight", ".bias"]:
            value = tensors["transformer." + ours + end].astype(numpy.float32)
            isProduct = value.ndim == 2 and not ours.startswith("w")
            value = numpy.ascontiguousarray(value.T) if isProduct else value
            type = types[kind] if value.ndim == 2 and ours != "wpe.weight" else types["f32"]
            out.add_tensor(theirs + end, gguf.quants.quantize(value, type), raw_dtype=type)
    out.write_header_to_file(), out.write_kv_data_to_file(), out.write_tensors_to_file()
    out.close()


def peer(kind):
    import llama_cpp
    if not os.path.exists(at(kind + ".gguf")):
        write_gguf(at(kind + ".gguf"), kind)
    model = llama_cpp.Llama(at(kind + ".gguf"), n_ctx=POSITIONS, n_threads=threads, n_threads_batch=threads, verbose=False)

    def measure(keys):
        model.reset()
        model.eval(ids[:keys - STEPS // 2].tolist())
        start = time.perf_counter()
        for id in ids[:STEPS].tolist():
            model.eval([id])
        return (time.perf_counter() - start) / STEPS * 1e3
    return measure


hasPeer = all(importlib.util.find_spec(name) for name in ("llama_cpp", "gguf", "onnx"))
numpy.savez(at("in.npz"), input_ids=ids[None, :arguments.keys])
sizes = ["--dim", "batch_size=1", "--dim", f"sequence_length={arguments.keys}"]
for kind, flag, width, ofCache in (("f32", "--dtype=model", 4, 4), ("bf16", "--dtype=bf16", 2, 2), ("int8", "--weights=int8", 1, 4)):
    run("hpc-opt", arguments.model, flag, "--generate", "--batch=1", f"--max-length={POSITIONS}", "-o", at("generate.plan"))
    run("hpc-opt", arguments.model, flag, *sizes, "-o", at("forward.plan"))
    measure = peer(kind) if hasPeer else None
    speed, best = 0.0, {}
    for _ in range(arguments.rounds):
        speed = max(speed, bandwidth())
        prefill, step = generated(at("generate.plan"), arguments.keys)
        now = {"prefill": prefill * arguments.keys / (arguments.keys - STEPS // 2), "step": step, "forward": forward(at("forward.plan")),
               "early": generated(at("generate.plan"), 100)[1], "late": generated(at("generate.plan"), 1000)[1], **({"peer": measure(arguments.keys)} if measure else {})}
        best = {name: min(value, best.get(name, 1e30)) for name, value in now.items()}
    every = (VOCABULARY * WIDTH + LAYERS * 12 * WIDTH * WIDTH) * width + 2 * LAYERS * WIDTH * arguments.keys * ofCache
    print(f"{kind}: {best['step']:.2f} ms a step, {best['step'] * speed * 1e6 / every:.2f} times all bytes at {speed:.1f} GB/s; prefill {best['prefill'] / best['forward']:.2f} times the forward plan; "
          f"at 1000 {best['late'] / best['early']:.2f} times the step at 100; " + (f"llama.cpp takes {best['peer'] / best['step']:.2f} times as long" if measure else "llama.cpp is not installed"), flush=True)
