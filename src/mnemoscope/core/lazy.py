"""Names of a package that are imported when they are first used."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

__all__ = ["lazy"]


def lazy(package: str, homes: Mapping[str, str]) -> Callable[[str], Any]:
    """Return the ``__getattr__`` of a package whose names live in files that are loaded only when one is asked for.

    Parameters
    ----------
    package
        Its name: ``__name__``.
    homes
        The file of each name, below the package: ``{"Copy": "copying"}``. Editors and mypy do not read it: the same
        names are imported under ``TYPE_CHECKING``.
    """

    def attribute(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(f"{package}.{homes[name]}"), name)

    return attribute
