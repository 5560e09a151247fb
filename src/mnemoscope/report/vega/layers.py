"""Layers of a Vega-Lite picture: lines, texts and markers in the page's look on light ground.

Sizes are in points for a picture as wide as a column of a paper; `Sheet.unit` enlarges all of them alike for a screen.
"""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mnemoscope.core.numbers import RAISED
from mnemoscope.report.axes import Scale
from mnemoscope.report.page import Entry
from mnemoscope.report.palette import LIGHT, Look, looks

__all__ = [
    "COLUMN",
    "COLUMN_NAMES",
    "FAINT",
    "INK",
    "SOFT",
    "Layer",
    "Named",
    "Picture",
    "Sheet",
    "merged",
    "named",
    "printable",
    "table",
]

COLUMN = 3.35
"""Inches: the width of a column in most papers of two columns."""

COLUMN_NAMES = 80.0
"""Points that names of curves may take in a column."""

INK, SOFT, FAINT = LIGHT["ink"], "#4c515b", "#e4e4e4"
_RULE = "#888888"
_SHAPES = {
    "circle": "circle",
    "square": "square",
    "triangle": "triangle-up",
    "diamond": "diamond",
    "cross": "M-0.7-0.7L0.7 0.7M-0.7 0.7L0.7-0.7",
    "wedge": "triangle-down",
    "ring": "circle",
    "plus": "M-0.9 0H0.9M0-0.9V0.9",
    "box": "square",
    "kite": "diamond",
}
_PLAIN = {mark: plain.replace("-", "\u2212") for plain, mark in RAISED.items()}
_WIDE = {222: "ijl'", 278: " ftI.,:;/!|[]", 333: "r()-", 500: "cksvxyzJ", 584: "+=<>~\u2212", 611: "FTZ",
         667: "ABEKPSVXY", 722: "wCDHNRU", 778: "GOQ", 833: "mM", 889: "%", 944: "W", 1000: "…"}  # fmt: skip
_WIDTHS = {letter: share / 1000 for share, letters in _WIDE.items() for letter in letters}
_WIDTHS |= dict.fromkeys(_PLAIN, 0.4)
_OPEN = {"cross", "ring", "plus", "box", "kite"}

Layer = dict[str, Any]
"""One layer of Vega-Lite's JSON."""


@dataclass(frozen=True)
class Picture:
    """A chart in layers, with the size of its plot and the room around it, in pixels."""

    layers: list[Layer]
    width: float
    height: float
    left: float = 0.0
    right: float = 0.0
    top: float = 0.0
    bottom: float = 0.0


@dataclass(frozen=True)
class Named:
    """Name, look and role of a network in a picture."""

    name: str
    look: Look
    subject: bool


def named(entries: Sequence[Entry]) -> dict[str, Named]:
    """Return name and look of every network, by its key."""
    styles = looks(entries)
    return {
        entry.key: Named(printable(entry.label), look, entry.role == "subject")
        for entry, look in zip(entries, styles, strict=True)
    }


