"""Makes the golden curves beside it: ten steps of gpt2-tiny in float64 by PyTorch's optimizers and schedules, for what ../shared/models/*/train.json has no recipe of.
Needs PyTorch and transformers; `python make_recipes.py` from anywhere. test/models/train.py reads the curves as it reads train.json, and needs neither.

PyTorch has no LAMB: it is written here from the paper (You et al., Large Batch Optimization for Deep Learning, ICLR 2020, algorithm 2, phi = identity), the
trust ratio 1 where a norm is 0 as in the authors' implementation.
"""
import fnmatch
import json
import os
import sys

import numpy
import torch

HERE = os.path.dirname(os.path.abspath(__file__))
SHARED = os.path.join(HERE, "..", "..", "..", "..", "shared", "models")
sys.path.insert(0, SHARED)
import make as shared  # noqa: E402: the models and the loss of the shared curves

STEPS = 10
RECIPES = {
    "sgd-momentum-decay": dict(optimizer="sgd", lr=0.05, momentum=0.9, weight_decay=0.02, decay="all"),
    "sgd-nesterov-linear": dict(optimizer="sgd", lr=0.1, momentum=0.8, nesterov=True, weight_decay=0.05, decay="2d", schedule="linear", warmup=3),
    "sgd-cosine": dict(optimizer="sgd", lr=0.2, schedule="cosine", warmup=1),
    "adam-polynomial": dict(optimizer="adam", lr=3e-3, betas=[0.9, 0.999], eps=1e-8, weight_decay=0.1, decay="all", schedule="polynomial", power=1.5, warmup=4, clip_norm=0.7),
    "adam-constant": dict(optimizer="adam", lr=2e-3, betas=[0.8, 0.99], eps=1e-6, schedule="constant", warmup=2),
    "adamw-pattern": dict(optimizer="adamw", lr=2e-3, betas=[0.9, 0.95], eps=1e-8, weight_decay=2.0, decay=["*.mlp.*", "*ln_f*"], schedule="linear"),
    "lamb": dict(optimizer="lamb", lr=0.02, betas=[0.9, 0.999], eps=1e-6, weight_decay=0.1, decay="2d", schedule="cosine", warmup=2),
    "lamb-clip": dict(optimizer="lamb", lr=0.01, betas=[0.9, 0.95], eps=1e-6, clip_norm=1.0),
}


class Lamb(torch.optim.Optimizer):
    def __init__(self, groups, lr, betas, eps, weight_decay):
        super().__init__(groups, dict(lr=lr, betas=betas, eps=eps, weight_decay=weight_decay))

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            (beta1, beta2), decay = group["betas"], group["weight_decay"]
            for x in group["params"]:
                state = self.state[x]
                t = state["t"] = state.get("t", 0) + 1
                m = state["m"] = beta1 * state.get("m", torch.zeros_like(x)) + (1 - beta1) * x.grad
                v = state["v"] = beta2 * state.get("v", torch.zeros_like(x)) + (1 - beta2) * x.grad**2
                r = (m / (1 - beta1**t)) / ((v / (1 - beta2**t)).sqrt() + group["eps"]) + decay * x
                norms = x.norm(), r.norm()
                x -= group["lr"] * (norms[0] / norms[1] if norms[0] > 0 and norms[1] > 0 else 1.0) * r


def groups(model, recipe):
    def decays(name, parameter):
        rule = recipe.get("decay", "all")
        return parameter.ndim >= 2 if rule == "2d" else rule == "all" or any(fnmatch.fnmatchcase(name, pattern) for pattern in rule)

    named = list(model.named_parameters())
    assert {True} < {decays(*n) for n in named} or not isinstance(recipe.get("decay"), list), "a pattern that selects"
    return [{"params": [p for n, p in named if decays(n, p)], "weight_decay": recipe.get("weight_decay", 0.0)},
            {"params": [p for n, p in named if not decays(n, p)], "weight_decay": 0.0}]


def optimizer_of(model, recipe):
    rest = dict(lr=recipe["lr"])
    if recipe["optimizer"] == "sgd":
        return torch.optim.SGD(groups(model, recipe), momentum=recipe.get("momentum", 0.0), nesterov=recipe.get("nesterov", False), **rest)
    kind = {"adam": torch.optim.Adam, "adamw": torch.optim.AdamW, "lamb": Lamb}[recipe["optimizer"]]
    return kind(groups(model, recipe), betas=tuple(recipe["betas"]), eps=recipe["eps"], weight_decay=0.0, **rest)


def schedule_of(optimizer, recipe):
    """PyTorch's own curves behind its own warm-up: rates (s + 1) / warmup, then the curve to 0 at the last step."""
    from torch.optim import lr_scheduler as curves

    warmup = recipe.get("warmup", 0)
    span = STEPS - warmup
    curve = {"constant": lambda: curves.ConstantLR(optimizer, factor=1.0), "linear": lambda: curves.LinearLR(optimizer, 1.0, 0.0, span),
             "cosine": lambda: curves.CosineAnnealingLR(optimizer, span), "polynomial": lambda: curves.PolynomialLR(optimizer, span, recipe.get("power"))}[recipe.get("schedule", "constant")]
    if warmup == 0:
        return curve()
    rise = curves.LinearLR(optimizer, 1.0 / warmup, 1.0, warmup - 1) if warmup > 1 else curves.ConstantLR(optimizer, factor=1.0)
    return curves.SequentialLR(optimizer, [rise, curve()], [warmup])


def train(recipe, batches, dtype):
    model = shared.gpt2("gpt2-tiny").to(dtype).train()
    optimizer = optimizer_of(model, recipe)
    schedule = schedule_of(optimizer, recipe)
    steps = []
    for ids in batches:
        optimizer.zero_grad()
        loss = shared.loss_of(model, ids, ids)
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(list(model.parameters()), recipe.get("clip_norm", float("inf")))
        steps.append({"lr": optimizer.param_groups[0]["lr"], "loss": loss.item(), "grad_norm": norm.item()})
        optimizer.step()
        schedule.step()
    return steps


batches = torch.from_numpy(numpy.load(os.path.join(SHARED, "gpt2-tiny", "train_tokens.npz"))["input_ids"].astype(numpy.int64))[:STEPS]
curves = {}
for name, recipe in RECIPES.items():
    curves[name] = {"recipe": recipe, "float64": train(recipe, batches, torch.float64)}
    single = train(recipe, batches, torch.float32)
    print(name, "loss", curves[name]["float64"][0]["loss"], "to", curves[name]["float64"][-1]["loss"], "float32 is off by",
          max(abs(a["loss"] - b["loss"]) / b["loss"] for a, b in zip(single, curves[name]["float64"])))
with open(os.path.join(HERE, "gpt2-tiny.json"), "w") as file:
    json.dump(curves, file, indent=0)
    file.write("\n")
