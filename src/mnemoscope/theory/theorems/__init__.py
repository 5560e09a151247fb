"""Theorems, conjectures and errata, each with a live check and what it says of a network; one file per subject.

Every file here is imported with the folder: a new subject needs a file and nothing else.
"""

import importlib
import pkgutil

from mnemoscope.theory.theorems.base import (
    SEVERITIES,
    STATUSES,
    THEOREMS,
    TOPICS,
    Instance,
    Theorem,
    Verdict,
    check,
    claims,
    theorem,
)
from mnemoscope.theory.theorems.statements import statements
from mnemoscope.theory.theorems.view import NetworkView

__all__ = [
    "SEVERITIES",
    "STATUSES",
    "THEOREMS",
    "TOPICS",
    "Instance",
    "NetworkView",
    "Theorem",
    "Verdict",
    "check",
    "claims",
    "statements",
    "theorem",
]

for _file in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_file.name}")
