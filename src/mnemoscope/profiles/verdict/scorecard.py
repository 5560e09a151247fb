"""Scorecard: one line per axis with the references as dots, the network among them, and one word."""

from __future__ import annotations

from mnemoscope.profiles.drawing import spoken
from mnemoscope.profiles.row import Estimate, Row
from mnemoscope.profiles.verdict.judgement import Judgement, axis_of
from mnemoscope.profiles.verdict.statements import Verdict, limited, statement
from mnemoscope.report.page import Dot, Score

__all__ = ["LINES", "scorecard"]

LINES = 9
"""Rows at the most."""


def scorecard(row: Row, verdict: Verdict) -> tuple[Score, ...]:
    """Return the scorecard of a network."""
    return tuple(_score(row, each) for each in verdict.judgements[:LINES])


def _score(row: Row, judgement: Judgement) -> Score:
    quantity, own = judgement.quantity, judgement.number
    known = [(each, each.number.value) for each in judgement.rivals if each.number.value is not None]
    scores = [quantity.score(value) for _, value in known]
    assert own.value is not None
    mine = quantity.score(own.value)
    low, high = min([*scores, mine]), max([*scores, mine])

    def place(score: float) -> float:
        return 0.5 if high == low else min(max((score - low) / (high - low), 0.0), 1.0)

    ends = [quantity.score(end) for end in _ends(own)]
    limit = limited(row, quantity)
    value, _, between = spoken(own).partition(" (")
    return Score(
        name=axis_of(quantity).name,
        word=judgement.word if judgement.rivals else "",
        value=value,
        between=between.rstrip(")"),
        unit=_unit(own.unit, value),
        sentence=statement(judgement) + (f" ({limit[:1].upper()}{limit[1:]}.)" if limit else ""),
        place=place(mine),
        lower=place(min(ends)) if ends else None,
        upper=place(max(ends)) if ends else None,
        open_ended=bool(own.at_least),
        dots=tuple(
            Dot(entry=each.row.key, place=place(score), text=spoken(each.number))
            for (each, _), score in zip(known, scores, strict=True)
        ),
        evidence=quantity.section,
    )


def _unit(unit: str, value: str) -> str:
    """Return the unit as it follows a number: 1 step, 2 steps; of a soft rank none."""
    if value == "1" and unit.endswith("s") and unit.isalpha():
        return unit[:-1]
    return "" if unit == "soft" else unit


def _ends(own: Estimate) -> list[float]:
    return [] if own.lower is None or own.upper is None else [own.lower, own.upper]
