#!/usr/bin/python3
"""Checkpoints of hpc-run --checkpoints, of models/gpt2-odd: each case in a scratch folder of its own.

  contents   with a rate of 0 their tensors are the initializers of the ONNX file; else weights and states are those of --save, on one process and on four, in one shard and in many
  resume     the bits of a run at one stretch on the same layout, also mid-epoch, with dropout, fp16's loss scale and micro-batches; on tp=2, then pp=2, dp=2 with ZeRO 3, serial within 1e-5
  kill       SIGKILL at a call that changes the folder: the checkpoint before is found, the run from it has the right bits, and nothing is left over (--all: at each call)
  nospace    likewise ENOSPC: one error, exit 1, nothing is left over
  damage     bytes flipped, files cut off, removed and exchanged: refused by name, and the checkpoint before is taken
  signals    SIGTERM, SIGINT, SIGUSR1, to one of two processes, and a second one
  folder     --keep, --keep-every, a folder in use, a step that is saved again

  test/models/checkpoints.py [--bin=build/bin] [--only=kill,damage] [--all]
"""
import argparse
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

import numpy

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import onnx_file  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
MODEL = os.path.join(ROOT, "models", "gpt2-odd", "dynamo-eager-op18.onnx")
DROPOUT = os.path.join(os.path.dirname(ROOT), "shared", "models", "gpt2-odd", "torchscript-op17-dropout.onnx")  # the resume case leaves dropout out without it
OTHER = os.path.join(ROOT, "models", "mlp", "dynamo-op18.onnx")
parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--bin", default=os.path.join(ROOT, "build", "bin"))
parser.add_argument("--only", default="")
parser.add_argument("--all", action="store_true", help="kill and nospace at every call, not at a sample of them")
options = parser.parse_args()
scratch = tempfile.TemporaryDirectory(prefix="hpc-checkpoints-", dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None)  # where fsync costs nothing
RATE = "--lr=0.001"


def path(*names):
    return os.path.join(scratch.name, *names)


def check(condition, message):
    if not condition:
        raise AssertionError(message)


def call(tool, *arguments, environment=None):
    return subprocess.run([os.path.join(options.bin, tool), *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment, timeout=120)


def run(tool, *arguments):
    done = call(tool, *arguments)
    check(done.returncode == 0, f"{tool} {' '.join(arguments)}\n{done.stdout[-2000:]}")
    return done.stdout


def refused(text, *arguments):
    done = call("hpc-run", *arguments)
    check(done.returncode == 1 and re.search(text, done.stdout), f"{' '.join(arguments)}: no '{text}' in {done.returncode} {done.stdout[-2000:]}")


plans = {}


def plan(flags="", model=None, sizes=("--dim=batch_size=4", "--dim=sequence_length=33")):
    model = model or (DROPOUT if "fp16" in flags and os.path.exists(DROPOUT) else MODEL)
    key = flags + model
    if key not in plans:
        plans[key] = path(f"{len(plans)}.plan")
        run("hpc-opt", model, "--train", "--optimizer=adamw", "--weight-decay=0.1", "--clip=1", *sizes, *flags.split(), f"--kernel-cache={path('kernels')}", "-o", plans[key])
    return plans[key]


def train(flags, *arguments, processes=1):
    """Of a layout, on threads or processes."""
    command = [plan(flags), "--train", f"--data={path('d.npz')}", RATE, *arguments]
    if processes == 1:
        return run("hpc-run", *command)
    results = [process.communicate(timeout=120)[0] for process in begin(command, processes)]
    check(results and all("error" not in text for text in results), "\n".join(results)[-3000:])
    return results[0]


def begin(command, count):
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port = str(one.getsockname()[1])
    return [subprocess.Popen([os.path.join(options.bin, "hpc-run"), *command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                             env=dict(os.environ, RANK=str(rank), WORLD_SIZE=str(count), LOCAL_RANK=str(rank), MASTER_ADDR="127.0.0.1", MASTER_PORT=port)) for rank in range(count)]


def read_file(file):
    """The tensors by name, as bytes, and the metadata."""
    data = open(file, "rb").read()
    size = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + size])
    metadata = header.pop("__metadata__", {})
    return {name: data[8 + size + entry["data_offsets"][0] : 8 + size + entry["data_offsets"][1]] for name, entry in header.items()}, metadata


