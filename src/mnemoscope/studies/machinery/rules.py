"""Rules of verdicts, as data: which columns are compared, by which relation, within which margin.

A rule is declared with the study, before any run, and is printed on the page in words beside the verdict.
"""

from __future__ import annotations

import math
import operator
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Literal

import numpy as np

from mnemoscope.core.errors import choice
from mnemoscope.core.intervals import Difference, difference
from mnemoscope.core.numbers import number

__all__ = ["NO_VERDICT", "UNDECIDED", "VERDICTS", "First", "Holds", "Ordered", "Part", "Ranked", "Rule"]

Row = Mapping[str, Any]

UNDECIDED = "not decided by these seeds"
"""Where seeds are too few, or too far apart, to confirm a ranking or to contradict it."""

VERDICTS = ("reproduced", "trend reproduced at smaller scale", "not reproduced", "published value wrong", UNDECIDED)
"""What a study can find of a published claim."""

NO_VERDICT = "no verdict at smoke scale"
"""Where networks were trained too briefly to say anything."""

Relation = Literal[">=", "<=", ">", "<", "="]
_RELATIONS = {">=": operator.ge, "<=": operator.le, ">": operator.gt, "<": operator.lt}
_WORDS = {">=": "at least", "<=": "at most", ">": "above", "<": "below", "=": "equal to"}


@dataclass(frozen=True, kw_only=True)
class Part:
    """One published statement beside what was measured.

    Attributes
    ----------
    claim
        What the document says, in our words.
    measured
        What came out, with its numbers.
    verdict
        One of `VERDICTS`, or `NO_VERDICT`.
    rule
        How the verdict follows from the numbers, in words.
    """

    claim: str
    measured: str
    verdict: str
    rule: str = ""

    def __post_init__(self) -> None:
        choice("verdict", self.verdict, (*VERDICTS, NO_VERDICT))


@dataclass(frozen=True, kw_only=True)
class Rule(ABC):
    """Rule by which one claim is judged from the rows of a study.

    Attributes
    ----------
    claim
        What the document says, in our words.
    where
        Columns and the value that a row has to have there to be looked at.
    names
        Words for columns, where their names say too little; empty: of which kind a row is, which is not told.
    """

    claim: str
    where: Mapping[str, Any] = field(default_factory=dict)
    names: Mapping[str, str] = field(default_factory=dict)

    def judge(self, rows: Sequence[Row], scale: str, *, silent: bool = False) -> Part:
        """Return the claim beside what the rows say of it; `silent`: without a verdict."""
        chosen = [row for row in rows if all(row.get(name) == value for name, value in self.where.items())]
        measured, verdict = self.decide(chosen, scale)
        return Part(claim=self.claim, measured=measured, verdict=NO_VERDICT if silent else verdict, rule=self.words())

    @abstractmethod
    def decide(self, rows: Sequence[Row], scale: str) -> tuple[str, str]:
        """Return what was measured, in words, and the verdict."""

    @abstractmethod
    def words(self) -> str:
        """Return the rule in words."""

    def name(self, column: float | str) -> str:
        """Return the words for a column, or a number."""
        return self.names.get(column, column) if isinstance(column, str) else number(column)

    def _where(self) -> str:
        told = {self.name(column): value for column, value in self.where.items() if self.name(column)}
        return "".join(f", where {name} is {value}" for name, value in told.items())


