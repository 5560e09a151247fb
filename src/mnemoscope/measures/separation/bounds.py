"""Bounds on the separation rank that are put to the test, and counterexamples that anybody can check."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from mnemoscope.core.errors import expected
from mnemoscope.core.files import make_folder, write_atomic
from mnemoscope.core.ring import PRIMES
from mnemoscope.theory.formulas.separation import conjecture_bound, depth_two_rank, separation_theorem, separation_upper

__all__ = ["VERIFIER", "Bound", "Case", "Counterexample", "all_bounds"]

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


VERIFIER = '''\
"""Check a counterexample to a bound on the Start-End separation rank: python verify.py FILE.json"""
import itertools, json, sys

found = json.load(open(sys.argv[1]))
T, L, W = found["T"], found["L"], found["weights"]


def times(matrix, vector, p):
    return [sum(a * b for a, b in zip(row, vector)) % p for row in matrix]


def output(sequence, p):
    """h = (W_H h of the step before, at first ones) * (W_I input) in each layer; then the first row of W_O h."""
    left = [[1] * found["R"] for _ in range(L)]
    for x in sequence:
        for layer in range(L):
            x = [a * b % p for a, b in zip(left[layer], times(W[f"weight_ih_l{layer}"], x, p))]
            left[layer] = times(W[f"weight_hh_l{layer}"], x, p)
    return times(W["weight_out"], x, p)[0]


def rank(rows, p):
    pivots = []
    for row in rows:
        for column, pivot in pivots:
            if row[column]:
                factor = row[column]
                row = [(a - factor * b) % p for a, b in zip(row, pivot)]
        column = next((j for j, a in enumerate(row) if a), None)
        if column is not None:
            inverse = pow(row[column], -1, p)
            pivots.append((column, [a * inverse % p for a in row]))
    return len(pivots)


halves = list(itertools.product(found["templates"], repeat=T // 2))
ranks = [rank([[output(s + e, p) for e in halves] for s in halves], p) for p in found["primes"]]
rank, value, kind = max(ranks), found["value"], found["kind"]
agrees = {"lower": rank >= value, "equal": rank == value, "upper": rank <= value}[kind]
print(f"{found['bound']} ({kind}): {value}; ranks {ranks} modulo {found['primes']}")
print("no counterexample" if agrees else "counterexample confirmed")
sys.exit(agrees)
'''
"""The program: plain Python, no package, no code of ours."""


@dataclass(frozen=True)
class Counterexample:
    """Weights whose rank disagrees with a bound.

    Attributes
    ----------
    case
        The sizes.
    bound
        Which bound.
    value
        What it says.
    rank
        What was found.
    seed, draw
        From which the weights came.
    weights
        Integers, by the names of the parameters.
    templates
        Integers: the inputs that sequences are made of.
    """

    case: Case
    bound: Bound
    value: int
    rank: int
    seed: int
    draw: int
    weights: Mapping[str, np.ndarray]
    templates: np.ndarray

    def __str__(self) -> str:
        sizes = " ".join(f"{name}={value}" for name, value in asdict(self.case).items())
        return (
            f"{self.bound.name}: rank {self.rank}, bound {self.value} at {sizes} (seed {self.seed}, draw {self.draw})"
        )

    def save(self, folder: Path) -> Path:
        """Write the numbers, and the program beside them; return the numbers' path."""
        sizes = "_".join(f"{name}{value}" for name, value in asdict(self.case).items())
        name = f"{re.sub('[^a-z0-9]+', '-', self.bound.name.lower())}_{sizes}_seed{self.seed}_draw{self.draw}.json"
        content = {
            **asdict(self.case),
            "bound": self.bound.name,
            "kind": self.bound.kind,
            "value": self.value,
            "rank": self.rank,
            "seed": self.seed,
            "draw": self.draw,
            "primes": PRIMES[:2],
            "templates": self.templates.astype(int).tolist(),
            "weights": {name: value.tolist() for name, value in self.weights.items()},
        }
        make_folder(folder)
        write_atomic(folder / name, (json.dumps(content) + "\n").encode())
        write_atomic(folder / "verify.py", VERIFIER.encode())
        return folder / name
