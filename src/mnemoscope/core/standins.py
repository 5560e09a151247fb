"""Stand-ins for packages that a user's file imports and this machine lacks.

Research code imports much that the class in question never uses: a logger, an image library, a CUDA extension. An
empty module stands in for such a package while the file is read; whoever uses it afterwards is told what to install.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import ModuleType
from typing import Any

from mnemoscope.core.errors import UserError, expected

__all__ = ["distribution", "missing_base", "stand_in", "standing_in"]

_DISTRIBUTIONS = {
    "cv2": "opencv-python",
    "lightning_fabric": "lightning",
    "PIL": "pillow",
    "pl_bolts": "lightning-bolts",
    "skimage": "scikit-image",
    "sklearn": "scikit-learn",
    "tensorboardX": "tensorboardX",
    "yaml": "pyyaml",
}
_READING: list[bool] = []
"""An entry for every file that is being read."""


def distribution(package: str) -> str:
    """Return the name by which pip installs a package."""
    return _DISTRIBUTIONS.get(package, package.replace("_", "-"))


class _StandInType(type):
    """Type of everything that a stand-in has: can be derived from, indexed and called while a file is read."""

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return _made(f"{cls.__module__}.{cls.__qualname__}", name)

    def __call__(cls, *args: Any, **keywords: Any) -> Any:
        if "_stands_in" not in cls.__dict__:  # a class of the user's that derives from one
            return super().__call__(*args, **keywords)
        if not _READING:
            raise _used(cls.__module__, cls.__qualname__)
        # A decorator gives back what it decorates.
        return args[0] if len(args) == 1 and callable(args[0]) and not keywords else cls

    def __getitem__(cls, key: Any) -> Any:
        return cls

    def __or__(cls, other: Any) -> Any:
        return cls

    __ror__ = __or__


def _made(module: str, name: str) -> Any:
    return _StandInType(name, (), {"_stands_in": True, "__module__": module})


def _used(module: str, name: str) -> UserError:
    package = module.partition(".")[0]
    return UserError(
        f"{module}.{name} is used, and {package} cannot be imported here: pip install {distribution(package)}"
    )


class _StandInModule(ModuleType):
    """Module of a package that is not there."""

    __all__: Sequence[str] = ()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return _made(self.__name__, name)


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finder of stand-ins, asked before all others."""

    def __init__(self) -> None:
        self.packages: set[str] = set()

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> Any:
        """Return the specification of a stand-in for a package or anything in it."""
        if not _READING or fullname.partition(".")[0] not in self.packages:
            return None
        return importlib.machinery.ModuleSpec(fullname, self, is_package=True)

    def create_module(self, spec: Any) -> ModuleType:
        """Return the stand-in."""
        return _StandInModule(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        """Run nothing."""


_FINDER = _Finder()


def stand_in(package: str) -> None:
    """Let an empty module stand in for a package whenever a file is read, and for nobody else."""
    if package in _FINDER.packages:
        return
    if not package.isidentifier():
        raise expected("--stub", "the name of a package", package)
    if package in ("torch", "numpy", "mnemoscope") or package in sys.stdlib_module_names:
        raise UserError(f"nothing can stand in for {package} (--stub)")
    if _FINDER not in sys.meta_path:
        sys.meta_path.insert(0, _FINDER)
    _FINDER.packages.add(package)
    _forget(package)


def _forget(package: str) -> None:
    for name in [name for name in sys.modules if name == package or name.startswith(f"{package}.")]:
        del sys.modules[name]


@contextmanager
def standing_in() -> Iterator[None]:
    """Let what stand-ins have be called, as decorators are, while a file is read."""
    _READING.append(True)
    try:
        yield
    finally:
        _READING.pop()
        for package in _FINDER.packages:
            _forget(package)


def missing_base(cls: type) -> str | None:
    """Return the package of a base of `cls` that a stand-in stands for, if any."""
    bases = [base for base in cls.__mro__ if "_stands_in" in base.__dict__]
    return bases[0].__module__.partition(".")[0] if bases else None
