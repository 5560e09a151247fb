"""Sections of a profile: what each measures, which quantities it declares, and how it is drawn.

A section is a class in a file of its own. It declares its numbers, says to what it applies and how long it takes,
measures one network, and draws what was found of several networks side by side:

>>> from mnemoscope.profiles import Measurement, ProfileSection, Quantity, Scalar, section
>>> class Biases(ProfileSection):
...     quantities = (Quantity(name="biases", title="biases", unit="numbers"),)
...     def seconds(self, network, context):
...         return 0.01
...     def run(self, network, context):
...         return Measurement(scalars={"biases": Scalar(value=3.0)})

With ``@section("biases", title="Biases", order=90)`` above it, it is in every profile. Every file of
`mnemoscope.profiles.sections` is imported when sections are asked for; other packages announce theirs by entry points
of the group ``mnemoscope.sections``.
"""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import pkgutil
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar

from mnemoscope.core.errors import MnemoscopeError
from mnemoscope.core.registry import Registry
from mnemoscope.profiles.quantity import Quantity
from mnemoscope.profiles.row import NetworkFacts, Row

if TYPE_CHECKING:
    from mnemoscope.measures.pace import Pace
    from mnemoscope.profiles.drawing import SectionView
    from mnemoscope.report import Figure, Headline, Section, Table

__all__ = [
    "SECTIONS",
    "Call",
    "Context",
    "Measurement",
    "ProfileSection",
    "Scalar",
    "all_sections",
    "judged_quantities",
    "section",
    "unheard",
]


@dataclass(frozen=True, kw_only=True)
class Scalar:
    """One number of one network, at one seed.

    Attributes
    ----------
    value
        None: it is infinite or does not exist, which `note` explains.
    stderr
        Standard error within the measure itself, where it has one: used when there is one set of weights only.
    note
        What a reader has to know of this value.
    unit
        Where it depends on the network; else that of the quantity.
    at_least
        Of a censored number, what cut it off (``"window 512"``), as `mnemoscope.profiles.quantity` explains.
    most
        What the number cannot be above, where that depends on the network; else as the quantity says.
    """

    value: float | None
    stderr: float | None = None
    note: str = ""
    unit: str | None = None
    at_least: str = ""
    most: float | None = None


@dataclass(frozen=True, kw_only=True)
class Measurement:
    """Finding of a section on one network, with one set of weights.

    Attributes
    ----------
    scalars
        Numbers by the name of their quantity. Over several seeds they become a mean with its 95% interval.
    data
        What the figures need, ready for JSON. Lists of numbers that are named in `ProfileSection.averaged` become means
        over seeds with an interval; of everything else the first seed's is kept.
    notes
        Sentences that stand under the section.
    """

    scalars: Mapping[str, Scalar] = field(default_factory=dict)
    data: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Call:
    """A measure with its arguments: what a section runs, and what its command says.

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

    def __call__(self, network: Any, context: Context) -> Any:
        """Return the measure's result, of the network as it was prepared for all measures."""
        seeded = {"seed": context.seed} if self.seeded else {}
        prepared = context.prepare(network)
        # A network that is prepared knows its inputs; to a block they are handed on.
        given = context.inputs is not None and getattr(network, "kind", None) == "sequence" and self.driven
        own = {"inputs": context.inputs} if given else {}
        return self._function()(prepared, **self.options, **seeded, **own)

    def seconds(self, context: Context) -> float:
        """Return about how long the measure takes on the clock, by the cost that it states."""
        from mnemoscope.measures import get

        inputs = self.input_size or context.facts.input_size or 1
        found = get(self.measure).seconds(context.state_size, inputs, context.pace, **self.options) or 0.0
        return found * context.load

    @property
    def seeded(self) -> bool:
        """Whether the measure draws random numbers."""
        return "seed" in inspect.signature(self._function()).parameters

    @property
    def driven(self) -> bool:
        """Whether the measure takes sequences of the user's."""
        return "inputs" in inspect.signature(self._function()).parameters

    @property
    def function_name(self) -> str:
        """The name of the measure's function in `mnemoscope.measures`."""
        return str(self._function().__name__)

    def _function(self) -> Callable[..., Any]:
        from mnemoscope.measures import get

        entry = get(self.measure)
        return entry.of_network or entry.function


def unheard(text: str) -> None:
    """Take words that nobody listens to."""


def _as_it_is(network: Any) -> Any:
    return network