def table(rows: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Return rows as the data of a chart: as one text, since Altair would check every number of a list."""
    return {"values": json.dumps(list(rows)), "format": {"type": "json"}}


def printable(text: str) -> str:
    """Return a text without what XML forbids."""
    return "".join(letter for letter in text if unicodedata.category(letter) not in ("Cc", "Cs", "Cn"))


@dataclass(frozen=True)
class Sheet:
    """Sizes of one picture: pixels to a point, and the points that names of curves may take beside a plot.

    Names longer than `COLUMN_NAMES` widen a picture, which a column of a paper does not allow.
    """

    unit: float = 1.0
    names: float = COLUMN_NAMES

    @property
    def width(self) -> float:
        """Width of a column, in pixels."""
        return COLUMN * 72 * self.unit

    def wide(self, text: str, size: float = 7.0, *, bold: bool = False) -> float:
        """Return about how many pixels a text takes in Helvetica, without asking a font."""
        share = sum(_WIDTHS.get(letter, 0.556) for letter in text)
        return self.unit * size * share * (1.08 if bold else 1.0)

    def short(self, text: str, room: float, size: float = 7.0, *, bold: bool = False) -> str:
        """Return a text, cut with an ellipsis where it is wider than there is room."""
        if self.wide(text, size, bold=bold) <= room:
            return text
        kept = text
        while len(kept) > 1 and self.wide(kept + "…", size, bold=bold) > room:
            kept = kept[:-1]
        return kept + "…"

    def text(
        self,
        x: float,
        y: float,
        text: str,
        *,
        size: float = 7.0,
        align: str = "left",
        colour: str = INK,
        bold: bool = False,
        angle: float = 0.0,
    ) -> list[Layer]:
        """Write a text at a place, with a white rim that keeps lines off it; `angle` in degrees, clockwise.

        Raised digits are ordinary ones set higher, since many fonts lack the others.
        """
        runs = _runs(printable(text))
        share = {"left": 0.0, "center": 0.5, "right": 1.0}[align]
        at = x - share * self.wide(text, size) if len(runs) > 1 else x
        found: list[Layer] = []
        for up, part in runs:
            mark = {
                "type": "text",
                "text": part,
                "align": "left" if len(runs) > 1 else align,
                "baseline": "alphabetic",
                "fontSize": size * self.unit * (0.7 if up else 1.0),
                "fontWeight": 700 if bold else 400,
                **({"angle": angle % 360} if angle else {}),  # Vega-Lite knows angles from 0 to 360 alone
            }
            place = {"x": {"value": at}, "y": {"value": y - (0.36 * size * self.unit if up else 0.0)}}
            rim = {"stroke": "#ffffff", "strokeWidth": 1.6 * self.unit, "strokeJoin": "round", "fill": "#ffffff"}
            styles = (rim, {"fill": colour})
            found += [{"data": {"values": [{}]}, "mark": {**mark, **style}, "encoding": place} for style in styles]
            at += self.wide(part, size) * (0.7 if up else 1.0)
        return found

    def rule(self, ends: tuple[float, float, float, float], **style: Any) -> Layer:
        """Draw a straight line from (x1, y1) to (x2, y2), in pixels."""
        names = ("x", "y", "x2", "y2")
        place = {name: {"value": value} for name, value in zip(names, ends, strict=True)}
        return {"data": {"values": [{}]}, "mark": {"type": "rule", **self.stroke(**style)}, "encoding": place}

    def stroke(self, *, colour: str = SOFT, width: float = 0.7, dash: str = "", **more: Any) -> dict[str, Any]:
        """Return the style of a line; its dashes as SVG writes them."""
        dashes = {"strokeDash": [float(part) * self.unit for part in dash.split()]} if dash else {}
        return {"stroke": colour, "strokeWidth": width * self.unit, **dashes, **more}

    def marker(self, look: Look, size: float = 0.5) -> dict[str, Any]:
        """Return the style of a network's marker, `size` 1 being eight points wide."""
        area = (8 * size * self.unit) ** 2
        hollow = {"filled": False, "stroke": look.light, "strokeWidth": 2.2 * size * self.unit, "fill": "transparent"}
        style = hollow if look.marker in _OPEN else {"filled": True, "fill": look.light}
        return {"type": "point", "shape": _SHAPES[look.marker], "size": area, "opacity": 1, **style}

    def marker_at(self, look: Look, x: float, y: float, size: float = 0.5) -> Layer:
        """Draw a network's marker at a place, in pixels."""
        place = {"x": {"value": x}, "y": {"value": y}}
        return {"data": {"values": [{}]}, "mark": self.marker(look, size), "encoding": place}

    def vertical(
        self, y: Scale, width: float, left: float, title: str, *, whole: bool = False, lift: float = 0.0
    ) -> list[Layer]:
        """Draw a vertical axis: lines across the plot, their numbers left of it, the title above from the left edge.

        `lift` is the room between the plot and the title that other lines take.
        """
        found: list[Layer] = self.text(-left, -11 * self.unit - lift, self.short(title, self.width, 7.5), size=7.5)
        for value, text in y.ticks(5, whole=whole):
            found.append(self.rule((0, y.at(value), width, y.at(value)), colour=FAINT, width=0.5))
            found += self.text(-4 * self.unit, y.at(value) + 2.4 * self.unit, text, align="right", colour=SOFT)
        return found

    def horizontal(self, x: Scale, bottom: float, title: str, *, whole: bool) -> list[Layer]:
        """Draw a horizontal axis: its line and ticks, the numbers below them, the title below at the right."""
        unit = self.unit
        found = [self.rule((x.start, bottom, x.end, bottom), colour=_RULE, width=0.6)]
        for value, text in x.ticks(5, whole=whole):
            at = x.at(value)
            found.append(self.rule((at, bottom, at, bottom + 2.5 * unit), colour=_RULE, width=0.6))
            found += self.text(at, bottom + 10 * unit, text, align="center", colour=SOFT)
        words = self.short(title, self.width, 7.5)
        return found + self.text(x.end, bottom + 21 * unit, words, size=7.5, align="right")

    def scale(self, scale: Scale) -> dict[str, Any]:
        """Return a scale with its two ends."""
        return {
            "type": "log" if scale.log else "linear",
            "domain": [scale.low, scale.high],
            "nice": False,
            "zero": False,
        }


def _runs(text: str) -> list[tuple[bool, str]]:
    """Return the pieces of a text that are raised, and those that are not."""
    pieces: list[tuple[bool, str]] = []
    for letter in text:
        up, shown = letter in _PLAIN, _PLAIN.get(letter, letter)
        if pieces and pieces[-1][0] == up:
            pieces[-1] = (up, pieces[-1][1] + shown)
        else:
            pieces.append((up, shown))
    return pieces


def merged(layers: Sequence[Layer]) -> list[Layer]:
    """Return layers with the axes' lines of one style as one layer below all, and texts of one style as one above.

    Altair takes its time for every layer, and a picture has a line and a text for every tick.
    """
    groups: dict[str, dict[str, tuple[Layer, list[Layer]]]] = {"rule": {}, "text": {}}
    others: list[Layer] = []
    for layer in layers:
        mark = layer["mark"]
        kind = mark["type"] if isinstance(mark, dict) and "value" in layer["encoding"].get("x", {}) else ""
        if kind not in groups or (kind == "rule" and mark["stroke"] not in (FAINT, _RULE)):
            others.append(layer)
            continue
        style = {name: value for name, value in mark.items() if name not in ("text", "fill")}
        place = {name: found["value"] for name, found in layer["encoding"].items()}
        # A text without a rim has no stroke, and is written after the rims: their keys begin with "False".
        rows = groups[kind].setdefault(f"{'stroke' not in style} {sorted(map(str, style.items()))}", (style, []))[1]
        rows.append({**place, "text": mark.get("text", ""), "colour": mark.get("fill", "")})
    rules, texts = ([_together(*group[key]) for key in sorted(group)] for group in groups.values())
    return [*rules, *others, *texts]


def _together(style: Layer, rows: list[Layer]) -> Layer:
    raw = {"type": "quantitative", "scale": None, "axis": None}
    encoding: Layer = {"x": {"field": "x", **raw}, "y": {"field": "y", **raw}}
    if style["type"] == "rule":
        encoding |= {"x2": {"field": "x2"}, "y2": {"field": "y2"}}
    else:
        encoding["text"] = {"field": "text", "type": "nominal"}
        encoding["color"] = {"field": "colour", "type": "nominal", "scale": None, "legend": None}
    return {"data": table(rows), "mark": style, "encoding": encoding}
