"""A picture in SVG, in points, for print: lines, texts and markers in the page's look on light ground."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from xml.etree import ElementTree

from mnemoscope.core.numbers import RAISED
from mnemoscope.report.palette import Look

__all__ = ["COLUMN", "FAINT", "INK", "SOFT", "Canvas", "shortened", "width_of"]

COLUMN = 3.35
"""Inches: the width of a column in most papers of two columns."""

INK, SOFT, FAINT = "#16181d", "#4c515b", "#e4e4e4"
_FONT = "Helvetica, Arial, 'Liberation Sans', sans-serif"
_SHAPES = {
    "circle": "M-4 0a4 4 0 1 0 8 0a4 4 0 1 0-8 0Z",
    "square": "M-3.6-3.6h7.2v7.2h-7.2Z",
    "triangle": "M0-4.8L4.6 3.4H-4.6Z",
    "diamond": "M0-5L5 0L0 5L-5 0Z",
    "cross": "M-3.5-3.5L3.5 3.5M-3.5 3.5L3.5-3.5",
    "wedge": "M0 4.8L4.6-3.4H-4.6Z",
    "ring": "M-3.8 0a3.8 3.8 0 1 0 7.6 0a3.8 3.8 0 1 0-7.6 0Z",
    "plus": "M-4.4 0H4.4M0-4.4V4.4",
    "box": "M-3.4-3.4h6.8v6.8h-6.8Z",
    "kite": "M0-5L4.4 0L0 5L-4.4 0Z",
}
_OPEN = {"cross", "ring", "plus", "box", "kite"}
_LOWERED = {mark: plain.replace("-", "\u2212") for plain, mark in RAISED.items()}


class Canvas:
    """What is drawn on; as wide as a column, as high as is said at the end."""

    width = COLUMN * 72

    def __init__(self) -> None:
        self._root = ElementTree.Element("svg", {"xmlns": "http://www.w3.org/2000/svg", "font-family": _FONT})
        self._ground = ElementTree.SubElement(self._root, "rect", {"fill": "#ffffff"})

    def path(self, data: str, **style: object) -> None:
        """Draw a path; style as SVG's attributes, with underscores for hyphens."""
        self._add("path", d=data, **{"fill": "none", **style})

    def line(self, x1: float, y1: float, x2: float, y2: float, **style: object) -> None:
        """Draw a straight line."""
        self._add("path", d=f"M{x1:.2f} {y1:.2f}L{x2:.2f} {y2:.2f}", **{"fill": "none", **style})

    def circle(self, x: float, y: float, radius: float, **style: object) -> None:
        """Draw a circle."""
        self._add("circle", cx=f"{x:.2f}", cy=f"{y:.2f}", r=f"{radius:.2f}", **style)

    def marker(self, look: Look, x: float, y: float, size: float = 0.5) -> None:
        """Draw a network's marker."""
        hollow = look.marker in _OPEN
        style = {"fill": "none", "stroke": look.light, "stroke_width": 2.2} if hollow else {"fill": look.light}
        self._add("path", d=_SHAPES[look.marker], transform=f"translate({x:.2f} {y:.2f}) scale({size})", **style)

    def text(
        self,
        x: float,
        y: float,
        text: str,
        *,
        size: float = 7.0,
        anchor: str = "start",
        fill: str = INK,
        bold: bool = False,
    ) -> None:
        """Write a text, with a white rim that keeps lines off it.

        Raised digits are ordinary ones set higher, since many fonts lack the others.
        """
        rim = {"stroke": "#ffffff", "stroke_width": 1.6, "stroke_linejoin": "round", "paint_order": "stroke"}
        style = {"font_size": size, "text_anchor": anchor, "fill": fill, "font_weight": "700" if bold else "400"}
        node = self._add("text", x=f"{x:.2f}", y=f"{y:.2f}", **style, **rim)
        for up, part in _runs(_printable(text)):
            span = ElementTree.SubElement(node, "tspan")
            span.text = part
            if up:
                span.set("font-size", f"{0.7 * size:.2f}")
                span.set("dy", f"{-0.36 * size:.2f}")

    def svg(self, height: float, *, inches: bool = True) -> str:
        """Return the picture, its size in inches or in points."""
        root = self._root
        root.set("viewBox", f"0 0 {self.width:.2f} {height:.2f}")
        for name, size in (("width", self.width), ("height", height)):
            root.set(name, f"{size / 72:.4g}in" if inches else f"{size:.2f}")
            self._ground.set(name, f"{size:.2f}")
        return ElementTree.tostring(root, encoding="unicode") + "\n"

    def _add(self, name: str, **attributes: object) -> ElementTree.Element:
        named = {key.replace("_", "-"): str(value) for key, value in attributes.items() if value != ""}
        return ElementTree.SubElement(self._root, name, named)


def width_of(text: str, size: float = 7.0) -> float:
    """Return about how wide a text is in Helvetica, without asking a font."""
    narrow, broad = set("iljtf.,:;|' "), set("mwMW")
    return size * sum(0.3 if letter in narrow else 0.86 if letter in broad else 0.57 for letter in text)


def shortened(text: str, room: float, size: float = 7.0) -> str:
    """Return a text, cut with an ellipsis where it is wider than there is room."""
    if width_of(text, size) <= room:
        return text
    kept = text
    while len(kept) > 1 and width_of(kept + "…", size) > room:
        kept = kept[:-1]
    return kept + "…"


def _printable(text: str) -> str:
    """Return a text without what XML forbids."""
    return "".join(letter for letter in text if unicodedata.category(letter) not in ("Cc", "Cs", "Cn"))


def _runs(text: str) -> Iterable[tuple[bool, str]]:
    """Return the pieces of a text that are raised, and those that are not."""
    pieces: list[tuple[bool, str]] = []
    for letter in text:
        up = letter in _LOWERED
        shown = _LOWERED.get(letter, letter)
        if pieces and pieces[-1][0] == up:
            pieces[-1] = (up, pieces[-1][1] + shown)
        else:
            pieces.append((up, shown))
    return pieces
