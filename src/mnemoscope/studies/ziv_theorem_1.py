"""Ziv, Theorem 1 and Conjecture 1: Start-End separation ranks of recurrent arithmetic circuits, exactly."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any, ClassVar

import torch

from mnemoscope.measures import separation_rank
from mnemoscope.nn import RAC
from mnemoscope.report import Column, Curves, Entry, Figure, Headline, Mark, Section, Series, Table
from mnemoscope.studies.execution import executor
from mnemoscope.studies.study import Finding, Outcome, Part, RunSpec, Study, study
from mnemoscope.theory.formulas.separation import (
    conjecture_bound,
    separation_lower,
    separation_theorem,
    separation_upper,
)

__all__ = ["ZivTheorem1"]

Rank = Mapping[str, Any]

_SIZES: dict[str, tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]] = {
    "smoke": ((2,), (2, 4), (0,)),
    "laptop": ((2, 3, 4), (2, 4, 6, 8), (0, 1, 2)),
    "paper": ((2, 3, 4), (2, 4, 6, 8, 10, 12), (0, 1, 2)),
}
"""Of every scale: channels M and widths R, horizons T, seeds of the weights."""
_DEPTHS = (1, 2, 3)


@executor("separation-rank")
def measure_rank(settings: Mapping[str, Any], folder: Path) -> Rank:
    """Return the exact rank of a circuit with random weights on one-hot templates, and the float rank beside it."""
    generator = torch.Generator().manual_seed(settings["seed"])
    circuit = RAC(
        settings["M"],
        settings["R"],
        num_layers=settings["L"],
        output_size=1,
        dtype=torch.float64,
        generator=generator,
    )
    found = separation_rank(circuit, settings["T"], seed=settings["seed"])
    return {"rank": found.rank, "exact": found.exact, "float_rank": found.float_rank, "shape": list(found.shape)}


@study("ziv-theorem-1")
class ZivTheorem1(Study):
    """The rank tables behind Theorem 1 and Conjecture 1, in exact arithmetic."""

    title: ClassVar[str] = "Depth and the memory of arithmetic circuits"
    source: ClassVar[str] = "Ziv, Theorem 1 and Conjecture 1"
    claim: ClassVar[str] = (
        "The Start-End separation rank of a recurrent arithmetic circuit is min(R, M^(T/2)) at depth 1, at least "
        "mc(min(M, R), T/2) at depth 2, and by conjecture at least min(mc(min(M, R), mc(T/2, L-1)), M^(T/2)) beyond, "
        "for almost all weights."
    )
    references: ClassVar[tuple[str, ...]] = ("levine2017", "ziv2020")

    def plan(self, scale: str) -> list[RunSpec]:
        """Return one run per circuit and seed; smallest grids first."""
        sizes, horizons, seeds = _SIZES[scale]
        cases = product(sizes, sizes, horizons, _DEPTHS, seeds)
        specs = [RunSpec("separation-rank", dict(zip("MRTL", case[:4], strict=True), seed=case[4])) for case in cases]
        return sorted(specs, key=lambda spec: (spec.settings["M"] ** spec.settings["T"], spec.settings["L"]))

    def analyse(self, outcomes: Sequence[Outcome], scale: str) -> Finding:
        """Compare every rank with the theorem, the conjecture, and the upper bound."""
        ranks = [{**outcome.spec.settings, **outcome.summary} for outcome in outcomes]
        parts = (
            _bound(ranks, (2,), separation_lower, "Theorem 1, depth 2: at least mc(min(M, R), T/2)"),
            _shallow(ranks),
            _bound(ranks, (3,), separation_lower, "Conjecture 1, depth 3: at least the printed bound"),
            _coincides(ranks),
            _upper(ranks),
        )
        wrong = sum(rank["float_rank"] != rank["rank"] for rank in ranks)
        headlines = (
            Headline(value=f"{len(ranks):,}", unit="circuits", meaning="measured in exact arithmetic"),
            Headline(value=str(_exceptions(ranks)), unit="exceptions", meaning="to Theorem 1 and Conjecture 1"),
            Headline(value=f"{wrong}", unit="wrong", meaning="ranks when computed in float64 instead"),
        )
        caveats = (
            "Templates are one-hot vectors, which cap every rank at M^(T/2); more templates can only raise it.",
            "A conjecture that holds on all cases tried is not proved.",
        )
        return Finding(parts=parts, headlines=headlines, data={"ranks": ranks}, caveats=caveats)

    def entries(self, finding: Finding) -> list[Entry]:
        """Return the depths."""
        depths = sorted({rank["L"] for rank in finding.data["ranks"]}, reverse=True)
        return [
            Entry(key=f"L{depth}", label=f"depth {depth}", role="subject" if i == 0 else "reference")
            for i, depth in enumerate(depths)
        ]

    def draw(self, finding: Finding, command: str) -> list[Section]:
        """Draw the ranks of the widest circuits over the horizon, and list all."""
        ranks = finding.data["ranks"]
        size = max(rank["M"] for rank in ranks)
        widest = [rank for rank in ranks if rank["M"] == size == rank["R"]]
        depths = sorted({rank["L"] for rank in widest})
        series = [_series(widest, depth) for depth in depths]
        marks = tuple(_mark(widest, size, depth) for depth in depths if depth > 1)
        figure = Figure(
            name="rank-by-horizon",
            title="Deeper circuits tie the start of a sequence to its end in more ways",
            drawing=Curves(
                series=series, x_title="horizon T", y_title="separation rank", log_y=True, marks=marks, points=True
            ),
            alt=f"Exact separation rank against the horizon for {size} channels and width {size}, one curve per depth.",
            how="Rank of the grid of outputs, starts by ends, over all one-hot sequences, computed modulo large primes "
            "with the weights as exact rational numbers. Dashed: the lower bounds of Theorem 1 and Conjecture 1.",
            command=command,
            references=self.references,
        )
        text = (
            f"At M = R = {size} depth 1 stays at rank R = {size} for every horizon. Deeper circuits grow with it, "
            f"up to the {size}^(T/2) starts that the grid of one-hot sequences has."
        )
        return [
            Section(name="ranks", title="Rank against the horizon", text=(text,), figures=(figure,)),
            Section(name="cases", title="Every case", tables=(_table(ranks),)),
        ]

    def methods(self, scale: str) -> str:
        """Return what was computed."""
        sizes, horizons, seeds = _SIZES[scale]
        return (
            f"Recurrent arithmetic circuits with M and R of {_listed(sizes)}, T of {_listed(horizons)} and depths "
            f"1 to 3 were drawn with {len(seeds)} seed(s) each from the default initialisation; the rank of the matrix "
            "of outputs at the last step, first half of the inputs by second half, over all one-hot input sequences "
            "was computed modulo primes of 61 bits or more, the weights taken as the exact rational values of their "
            "floats."
        )


def _bound(ranks: Sequence[Rank], depths: Sequence[int], bound: Any, claim: str) -> Part:
    chosen = [rank for rank in ranks if rank["L"] in depths]
    values = [(rank["rank"], bound(rank["M"], rank["R"], rank["T"], rank["L"])) for rank in chosen]
    held, attained = sum(a >= b for a, b in values), sum(a == b for a, b in values)
    measured = f"held in {held} of {len(values)} cases, attained with equality in {attained}"
    return Part(claim=claim, measured=measured, verdict="reproduced" if held == len(values) else "not reproduced")


def _shallow(ranks: Sequence[Rank]) -> Part:
    chosen = [rank for rank in ranks if rank["L"] == 1]
    equal = sum(rank["rank"] == min(rank["R"], rank["M"] ** (rank["T"] // 2)) for rank in chosen)
    return Part(
        claim="Theorem 1, depth 1: exactly min(R, M^(T/2))",
        measured=f"equal in {equal} of {len(chosen)} cases",
        verdict="reproduced" if equal == len(chosen) else "not reproduced",
    )


def _coincides(ranks: Sequence[Rank]) -> Part:
    """Judge the remark that the conjecture's formula gives Theorem 1 at depth 1."""
    cases = {(rank["M"], rank["R"], rank["T"]) for rank in ranks if rank["L"] == 1}
    apart = {case for case in cases if conjecture_bound(*case, 1) != separation_theorem(*case, 1)}
    witness = f"; for example M={min(apart)[0]}, R={min(apart)[1]}, T={min(apart)[2]}" if apart else ""
    return Part(
        claim="The formula of Conjecture 1 coincides with Theorem 1 at depth 1",
        measured=f"they differ at {len(apart)} of {len(cases)} sizes (wherever R > M and M^(T/2) > M){witness}",
        verdict="published value wrong" if apart else "reproduced",
    )


