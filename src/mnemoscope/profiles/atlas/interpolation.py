"""Interpolation of the atlas: what a reference would have at a number of parameters between two of its rows."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from mnemoscope.profiles.quantity import Quantity
from mnemoscope.profiles.row import Estimate, Row, SectionRow

__all__ = ["NEAR", "at_parameters"]

NEAR = 0.1
"""Share of its parameters by which a row may differ from a network that it is compared with."""

_ABSCISSAE = ("lags", "share", "horizons")
"""Lists over which the others of a section are curves."""


class _Span(NamedTuple):
    """Two rows of one network, and where between them a number of parameters lies, on the logarithmic scale."""

    below: Row
    above: Row
    share: float


def at_parameters(rows: Sequence[Row], parameters: int, quantities: Sequence[Quantity]) -> list[Row]:
    """Return one row for every network that has one at so many parameters, or can be interpolated to it.

    A row within a tenth of the count is taken as it is. Otherwise its numbers are interpolated in ln(parameters),
    between the next smaller and the next larger one, on the scale on which they are compared. How wrong that is, is
    found by leaving out rows that are there: with the span of twice the length and the error e in its middle, the error
    at the share t of a span is e t (1 - t), which is kept beside each number. What lies outside the rows is left out.

    Parameters
    ----------
    rows
        Of the atlas, measured alike.
    parameters
        Of the network that they are compared with.
    quantities
        All numbers that rows may have.
    """
    families: dict[str, list[Row]] = {}
    for row in rows:
        families.setdefault(row.label, []).append(row)
    for family in families.values():
        family.sort(key=lambda row: row.network.parameters)
    found = []
    for family in families.values():
        near = min(family, key=lambda row: abs(math.log(row.network.parameters / parameters)))
        if abs(near.network.parameters - parameters) <= NEAR * parameters:
            found.append(near)
        elif (span := _span(family, parameters)) is not None:
            found.append(_between(span, parameters, quantities, list(families.values())))
    return found


def _span(family: Sequence[Row], parameters: int) -> _Span | None:
    for below, above in itertools.pairwise(family):
        low, high = below.network.parameters, above.network.parameters
        if low < parameters < high:
            return _Span(below, above, math.log(parameters / low) / math.log(high / low))
    return None


def _between(span: _Span, parameters: int, quantities: Sequence[Quantity], families: Sequence[Sequence[Row]]) -> Row:
    below, above, _ = span
    named = {(each.section, each.name): each for each in quantities}
    sections = {}
    for name, small in below.sections.items():
        large = above.section(name)
        if not (small.done and large.done and small.version == large.version):
            continue
        scalars = {}
        for key in small.scalars.keys() & large.scalars.keys():
            quantity = named.get((name, key))
            if quantity is not None:
                scalars[key] = _estimate(span, quantity, families)
        sections[name] = SectionRow(
            version=small.version, seeds=small.seeds, data=_curves(small, large, span.share), scalars=scalars
        )
    sizes = [row.network.hidden_size for row in (below, above)]
    facts = dataclasses.replace(
        below.network,
        hidden_size=None,
        state_size=None,
        parameters=parameters,
        source=f"interpolated between n = {sizes[0]} and {sizes[1]}",
    )
    return dataclasses.replace(below, network=facts, budget=None, command=None, sections=sections)


def _estimate(span: _Span, quantity: Quantity, families: Sequence[Sequence[Row]]) -> Estimate:
    small, large = span.below.number(quantity), span.above.number(quantity)
    if small is None or large is None:
        return Estimate(unit=quantity.unit, note="it has no value at one of two sizes")
    share = span.share
    seeds = _seeds(small.known, large.known, share, quantity)
    ends = (small.lower, small.upper, large.lower, large.upper)
    bounded = not (small.at_least or large.at_least or None in ends)
    return Estimate(
        value=_mixed(small.value, large.value, share, quantity),
        lower=_mixed(small.lower, large.lower, share, quantity) if bounded else None,
        upper=_mixed(small.upper, large.upper, share, quantity) if bounded else None,
        seeds=tuple(seeds),
        unit=small.unit,
        at_least=large.at_least or small.at_least,
        blur=share * (1 - share) * _error(span.below.label, quantity, families),
    )


def _seeds(small: Sequence[float], large: Sequence[float], share: float, quantity: Quantity) -> list[float]:
    """Return as many values as both have, each between two of the same order, so that their scatter is kept."""
    count = min(len(small), len(large))
    if not count:
        return []
    places = (np.arange(count) + 0.5) / count
    pairs = zip(*(np.quantile(each, places, method="hazen") for each in (small, large)), strict=True)
    return [_mixed(float(a), float(b), share, quantity) for a, b in pairs]


def _mixed(a: float | None, b: float | None, share: float, quantity: Quantity) -> float:
    """Return the value at a share of the way from one to the other: on a logarithmic scale where there is a least."""
    assert a is not None
    assert b is not None
    shift = None if quantity.least is None else quantity.floor - quantity.least
    if shift is None or min(a, b) + shift <= 0:
        return (1 - share) * a + share * b
    return math.exp((1 - share) * math.log(a + shift) + share * math.log(b + shift)) - shift


def _error(label: str, quantity: Quantity, families: Sequence[Sequence[Row]]) -> float:
    """Return e of `at_parameters` for a network: of its own rows, and no less than the usual one of all networks."""
    misses = {family[0].label: list(_misses(family, quantity)) for family in families}
    everywhere = [abs(each) for found in misses.values() for each in found]
    own = misses.get(label, [])
    usual = float(np.median(everywhere)) if everywhere else 0.0
    return max(usual, float(np.sqrt(np.mean(np.square(own)))) if own else 0.0)


def _misses(family: Sequence[Row], quantity: Quantity) -> Iterator[float]:
    """Yield by how much its neighbours miss a row, scaled to the middle of a span of half the length."""
    for below, middle, above in zip(family, family[1:], family[2:], strict=False):
        numbers = [row.number(quantity) for row in (below, middle, above)]
        span = _span([below, above], middle.network.parameters)
        if span is None or any(each is None or each.at_least for each in numbers):
            continue
        low, true, high = (each.value for each in numbers if each is not None)
        guessed = _mixed(low, high, span.share, quantity)
        assert true is not None
        yield (quantity.score(guessed) - quantity.score(true)) / (4 * span.share * (1 - span.share))


def _curves(small: SectionRow, large: SectionRow, share: float) -> dict[str, Any]:
    """Return the curves that both sizes have, at the places of the smaller one."""
    axis = next((name for name in _ABSCISSAE if _plain(small.data.get(name)) and _plain(large.data.get(name))), None)
    if axis is None:
        return {}
    places, others = small.data[axis], large.data[axis]
    found: dict[str, Any] = {axis: places}
    for name, values in small.data.items():
        more = large.data.get(name) or []
        if name == axis or not (_plain(values) and _plain(more)):
            continue
        if len(values) == len(places) and len(more) == len(others):
            there = np.asarray(np.interp(np.array(places), np.array(others), np.array(more)))
            found[name] = ((1 - share) * np.array(values) + share * there).tolist()
    return found


def _plain(values: Any) -> bool:
    return isinstance(values, list) and bool(values) and all(isinstance(each, int | float) for each in values)
