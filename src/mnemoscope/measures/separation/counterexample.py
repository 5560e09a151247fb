"""A counterexample to a bound, saved so that anybody can check it: its numbers, and a program on its own."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from mnemoscope.core.files import make_folder, write_atomic
from mnemoscope.core.ring import PRIMES
from mnemoscope.measures.separation.bounds import Bound, Case

__all__ = ["VERIFIER", "Counterexample"]

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
