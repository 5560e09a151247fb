"""Statements of the verdict: one sentence for the network, one for every axis, and what to try instead."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from mnemoscope.core.numbers import number
from mnemoscope.profiles.drawing import spoken
from mnemoscope.profiles.quantity import Quantity
from mnemoscope.profiles.row import Row
from mnemoscope.profiles.verdict.contest import Contest, number_of
from mnemoscope.profiles.verdict.judgement import ENOUGH, Judgement, Word, axis_of, judge

__all__ = ["Verdict", "listed", "statement", "verdict"]


@dataclass(frozen=True)
class Verdict:
    """Verdict on one network.

    Attributes
    ----------
    sentence
        What it is strong and weak at, among what.
    judgements
        One for every axis of which it has a number, in the order of the scorecard.
    instead
        For every axis at which it is weak, what to try.
    missing
        Axes that could not be judged, each with the reason.
    """

    sentence: str
    judgements: tuple[Judgement, ...] = ()
    instead: tuple[str, ...] = ()
    missing: tuple[tuple[str, str], ...] = ()

    def words(self) -> dict[str, Word]:
        """Return the word of every axis that was compared, by the axis's name."""
        return {axis_of(each.quantity).name: each.word for each in self.judgements if each.rivals}

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON holds it."""
        axes = [
            {
                "axis": axis_of(each.quantity).name,
                "word": each.word if each.rivals else None,
                "rank": list(each.rank) if each.rivals else None,
                "position": list(each.position) if each.rivals else None,
                "references": len(each.rivals),
                "text": statement(each),
            }
            for each in self.judgements
        ]
        missing = [{"axis": axis, "reason": reason} for axis, reason in self.missing]
        return {"sentence": self.sentence, "axes": axes, "instead": list(self.instead), "missing": missing}


def verdict(row: Row, references: Sequence[Row], quantities: Sequence[Quantity]) -> Verdict:
    """Return the verdict on a network from its row and those of the references.

    Parameters
    ----------
    row
        Of the network.
    references
        Rows at about equal parameters. A row of the same kind of network is one of them, so that a network is judged
        alike by whatever name it comes.
    quantities
        What is judged; each has an `Axis`.
    """
    judged = judge(row, references, quantities)
    weak = [each for each in judged if each.word == "weak"]
    return Verdict(
        sentence=_sentence(row, references, judged),
        judgements=tuple(judged),
        instead=tuple(_instead(row, each, quantities) for each in weak if each.against("worse")),
        missing=tuple((axis_of(each).name, _why(row, each)) for each in quantities if number_of(row, each) is None),
    )


def listed(names: Sequence[str]) -> str:
    """Return names as a list of words.

    Examples
    --------
    >>> listed(["a"]), listed(["a", "b", "c"])
    ('a', 'a, b and c')
    """
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}" if names else ""


def _sentence(row: Row, references: Sequence[Row], judged: Sequence[Judgement]) -> str:
    if not judged:
        return f"Nothing that networks are compared by was measured of {row.label}."
    compared = [each for each in judged if each.rivals]
    if not compared:
        return f"{row.label} was measured on {len(judged)} axes, with no reference to compare it with."
    names = {
        word: [axis_of(each.quantity).name for each in compared if each.word == word]
        for word in ("strong", "weak", "average", "uncertain")
    }
    clear = [f"{word} at {listed(names[word])}" for word in ("strong", "weak") if names[word]]
    said = ", ".join(clear) if clear else f"average at {listed(names['average'])}" if names["average"] else ""
    rest = [each for each in ("average", "uncertain") if names[each] and not (each == "average" and not clear)]
    among = f"Among {len(references)} networks of about {row.network.parameters:,} parameters, {row.label} is "
    if not said:
        return f"{among}told apart from too few on every axis: all is uncertain."
    tail = f"; {' or '.join(rest)} at the rest" if rest else ""
    return f"{among}{said}{tail}."


def statement(judgement: Judgement) -> str:
    """Say in a sentence what the number means, and how it stands among the references."""
    quantity = judgement.quantity
    means = axis_of(quantity).says.format(value=spoken(judgement.number))
    text = means[:1].upper() + means[1:]
    return f"{text}: {_standing(judgement)}." if judgement.rivals else f"{text}."


def _standing(judgement: Judgement) -> str:
    """Return rank and clear wins and losses; "best" only where every reference is clearly exceeded."""
    count = len(judgement.rivals)
    above, level, below, unknown = (len(judgement.against(each)) for each in ("better", "level", "worse", "open"))
    if count < ENOUGH:
        return f"{count} reference{'s are' if count > 1 else ' is'} too few to judge by"
    if above == count:
        return f"clearly the best, above all {count} references"
    if below == count:
        return f"clearly the last, below all {count} references"
    least, most = judgement.rank
    place = f"rank {least}" if least == most else f"rank {least} to {most}"
    said = [f"clearly above {above}", f"level with {level}" if level else "", f"below {below}"]
    said += [f"not told apart from {unknown}" if unknown else ""]
    return f"{place} of {count + 1}, {', '.join(each for each in said if each)}"


def _instead(row: Row, judgement: Judgement, quantities: Sequence[Quantity]) -> str:
    """Name the reference that exceeds it most on a weak axis, with its number, and what it would cost elsewhere."""
    best, quantity = judgement.against("worse")[0], judgement.quantity
    text = (
        f"For {axis_of(quantity).name}, try {best.row.label}: {spoken(best.number)} instead of "
        f"{spoken(judgement.number)}"
    )
    contest = Contest([(best.row, row)], quantities)
    lost = [axis_of(each).name for each in quantities if contest.standing(best.row, row, each) == "worse"]
    return f"{text}. In return, {best.row.label} is clearly behind in {listed(lost)}." if lost else f"{text}."


def _why(row: Row, quantity: Quantity) -> str:
    became, found = row.section(quantity.section), row.scalar(quantity)
    if not became.done:
        return f"{became.status}: {became.reason or 'no reason is known'}"
    return "it was not measured" if found is None or not found.note else found.note


def limited(row: Row, quantity: Quantity) -> str:
    """Return the most that a number can be, in words; empty where nothing is known."""
    axis = axis_of(quantity)
    most = None if axis.limit is None else getattr(row.network, axis.limit[0])
    return "" if most is None or axis.limit is None else f"at most {number(float(most))}, {axis.limit[1]}"