@dataclass(frozen=True, kw_only=True)
class Context:
    """Context of a measurement: seed, thoroughness, facts of the network, and ways to build it again.

    Attributes
    ----------
    seed
        Of the weights, and of whatever the section draws itself.
    quick
        Whether a first look is enough.
    facts
        Name, class, options, sizes, kind, parameters and state size of the network.
    rebuild
        Builds the same network with the same seed and another input size; None where the weights are somebody's own.
    make
        Builds it with any seed and input size; None likewise.
    train_minutes
        How long networks may be trained, all of a comparison together; None: they are not to be trained.
    rivals
        How many networks share these minutes.
    folder
        Where a section may keep what it has so far, and find it again; None: nowhere.
    prepare
        Prepares a network for measures, once for all of them; by default it stays as it is.
    say
        Told in words of what happens within a piece that takes minutes.
    grown
        Numbers in the state of a memory that grows, with the room that measures give it; None for all others.
    inputs
        Sequences of the user's that drive every measure; None: measures draw them.
    pace
        What single steps of the network take, by which times are estimated; None: nobody has looked.
    """

    seed: int = 0
    quick: bool = False
    facts: NetworkFacts = field(default_factory=NetworkFacts)
    rebuild: Callable[[int], Any] | None = None
    make: Callable[[int, int | None], Any] | None = None
    train_minutes: float | None = None
    rivals: int = 1
    folder: Path | None = None
    prepare: Callable[[Any], Any] = _as_it_is
    say: Callable[[str], None] = unheard
    grown: int | None = None
    inputs: Any = None
    pace: Pace | None = None

    @property
    def state_size(self) -> int:
        """Numbers in the network's state, or as many as a usual one has where it has no fixed number."""
        return self.facts.state_size or self.grown or 64

    @property
    def load(self) -> float:
        """Seconds on the clock for one of the processor."""
        return 1.0 if self.pace is None else self.pace.load


