"""The documents' theorems, conjectures and errata, each with a live check; one file per subject."""

from mnemoscope.studies.claims import (
    attention,
    degree,
    delay_lines,
    depth,
    gradients,
    matrix_fisher,
    memory_capacity,
    orthogonal,
    queue_fisher,
    resources,
    separation,
    spectrum,
    tensor_train,
    vector_fisher,
    ziv_experiments,
)
from mnemoscope.studies.claims.base import CLAIMS, STATUSES, Claim, Verdict, claim

__all__ = [
    "CLAIMS",
    "STATUSES",
    "Claim",
    "Verdict",
    "attention",
    "claim",
    "degree",
    "delay_lines",
    "depth",
    "gradients",
    "matrix_fisher",
    "memory_capacity",
    "orthogonal",
    "queue_fisher",
    "resources",
    "separation",
    "spectrum",
    "tensor_train",
    "vector_fisher",
    "ziv_experiments",
]
