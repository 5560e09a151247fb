"""TT, Theorem 1: odd-even ranks of tensor trains with random and constructed cores, exactly."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from mnemoscope.measures import odd_even_rank
from mnemoscope.report import Headline, Mark
from mnemoscope.studies.machinery import CurvesOf, Holds, Row, RunSpec, Study, TableOf, declared, executor, grid
from mnemoscope.theory.formulas.tensor_train import attaining_cores, generic_odd_even_rank, odd_even_bound

__all__ = ["STUDY", "measure_cores"]

_CASES = (("different", 0), ("different", 1), ("equal", 0), ("equal", 1), ("constructed", 0))


@executor("odd-even-rank")
def measure_cores(settings: Mapping[str, Any], folder: Path) -> Mapping[str, Any]:
    """Return the exact odd-even ranks of cores with random digits, and of the thesis's construction."""
    found = [odd_even_rank(_cores(settings["n"], settings["r"], settings["d"], *case)) for case in _CASES]
    return {"ranks": [one.rank for one in found], "tt_ranks": [int(min(one.tt_ranks)) for one in found]}


def _cores(n: int, r: int, d: int, kind: str, seed: int) -> list[np.ndarray]:
    if kind == "constructed":
        return list(attaining_cores(n, r, d))
    random = np.random.default_rng(seed)
    inner = [random.integers(-9, 10, (r, n, r)) for _ in range(d - 2)]
    inner = inner if kind == "different" else [inner[0]] * (d - 2)
    return [random.integers(-9, 10, (n, r)), *inner, random.integers(-9, 10, (r, n))]


def _runs(scale: Mapping[str, Any]) -> list[RunSpec]:
    specs = grid("odd-even-rank", n=(2, 3, 4), r=(2, 3, 4, 5), d=(4, 6))
    return sorted(specs, key=lambda spec: spec.settings["n"] ** spec.settings["d"])


def _rows(outcome: Any) -> list[Row]:
    n, r, d = (outcome.spec.settings[name] for name in "nrd")
    common = {"n": n, "r": r, "d": d, "bound": odd_even_bound(n, r, d), "generic": generic_odd_even_rank(n, r, d)}
    common["attained"] = min(n, r) ** (d // 2)
    found = zip(_CASES, outcome.summary["ranks"], outcome.summary["tt_ranks"], strict=True)
    return [
        {**common, "cores": kind, "seed": seed, "random": kind != "constructed", "rank": rank, "tt_rank": tt_rank}
        for (kind, seed), rank, tt_rank in found
    ]


def _marks(rows: Sequence[Row]) -> tuple[Mark, ...]:
    points = sorted({(row["r"], row["bound"]) for row in rows})
    return (Mark(kind="xy", label="Theorem 1", x=[r for r, _ in points], y=[bound for _, bound in points]),)


def _headlines(rows: Sequence[Row]) -> tuple[Headline, ...]:
    random = [row for row in rows if row["random"]]
    above = sum(row["rank"] > row["bound"] for row in random)
    return (
        Headline(value=str(len(rows)), unit="tensor trains", meaning="measured in exact arithmetic"),
        Headline(value=f"{above} of {len(random)}", unit="exceed", meaning="the theorem's bound with random cores"),
    )


def _holds(claim: str, left: str, relation: Any, right: str, **more: Any) -> Holds:
    names = {"bound": "q^(d/2) with q = min(n, r - 1)", "generic": "min(n, r) min(n, r^2)^(d/2 - 1)", "r": "r"}
    names |= {"attained": "min(n, r)^(d/2)", "tt_rank": "least TT-rank", "random": "the cores being random"}
    return Holds(claim=claim, left=left, relation=relation, right=right, names=names, **more)


STUDY = declared(Study(
    name="tt-theorem-1",
    title="How much a tensor train with equal cores can express", source="TT, Theorem 1",
    claim="The odd-even rank of a tensor train of d cores, hence the width of a shallow network with the same tensor, "
    "is "
    "at least q^(d/2) with q = min(n, r - 1) for almost all cores, also when all inner cores are equal.",
    references=("alkin2024", "khrulkov2018"),
    minutes={"smoke": 0.1, "laptop": 0.1, "paper": 0.1},
    runs=_runs, rows=_rows, headlines=_headlines,
    rules=(
        _holds("Equal cores: at least q^(d/2)", "rank", ">=", "bound", where={"cores": "equal"}),
        _holds("Different cores: at least q^(d/2)", "rank", ">=", "bound", where={"cores": "different"}),
        _holds("Ours: random cores, equal or not, have rank min(n, r) min(n, r^2)^(d/2 - 1)", "rank", "=", "generic",
               where={"random": True}),
        _holds("Ours: the thesis's construction attains min(n, r)^(d/2)", "rank", "=", "attained",
               where={"cores": "constructed"}),
        _holds("Random cores have TT-ranks (r, .., r)", "tt_rank", "=", "r", where={"random": True},
               otherwise="published value wrong"),
    ),
    displays=(
        CurvesOf(
            name="rank-by-core", title="Equal cores reach the rank of different ones", where={"n": 4, "d": 6}, x="r",
            y="rank", by="cores", x_title="size r of the cores", y_title="odd-even rank", log_y=True, marks=_marks,
            section="Rank against the size of the cores", text=("Four features, six cores.",),
            alt="Exact odd-even rank against the size of the cores, for different, equal and constructed cores.",
            how="Rank of the odd-even matricisation of cores with digits drawn from -9 to 9, computed modulo primes "
            "near "
            "2^61 that agree. Dotted: the bound of Theorem 1.",
        ),
        TableOf(
            name="ranks", title="Odd-even ranks", section="Every case",
            group=("n", "r", "d", "cores"), words=("cores",),
            columns={"n": "n", "r": "r", "d": "d", "cores": "cores", "Theorem 1": "bound", "rank": "rank",
                     "generic rank": "generic", "least TT-rank": "tt_rank"},
        ),
    ),
    entries={cores: f"{cores} cores" for cores in ("equal", "different", "constructed")},
    methods="Tensor trains with n of 2 to 4 features, cores of size r of 2 to 5 and lengths d of 4 and 6 were drawn "
    "with "
    "integer entries from -9 to 9 and two seeds, with different and with equal inner cores, beside the construction of "
    "the thesis; the ranks of their odd-even matricisations are exact.",
    caveats=("Almost all cores have the generic rank; that drawn ones have it is a fact about these draws.",),
))  # fmt: skip
