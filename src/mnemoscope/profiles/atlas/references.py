"""References beside a profile: rows of the atlas at about equal parameters, or networks to be measured anew.

The atlas ships with the package as one versioned file, and ``mnemoscope atlas build`` makes it again. Hidden sizes are
chosen by `mnemoscope.nn.parameters`, so that every network of a budget has as nearly as possible the same number of
parameters, embedding and readout not counted.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

from mnemoscope.core.errors import UserError, positive_int
from mnemoscope.nn import NetworkSpec
from mnemoscope.profiles.atlas.file import Atlas, read, where
from mnemoscope.profiles.row import NetworkFacts, Row

__all__ = ["about", "load", "nearest_budget", "nearest_rows", "specs_like"]


def load(path: Path | None = None) -> Atlas:
    """Return the atlas in use, or that of a file; read once as long as the file stays as it is."""
    source = where() if path is None else path
    found = source.stat() if source.is_file() else None
    # A new file within the clock's resolution has another inode, since files are written beside and moved.
    return _load(source, None if found is None else (found.st_mtime_ns, found.st_ino, found.st_size))


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


def nearest_rows(parameters: int, *, quick: bool = False) -> list[Row]:
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
    return atlas.at(budget, quick)


@lru_cache(maxsize=4)
def _load(source: Path, stamp: tuple[int, int, int] | None) -> Atlas:
    return read(source)


def specs_like(facts: NetworkFacts, rows: Sequence[Row]) -> list[NetworkSpec]:
    """Return the networks of some rows, at the sizes that have as many parameters as a network."""
    named = [row.network for row in rows]
    width = 1 if facts.input_size is None else facts.input_size
    return [
        NetworkSpec(each.name, input_size=width, parameters=facts.parameters, options=each.options).resolved()
        for each in named
    ]


def about(subjects: Sequence[Row], references: Sequence[Row], fresh: bool) -> str:
    """Say where the references come from, and how near their numbers of parameters are."""
    if not references:
        return "There are no references beside it."
    counts = sorted(row.network.parameters for row in references)
    between = f"{counts[0]:,} to {counts[-1]:,} parameters" if counts[0] != counts[-1] else f"{counts[0]:,} parameters"
    own = " and ".join(f"{row.network.parameters:,}" for row in subjects)
    if fresh:
        return f"The references were measured anew at equal parameters: {between}, against {own}."
    made = references[0].environment
    return (
        f"The references are from the table that ships with Mnemoscope (version {made.get('mnemoscope', '?')}, "
        f"{made.get('date', '?')}), at the nearest number of parameters: {between}, against {own}."
    )
