"""The table of parts: what a profile is made of, and how one more part joins it.

A part is a class in a file of its own. It says to what it applies, how long it takes, measures one network, and draws
what was found of several networks side by side:

>>> from mnemoscope.profiles.section import Part, PartResult, Scalar, part
>>> class Biases(Part):
...     def seconds(self, network, context):
...         return 0.01
...     def run(self, network, context):
...         return PartResult(scalars={"biases": Scalar(value=3.0, unit="numbers")})
...     def section(self, rows, subjects):
...         return None

With ``@part("biases", title="Biases", order=90)`` above it, it is in every profile. Every file of
`mnemoscope.profiles.sections` is imported when parts are asked for; other packages announce theirs by entry points of
the group ``mnemoscope.parts``.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from mnemoscope.core.registry import Registry
from mnemoscope.profiles.rows import Row

if TYPE_CHECKING:
    from mnemoscope.report.page import Section

__all__ = ["PARTS", "Call", "Context", "Part", "PartResult", "Scalar", "part", "parts"]


@dataclass(frozen=True, kw_only=True)
class Scalar:
    """One number of one network.

    Attributes
    ----------
    value
        None: it is infinite or does not exist, which `note` explains.
    unit
        ``"steps"``, ``"nats per step"``; empty for a pure number.
    stderr
        Standard error within the measure itself, where it has one: used when there is one set of weights only.
    note
        What a reader has to know of this value.
    """

    value: float | None
    unit: str = ""
    stderr: float | None = None
    note: str = ""


@dataclass(frozen=True, kw_only=True)
class PartResult:
    """What a part found of one network, with one set of weights.

    Attributes
    ----------
    scalars
        Numbers by name. Over several seeds they become a mean with its 95% interval.
    data
        What the charts need, ready for JSON. Lists of numbers that are named in `Part.averaged` become means over seeds
        with an interval; of everything else the first seed's is kept.
    notes
        Sentences that stand under the section.
    """

    scalars: Mapping[str, Scalar] = field(default_factory=dict)
    data: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Call:
    """A measure with its arguments: what a part runs, and what its command says.

    Attributes
    ----------
    measure
        The name of a measure.
    options
        Arguments, without the network and the seed.
    input_size
        What the network is rebuilt with, where it can be; None: the network as it is.
    """

    measure: str
    options: Mapping[str, Any] = field(default_factory=dict)
    input_size: int | None = None

    def __call__(self, network: Any, seed: int) -> Any:
        """Return the measure's result."""
        from mnemoscope.measures import get

        entry = get(self.measure)
        function = entry.of_network or entry.function
        seeded = {"seed": seed} if "seed" in inspect.signature(function).parameters else {}
        return function(network, **self.options, **seeded)


@dataclass(frozen=True, kw_only=True)
class Context:
    """What a part is told besides the network.

    Attributes
    ----------
    seed
        Of the weights, and of whatever the part draws itself.
    quick
        Whether a first look is enough.
    trained
        Whether the weights are somebody's own, rather than fresh ones of this seed.
    facts
        ``row["network"]``: name, class, options, sizes, kind, parameters, state_size.
    rebuild
        Builds the same network with the same seed and another input size; None where the weights are somebody's own.
    make
        Builds it with any seed and input size; None likewise.
    train_minutes
        How long networks may be trained; None: they are not to be trained.
    folder
        Where a part may keep what it has so far, and find it again; None: nowhere.
    """

    seed: int = 0
    quick: bool = False
    trained: bool = False
    facts: Mapping[str, Any] = field(default_factory=dict)
    rebuild: Callable[[int], Any] | None = None
    make: Callable[[int, int], Any] | None = None
    train_minutes: float | None = None
    folder: Path | None = None


class Part(ABC):
    """One section of a profile. A subclass is decorated with `part`.

    Attributes
    ----------
    name, title
        Set by the decorator: the name in rows and commands, the title of the section.
    order
        Parts run, and stand on the page, in this order: what tells most comes first.
    kinds
        The kinds of network that it takes.
    needs_causal
        Whether a network that reads the future cannot be asked.
    once
        Whether the result does not depend on the weights, so that one seed is enough.
    threads
        Whether it uses several threads or processes also for small networks.
    averaged
        Lists in `PartResult.data` that are averaged over seeds; ``NAME_lower`` and ``NAME_upper`` are added.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    order: ClassVar[int]
    kinds: ClassVar[tuple[str, ...]] = ("recurrent",)
    needs_causal: ClassVar[bool] = False
    once: ClassVar[bool] = False
    threads: ClassVar[bool] = False
    averaged: ClassVar[tuple[str, ...]] = ()

    def reason_against(self, network: Any, context: Context) -> str | None:
        """Say why the part does not apply to a network, or None when it does."""
        kind = getattr(network, "kind", None)
        if kind not in self.kinds:
            return f"it takes networks of kind {' or '.join(self.kinds)}, and this one is of kind {kind}"
        if self.needs_causal and not getattr(network, "causal", True):
            return "it needs a causal network, and this one reads the future"
        return None

    def calls(self, context: Context) -> tuple[Call, ...]:
        """Return the measures that the part runs, which give the commands beside its charts; by default none."""
        return ()

    def kept_as(self, context: Context) -> str:
        """Return the name under which a result is kept: it says on what it depends besides network, seed and quick."""
        return self.name

    @abstractmethod
    def seconds(self, network: Any, context: Context) -> float:
        """Return about how long `run` takes, on one core of a common machine."""

    @abstractmethod
    def run(self, network: Any, context: Context) -> PartResult:
        """Measure one network. A `UserError` means that the part does not apply, any other error that it failed."""

    @abstractmethod
    def section(self, rows: Sequence[Row], subjects: Sequence[str]) -> Section | None:
        """Draw what was found of several networks; `subjects` are the keys of those that the page is about."""

    def references(self) -> tuple[str, ...]:
        """Return keys of `mnemoscope.core.references` that a paper has to cite for this part."""
        return ()

    def cited(self, rows: Sequence[Row]) -> tuple[str, ...]:
        """Return those of them that these rows rest on; by default all."""
        return self.references()


PARTS: Registry[type[Part]] = Registry("part", "mnemoscope.parts")

P = TypeVar("P", bound=type[Part])


def part(name: str, *, title: str, order: int) -> Callable[[P], P]:
    """Return a class decorator that makes a `Part` a section of every profile."""

    def file(cls: P) -> P:
        cls.name, cls.title, cls.order = name, title, order
        PARTS.register(name)(cls)
        return cls

    return file


def parts() -> list[Part]:
    """Return all parts in their order: our own, and those of other packages."""
    package = importlib.import_module("mnemoscope.profiles.sections")
    for module in pkgutil.iter_modules(package.__path__):
        importlib.import_module(f"{package.__name__}.{module.name}")
    found = [PARTS[name]() for name in PARTS]
    return sorted(found, key=lambda each: (each.order, each.name))
