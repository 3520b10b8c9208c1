#!/usr/bin/python3
"""Training curves: every recipe of ../shared/models/*/train.json, 20 steps by hpc-run --train, and of recipes/*.json, 10 steps, on every layout. A step's loss is
within 2e-6 (sgd) or 1e-5 (the others) of the float64 curve, relative, a gradient norm within 1e-4; the learning rates are those of the file; weights after adamw-clip-cosine are within 1e-4
of their largest entry. With --gradients instead: the loss and every gradient of inputs_0 against gradients_0.npz, within 1e-5 of its largest entry, and what a step makes states of them. Needs python3 and numpy only.

  test/models/train.py [--bin=build/bin] [--models=gpt2-tiny/dynamo-eager-op18] [--recipes=sgd,adamw] [--layouts="--tp=2;--dp=2 --zero=1"] [--gradients]
  test/models/train.py --gpu [--steps=10] [--processes=4] [...]    # on a GPU, all ranks on one; or on one each, and NCCL between processes
  test/models/train.py --grid [--sample=N] [--verify] [--jobs=2]    # gradients: every export x layout x pp, dp x ZeRO x micro-batches x schedule, an optimizer each, pairs first

The worst figures and the counts come at the end, also of a run that SIGINT or SIGTERM stops. Names of the files' parameters are found by content: a file may call a weight what it likes, and store it transposed.
"""
import argparse
import concurrent.futures
import functools
import json
import os
import signal
import sys
import tempfile
import threading

import numpy

import gradient_grid
from arrangements import ranks
from model_checks import run_processes

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SHARED = os.path.join(os.path.dirname(ROOT), "shared", "models")
RECIPES = os.path.join(ROOT, "test", "models", "recipes")
BATCH, SEQUENCE = 4, 32
LAYOUTS = ["", "--tp=2", "--dp=2", "--pp=2", "--tp=2 --pp=2 --dp=2", "--tp=3 --pp=2"]
# Betas that f32 holds, so that states by hand are exact but for the gradient.
OPTIMIZER_FLAGS = {"sgd": ["--optimizer=sgd"], "momentum": ["--optimizer=sgd", "--momentum=0.5"], "adamw": ["--optimizer=adamw", "--betas=0.75,0.5"],
                   "lamb": ["--optimizer=lamb", "--betas=0.75,0.5"]}
LOSS_BOUNDS = {"sgd": 2e-6, "adam": 1e-5, "adamw": 1e-5, "lamb": 1e-5}

parser = argparse.ArgumentParser()
parser.add_argument("--bin", default=os.path.join(ROOT, "build", "bin"))
parser.add_argument("--models", help="comma-separated (default: one export of each model; with --grid all)")
parser.add_argument("--recipes", default="")
parser.add_argument("--layouts", default=";".join(LAYOUTS))
parser.add_argument("--gradients", action="store_true")
parser.add_argument("--optimizers", default="sgd", help="of --gradients: sgd, momentum, adamw, lamb; all but sgd with the states after one step")
parser.add_argument("--grid", action="store_true", help="gradients in all layouts of gradient_grid.py")
parser.add_argument("--sample", type=int, metavar="N", help="only the first N cases of the grid")
parser.add_argument("--verify", action="store_true", help="each plan is also proved to equal its model by hpc-opt --verify")
parser.add_argument("--gpu", action="store_true", help="on the GPU, all ranks on one; HPC_CUDA_LIBRARIES=build/test/gpu/standin: on its stand-in")
parser.add_argument("--processes", type=int, default=1, metavar="N", help="hpc-run as N processes (or as many as ranks), as torchrun starts them; with --gpu a card for each rank")
parser.add_argument("--steps", type=int, help="only the first N steps of each curve; trained weights are not compared then")
parser.add_argument("--jobs", type=int, default=1, help="cases at a time")
parser.add_argument("--verbose", action="store_true", help="how far each case is from its bound")
options = parser.parse_args()
folder = tempfile.TemporaryDirectory(prefix="hpc-train-")
here = threading.local()  # .figures: what the case of this thread has measured


