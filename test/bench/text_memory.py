#!/usr/bin/env python3
"""Tokenizes a large .jsonl and trains on it, shuffled: the most memory that the process held, and the time that steps waited for data.

  test/bench/text_memory.py PLAN TOKENIZER TEXT [--gigabytes=1] [--steps=100] [--bin=build/bin] [--folder=/tmp]
"""
import argparse, json, os, random, statistics, subprocess, tempfile, time

options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
for name in ("plan", "tokenizer", "text"):
    options.add_argument(name)
options.add_argument("--gigabytes", type=float, default=1)
options.add_argument("--steps", type=int, default=100)
options.add_argument("--bin", default="build/bin")
options.add_argument("--folder", default="/tmp")
options = options.parse_args()


def run(*arguments):
    """Seconds, and the most MiB that were resident, all and without mapped files."""
    process = subprocess.Popen([os.path.join(options.bin, "hpc-run"), options.plan, "--train", "--lr=1e-3", "--shuffle", *arguments], stdout=subprocess.DEVNULL)
    most, start = {"VmHWM:": 0, "RssAnon:": 0}, time.time()
    while process.poll() is None:
        try:
            for line in open(f"/proc/{process.pid}/status"):
                if (key := line.split()[0]) in most:
                    most[key] = max(most[key], int(line.split()[1]) // 1024)
        except OSError:
            pass
        time.sleep(0.02)
    assert process.returncode == 0, arguments
    return f"{time.time() - start:.0f} s, at most {most['VmHWM:']} MiB resident, {most['RssAnon:']} MiB of them no file"


with tempfile.TemporaryDirectory(dir=options.folder) as folder:
    text, numbers, path = open(options.text, "rb").read().decode(errors="replace").encode(), random.Random(1), folder + "/big.jsonl"
    with open(path, "w") as file:
        while file.tell() < options.gigabytes * 2**30:
            start = numbers.randrange(len(text) - 10000)
            file.write(json.dumps({"text": text[start:start + int(numbers.expovariate(1 / 3000)) + 20].decode(errors="ignore")}, ensure_ascii=False) + "\n")
    data = ["--data=" + path, "--tokenizer=" + options.tokenizer]
    print("tokenizing:", run(*data, "--steps=1"))
    print("training:  ", run(*data, f"--steps={options.steps}", "--metrics=" + folder + "/m.jsonl"))
    lines = [json.loads(line) for line in open(folder + "/m.jsonl")][1:]
    print("a step waited for data: median", *(f"{statistics.median(line[key] for line in lines if key in line):.3f} ms {what}" for key, what in (("reader_ms", "of"), ("ms", ""))))
