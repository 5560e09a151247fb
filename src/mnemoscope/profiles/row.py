"""Row of a profile: everything that was measured of one network, typed, versioned, and read back from JSON."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

from mnemoscope.core.errors import UserError, expected
from mnemoscope.core.result import plain

if TYPE_CHECKING:
    from mnemoscope.profiles.quantity import Quantity

__all__ = ["SCHEMA", "Estimate", "NetworkFacts", "Row", "RowSettings", "SectionRow"]

SCHEMA = "mnemoscope.profile/1"
"""The version of a row in JSON."""


class _Document:
    """A dataclass with a form in JSON: fields by name, or by ``metadata["key"]``; ``metadata["read"]`` reads one."""

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON holds it."""
        found = {}
        for each in dataclasses.fields(self):  # type: ignore[arg-type]
            value = getattr(self, each.name)
            if value is not None or not each.metadata.get("optional"):
                found[each.metadata.get("key", each.name)] = _written(value)
        return found

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Self:
        """Return what `to_dict` wrote; what an older version had not yet written has its default."""
        if not isinstance(document, Mapping):
            raise expected(f"the {cls.__name__} of a profile", "an object of JSON", document)
        found = {}
        for each in dataclasses.fields(cls):  # type: ignore[arg-type]
            key = each.metadata.get("key", each.name)
            if key in document:
                read: Callable[[Any], Any] = each.metadata.get("read", lambda value: value)
                found[each.name] = read(document[key])
        try:
            return cls(**found)
        except TypeError as error:
            raise UserError(f"this is not the {cls.__name__} of a profile: {error}") from None


def _written(value: Any) -> Any:
    if isinstance(value, _Document):
        return value.to_dict()
    if isinstance(value, Mapping):
        return {name: _written(each) for name, each in value.items()}
    return plain(value)


@dataclass(frozen=True, kw_only=True)
class Estimate(_Document):
    """One number of one network: its mean over seeds with a 95% interval.

    Attributes
    ----------
    value
        None: it is infinite or does not exist, which `note` explains.
    lower, upper
        The interval; None where there is none.
    seeds
        Of each set of weights; None where it has no finite value.
    unit
        ``"steps"``, ``"nats per step"``; empty for a pure number.
    note
        What a reader has to know of this value.
    at_least
        Of a censored number, what cut it off (``"window 512"``): it is at least so large, without an interval, and
        ties with all above it. Empty for a number that is known.
    blur
        Standard error, on the scale of `Quantity.score`, of having been interpolated between two sizes.
    """

    value: float | None = None
    lower: float | None = None
    upper: float | None = None
    seeds: tuple[float | None, ...] = field(default=(), metadata={"read": tuple})
    unit: str = ""
    note: str = ""
    at_least: str = ""
    blur: float = 0.0

    @property
    def known(self) -> tuple[float, ...]:
        """The values of all seeds that have one."""
        return tuple(float(each) for each in self.seeds if each is not None)


@dataclass(frozen=True, kw_only=True)
class SectionRow(_Document):
    """Results of one section over all seeds, or the reason why there are none.

    Attributes
    ----------
    status
        ``"done"``, ``"not applicable"``, ``"failed"`` or ``"stopped"``.
    reason
        Why it is not done.
    seconds
        That it took.
    seeds
        At which it was done.
    data
        What the figures need.
    scalars
        Numbers by the name of their quantity.
    notes
        Sentences that stand under the section.
    command, commands
        What computes its numbers again: the first command, and all by measure.
    version
        Of the section: numbers of two versions do not mean the same.
    """

    status: str = "done"
    reason: str | None = None
    seconds: float = 0.0
    seeds: tuple[int, ...] = field(default=(), metadata={"read": tuple})
    data: Mapping[str, Any] = field(default_factory=dict)
    scalars: Mapping[str, Estimate] = field(
        default_factory=dict,
        metadata={"read": lambda found: {name: Estimate.from_dict(each) for name, each in found.items()}},
    )
    notes: tuple[str, ...] = field(default=(), metadata={"read": tuple})
    command: str = ""
    commands: Mapping[str, str] = field(default_factory=dict)
    version: int = 1

    @property
    def done(self) -> bool:
        """Whether it has results."""
        return self.status == "done"


