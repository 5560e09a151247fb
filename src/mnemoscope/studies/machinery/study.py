"""Study: a published figure, table or theorem as a declaration of runs, rules of verdicts and displays."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path
from pkgutil import iter_modules
from string import Formatter
from typing import Any

from mnemoscope.core.errors import choice
from mnemoscope.core.registry import Registry
from mnemoscope.report import Headline
from mnemoscope.runs import spec_hash
from mnemoscope.studies.machinery.displays import Display, Row
from mnemoscope.studies.machinery.rules import Part, Rule

__all__ = ["SCALES", "STUDIES", "Finding", "Outcome", "Row", "RunSpec", "Study", "declared", "grid"]

SCALES = {
    "smoke": "seconds: shows that it runs, says nothing of what is trained",
    "laptop": "minutes on two cores",
    "paper": "as published, or beyond",
}
"""Sizes at which a study is run, and what they take."""


@dataclass(frozen=True)
class RunSpec:
    """One run of a study: its kind, which says who executes it, and its settings, plain JSON.

    Runs are known by the hash of their content: two studies that ask for the same run share it.

    Attributes
    ----------
    kind, settings
        Its content.
    role
        What it is to the study, for its rows where settings do not tell; not content.
    """

    kind: str
    settings: Mapping[str, Any]
    role: str = ""

    @property
    def content(self) -> dict[str, Any]:
        """The whole as one document."""
        return {"kind": self.kind, **self.settings}

    @property
    def key(self) -> str:
        """The hash of the content."""
        return spec_hash(self.content)


def grid(kind: str, common: Mapping[str, Any] | None = None, /, **axes: Iterable[Any]) -> list[RunSpec]:
    """Return a run for every combination of the axes' values, the last axis fastest.

    Examples
    --------
    >>> [dict(spec.settings) for spec in grid("rank", {"seed": 0}, T=(2, 4))]
    [{'seed': 0, 'T': 2}, {'seed': 0, 'T': 4}]
    """
    values = [list(axis) for axis in axes.values()]
    return [RunSpec(kind, {**(common or {}), **dict(zip(axes, case, strict=True))}) for case in product(*values)]


@dataclass(frozen=True)
class Outcome:
    """Summary of a run, and how long it took: by the clock, and in processor time where that is known."""

    spec: RunSpec
    summary: Mapping[str, Any]
    seconds: float
    processor_seconds: float | None = None


@dataclass(frozen=True, kw_only=True)
class Finding:
    """Results of a study: its rows, and every claim beside what was measured; the first claim is the study's own."""

    rows: Sequence[Row]
    parts: tuple[Part, ...]

    @property
    def verdict(self) -> str:
        """Verdict on the study's own claim."""
        return self.parts[0].verdict


class _Words(Formatter):
    """Formatter that says lists and groups of settings in words: ``widths 10, 20 and 40``."""

    def format_field(self, value: Any, format_spec: str) -> Any:
        """Return a setting as text."""
        return _said(value) if isinstance(value, Mapping | list | tuple) else super().format_field(value, format_spec)


def _said(value: Any, inner: bool = False) -> str:
    """Return a setting in words; what stands within a list or a group of settings in parentheses."""
    if isinstance(value, Mapping):
        text = ", ".join(f"{str(name).replace('_', ' ')} {_said(own, True)}" for name, own in value.items())
    elif isinstance(value, list | tuple) and inner:
        text = ", ".join(_said(own, True) for own in value)
    elif isinstance(value, list | tuple):
        *first, last = [_said(own, True) for own in value] or [""]
        return f"{', '.join(first)} and {last}" if first else last
    else:
        return f"{value:g}" if isinstance(value, float) else str(value)
    return f"({text})" if inner else text


_WORDS = _Words()


def _nothing(rows: Sequence[Row]) -> tuple[Headline, ...]:
    return ()


def _row(outcome: Outcome) -> list[Row]:
    return [{**outcome.spec.settings, **outcome.summary}]


