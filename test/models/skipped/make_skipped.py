"""Makes the golden runs beside it: PyTorch in float64 with torch.amp.GradScaler, eight steps of ../../../models/mlp of which some are skipped: a NaN and an infinity in the data,
and a batch of which no label counts. Needs PyTorch and onnx; `python make_skipped.py` from anywhere. test/models/skipped.py reads what it writes, and needs neither.

The learning rate follows the step, skipped or not, as where scheduler.step() is called in every iteration.
"""
import json
import os
import sys

import numpy
import onnx
import torch
from onnx import numpy_helper

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
from cases import GRADIENTS_OF, OPTIMIZERS, STEPS, batches  # noqa: E402


class Lamb(torch.optim.Optimizer):
    """You et al. 2020, algorithm 2, phi = identity; PyTorch has none."""

    def __init__(self, parameters, lr, betas, eps, weight_decay):
        super().__init__(parameters, dict(lr=lr, betas=betas, eps=eps, weight_decay=weight_decay))

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


KINDS = {"sgd": torch.optim.SGD, "adam": torch.optim.Adam, "adamw": torch.optim.AdamW, "lamb": Lamb}
model = onnx.load(os.path.join(HERE, "..", "..", "..", "models", "mlp", "dynamo-op18.onnx"))
weights = {each.name: numpy_helper.to_array(each) for each in model.graph.initializer if each.data_type == onnx.TensorProto.FLOAT}


def loss_of(parameters, x, labels):
    h = torch.relu(torch.tensor(x, dtype=torch.float64) @ parameters["fc1.weight"].T + parameters["fc1.bias"])
    h = h + torch.tanh(h @ parameters["fc2.weight"].T + parameters["fc2.bias"])
    logits = h @ parameters["head.weight"].T + parameters["head.bias"]
    return torch.nn.functional.cross_entropy(logits, torch.tensor(labels))


def summary(tensor):
    return [tensor.norm().item(), *tensor.detach().flatten()[:4].tolist()]


def gradients():
    parameters = {name: torch.tensor(value, dtype=torch.float64, requires_grad=True) for name, value in weights.items()}
    x, labels = batches()
    loss_of(parameters, x[GRADIENTS_OF], labels[GRADIENTS_OF]).backward()
    return {name: summary(value.grad) for name, value in parameters.items()}


def run(recipe):
    parameters = {name: torch.tensor(value, dtype=torch.float64, requires_grad=True) for name, value in weights.items()}
    recipe = dict(recipe)
    optimizer = KINDS[recipe.pop("optimizer")](list(parameters.values()), **recipe)
    schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.0, STEPS)
    scaler = torch.amp.GradScaler("cpu")
    losses = []
    for x, labels in zip(*batches()):
        optimizer.zero_grad()
        loss = loss_of(parameters, x, labels)
        scaler.scale(loss).backward()
        if (labels >= 0).any():  # else PyTorch has gradients of 0 beside a loss of NaN, and would decay weights and moments by themselves
            scaler.step(optimizer)
            scaler.update()
        schedule.step()
        losses.append(loss.item() if numpy.isfinite(loss.item()) else None)
    return {"losses": losses, "weights": {name: summary(value) for name, value in parameters.items()}}


golden = {name: run(recipe) for name, recipe in OPTIMIZERS.items()}
golden["gradients"] = gradients()
with open(os.path.join(HERE, "golden.json"), "w") as file:
    json.dump(golden, file, indent=0)
    file.write("\n")
for name in OPTIMIZERS:
    print(name, golden[name]["losses"])