def path(name):
    """A scratch file of this thread, which has one case at a time."""
    return os.path.join(folder.name, f"{threading.get_ident()}-{name}")


class Failed(Exception):
    pass


def run(tool, *arguments):
    count = min(options.processes, here.ranks) if tool == "hpc-run" else 1
    if options.gpu and tool == "hpc-run":
        arguments += ("--backend=cuda", f"--ranks-per-gpu={here.ranks if count == 1 else 1}")
    failed, said = run_processes([os.path.join(options.bin, tool), *arguments], count)
    if failed:
        raise Failed(f"{tool} {' '.join(arguments)}\n" + "\n".join(text[-2000:] for text in said))


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
    if recipe.get("nesterov"):
        compile_flags.append("--nesterov")
    if "betas" in recipe:
        compile_flags += [f"--betas={recipe['betas'][0]},{recipe['betas'][1]}", f"--epsilon={recipe['eps']}"]
    if "weight_decay" in recipe:
        decay = recipe["decay"] if isinstance(recipe["decay"], list) else [{"2d": "matrices"}.get(recipe["decay"], recipe["decay"])]
        compile_flags += [f"--weight-decay={recipe['weight_decay']}", f"--decay={','.join(decay)}"]
    if "clip_norm" in recipe:
        compile_flags.append(f"--clip={recipe['clip_norm']}")
    if "schedule" in recipe:
        # ../shared says a schedule in words; the only one is cosine.
        curve = recipe["schedule"] if recipe["schedule"] in ("constant", "linear", "polynomial") else "cosine"
        run_flags += [f"--lr-schedule={curve}", f"--warmup={recipe.get('warmup', 0)}"]
    if "power" in recipe:
        run_flags.append(f"--lr-power={recipe['power']}")
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
    """The largest difference, relative to the largest entry of its tensor, and whose it is; NaN is larger than any."""
    others = [other for other, _ in names.values()]
    values = [numpy.abs((found[name].T if turned else found[name]) - golden[other]).max() / max(numpy.abs(golden[other]).max(), 1e-30) for name, (other, turned) in names.items()]
    return values[numpy.argmax(values)], others[numpy.argmax(values)]


def within(what, value, bound):
    here.figures.append((what, float(value), bound))
    if not value <= bound:
        raise Failed(f"{what}: {value:.3e} is beyond {bound:.0e}")


