"""Summary of a profile in about twenty lines: what was read, the verdict, and the scorecard or the comparison."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from mnemoscope.profiles.comparison import Comparison
from mnemoscope.report import Page, Score

__all__ = ["LEAST", "Text", "plain", "summary"]

LEAST = 60
"""Columns that a scorecard needs."""

_WIDEST = 110
"""Columns beyond which nothing becomes clearer."""

_SIGNS = {"line": "\u2500", "dot": "\u00b7", "own": "\u25cf", "spread": "\u2501", "arrow": "\u25b8"}
_PLAIN = {"line": "-", "dot": ".", "own": "O", "spread": "=", "arrow": ">"}
_LETTERS = str.maketrans(
    {
        "\u2212": "-",
        "\u00d7": "x",
        "\u2013": "-",
        "\u2265": ">=",
        "\u00b5": "u",
        "\u00b1": "+-",
        "\u00b7": ".",
        "\u221e": "inf",
    }
    | dict(zip("⁰¹²³⁴⁵⁶⁷⁸⁹", "0123456789", strict=True))
    | {"⁻": "-"}
)


class Text(NamedTuple):
    """A piece of a line, and what it is: ``"strong"``, ``"weak"``, ``"title"``, ``"dim"`` or nothing."""

    text: str
    tone: str = ""


def plain(text: str) -> str:
    """Return text in letters that every terminal has.

    Examples
    --------
    >>> plain("3.2×10⁻⁷, − 4 ≥ 3")
    '3.2x10-7, - 4 >= 3'
    """
    return text.translate(_LETTERS).encode("ascii", "replace").decode()


def summary(page: Page, comparison: Comparison | None, width: int, *, simple: bool = False) -> Iterator[list[Text]]:
    """Give the summary line by line, each in pieces.

    Parameters
    ----------
    page
        Of the profile.
    comparison
        Of several networks; None: the page has one, and its scorecard is shown.
    width
        Columns; at least `LEAST` are used.
    simple
        Without letters that a plain terminal lacks.
    """
    room = min(max(width, LEAST), _WIDEST)
    yield from _wrapped(page.title, room, "title")
    yield from _wrapped(page.subtitle, room, "dim")
    yield from _wrapped(page.read_as, room, "dim")
    yield from _wrapped(page.sentence, room, "")
    yield []
    if comparison is not None:
        yield from _compared(comparison, room)
    elif page.scores:
        yield from _scored(page.scores, room, _PLAIN if simple else _SIGNS)
    else:
        for section in page.sections:
            if (one := section.headline) is not None:
                number = " ".join(part for part in (one.value, one.unit) if part)
                yield from _wrapped(f"{section.title}: {number}, {one.meaning}", room, "")
    for said in page.advice[:2] if comparison is None else comparison.disagreements[:1]:
        yield from _wrapped(said, room, "dim")
    yield from _missing(page, room)


def _missing(page: Page, room: int) -> Iterator[list[Text]]:
    """Give what was not measured, with the reasons, those of one reason together."""
    reasons: dict[str, list[str]] = {}
    for what, reason in page.absent:
        if not what.endswith("note") and not reason.startswith("not asked for"):
            reasons.setdefault(reason, []).append(what)
    for reason, parts in reasons.items():
        yield from _wrapped(f"not measured: {', '.join(parts)} ({reason})", room, "dim")


def _wrapped(text: str, room: int, tone: str) -> Iterator[list[Text]]:
    for line in textwrap.wrap(text, room, break_long_words=True):
        yield [Text(line, tone)]


def _scored(scores: Sequence[Score], room: int, signs: dict[str, str]) -> Iterator[list[Text]]:
    if not scores:
        return
    names = max(len(one.name) for one in scores)
    values = min(max(len(one.text) for one in scores), room - names - 10 - 16)
    track = max(12, min(40, room - names - values - 10 - 6))
    yield [Text(f"{'':<{names}}  {'worst':<{track - 4}}best", "dim")]
    for one in scores:
        word = one.word or "not judged"
        value = one.text if len(one.text) <= values else f"{one.value} {one.unit}"[:values].rstrip()
        yield [
            Text(f"{one.name:<{names}}  "),
            Text(_track(one, track, signs), "track"),
            Text(f"  {word:<10}", one.word or "dim"),
            Text(f"  {value}"),
        ]


def _track(one: Score, track: int, signs: dict[str, str]) -> str:
    """Return the line of a score: references as dots, the subject as a disc, its interval as a thick line."""
    if not one.dots:
        return " " * track
    cells = [signs["line"]] * track

    def at(place: float) -> int:
        return min(track - 1, max(0, round(place * (track - 1))))

    if one.lower is not None and one.upper is not None:
        for cell in range(at(one.lower), at(one.upper) + 1):
            cells[cell] = signs["spread"]
    for dot in one.dots:
        cells[at(dot.place)] = signs["dot"]
    cells[at(one.place)] = signs["own"]
    if one.open_ended and at(one.place) + 1 < track:
        cells[at(one.place) + 1] = signs["arrow"]
    return "".join(cells)


def _compared(found: Comparison, room: int) -> Iterator[list[Text]]:
    """Give the table: with intervals where there is room, else without; in blocks where even that is too wide."""
    count = len(found.rows)
    titles = max([len("parameters"), *(len(line.title) for line in found.lines)], default=10)
    for short in (False, True):
        cells = [
            [("*" if place in line.best else "") + line.cell(place, short=short) for place in range(count)]
            for line in found.lines
        ]
        own = [f"{row.network.parameters:,}" for row in found.rows]
        widths = [
            max(len(row.label), len(own[j]), *(len(line[j]) for line in cells)) for j, row in enumerate(found.rows)
        ]
        if titles + sum(width + 2 for width in widths) <= room:
            break
    blocks, begin = [], 0
    while begin < count:
        end = begin + 1
        while end < count and titles + sum(width + 2 for width in widths[begin : end + 1]) <= room:
            end += 1
        blocks.append(range(begin, end))
        begin = end
    for block in blocks:
        yield [Text(" " * titles), *(Text(f"  {found.rows[j].label:>{widths[j]}}", "title") for j in block)]
        yield [Text(f"{'parameters':<{titles}}"), *(Text(f"  {own[j]:>{widths[j]}}", "dim") for j in block)]
        for i, line in enumerate(found.lines):
            yield [
                Text(f"{line.title:<{titles}}"),
                *(Text(f"  {cells[i][j]:>{widths[j]}}", "best" if j in line.best else "") for j in block),
            ]
    first = found.rows[0].label
    yield from _wrapped(f"* best; + and \u2212: clearly better and worse than {first}", room, "dim")
    yield from _wrapped(found.training, room, "dim")
