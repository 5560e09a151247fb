"""Depth, Theorems 1 and 2: how far deep linear networks copy, and with how many parameters, exactly."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from mnemoscope.report import Headline
from mnemoscope.studies.machinery import CurvesOf, Holds, Row, RunSpec, Study, TableOf, declared, executor, grid
from mnemoscope.theory.formulas.copying import copy_limit, copy_parameters, copy_weights, copy_width, critical_width
from mnemoscope.theory.formulas.linear import copied_lags, linear_layers, transfer_degrees

__all__ = ["STUDY", "measure_copying"]

_WIDTHS, _DEPTHS = (2, 3, 4, 5, 6, 8), (1, 2, 3, 4)


@executor("linear-copying")
def measure_copying(settings: Mapping[str, Any], folder: Path) -> Mapping[str, Any]:
    """Return the longest lag that the construction copies, and the degree of random networks of the same size."""
    n, depth, inputs = (settings[name] for name in ("n", "L", "d"))
    limit = copy_limit(n, depth, inputs)
    weights = copy_weights(limit, n, depth, inputs).weights
    built = linear_layers(*([weights[f"weight_{part}_l{k}"] for k in range(depth)] for part in ("ih", "hh")))
    lags = np.flatnonzero(copied_lags(built).all(axis=1))
    random = np.random.default_rng(settings["seed"])
    below = [inputs, *([n] * (depth - 1))]
    chains = [np.tril(random.integers(1, 10, (n, n)), -1) for _ in below]  # nilpotent: only such can copy
    drawn = linear_layers([random.integers(1, 10, (n, size)) for size in below], chains)
    found = transfer_degrees(drawn)
    return {"copied": int(lags.max()), "degree": found.numerator - found.denominator, "limit": limit}


def _runs(scale: Mapping[str, Any]) -> list[RunSpec]:
    specs = grid("linear-copying", {"d": 1, "seed": 0}, n=_WIDTHS, L=_DEPTHS)
    return sorted(specs, key=lambda spec: spec.settings["n"] * spec.settings["L"])


def _rows(outcome: Any) -> list[Row]:
    n, depth, limit = outcome.spec.settings["n"], outcome.spec.settings["L"], outcome.summary["limit"]
    others = [copy_parameters(copy_width(limit, layers), layers) for layers in range(1, depth)]
    more = {"printed": depth * (n - 1), "before": (depth - 1) * (n - 1), "parameters": copy_parameters(n, depth)}
    more |= {"shallower": min(others, default=None), "deep": depth > 1, "large": depth > 1 and n >= 4}
    more |= {"wide": depth > 1 and n > critical_width(depth, depth - 1), "network": f"L{depth}"}
    return [{**outcome.spec.settings, **outcome.summary, **more}]


def _headlines(rows: Sequence[Row]) -> tuple[Headline, ...]:
    deep = [row for row in rows if row["deep"]]
    cheaper = sum(row["parameters"] < row["shallower"] for row in deep)
    words = "are cheaper than every shallower one of their lag"
    return (Headline(value=f"{cheaper} of {len(deep)}", unit="deep networks", meaning=words),)


def _holds(claim: str, left: str, relation: Any, right: str, **more: Any) -> Holds:
    names = {"copied": "longest lag that the construction copies", "printed": "L (n - 1)", "deep": "L > 1"}
    names |= {"degree": "longest lag that a random chain could copy", "parameters": "parameters of the deep network"}
    names |= {"shallower": "those of the cheapest shallower one of its lag", "wide": "n above the critical width"}
    names |= {"before": "(L - 1) (n - 1)", "large": "L > 1 and n >= 4"}
    return Holds(claim=claim, left=left, relation=relation, right=right, names=names, **more)


STUDY = declared(Study(
    name="depth-theorem-2",
    title="What depth gives a linear network, in lags and parameters", source="Depth, Theorems 1 and 2",
    claim="Linear networks of L layers of n units compute functions that fewer layers of n units cannot; they copy lag "
    "L (n - 1) of an input, and with fewer parameters than a shallower network.",
    references=("lizaire2026",),
    minutes={"smoke": 0.1, "laptop": 0.1, "paper": 0.1},
    runs=_runs, rows=_rows, headlines=_headlines,
    rules=(
        _holds("Theorem 1: a deeper network copies lags that one layer less cannot", "copied", ">", "before",
               where={"deep": True}),
        _holds("Theorem 2: from n = 4 on it does so with fewer parameters than any shallower network", "parameters",
               "<", "shallower", where={"large": True}),
        _holds("The longest lag that is copied is L (n - 1)", "copied", "=", "printed"),
        _holds("Ours: no chain of that size can copy more", "degree", "<=", "printed"),
        _holds("Ours: fewer parameters above the critical width 1 + l (1 + sqrt(12 a + 1)) / (2 a), l = L - 1",
               "parameters", "<", "shallower", where={"wide": True}),
    ),
    displays=(
        CurvesOf(
            name="lags", title="Every layer adds n - 1 lags", x="n", y="copied", by="network", x_title="hidden size n",
            y_title="longest lag copied", section="Lags and parameters",
            alt="Longest lag that is copied against the hidden size, one line per depth.",
            how="Which lags a network copies is decided exactly, from the row space of its impulse response modulo "
            "primes.",
        ),
        CurvesOf(
            name="parameters", title="Depth pays from width 4 on", x="copied", y="parameters", by="network",
            x_title="lag that is copied", y_title="parameters", log_x=True, log_y=True,
            alt="Parameters against the lag that is copied, one line per depth.",
            how="(2 L - 1) n^2 + (L + d) n parameters of a network of L layers and width n.",
        ),
        TableOf(
            name="sizes", title="Sizes", section="Every size",
            columns={"n": "n", "depth": "L", "lag copied": "copied", "L (n - 1)": "printed", "parameters": "parameters",
                     "shallower, of the same lag": "shallower"},
        ),
    ),
    entries={f"L{depth}": f"depth {depth}" for depth in reversed(_DEPTHS)},
    methods="Linear networks of 2 to 8 units and 1 to 4 layers with one input: the construction that distributes the "
    "unit delays over the layers, and random nilpotent chains, in exact arithmetic.",
    caveats=("At widths 2 and 3 a shallower network can be as cheap, as Theorem 2 says.",),
))  # fmt: skip
