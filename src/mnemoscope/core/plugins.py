"""Objects that a user names: ``path/to/file.py:Name`` or ``package.module:Name``."""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from mnemoscope.core.errors import UserError, nearest

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
    module = _load_file(Path(where)) if where.endswith(".py") else _import(where)
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


def _load_file(path: Path) -> ModuleType:
    if not path.is_file():
        raise UserError(f"there is no file {str(path)!r}")
    digest = hashlib.sha256(f"{path.resolve()} {path.stat().st_mtime_ns}".encode()).hexdigest()[:16]
    name = f"mnemoscope_user_{path.stem}_{digest}"
    if name in sys.modules:  # one file is one module: its classes are the same objects whoever asks
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise UserError(f"{str(path)!r} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses and typing look their module up here while it runs
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        del sys.modules[name]
        raise UserError(f"{path} cannot be run: {_brief(error)}") from error
    return module


def _import(name: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except (Exception, SystemExit) as error:
        raise UserError(f"the module {name!r} cannot be imported: {_brief(error)}") from error


def _brief(error: BaseException) -> str:
    line = f" (line {error.lineno})" if isinstance(error, SyntaxError) and error.lineno else ""
    message = error.msg if isinstance(error, SyntaxError) else str(error)
    return f"{type(error).__name__}: {' '.join(message.split())}{line}"
