#!/usr/bin/env python3
"""Trains on streams of tokens without learning (--lr=0), so that the loss of a step says which rows it took: order of epochs, mixtures, parts, formats, padding.

  test/models/token_rows.py BIN MODEL.onnx [MASKED.onnx]     # MASKED has an input attention_mask

Files are written here by NumPy as llm.c (dev/data/data_common.py), Megatron-LM (megatron/core/datasets/indexed_dataset.py) and nanoGPT write theirs.
"""
import json, os, struct, subprocess, sys, tempfile

import numpy

BIN, MODEL, MASKED = (sys.argv[1:] + [None])[:3]
SEQ, BATCH = 8, 4
folder = tempfile.TemporaryDirectory(prefix="hpc-token-rows-")
path = lambda name: os.path.join(folder.name, name)
generator = numpy.random.default_rng(1)


def run(tool, *arguments, processes=1, fails=False):
    runs = [subprocess.Popen([os.path.join(BIN, tool), *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                             env={**os.environ, **({"RANK": str(i), "WORLD_SIZE": str(processes), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": PORT} if processes > 1 else {})})
            for i in range(processes)]
    said = [one.communicate()[0] for one in runs]
    assert any(one.returncode for one in runs) == fails, (arguments, said)
    return said[0]


def port():
    import socket
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return str(free.getsockname()[1])


def compile_(name, batch, *flags, model=MODEL):
    run("hpc-opt", model, "--train", "--evaluate", "--optimizer=sgd", f"--dim=batch_size={batch}", f"--dim=sequence_length={SEQ}", *flags, "-o", path(name))
    return path(name)


def losses(plan, data, steps, *flags, rate="0", **how):
    text = run("hpc-run", plan, "--train", f"--lr={rate}", f"--data={data}", f"--steps={steps}", "--metrics=" + path("m.jsonl"), *flags, **how)
    lines = [json.loads(line) for line in open(path("m.jsonl"))]
    return [line["loss"] for line in lines if "loss" in line], [line["evaluation"] for line in lines if "evaluation" in line], text


def close(a, b):
    assert len(a) == len(b) and numpy.allclose(a, b, 1e-6, 0), (a, b)


single, several = compile_("single.plan", 1), compile_("several.plan", BATCH)
split = compile_("split.plan", BATCH, "--dp=2", "--tp=2")
documents = [generator.integers(0, 256, int(length)) for length in (3, 12, 8, 1, 20, 5, 9, 2, 14, 7, 6, 4)]
stream = numpy.concatenate(documents)
ROWS = len(stream) // SEQ
numpy.save(path("a.npy"), stream.astype(numpy.int64))
loss_of, _, text = losses(single, path("a.npy"), ROWS)
assert len(set(loss_of)) == ROWS and ROWS % BATCH, "the rows must differ for this test to see them, and not fill their batches"
rest = len(stream) % SEQ
assert not rest or f"the last {rest} of {len(stream)} tokens fill no row of {SEQ} and are left out" in text, text
rows_of = lambda found: [int(numpy.argmin(numpy.abs(numpy.array(loss_of) - loss))) for loss in found]

# Each epoch has each row once, in an order of its own and of the seed.
shuffled, _, _ = losses(single, path("a.npy"), 3 * ROWS, "--shuffle", "--seed=3")
order = rows_of(shuffled)
close(shuffled, [loss_of[row] for row in order])
epochs = [order[i * ROWS:(i + 1) * ROWS] for i in range(3)]
assert all(sorted(epoch) == list(range(ROWS)) for epoch in epochs) and epochs[0] != epochs[1] != epochs[2] != epochs[0], epochs
assert rows_of(losses(single, path("a.npy"), ROWS, "--shuffle", "--seed=4")[0]) != epochs[0]

# Batches are that order, four rows at a time, and the last one goes on in the next epoch: alone, cut over ranks, and as two processes.
STEPS = 3 * ROWS // BATCH
expected = [numpy.mean([loss_of[row] for row in order[step * BATCH:(step + 1) * BATCH]]) for step in range(STEPS)]
PORT = port()
for plan, processes in ((several, 1), (split, 1), (split, 2)):
    close(losses(plan, path("a.npy"), STEPS, "--shuffle", "--seed=3", processes=processes)[0], expected)
# A run that goes on takes the rows that come next; its seed comes from the checkpoint.
losses(several, path("a.npy"), 2, "--shuffle", "--seed=3", "--save=" + path("half.safetensors"))
close(losses(several, path("a.npy"), STEPS, "--shuffle", "--load=" + path("half.safetensors"))[0][-(STEPS - 2):], expected[2:])
# Also where a step takes another number of rows from there on.
close(losses(single, path("a.npy"), 2 + 9, "--shuffle", "--load=" + path("half.safetensors"))[0][-9:], [loss_of[row] for row in order[2 * BATCH:2 * BATCH + 9]])
text = losses(several, path("a.npy"), STEPS, "--load=" + path("half.safetensors"))[2]
assert "shuffled by seed 3" in text, text  # the data are others now
# Rows that fill no batch can be left out.
found, _, text = losses(several, path("a.npy"), 2 * (ROWS // BATCH), "--drop-last")
close(found, 2 * [numpy.mean(loss_of[i * BATCH:(i + 1) * BATCH]) for i in range(ROWS // BATCH)])
assert f"the last {ROWS % BATCH} row" in text, text

# Training, validation and test: parts by Megatron's rounding. A loss has each held-out row once, also where they fill no batch.
cuts = [int(round(share * ROWS)) for share in (0, 0.5, 0.9, 1)]
found = losses(single, path("a.npy"), cuts[1] + 1, "--split=50,40,10")[0]
close(found, loss_of[:cuts[1]] + loss_of[:1])
for plan in (single, several, split):
    evaluation = losses(plan, path("a.npy"), 1, "--split=50,40,10")[1][0]
    close([evaluation["loss"]], [numpy.mean(loss_of[cuts[1]:cuts[2]])])
    assert evaluation["valid_tokens"] == (cuts[2] - cuts[1]) * (SEQ - 1), evaluation
text = run("hpc-run", several, "--valid=" + path("a.npy"), "--split=50,40,10")
close([float(text.split("loss ")[1].split(",")[0])], [numpy.mean(loss_of[cuts[2]:])])

# Sources by weight, as build_blending_indices of Megatron-LM chooses: in doubles, with weights that they hold exactly.
numpy.save(path("b.npy"), generator.integers(0, 256, 3 * SEQ).astype(numpy.uint16))
numpy.save(path("c.npy"), generator.integers(0, 256, 5 * SEQ).astype(numpy.uint16))
own = [loss_of, losses(single, path("b.npy"), 3)[0], losses(single, path("c.npy"), 5)[0]]
for weights in ((0.25, 0.125, 0.625), (0.5, 0.25, 0.25)):
    counts, blended = numpy.zeros(3, int), []
    for sample in range(40):
        source = int(numpy.argmax(numpy.array(weights) * max(sample, 1.0) - counts))
        blended.append(own[source][counts[source] % len(own[source])])
        counts[source] += 1
    names = ",".join(f"{path(name)}={weight}" for name, weight in zip(("a.npy", "b.npy", "c.npy"), weights))
    close(losses(single, names, 40)[0], blended)
# Without weights files follow each other, and rows go on over their ends.
numpy.save(path("d1.npy"), stream[:13].astype(numpy.uint16))
numpy.save(path("d2.npy"), stream[13:].astype(numpy.int32))
close(losses(single, path("d1.npy") + "," + path("d2.npy"), ROWS)[0], loss_of)
close(losses(single, path("d?.npy"), ROWS)[0], loss_of)


# The formats of others, known by their content.
def llm_c(name, magic, version, dtype, count=len(stream)):
    header = numpy.zeros(256, numpy.int32)
    header[:3] = magic, version, count
    with open(path(name), "wb") as file:
        file.write(header.tobytes() + stream.astype(dtype).tobytes())


def megatron(name, dtype, code, lengths=None, pointers=None):
    lengths = [len(document) for document in documents] if lengths is None else lengths
    pointers = numpy.cumsum([0] + lengths[:-1]) * numpy.dtype(dtype).itemsize if pointers is None else pointers
    with open(path(name + ".idx"), "wb") as file:
        file.write(b"MMIDIDX\x00\x00" + struct.pack("<QBQQ", 1, code, len(lengths), len(lengths) + 1) + numpy.array(lengths, numpy.int32).tobytes() +
                   numpy.array(pointers, numpy.int64).tobytes() + numpy.arange(len(lengths) + 1, dtype=numpy.int64).tobytes())
    stream.astype(dtype).tofile(path(name + ".bin"))


stream.astype(numpy.uint16).tofile(path("nano.bin"))
stream.astype(numpy.uint32).tofile(path("wide.bin"))
llm_c("one.bin", 20240520, 1, numpy.uint16)
llm_c("two.bin", 20240520, 2, numpy.uint32)
llm_c("llama.bin", 20240801, 7, numpy.uint32)
megatron("mega", numpy.uint16, 8)
megatron("mega32", numpy.int32, 4)
for name in ("nano.bin", "wide.bin", "one.bin", "two.bin", "llama.bin", "mega.idx", "mega.bin", "mega32"):
    found, _, text = losses(single, path(name), ROWS)
    close(found, loss_of)
    assert ("read as ids of 32 bits" in text) == (name == "wide.bin"), (name, text)
fault = lambda name, *flags: run("hpc-run", single, "--train", "--lr=0", "--steps=1", "--data=" + path(name), *flags, fails=True)
llm_c("cut.bin", 20240520, 1, numpy.uint16, len(stream) + 1)
assert f"its header says {len(stream) + 1} tokens of 2 bytes" in fault("cut.bin")
megatron("outside", numpy.uint16, 8, pointers=[0] * 11 + [len(stream) * 2 - 2], lengths=[0] * 11 + [5])
assert "sequence 11 at byte" in fault("outside.idx") and "outside the" in fault("outside.idx")
large = stream.copy()
large[17] = 300
large.astype(numpy.uint16).tofile(path("large.bin"))
assert "token 17 is 300; " in fault("large.bin")
assert "does not hold where documents begin" in fault("nano.bin", "--pad", "--pad-token=0")

# A document a row: the same as an .npz that NumPy pads here.
ids, labels, mask = (numpy.full((len(documents), SEQ), fill, numpy.int64) for fill in (7, -100, 0))
for row, document in enumerate(documents):
    taken = document[:SEQ]
    ids[row, :len(taken)], labels[row, :len(taken)], mask[row, :len(taken)] = taken, taken, 1
for model in filter(None, (MODEL, MASKED)):
    plan = compile_("pad.plan", BATCH, model=model)
    cut = lambda array: array.reshape(-1, BATCH, SEQ)
    arrays = dict(input_ids=cut(ids), labels=cut(labels), **({"attention_mask": cut(mask)} if model == MASKED else {}))
    numpy.savez(path("pad.npz"), **arrays)
    numpy.savez(path("trained.npz"), **{**arrays, "labels": cut(ids)})
    for archive, flags in (("pad.npz", []), ("trained.npz", ["--train-padding"])):
        close(losses(plan, path("mega.idx"), 5, "--pad", "--pad-token=7", *flags, rate="1e-2")[0], losses(plan, path(archive), 5, rate="1e-2")[0])
print("ok")