def _upper(ranks: Sequence[Rank]) -> Part:
    """Judge the upper bound of our own."""
    pairs = [(rank["rank"], _ceiling(rank)) for rank in ranks]
    held, equal = sum(a <= b for a, b in pairs), sum(a == b for a, b in pairs)
    return Part(
        claim="Ours: at most prod mc(R, mc(T/2, L-l)) and prod mc(min(M, R), mc(j, L-1)), capped by the grid",
        measured=f"held in {held} of {len(pairs)} cases, attained in {equal}",
        verdict="reproduced" if held == len(pairs) else "not reproduced",
    )


def _ceiling(rank: Rank) -> int:
    return int(min(separation_upper(rank["M"], rank["R"], rank["T"], rank["L"]), *rank["shape"]))


def _exceptions(ranks: Sequence[Rank]) -> int:
    return sum(rank["rank"] < separation_lower(rank["M"], rank["R"], rank["T"], rank["L"]) for rank in ranks)


def _series(ranks: Sequence[Rank], depth: int) -> Series:
    chosen = [rank for rank in ranks if rank["L"] == depth]
    horizons = sorted({rank["T"] for rank in chosen})
    least = [min(rank["rank"] for rank in chosen if rank["T"] == T) for T in horizons]
    return Series(entry=f"L{depth}", x=horizons, y=least)


