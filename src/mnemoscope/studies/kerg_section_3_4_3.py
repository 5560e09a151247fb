"""Kerg, section 3.4.3: gradients of triangular matrices with unit eigenvalues grow polynomially, exactly."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from mnemoscope.report import Headline
from mnemoscope.studies.machinery import CurvesOf, Holds, Row, RunSpec, Study, TableOf, declared, executor, grid
from mnemoscope.theory.formulas.gradients import triangular_power, triangular_power_entry

__all__ = ["STUDY", "measure_powers"]

_POWERS = (1, 2, 3, 5, 8, 12, 18, 27, 40, 60, 90, 135, 200, 300, 450, 675, 1000)
_CHECKED = 12


@executor("triangular-powers")
def measure_powers(settings: Mapping[str, Any], folder: Path) -> Mapping[str, Any]:
    """Return norms of powers of the matrix with ones on its diagonal and x above it, and how many entries differ.

    The first powers are multiplied out in rational numbers, every entry beside the sum over jumps.
    """
    size, x = settings["n"], Fraction(settings["x"])
    matrix = [[Fraction(i == j) + (x if i < j else 0) for j in range(size)] for i in range(size)]
    power, differ = matrix, 0
    for t in range(2, _CHECKED + 1):
        power = [
            [sum(a * b for a, b in zip(row, column, strict=True)) for column in zip(*matrix, strict=True)]
            for row in power
        ]
        known = [triangular_power_entry(k, t, x) for k in range(1, size)]
        differ += sum(power[i][j] != known[j - i - 1] for i in range(size) for j in range(i + 1, size))
    norms = [float(np.linalg.norm(triangular_power(size, t, x), 2)) for t in _POWERS]
    exponent = math.log(norms[-1] / norms[-2]) / math.log(_POWERS[-1] / _POWERS[-2])
    return {"differ": differ, "norms": norms, "exponent": exponent, "largest": norms[0]}


def _runs(scale: Mapping[str, Any]) -> list[RunSpec]:
    return grid("triangular-powers", n=(2, 3, 4, 6, 8), x=(0.25, 1.0))


def _rows(outcome: Any) -> list[Row]:
    given = outcome.spec.settings
    more = {"degree": given["n"] - 1, "powers": list(_POWERS), "network": f"n{given['n']}"}
    return [
        {**given, **outcome.summary, **more, "exponential": 1.05 ** _POWERS[-1], "last": outcome.summary["norms"][-1]}
    ]


def _headlines(rows: Sequence[Row]) -> tuple[Headline, ...]:
    worst = max((row["exponent"] - row["degree"] for row in rows), default=0.0)
    return (
        Headline(
            value=str(sum(row["differ"] for row in rows)), unit="entries differ", meaning="from the exact formula"
        ),
        Headline(
            value=f"{worst:+.2f}", unit="", meaning="largest excess of the growth's power over n - 1 at 1000 steps"
        ),
    )


STUDY = declared(Study(
    name="kerg-section-3-4-3",
    title="Gradients that explode no faster than a polynomial", source="Kerg, section 3.4.3, Proposition 3.4.2",
    claim="A triangular matrix with eigenvalues 1 may have singular values above 1; its powers, and with them "
    "gradients, "
    "then grow polynomially in time and not exponentially.",
    references=("kerg2019",),
    minutes={"smoke": 0.1, "laptop": 0.1, "paper": 0.1},
    runs=_runs, rows=_rows, headlines=_headlines,
    rules=(
        Holds(claim="Powers grow at most as t^(n - 1)", left="exponent", relation="<=", right="degree", within=0.05,
              names={"exponent": "slope of log norm by log t from 675 to 1000 steps", "degree": "n - 1"}),
        Holds(claim="The largest singular value exceeds 1", left="largest", relation=">", right=1.0),
        Holds(claim="Even after 1000 steps powers are below those of one eigenvalue 1.05", left="last", relation="<",
              right="exponential", names={"last": "norm at t = 1000", "exponential": "1.05^1000"}),
        Holds(claim="Ours: (A^t)_ij = sum_l C(t, l) C(k - 1, l - 1) x^l with k = j - i", left="differ", relation="=",
              right=0, names={"differ": "entries that differ in rational arithmetic up to t = 12"}),
    ),
    displays=(
        CurvesOf(
            name="norms", title="Powers of triangular matrices are polynomials", where={"x": 0.25}, x="powers",
            y="norms", by="network", x_title="steps t", y_title="spectral norm of A^t", log_x=True, log_y=True,
            points=False, decades=30, section="Norms of powers", text=("x = 1/4 above a diagonal of ones.",),
            alt="Spectral norm of powers of triangular matrices against the power, straight lines on logarithmic axes.",
            how="Every entry of A^t is the exact sum over jumps, rounded once; the norm is the largest singular value.",
        ),
        TableOf(
            name="growth", title="Growth", section="Every matrix",
            columns={"n": "n", "x": "x", "n - 1": "degree", "power of t at the end": "exponent",
                     "largest singular value": "largest", "norm at t = 1000": "last"},
        ),
    ),
    entries={f"n{size}": f"n = {size}" for size in (8, 6, 4, 3, 2)},
    methods="Matrices of sizes 2 to 8 with ones on the diagonal and 1/4 or 1 above it; powers to 1000 by the exact "
    "formula, which was compared entry by entry with products of rational matrices up to the power 12.",
))  # fmt: skip
