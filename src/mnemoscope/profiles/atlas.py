"""The atlas: profiles of established networks at equal parameters, which every profile is set beside.

It ships with the package as one versioned file, and ``mnemoscope atlas build`` makes it again. Hidden sizes are chosen
by `mnemoscope.nn.parameters`, so that every network of a budget has as nearly as possible the same number of
parameters, embedding and readout not counted.
"""

from __future__ import annotations

import math
from functools import lru_cache
from pathlib import Path

from mnemoscope.core.errors import UserError, positive_int
from mnemoscope.profiles.atlas_build import BUDGETS, REFERENCES, build
from mnemoscope.profiles.atlas_file import Atlas, read, where
from mnemoscope.profiles.rows import Row

__all__ = ["BUDGETS", "REFERENCES", "Atlas", "build", "load", "nearest_budget", "references"]


def load(path: Path | None = None) -> Atlas:
    """Return the atlas in use, or that of a file; read once as long as the file stays as it is."""
    source = where() if path is None else path
    stamp = source.stat().st_mtime_ns if source.is_file() else 0
    return _load(source, stamp)


def nearest_budget(parameters: int, budgets: list[int]) -> int:
    """Return the budget nearest to a number of parameters on a logarithmic scale; the smaller of equals.

    Examples
    --------
    >>> nearest_budget(3000, [1024, 4096, 16384]), nearest_budget(2048, [1024, 4096])
    (4096, 1024)
    """
    count = positive_int("parameters", parameters)
    if not budgets:
        raise UserError("the atlas has no rows of this kind; build them: mnemoscope atlas build")
    return min(budgets, key=lambda budget: (abs(math.log(count / budget)), budget))


def references(parameters: int, *, quick: bool = False) -> list[Row]:
    """Return the rows of the atlas at the budget nearest to a number of parameters.

    Parameters
    ----------
    parameters
        Of the recurrent part of the network that they are set beside.
    quick
        Those that were measured as a first look measures: numbers that depend on how far a curve was followed, or on
        how many samples there were, can be compared with their like only.
    """
    atlas = load()
    budget = nearest_budget(parameters, atlas.budgets(quick))
    return [dict(row) for row in atlas.at(budget, quick)]


@lru_cache(maxsize=4)
def _load(source: Path, stamp: int) -> Atlas:
    return read(source)
