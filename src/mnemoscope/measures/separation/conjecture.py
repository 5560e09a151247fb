"""Conjectured bounds on the separation rank of RACs, tried on random weights over many sizes."""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import torch
from jaxtyping import Int

from mnemoscope.core.arrays import positive
from mnemoscope.core.errors import expected, positive_int
from mnemoscope.core.result import Result, result
from mnemoscope.measures.registry import Cost, measure
from mnemoscope.measures.separation.bounds import Bound, Case, Counterexample, all_bounds
from mnemoscope.measures.separation.grid import exact_rank
from mnemoscope.measures.separation.inputs import grid_side, random_templates, require_grid
from mnemoscope.nn.networks.rac import RAC
from mnemoscope.theory.formulas.separation import separation_upper

if TYPE_CHECKING:
    from mnemoscope.report import chart

__all__ = ["SeparationConjecture", "separation_conjecture"]

_SIDE = 512  # of the largest grid on which a lower bound gets another chance, with more templates than channels
_REACH = 1 << 31  # weights are integers of this size: large enough that no draw is special

HELD, ATTAINED, UNDECIDED, FAILED = range(4)


@result
class SeparationConjecture(Result):
    """Counts of how often each bound on the separation rank held, and was attained.

    Attributes
    ----------
    cases
        The sizes (M, R, T, L) that were tried, one per row.
    bounds
        Names of the bounds.
    values
        What each bound says of each case; -1 where it says nothing.
    ranks
        The rank on one-hot templates of each draw; -1 where the budget ended before.
    held, attained, undecided, failed
        In how many draws of a case a bound held; was equal to the rank; could not be decided, because a lower bound was
        not met on the largest grid that was tried, while the rank still grew; failed.
    counterexamples
        Each in a line.
    files
        Where they were saved.
    seed
        From which all weights were drawn.
    """

    measure: ClassVar[str] = "separation-conjecture"
    references: ClassVar[tuple[str, ...]] = ("levine2017",)

    cases: Int[np.ndarray, "cases 4"]
    bounds: tuple[str, ...]
    values: Int[np.ndarray, "cases bounds"]
    ranks: Int[np.ndarray, "cases draws"]
    held: Int[np.ndarray, "cases bounds"]
    attained: Int[np.ndarray, "cases bounds"]
    undecided: Int[np.ndarray, "cases bounds"]
    failed: Int[np.ndarray, "cases bounds"]
    counterexamples: tuple[str, ...]
    files: tuple[str, ...]
    seed: int

    def __str__(self) -> str:
        tried = int((self.ranks >= 0).sum())
        found = ", ".join(f"{name} held in {text}" for name, text in self.facts().items())
        count = len(self.counterexamples)
        return f"{tried} draws of {len(self.cases)} sizes: {found}; {count} counterexample{'s' * (count != 1)}"

    def facts(self) -> dict[str, str]:
        """Return for each bound in how many draws it held and was attained."""
        tried = (self.values >= 0) * (self.ranks >= 0).sum(axis=1, keepdims=True)
        return {
            name: f"{self.held[:, b].sum()} of {tried[:, b].sum()} (attained in {self.attained[:, b].sum()})"
            + (f", {undecided} undecided" if (undecided := int(self.undecided[:, b].sum())) else "")
            for b, name in enumerate(self.bounds)
            if (self.values[:, b] >= 0).any()
        }

    def table(self) -> str:
        """Return a Markdown table: a row for each size, with its ranks, and for each bound its value and record."""
        head = ["M", "R", "T", "L", "rank", *self.bounds]
        lines = ["| " + " | ".join(head) + " |", "|" + "---:|" * len(head)]
        for row, sizes in enumerate(self.cases):
            ranks = sorted(set(self.ranks[row][self.ranks[row] >= 0].tolist()))
            cells = [*map(str, sizes), ", ".join(map(str, ranks)) or "-"]
            cells += [self._cell(row, b) for b in range(len(self.bounds))]
            lines.append("| " + " | ".join(cells) + " |")
        return "\n".join(lines)

    def plot(self) -> chart.Chart:
        """Draw in which share of the draws each bound held, and was attained, by depth and length."""
        from mnemoscope.report import chart

        return chart.beside(self._heat_map(self.held, "held"), self._heat_map(self.attained, "attained"))

    def _cell(self, row: int, b: int) -> str:
        if self.values[row, b] < 0:
            return ""
        tried = int((self.ranks[row] >= 0).sum())
        return f"{self.values[row, b]} (held {self.held[row, b]}/{tried}, attained {self.attained[row, b]}/{tried})"

    def _heat_map(self, counts: np.ndarray, word: str) -> chart.Chart:
        from mnemoscope.report import chart

        columns = sorted({(L, T) for _, _, T, L in self.cases.tolist()})
        rows = [b for b in range(len(self.bounds)) if (self.values[:, b] >= 0).any()]
        drawn = (self.ranks >= 0).sum(axis=1)
        shares = np.full((len(rows), len(columns)), np.nan)
        for (i, b), (j, (L, T)) in itertools.product(enumerate(rows), enumerate(columns)):
            here = (self.cases[:, 3] == L) & (self.cases[:, 2] == T) & (self.values[:, b] >= 0)
            if drawn[here].sum():
                shares[i, j] = counts[here, b].sum() / drawn[here].sum()
        return chart.heat_map(
            shares,
            x="layers L, steps T",
            y="",
            value=f"share {word}",
            title=f"Share of draws in which it {'held' if word == 'held' else 'was attained'}",
            x_ticks=[f"{L}, {T}" for L, T in columns],
            y_ticks=[self.bounds[b] for b in rows],
            reach=(0.0, 1.0),
        )