def read_folder(folder, name):
    """Of the only file, or of the shards, which the index must describe."""
    index = os.path.join(folder, name + ".safetensors.index.json")
    if not os.path.exists(index):
        tensors, metadata = read_file(os.path.join(folder, name + ".safetensors"))
        check(metadata == {"format": "pt"}, f"{metadata}")
        return tensors
    index, found = json.load(open(index)), {}
    shards = sorted(file for file in os.listdir(folder) if file.endswith(".safetensors"))
    check(shards == [f"{name}-{i + 1:05}-of-{len(shards):05}.safetensors" for i in range(len(shards))], f"{shards}")
    for shard in shards:
        tensors, metadata = read_file(os.path.join(folder, shard))
        check(metadata == {"format": "pt"} and all(index["weight_map"][tensor] == shard for tensor in tensors), f"{shard} and its index")
        found.update(tensors)
    check(found.keys() == index["weight_map"].keys() and index["metadata"]["total_size"] == sum(map(len, found.values())), "the index")
    return found


def read_checkpoint(folder):
    return {**read_folder(folder, "model"), **read_folder(os.path.join(folder, "optimizer"), "optimizer")}


def read_saved(file):
    return {**read_file(file)[0], **read_file(file.replace(".safetensors", ".states"))[0]}


def only_names(folder, steps, latest):
    """The folder has these checkpoints and nothing else."""
    names = sorted(os.listdir(folder), key=lambda name: (name == "lock", name))[:-1]
    check(names == ["latest"] + [f"step-{step:08}" for step in steps], f"{names} instead of {steps}")
    check(os.readlink(os.path.join(folder, "latest")) == f"step-{latest:08}", "latest")


def same(left, right, what):
    check(left.keys() == right.keys(), f"{what}: {sorted(left.keys() ^ right.keys())}")
    check(all(left[name] == right[name] for name in left), f"{what}: other bits of {[name for name in left if left[name] != right[name]][:5]}")


def near(left, right, bound, what):
    check(left.keys() == right.keys(), f"{what}: {sorted(left.keys() ^ right.keys())}")
    for name in left:
        a, b = (numpy.frombuffer(tensors[name], numpy.float32) for tensors in (left, right))
        if name.endswith("c_attn.bias"):  # the keys' has a gradient of 0 in exact arithmetic, so Adam divides rounding by rounding
            a, b = (numpy.delete(each.reshape(3, -1), 1, 0) for each in (a, b))
        check(abs(a - b).max() <= bound * max(abs(b).max(), 1e-3), f"{what}: {name} differs by {abs(a - b).max()} of {abs(b).max()}")


def copied(source, name):
    shutil.rmtree(path(name), ignore_errors=True)
    shutil.copytree(source, path(name), symlinks=True)
    return path(name)


def whole_run():
    """Six steps at one stretch, with a checkpoint after each; serial."""
    if not os.path.exists(path("whole")):
        train("", "--steps=6", f"--checkpoints={path('whole')}", "--save-every=1", "--keep=9")
    return path("whole")


def initializer(name, data):
    """The end of a TensorProto: name and raw data."""
    return onnx_file.field(8, name) + onnx_file.field(9, data)


