"""Gallery: result files of studies, and the pages, pictures and overview that are drawn from them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from mnemoscope.core.environment import environment_facts
from mnemoscope.core.errors import UserError
from mnemoscope.core.files import make_folder, write_atomic
from mnemoscope.core.result import plain
from mnemoscope.report import Entry, write
from mnemoscope.report.vega import paper
from mnemoscope.studies.machinery.page import command_of, duration, study_page
from mnemoscope.studies.machinery.rules import VERDICTS
from mnemoscope.studies.machinery.study import Finding, Outcome, Study

__all__ = ["SCHEMA", "Result", "draw_gallery", "facts_of", "read_result", "save_result"]

SCHEMA = "mnemoscope.study/1"
"""Version of a result file."""


@dataclass(frozen=True)
class Result:
    """A study as it was run: scale and its settings, facts of the run, its seconds by clock and processor, rows."""

    study: str
    scale: str
    settings: Mapping[str, Any]
    facts: Mapping[str, str]
    seconds: float
    processor_seconds: float | None
    rows: Sequence[Mapping[str, Any]]


@dataclass(frozen=True)
class _Card:
    """What the overview says of a study."""

    study: Study
    finding: Finding
    result: Result
    pictured: bool


def facts_of(outcomes: Sequence[Outcome]) -> dict[str, str]:
    """Return what a page says of its runs: how many, how long, on what, when."""
    told = {"runs": f"{len(outcomes)} in {_took(*_seconds(outcomes))}"}
    return told | {name: str(value) for name, value in environment_facts().items()}


def _took(seconds: float, processor: float | None) -> str:
    """Say what runs took by the processor, which is what the clock shows on an idle machine, and by the clock."""
    if processor is None:
        return f"{duration(seconds)} by the clock"
    busy = ", beside other work" if seconds > 1.5 * processor else ""
    return f"{duration(processor)} of processor time ({duration(seconds)} by the clock{busy})"


def _seconds(outcomes: Sequence[Outcome]) -> tuple[float, float | None]:
    """Return the seconds of runs by the clock, and by the processor where every run knows them."""
    known = [outcome.processor_seconds for outcome in outcomes if outcome.processor_seconds is not None]
    return sum(outcome.seconds for outcome in outcomes), sum(known) if len(known) == len(outcomes) else None


def save_result(study: Study, finding: Finding, scale: str, outcomes: Sequence[Outcome], folder: Path) -> Path:
    """Write the result file of a study into a folder; everything that its page shows is drawn from it."""
    make_folder(folder)
    document: dict[str, Any] = {"schema": SCHEMA, "study": study.name, "scale": scale}
    document |= {"settings": _settings(study, scale), "facts": facts_of(outcomes)}
    elapsed, processor = _seconds(outcomes)
    document |= {"seconds": round(elapsed, 1), "processor_seconds": None if processor is None else round(processor, 1)}
    head = ",\n ".join(f'"{name}": {json.dumps(value, ensure_ascii=False)}' for name, value in document.items())
    rows = ",\n  ".join(json.dumps(plain(dict(row)), ensure_ascii=False, allow_nan=False) for row in finding.rows)
    return write_atomic(folder / f"{study.name}.json", f'{{\n {head},\n "rows": [\n  {rows}\n ]\n}}\n'.encode())


def read_result(path: Path) -> Result:
    """Read a result file, or raise one line that says what is wrong with it."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UserError(f"{str(path)!r} is not a result of a study: {error}") from error
    if not isinstance(document, dict) or document.get("schema") != SCHEMA:
        raise UserError(f"{str(path)!r} is not a result of a study: its schema must be {SCHEMA!r}")
    names = ("study", "scale", "settings", "facts", "seconds", "processor_seconds", "rows")
    if absent := [name for name in names if name not in document]:
        again = f"mnemoscope study run {path.stem} --save {path.parent}"
        raise UserError(f"{str(path)!r} lacks {', '.join(absent)}: `{again}` writes it anew")
    return Result(*(document[name] for name in names))


def draw_gallery(folder: Path, study_of: Callable[[str], Study]) -> list[Path]:
    """Draw everything from the result files of a folder: a picture and a page for each study, and README.md."""
    results = [read_result(path) for path in sorted(folder.glob("*.json"))]
    written: list[Path] = []
    cards: list[_Card] = []
    for result in results:
        study = _as_run(study_of(result.study), result)
        finding = study.judge(result.rows, result.scale)
        page = study_page(study, finding, result.scale, result.facts)
        written.append(write(page, folder / f"{study.name}.html"))
        picture = _picture(study, finding, page.entries)
        if picture is not None:
            written.append(write_atomic(folder / f"{study.name}.svg", picture.encode()))
        cards.append(_Card(study, finding, result, picture is not None))
    text = _head(cards) + "\n".join(_words(card) for card in cards)
    return [*written, write_atomic(folder / "README.md", text.encode())]