@dataclass(frozen=True, kw_only=True)
class Holds(Rule):
    """A relation between two columns that has to hold in every row.

    Attributes
    ----------
    left, relation, right
        A column, ``>=``, ``<=``, ``>``, ``<`` or ``=``, and a column or a number.
    within
        What ``=`` allows between the two, or the others beyond it: a number, or a column with one for each row.
    otherwise
        The verdict where it does not hold: ``"published value wrong"`` where the computation is exact.
    scaled
        Whether what holds below paper scale is a trend only: so where networks were trained.
    """

    left: str
    relation: Relation
    right: float | str
    within: float | str = 0.0
    otherwise: str = "not reproduced"
    scaled: bool = False

    def decide(self, rows: Sequence[Row], scale: str) -> tuple[str, str]:
        """Count the rows in which it holds; without a row nothing is decided."""
        if not rows:
            return "no case to judge", UNDECIDED
        held = [self._holds(row) for row in rows]
        count = f"held in {sum(held)} of {len(held)} cases"
        if self.relation in (">=", "<="):
            equal = sum(row[self.left] == _value(row, self.right) for row in rows)
            count += f", attained with equality in {equal}" if equal else ""
        apart = next((row for row, good in zip(rows, held, strict=True) if not good), None)
        if apart is not None:
            found, asked = (number(_value(apart, side)) for side in (self.left, self.right))
            count += f"; first exception: {self.name(self.left)} {found} against {asked}{_place(apart, rows)}"
        good = "trend reproduced at smaller scale" if self.scaled and scale != "paper" else "reproduced"
        return count, good if all(held) else self.otherwise

    def words(self) -> str:
        """Say which relation has to hold."""
        slack = "" if self.within == 0.0 else f", within {self.name(self.within)}"
        relation = f"{self.name(self.left)} {_WORDS[self.relation]} {self.name(self.right)}{slack}"
        return f"{relation}, in every case{self._where()}; otherwise: {self.otherwise}"

    def _holds(self, row: Row) -> bool:
        left, right, slack = row[self.left], _value(row, self.right), _value(row, self.within)
        if left is None or right is None:
            return False
        if self.relation == "=":
            return bool(abs(left - right) <= slack)
        shift = slack if self.relation in ("<", "<=") else -slack
        return bool(_RELATIONS[self.relation](left, right + shift))


@dataclass(frozen=True, kw_only=True)
class Ordered(Rule):
    """The least size that succeeds, falling or rising from group to group.

    Attributes
    ----------
    column
        The size that is looked at.
    by
        The groups, in the order of their values.
    direction
        ``"falls"`` or ``"rises"``, strictly.
    success
        A column (of one number, or one for each seed) whose median has to be below `threshold`.
    verb
        What a size does that succeeds.
    """

    column: str
    by: str
    groups: tuple[Any, ...]
    direction: Literal["falls", "rises"]
    success: str
    threshold: float
    verb: str = "succeeds"

    def decide(self, rows: Sequence[Row], scale: str) -> tuple[str, str]:
        """Compare the least sizes of neighbouring groups."""
        least = self.least(rows)
        values = [value for value in least.values() if value is not None]
        compare = operator.lt if self.direction == "falls" else operator.gt
        ordered = len(values) == len(least) and all(compare(after, before) for before, after in pairwise(values))
        listed = ", ".join(
            f"{'none' if value is None else number(value)} at {self.name(self.by)} {group}"
            for group, value in least.items()
        )
        criterion = f"{self.name(self.success)} < {self.threshold:g}"
        good = "reproduced" if scale == "paper" else "trend reproduced at smaller scale"
        measured = f"least {self.name(self.column)} that {self.verb} ({criterion}): {listed}"
        return measured, good if ordered else "not reproduced"

    def least(self, rows: Sequence[Row]) -> dict[Any, Any]:
        """Return the least size of every group that succeeds, None where none does."""
        return {group: self._least(rows, group) for group in self.groups}

    def words(self) -> str:
        """Say what has to fall or rise."""
        return (
            f"least {self.name(self.column)} with a median {self.name(self.success)} below {self.threshold:g} "
            f"{self.direction} from each {self.name(self.by)} to the next{self._where()}"
        )

    def _least(self, rows: Sequence[Row], group: Any) -> Any:
        solved = [row for row in rows if row[self.by] == group and np.median(row[self.success]) < self.threshold]
        return min((row[self.column] for row in solved), default=None)