class Model:
    def __init__(self, name):
        self.name = name
        self.folder = os.path.join(SHARED, name.split("/")[0])
        self.file = os.path.join(SHARED, name + ".onnx")
        self.curves = json.load(open(os.path.join(self.folder, "train.json")))
        more = os.path.join(RECIPES, name.split("/")[0] + ".json")
        self.curves.update(json.load(open(more)) if os.path.exists(more) else {})
        self.weights = dict(numpy.load(os.path.join(self.folder, "weights.npz")))
        self.names = None
        self.naming = threading.Lock()

    def compile(self, flags, batch, sequence):
        # PyTorch's figures are of a model without dropout.
        inference = ["--inference"] if self.name.endswith("-dropout") else []
        sizes = ["--dim", f"batch_size={batch}", "--dim", f"sequence_length={sequence}"] + (["--target=host,cuda"] if options.gpu else [])
        here.ranks = ranks(flags)
        kernels = "--kernel-cache=" + os.path.join(folder.name, "kernels")  # layouts of a model share most of theirs
        run("hpc-opt", self.file, "--train", *inference, *sizes, *flags, kernels, "-o", path("m.plan"))

    def write_data(self, input_ids, **more):
        """Nothing is padding here: a mask that only some exports have is 1 throughout."""
        if self.name.endswith("-mask"):
            more["attention_mask"] = numpy.ones_like(input_ids)
        numpy.savez(path("d.npz"), input_ids=input_ids, **more)

    def blocks(self):
        return len({name.split(".")[2] for name in self.weights if name.startswith("transformer.h.")})

    def find_names(self):
        """A step with a rate of 0 saves the weights as they were."""
        with self.naming:
            if self.names is None:
                self.compile(["--optimizer=sgd"], BATCH, SEQUENCE)
                self.write_data(numpy.load(os.path.join(self.folder, "train_tokens.npz"))["input_ids"])
                run("hpc-run", path("m.plan"), "--train", f"--data={path('d.npz')}", "--steps=1", "--lr=0", f"--save={path('w.safetensors')}")
                self.names = match_parameters(read_tensors(path("w.safetensors")), self.weights)
            return self.names

    def check_curve(self, recipe_name, layout):
        curve = self.curves[recipe_name]
        recipe, golden = curve["recipe"], curve["float64"][: options.steps]
        compile_flags, run_flags = recipe_flags(recipe)
        if recipe.get("schedule", "constant") != "constant":
            run_flags.append(f"--lr-steps={len(curve['float64'])}")
        names = self.find_names() if recipe_name == "adamw-clip-cosine" and not options.steps else None
        self.compile(compile_flags + layout, BATCH, SEQUENCE)
        tokens = numpy.load(os.path.join(self.folder, "train_tokens.npz"))
        labels = {"labels": tokens["padded_labels"]} if recipe.get("padded") else {}
        self.write_data(tokens["input_ids"], **labels)
        run("hpc-run", path("m.plan"), "--train", f"--data={path('d.npz')}", f"--steps={len(golden)}", f"--metrics={path('m.jsonl')}", f"--save={path('w.safetensors')}", *run_flags)
        steps = [json.loads(line) for line in open(path("m.jsonl"))]
        if len(steps) != len(golden):
            raise Failed(f"{len(steps)} lines of metrics")
        within("learning rate", numpy.max([abs(a["lr"] - b["lr"]) / b["lr"] for a, b in zip(steps, golden) if b["lr"]]), 1e-14)
        within("loss", numpy.max([abs(a["loss"] - b["loss"]) / b["loss"] for a, b in zip(steps, golden)]), LOSS_BOUNDS[recipe["optimizer"]])
        within("gradient norm", numpy.max([abs(a["grad_norm"] - b["grad_norm"]) / b["grad_norm"] for a, b in zip(steps, golden)]), 1e-4)
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

    def check_gradients(self, layout, optimizer, repeats=1):
        golden = dict(numpy.load(os.path.join(self.folder, "gradients_0.npz")))
        loss = golden.pop("loss")
        names = self.find_names()
        inputs = numpy.load(os.path.join(self.folder, "inputs_0.npz"))["input_ids"]
        inputs = numpy.tile(inputs, (repeats, 1))
        self.compile(OPTIMIZER_FLAGS[optimizer] + layout + (["--verify"] if options.verify else []), *inputs.shape)
        self.write_data(inputs)
        run("hpc-run", path("m.plan"), f"--gradients={path('g.npz')}", f"--data={path('d.npz')}")
        found = dict(numpy.load(path("g.npz")))
        within("loss", abs(found.pop("loss") - loss) / loss, 1e-6)
        # A tied parameter is saved under each of its names, and has one gradient.
        if not found.keys() <= names.keys() or {names[name][0] for name in found} != {other for other, _ in names.values()}:
            raise Failed(f"gradients of {sorted(found)} instead of {sorted(names)}")
        value, name = worst(found, golden, names)
        within(f"gradient of '{name}'", value, 1e-5)
        if optimizer != "sgd":
            self.check_states(golden, names, optimizer)

    def check_states(self, golden, names, optimizer):
        """What one step makes of gradients: the first moment (of momentum, the gradient itself) and the second, by hand."""
        run("hpc-run", path("m.plan"), "--train", f"--data={path('d.npz')}", "--steps=1", "--lr=1e-3", f"--save={path('w.safetensors')}")
        saved = read_tensors(path("w.states"))
        kinds = {"momentum": lambda g: g} if optimizer == "momentum" else {"adam.m": lambda g: (1 - 0.75) * g, "adam.v": lambda g: (1 - 0.5) * g**2}
        for kind, of in kinds.items():
            states = {name[len(kind) + 1 :]: tensor for name, tensor in saved.items() if name.startswith(kind + "/")}
            if states.keys() != names.keys():
                raise Failed(f"states {kind} of {sorted(states)} instead of {sorted(names)}")
            value, name = worst(states, {name: of(tensor) for name, tensor in golden.items()}, names)
            within(f"{kind} of '{name}'", value, 2e-5)


