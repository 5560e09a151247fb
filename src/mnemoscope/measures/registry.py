"""The table of measures: names, what each takes and needs, and how one is called."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from mnemoscope.core.registry import Registry
from mnemoscope.core.result import Result

__all__ = ["MEASURES", "NEEDS", "Measure", "get", "measure", "names"]

NEEDS = {
    "matrix": "its matrices",
    "step": "a pure step",
    "jacobian": "a differentiable step",
    "polynomial": "a form that is a polynomial of its weights and inputs",
}
"""What a measure can need of a network, in words."""

F = TypeVar("F", bound=Callable[..., Result])


@dataclass(frozen=True)
class Measure:
    """What a measure says of itself.

    Attributes
    ----------
    name
        Its registry name, which is also its command.
    function
        What computes it. Its docstring explains it, its signature gives the command its options.
    kinds
        The kinds of network that it accepts; empty when it takes matrices only.
    needs
        What it needs of the network: keys of `NEEDS`.
    matrices
        Which arguments are arrays, and the options by which the command takes their files: ``{"W": "matrix"}``.
    of_network
        What computes it for a network where `function` takes matrices; None when `function` takes networks itself
        (its first argument is then the network).
    quick
        Arguments of a quick look, for the ``--quick`` set; None: not part of it.
    """

    name: str
    function: Callable[..., Result]
    kinds: tuple[str, ...] = ("recurrent",)
    needs: tuple[str, ...] = ()
    matrices: Mapping[str, str] = field(default_factory=dict)
    of_network: Callable[..., Result] | None = None
    quick: Mapping[str, Any] | None = None

    @property
    def summary(self) -> str:
        """The first sentence of the function's docstring."""
        return " ".join((inspect.getdoc(self.function) or "").partition("\n\n")[0].split())


MEASURES: Registry[Measure] = Registry("measure", "mnemoscope.measures", Measure)


def measure(name: str, **facts: Any) -> Callable[[F], F]:
    """Return a decorator that registers a function as a measure, with the facts of `Measure`."""

    def file(function: F) -> F:
        MEASURES.register(name)(Measure(name, function, **facts))
        return function

    return file


def names() -> list[str]:
    """Return the names of all measures, sorted."""
    return MEASURES.names()


def get(name: str) -> Measure:
    """Return a measure by its name, or raise with the nearest."""
    return MEASURES[name]
