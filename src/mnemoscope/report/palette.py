"""Looks of networks and colours of the page: one colour, dash and marker in every chart, on light and dark ground.

No two colours of ten stay apart for every eye, so that each network also has its own dash and its own marker.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mnemoscope.report.page import Entry

__all__ = ["DARK", "DASHES", "DIVERGING", "LIGHT", "MARKERS", "SEQUENTIAL", "Look", "colours", "contrast", "looks"]

LIGHT = {
    "ground": "#fcfbf9",
    "raised": "#f1efea",
    "tip": "#ffffff",
    "ink": "#16181d",
    "soft": "#565b66",
    "faint": "#a9adb5",
    "line": "#e2dfd8",
    "grid": "#eae7e1",
    "rule": "#a5a8ae",
    "tint": "#f9e9e1",
    "good": "#0b6b43",
    "bad": "#a3241b",
    "focus": "#1657c4",
}
DARK = {
    "ground": "#111318",
    "raised": "#1e2128",
    "tip": "#1b1e25",
    "ink": "#f1f2f4",
    "soft": "#a8aebb",
    "faint": "#5f6572",
    "line": "#2b2f38",
    "grid": "#23272f",
    "rule": "#666c78",
    "tint": "#31221c",
    "good": "#5fd3a0",
    "bad": "#ff938a",
    "focus": "#7fb2ff",
}

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

SEQUENTIAL = ("#440154", "#472f7d", "#39568c", "#287d8e", "#1f998a", "#3dbc74", "#94d840", "#fde725")
"""Of a matrix, from low to high: viridis."""

DIVERGING = ("#134b73", "#4d87b3", "#a6c4dc", "#f4f4f4", "#f2be91", "#d9822b", "#8a4a0a")
"""Of a matrix of both signs, around zero."""

MARKERS = ("circle", "square", "triangle", "diamond", "cross", "wedge", "ring", "plus", "box", "kite")


@dataclass(frozen=True)
class Look:
    """Look of one network: colours, dash and marker."""

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


def colours(looks: Sequence[Look]) -> str:
    """Return the rules that name every colour: by the system's theme, the reader's choice, light on paper."""
    light = _rule(LIGHT | {"accent": _accent(looks).light} | {f"c{i}": look.light for i, look in enumerate(looks)})
    dark = _rule(DARK | {"accent": _accent(looks).dark} | {f"c{i}": look.dark for i, look in enumerate(looks)})
    networks = "".join(f".c{i}{{--c:var(--c{i})}}" for i in range(len(looks)))
    return (
        f":root,[data-theme=light]{{color-scheme:light;{light}}}"
        f"@media(prefers-color-scheme:dark){{:root:not([data-theme=light]){{color-scheme:dark;{dark}}}}}"
        f":root[data-theme=dark]{{color-scheme:dark;{dark}}}"
        f"@media print{{:root:root:root{{color-scheme:light;{light}--ground:#ffffff;}}}}"
        f"{networks}.pulse{{stroke:var(--accent)}}"
    )


def _accent(looks: Sequence[Look]) -> Look:
    return next(iter(looks), Look(LIGHT["ink"], DARK["ink"], "", ""))


def _rule(values: dict[str, str]) -> str:
    return "".join(f"--{name}:{value};" for name, value in values.items())
