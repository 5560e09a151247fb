"""Figures as Vega-Lite: the one description of `mnemoscope.report.figure` as an Altair chart, SVG, PDF or PNG.

The page's own JavaScript draws the same descriptions, with the same ticks, texts, colours, dashes and markers.
Altair is imported when something is drawn, never before.
"""

from __future__ import annotations

import dataclasses
import json
import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from mnemoscope.core.errors import UserError
from mnemoscope.core.files import writable, write_atomic
from mnemoscope.report.figure import Bars, Curves, Figure, HeatMap, Plane, Ranked
from mnemoscope.report.page import Entry
from mnemoscope.report.vega.curves import draw_curves
from mnemoscope.report.vega.layers import COLUMN, COLUMN_NAMES, FAINT, INK, Picture, Sheet, merged, named, printable
from mnemoscope.report.vega.planes import draw_heat_map, draw_plane
from mnemoscope.report.vega.ranked import draw_bars, draw_ranked

__all__ = ["FORMATS", "Chart", "beside", "chart", "check_path", "paper", "save"]

Chart = Any
"""An Altair chart of any make; Altair's own annotations do not say."""

FORMATS = (".svg", ".png", ".pdf", ".html", ".json")
"""Endings of the files that `save` writes."""

_SCREEN = 1.75
"""Pixels to a point on a screen, where a chart is larger than in print."""

_FONT = "Helvetica, Arial, Liberation Sans, DejaVu Sans Condensed, DejaVu Sans, sans-serif"
_SCHEMA = "https://vega.github.io/schema/vega-lite/v6.json"
_DRAW: dict[type, Callable[..., Picture]] = {
    Curves: draw_curves,
    Ranked: draw_ranked,
    Bars: draw_bars,
    Plane: draw_plane,
    HeatMap: draw_heat_map,
}


def chart(figure: Figure, entries: Sequence[Entry] = ()) -> Chart:
    """Return a figure as an Altair chart for a screen, with its title.

    Parameters
    ----------
    figure
        What is drawn.
    entries
        The networks that it names; those it names and these do not are called by their keys, the first drawn strongest.
    """
    picture = _picture(figure, entries, Sheet(_SCREEN, names=2 * COLUMN_NAMES))
    sizes = {"width": round(picture.width), "height": round(picture.height)}
    style = {"anchor": "start", "frame": "bounds", "offset": 8, "fontSize": 13, "fontWeight": 600, "color": INK}
    title = {"title": {"text": printable(figure.title), **style}} if figure.title else {}
    return _altair({**sizes, "layer": picture.layers, **title})


def beside(*charts: Chart, columns: int = 2) -> Chart:
    """Put charts side by side."""
    import altair as alt

    make: Any = alt
    return make.concat(*charts, columns=columns).resolve_scale(color="independent")


def paper(figure: Figure, entries: Sequence[Entry] = ()) -> tuple[str, bytes]:
    """Return a figure as SVG and as PDF, exactly as wide as a column of a paper and without its title."""
    import vl_convert

    picture = _picture(figure, entries, Sheet())
    room = {name: getattr(picture, name) for name in ("left", "right", "top", "bottom")}
    spec = unpacked({"width": picture.width, "height": picture.height, "layer": picture.layers})
    spec |= {"$schema": _SCHEMA, "padding": room, "autosize": {"type": "none"}, "config": _config()}
    svg = _svg(spec)
    return _in_inches(svg), bytes(vl_convert.svg_to_pdf(svg))


_SIGNATURES = {
    ".svg": b"\n<!-- mnemoscope -->\n",
    ".html": b"\n<!-- mnemoscope -->\n",
    ".pdf": b"\n% mnemoscope\n",
    ".png": b"mnemoscope",  # after the last chunk, where nobody reads
}
"""Words at the end of a picture by which we know later that it is ours (`mnemoscope.core.files.is_ours`)."""


def check_path(path: str | os.PathLike[str]) -> Path:
    """Return a path that `save` can write to, or raise: asked before the work, not after it."""
    file = Path(path)
    if file.suffix.lower() not in FORMATS:
        raise UserError(f"a picture's name must end in {', '.join(FORMATS)}, got {str(file)!r}")
    return writable(file)


