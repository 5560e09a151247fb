"""One sequence of a task as a person would write it down: a row for input, target and what counts, a column a step."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

import numpy as np
from torch import Tensor

from mnemoscope.nn.panels import Panels
from mnemoscope.tasks.base import Task
from mnemoscope.tasks.batch import Batch
from mnemoscope.tasks.glyphs import BLANK, letters

__all__ = ["Row", "example_rows", "fitted", "fold", "image_lines", "shades"]

_KEPT = 2
"""Steps shown at either end of a run of equal ones; what lies between is left out and counted."""

_SHADES = " ░▒▓█"


class Row(NamedTuple):
    """A name and a sign for every step."""

    name: str
    cells: list[str]


def example_rows(task: Task, batch: Batch, which: int = 0) -> list[Row]:
    """Return the rows of one sequence: input, target where it counts, the steps of the loss and of the score."""
    steps = int(batch.ends[which])
    mask = batch.mask[:steps, which].tolist()
    scored = task.scored(batch)[:steps, which].tolist()
    inputs = batch.inputs
    given = _panels(inputs, which) if isinstance(inputs, Panels) else _inputs(task, inputs[:steps, which])
    rows = [*given, *_targets(task, batch, which, mask)]
    rows.append(Row("loss", ["•" if counts else " " for counts in mask]))
    return [*rows, Row("score", ["•" if counts else " " for counts in scored])]


def fold(rows: Sequence[Row], width: int) -> Iterator[str]:
    """Give the lines of the rows side by side in time, folded to a width, long runs of equal steps left out."""
    names = max(len(row.name) for row in [*rows, Row("step", [])])
    columns = list(_columns(rows))
    wide = max(len(cell) for _, cells in columns for cell in cells)
    per_line = max((width - names - 2) // (wide + 1), 1)
    for first in range(0, len(columns), per_line):
        if first:
            yield ""
        part = columns[first : first + per_line]
        yield f"{'step':<{names}}  {_ruler([label for label, _ in part], wide, width - names - 2)}".rstrip()
        for place, row in enumerate(rows):
            if all(cells[place] in (" ", "⋯") for _, cells in part):
                continue  # nothing is asked for in these steps
            yield f"{row.name:<{names}}  {' '.join(f'{cells[place]:<{wide}}' for _, cells in part)}".rstrip()


def fitted(image: np.ndarray, width: int) -> np.ndarray:
    """Return an image averaged down, by a whole factor, to two letters a pixel within a width."""
    factor = max(-(-2 * image.shape[1] // width), 1)
    rows, columns = -(-image.shape[0] // factor), -(-image.shape[1] // factor)
    room = [(0, rows * factor - image.shape[0]), (0, columns * factor - image.shape[1]), *[(0, 0)] * (image.ndim - 2)]
    found: np.ndarray = np.pad(image, room).reshape(rows, factor, columns, factor, *image.shape[2:]).mean((1, 3))
    return found


def image_lines(image: np.ndarray) -> list[str]:
    """Return an image with values in [0, 1] as lines of shaded blocks, two letters a pixel; colours as their mean."""
    image = image if image.ndim == 2 else image.mean(-1)
    return ["".join(2 * _SHADES[round(float(value) * (len(_SHADES) - 1))] for value in line) for line in image]


def shades(pictures: dict[str, np.ndarray]) -> list[str]:
    """Return images of one height side by side, each under its name."""
    blocks = [[name, *image_lines(image)] for name, image in pictures.items()]
    widths = [max(map(len, block)) for block in blocks]
    lines = zip(*blocks, strict=True)
    return ["   ".join(f"{cell:<{wide}}" for cell, wide in zip(line, widths, strict=True)).rstrip() for line in lines]


def _panels(panels: Panels, which: int) -> list[Row]:
    """Return a row of letters: equal images have one letter, empty ones a dot."""
    images = panels.images[panels.index[:, which]].flatten(1).tolist()
    known: dict[tuple[float, ...], str] = {}
    signs = iter(letters(len(images)))
    for image in map(tuple, images):
        if image not in known:
            known[image] = next(signs) if any(image) else BLANK
    return [Row("input", [known[tuple(image)] for image in images])]


def _inputs(task: Task, inputs: Tensor) -> list[Row]:
    glyphs = task.glyphs()
    if glyphs is not None and task.kind == "pairs":
        both = zip(("first", "second"), inputs.T.tolist(), strict=True)
        return [Row(name, [glyphs[0][token] for token in tokens]) for name, tokens in both]
    if glyphs is not None:
        tokens = inputs if inputs.ndim == 1 else inputs.argmax(-1)
        return [Row("input", [glyphs[0][token] for token in tokens.tolist()])]
    return _numbers("input", task.input_names(), inputs, task.input_shape)


def _targets(task: Task, batch: Batch, which: int, mask: list[bool]) -> list[Row]:
    glyphs = task.glyphs()
    if batch.per_sequence:
        answer = batch.targets[which].item()
        label = glyphs[1][int(answer)] if glyphs else f"{answer:.3g}"
        return [Row("target", [" "] * (len(mask) - 1) + [label])]
    targets = batch.targets[: len(mask), which]
    if glyphs is None:
        rows = _numbers("target", [], targets, task.output_shape)
    else:
        rows = [Row("target", [glyphs[1][token] for token in targets.tolist()])]
    return [
        Row(name, [cell if counts else " " for cell, counts in zip(cells, mask, strict=True)]) for name, cells in rows
    ]


def _numbers(name: str, parts: Sequence[str], values: Tensor, shape: tuple[int, ...]) -> list[Row]:
    """Return a row for each dimension, or for each row of a matrix."""
    if len(shape) == 2:
        lines = values.reshape(len(values), *shape)
        bits = [
            ["".join("█" if bit else "·" for bit in line) for line in lines[:, row].tolist()] for row in range(shape[0])
        ]
        return [Row(name if row == 0 else "", cells) for row, cells in enumerate(bits)]
    names = parts or ([name] if values.shape[1] == 1 else [f"{name} {place + 1}" for place in range(values.shape[1])])
    return [Row(label, _signs(values[:, place])) for place, label in enumerate(names)]


def _signs(values: Tensor) -> list[str]:
    kinds = set(values.tolist())
    if kinds <= {-1.0, 1.0}:
        return ["+" if value > 0 else "-" for value in values.tolist()]
    if kinds <= {0.0, 1.0}:
        return ["1" if value else "·" for value in values.tolist()]
    return [f"{value:+.1f}" if min(kinds) < 0 else f"{value:.2f}".removeprefix("0") for value in values.tolist()]


def _columns(rows: Sequence[Row]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Give the number of every step with its signs; the middle of a long run of equal steps is one column of dots."""
    steps = list(enumerate(zip(*(row.cells for row in rows), strict=True), start=1))
    for cells, group in groupby(steps, key=lambda step: step[1]):
        run = [number for number, _ in group]
        if len(run) <= 2 * _KEPT + 2:
            yield from ((str(number), cells) for number in run)
            continue
        yield from ((str(number), cells) for number in run[:_KEPT])
        yield f"({len(run) - 2 * _KEPT})", tuple("⋯" for _ in cells)
        yield from ((str(number), cells) for number in run[-_KEPT:])


def _ruler(labels: list[str], wide: int, room: int) -> str:
    """Return the numbers of steps above their columns, counts of what is left out first, as many as fit."""
    line = [" "] * max(room, len(labels) * (wide + 1))
    dots = [place for place, label in enumerate(labels) if label.startswith("(")]
    tens = [place for place, label in enumerate(labels) if label.isdigit() and int(label) % 10 == 0]
    for place in [*dots, 0, *(place + 1 for place in dots if place + 1 < len(labels)), *tens]:
        start = max(min(place * (wide + 1), len(line) - len(labels[place])), 0)  # what does not fit moves to the left
        end = start + len(labels[place])
        if set(line[max(start - 1, 0) : end + 1]) == {" "}:
            line[start:end] = labels[place]
    return "".join(line)