@dataclass(frozen=True, kw_only=True)
class First(Rule):
    """One group's least size that succeeds, below those of all others.

    Attributes
    ----------
    group
        Which of `groups`.
    column, by, groups, success, threshold, verb
        As in `Ordered`.
    """

    column: str
    by: str
    groups: tuple[Any, ...]
    group: Any
    success: str
    threshold: float
    verb: str = "succeeds"

    def decide(self, rows: Sequence[Row], scale: str) -> tuple[str, str]:
        """Compare the least size of the group with the others'."""
        order = self._order()
        least = order.least(rows)
        measured, _ = order.decide(rows, scale)
        others = [value for group, value in least.items() if group != self.group and value is not None]
        own = least[self.group]
        good = "reproduced" if scale == "paper" else "trend reproduced at smaller scale"
        return measured, good if own is not None and all(own < other for other in others) else "not reproduced"

    def words(self) -> str:
        """Say whose least size has to be below the others'."""
        size = f"least {self.name(self.column)} with a median {self.name(self.success)} below {self.threshold:g}"
        listed = ", ".join(map(str, self.groups))
        return f"{size} is that of {self.name(self.by)} {self.group}, of {listed}{self._where()}"

    def _order(self) -> Ordered:
        return Ordered(
            claim=self.claim,
            names=self.names,
            column=self.column,
            by=self.by,
            groups=self.groups,
            direction="falls",
            success=self.success,
            threshold=self.threshold,
            verb=self.verb,
        )


@dataclass(frozen=True, kw_only=True)
class Ranked(Rule):
    """The mean of a column over seeds, rising or falling from group to group in every case.

    A step from one group to the next is taken as confirmed where the 95% interval of the difference of their means
    (Welch) lies beyond the margin, as contradicted where it lies on the other side, and as not decided where the margin
    is within it, or where a group has one seed, and so no interval.

    Attributes
    ----------
    column
        One number for each seed, or one; None (nothing was mastered) is below every number.
    by, groups
        The column that divides the rows, and its values in their order.
    direction
        ``"rises"`` or ``"falls"``.
    cases
        Columns whose values make rows one case, such as the task; every case is looked at alone.
    margin
        By how much the means of neighbouring groups have to differ, at least; 0: at all. Negative: may be behind by.
    ended
        A column that says whether a row's numbers end at the most that was tried, and so are least values; a step
        between two such groups is not decided. Empty: none do.
    """

    column: str
    by: str
    groups: tuple[Any, ...]
    direction: Literal["falls", "rises"] = "rises"
    cases: tuple[str, ...] = ()
    margin: float = 0.0
    ended: str = ""

    def decide(self, rows: Sequence[Row], scale: str) -> tuple[str, str]:
        """Compare the means of neighbouring groups, case by case."""
        found = self._seeds(rows)
        steps = {case: self._steps(own) for case, own in found.items()}
        ended = {(*self._case(row), row[self.by]) for row in rows if row.get(self.ended)}
        held = [
            None if {(*case, before), (*case, after)} <= ended else self._is_confirmed(step)
            for case, own in steps.items()
            for (before, after), step in zip(pairwise(self.groups), own, strict=True)
        ]
        listed = "; ".join(_listed(own, steps[case], self._told(case)) for case, own in found.items())
        measured = f"mean {self.name(self.column)}: {listed or 'nothing measured'}"
        if False in held:
            return measured, "not reproduced"
        if None in held or not held:
            return measured, UNDECIDED
        return measured, "reproduced" if scale == "paper" else "trend reproduced at smaller scale"

    def words(self) -> str:
        """Say what has to rise or fall, and by how much."""
        far = "" if self.margin == 0 else f", each time by {number(self.margin)} or more"
        cases = f", in every case of {' and '.join(map(self.name, self.cases))}" if self.cases else ""
        order = ", ".join(map(str, self.groups))
        decided = f"; {UNDECIDED} where the 95% interval of a difference does not say so either way"
        decided += ", or where both reach the most that was tried" if self.ended else ""
        return f"mean {self.name(self.column)} {self.direction} from {order}{far}{cases}{self._where()}{decided}"

    def _seeds(self, rows: Sequence[Row]) -> dict[tuple[Any, ...], dict[Any, list[float]]]:
        """Return the numbers of every group by case; of cases in which not all groups were measured nothing."""
        found: dict[tuple[Any, ...], dict[Any, list[float]]] = {}
        for row in rows:
            own = found.setdefault(self._case(row), {})
            values = row[self.column] if isinstance(row[self.column], list | tuple) else [row[self.column]]
            own.setdefault(row[self.by], []).extend(-math.inf if value is None else value for value in values)
        measured = {case: {group: own[group] for group in self.groups if own.get(group)} for case, own in found.items()}
        return {case: own for case, own in measured.items() if len(own) == len(self.groups)}

    def _case(self, row: Row) -> tuple[Any, ...]:
        return tuple(row[name] for name in self.cases)

    def _told(self, case: Sequence[Any]) -> str:
        """Return a case in words: its words as they are, its numbers with the names of their columns."""
        named = zip(self.cases, case, strict=True)
        told = [value if isinstance(value, str) else f"{self.name(name)} = {value}" for name, value in named]
        return ", ".join(filter(None, told))

    def _steps(self, groups: Mapping[Any, list[float]]) -> list[Difference]:
        return [_step(before, after) for before, after in pairwise(groups.values())]

    def _is_confirmed(self, step: Difference) -> bool | None:
        """Return whether a step is as it has to be; None where the seeds do not say."""
        if step.lower is None or step.upper is None:
            return None
        least, most = (step.lower, step.upper) if self.direction == "rises" else (-step.upper, -step.lower)
        if least > 0 if self.margin == 0 else least >= self.margin:
            return True
        return None if (most > 0 if self.margin == 0 else most >= self.margin) else False


