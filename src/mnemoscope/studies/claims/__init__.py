"""The documents' theorems, conjectures and errata, each with a live check; one file per subject."""

from mnemoscope.studies.claims import attention, gradients, memory_capacity, resources, spectrum
from mnemoscope.studies.claims.base import CLAIMS, STATUSES, Claim, Verdict, claim

__all__ = [
    "CLAIMS",
    "STATUSES",
    "Claim",
    "Verdict",
    "attention",
    "claim",
    "gradients",
    "memory_capacity",
    "resources",
    "spectrum",
]
