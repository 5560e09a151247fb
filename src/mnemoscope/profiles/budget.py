"""Budget of a profile: how long it may take by default, and which parts further seeds go to."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence

from mnemoscope.profiles.row import Row
from mnemoscope.profiles.section import ProfileSection, judged_quantities
from mnemoscope.profiles.settings import ENOUGH_SEEDS
from mnemoscope.profiles.verdict.judgement import Judgement, judge

__all__ = ["CEILINGS", "OVER", "ceiling", "judgements_by_section", "open_share", "settled"]

CEILINGS = {1024: 60.0, 2048: 90.0, 4096: 120.0}
"""Seconds that the default profile of one network may take, by the largest state that has so many; the last beyond."""

_FIRST_LOOK = {2048: 30.0, 4096: 60.0}
"""Likewise of a first look."""

OVER = 1.2
"""How far, as a share of the budget, first seeds of parts may go beyond it: none is begun that would take longer."""

_FEWEST = 2
"""Sets of weights below which there is no interval, and so nothing that it could change."""


def ceiling(state_sizes: Iterable[int | None], *, quick: bool = False) -> float:
    """Return how many seconds measuring may take by default: the sum over networks.

    Examples
    --------
    >>> ceiling([128]), ceiling([1500]), ceiling([4096, None]), ceiling([1024], quick=True)
    (60.0, 90.0, 180.0, 30.0)
    """
    table = _FIRST_LOOK if quick else CEILINGS
    last = max(table.values())
    return sum(next((found for most, found in table.items() if (size or 0) <= most), last) for size in state_sizes)


def judgements_by_section(
    row: Row, references: Sequence[Row], sections: Sequence[ProfileSection]
) -> dict[str, list[Judgement]]:
    """Return the judgements on a network so far, by the section that their numbers are of."""
    found: dict[str, list[Judgement]] = {}
    # Names are told apart first when a page is made: here a reference may have that of the network, and other numbers.
    own, *others = (dataclasses.replace(each, own_key=f"{n}") for n, each in enumerate((row, *references)))
    for each in judge(own, others, judged_quantities(sections)) if others else ():
        found.setdefault(each.quantity.section, []).append(each)
    return found


def open_share(judgements: Sequence[Judgement]) -> float:
    """Return the largest share of references that a part does not tell its network from: where seeds tell most."""
    shares = [len(each.against("open")) / len(each.rivals) for each in judgements if each.rivals]
    return max(shares, default=0.0)


def settled(name: str, seeds: int, judgements: Mapping[str, Sequence[Judgement]]) -> bool:
    """Whether a part needs no further seed: it has three, or its interval leaves every judgement on it as it is.

    A word other than "uncertain" holds at both ends of the interval, by the rules of the verdict.
    """
    if seeds >= ENOUGH_SEEDS:
        return True
    own = judgements.get(name, ())
    return seeds >= _FEWEST and bool(own) and all(each.word != "uncertain" for each in own)
