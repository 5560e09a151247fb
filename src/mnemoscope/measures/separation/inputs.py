"""Arguments of a separation rank, checked: the start set, the templates, the output, the memory of the grid."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, cast

import numpy as np
from jaxtyping import Float

from mnemoscope.core import memory
from mnemoscope.core.arrays import matrix
from mnemoscope.core.errors import expected, positive_int

__all__ = ["Templates", "check_unit", "random_templates", "require_grid", "start_set", "template_rows"]

Templates = Float[np.ndarray, "templates input"]

_BYTES = {True: 80, False: 40}
"""Per entry of the grid, at the peak: residues as Python integers on their way to FLINT; floats and LAPACK's copies."""


def start_set(partition: Any, horizon: int) -> tuple[int, ...]:
    """Return the start set in order; a pair (start, end) is taken too, and both have to fit."""
    if partition is None:
        if horizon % 2:
            raise expected("horizon", "even, so that it has two halves (or give a partition)", horizon)
        return tuple(range(horizon // 2))
    what = f"a set of steps between 0 and {horizon - 1} that leaves some to the end"
    try:
        parts = [list(part) if isinstance(part, Iterable) else part for part in partition]
        pair = len(parts) == 2 and all(isinstance(part, list) for part in parts)
        first, last = parts if pair else (parts, None)
        steps = [int(step) for step in cast(list[Any], first)]
        if steps != first or any(isinstance(step, bool) for step in cast(list[Any], first)):
            raise ValueError
    except (TypeError, ValueError):
        raise expected("partition", what, partition) from None
    inside = set(steps)
    rest = set(range(horizon)) - inside
    if len(inside) != len(steps) or not inside or not rest or not inside <= set(range(horizon)):
        raise expected("partition", what, partition)
    if last is not None and sorted(cast(list[Any], last)) != sorted(rest):
        raise expected("partition", f"two sets that have each of the {horizon} steps once", partition)
    return tuple(sorted(inside))


def template_rows(templates: Any, size: int, seed: int, inputs: Any = None) -> Templates:
    """Return the templates, one per row: None the one-hot vectors, a number that many random ones, else as given.

    Where there are `inputs` of the user's, random ones are different steps of these.
    """
    if templates is None:
        return np.eye(size)
    if isinstance(templates, int | np.integer) and not isinstance(templates, bool):
        count = positive_int("templates", templates)
        return random_templates(count, size, seed) if inputs is None else _steps_of(inputs, count, size, seed)
    rows = matrix("templates", templates)
    if rows.shape[1] != size:
        raise expected("templates", f"rows of length {size}, the network's input_size", rows.shape)
    return rows


def random_templates(count: int, size: int, seed: int) -> Templates:
    """Draw vectors of small non-zero integers, no two parallel; the first K of a longer draw are a shorter one.

    To a homogeneous function, which a RAC is in each input, a template parallel to another one says nothing new. In
    one dimension, where all are parallel, they are different.
    """
    draw = np.random.default_rng(seed)
    reach, seen, refused = 9, dict[tuple[int, ...], tuple[int, ...]](), 0
    while len(seen) < count:
        row = tuple(draw.integers(-reach, reach, size=size, endpoint=True).tolist())
        direction = _direction(row) if size > 1 and all(row) else row
        if all(row) and direction not in seen:
            seen[direction] = row
        else:
            refused += 1
            reach += 10 * (refused % 100 == 0)
    return np.array(list(seen.values()), dtype=np.float64)


def _steps_of(inputs: Any, count: int, size: int, seed: int) -> Templates:
    """Draw different steps of given sequences."""
    from mnemoscope.measures.inputs import given_sequences

    rows = np.unique(given_sequences(inputs, size).reshape(-1, size).numpy(), axis=0)
    if len(rows) < count:
        raise expected("inputs", f"of at least {count} different steps", len(rows))
    return rows[np.random.default_rng(seed).choice(len(rows), count, replace=False)]


def _direction(row: tuple[int, ...]) -> tuple[int, ...]:
    """Return the shortest integer vector parallel to a row, its first entry positive."""
    divisor = math.gcd(*row) * (1 if row[0] > 0 else -1)
    return tuple(entry // divisor for entry in row)


def check_unit(unit: Any, size: int) -> None:
    """Raise unless there is such an output."""
    if isinstance(unit, bool) or not isinstance(unit, int | np.integer) or not 0 <= unit < size:
        raise expected("unit", f"an output between 0 and {size - 1}", unit)


def grid_side(templates: Any, channels: int, horizon: int) -> float:
    """Return the rows of a grid over half of the steps; `templates` are a number, an array, or None: one-hot ones."""
    count = channels if templates is None else templates if isinstance(templates, int) else len(templates)
    return math.pow(count, horizon / 2)


def require_grid(count: int, horizon: int, exactly: bool) -> None:
    """Raise unless the memory that a grid of `count` templates takes is allowed, and say which horizon would fit."""
    allowed, each = memory.allowance(), _BYTES[exactly]
    fits = max((t for t in range(1, 64) if each * count**t <= allowed), default=0)
    fits -= fits % 2
    advice = f"horizon={fits} would fit" if fits else "fewer templates would fit"
    memory.require(f"the grid of {count}^{horizon} sequences", each * count**horizon, advice)
