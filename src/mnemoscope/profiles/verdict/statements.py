"""Statements of the verdict: what a network is good and bad at remembering, each with the numbers behind it.

Quantities say which numbers are judged, and which of them are better (`mnemoscope.profiles.quantity`). A network is
called good at something only when it clearly exceeds two thirds of the references, bad when two thirds clearly exceed
it; clearly means that the 95% interval of the difference leaves zero out.
"""

from __future__ import annotations

from collections.abc import Sequence

from mnemoscope.core.numbers import number
from mnemoscope.profiles.quantity import Axis, Quantity
from mnemoscope.profiles.row import Row
from mnemoscope.profiles.verdict.judgement import (
    ENOUGH,
    Judgement,
    Rival,
    Tone,
    axis_of,
    compared,
    judge,
    rivals_of,
    spoken,
    value_of,
)
from mnemoscope.report.page import Statement

__all__ = ["verdict"]

_OPENING = {"good": "is good at", "bad": "is bad at", "neutral": "is neither good nor bad at"}


def verdict(row: Row, references: Sequence[Row], quantities: Sequence[Quantity]) -> tuple[Statement, ...]:
    """Return the verdict on a network from its row and those of the references.

    Parameters
    ----------
    row
        Of the network.
    references
        Rows at about equal parameters; one of the same network is left out.
    quantities
        What is judged; each has an `Axis`.

    Returns
    -------
    First a summary, then a statement for every axis, the good ones first; what to try instead where it is bad; and what
    could not be judged.
    """
    judged = judge(row, references, quantities)
    order = {"good": 0, "bad": 1, "neutral": 2}
    ranked = sorted(judged, key=lambda each: (order[each.tone], each.rank / (len(each.rivals) + 1)))
    said = [_summary(row, judged, references)] if judged else []
    said += [_statement(row, each) for each in ranked]
    said += [_instead(row, each, quantities) for each in ranked if each.tone == "bad"]
    missing = _missing(row, [each for each in quantities if row.number(each) is None])
    return (*said, *([missing] if missing else []))


def _sizes(row: Row, rivals: Sequence[Row]) -> str:
    """Return how many parameters the references have: about as many only where they are within a tenth."""
    own, counts = row.network.parameters, [each.network.parameters for each in rivals]
    if all(abs(count - own) <= own / 10 for count in counts):
        return f"with about as many parameters as its {own:,}"
    least, most = f"{min(counts):,}", f"{max(counts):,}"
    return f"with {least if least == most else f'{least} to {most}'} parameters, where it has {own:,}"


def _summary(row: Row, judged: Sequence[Judgement], references: Sequence[Row]) -> Statement:
    rivals = len(rivals_of(row, references))
    if not rivals:
        text = (
            f"{row.label} was measured on {_count(len(judged), 'axis', 'axes')}, with no reference to compare it with."
        )
        return Statement(text=text, tone="neutral", confidence=_caveat(row, references), evidence=(), lead=True)
    good, bad = ([axis_of(each.quantity).name for each in judged if each.tone == tone] for tone in ("good", "bad"))
    parts = [f"good at {len(good)}" + (f" ({', '.join(good)})" if good else "")]
    parts += [f"bad at {len(bad)}" + (f" ({', '.join(bad)})" if bad else "")]
    text = (
        f"Of {_count(len(judged), 'axis', 'axes')}, {row.label} is {' and '.join(parts)}, against "
        f"{_count(rivals, 'reference', 'references')} {_sizes(row, rivals_of(row, references))}."
    )
    tone: Tone = "good" if len(good) > len(bad) else "bad" if len(bad) > len(good) else "neutral"
    return Statement(text=text, tone=tone, confidence=_caveat(row, references), evidence=(), lead=True)


def _statement(row: Row, judgement: Judgement) -> Statement:
    axis, count = axis_of(judgement.quantity), len(judgement.rivals)
    text = f"{axis.says.format(value=spoken(judgement.number, judgement.quantity))}{_limit(row, axis)}"
    if count:
        text = f"{row.label} {_OPENING[judgement.tone]} {axis.name}: {text}; {_standing(judgement)}."
    else:
        text = f"{row.label}, {axis.name}: {text}."
    return Statement(
        text=text, tone=judgement.tone, confidence=_sure(row, judgement), evidence=(judgement.quantity.section,)
    )


