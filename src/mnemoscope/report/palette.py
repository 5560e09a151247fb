"""What a network looks like: one colour, dash and marker in every chart, on light and on dark ground.

No two colours of ten stay apart for every eye, so that each network also has its own dash and its own marker.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mnemoscope.report.page import Entry

__all__ = ["DASHES", "MARKERS", "Look", "contrast", "looks"]

_SUBJECTS = (
    ("#c8380a", "#ff8a5c"),
    ("#1657c4", "#7fb2ff"),
    ("#7a2bb8", "#cf9bff"),
    ("#0b7a4b", "#4fd39a"),
    ("#b3126f", "#ff86c3"),
    ("#7a5b00", "#e6c34a"),
)
_REFERENCES = (
    ("#2f6db0", "#6fa8dc"),
    ("#247a6f", "#5cc4b6"),
    ("#8a5a9e", "#c39bd3"),
    ("#7f6c14", "#cdb74e"),
    ("#a94f83", "#e08fbb"),
    ("#3d7d3a", "#86c77f"),
    ("#5b5fb5", "#a3a6ee"),
    ("#9a6240", "#d39b76"),
    ("#63707c", "#9fabb8"),
    ("#8c2f4a", "#e58aa2"),
    ("#5c7410", "#a9c84c"),
    ("#33373f", "#d5dae2"),
)
"""On light and on dark ground: each at least 4.5 : 1 against it, since labels wear them. Quieter than the subjects'."""

DASHES = ("", "7 3", "2 3", "9 3 2 3", "4 2", "12 4", "5 5", "6 2 1 2 1 2", "10 2 4 2", "3 6")
"""Of references, as SVG writes them; a subject's line has none."""

MARKERS = ("circle", "square", "triangle", "diamond", "cross", "wedge", "ring", "plus", "box", "kite")


@dataclass(frozen=True)
class Look:
    """How one network is drawn."""

    light: str
    dark: str
    dash: str
    marker: str


def looks(entries: Sequence[Entry]) -> list[Look]:
    """Return the look of every network, in the order given: subjects strong and without dashes."""
    counts = {"subject": 0, "reference": 0}
    found = []
    for entry in entries:
        number = counts[entry.role]
        counts[entry.role] += 1
        found.append(_subject(number) if entry.role == "subject" else _reference(number))
    return found


def _subject(number: int) -> Look:
    light, dark = _SUBJECTS[number % len(_SUBJECTS)]
    return Look(light, dark, "", MARKERS[number % len(MARKERS)])


def _reference(number: int) -> Look:
    light, dark = _REFERENCES[number % len(_REFERENCES)]
    turn = number // len(_REFERENCES)  # the eleventh has the first colour again, with another dash and marker
    dashes = DASHES[1:]
    return Look(light, dark, dashes[(number + turn) % len(dashes)], MARKERS[(number + 1 + turn) % len(MARKERS)])


def contrast(one: str, other: str) -> float:
    """Return the contrast of two colours, (L1 + 0.05) / (L2 + 0.05) with the relative luminances L1 >= L2 of WCAG.

    Examples
    --------
    >>> round(contrast("#000000", "#ffffff"), 3)
    21.0
    """
    high, low = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def _luminance(colour: str) -> float:
    channels = (int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5))
    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