def all_work():
    """(label, what to call) of every case."""
    if options.grid:
        models = {name: Model(name) for name in (options.models.split(",") if options.models else gradient_grid.exports(SHARED))}
        cases, pairs = gradient_grid.ordered(gradient_grid.all_cases({name: model.blocks() for name, model in models.items()}))
        print(f"{len(cases)} cases, the first {pairs} hold every pair of values", flush=True)
        work = [(case, gradient_grid.flags(case, folder.name)) for case in cases[: options.sample]]
        return [(f"{case.export} gradients {case.optimizer} {' '.join(layout)}", functools.partial(models[case.export].check_gradients, layout, case.optimizer, gradient_grid.repeats(case))) for case, layout in work]
    work = []
    for name in (options.models or "gpt2-tiny/dynamo-eager-op18,gpt2-odd/dynamo-eager-op18").split(","):
        model = Model(name)
        recipes = options.optimizers.split(",") if options.gradients else options.recipes.split(",") if options.recipes else list(model.curves)
        for recipe in recipes:
            for layout in options.layouts.split(";"):
                check = functools.partial(model.check_gradients, layout.split(), recipe) if options.gradients else functools.partial(model.check_curve, recipe, layout.split())
                work.append((f"{name} {'gradients ' if options.gradients else ''}{recipe} {layout or 'serial'}", check))
    return work


def run_case(label, check):
    """The label, None or what is wrong, and what was measured."""
    here.figures, problem = [], None
    try:
        check()
    except Failed as error:
        problem = error
    return label, problem, here.figures


def stop(number, frame):
    raise KeyboardInterrupt


def main():
    """Every case, `jobs` at a time; the worst figure of each kind (loss, gradient, ...), then the counts."""
    signal.signal(signal.SIGTERM, stop)
    passed, failed, stopped, worst_of = 0, 0, False, {}
    work = all_work()
    pool = concurrent.futures.ThreadPoolExecutor(options.jobs)
    try:
        for done in concurrent.futures.as_completed([pool.submit(run_case, *case) for case in work]):
            label, problem, figures = done.result()
            passed, failed = passed + (problem is None), failed + (problem is not None)
            if options.verbose:
                print("\n".join([label] + [f"  {what}: {value:.2e} of {bound:.0e}" for what, value, bound in figures]))
            if problem:
                print(f"FAIL: {label}: {problem}")
            for what, value, bound in figures:
                kind = what.split(" '")[0]
                worst_of[kind] = max(worst_of.get(kind, (-1.0,)), (value, bound, what, label))
            sys.stdout.flush()
    except KeyboardInterrupt:
        stopped = True
    pool.shutdown(wait=True, cancel_futures=True)
    for value, bound, what, label in worst_of.values():
        print(f"worst {what}: {value:.2e} of {bound:.0e}, {label}")
    if stopped:
        print(f"stopped: {len(work) - passed - failed} cases were not run")
    print(f"{passed} passed, {failed} failed")
    return failed > 0 or stopped


if __name__ == "__main__":
    sys.exit(main())
