"""Objects that a user names: ``path/to/file.py:Name`` or ``package.module:Name``."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Any

from mnemoscope.core.errors import UserError, nearest
from mnemoscope.core.loading import import_module, load_file

__all__ = ["is_location", "load_object"]


def is_location(text: str) -> bool:
    """Say whether `text` names an object in a file or module, rather than a registered name."""
    return ":" in text or text.endswith(".py")


def load_object(location: str) -> Any:
    """Return the object at ``file.py:Name`` or ``module:Name``. This runs the file's code.

    Raises
    ------
    UserError
        If there is no such file, it cannot be run, or it has no such name (those it has are listed).
    """
    where, _, name = location.rpartition(":")
    if not where:
        where, name = location, ""
    module = load_file(Path(where)) if where.endswith(".py") else import_module(where)
    if name and hasattr(module, name):
        return getattr(module, name)
    classes = sorted(key for key, value in vars(module).items() if _is_own_class(value, module))
    listed = f"it defines {', '.join(classes)}" if classes else "it defines no class"
    if not name:
        raise UserError(f"name the class too, as in {where}:{classes[0] if classes else 'MyRNN'}; {listed}")
    near = nearest(name, classes)
    raise UserError(f"{where} has no {name!r}; {listed}" + (f"; did you mean {near!r}?" if near else ""))


def _is_own_class(value: Any, module: ModuleType) -> bool:
    return isinstance(value, type) and value.__module__ == module.__name__ and not value.__name__.startswith("_")