def _standing(judgement: Judgement) -> str:
    """Return rank and clear wins and losses; "the best" only where every reference is clearly exceeded."""
    count, above, below = len(judgement.rivals), len(judgement.beaten), len(judgement.beating)
    place = f"rank {judgement.rank} of {count + 1}"
    if above == count:
        return f"{place}, clearly the best, ahead of all {count} references"
    if below == count:
        return f"{place}, clearly the last, behind all {count} references"
    ties = judgement.ties
    tied = f" (level with {', '.join(each.row.label for each in ties)})" if ties else ""
    return f"{place}{tied}, clearly ahead of {above} and clearly behind {below} of {count} references"


def _limit(row: Row, axis: Axis) -> str:
    most = None if axis.limit is None else getattr(row.network, axis.limit[0])
    return "" if most is None or axis.limit is None else f", of at most {number(float(most))} ({axis.limit[1]})"


def _sure(row: Row, judgement: Judgement) -> str:
    """Say how sure a statement is: how many comparisons are settled, from how many seeds, for which weights."""
    axis, count = axis_of(judgement.quantity), len(judgement.rivals)
    if not count:
        return "There is nothing to compare it with."
    if axis.margin is not None:
        return f"Sure: counted, not estimated; what differs by less than {axis.margin:.0%} counts as level."
    settled = len(judgement.beaten) + len(judgement.beating)
    seeds = len(judgement.number.known)
    own = f"{seeds} sets of initial weights" if seeds > 1 else "one set of weights"
    word = "Sure" if settled == count else "Partly sure" if settled else "Not sure"
    weak = (
        "" if count >= ENOUGH else f"; {_count(count, 'reference is', 'references are')} too few to call it good or bad"
    )
    return (
        f"{word}: {settled} of {count} comparisons are settled at the 95% level, from {own}"
        f"{_training(row) if axis.weights else ''}{weak}."
    )


def _training(row: Row) -> str:
    if row.network.trained:
        return "; the references have initial weights, which training would change"
    return "; training changes them"


def _instead(row: Row, judgement: Judgement, quantities: Sequence[Quantity]) -> Statement:
    """Name the reference that exceeds it most on a weak axis, with its number, and what it would cost elsewhere."""
    best, quantity = judgement.beating[0], judgement.quantity
    network = best.row.network
    text = (
        f"Instead of {row.label} for {axis_of(quantity).name}, try {best.row.label} with {network.hidden_size} "
        f"units ({network.parameters:,} parameters): {spoken(best.number, quantity)} instead of "
        f"{spoken(judgement.number, quantity)}{_price(row, best, quantities)}."
    )
    others = _count(len(judgement.beating) - 1, "other reference", "other references")
    confidence = (
        f"The difference is clear; {others} clearly exceed it too."
        if others[0] != "0"
        else "It alone is clearly ahead."
    )
    return Statement(text=text, tone="neutral", confidence=confidence, evidence=(quantity.section,))


def _price(row: Row, best: Rival, quantities: Sequence[Quantity]) -> str:
    """Say on which axes the alternative is clearly worse than the network itself."""
    lost = []
    for each in quantities:
        own, other = row.number(each), best.row.number(each)
        if own is not None and other is not None and compared(other, own, each) == "worse":
            lost.append(f"{axis_of(each).name} ({number(value_of(other))} against {number(value_of(own))})")
    return (
        f". It is clearly behind in {', '.join(lost)}"
        if lost
        else ". It is clearly behind in nothing that was measured"
    )


def _missing(row: Row, lost: Sequence[Quantity]) -> Statement | None:
    """Say what was not judged, and why."""
    if not lost:
        return None
    reasons = [f"{axis_of(each).name} ({_why(row, each)})" for each in lost]
    text = f"Not judged of {row.label}: {'; '.join(reasons)}."
    return Statement(text=text, tone="neutral", confidence="There is no number for it.", evidence=())


def _why(row: Row, quantity: Quantity) -> str:
    became, found = row.section(quantity.section), row.scalar(quantity)
    if not became.done:
        return f"{became.status}: {became.reason or 'no reason is known'}"
    return "it was not measured" if found is None or not found.note else found.note


def _caveat(row: Row, references: Sequence[Row]) -> str:
    """Say what all statements rest on."""
    seeds = row.settings.seeds
    if row.network.trained:
        own = "the trained weights that were given; the references have initial weights"
    else:
        own = f"initial weights of {_count(len(seeds), 'seed', 'seeds')}; training changes what depends on weights"
    sizes = sorted({each.network.parameters for each in rivals_of(row, references)})
    span = f"; the references have {sizes[0]:,} to {sizes[-1]:,} parameters" if sizes else ""
    return f"From {own}{span}. Clear means: the 95% interval of the difference leaves zero out."


def _count(number: int, one: str, many: str) -> str:
    return f"{number} {one if number == 1 else many}"