_COST = Cost(
    time={"C D G^3": 1e-6},
    memory="G^2",
    sizes={
        "C": lambda given: math.prod(len(given[name]) for name in ("channels", "widths", "horizons", "depths")),
        "D": "draws",
        "G": lambda given: grid_side(max(given["channels"]), 1, max(given["horizons"])),
    },
    letters={"C": "cases", "D": "draws", "G": "rows of the largest grid, M^(T/2) for M channels"},
)


@measure("separation-conjecture", kinds=(), cost=_COST)
def separation_conjecture(
    channels: tuple[int, ...] = (2, 3),
    widths: tuple[int, ...] = (2, 3),
    horizons: tuple[int, ...] = (4, 6),
    depths: tuple[int, ...] = (1, 2, 3),
    draws: int = 3,
    seed: int = 0,
    *,
    folder: str | None = None,
    conjectures: Mapping[str, Callable[[int, int, int, int], int]] | None = None,
    budget: float | None = None,
) -> SeparationConjecture:
    """Draw weights of RACs over many sizes, and report how often each bound on the separation rank holds.

    Tried are Theorem 1, the sharper formula for two layers, Conjecture 1, the upper bound, and what the user adds.
    Weights are random integers of 32 bits, and ranks are exact, on one-hot templates. Where a lower bound is not met
    on these, more templates are added until it is, or until the rank no longer grows: that is a counterexample.

    Parameters
    ----------
    channels
        Numbers M of input channels.
    widths
        Numbers R of hidden channels.
    horizons
        Even numbers T of steps.
    depths
        Numbers L of layers.
    draws
        Weights drawn for each size.
    seed
        Of all draws.
    folder
        Where counterexamples are saved, each with its numbers, and a program that verifies them.
    conjectures
        Lower bounds of your own: names, and functions of (M, R, T, L).
    budget
        Seconds after which no more weights are drawn.

    Examples
    --------
    >>> lab = separation_conjecture(channels=(2,), widths=(2,), horizons=(4,), depths=(2, 3), draws=2)
    >>> lab.facts()["conjecture 1"], lab.facts()["upper bound"]
    ('4 of 4 (attained in 2)', '4 of 4 (attained in 4)')
    """
    cases = _cases(channels, widths, horizons, depths)
    bounds = all_bounds(conjectures)
    draws, deadline = positive_int("draws", draws), _deadline(budget)
    for case in cases:
        require_grid(case.M, case.T, True)
    values = np.array([[bound.value(case) for bound in bounds] for case in cases])
    ranks = np.full((len(cases), draws), -1)
    record = np.zeros((4, *values.shape), dtype=np.int64)
    failures: list[Counterexample] = []
    for draw, (row, case) in itertools.product(range(draws), enumerate(cases)):
        if time.monotonic() > deadline:
            break
        trial = _Trial(case, seed, draw)
        ranks[row, draw] = trial.rank
        for b in np.flatnonzero(values[row] >= 0):
            outcome, counterexample = trial.judge(bounds[b], int(values[row, b]))
            record[outcome, row, b] += 1
            failures += [counterexample] if counterexample else []
    return SeparationConjecture(
        status="exact",
        digits=16,
        assumptions=("random integer weights are generic", "no minor vanishes modulo the primes"),
        cost="O(M^T) steps of the network, O(M^(3T/2)) for the rank, for each draw",
        cases=np.array([tuple(asdict(case).values()) for case in cases]),
        bounds=tuple(bound.name for bound in bounds),
        values=values,
        ranks=ranks,
        held=record[HELD] + record[ATTAINED],
        attained=record[ATTAINED],
        undecided=record[UNDECIDED],
        failed=record[FAILED],
        counterexamples=tuple(map(str, failures)),
        files=() if folder is None else tuple(str(each.save(Path(folder))) for each in failures),
        seed=seed,
    )


