"""Registries: names for networks, tasks and measures, open to other packages by entry points."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, Generic, TypeVar

from mnemoscope.core.errors import UserError, expected, nearest, unknown

__all__ = ["Registry"]

_MANY = 12
"""Names that still fit into a message."""

T = TypeVar("T")


class Registry(Generic[T]):
    """A table of named things of one sort.

    Parameters
    ----------
    sort
        What is registered, in the singular: ``"network"``. Used in messages.
    group
        The entry-point group in which other packages announce theirs: ``"mnemoscope.networks"``. An entry
        point names an object that is registered under the entry point's own name.
    accepts
        What an entry point must lead to; by default a class.
    table
        Modules of our own by the names that they register when they are imported, which is when one is asked for.
    listed
        The command that lists them, said instead of the names where they are many.
    """

    def __init__(
        self,
        sort: str,
        group: str,
        accepts: type = type,
        table: Mapping[str, str] | None = None,
        listed: str = "",
    ) -> None:
        self.sort = sort
        self.group = group
        self.listed = listed
        self._accepts = accepts
        self._table = dict(table or {})
        self._entries: dict[str, T] = {}
        self._plugins_loaded = False

    def register(self, name: str) -> Callable[[T], T]:
        """Return a decorator that files an object under `name`; a name is given once."""

        def file(entry: T) -> T:
            if name in self._entries:
                raise UserError(f"the {self.sort} name {name!r} is taken by {self._entries[name]!r}")
            self._entries[name] = entry
            return entry

        return file

    def names(self) -> list[str]:
        """Return all names, sorted."""
        self._load_plugins()
        return sorted({*self._entries, *self._table})

    def __getitem__(self, name: str) -> T:
        if name not in self._entries and name in self._table:
            import_module(self._table[name])
        if name not in self._entries:
            self._load_plugins()
        if name not in self._entries:
            names = self.names()
            problem = f"there is no {self.sort} named {name!r}"
            if name and Path(name).is_dir():
                problem += ", which is a folder"
            if self.listed and len(names) > _MANY and nearest(name, names) is None:
                raise UserError(f"{problem}; `{self.listed}` lists the {len(names)} that there are")
            raise unknown(problem, name, names)
        return self._entries[name]

    def __contains__(self, name: object) -> bool:
        self._load_plugins()
        return name in self._entries or name in self._table

    def __iter__(self) -> Iterator[str]:
        return iter(self.names())

    def _load_plugins(self) -> None:
        if self._plugins_loaded:
            return
        self._plugins_loaded = True
        for point in entry_points(group=self.group):
            if point.name in self._entries or point.name in self._table:
                continue
            try:
                entry: Any = point.load()
                if not isinstance(entry, self._accepts):
                    kind = "class" if self._accepts is type else self._accepts.__name__
                    raise expected(f"a {self.sort}", f"a {kind}", entry)
            except (Exception, SystemExit) as error:  # a stranger's package must not take the others down with it
                reason = " ".join(str(error).split())
                warnings.warn(f"the {self.sort} plugin {point.value!r} could not be loaded: {reason}", stacklevel=3)
            else:
                self._entries[point.name] = entry  # type: ignore[assignment]
