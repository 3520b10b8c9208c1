"""The runs that make_skipped.py makes with PyTorch and skipped.py with hpc-run."""
import numpy

STEPS, BATCH = 8, 8
SKIPPED = {0: "nan", 1: "no label", 4: "inf"}
GRADIENTS_OF = 2  # the step whose gradients are golden, at the weights of the file
OPTIMIZERS = {
    "sgd": dict(optimizer="sgd", lr=0.1, weight_decay=0.01),
    "momentum": dict(optimizer="sgd", lr=0.05, momentum=0.9),
    "nesterov": dict(optimizer="sgd", lr=0.05, momentum=0.8, nesterov=True, weight_decay=0.01),
    "adam": dict(optimizer="adam", lr=1e-2, betas=(0.9, 0.999), eps=1e-6, weight_decay=0.01),
    "adamw": dict(optimizer="adamw", lr=1e-2, betas=(0.8, 0.99), eps=1e-6, weight_decay=0.1),
    "lamb": dict(optimizer="lamb", lr=1e-2, betas=(0.9, 0.99), eps=1e-6, weight_decay=0.01),
}


def batches(skipped=True):
    """x [STEPS, BATCH, 20] and labels [STEPS, BATCH]; without the steps that are skipped on request."""
    random = numpy.random.default_rng(28)
    x = random.standard_normal((STEPS, BATCH, 20)).astype(numpy.float32)
    labels = random.integers(0, 7, (STEPS, BATCH))
    for step, why in SKIPPED.items():
        if why == "no label":
            labels[step] = -100
        else:
            x[step, 3, 5] = float(why)
    kept = [step for step in range(STEPS) if skipped or step not in SKIPPED]
    return x[kept], labels[kept]
