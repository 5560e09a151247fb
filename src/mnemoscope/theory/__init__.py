"""Closed forms, bounds and constructions (`formulas`), and theorems with live checks (`theorems`).

Every public name of a file in `formulas` is a name of this room, imported when it is first used. `check` and `claims`
are those of `theorems`, which stand above the measures that they call.
"""

from __future__ import annotations

import functools
import importlib
import pkgutil
from typing import TYPE_CHECKING, Any

from mnemoscope.theory import formulas

if TYPE_CHECKING:
    from mnemoscope.theory.formulas.attention import *
    from mnemoscope.theory.formulas.capacity import *
    from mnemoscope.theory.formulas.copying import *
    from mnemoscope.theory.formulas.degree import *
    from mnemoscope.theory.formulas.fisher import *
    from mnemoscope.theory.formulas.gradients import *
    from mnemoscope.theory.formulas.groups import *
    from mnemoscope.theory.formulas.linear import *
    from mnemoscope.theory.formulas.matrix_fisher import *
    from mnemoscope.theory.formulas.rac_graph import *
    from mnemoscope.theory.formulas.separation import *
    from mnemoscope.theory.formulas.tensor_train import *
    from mnemoscope.theory.formulas.tracking import *
    from mnemoscope.theory.theorems import check as check
    from mnemoscope.theory.theorems import claims as claims

_LIVE = {"check": "mnemoscope.theory.theorems", "claims": "mnemoscope.theory.theorems"}


@functools.cache
def _public() -> dict[str, str]:
    """Return the file of every formula's name."""
    files = [f"{formulas.__name__}.{file.name}" for file in pkgutil.iter_modules(formulas.__path__)]
    return {name: file for file in files for name in importlib.import_module(file).__all__}


def __getattr__(name: str) -> Any:
    # Measures import single files of formulas: none of the others is loaded with it.
    home = _LIVE.get(name) or (None if name.startswith("_") else _public().get(name))
    if home is None:
        raise AttributeError(f"module 'mnemoscope.theory' has no attribute {name!r}")
    return getattr(importlib.import_module(home), name)


def __dir__() -> list[str]:
    return sorted({**_public(), **_LIVE})