def _settings(study: Study, scale: str) -> dict[str, Any]:
    """Return the settings of a scale as a result file holds them."""
    return {name: plain(value) for name, value in study.settings(scale).items()}


def _as_run(study: Study, result: Result) -> Study:
    """Return the study as it was run: where its declaration has other settings by now, with those and a word on it."""
    now = _settings(study, result.scale)
    others = [name for name in {**now, **result.settings} if now.get(name) != result.settings.get(name)]
    if not others:
        return study
    word = f"Other settings are declared by now ({', '.join(others)}): this result is of an earlier declaration."
    scales = {**study.scales, result.scale: result.settings}
    return replace(study, scales=scales, caveats=(word, *study.caveats))


def _head(cards: Sequence[_Card]) -> str:
    """Return what stands above the cards: what this is, what all of it took, and the verdicts by document."""
    results = [card.result for card in cards]
    elapsed = duration(sum(result.seconds for result in results))
    known = [(one.seconds, one.processor_seconds) for one in results if one.processor_seconds is not None]
    clock, processor = (duration(sum(times)) for times in zip(*known, strict=True)) if known else ("0 s", "0 s")
    return (
        f"# Gallery\n\nPublished results, run again: {len(cards)} studies, each with the claim, what was measured and "
        "a verdict whose rule was fixed before the runs. All of it is drawn from the result files in this folder by "
        "`mnemoscope study gallery docs/gallery`, which also writes a page for each study, with every figure, table "
        "and rule, for any browser, without a network.\n\n"
        f"Times are those of the runs, by the clock, on two cores that did other work too: {elapsed} in all, runs that "
        f"several studies share counted in each. Studies that recorded processor time as well ({len(known)} of "
        f"{len(cards)}) took {clock} by the clock and {processor} of it, on one core. Claims by document; those that "
        f"begin with 'Ours' are counted too:\n\n{_overview(cards)}\n"
    )


def _overview(cards: Sequence[_Card]) -> str:
    """Return the verdicts of all claims as a table, a row for each document, with links to its studies."""
    documents: dict[str, list[_Card]] = {}
    for card in cards:
        documents.setdefault(card.study.source.split(",")[0], []).append(card)
    lines = [f"| document | {' | '.join(VERDICTS)} | studies |", f"|---|{'---|' * len(VERDICTS)}---|"]
    for name, own in documents.items():
        counts = Counter(part.verdict for card in own for part in card.finding.parts)
        links = ", ".join(f"[{card.study.name}](#{_anchor(card.study)})" for card in own)
        lines.append(f"| {name} | {' | '.join(str(counts[verdict]) for verdict in VERDICTS)} | {links} |")
    return "\n".join(lines) + "\n"


def _anchor(study: Study) -> str:
    """Return the anchor that a study's heading has on GitHub: letters, digits and hyphens, a hyphen for each space."""
    kept = (letter for letter in f"{study.name}: {study.title}".lower() if letter.isalnum() or letter in " -")
    return "".join(kept).replace(" ", "-")


def _picture(study: Study, finding: Finding, entries: Sequence[Entry]) -> str | None:
    from mnemoscope.studies.machinery.displays import FigureOf

    first = next((display for display in study.displays if isinstance(display, FigureOf)), None)
    return None if first is None else paper(first.figure(finding.rows, "", ()), entries)[0]


def _words(card: _Card) -> str:
    """Return a card as Markdown."""
    study, result = card.study, card.result
    picture = f'<img src="{study.name}.svg" alt="{study.title}" width="420">\n\n' if card.pictured else ""
    rows = [(part.claim, part.measured, part.verdict) for part in card.finding.parts]
    claims = "\n".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |" for row in rows)
    caveats = "".join(f"- {caveat}\n" for caveat in study.caveats)
    facts = result.facts
    cut = study.shortened(result.scale)
    how = f"{result.scale} scale, runs: {facts['runs']}, {facts['date']}, mnemoscope {facts['mnemoscope']}, "
    how += facts["machine"] + (f"; cut: {cut}" if cut else "")
    return (
        f"## {study.name}: {study.title}\n\n{picture}"
        f"*{study.source}.* {study.claim}\n\n"
        f"| published | ours | verdict |\n|---|---|---|\n{claims}\n\n"
        f"{caveats}{chr(10) if caveats else ''}"
        f"{how}: `{command_of(study, result.scale)}`\n"
    )
