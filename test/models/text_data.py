#!/usr/bin/env python3
"""Writes a tokenizer of GPT-2's kind with 20 merges, a text file and its tokens: FOLDER/{tokenizer/,corpus.jsonl.gz,held.txt,corpus.npy,held.npy,padded.npz}.

The ids come from a plain byte-pair encoder here, on text of ASCII letters, digits and punctuation.
"""
import gzip, json, os, re, sys

import numpy

folder = sys.argv[1]
os.makedirs(f"{folder}/tokenizer", exist_ok=True)
MERGES = ["t h", "th e", "Ġ the", "i n", "Ġ a", "e r", "a t", "o n", "Ġ b", "o u", "in g", "r e", "h e", "Ġ t", "a n", "an d", "Ġ and", "1 2", "l l", "at er"]
printable = [byte for byte in range(256) if 33 <= byte <= 126 or 161 <= byte <= 172 or byte >= 174]
others = [byte for byte in range(256) if byte not in printable]
letter = {**{byte: chr(byte) for byte in printable}, **{byte: chr(256 + i) for i, byte in enumerate(others)}}
vocabulary = {letter[byte]: byte for byte in range(256)}
vocabulary.update({merge.replace(" ", ""): 256 + i for i, merge in enumerate(MERGES)})
vocabulary["<|endoftext|>"] = END = len(vocabulary)
with open(f"{folder}/tokenizer/vocab.json", "w", encoding="utf-8") as file:
    json.dump(vocabulary, file)
with open(f"{folder}/tokenizer/merges.txt", "w", encoding="utf-8") as file:
    file.write("#version: 0.2\n" + "\n".join(MERGES) + "\n")
ranks = {tuple(merge.split()): i for i, merge in enumerate(MERGES)}


def encode(text):
    ids = []
    for piece in re.findall(r"'(?:[sdmt]|ll|ve|re)| ?[A-Za-z]+| ?[0-9]+| ?[^\sA-Za-z0-9]+|\s+(?!\S)|\s+", text):
        parts = [letter[byte] for byte in piece.encode()]
        while True:
            pairs = [(ranks[pair], i) for i, pair in enumerate(zip(parts, parts[1:])) if pair in ranks]
            if not pairs:
                break
            at = min(pairs)[1]
            parts[at:at + 2] = [parts[at] + parts[at + 1]]
        ids += [vocabulary[part] for part in parts]
    return ids


SEQ, BATCH = 16, 4
documents = [f"The other {i}th thing, and a {i * 12} later.\n\nIt's theirs:\tall of them!  Nothing" + " and on" * (i % 5) for i in range(40)]
with gzip.open(f"{folder}/corpus.jsonl.gz", "wt") as file:
    for i, document in enumerate(documents):
        file.write(json.dumps({"id": i, "text": document}) + "\n")
held = "".join(document + "\n" for document in reversed(documents))
with open(f"{folder}/held.txt", "w") as file:
    file.write(held)
numpy.save(f"{folder}/corpus.npy", numpy.array([id for document in documents for id in encode(document) + [END]], numpy.uint16))
numpy.save(f"{folder}/held.npy", numpy.array(encode(held) + [END], numpy.int64))

# A document a row, filled up with the token that ends one; only the padding is no label.
ids, labels = numpy.full((len(documents), SEQ), END), numpy.full((len(documents), SEQ), -100)
for row, document in enumerate(documents[:3] + ["Short", "", "on and on"] + documents[6:]):
    taken = (encode(document) + [END])[:SEQ]
    ids[row, :len(taken)], labels[row, :len(taken)] = taken, taken
numpy.savez(f"{folder}/padded.npz", **{name: array.reshape(-1, BATCH, SEQ) for name, array in (("input_ids", ids), ("labels", labels))})
with open(f"{folder}/short.jsonl", "w") as file:
    for document in documents[:3] + ["Short", "", "on and on"] + documents[6:]:
        file.write(json.dumps({"text": document}) + "\n")
