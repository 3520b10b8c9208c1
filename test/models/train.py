#!/usr/bin/python3
"""Training curves: every recipe of ../shared/models/*/train.json, 20 steps by hpc-run --train, on every layout. A step's loss is within 2e-6 (sgd) or 1e-5
(adamw) of the float64 curve, relative, a gradient norm within 1e-4; the learning rates are those of the file; weights after adamw-clip-cosine are within 1e-4
of their largest entry. With --gradients instead: the loss and every gradient of inputs_0 against gradients_0.npz, within 1e-5 of its largest entry. Needs python3 and numpy only.

  test/models/train.py [--bin=build/bin] [--models=gpt2-tiny/dynamo-eager-op18] [--recipes=sgd,adamw] [--layouts="--tp=2;--dp=2 --zero=1"] [--gradients]

Names of the files' parameters are found by content: a file may call a weight what it likes, and store it transposed.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile

import numpy

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SHARED = os.path.join(os.path.dirname(ROOT), "shared", "models")
STEPS, BATCH, SEQUENCE = 20, 4, 32
LAYOUTS = ["", "--tp=2", "--dp=2", "--pp=2", "--tp=2 --pp=2 --dp=2", "--tp=3 --pp=2"]
LOSS_BOUNDS = {"sgd": 2e-6, "adamw": 1e-5}

parser = argparse.ArgumentParser()
parser.add_argument("--bin", default=os.path.join(ROOT, "build", "bin"))
parser.add_argument("--models", default="gpt2-tiny/dynamo-eager-op18,gpt2-odd/dynamo-eager-op18")
parser.add_argument("--recipes", default="")
parser.add_argument("--layouts", default=";".join(LAYOUTS))
parser.add_argument("--gradients", action="store_true")
parser.add_argument("--verbose", action="store_true", help="how far each case is from its bound")
options = parser.parse_args()
folder = tempfile.TemporaryDirectory(prefix="hpc-train-")


def path(name):
    return os.path.join(folder.name, name)


class Failed(Exception):
    pass


def run(tool, *arguments):
    done = subprocess.run([os.path.join(options.bin, tool), *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode:
        raise Failed(f"{tool} {' '.join(arguments)}\n{done.stdout[-2000:]}")


def read_tensors(file):
    data = open(file, "rb").read()
    size = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + size])
    header.pop("__metadata__", None)
    tensors = {}
    for name, entry in header.items():
        begin, end = entry["data_offsets"]
        tensors[name] = numpy.frombuffer(data[8 + size + begin : 8 + size + end], numpy.float32).reshape(entry["shape"])
    return tensors


def recipe_flags(recipe):
    """What hpc-opt and hpc-run are told, and how the batch is cut."""
    compile_flags, run_flags = [f"--optimizer={recipe['optimizer']}"], [f"--lr={recipe['lr']!r}"]
    if "momentum" in recipe:
        compile_flags.append(f"--momentum={recipe['momentum']}")
    if "betas" in recipe:
        compile_flags += [f"--betas={recipe['betas'][0]},{recipe['betas'][1]}", f"--epsilon={recipe['eps']}"]
    if "weight_decay" in recipe:
        compile_flags += [f"--weight-decay={recipe['weight_decay']}", "--decay=" + {"all": "all", "2d": "matrices"}[recipe["decay"]]]
    if "clip_norm" in recipe:
        compile_flags.append(f"--clip={recipe['clip_norm']}")
    if "schedule" in recipe:
        run_flags += ["--lr-schedule=cosine", f"--warmup={recipe['warmup']}"]
    if "accumulate" in recipe:
        compile_flags.append(f"--micro-batches={recipe['accumulate']}")
    return compile_flags, run_flags


def match_parameters(found, golden):
    """The golden name of every tensor and whether it is stored transposed, by equal content."""
    names = {}
    for name, tensor in found.items():
        for golden_name, weight in golden.items():
            same = [weight.shape == tensor.shape and numpy.array_equal(weight, tensor), weight.ndim == 2 and weight.T.shape == tensor.shape and numpy.array_equal(weight.T, tensor)]
            if any(same) and golden_name not in (taken for taken, _ in names.values()):
                names[name] = (golden_name, not same[0])
                break
    if len(names) != len(golden):
        raise Failed(f"parameters without a counterpart: {sorted(set(golden) - {n for n, _ in names.values()})} among {sorted(found)}")
    return names


def worst(found, golden, names):
    """The largest difference, relative to the largest entry of its tensor."""
    return max((numpy.abs((found[name].T if turned else found[name]) - golden[other]).max() / max(numpy.abs(golden[other]).max(), 1e-30), other) for name, (other, turned) in names.items())


def within(what, value, bound):
    if options.verbose:
        print(f"  {what}: {value:.2e} of {bound:.0e}")
    if not value <= bound:
        raise Failed(f"{what}: {value:.3e} is beyond {bound:.0e}")


class Model:
    def __init__(self, name):
        self.name = name
        self.folder = os.path.join(SHARED, name.split("/")[0])
        self.file = os.path.join(SHARED, name + ".onnx")
        self.curves = json.load(open(os.path.join(self.folder, "train.json")))
        self.weights = dict(numpy.load(os.path.join(self.folder, "weights.npz")))
        self.names = None

    def compile(self, flags, batch, sequence):
        run("hpc-opt", self.file, "--train", "--dim", f"batch_size={batch}", "--dim", f"sequence_length={sequence}", *flags, "-o", path("m.plan"))

    def find_names(self):
        """A step with a rate of 0 saves the weights as they were."""
        if self.names is None:
            self.compile(["--optimizer=sgd"], BATCH, SEQUENCE)
            tokens = numpy.load(os.path.join(self.folder, "train_tokens.npz"))
            numpy.savez(path("d.npz"), input_ids=tokens["input_ids"])
            run("hpc-run", path("m.plan"), "--train", f"--data={path('d.npz')}", "--steps=1", "--lr=0", f"--save={path('w.safetensors')}")
            self.names = match_parameters(read_tensors(path("w.safetensors")), self.weights)
        return self.names

    def check_curve(self, recipe_name, layout):
        curve = self.curves[recipe_name]
        recipe, golden = curve["recipe"], curve["float64"]
        compile_flags, run_flags = recipe_flags(recipe)
        names = self.find_names() if recipe_name == "adamw-clip-cosine" else None
        self.compile(compile_flags + layout, BATCH, SEQUENCE)
        tokens = numpy.load(os.path.join(self.folder, "train_tokens.npz"))
        labels = {"labels": tokens["padded_labels"]} if recipe.get("padded") else {}
        numpy.savez(path("d.npz"), input_ids=tokens["input_ids"], **labels)
        run("hpc-run", path("m.plan"), "--train", f"--data={path('d.npz')}", f"--steps={STEPS}", f"--metrics={path('m.jsonl')}", f"--save={path('w.safetensors')}", *run_flags)
        steps = [json.loads(line) for line in open(path("m.jsonl"))]
        if len(steps) != STEPS:
            raise Failed(f"{len(steps)} lines of metrics")
        within("learning rate", max(abs(a["lr"] - b["lr"]) / b["lr"] for a, b in zip(steps, golden) if b["lr"]), 1e-14)
        within("loss", max(abs(a["loss"] - b["loss"]) / b["loss"] for a, b in zip(steps, golden)), LOSS_BOUNDS[recipe["optimizer"]])
        within("gradient norm", max(abs(a["grad_norm"] - b["grad_norm"]) / b["grad_norm"] for a, b in zip(steps, golden)), 1e-4)
        if names:
            trained = dict(numpy.load(os.path.join(self.folder, f"trained_{recipe_name}.npz")))
            self.check_trained(read_tensors(path("w.safetensors")), trained, sum(step["lr"] for step in golden))

    def check_trained(self, found, trained, rates):
        """The bias of keys has a gradient of 0 in exact arithmetic (softmax does not see it), so Adam divides rounding by rounding there: entries that
        the truth does not move are held to no more than Adam can move them by at all, the others to the bound."""
        still_entries = 0
        for name, (other, turned) in self.names.items():
            tensor = found[name].T if turned else found[name]
            largest = numpy.abs(trained[other]).max()
            still = numpy.abs(trained[other] - self.weights[other]) <= 1e-6 * largest
            still_entries += still.sum()
            difference = numpy.abs(tensor - trained[other])
            within(f"trained '{other}'", difference[~still].max(initial=0) / largest, 1e-4)
            within(f"still '{other}'", difference[still].max(initial=0), rates)
        keys = sum(self.weights[name].size for name in self.weights if name.endswith("c_attn.bias")) // 3
        if still_entries > 1.1 * keys:  # a few more come back to where they were
            raise Failed(f"{still_entries} entries that the truth does not move, the keys' biases are {keys}")

    def check_gradients(self, layout):
        golden = dict(numpy.load(os.path.join(self.folder, "gradients_0.npz")))
        loss = golden.pop("loss")
        names = self.find_names()
        inputs = numpy.load(os.path.join(self.folder, "inputs_0.npz"))["input_ids"]
        self.compile(["--optimizer=sgd"] + layout, *inputs.shape)
        numpy.savez(path("d.npz"), input_ids=inputs)
        run("hpc-run", path("m.plan"), f"--gradients={path('g.npz')}", f"--data={path('d.npz')}")
        found = dict(numpy.load(path("g.npz")))
        within("loss", abs(found.pop("loss") - loss) / loss, 1e-6)
        if found.keys() != names.keys():
            raise Failed(f"gradients of {sorted(found)} instead of {sorted(names)}")
        value, name = worst(found, golden, names)
        within(f"gradient of '{name}'", value, 1e-5)


passed = failed = 0
for name in options.models.split(","):
    model = Model(name)
    recipes = [""] if options.gradients else options.recipes.split(",") if options.recipes else list(model.curves)
    for recipe in recipes:
        for layout in options.layouts.split(";"):
            label = f"{name} {recipe or 'gradients'} {layout or 'serial'}"
            try:
                if options.verbose:
                    print(label)
                model.check_gradients(layout.split()) if options.gradients else model.check_curve(recipe, layout.split())
                passed += 1
            except Failed as error:
                failed += 1
                print(f"FAIL: {label}: {error}")
            sys.stdout.flush()
print(f"{passed} passed, {failed} failed")
sys.exit(failed > 0)
