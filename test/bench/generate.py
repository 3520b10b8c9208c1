#!/usr/bin/env python3
"""Decoding and prefill of gpt2-124m by hpc-generate: a caller's whole loop, with choosing ids.

  python3 test/bench/generate.py FOLDER/model.onnx [--bin=build/bin] [--rounds=5] [--keys=512] [--kinds=f32,bf16,int8] [--scratch=/tmp/generate]

Prints, for f32, bf16 and int8 weights, the time of a step with KEYS keys beside its floor: reading weights, keys and values once, at the bandwidth at which as many threads as this
process may use read memory, four places each; the same of a step alone, by hpc-run; the time of a prefill of KEYS tokens beside the plan of the forward pass; the steps at positions 100
and 1000 beside the time of reading the keys between; and, where PyPI's llama-cpp-python and gguf are installed, llama.cpp's time of the same step with the same weights (q8_0 beside
int8). Round by round in turns; least time of each and most bandwidth of all rounds. FOLDER is a copy of ../shared/models/gpt2-124m with weights (fill.py). Needs numpy and cc; the peer
needs onnx as well. Beside other work: `chrt -f 10 python3 ...`, as root, gives all of them both cores.
"""
import argparse, concurrent.futures, ctypes, importlib.util, json, os, re, subprocess, time
import numpy

LAYERS, WIDTH, HEADS, VOCABULARY, POSITIONS, STEPS = 12, 768, 12, 50257, 1024, 16
parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("model")
parser.add_argument("--bin", default="build/bin")
parser.add_argument("--rounds", type=int, default=5)
parser.add_argument("--keys", type=int, default=512)
parser.add_argument("--kinds", default="f32,bf16,int8")
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


def compiled_read():
    """A function of memory and its number of floats that reads it, in four places side by side."""
    code = """typedef float vector __attribute__((vector_size(32), aligned(4)));
    float total(const float *x, long n) {
      vector sums[8] = {};
      for (long i = 0, quarter = n / 4; i < quarter; i += 16)
        for (int part = 0; part < 4; ++part)
          for (int half = 0; half < 2; ++half)
            sums[2 * part + half] += *(const vector *)(x + part * quarter + i + 8 * half);
      for (int i = 1; i < 8; ++i)
        sums[0] += sums[i];
      return sums[0][0];
    }"""
    subprocess.run(["cc", "-O3", "-march=native", "-shared", "-fPIC", "-x", "c", "-", "-o", at("read.so")], input=code, text=True, check=True)
    total = ctypes.CDLL(at("read.so")).total
    return lambda stream: total(stream.ctypes.data_as(ctypes.c_void_p), ctypes.c_long(stream.size))


read = compiled_read()


def bandwidth():
    """GB/s of reads alone."""
    best = 1e30
    for _ in range(5):
        start = time.perf_counter()
        list(pool.map(read, streams))
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


def alone(plan, given, repeat, *flags):
    numpy.savez(at("in.npz"), **given)
    told = run("hpc-run", plan, f"--input={at('in.npz')}", f"--output={at('out.npz')}", f"--repeat={repeat}", *flags)
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
sizes = ["--dim", "batch_size=1", "--dim", f"sequence_length={arguments.keys}"]
for kind, flag, width, ofCache in (("f32", "--dtype=model", 4, 4), ("bf16", "--dtype=bf16", 2, 2), ("int8", "--weights=int8", 1, 4)):
    if kind not in arguments.kinds.split(","):
        continue
    run("hpc-opt", arguments.model, flag, "--generate", "--batch=1", f"--max-length={POSITIONS}", "-o", at("generate.plan"))
    run("hpc-opt", arguments.model, flag, *sizes, "-o", at("forward.plan"))
    measure = peer(kind) if hasPeer else None
    speed, best = 0.0, {}
    for _ in range(arguments.rounds):
        speed = max(speed, bandwidth())
        prefill, step = generated(at("generate.plan"), arguments.keys)
        now = {"prefill": prefill * arguments.keys / (arguments.keys - STEPS // 2), "step": step, "forward": alone(at("forward.plan"), {"input_ids": ids[None, :arguments.keys]}, 2),
               "alone": alone(at("generate.plan"), {"input_ids": ids[None, :1], "position": numpy.int64(arguments.keys - 1)}, 30, "--entry=decode"),
               **({"peer": measure(arguments.keys)} if measure else {})}
        for name, position in (("early", 100), ("late", 1000)):
            now[name] = alone(at("generate.plan"), {"input_ids": ids[None, :1], "position": numpy.int64(position)}, 30, "--entry=decode")
        best = {name: min(value, best.get(name, 1e30)) for name, value in now.items()}
    ofKeys = lambda count: 2 * LAYERS * WIDTH * count * ofCache / speed * 1e-6
    floor = (VOCABULARY * WIDTH + LAYERS * 12 * WIDTH * WIDTH) * width / speed * 1e-6 + ofKeys(arguments.keys)
    print(f"{kind}: a step {best['step']:.2f} ms, alone {best['alone']:.2f}, floor {floor:.2f} at {speed:.1f} GB/s: {best['step'] / floor:.2f}, {best['alone'] / floor:.2f} times; "
          f"prefill {best['prefill']:.0f} ms, forward plan {best['forward']:.0f}: {best['prefill'] / best['forward']:.2f} times; "
          f"a step at 1000 {best['late']:.2f} ms, at 100 {best['early']:.2f}, 900 keys {ofKeys(900):.2f}; " +
          (f"llama.cpp {best['peer']:.2f} ms: {best['peer'] / best['step']:.2f} times ours" if measure else "llama.cpp is not installed"), flush=True)