def check_contents():
    model = open(MODEL, "rb").read()
    for processes, more in ((1, ()), (1, ("--shard-size=20KB",)), (4, ("--save-async",)), (2, ("--shard-size=20KB",))):
        layout = "--tp=2 --dp=2 --zero=1" if processes > 1 else ""
        folder = path(f"contents-{processes}-{len(more)}")
        run_flags = (f"--checkpoints={folder}", *more)
        command = [plan(layout), "--train", f"--data={path('d.npz')}", "--lr=0", "--steps=1", *run_flags]
        for process in begin(command, processes) if processes > 1 else [None]:
            said = process.communicate(timeout=120)[0] if process else run("hpc-run", *command)
            check("error" not in said, said)
        weights = read_folder(os.path.join(folder, "latest"), "model")
        wrong = [name for name, data in weights.items() if initializer(name, data) not in model]
        check(len(weights) > 30 and wrong == ["transformer.wte.weight"], f"not as in the model: {wrong}")  # which the file has once, as the head
        check(weights["lm_head.weight"] == weights["transformer.wte.weight"], "the head is tied")
        state = json.load(open(os.path.join(folder, "latest", "state.json")))
        check(state["step"] == 1 and state["updates"] == 1 and state["sample"] == 4 and state["epoch"] == 0 and state["recipe"]["optimizer"] == "adamw" and state["layout"]["processes"] == processes,
              f"{ {key: state[key] for key in ('step', 'updates', 'sample', 'epoch', 'recipe', 'layout')} }")
        if processes == 4:
            sizes = [sum(os.path.getsize(os.path.join(folder, "latest", f"{name}-{i + 1:05}-of-00004.safetensors")) for name in ("model", "optimizer/optimizer")) for i in range(4)]
            check(max(sizes) < 2 * min(sizes), f"four processes wrote {sizes}")
        shutil.rmtree(folder)
        train(layout, "--steps=2", *run_flags, f"--save={path('s.safetensors')}", processes=processes)
        same(read_checkpoint(os.path.join(folder, "latest")), read_saved(path("s.safetensors")), f"{processes} processes {more}")


def check_resume():
    whole = whole_run()
    # d.npz has three batches, so step 4 is in the midst of an epoch.
    for flags, processes, more in (("", 1, ("--save-async",)), ("--dtype=fp16 --micro-batches=2", 1, ()), ("--dtype=fp16 --micro-batches=2 --tp=2 --pp=2", 4, ()),
                                   ("--dp=2 --zero=3 --micro-batches=2", 2, ("--save-async", "--shard-size=30KB"))):
        one, two = path("one"), path("two")
        for folder in (one, two):
            shutil.rmtree(folder, ignore_errors=True)
        train(flags, "--steps=6", f"--checkpoints={one}", *more, processes=processes)
        train(flags, "--steps=4", f"--checkpoints={two}", "--save-every=2", *more, processes=processes)
        train(flags, "--steps=6", f"--checkpoints={two}", f"--load={two}", *more, processes=processes)
        same(read_checkpoint(os.path.join(two, "latest")), read_checkpoint(os.path.join(one, "latest")), flags)
        states = [json.load(open(os.path.join(folder, "latest", "state.json"))) for folder in (one, two)]
        check(states[0] == states[1], "state.json differs")
    folder = path("layouts")
    for steps, flags, processes in ((1, "--tp=2", 2), (2, "--pp=2 --micro-batches=2", 1), (4, "--dp=2 --zero=3", 2), (6, "", 1)):
        load = [f"--load={folder}"] if os.path.exists(folder) else []
        train(flags, f"--steps={steps}", f"--checkpoints={folder}", *load, processes=processes)
    near(read_folder(os.path.join(folder, "latest"), "model"), read_folder(os.path.join(whole, "latest"), "model"), 2e-4, "layouts")
    # A plan for inference takes the weights of a checkpoint.
    run("hpc-opt", MODEL, "--no-weights", "--dim=batch_size=4", "--dim=sequence_length=33", "-o", path("inference.plan"))
    numpy.savez(path("x.npz"), input_ids=numpy.load(path("d.npz"))["input_ids"][0])
    train("", "--steps=6", f"--load={os.path.join(whole, 'step-00000005')}", f"--save={path('s.safetensors')}")
    for weights, output in ((os.path.join(whole, "latest"), "a.npz"), (path("s.safetensors"), "b.npz")):
        run("hpc-run", path("inference.plan"), f"--input={path('x.npz')}", f"--weights={weights}", f"--output={path(output)}")
    check(numpy.array_equal(numpy.load(path("a.npz"))["logits"], numpy.load(path("b.npz"))["logits"]), "logits of a checkpoint")