@dataclass(frozen=True, kw_only=True)
class Study:
    """A published figure, table or theorem, declared once and run at three scales.

    Attributes
    ----------
    name
        Its registry name: ``depth-fig-6``; its file is ``depth_fig_6.py``.
    title, source, claim, references
        What it shows in a few words; document and place; what the document shows there, in our words; keys of the
        bibliography.
    scales
        For every scale the settings that `runs` and `methods` take. Only scale changes between them; the same for
        all where a study is exact and complete at every scale.
    minutes
        About how many minutes each scale takes on two cores; studies are run from the cheapest on.
    runs
        From the settings of a scale to its runs, cheapest first.
    rows
        From an outcome to the rows of the table that rules and displays read; by default settings and summary as one.
    rules
        Of the verdicts, fixed before the runs; each claim has one.
    displays
        Figures and tables, by the columns that they show.
    entries
        Keys of the curves and bars in the displays, each with its label; the first is drawn strongest, `subjects` of
        them alike.
    headlines
        The few numbers at the top of the page.
    methods
        A paragraph for a paper with what differs from the document; ``{name}`` stands for a setting of the scale.
    cut
        What a scale below the document's own leaves out, in a few words that stand with every figure.
    caveats
        What a reader must know before believing it.
    trained
        Whether it trains networks: then there is no verdict at smoke scale.
    """

    name: str
    title: str
    source: str
    claim: str
    references: tuple[str, ...]
    runs: Callable[[Mapping[str, Any]], Sequence[RunSpec]]
    rules: tuple[Rule, ...]
    displays: tuple[Display, ...]
    entries: Mapping[str, str]
    methods: str
    scales: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    minutes: Mapping[str, float] = field(default_factory=dict)
    rows: Callable[[Outcome], list[Row]] = _row
    headlines: Callable[[Sequence[Row]], tuple[Headline, ...]] = _nothing
    subjects: int = 1
    cut: str = ""
    caveats: tuple[str, ...] = ()
    trained: bool = False

    def settings(self, scale: str) -> Mapping[str, Any]:
        """Return the settings of a scale, or raise when there is no such scale."""
        return self.scales.get(choice("scale", scale, SCALES), {})

    def changed(self, scale: str, changes: Mapping[str, Any]) -> Study:
        """Return the study with other settings of a scale, by their names there; what is nested stays as it is."""
        own = self.settings(scale)
        for name in changes:
            choice(f"setting of {self.name}", name, tuple(own))
        return replace(self, scales={**self.scales, scale: {**own, **changes}})

    def shortened(self, scale: str) -> str:
        """Return what a scale leaves out; nothing at paper scale."""
        return "" if scale == "paper" else _WORDS.format(self.cut, **self.settings(scale))

    def described(self, scale: str) -> str:
        """Return the paragraph for a paper, with the settings of a scale."""
        return _WORDS.format(self.methods, **self.settings(scale))

    def plan(self, scale: str) -> list[RunSpec]:
        """Return the runs of a scale, cheapest first."""
        return list(self.runs(self.settings(scale)))

    def analyse(self, outcomes: Sequence[Outcome], scale: str) -> Finding:
        """Return what the runs say of the claims; some runs may be missing."""
        return self.judge([row for outcome in outcomes for row in self.rows(outcome)], scale)

    def judge(self, rows: Sequence[Row], scale: str) -> Finding:
        """Return what a table of results says of the claims."""
        silent = self.trained and scale == "smoke"
        parts = tuple(rule.judge(rows, scale, silent=silent) for rule in self.rules)
        return Finding(rows=rows, parts=parts)


def _files() -> dict[str, str]:
    """Return the studies of this package by their names: every file beside the machinery's folder is one."""
    found = iter_modules([str(Path(__file__).parents[1])])
    return {file.name.replace("_", "-"): f"mnemoscope.studies.{file.name}" for file in found if not file.ispkg}


STUDIES: Registry[Study] = Registry("study", "mnemoscope.studies", Study, _files(), listed="mnemoscope study list")


def declared(study: Study) -> Study:
    """Register a study, and return it."""
    return STUDIES.register(study.name)(study)