def save(drawn: Chart, path: str | os.PathLike[str], *, scale: float = 2.0) -> None:
    """Write a chart to a file: SVG, PNG, PDF, an HTML page that needs no network, or its Vega-Lite JSON."""
    import vl_convert

    path = check_path(path)
    spec = unpacked(drawn.to_dict()) | {"config": _config(), "usermeta": {"written by": "mnemoscope"}}
    write: dict[str, Callable[[], bytes]] = {
        ".svg": lambda: _svg(spec).encode(),
        ".png": lambda: vl_convert.vegalite_to_png(spec, scale=scale),
        ".pdf": lambda: vl_convert.vegalite_to_pdf(spec),
        ".html": lambda: vl_convert.vegalite_to_html(spec, bundle=True).encode(),
        ".json": lambda: json.dumps(spec, indent=2, allow_nan=False).encode(),
    }
    ending = path.suffix.lower()
    write_atomic(path, write[ending]() + _SIGNATURES.get(ending, b""))


def _svg(spec: dict[str, Any]) -> str:
    """Return a specification as SVG, the same whatever was drawn before: the converter counts its clips on and on."""
    import vl_convert

    found = str(vl_convert.vegalite_to_svg(spec))
    numbers = {old: new for new, old in enumerate(dict.fromkeys(re.findall(r"\bclip\d+\b", found)))}
    return re.sub(r"\bclip\d+\b", lambda match: f"clip{numbers[match[0]]}", found)


def unpacked(spec: dict[str, Any]) -> dict[str, Any]:
    """Return a specification with its data as lists instead of texts, for whoever reads the file."""
    found = dict(spec)
    for name in {"concat", "layer"} & set(spec):
        found[name] = [unpacked(part) for part in spec[name]]
    data = spec.get("data")
    if isinstance(data, dict) and isinstance(data.get("values"), str):
        found["data"] = {"values": json.loads(data["values"])}
    if isinstance(data, dict) and "name" in data:
        found["data"] = {"name": data["name"]}
    if "datasets" in spec:  # to which Altair moves the data of a single layer
        texts = spec["datasets"].items()
        found["datasets"] = {name: json.loads(text) if isinstance(text, str) else text for name, text in texts}
    return found


def _picture(figure: Figure, entries: Sequence[Entry], sheet: Sheet) -> Picture:
    known = {entry.key for entry in entries}
    others = [key for key in figure.entries() if key not in known]
    banded = figure.banded()
    added = [
        Entry(key=key, label=key, role="subject" if key in banded or (place == 0 and not entries) else "reference")
        for place, key in enumerate(others)
    ]
    picture = _DRAW[type(figure.drawing)](figure.drawing, named([*entries, *added]), sheet)
    nothing = [{"data": {"values": []}, "mark": "point", "encoding": {}}]  # a picture without layers has no size
    return dataclasses.replace(picture, layers=merged(picture.layers) or nothing)


def _altair(spec: dict[str, Any]) -> Chart:
    import altair as alt

    make: Any = alt
    return make.LayerChart.from_dict({**spec, "view": {"stroke": None}}, validate=False)  # which takes a second


def _config() -> dict[str, Any]:
    return {
        "background": "#ffffff",
        "font": _FONT,
        "view": {"stroke": None},
        "title": {"fontSize": 13, "anchor": "start", "fontWeight": 600, "color": INK},
        "axis": {"gridColor": FAINT, "domainColor": "#888888", "tickColor": "#888888", "titleFontWeight": "normal"},
    }


def _in_inches(svg: str) -> str:
    """Return a picture whose size is that of a column in print; its numbers are points."""
    width, height = (float(found) for found in re.findall(r'<svg[^>]*? width="([\d.]+)" height="([\d.]+)"', svg)[0])
    size = f'width="{COLUMN}in" height="{COLUMN * height / width:.4f}in"'
    return re.sub(r'width="[\d.]+" height="[\d.]+"', size, svg, count=1)
