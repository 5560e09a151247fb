"""Mnemoscope measures how much a recurrent network can remember and express."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mnemoscope import core, measures, nn, profiles, report, runs, studies, tasks, testing, theory, training
    from mnemoscope.nn.adapt import adapt
    from mnemoscope.profiles.profile import compare, profile
    from mnemoscope.training.capacities.search import capacity

__version__ = "0.1.0"

_ROOMS = (
    "core",
    "measures",
    "nn",
    "profiles",
    "report",
    "runs",
    "studies",
    "tasks",
    "testing",
    "theory",
    "training",
)
_NAMES = {
    "adapt": "mnemoscope.nn.adapt",
    "capacity": "mnemoscope.training.capacities.search",
    "compare": "mnemoscope.profiles.profile",
    "profile": "mnemoscope.profiles.profile",
}

__all__ = [
    "adapt",
    "capacity",
    "compare",
    "core",
    "measures",
    "nn",
    "profile",
    "profiles",
    "report",
    "runs",
    "studies",
    "tasks",
    "testing",
    "theory",
    "training",
]


def __getattr__(name: str) -> Any:
    # Rooms are imported when they are first used, so that `import mnemoscope` costs nothing.
    if name in _ROOMS:
        return importlib.import_module(f"mnemoscope.{name}")
    if name in _NAMES:
        return getattr(importlib.import_module(_NAMES[name]), name)
    raise AttributeError(f"module 'mnemoscope' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
