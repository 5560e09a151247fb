"""A curve with the band in which it may lie."""

from __future__ import annotations

from typing import Any

import numpy as np
from jaxtyping import Float

from mnemoscope.report.chart import PALETTE, Chart, styled

__all__ = ["banded"]


def banded(
    x: Float[np.ndarray, " points"],
    middle: Float[np.ndarray, " points"],
    low: Float[np.ndarray, " points"],
    high: Float[np.ndarray, " points"],
    *,
    titles: tuple[str, str],
    title: str = "",
) -> Chart:
    """Draw `middle` over `x` as a line, and the band from `low` to `high` behind it; `titles` are those of the axes."""
    import altair as alt

    make: Any = alt
    columns = zip(x.tolist(), middle.tolist(), low.tolist(), high.tolist(), strict=True)
    rows = [{"x": a, "y": b, "low": c, "high": d} for a, b, c, d in columns if np.isfinite([a, b, c, d]).all()]
    base = make.Chart(make.Data(values=rows)).encode(x=alt.X("x:Q", title=titles[0], scale=alt.Scale(nice=False)))
    tips = [alt.Tooltip(f"{name}:Q", format=".6g") for name in ("x", "y", "low", "high")]
    band = base.mark_area(color=PALETTE[0], opacity=0.25).encode(y=alt.Y("low:Q", title=titles[1]), y2="high:Q")
    line = base.mark_line(color=PALETTE[0], strokeWidth=2).encode(y=alt.Y("y:Q", title=titles[1]), tooltip=tips)
    return styled(band + line, title)