class _Trial:
    """One draw of weights for a case, and its rank on one-hot templates and on more."""

    def __init__(self, case: Case, seed: int, draw: int) -> None:
        self.case, self.seed, self.draw = case, seed, draw
        self.network = RAC(case.M, case.R, num_layers=case.L, output_size=1, generator=torch.Generator())
        source = np.random.default_rng([seed, case.M, case.R, case.T, case.L, draw])
        self.weights = {
            name: source.integers(-_REACH, _REACH, size=tuple(parameter.shape))
            for name, parameter in self.network.named_parameters()
        }
        self.rank = self.rank_on(np.eye(case.M))

    def rank_on(self, templates: np.ndarray) -> int:
        """Return the rank on the sequences of some templates."""
        sizes = (self.case.M, self.case.R, self.case.T, self.case.L)
        ceiling = separation_upper(*sizes, templates=len(templates))
        start = tuple(range(self.case.T // 2))
        return exact_rank(self.network, templates, self.case.T, start, 0, ceiling, self.weights)[0]

    def judge(self, bound: Bound, value: int) -> tuple[int, Counterexample | None]:
        """Return what became of a bound, with a counterexample when it failed."""
        if bound.holds(value, self.rank):
            return (ATTAINED if value == self.rank else HELD), None
        if bound.kind != "lower" or self.case.L == 1:  # one layer is linear in each input: one-hot templates suffice
            return FAILED, self._counterexample(bound, value, np.eye(self.case.M), self.rank)
        return self._with_more_templates(bound, value)

    def _with_more_templates(self, bound: Bound, value: int) -> tuple[int, Counterexample | None]:
        """Decide a lower bound that is not met on one-hot templates."""
        ranks = [self.rank]
        templates = np.eye(self.case.M)
        for templates in self._larger():
            ranks.append(self.rank_on(templates))
            if ranks[-1] >= value:
                return HELD, None
            if ranks[-1] in (ranks[-2], self.case.upper):
                break
        if ranks[-1] in (*ranks[-2:-1], self.case.upper) or self.case.upper < value:
            return FAILED, self._counterexample(bound, value, templates, ranks[-1])
        return UNDECIDED, None

    def _larger(self) -> Iterator[np.ndarray]:
        extra = random_templates(_SIDE, self.case.M, self.seed)
        for count in range(self.case.M + 1, _SIDE):
            if count ** (self.case.T // 2) > _SIDE:
                return
            yield np.vstack([np.eye(self.case.M), extra[: count - self.case.M]])

    def _counterexample(self, bound: Bound, value: int, templates: np.ndarray, rank: int) -> Counterexample:
        return Counterexample(self.case, bound, value, rank, self.seed, self.draw, self.weights, templates)


def _cases(channels: Any, widths: Any, horizons: Any, depths: Any) -> list[Case]:
    named = {"channels": channels, "widths": widths, "horizons": horizons, "depths": depths}
    lists = []
    for name, values in named.items():
        try:
            numbers = [positive_int(name, value) for value in values]
        except TypeError:
            raise expected(name, "a list of positive integers", values) from None
        if not numbers:
            raise expected(name, "at least one positive integer", values)
        lists.append(numbers)
    for horizon in lists[2]:
        if horizon % 2:
            raise expected("horizons", "even, so that each has two halves", horizon)
    return [Case(M, R, T, L) for L, M, R, T in itertools.product(lists[3], *lists[:3])]


def _deadline(budget: float | None) -> float:
    return float("inf") if budget is None else time.monotonic() + positive("budget", budget)