@dataclass(frozen=True, kw_only=True)
class NetworkFacts(_Document):
    """Facts of a network: its names, sizes and kind, and where its weights come from."""

    name: str = ""
    class_name: str = field(default="", metadata={"key": "class"})
    options: Mapping[str, Any] = field(default_factory=dict)
    input_size: int | None = None
    hidden_size: int | None = None
    num_layers: int | None = None
    output_size: int | None = None
    kind: str | None = None
    causal: bool = True
    parameters: int = 0
    state_size: int | None = None
    weights: str = "initialised"
    source: str = ""
    guesses: tuple[str, ...] = field(default=(), metadata={"read": tuple})
    agreement: float | None = field(default=None, metadata={"optional": True})
    reading: str | None = field(default=None, metadata={"optional": True})

    @property
    def given(self) -> bool:
        """Whether the weights are somebody's own, trained or not, rather than drawn by a seed."""
        return self.weights != "initialised"


@dataclass(frozen=True, kw_only=True)
class RowSettings(_Document):
    """Settings of a measurement: thorough or quick, its seeds, its budget of time."""

    quick: bool = False
    seeds: tuple[int, ...] = field(default=(0,), metadata={"read": tuple})
    budget: float | None = None
    train_minutes: float | None = field(default=None, metadata={"optional": True})
    digests: tuple[str, ...] = field(default=(), metadata={"read": tuple})


@dataclass(frozen=True, kw_only=True)
class Row(_Document):
    """Everything that was measured of one network.

    Attributes
    ----------
    label
        What the network is called in text.
    network
        What it is.
    settings, environment
        How, with which versions and where it was measured.
    notices
        What a reader should know before all numbers.
    command
        The network as commands take it; None when no command can name it.
    sections
        What became of each section, by name; ``"parts"`` in JSON.
    own_key
        What it is called inside a page, where no two rows share a key.
    budget
        Of a row of the atlas: the number of parameters that it stands for.
    """

    label: str
    network: NetworkFacts = field(default=NetworkFacts(), metadata={"read": NetworkFacts.from_dict})
    settings: RowSettings = field(default=RowSettings(), metadata={"read": RowSettings.from_dict})
    environment: Mapping[str, Any] = field(default_factory=dict)
    notices: tuple[str, ...] = field(default=(), metadata={"read": tuple})
    command: str | None = None
    sections: Mapping[str, SectionRow] = field(
        default_factory=dict,
        metadata={
            "key": "parts",
            "read": lambda found: {name: SectionRow.from_dict(each) for name, each in found.items()},
        },
    )
    own_key: str | None = field(default=None, metadata={"key": "key", "optional": True})
    budget: int | None = field(default=None, metadata={"optional": True})

    def to_dict(self) -> dict[str, Any]:
        """Return the row as JSON holds it, with its schema."""
        return {"schema": SCHEMA, **super().to_dict()}

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Self:
        """Return the row that `to_dict` wrote, in this version or an older one."""
        if not isinstance(document, Mapping) or document.get("schema") != SCHEMA:
            came = document.get("schema") if isinstance(document, Mapping) else document
            raise expected("the schema of a row", repr(SCHEMA), came)
        return super().from_dict(document)

    @property
    def key(self) -> str:
        """Its name inside a page: its key there, else its label."""
        return self.own_key or self.label

    def section(self, name: str) -> SectionRow:
        """Return what became of a section; one that is not in the row was not run."""
        return self.sections.get(name) or SectionRow(status="stopped", reason="it was not run")

    def scalar(self, quantity: Quantity) -> Estimate | None:
        """Return a number, with a note where it has no value; None when it is not there."""
        return self.section(quantity.section).scalars.get(quantity.name)

    def number(self, quantity: Quantity) -> Estimate | None:
        """Return a number that has a value, or None."""
        found = self.scalar(quantity)
        return None if found is None or found.value is None else found
