"""The verdict: what a network is good and bad at remembering, in plain words, each with the numbers behind it.

The rules are a table (`verdict_axes`): an axis, the number that decides it, and which numbers are better. A network is
called good at something only when it clearly exceeds two thirds of the references, bad when two thirds clearly exceed
it; clearly means that the 95% interval of the difference leaves zero out.
"""

from __future__ import annotations

from collections.abc import Sequence

from mnemoscope.core.numbers import number
from mnemoscope.profiles.rows import Row, label, part
from mnemoscope.profiles.verdict.axes import AXES, Axis
from mnemoscope.profiles.verdict.judgement import Judgement, Rival, Tone, judge, rivals_of
from mnemoscope.profiles.verdict.numbers import compared, measured, spoken
from mnemoscope.report.page import Statement

__all__ = ["verdict"]

_OPENING = {"good": "is good at", "bad": "is bad at", "neutral": "is neither good nor bad at"}


def verdict(row: Row, references: Sequence[Row]) -> tuple[Statement, ...]:
    """Return the verdict on a network from its row and those of the references.

    Parameters
    ----------
    row
        Of the network.
    references
        Rows at about equal parameters; one of the same network is left out.

    Returns
    -------
    First a summary, then a statement for every axis, the good ones first; what to try instead where it is bad; and what
    could not be judged.
    """
    judged = judge(row, references)
    order = {"good": 0, "bad": 1, "neutral": 2}
    ranked = sorted(judged, key=lambda each: (order[each.tone], each.rank / (len(each.rivals) + 1)))
    said = [_summary(row, judged, references)] if judged else []
    said += [_statement(row, each) for each in ranked]
    said += [_instead(row, each) for each in ranked if each.tone == "bad"]
    missing = _missing(row, [each.axis for each in judged])
    return (*said, *([missing] if missing else []))


def _summary(row: Row, judged: Sequence[Judgement], references: Sequence[Row]) -> Statement:
    rivals = len(rivals_of(row, references))
    if not rivals:
        text = (
            f"{label(row)} was measured on {_count(len(judged), 'axis', 'axes')}, with no reference to compare it with."
        )
        return Statement(text=text, tone="neutral", confidence=_caveat(row, references), evidence=(), lead=True)
    good, bad = ([each.axis.name for each in judged if each.tone == tone] for tone in ("good", "bad"))
    parts = [f"good at {len(good)}" + (f" ({', '.join(good)})" if good else "")]
    parts += [f"bad at {len(bad)}" + (f" ({', '.join(bad)})" if bad else "")]
    text = (
        f"Of {_count(len(judged), 'axis', 'axes')}, {label(row)} is {' and '.join(parts)}, against "
        f"{_count(rivals, 'reference', 'references')} with about as many parameters as its "
        f"{row['network'].get('parameters') or 0:,}."
    )
    tone: Tone = "good" if len(good) > len(bad) else "bad" if len(bad) > len(good) else "neutral"
    return Statement(text=text, tone=tone, confidence=_caveat(row, references), evidence=(), lead=True)


def _statement(row: Row, judgement: Judgement) -> Statement:
    axis, count = judgement.axis, len(judgement.rivals)
    text = f"{axis.says.format(value=spoken(judgement.number, axis))}{_limit(row, axis)}"
    if count:
        text = f"{label(row)} {_OPENING[judgement.tone]} {axis.name}: {text}; {_standing(judgement)}."
    else:
        text = f"{label(row)}, {axis.name}: {text}."
    return Statement(text=text, tone=judgement.tone, confidence=_sure(row, judgement), evidence=(axis.part,))


def _standing(judgement: Judgement) -> str:
    """Return rank and clear wins and losses; "the best" only where every reference is clearly exceeded."""
    count, above, below = len(judgement.rivals), len(judgement.beaten), len(judgement.beating)
    place = f"rank {judgement.rank} of {count + 1}"
    if above == count:
        return f"{place}, clearly the best, ahead of all {count} references"
    if below == count:
        return f"{place}, clearly the last, behind all {count} references"
    ties = judgement.ties
    tied = f" (level with {', '.join(label(each.row) for each in ties)})" if ties else ""
    return f"{place}{tied}, clearly ahead of {above} and clearly behind {below} of {count} references"


