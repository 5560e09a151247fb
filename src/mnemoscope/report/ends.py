"""The name of a line at its end, in a chart for a paper: beside the plot, or where the line leaves it."""

from __future__ import annotations

import math
from dataclasses import dataclass

from mnemoscope.report.axes import Scale
from mnemoscope.report.canvas import Canvas, shortened, width_of

__all__ = ["End", "name_ends"]

_GAP = 8.5  # points from one name to the next
_NEAR = 12.0  # a line that ends so near the right edge is named beside the plot


@dataclass(frozen=True)
class End:
    """Where a line ends, and what is written there."""

    x: float
    y: float
    name: str
    colour: str
    bold: bool


def name_ends(canvas: Canvas, ends: list[End], x: Scale, y: Scale) -> None:
    """Write the names, moved apart where they would lie on each other."""
    room = canvas.width - x.end - 9
    beside = [
        end.x > x.end - _NEAR or (end.x > x.end - 0.3 * (x.end - x.start) and end.y < y.start - 1) for end in ends
    ]
    late = sorted((end for end, is_late in zip(ends, beside, strict=True) if is_late), key=lambda end: end.y)
    early = sorted((end for end, is_late in zip(ends, beside, strict=True) if not is_late), key=lambda end: end.x)
    for end, place in zip(late, _apart([end.y for end in late], y.start), strict=True):
        if abs(place - end.y) > 2.5 or end.x < x.end - 4:
            canvas.line(end.x + 1.5, end.y, x.end + 6.5, place, stroke=end.colour, stroke_width=0.5)
        canvas.text(x.end + 8, place + 2.4, shortened(end.name, room), fill=end.colour, bold=end.bold)
    taken: list[tuple[float, float, float]] = []
    for end in early:
        left = end.x + 3
        right = left + width_of(end.name)
        tries = (end.y - 4 - k * _GAP for k in range(6))
        free = next((place for place in tries if not _taken(taken, left, right, place)), None)
        if free is not None:
            taken.append((left, right, free))
            canvas.text(left, free, end.name, fill=end.colour, bold=end.bold)


def _taken(boxes: list[tuple[float, float, float]], left: float, right: float, place: float) -> bool:
    return any(left < its_right and right > its_left and abs(place - y) < 7 for its_left, its_right, y in boxes)


def _apart(places: list[float], bottom: float) -> list[float]:
    """Return places in their order, moved so that two texts never lie on each other."""
    found: list[float] = []
    for place in places:
        found.append(max(place, found[-1] + _GAP) if found else place)
    limit = math.inf
    for i in range(len(found) - 1, -1, -1):
        found[i] = min(found[i], bottom if limit is math.inf else limit - _GAP)
        limit = found[i]
    return found