def _step(before: Sequence[float], after: Sequence[float]) -> Difference:
    """Return by how much the mean rises; where nothing was mastered, below every number, whatever the spread."""
    if -math.inf in (*before, *after):
        rise = 0.0 if set(before) == set(after) else float(np.mean(after)) - float(np.mean(before))
        return Difference(rise, rise, rise, "nothing was mastered")
    return difference(after, before)


def _listed(groups: Mapping[Any, Sequence[float]], steps: Sequence[Difference], case: str) -> str:
    """Return the means of the groups in words, each with what it is beyond the one before."""
    told = ["", *(_rise(step) for step in steps)]
    means = [float(np.mean(values)) for values in groups.values()]
    listed = ", ".join(
        f"{'none' if value == -math.inf else number(value)} at {group}{more}"
        for group, value, more in zip(groups, means, told, strict=True)
    )
    return f"{listed} in {case}" if case else listed


def _rise(step: Difference) -> str:
    if not math.isfinite(step.value):
        return ""
    sign = "+" if step.value >= 0 else ""
    if step.lower is None or step.upper is None:
        return f" ({sign}{number(step.value)}, one seed)"
    return f" ({sign}{number(step.value)}, 95% {number(step.lower)} to {number(step.upper)})"


def _value(row: Row, side: float | str) -> Any:
    return row[side] if isinstance(side, str) else side


def _place(row: Row, rows: Sequence[Row]) -> str:
    """Return what tells a row from the others judged with it: the first of its settings that not all of them share."""
    shown = []
    for name, value in row.items():
        most = 24 if isinstance(value, str) else 8 if isinstance(value, int | float) else 0
        if 0 < len(str(value)) <= most and any(other.get(name) != value for other in rows):  # results have more digits
            shown.append(f"{name}={value}")
    return f" at {', '.join(shown[:4])}" if shown else ""
