"""Table of environments: the file and class of each by its name, open to other packages."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, TypeVar

from mnemoscope.core.errors import unknown
from mnemoscope.core.registry import Registry
from mnemoscope.tasks.control.base import Environment

__all__ = ["ENVIRONMENTS", "TABLE", "create", "environment", "get", "names"]

TABLE = {
    "minigrid": "minigrid:MiniGrid",
    "repeat-previous": "repeating:RepeatPrevious",
    "t-maze": "t_maze:TMaze",
}
"""File and class of each environment; a file is imported when its environment is asked for."""

ENVIRONMENTS: Registry[type[Environment]] = Registry(
    "environment",
    "mnemoscope.environments",
    table={name: f"mnemoscope.tasks.control.{place.split(':')[0]}" for name, place in TABLE.items()},
)

K = TypeVar("K", bound="type[Environment]")


def environment(name: str) -> Callable[[K], K]:
    """Return a class decorator that registers an environment under `name`."""

    def file(cls: K) -> K:
        cls.name = name
        ENVIRONMENTS.register(name)(cls)
        return cls

    return file


def names() -> list[str]:
    """Return the names of all environments, sorted."""
    return ENVIRONMENTS.names()


def get(name: str) -> type[Environment]:
    """Return the class of an environment by its name, or raise with the nearest."""
    return ENVIRONMENTS[name]


def create(name: str, /, **settings: Any) -> Environment:
    """Build an environment by name.

    Examples
    --------
    >>> import mnemoscope as ms
    >>> ms.tasks.control.create("t-maze", corridor=20)
    TMaze(corridor=20)
    """
    cls = get(name)
    known = list(inspect.signature(cls).parameters)
    for setting in settings:
        if setting not in known:
            raise unknown(f"the environment {name} has no setting {setting!r}", setting, known, "it has")
    return cls(**settings)
