"""Start-End separation rank: the dependence of a network's answer on the beginning and the end together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, ClassVar, cast

import numpy as np
import torch
from jaxtyping import Float
from torch import nn

from mnemoscope.core.errors import UserError, positive_int
from mnemoscope.core.result import Result, result
from mnemoscope.core.ring import PRIMES, Prime, Real
from mnemoscope.measures.blackbox import Blackbox
from mnemoscope.measures.dynamics import Dynamics, prepare
from mnemoscope.measures.registry import Cost, measure
from mnemoscope.measures.separation.grid import (
    Polynomial,
    RingWalk,
    StepWalk,
    WholeWalk,
    evaluate_grid,
    exact_rank,
    matricise,
)
from mnemoscope.measures.separation.inputs import (
    Templates,
    check_unit,
    grid_side,
    require_grid,
    start_set,
    template_rows,
)
from mnemoscope.measures.separation.singular_values import SingularValues, lost, scaled, singular_values_of
from mnemoscope.nn.networks.rac import RAC
from mnemoscope.nn.recurrent import Recurrent
from mnemoscope.nn.sequence import SequenceNetwork
from mnemoscope.theory.formulas.separation import separation_lower, separation_upper

if TYPE_CHECKING:
    from mnemoscope.measures.pace import Pace
    from mnemoscope.report import chart

__all__ = ["SeparationRank", "separation_rank"]

_WHAT = "separation_rank"


@result
class SeparationRank(Result):
    """The separation rank of a network on a grid of template sequences.

    Attributes
    ----------
    rank
        Of the grid, start by end: never above the separation rank of the function. `status` says what it is:
        ``"exact"`` where it is the function's (a shallow RAC, or the upper bound is reached), ``"bound"`` where it is
        exact of this grid and more templates may raise it, ``"estimate"`` where it was counted in float64.
    exact
        Whether the rank of the grid was computed in exact arithmetic.
    shape
        Of the matricised grid: sequences of the start set, sequences of the end set.
    spectrum
        Singular values of the grid in float64, descending; NaN where the grid leaves float64's range. In grids of more
        than 1024 rows and columns those far beneath the tolerance may be given as zero.
    distance
        From the nearest separable function on the grid, sqrt(1 - s_1^2 / sum s_i^2): 0 is separable.
    entropy
        Of the normalised squared singular values, in nats: exp(entropy) is the soft rank.
    mean_entropy
        Its mean over all outputs, where it was asked for.
    lower, upper
        Bounds for RACs with generic weights: Theorem 1 (one or two layers) or Conjecture 1; the upper bound of
        `mnemoscope.theory.separation_upper`, capped by the shape. None for other networks; no lower bound for
        partitions other than into halves.
    shallow_width
        The hidden size without which no shallow RAC has these outputs: the rank.
    float_rank
        How many singular values exceed the tolerance.
    tolerance
        What counts as zero among the singular values, as a share of the largest.
    gap
        Of the singular values at that cut.
    scaled_rank
        The float rank after scaling rows and columns, which leaves the true rank as it is; None where not needed.
    reliable
        Whether `rank` can be believed: it is exact, or the gap is open before and after scaling, at the same rank.
    primes
        Modulo which the rank was computed; one suffices where it reaches an upper bound.
    templates
        The inputs that the sequences are made of, one per row.
    start
        The steps, from 0, of the start set.
    horizon
        Steps in all.
    """

    measure: ClassVar[str] = "separation-rank"
    references: ClassVar[tuple[str, ...]] = ("levine2017",)

    rank: int
    exact: bool
    shape: tuple[int, int]
    spectrum: Float[np.ndarray, " values"]
    distance: float
    entropy: float
    mean_entropy: float | None
    lower: int | None
    upper: int | None
    shallow_width: int
    float_rank: int
    tolerance: float
    gap: float
    scaled_rank: int | None
    reliable: bool
    primes: tuple[int, ...]
    templates: Templates
    start: tuple[int, ...]
    horizon: int

    def __str__(self) -> str:
        alone = " of one template, which tells nothing: give several, templates=3" if len(self.templates) == 1 else ""
        grid = f"{self.shape[0]} x {self.shape[1]} grid{alone}"
        most = "" if self.upper is None else f", at most {self.upper}"
        bounds = most if self.lower is None else f", bounds {self.lower} to {self.upper}"
        if self.exact:
            what = "exact" if self.status == "exact" else "exact on this grid, a lower bound of the function's"
            return f"separation rank {self.rank} ({what}, {grid}{bounds}), distance from separable {self.distance:.4g}"
        trust = "reliable" if self.reliable else "unreliable"
        return (
            f"separation rank {self.rank} ({trust}: float64, gap {self.gap:.2g} at tolerance {self.tolerance:.1e}, "
            f"{grid}{bounds}), soft rank {np.exp(self.entropy):.4g}, distance from separable {self.distance:.4g}"
        )

    def facts(self) -> dict[str, str]:
        """Return the scalar fields, and the shape."""
        rows, columns = self.shape
        trust = "" if self.exact or self.reliable else " (unreliable)"
        found = {**super().facts(), "shape": f"{rows} x {columns}"}
        return {**found, "rank": f"{self.rank}{trust}"}

    def plot(self) -> chart.Chart:
        """Draw the singular values with the rank, its bounds, and the tolerance of the float rank."""
        from mnemoscope.report import chart

        top = self.spectrum[0] if self.spectrum[0] > 0 else 1.0
        values = np.nan_to_num(self.spectrum / top)
        seen = values > 1e-18  # what rounding has left of smaller ones means nothing
        low = float(values[seen].min(initial=self.tolerance))
        names: dict[int, list[str]] = {}
        for name, at in (("rank", self.rank), ("lower bound", self.lower), ("upper bound", self.upper)):
            if at is not None:
                names.setdefault(at, []).append(name)
        series: dict[str, tuple[Any, Any]] = {"singular values": (np.flatnonzero(seen) + 1, values[seen])}
        series |= {f"{', '.join(same)}: {at}": ([at, at], [low, 1.0]) for at, same in names.items()}
        series[f"float64 cut: {self.float_rank}"] = ([1, len(values)], [self.tolerance] * 2)
        how = "exact" if self.exact else "reliable" if self.reliable else "unreliable"
        return chart.lines(
            series,
            x="index",
            y="singular value / largest",
            title=f"Separation rank {self.rank} ({how})",
            log_y=True,
        )


_OUTPUTS = 128
"""Outputs over which a mean is taken at the most: of more, evenly spaced ones."""


def _paced(n: Mapping[str, float], pace: Pace) -> float:
    """Return seconds: every sequence ends with a step of its own, and half as many lead there; twice modulo primes."""
    sequences = n["G"] ** 2
    steps = 1.5 * sequences * (pace.step.each + 2e-9 * pace.multiplied * pace.arithmetic)
    return steps + 2e-8 * n["G"] ** 3 + 2e-6 * sequences + pace.maps + 0.05


_COST = Cost(
    time={"G^2 S^2": 1.1e-10, "G^3": 2e-9, "G^2": 1e-6},
    memory="G^2",
    sizes={"G": lambda given: grid_side(given["templates"], given["d"], given["horizon"])},
    letters={"G": "rows of the grid, K^(T/2) for K templates"},
    paced=_paced,
)


@measure("separation-rank", kinds=("recurrent", "sequence"), needs=(), cost=_COST)
def separation_rank(
    network: nn.Module | Dynamics,
    horizon: int = 8,
    templates: int | Templates | None = None,
    partition: tuple[int, ...] | None = None,
    unit: int = 0,
    seed: int = 0,
    *,
    exact: bool | None = None,
    tolerance: float | None = None,
    every: bool = False,
    inputs: Any = None,
) -> SeparationRank:
    r"""Return the Start-End separation rank of a network on a grid of template sequences.

    The separation rank of :math:`y(x_1, .., x_T)` is the least K with

    .. math::
        y = \sum_{\nu=1}^{K} g_\nu(x_1, .., x_{T/2}) \, g'_\nu(x_{T/2+1}, .., x_T).

    It is never below the rank of the matrix whose rows are the sequences of templates in the first half, and whose
    columns those in the second. For polynomial networks that rank is exact: of their weights' rational values, modulo
    primes near 2^61. A rank modulo a prime is never too large, and two primes agree or it reaches an upper bound. For
    all other networks it is counted from singular values in float64, and called unreliable when they leave no gap.

    Parameters
    ----------
    network
        A causal network with or without a state, or a module that `mnemoscope.adapt` understands.
    horizon
        Steps T of a sequence.
    templates
        None: the one-hot vectors; a number K: K random integer vectors; an array: its rows.
    partition
        The steps of the start set, from 0; by default the first half.
    unit
        Which output, after the last step.
    seed
        Draws the random templates.
    exact
        False: singular values also for a polynomial network; True: refuse others; None: exact where possible.
    tolerance
        Which share of the largest singular value counts as zero; by default float64's rounding times the larger side.
    every
        Also the mean entropy over all outputs, which their order does not change: `mean_entropy`.
    inputs
        Sequences of one's own, (time, sequences, input_size): random templates are drawn from their steps.

    Examples
    --------
    >>> import torch, mnemoscope as ms
    >>> rac = ms.nn.RAC(3, 2, num_layers=2, output_size=1, generator=torch.Generator().manual_seed(0))
    >>> found = separation_rank(rac, horizon=6)
    >>> found.rank, found.lower, found.upper, found.shape
    (8, 4, 8, (27, 27))
    """
    twin = _prepared(network)
    horizon = _steps(twin, positive_int("horizon", horizon))
    start = start_set(partition, horizon)
    own = inputs if inputs is not None or not isinstance(network, Dynamics) else network.inputs
    rows = template_rows(templates, twin.input_size, seed, own)
    check_unit(unit, twin.output_size)
    exactly = _exactly(exact, twin)
    count = len(rows)
    shape = (count ** len(start), count ** (horizon - len(start)))
    require_grid(count, horizon, exactly)

    lower, upper, ceiling = _bounds(twin, rows, horizon, start, min(shape))
    rank, primes = 0, tuple[int, ...]()
    with ThreadPoolExecutor(1) as beside:  # LAPACK works on the spectrum while the residues are evaluated
        floats = beside.submit(_spectra, twin, rows, horizon, start, unit, tolerance, not exactly, every)
        if exactly:
            rank, primes = exact_rank(cast(Polynomial, twin), rows, horizon, start, unit, ceiling)
        spectrum, again, mean_entropy = floats.result()
    if not exactly:
        rank = spectrum.rank
    elif rank and spectrum.values[0] == 0:  # the grid is not zero, but too small for float64
        spectrum = lost(shape, spectrum.tolerance)
    return SeparationRank(
        status=_status(twin, rows, horizon, start, rank) if exactly else "estimate",
        digits=16 if exactly else None,
        assumptions=_assumptions(exactly),
        cost="O(K^T) steps of the network, O(K^(3T/2)) for the rank; O(K^T) memory",
        rank=rank,
        exact=exactly,
        shape=shape,
        spectrum=spectrum.values,
        distance=spectrum.distance,
        entropy=spectrum.entropy,
        mean_entropy=mean_entropy,
        lower=lower,
        upper=upper,
        shallow_width=rank,
        float_rank=spectrum.rank,
        tolerance=spectrum.tolerance,
        gap=spectrum.gap,
        scaled_rank=None if again is None else again.rank,
        reliable=exactly or (again is not None and again.open and again.rank == spectrum.rank),
        primes=primes,
        templates=rows,
        start=start,
        horizon=horizon,
    )


def _prepared(network: nn.Module | Dynamics) -> Recurrent | SequenceNetwork:
    """Return a copy in float64, or in its own precision where a block takes no other."""
    found: Any = network
    if isinstance(network, nn.Module) and not isinstance(network, Recurrent | SequenceNetwork):
        from mnemoscope.nn.adapt import adapt  # only strangers need it

        found = adapt(network)
    return Blackbox.of(found, _WHAT).network if isinstance(found, SequenceNetwork) else prepare(found, what=_WHAT)


def _steps(network: Recurrent | SequenceNetwork, horizon: int) -> int:
    only = getattr(network, "fixed_length", None)
    if only not in (None, horizon):
        raise UserError(f"{_WHAT} over {horizon} steps needs a network that takes so many, and this one takes {only}")
    return horizon


def _walk(
    network: Recurrent | SequenceNetwork, rows: Templates, unit: int | Sequence[int]
) -> RingWalk | StepWalk | WholeWalk:
    """Return steps in float64, or in a stranger's own precision: of a polynomial network in the ring of reals."""
    if isinstance(network, SequenceNetwork):
        return WholeWalk(Blackbox.of(network, _WHAT), torch.as_tensor(rows, dtype=torch.float64), unit)
    if getattr(network, "polynomial", False):
        exact, ring = cast(Polynomial, network), Real()
        return RingWalk(exact, ring, exact.exact_weights(ring), rows, unit)
    like = network.flatten_state(network.init_state(1))
    return StepWalk(network, torch.as_tensor(rows, dtype=like.dtype, device=like.device), unit)


