"""One sequence of a task as a picture: input, target and what counts, above one axis of time."""

from __future__ import annotations

import base64
import io
from typing import Any

import numpy as np
from torch import Tensor

from mnemoscope.report import chart
from mnemoscope.tasks.base import Task
from mnemoscope.tasks.batch import Batch

__all__ = ["draw_example"]

_WIDTH = 560
_LINE = 13
_HEIGHT = 420
"""Pixels: the width of a picture, the height of one row of it, and that of a panel with many."""

_ENLARGED = 8


def draw_example(task: Task, batch: Batch, which: int = 0) -> chart.Chart:
    """Draw one sequence as an Altair chart."""
    pictures = task.pictures(batch, which)
    if pictures:
        return chart.beside(*(_image(image, name) for name, image in pictures.items()))
    steps = int(batch.ends[which])
    mask, scored = (one[:steps, which].cpu().numpy() for one in (batch.mask, task.scored(batch)))
    names, classes = task.glyphs() or (task.input_names(), [])
    names = ["first", "second"] if task.kind == "pairs" else names
    inputs = _table(batch.inputs[:steps, which], task.input_size)
    bound = float(np.abs(inputs).max()) or 1.0
    title = f"{task.name}: input{_answer(task, batch, which)}"
    panels = [_panel(inputs, names, title, task.input_shape, bound, last=False)]
    if not batch.per_sequence:
        targets = _table(batch.targets[:steps, which], task.output_size)
        targets[~mask] = 0  # what is not asked for is not drawn
        panels.append(_panel(targets, classes, "target", task.output_shape, bound, last=False))
    counted = np.stack([mask, scored], 1).astype(float)
    panels.append(_panel(counted, ["loss", "score"], "steps that count", (2,), 1.0, last=True))
    return chart.beside(*panels, columns=1)


def _answer(task: Task, batch: Batch, which: int) -> str:
    if not batch.per_sequence:
        return ""
    glyphs, answer = task.glyphs(), batch.targets[which].item()
    return f"; the answer at the last step is {glyphs[1][int(answer)] if glyphs else f'{answer:.4g}'}"


def _table(values: Tensor, classes: int) -> np.ndarray:
    """Return numbers (steps, channels); token numbers as vectors with a single 1."""
    found = values.cpu().double().numpy()
    return np.eye(classes)[found.astype(int)] if found.ndim == 1 else found.reshape(len(found), -1)


def _panel(
    values: np.ndarray, names: list[str], title: str, shape: tuple[int, ...], bound: float, *, last: bool
) -> chart.Chart:
    """Draw what is not zero as cells over time; a matrix as a tile in its step."""
    import altair as alt

    make: Any = alt
    lines, within = (shape[0], shape[1]) if len(shape) == 2 else (values.shape[1], 1)
    labels = list(names) or [str(place + (within == 1)) for place in range(lines)]  # rows of matrices count from 0
    signed = bool((values < 0).any())
    rows = [
        {
            "from": step + 0.5 + (0.1 + 0.8 * (channel % within) / within if within > 1 else 0.0),
            "to": step + 0.5 + (0.1 + 0.8 * (channel % within + 1) / within if within > 1 else 1.0),
            "line": channel // within,
            "what": labels[channel // within],
            "step": step + 1,
            "value": values[step, channel],
        }
        for step, channel in zip(*(place.tolist() for place in np.nonzero(values)), strict=True)
    ]
    height = max(_LINE * lines if _LINE * lines <= _HEIGHT else _HEIGHT, 2 * _LINE)
    every = -(-_LINE * lines // (height + _LINE // 2)) or 1
    colour = make.Color(
        "value:Q",
        legend=None,
        scale=make.Scale(
            scheme="blueorange" if signed else "greys", domain=[-bound if signed else -0.2 * bound, bound]
        ),
    )
    axis = make.Axis(
        labelExpr=f"{labels!r}[datum.value]", grid=False, values=list(range(0, lines, every)), labelAngle=0
    )
    drawn = (
        make.Chart(chart.table(rows))
        .mark_rect(stroke="#ddd", strokeWidth=0.3)
        .encode(
            x=make.X(
                "from:Q", title="step" if last else None, scale=make.Scale(domain=[0.5, len(values) + 0.5], nice=False)
            ),
            x2="to:Q",
            y=make.Y("line:O", title=None, axis=axis, scale=make.Scale(domain=list(range(lines)))),
            color=colour,
            tooltip=[make.Tooltip("step:Q"), make.Tooltip("what:N"), make.Tooltip("value:Q", format=".4g")],
        )
    )
    return chart.styled(drawn, title, width=_WIDTH, height=height)


def _image(image: np.ndarray, title: str) -> chart.Chart:
    """Draw an image: shades of grey, 1 black, or colours."""
    import altair as alt

    make: Any = alt
    width = _WIDTH // 2
    height = round(width * image.shape[0] / image.shape[1])
    bare = {"axis": None, "scale": make.Scale(domain=[0, 2])}
    drawn = (
        make.Chart(chart.table([{"x": 1, "y": 1, "url": _png(image)}]))
        .mark_image(width=width, height=height)
        .encode(x=make.X("x:Q", **bare), y=make.Y("y:Q", **bare), url="url:N")
    )
    return chart.styled(drawn, title, width=width, height=height)


def _png(image: np.ndarray) -> str:
    """Return an image as the address of a PNG within itself; pixels are enlarged here, since others would blur them."""
    from PIL import Image

    shown = 1 - image if image.ndim == 2 else image
    large = np.round(255 * shown).astype(np.uint8).repeat(_ENLARGED, 0).repeat(_ENLARGED, 1)
    content = io.BytesIO()
    Image.fromarray(large).save(content, "PNG", optimize=True)
    return f"data:image/png;base64,{base64.b64encode(content.getvalue()).decode()}"
