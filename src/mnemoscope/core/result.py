"""Base of every result: what was found, how far it can be trusted, how it is printed, drawn and exported."""

from __future__ import annotations

import dataclasses
import html
import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar, cast, dataclass_transform

import numpy as np

from mnemoscope.core.numbers import number
from mnemoscope.core.references import reference

__all__ = ["SCHEMA", "Result", "plain", "result"]

SCHEMA = "mnemoscope.result/1"
"""The version of what `Result.to_dict` writes."""

C = TypeVar("C", bound="type[Any]")


@dataclass_transform(frozen_default=True, kw_only_default=True, eq_default=False)
def result(cls: C) -> C:
    """Make a class a result: a frozen dataclass, compared by identity since its fields are arrays."""
    return cast(C, dataclass(frozen=True, kw_only=True, eq=False, repr=False)(cls))


@result
class Result(ABC):
    """Finding of a measure. A subclass is decorated with `result` and adds its numbers as fields.

    Attributes
    ----------
    status
        ``"exact"`` (a closed form, or arithmetic whose error is known), ``"bound"`` or ``"estimate"``.
    digits
        Decimal digits of the main number that can be trusted; None where the error is statistical and stated otherwise.
    assumptions
        What has to be true of the network for the numbers to mean what they say; one sentence each.
    cost
        How time and memory grow with the sizes, as a formula: ``"O(N^3 log T) time, O(N^2) memory"``.
    """

    measure: ClassVar[str]
    references: ClassVar[tuple[str, ...]] = ()

    status: str
    digits: int | None
    assumptions: tuple[str, ...]
    cost: str

    @abstractmethod
    def __str__(self) -> str:
        """The finding in one line."""

    @abstractmethod
    def plot(self) -> Any:
        """Draw the finding as an Altair chart; `mnemoscope.report.chart.save` writes it to a file."""

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self}>"

    def facts(self) -> dict[str, str]:
        """Return what a table of the result shows: by default its scalar fields."""
        own = (field.name for field in dataclasses.fields(self) if field.name not in _COMMON)
        values = ((name, getattr(self, name)) for name in own)
        return {name.replace("_", " "): _short(value) for name, value in values if _is_scalar(value)}

    def to_dict(self) -> dict[str, Any]:
        """Return everything, ready for JSON: arrays as lists, complex numbers as pairs, NaN and infinities as text."""
        fields = {field.name: plain(getattr(self, field.name)) for field in dataclasses.fields(self)}
        return {"schema": SCHEMA, "measure": self.measure, **fields, "references": list(self.references)}

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><th style='text-align:left'>{html.escape(name)}</th><td>{html.escape(value)}</td></tr>"
            for name, value in {**self.facts(), **self.provenance()}.items()
        )
        return f"<p><b>{html.escape(str(self))}</b></p><table>{rows}</table>"

    def provenance(self) -> dict[str, str]:
        """Return how far the finding can be trusted, and where the measure comes from."""
        found = {"status": self.status}
        if self.digits is not None:
            found["digits"] = str(self.digits)
        if self.assumptions:
            found["assumes"] = "; ".join(self.assumptions)
        found["cost"] = self.cost
        if self.references:
            found["reference"] = "; ".join(reference(key).short for key in self.references)
        return found


_COMMON = frozenset(field.name for field in dataclasses.fields(Result))


def plain(value: Any) -> Any:
    """Return a value as JSON can hold it.

    Examples
    --------
    >>> plain({"curve": np.array([1.0, np.inf]), "pole": 1 + 2j})
    {'curve': [1.0, 'inf'], 'pole': [1.0, 2.0]}
    """
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, np.longdouble | np.clongdouble):  # which have no Python type: `item` returns them again
        return plain(complex(value) if isinstance(value, np.clongdouble) else float(value))
    if isinstance(value, np.generic):
        return plain(value.item())
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return plain({field.name: getattr(value, field.name) for field in dataclasses.fields(value)})
    if isinstance(value, dict):
        return {str(key): plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [plain(entry) for entry in value]
    if isinstance(value, complex):
        return [plain(value.real), plain(value.imag)]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value


def _is_scalar(value: Any) -> bool:
    return isinstance(value, bool | int | float | complex | str | np.generic)


def _short(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool | np.bool_):
        return "yes" if value else "no"
    if isinstance(value, complex | np.complexfloating):
        return f"{value:.8g}"
    return number(float(value), 8) if isinstance(value, float | np.floating) else str(value)