def _spectra(
    network: Recurrent | SequenceNetwork,
    rows: Templates,
    horizon: int,
    start: tuple[int, ...],
    unit: int,
    tolerance: float | None,
    verify: bool,
    every: bool,
) -> tuple[SingularValues, SingularValues | None, float | None]:
    """Return the grid's singular values, those of the scaled grid to verify an open gap, and the mean entropy.

    The mean is that over `_OUTPUTS` outputs; those that are zero everywhere, or leave float64, are left out.
    """
    count = min(network.output_size, _OUTPUTS) if every else 0
    units = [int(each) for each in np.unique(np.linspace(0, network.output_size - 1, count).round())]
    asked = units if unit in units else [*units, unit]
    with np.errstate(over="ignore", invalid="ignore"):
        columns = evaluate_grid(_walk(network, rows, asked if every else unit), horizon)
    grids = [matricise(np.ascontiguousarray(one), len(rows), horizon, start) for one in np.atleast_2d(columns.T)]
    grid = grids[asked.index(unit)]
    if verify and not np.isfinite(grid).all():
        raise UserError(f"{_WHAT} needs outputs that stay finite, and this network's overflow within {horizon} steps")
    found = singular_values_of(grid, tolerance)
    entropies = [each.entropy for each in map(singular_values_of, grids[: len(units)]) if each.values[0] > 0]
    again = singular_values_of(scaled(grid), tolerance) if verify and found.open else None
    return found, again, float(np.mean(entropies)) if entropies else None