def fault_library():
    library = path("failing_writes.so")
    if not os.path.exists(library):
        subprocess.run(["cc", "-O1", "-shared", "-fPIC", "-o", library, os.path.join(HERE, "checkpoints", "failing_writes.c"), "-ldl"], check=True)
    return library


def with_fault(folder, kind, number, *arguments):
    environment = dict(os.environ, LD_PRELOAD=fault_library(), FAULT_FOLDER=folder, FAULT_KIND=kind, FAULT_COUNT=path("count"))
    if number is not None:
        environment["FAULT_AT"] = str(number)
    if os.path.exists(path("count")):
        os.remove(path("count"))
    done = call("hpc-run", plan(""), "--train", f"--data={path('d.npz')}", RATE, f"--checkpoints={folder}", f"--load={folder}", *arguments, environment=environment)
    return done, open(path("count")).read().split() if os.path.exists(path("count")) else []


def each_fault(kind):
    """(folder, what the run said, more flags) of each fault in the save of step 3, beside which steps 1 and 2 are there and 1 is removed."""
    whole = whole_run()
    start = copied(whole, "start")
    for step in (3, 4, 5, 6):
        shutil.rmtree(os.path.join(start, f"step-{step:08}"))
    os.remove(os.path.join(start, "latest"))
    os.symlink("step-00000002", os.path.join(start, "latest"))
    for more in ((), ("--save-async",)):
        flags = ("--steps=3", "--keep=2", "--shard-size=150KB", *more)
        done, calls = with_fault(copied(start, "faulty"), kind, None, *flags)
        check(done.returncode == 0 and len(calls) > 30, f"{done.stdout} {calls}")
        stride = 1 if options.all else 17
        for number in range(0 if not more else 4, len(calls), stride):
            folder = copied(start, "faulty")
            yield folder, with_fault(folder, kind, number, *flags)[0], calls[number], f"call {number} of {len(calls)}, {calls[number]} {' '.join(more)}"


def check_goes_on(folder, what):
    whole = whole_run()
    found = train("", "--steps=4", f"--load={folder}", f"--checkpoints={folder}", "--keep=9")
    check("damaged" not in found, f"{what}: {found}")
    same(read_checkpoint(os.path.join(folder, "step-00000004")), read_checkpoint(os.path.join(whole, "step-00000004")), what)
    check(all(re.fullmatch(r"latest|lock|step-\d{8}", name) for name in os.listdir(folder)), f"{what}: left over are {os.listdir(folder)}")


def check_kill():
    tried = 0
    for folder, done, _, what in each_fault("kill"):
        check(done.returncode == -signal.SIGKILL, f"{what}: {done.returncode} {done.stdout[-500:]}")
        check_goes_on(folder, what)
        tried += 1
    print(f"killed at {tried} calls")


def check_nospace():
    tried = 0
    for folder, done, name, what in each_fault("nospace"):
        if name.startswith(("unlink", "rmdir", "remove")) and done.returncode == 0:
            continue
        check(done.returncode == 1 and re.search(r"error\[io\].*No space left on device", done.stdout), f"{what}: {done.returncode} {done.stdout[-500:]}")
        check(not [name for name in os.listdir(folder) if name.startswith("step-") and name.endswith(".tmp")], f"{what}: left over are {os.listdir(folder)}")
        check_goes_on(folder, what)
        tried += 1
    print(f"no room at {tried} calls")


def flip(file, offset):
    with open(file, "r+b") as opened:
        opened.seek(offset)
        byte = opened.read(1)
        opened.seek(offset)
        opened.write(bytes([byte[0] ^ 16]))