class ProfileSection(ABC):
    """One section of a profile. A subclass is decorated with `section`.

    Attributes
    ----------
    name, title
        Set by the decorator: the name in rows and commands, the title on the page.
    order
        Sections run, and stand on the page, in this order: what tells most comes first.
    quantities
        The numbers that it finds, the first of which stands for it in a summary unless `leading` names another.
    leading
        The quantity that stands for the section in a summary.
    text
        What a reader of the page has to know of its subject.
    kinds
        The kinds of network that it takes.
    listed_for_others
        Whether networks of other kinds list it as not applicable; otherwise they do without a word of it.
    needs_causal
        Whether a network that reads the future cannot be asked.
    once
        Whether the result does not depend on the weights, so that one seed is enough.
    threads
        Whether it uses several threads or processes also for small networks.
    trains
        Whether it trains: its time has minutes of its own, and is no part of the budget of measuring.
    together
        Whether all networks of a comparison are measured by one call of `run_together`, because they share the time.
    averaged
        Lists in `Measurement.data` that are averaged over seeds; ``NAME_lower`` and ``NAME_upper`` are added.
    shares
        Those of them that lie between 0 and 1, and so their intervals.
    references
        Keys of the bibliography that a paper has to cite for this section.
    version
        Raised when a number changes its meaning: those of two versions are not compared with each other.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    order: ClassVar[int]
    quantities: ClassVar[tuple[Quantity, ...]] = ()
    leading: ClassVar[str | None] = None
    text: ClassVar[str] = ""
    kinds: ClassVar[tuple[str, ...]] = ("recurrent",)
    listed_for_others: ClassVar[bool] = True
    needs_causal: ClassVar[bool] = False
    once: ClassVar[bool] = False
    threads: ClassVar[bool] = False
    trains: ClassVar[bool] = False
    together: ClassVar[bool] = False
    averaged: ClassVar[tuple[str, ...]] = ()
    shares: ClassVar[tuple[str, ...]] = ()
    references: ClassVar[tuple[str, ...]] = ()
    version: ClassVar[int] = 1

    def quantity(self, name: str) -> Quantity:
        """Return the quantity of a name, or raise one line: a number that is not declared has no title and no unit."""
        for each in self.quantities:
            if each.name == name:
                return each
        known = ", ".join(each.name for each in self.quantities) or "none"
        raise MnemoscopeError(f"the section {self.name!r} declares no quantity {name!r}; it has {known}")

    @property
    def lead(self) -> Quantity | None:
        """The quantity that stands for the section in a summary."""
        return self.quantity(self.leading) if self.leading else next(iter(self.quantities), None)

    def among(self, kinds: Collection[str | None]) -> Self:
        """Return the section for a profile of networks of these kinds, which may ask more of one beside another."""
        return self

    def concerns(self, facts: NetworkFacts) -> bool:
        """Whether the profile of a network names the section, with its results or with the reason against it."""
        return self.listed_for_others or facts.kind in self.kinds

    def reason_against(self, network: Any, context: Context) -> str | None:
        """Say why the section does not apply to a network, or None when it does."""
        kind = getattr(network, "kind", None)
        if kind not in self.kinds:
            return f"it takes networks of kind {' or '.join(self.kinds)}, and this one is of kind {kind}"
        if self.needs_causal and not getattr(network, "causal", True):
            return "it needs a causal network, and this one reads the future"
        return None

    def calls(self, context: Context) -> tuple[Call, ...]:
        """Return the measures that the section runs, which give the commands beside its figures; by default none."""
        return ()

    def kept_as(self, context: Context) -> str:
        """Return the name under which a result is kept: it says on what it depends besides network, seed and quick."""
        return self.name if self.version == 1 else f"{self.name}/v{self.version}"

    def seconds(self, network: Any, context: Context) -> float:
        """Return about how long `run` takes, on one core of a common machine: by default as its measures say."""
        return sum(call.seconds(context) for call in self.calls(context))

    @abstractmethod
    def run(self, network: Any, context: Context) -> Measurement:
        """Measure one network. A `UserError` means that the section does not apply, any other that it failed."""

    def check_together(self, networks: Sequence[Any], contexts: Sequence[Context]) -> None:
        """Raise, before anything is measured, where the time cannot suffice for these networks; by default never."""
        return

    def run_together(self, networks: Sequence[Any], contexts: Sequence[Context]) -> list[Measurement | Exception]:
        """Measure several networks that share the time: of each what was found, or what it raised."""
        found: list[Measurement | Exception] = []
        for network, context in zip(networks, contexts, strict=True):
            try:
                found.append(self.run(network, context))
            except Exception as error:  # one that fails must not lose the others
                found.append(error)
        return found

    def headline(self, view: SectionView) -> Headline | None:
        """Return the number that stands above the section."""
        return None if self.lead is None else view.headline(self.lead)

    def sentences(self, view: SectionView) -> tuple[str, ...]:
        """Return the text of the section; by default `text`."""
        return (self.text,) if self.text else ()

    def figures(self, view: SectionView) -> Sequence[Figure]:
        """Return the figures of the section; by default a ranking for every quantity that has a better direction."""
        return [view.ranking(each) for each in self.quantities if each.better is not None]

    def tables(self, view: SectionView) -> Sequence[Table]:
        """Return the tables of the section; by default none."""
        return ()

    def notes(self, view: SectionView) -> tuple[str, ...]:
        """Return the sentences under the section; by default what the results say of themselves."""
        return view.notes()

    def cited(self, rows: Sequence[Row]) -> tuple[str, ...]:
        """Return those of the references that these rows rest on; by default all."""
        return self.references

    def draw(self, rows: Sequence[Row], subjects: Sequence[str]) -> Section | None:
        """Draw what was found of several networks; `subjects` are the keys of those that the page is about."""
        from mnemoscope.profiles.drawing import SectionView
        from mnemoscope.report import Section

        view = SectionView(self, rows, subjects)
        if not view.subjects:
            return None
        return Section(
            name=self.name,
            title=self.title,
            headline=self.headline(view),
            text=self.sentences(view),
            figures=list(self.figures(view)),
            tables=list(self.tables(view)),
            notes=self.notes(view),
        )


SECTIONS: Registry[type[ProfileSection]] = Registry("section", "mnemoscope.sections")

P = TypeVar("P", bound=type[ProfileSection])


def section(name: str, *, title: str, order: int) -> Callable[[P], P]:
    """Return a class decorator that makes a `ProfileSection` a part of every profile."""

    def file(cls: P) -> P:
        cls.name, cls.title, cls.order = name, title, order
        cls.quantities = tuple(dataclasses.replace(each, section=name) for each in cls.quantities)
        SECTIONS.register(name)(cls)
        return cls

    return file


def all_sections() -> list[ProfileSection]:
    """Return all sections in their order: our own, and those of other packages."""
    package = importlib.import_module("mnemoscope.profiles.sections")
    for module in pkgutil.iter_modules(package.__path__):
        importlib.import_module(f"{package.__name__}.{module.name}")
    found = [SECTIONS[name]() for name in SECTIONS]
    return sorted(found, key=lambda each: (each.order, each.name))


def judged_quantities(sections: Iterable[ProfileSection]) -> list[Quantity]:
    """Return the quantities that a verdict judges, in the order of the scorecard."""
    found = [(each.axis.place, each) for one in sections for each in one.quantities if each.axis is not None]
    return [each for _, each in sorted(found, key=lambda pair: pair[0])]