def _bounds(
    network: Recurrent | SequenceNetwork, rows: Templates, horizon: int, start: tuple[int, ...], largest: int
) -> tuple[int | None, int | None, int]:
    """Return the bounds of a RAC, and what the rank on this very grid cannot exceed.

    Its channels are those that the templates span.
    """
    if not isinstance(network, RAC):
        return None, None, largest
    field = Prime(PRIMES[0])
    channels = field.rank(field.array(rows))
    if channels == 0:
        return 0, 0, 0
    sizes = (channels, network.hidden_size, horizon, network.num_layers)
    upper = min(separation_upper(*sizes, start), largest)
    ceiling = separation_upper(*sizes, start, templates=len(rows))
    if horizon % 2 or start != tuple(range(horizon // 2)):
        return None, upper, ceiling
    lower = separation_lower(*sizes)
    if network.num_layers == 1 and network.readout_size is None:  # one unit of h sees the last input as one number
        lower = min(lower, channels ** (horizon // 2 - 1))
    return min(lower, upper), upper, ceiling


def _status(
    network: Recurrent | SequenceNetwork, rows: Templates, horizon: int, start: tuple[int, ...], rank: int
) -> str:
    """Say whether the exact rank of a grid is that of the function: ``"exact"``, or ``"bound"`` from below."""
    if not isinstance(network, RAC):
        return "bound"
    spanned = Prime(PRIMES[0]).rank(Prime(PRIMES[0]).array(rows)) == network.input_size
    if network.num_layers == 1 and spanned:  # linear in every input: what spans the inputs spans the function
        return "exact"
    sizes = (network.input_size, network.hidden_size, horizon, network.num_layers)
    return "exact" if rank == separation_upper(*sizes, start) else "bound"


def _exactly(exact: bool | None, network: Recurrent | SequenceNetwork) -> bool:
    polynomial = bool(getattr(network, "polynomial", False))
    if exact and not polynomial:
        name = type(getattr(network, "module", network)).__name__
        raise UserError(
            f"{_WHAT} with exact=True needs a polynomial network, got {name}; exact=None gives its float64 spectrum"
        )
    return polynomial if exact is None else bool(exact)


def _assumptions(exactly: bool) -> tuple[str, ...]:
    found = (
        "the rank on a grid is a lower bound of the function's, with equality for a shallow RAC",
        "more templates may raise it: separation_saturation takes them until it no longer grows",
    )
    if exactly:
        return (*found, "weights are the exact rational values of their floats", "no minor vanishes modulo the primes")
    return (*found, "singular values beneath the tolerance are rounding")