def check_damage():
    whole = whole_run()
    damaged = path("damaged")
    newest, before = os.path.join(damaged, "step-00000006"), "step-00000005"

    def last_tensor(name):
        file = next(each for each in json.load(open(os.path.join(whole, "latest", "state.json")))["files"] if each["file"] == name)
        return file["parts"][-1]["tensor"], sum(part["bytes"] for part in file["parts"])

    weights, states = "model.safetensors", "optimizer/optimizer.safetensors"
    tensor, size = last_tensor(weights)
    state, states_size = last_tensor(states)
    cases = [(lambda: flip(os.path.join(newest, weights), size - 3), f"model.safetensors.*damaged.*in tensor '{re.escape(tensor)}'"),
             (lambda: flip(os.path.join(newest, weights), 40), "model.safetensors.*damaged"),
             (lambda: flip(os.path.join(newest, states), states_size - 1), f"optimizer.safetensors.*damaged.*in tensor '{re.escape(state)}'"),
             (lambda: os.truncate(os.path.join(newest, weights), size - 1), f"model.safetensors.*cut off.*in tensor '{re.escape(tensor)}'"),
             (lambda: os.truncate(os.path.join(newest, states), 0), "optimizer.safetensors.*cut off"),
             (lambda: open(os.path.join(newest, weights), "ab").write(b"x"), "model.safetensors.*1 bytes more"),
             (lambda: os.remove(os.path.join(newest, states)), "optimizer.safetensors.*No such file"),
             (lambda: shutil.copy(os.path.join(damaged, before, weights), os.path.join(newest, weights)), "model.safetensors.*damaged"),
             (lambda: flip(os.path.join(newest, "state.json"), 60), "state.json.*damaged"),
             (lambda: os.truncate(os.path.join(newest, "state.json"), 700), "state.json.*damaged")]
    for damage, text in cases:
        copied(whole, "damaged")
        damage()
        refused(text, plan(""), "--train", f"--data={path('d.npz')}", RATE, "--steps=7", f"--load={newest}")
        said = train("", "--steps=7", f"--load={damaged}", f"--save={path('s.safetensors')}")
        check(re.search("note: .*goes on from '.*" + before + "', since a later checkpoint is damaged: .*" + text, said) and "step 5: " in said, f"{text}: {said}")
    for step in range(1, 7):
        os.remove(os.path.join(damaged, f"step-{step:08}", "model.safetensors"))
    refused("no whole checkpoint", plan(""), "--train", f"--data={path('d.npz')}", RATE, "--steps=7", f"--load={damaged}")
    # With two processes either may find it.
    for file in (weights, states):
        copied(whole, "damaged")
        flip(os.path.join(newest, file), 5000)
        said = train("--tp=2", "--steps=7", f"--load={damaged}", processes=2)
        check("since a later checkpoint is damaged" in said and "step 5: " in said, said)
    # Of another model.
    numpy.savez(path("mlp.npz"), x=numpy.ones((3, 8, 20), numpy.float32), labels=numpy.ones((3, 8), numpy.int64))
    other = plan("--loss=classification", OTHER, ["--dim=batch=8"])
    refused("give a checkpoint of this model", other, "--train", f"--data={path('mlp.npz')}", RATE, "--steps=9", f"--load={whole}")
    os.mkdir(path("empty"))
    refused("error", plan(""), "--train", f"--data={path('d.npz')}", RATE, "--steps=9", f"--load={path('empty')}")


