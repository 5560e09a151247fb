"""The table of tasks: by name, open to other packages."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, TypeVar

from mnemoscope.core.errors import UserError, nearest
from mnemoscope.core.registry import Registry
from mnemoscope.tasks.base import Task

__all__ = ["TASKS", "create", "get", "names", "task"]

TASKS: Registry[type[Task]] = Registry("task", "mnemoscope.tasks")

K = TypeVar("K", bound="type[Task]")


def task(name: str) -> Callable[[K], K]:
    """Return a class decorator that registers a task under `name`."""

    def file(cls: K) -> K:
        cls.name = name
        TASKS.register(name)(cls)
        return cls

    return file


def names() -> list[str]:
    """Return the names of all tasks, sorted."""
    return TASKS.names()


def get(name: str) -> type[Task]:
    """Return the class of a task by its name, or raise with the nearest."""
    return TASKS[name]


def create(name: str, /, **settings: Any) -> Task:
    """Build a task by name.

    Examples
    --------
    >>> import mnemoscope as ms
    >>> ms.tasks.create("copy", delay=100)
    Copy(delay=100)
    """
    cls = get(name)
    known = list(inspect.signature(cls).parameters)
    for setting in settings:
        if setting not in known:
            near = nearest(setting, known)
            hint = f"did you mean {near!r}?" if near else f"it has {', '.join(known)}"
            raise UserError(f"the task {name} has no setting {setting!r}; {hint}")
    return cls(**settings)