def _mark(ranks: Sequence[Rank], size: int, depth: int) -> Mark:
    horizons = sorted({rank["T"] for rank in ranks})
    bounds = [separation_lower(size, size, T, depth) for T in horizons]
    name = "Theorem 1" if depth == 2 else "Conjecture 1"
    return Mark(kind="xy", label=f"{name}, depth {depth}", x=horizons, y=bounds)


def _table(ranks: Sequence[Rank]) -> Table:
    columns = ("M", "R", "T", "depth", "lower bound", "rank", "upper bound", "float64 rank")
    keys = sorted({(rank["M"], rank["R"], rank["T"], rank["L"]) for rank in ranks})
    rows = []
    for key in keys:
        same = [rank for rank in ranks if (rank["M"], rank["R"], rank["T"], rank["L"]) == key]
        found, floats = _range(rank["rank"] for rank in same), _range(rank["float_rank"] for rank in same)
        rows.append([*key, separation_lower(*key), found, _ceiling(same[0]), floats])
    note = "Ranks over the seeds: one number where all agree. Bounds: Theorem 1 up to depth 2, Conjecture 1 at 3."
    return Table(
        name="ranks",
        title="Start-End separation ranks",
        columns=[Column(title=title, numeric=True) for title in columns],
        rows=rows,
        note=note,
    )


def _range(values: Any) -> str:
    found = sorted(set(values))
    return str(found[0]) if len(found) == 1 else f"{found[0]} to {found[-1]}"


def _listed(numbers: Sequence[int]) -> str:
    return ", ".join(map(str, numbers))