def check_signals():
    for numbers, count in (([signal.SIGTERM], 1), ([signal.SIGINT], 1), ([signal.SIGTERM], 2), ([signal.SIGUSR1, signal.SIGTERM], 2)):
        folder = path("signals")
        shutil.rmtree(folder, ignore_errors=True)
        layout = "--tp=2" if count == 2 else ""
        processes = begin([plan(layout), "--train", f"--data={path('d.npz')}", RATE, "--steps=1000000", f"--checkpoints={folder}", "--keep=9"], count)
        try:
            while "step 2:" not in processes[0].stdout.readline():
                check(processes[0].poll() is None, "it ended")
            for number in numbers:
                processes[-1].send_signal(number)
                end = time.time() + 20
                while number == signal.SIGUSR1 and not os.path.exists(os.path.join(folder, "latest")):
                    check(time.time() < end, "no checkpoint after SIGUSR1")
                    time.sleep(0.01)
            said = [process.communicate(timeout=20)[0] for process in processes]
        finally:
            for process in processes:
                process.kill()
        check(all(process.returncode == 0 for process in processes) and "a signal ended the run after" in said[0], f"{said}"[-2000:])
        steps = int(re.search(r"a signal ended the run after (\d+) steps of 1000000", said[0])[1])
        found = sorted(os.listdir(folder))
        check(found[-1] == f"step-{steps:08}" and len(found) == len(numbers) + 2, f"{found}")
        train(layout, f"--steps={steps + 2}", f"--load={folder}", processes=count)
    # A second one ends it at once, in whatever step it is.
    process = begin([plan(""), "--train", f"--data={path('d.npz')}", RATE, "--steps=1000000", f"--checkpoints={path('twice')}"], 1)[0]
    while "step 2:" not in process.stdout.readline():
        check(process.poll() is None, "it ended")
    process.send_signal(signal.SIGSTOP)
    process.send_signal(signal.SIGTERM)
    process.send_signal(signal.SIGINT)
    process.send_signal(signal.SIGCONT)
    process.communicate(timeout=20)
    check(process.returncode in (-signal.SIGINT, -signal.SIGTERM), f"{process.returncode}")


def check_folder():
    folder = path("kept")
    train("", "--steps=9", f"--checkpoints={folder}", "--save-every=1", "--keep=2", "--keep-every=4")
    only_names(folder, [4, 8, 9], 9)
    # On from step 4: step 8 is saved again, `latest` is what was saved last, and the later one stays.
    train("", "--steps=8", f"--checkpoints={folder}", f"--load={folder}/step-00000004", "--keep-every=4")
    only_names(folder, [4, 8, 9], 8)
    check("step 8: " in train("", "--steps=10", f"--load={folder}"), "it goes on from latest")
    process = begin([plan(""), "--train", f"--data={path('d.npz')}", RATE, "--steps=1000000", f"--checkpoints={folder}"], 1)[0]
    try:
        while "step 2:" not in process.stdout.readline():
            check(process.poll() is None, "it ended")
        refused("a run is going on in '.*kept'", plan(""), "--train", f"--data={path('d.npz')}", RATE, "--steps=9", f"--checkpoints={folder}")
    finally:
        process.kill()
    train("", "--steps=9", f"--checkpoints={folder}")
    for flag in ("--save-every=2", "--keep=2", "--keep-every=2", "--save-async", "--shard-size=1GB"):
        refused("is about --checkpoints=FOLDER", plan(""), "--train", f"--data={path('d.npz')}", RATE, "--steps=9", flag)
    refused("--shard-size=1X is no size", plan(""), "--train", f"--data={path('d.npz')}", RATE, "--steps=9", f"--checkpoints={folder}", "--shard-size=1X")
    open(path("file"), "w").close()
    refused("the folder of checkpoints cannot be made", plan(""), "--train", f"--data={path('d.npz')}", RATE, "--steps=9", f"--checkpoints={path('file')}")


def main():
    numpy.savez(path("d.npz"), input_ids=numpy.random.default_rng(1).integers(0, 503, (3, 4, 33)))
    passed = failed = 0
    for name, case in (("contents", check_contents), ("resume", check_resume), ("kill", check_kill), ("nospace", check_nospace), ("damage", check_damage), ("signals", check_signals),
                       ("folder", check_folder)):
        if options.only and name not in options.only.split(","):
            continue
        begun = time.time()
        try:
            case()
            passed += 1
            print(f"{name}: {time.time() - begun:.1f} s")
        except (AssertionError, subprocess.SubprocessError) as error:
            failed += 1
            print(f"FAIL: {name}: {error}")
        sys.stdout.flush()
    print(f"{passed} passed, {failed} failed")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
