"""The page of a study: the published claims beside what was measured."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Literal

from mnemoscope.core.environment import environment_facts
from mnemoscope.report import Column, Page, Section, Statement, Table
from mnemoscope.studies.study import Finding, Outcome, Part, Study

__all__ = ["study_page"]

_TONES: dict[str, Literal["good", "bad", "neutral"]] = {
    "reproduced": "good",
    "trend reproduced at smaller scale": "good",
    "not reproduced": "bad",
    "published value wrong": "bad",
}


def study_page(study: Study, finding: Finding, outcomes: Sequence[Outcome], scale: str, missing: int) -> Page:
    """Return the page of a study as it was run.

    Parameters
    ----------
    study, finding, outcomes, scale
        What was run, what it says, its runs, and how large.
    missing
        Runs of the plan that were not there.
    """
    command = f"mnemoscope study run {study.name} --scale {scale}"
    seconds = sum(outcome.seconds for outcome in outcomes)
    absent = (
        [("runs", f"{missing} of {missing + len(outcomes)} planned runs are missing: {command}")] if missing else []
    )
    claims = Section(
        name="claims",
        title="Published and measured",
        text=(f"{study.source} shows: {study.claim}",),
        tables=(_claims(finding.parts),),
        notes=finding.caveats,
    )
    return Page(
        title=study.title,
        subtitle=f"{study.source}, at {scale} scale: {finding.verdict}",
        entries=study.entries(finding),
        summary=finding.headlines,
        verdict=(_statement(finding),),
        sections=[claims, *study.draw(finding, command)],
        absent=absent,
        methods=study.methods(scale),
        references=study.references,
        command=command,
        facts={
            "scale": scale,
            "runs": f"{len(outcomes)} in {_duration(seconds)} of computing",
            **{name: str(value) for name, value in environment_facts().items()},
        },
    )


def _claims(parts: Sequence[Part]) -> Table:
    columns = [Column(title=title, numeric=False) for title in ("published", "measured", "verdict")]
    rows = [[part.claim, part.measured, part.verdict] for part in parts]
    return Table(name="claims", title="Claim by claim", columns=columns, rows=rows)


def _statement(finding: Finding) -> Statement:
    own = finding.parts[0]
    counts = Counter(part.verdict for part in finding.parts)
    others = ", ".join(f"{count} {verdict}" for verdict, count in counts.items())
    return Statement(
        text=f"{own.claim}: {own.measured}.",
        tone=_TONES[own.verdict],
        confidence=f"{own.verdict}; of all {len(finding.parts)} claims looked at: {others}",
        evidence=("claims",),
        lead=True,
    )


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