def _limit(row: Row, axis: Axis) -> str:
    most = None if axis.limit is None else row["network"].get(axis.limit[0])
    return "" if most is None or axis.limit is None else f", of at most {number(float(most))} ({axis.limit[1]})"


def _sure(row: Row, judgement: Judgement) -> str:
    """Say how sure a statement is: how many comparisons are settled, from how many seeds, for which weights."""
    count = len(judgement.rivals)
    if not count:
        return "There is nothing to compare it with."
    if judgement.axis.margin is not None:
        return f"Sure: counted, not estimated; what differs by less than {judgement.axis.margin:.0%} counts as level."
    settled = len(judgement.beaten) + len(judgement.beating)
    seeds = len(judgement.number.seeds)
    own = f"{seeds} sets of initial weights" if seeds > 1 else "one set of weights"
    word = "Sure" if settled == count else "Partly sure" if settled else "Not sure"
    weak = "" if count >= 3 else f"; {_count(count, 'reference is', 'references are')} too few to call it good or bad"
    return (
        f"{word}: {settled} of {count} comparisons are settled at the 95% level, from {own}"
        f"{_training(row) if judgement.axis.weights else ''}{weak}."
    )


def _training(row: Row) -> str:
    if row["network"].get("weights") == "trained":
        return "; the references have initial weights, which training would change"
    return "; training changes them"


def _instead(row: Row, judgement: Judgement) -> Statement:
    """Name the reference that exceeds it most on a weak axis, with its number, and what it would cost elsewhere."""
    best = judgement.beating[0]
    network = best.row["network"]
    text = (
        f"Instead of {label(row)} for {judgement.axis.name}, try {label(best.row)} with {network.get('hidden_size')} "
        f"units ({network.get('parameters') or 0:,} parameters): {spoken(best.number, judgement.axis)} instead of "
        f"{spoken(judgement.number, judgement.axis)}{_price(row, best)}."
    )
    others = _count(len(judgement.beating) - 1, "other reference", "other references")
    confidence = (
        f"The difference is clear; {others} clearly exceed it too."
        if others[0] != "0"
        else "It alone is clearly ahead."
    )
    return Statement(text=text, tone="neutral", confidence=confidence, evidence=(judgement.axis.part,))


def _price(row: Row, best: Rival) -> str:
    """Say on which axes the alternative is clearly worse than the network itself."""
    lost = []
    for axis in AXES:
        own, other = measured(row, axis), measured(best.row, axis)
        if own is not None and other is not None and compared(other, own, axis) == "worse":
            lost.append(f"{axis.name} ({number(other.value)} against {number(own.value)})")
    return (
        f". It is clearly behind in {', '.join(lost)}"
        if lost
        else ". It is clearly behind in nothing that was measured"
    )


def _missing(row: Row, judged: Sequence[Axis]) -> Statement | None:
    """Say what was not judged, and why."""
    lost = [axis for axis in AXES if axis not in judged]
    if not lost:
        return None
    reasons = [f"{axis.name} ({_why(row, axis)})" for axis in lost]
    text = f"Not judged of {label(row)}: {'; '.join(reasons)}."
    return Statement(text=text, tone="neutral", confidence="There is no number for it.", evidence=())


def _why(row: Row, axis: Axis) -> str:
    became = part(row, axis.part)
    if became["status"] != "done":
        return f"{became['status']}: {became.get('reason') or 'no reason is known'}"
    found = (became.get("scalars") or {}).get(axis.scalar) or {}
    return str(found.get("note") or "it was not measured")


def _caveat(row: Row, references: Sequence[Row]) -> str:
    """Say what all statements rest on."""
    seeds = row.get("settings", {}).get("seeds") or [0]
    if row["network"].get("weights") == "trained":
        own = "the trained weights that were given; the references have initial weights"
    else:
        own = f"initial weights of {_count(len(seeds), 'seed', 'seeds')}; training changes what depends on weights"
    sizes = sorted({int(each["network"].get("parameters") or 0) for each in rivals_of(row, references)})
    span = f"; the references have {sizes[0]:,} to {sizes[-1]:,} parameters" if sizes else ""
    return f"From {own}{span}. Clear means: the 95% interval of the difference leaves zero out."


def _count(number: int, one: str, many: str) -> str:
    return f"{number} {one if number == 1 else many}"
