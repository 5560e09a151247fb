"""Gallery: result files of studies, and the pages, pictures and overview that are drawn from them."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mnemoscope.core.environment import environment_facts
from mnemoscope.core.errors import UserError
from mnemoscope.core.files import make_folder, write_atomic
from mnemoscope.core.result import plain
from mnemoscope.report import Entry, write
from mnemoscope.report.vega import paper
from mnemoscope.studies.machinery.page import command_of, duration, study_page
from mnemoscope.studies.machinery.study import Finding, Outcome, Study

__all__ = ["SCHEMA", "Result", "draw_gallery", "facts_of", "read_result", "save_result"]

SCHEMA = "mnemoscope.study/1"
"""Version of a result file."""


@dataclass(frozen=True)
class Result:
    """A study as it was run: scale, facts of the run, and the rows of its results."""

    study: str
    scale: str
    facts: Mapping[str, str]
    rows: Sequence[Mapping[str, Any]]


def facts_of(outcomes: Sequence[Outcome]) -> dict[str, str]:
    """Return what a page says of its runs: how many, how long, on what, when."""
    seconds = sum(outcome.seconds for outcome in outcomes)
    known = [outcome.processor_seconds for outcome in outcomes if outcome.processor_seconds is not None]
    processor = f" ({duration(sum(known))} of processor time)" if len(known) == len(outcomes) else ""
    told = {"runs": f"{len(outcomes)} in {duration(seconds)} of computing{processor}"}
    return told | {name: str(value) for name, value in environment_facts().items()}


def save_result(study: Study, finding: Finding, scale: str, facts: Mapping[str, str], folder: Path) -> Path:
    """Write the result file of a study into a folder; everything that its page shows is drawn from it."""
    make_folder(folder)
    document = {"schema": SCHEMA, "study": study.name, "scale": scale, "facts": dict(facts)}
    head = json.dumps(document, indent=1, ensure_ascii=False).removesuffix("\n}")
    rows = ",\n  ".join(json.dumps(plain(dict(row)), ensure_ascii=False, allow_nan=False) for row in finding.rows)
    return write_atomic(folder / f"{study.name}.json", f'{head},\n "rows": [\n  {rows}\n ]\n}}\n'.encode())


def read_result(path: Path) -> Result:
    """Read a result file, or raise one line that says what is wrong with it."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UserError(f"{str(path)!r} is not a result of a study: {error}") from error
    if not isinstance(document, dict) or document.get("schema") != SCHEMA:
        raise UserError(f"{str(path)!r} is not a result of a study: its schema must be {SCHEMA!r}")
    return Result(*(document[name] for name in ("study", "scale", "facts", "rows")))


def draw_gallery(folder: Path, study_of: Callable[[str], Study]) -> list[Path]:
    """Draw everything from the result files of a folder: a picture and a page for each study, and README.md."""
    results = [read_result(path) for path in sorted(folder.glob("*.json"))]
    written, cards = [], []
    for result in results:
        study = study_of(result.study)
        finding = study.judge(result.rows, result.scale)
        page = study_page(study, finding, result.scale, result.facts)
        written.append(write(page, folder / f"{study.name}.html"))
        picture = _picture(study, finding, page.entries)
        if picture is not None:
            written.append(write_atomic(folder / f"{study.name}.svg", picture.encode()))
        cards.append(_card(study, finding, result, picture is not None))
    text = _HEAD.format(count=len(cards)) + "\n".join(cards)
    return [*written, write_atomic(folder / "README.md", text.encode())]


_HEAD = """# Gallery

Published results, run again: {count} studies, each with the claim, what was measured and a verdict whose rule was fixed
before the runs. All of it is drawn from the result files in this folder by `mnemoscope study gallery docs/gallery`,
which also writes a page for each study, with every figure, table, rule and caveat, for any browser, without a network.

"""


def _picture(study: Study, finding: Finding, entries: Sequence[Entry]) -> str | None:
    from mnemoscope.studies.machinery.displays import FigureOf

    first = next((display for display in study.displays if isinstance(display, FigureOf)), None)
    return None if first is None else paper(first.figure(finding.rows, "", ()), entries)[0]


def _card(study: Study, finding: Finding, result: Result, pictured: bool) -> str:
    picture = f'<img src="{study.name}.svg" alt="{study.title}" width="420">\n\n' if pictured else ""
    rows = [(part.claim, part.measured, part.verdict) for part in finding.parts]
    claims = "\n".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |" for row in rows)
    facts = result.facts
    cut = study.shortened(result.scale)
    how = (
        f"{result.scale} scale, {facts['runs']}, {facts['date']}, mnemoscope {facts['mnemoscope']}, {facts['machine']}"
    ) + (f"; cut: {cut}" if cut else "")
    return (
        f"## {study.name}: {study.title}\n\n{picture}"
        f"*{study.source}.* {study.claim}\n\n"
        f"| published | ours | verdict |\n|---|---|---|\n{claims}\n\n"
        f"{how}: `{command_of(study, result.scale)}`\n"
    )
