"""Page of a study: the published claims beside what was measured, with the rule of every verdict."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Literal

from mnemoscope.report import Column, Entry, Page, Section, Statement, Table
from mnemoscope.studies.machinery.displays import sections
from mnemoscope.studies.machinery.rules import UNDECIDED, Part
from mnemoscope.studies.machinery.study import Finding, Study

__all__ = ["command_of", "duration", "study_page"]

_TONES: dict[str, Literal["good", "bad", "neutral"]] = {
    "reproduced": "good",
    "trend reproduced at smaller scale": "good",
    "not reproduced": "bad",
    "published value wrong": "bad",
    UNDECIDED: "neutral",
}


def command_of(study: Study, scale: str) -> str:
    """Return what runs a study again."""
    return f"mnemoscope study run {study.name} --scale {scale}"


def study_page(study: Study, finding: Finding, scale: str, facts: Mapping[str, str], missing: int = 0) -> Page:
    """Return the page of a study as it was run.

    Parameters
    ----------
    study, finding, scale
        What was run, what it says, and how large.
    facts
        Runs, time, versions, machine and date.
    missing
        Runs of the plan that were not there.
    """
    command = command_of(study, scale)
    absent = [("runs", f"{missing} planned runs are missing: {command}")] if missing else []
    claims = Section(
        name="claims",
        title="Published and measured",
        text=(f"{study.source} shows: {study.claim}", *study.caveats),
        tables=(_claims(finding.parts),),
    )
    shown = sections(study.displays, finding.rows, command, study.references, study.shortened(scale))
    drawn = {key for section in shown for figure in section.figures for key in figure.entries()}
    entries = [
        Entry(key=key, label=label, role="subject" if place < study.subjects else "reference")
        for place, (key, label) in enumerate(study.entries.items())
        if key in drawn or not drawn
    ]
    return Page(
        title=study.title,
        subtitle=f"{study.source}, at {scale} scale: {finding.verdict}",
        entries=entries,
        summary=study.headlines(finding.rows),
        verdict=(_statement(finding),),
        sections=[claims, *shown],
        absent=absent,
        methods=study.described(scale),
        references=study.references,
        command=command,
        facts={"scale": scale, **facts},
    )


def duration(seconds: float) -> str:
    """Return a time in words: ``23 min``."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def _claims(parts: Sequence[Part]) -> Table:
    titles = ("published", "measured", "verdict", "rule, fixed before the runs")
    columns = [Column(title=title, numeric=False) for title in titles]
    rows = [[part.claim, part.measured, part.verdict, part.rule] for part in parts]
    return Table(name="claims", title="Claim by claim", columns=columns, rows=rows)


def _statement(finding: Finding) -> Statement:
    own = finding.parts[0]
    counts = Counter(part.verdict for part in finding.parts)
    others = ", ".join(f"{count} {verdict}" for verdict, count in counts.items())
    return Statement(
        text=f"{own.claim}: {own.measured}.",
        tone=_TONES.get(own.verdict, "neutral"),
        confidence=f"{own.verdict}; of all {len(finding.parts)} claims looked at: {others}",
        evidence=("claims",),
        lead=True,
    )
