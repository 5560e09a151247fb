"""The bounds that the conjecture lab puts to the test, and what a rank says of each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from mnemoscope.core.errors import expected
from mnemoscope.theory.formulas.separation import conjecture_bound, depth_two_rank, separation_theorem, separation_upper

__all__ = ["Bound", "Case", "all_bounds"]

_BEYOND = 1 << 62


@dataclass(frozen=True)
class Case:
    """Sizes of a RAC: input channels, hidden channels, steps, layers."""

    M: int
    R: int
    T: int
    L: int

    @property
    def upper(self) -> int:
        """What the separation rank cannot exceed, on any templates."""
        return separation_upper(self.M, self.R, self.T, self.L)


@dataclass(frozen=True)
class Bound:
    """A statement about the rank of a generic RAC.

    Attributes
    ----------
    name
        By which tables name it.
    kind
        ``"lower"`` (on enough templates), ``"equal"`` or ``"upper"`` (on one-hot templates).
    formula
        Its value for a case; None where it says nothing.
    """

    name: str
    kind: str
    formula: Callable[[Case], int | None]

    def value(self, case: Case) -> int:
        """Return what the bound says of a case, -1 for nothing; what no rank can reach is cut off, to fit in int64."""
        found = self.formula(case)
        return -1 if found is None else min(found, _BEYOND)

    def holds(self, value: int, rank: int) -> bool:
        """Tell whether a rank agrees with the value of the bound."""
        return {"lower": rank >= value, "equal": rank == value, "upper": rank <= value}[self.kind]


_BOUNDS = (
    Bound("theorem 1, depth 1", "equal", lambda c: separation_theorem(c.M, c.R, c.T, 1) if c.L == 1 else None),
    Bound("theorem 1, depth 2", "lower", lambda c: separation_theorem(c.M, c.R, c.T, 2) if c.L == 2 else None),
    Bound("depth-2 formula", "equal", lambda c: depth_two_rank(c.M, c.R, c.T) if c.L == 2 else None),
    Bound("conjecture 1", "lower", lambda c: conjecture_bound(c.M, c.R, c.T, c.L)),
    Bound("upper bound", "upper", lambda c: min(c.upper, c.M ** (c.T // 2))),
)


def all_bounds(conjectures: Mapping[str, Callable[[int, int, int, int], int]] | None) -> tuple[Bound, ...]:
    """Return the bounds of the documents and ours, and the user's own lower bounds, functions of (M, R, T, L)."""
    own = dict(conjectures or {})
    taken = {bound.name for bound in _BOUNDS}
    for name, formula in own.items():
        if not callable(formula) or name in taken:
            raise expected("conjectures", "new names with functions of (M, R, T, L)", own)
    return (*_BOUNDS, *(Bound(name, "lower", _of_sizes(formula)) for name, formula in own.items()))


def _of_sizes(formula: Callable[[int, int, int, int], Any]) -> Callable[[Case], int]:
    return lambda case: int(formula(case.M, case.R, case.T, case.L))
