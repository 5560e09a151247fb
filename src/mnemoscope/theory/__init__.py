"""Closed forms, bounds and constructions (`formulas`): plain functions of numbers and arrays.

Every public name of a file in `formulas` is a name of this room, imported when it is first used.
"""

from __future__ import annotations

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
    from mnemoscope.theory.formulas.linear import *
    from mnemoscope.theory.formulas.matrix_fisher import *
    from mnemoscope.theory.formulas.rac_graph import *
    from mnemoscope.theory.formulas.separation import *
    from mnemoscope.theory.formulas.tensor_train import *
    from mnemoscope.theory.formulas.tracking import *


def _public() -> dict[str, str]:
    """Return the file of every public name."""
    files = [f"{formulas.__name__}.{file.name}" for file in pkgutil.iter_modules(formulas.__path__)]
    return {name: file for file in files for name in importlib.import_module(file).__all__}


def __getattr__(name: str) -> Any:
    # Measures import single files of formulas: none of the others is loaded with it.
    home = None if name.startswith("_") else _public().get(name)
    if home is None:
        raise AttributeError(f"module 'mnemoscope.theory' has no attribute {name!r}")
    return getattr(importlib.import_module(home), name)


def __dir__() -> list[str]:
    return sorted(_public())
