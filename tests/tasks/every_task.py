"""Every task in a small size, and answers to its sequences that are perfect or know nothing."""

import math

import torch
import torch.nn.functional as F

import mnemoscope as ms

SETTINGS = {
    "adding": {"length": 7},
    "copy": {"delay": 5},
    "copy-sinus": {"lag": 2, "length": 9},
    "copying": {"delay": 4, "symbols": 3, "alphabet": 5},
    "denoise": {"delay": 6},
    "dyck": {"depth": 3, "kinds": 2, "length": 17},
    "group-composition": {"length": 11, "group": "S3"},
    "lag-copy": {"lag": 3, "length": 8},
    "listops": {"longest": 24, "shortest": 3},
    "matrix-copy": {"longest": 4},
    "matrix-recall": {"items": 4},
    "mnist": {"grid": 2},
    "mqar": {"pairs": 3, "length": 14, "vocabulary": 10},
    "mqar-compositional": {"pairs": 2, "length": 16, "vocabulary": 12},
    "mqar-forgetting": {"pairs": 3, "length": 14, "vocabulary": 10},
    "parity": {"length": 6},
    "pathfinder": {"side": 14, "dashes": 2, "distractors": 1, "examples": 64},
    "pmnist": {"side": 6},
    "ptb": {"length": 12},
    "retrieval": {"length": 20},
    "scifar": {"side": 5},
    "selective-copy": {"symbols": 3, "length": 9, "alphabet": 4},
    "shakespeare": {"length": 12},
    "sinus": {"length": 5},
    "smnist": {"side": 7},
    "start-end-similarity": {"length": 14, "symbols": 4, "alphabet": 5},
    "transfer-copy": {"delay": 5},
    "dist-n": {"n": 4},
    "dist-n-restricted": {"n": 5},
    **{name: {} for name in ms.tasks.names() if ms.tasks.get(name).kind == "relational" and "dist-n" not in name},
}

FEW = [name for name in SETTINGS if ms.tasks.get(name).kind != "relational"] + ["dist-n-restricted", "games-between"]
"""Every task but most of the relational ones, which share all but their problems (tests/tasks/relational)."""


def small(name, data):
    """Return a task in a small size."""
    settings = dict(SETTINGS[name])
    if ms.tasks.get(name).dataset:
        settings |= {"data": data}
    if ms.tasks.get(name).dataset and ms.tasks.get(name).kind != "relational":
        settings |= {"verify": False}
    return ms.tasks.create(name, **settings)


def spread(task, batch, answers):
    """Put answers per sequence at the last step, and noise at all others."""
    if not batch.per_sequence:
        return answers
    output = torch.randn(*batch.mask.shape, task.output_size, generator=torch.Generator().manual_seed(1))
    output = output.to(answers.dtype)
    for number, length in enumerate(batch.ends.tolist()):
        output[length - 1, number] = answers[number]
    return output


def perfect(task, batch):
    """Return the output of a network that is right, and sure of it."""
    targets = batch.targets
    if task.classifies:
        answers = 60.0 * F.one_hot(targets, task.output_size).double()
    elif task.kind == "binary":
        answers = 60.0 * (2 * targets.double() - 1)
    else:
        answers = targets.double().unsqueeze(-1) if batch.per_sequence else targets.double()
    return spread(task, batch, answers)


def without_memory(task, batch):
    """Return the best output that knows the time and the task, and nothing of the sequence."""
    steps, size = batch.mask.shape
    shape = (size, task.output_size) if batch.per_sequence else (steps, size, task.output_size)
    answers = torch.zeros(shape, dtype=torch.float64)
    if task.name == "adding":
        answers += 1.0
    elif task.name in ("copy", "transfer-copy", "denoise", "selective-copy"):
        recalled = steps - int((batch.targets > 0).any(1).nonzero()[0])
        answers[:] = -1e4
        answers[: steps - recalled, :, 0] = 0.0
        answers[steps - recalled :, :, 1:] = 0.0
    elif task.name == "copying":
        answers[:] = -1e4
        answers[: -task.symbols, :, task.alphabet] = 0.0
        answers[-task.symbols :, :, : task.alphabet] = 0.0
    elif task.kind == "binary":
        answers[..., 20:] = -1e4
    return spread(task, batch, answers)


def frequencies(targets, classes):
    """Return the logarithms of how often each class is the target."""
    counts = torch.bincount(targets.flatten(), minlength=classes).double()
    return (counts / counts.sum()).clamp_min(1e-300).log()


def entropy(shares):
    """Return the entropy of a distribution in nats."""
    return -sum(share * math.log(share) for share in shares if share)
