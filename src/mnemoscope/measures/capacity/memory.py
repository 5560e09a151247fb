"""Linear and nonlinear memory capacity: the share of the past input that a linear readout of the state recovers."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, cast

import numpy as np
from jaxtyping import Float

from mnemoscope.core.errors import UserError, choice
from mnemoscope.core.result import Result, result
from mnemoscope.measures.capacity.estimate import (
    CHUNK,
    QR,
    SEQUENCES,
    Estimate,
    EstimateSettings,
    estimate,
    number_of_products,
    read_of,
    samples_for,
    variance,
)
from mnemoscope.measures.capacity.given import recovered
from mnemoscope.measures.capacity.linear import LinearCapacity, finite_capacity, linear_capacity, noisy_capacity
from mnemoscope.measures.capacity.network import (
    MOST_LINEAR_UNITS,
    READS,
    Simulator,
    linear_matrices,
    matrix_simulator,
    network_simulator,
    pair,
)
from mnemoscope.measures.capacity.structured import block_capacity
from mnemoscope.measures.dynamics import Dynamics, few_threads
from mnemoscope.measures.registry import Cost, measure
from mnemoscope.theory.formulas.inner import LONGEST

if TYPE_CHECKING:
    from mnemoscope.measures.pace import Pace, Poles
    from mnemoscope.report import chart

__all__ = ["MemoryCapacity", "memory_capacity"]


@result
class MemoryCapacity(Result):
    """Result of `memory_capacity`.

    Attributes
    ----------
    curve
        MC_k: share of the variance of u(t-k) that a linear readout recovers, k = 0, 1, ..
    total
        Sum over all lags (beyond the curve's end too, where it is exact) and all degrees.
    by_degree
        The total of each degree: entry 0 is the linear memory.
    profile
        Capacity by degree and by the longest lag of a product; its first row is `curve`.
    size
        Numbers that the readout sees: no total can exceed it.
    rank
        Of the controllability matrix, for linear networks; None for others.
    radius
        Spectral radius of a linear network; None for others.
    stderr
        Standard error of the total: zero where it is exact.
    chance
        Standard deviation of an entry of `curve` where nothing is remembered: zero where it is exact.
    scales, totals
        Input scales that were swept over, and the total at each; empty without a sweep.
    totals_by_degree
        The same by degree: one row for each scale.
    regularisation
        Square root of the ridge of the readouts, as a share of the largest singular value; zero where it is exact.
    state_size
        Numbers in the state: more than `size` where sums of them were read, and the total is a lower bound; zero where
        it is exact.
    """

    measure: ClassVar[str] = "memory-capacity"
    references: ClassVar[tuple[str, ...]] = ("jaeger2001", "white2004", "dambre2012", "ballarin2024", "ballarin2025")

    curve: Float[np.ndarray, " lags"]
    total: float
    by_degree: Float[np.ndarray, " degrees"]
    profile: Float[np.ndarray, "degrees lags"]
    size: int
    rank: int | None
    radius: float | None
    stderr: float
    chance: float
    scales: Float[np.ndarray, " scales"]
    totals: Float[np.ndarray, " scales"]
    totals_by_degree: Float[np.ndarray, "scales degrees"]
    regularisation: float = 0.0
    state_size: int = 0

    def __str__(self) -> str:
        if self.status == "exact":
            found = f"memory capacity {self.total:.10g} of at most {self.size} (exact, {self.digits} digits)"
        else:
            found = f"memory capacity {self.total:.2f} ± {self.stderr:.2f} of at most {self.size} (estimate)"
        if len(self.by_degree) > 1:
            found += ", by degree " + " + ".join(f"{part:.2f}" for part in self.by_degree)
        if self.rank is not None:
            found += f"; inputs reach {self.rank} dimensions of the state"
        if len(self.scales):
            found += f"; from {self.totals.min():.2f} to {self.totals.max():.2f} over input scales {self._range()}"
        half = f"at least half of u(t-k) up to lag k = {self.half}" if self.half >= 0 else "less than half of u(t)"
        return f"{found}; {half}"

    def _range(self) -> str:
        return f"{self.scales.min():g} to {self.scales.max():g}"

    @property
    def half(self) -> int:
        """The last lag up to which at least half of the variance is recovered at every lag; -1 for none."""
        below = np.flatnonzero(self.curve < 0.5)
        return int(below[0]) - 1 if below.size else len(self.curve) - 1

    def plot(self) -> chart.Chart:
        """Draw the capacity by lag, a curve for each degree; beside it the totals by input scale, if swept."""
        from mnemoscope.report import Mark, chart

        shown = self.profile[:, : self._end()]
        lags = np.arange(shown.shape[1])
        names = [_degree_name(d, len(shown)) for d in range(1, len(shown) + 1)]
        by_lag = chart.lines(
            {name: (lags, row) for name, row in zip(names, shown, strict=True)},
            x="lag k (steps)" if len(shown) == 1 else "longest lag of a product (steps)",
            y="share of variance recovered" if len(shown) == 1 else "capacity",
            title="Memory capacity by lag",
        )
        if not len(self.scales):
            return by_lag
        series = {name: (self.scales, self.totals_by_degree[:, d]) for d, name in enumerate(names)}
        if len(names) > 1:
            series["all"] = (self.scales, self.totals)
        rank = () if self.rank is None else (Mark(kind="y", label="dimensions reached", value=float(self.rank)),)
        by_scale = chart.lines(
            series, x="input scale", y="capacity", title="Total by input scale", log_x=True, points=True, marks=rank
        )
        return chart.beside(by_lag, by_scale)

    def _end(self) -> int:
        """Where drawing stops: a little after the last lag with a visible capacity."""
        visible = np.flatnonzero((self.profile > max(2e-3, 3 * self.chance)).any(axis=0))
        lags = int(self.profile.shape[1])
        return min(lags, 2 + int(1.15 * visible[-1])) if visible.size else lags


def _degree_name(degree: int, degrees: int) -> str:
    return "linear" if degree == 1 else f"degree {degree}" if degrees > 1 else ""


_TRIED = 3000
"""Products that are tried of a large state until they are chance, of one that forgets within the longest lag."""

_ECHOES = 40.0
"""Nats that the response of a linear network falls before its transform is long enough."""

_CACHED, _UNCACHED = 2**17, 1.2e-8
"""Numbers in a state up to which the caches hold what is driven side by side; seconds for each of larger ones."""

_CHANCE = 1e-3
"""Share of a disturbance's square below which an input is taken for forgotten."""


def _paced(n: Mapping[str, float], pace: Pace) -> float:
    """Return seconds: of the driven steps, of factoring what is read, and of the products of past inputs."""
    whole = int(n["S"])
    read, scales = pace.read or whole, cast("tuple[float, ...]", n["scales"] or ())
    if pace.poles is not None:
        return 0.02 + 50 * pace.step(1) + 2e-9 * pace.poles.count * _points(pace.poles, whole) * pace.arithmetic
    if pace.linear and read == whole <= MOST_LINEAR_UNITS:
        return whole * pace.pull.each + 1e-8 * whole**3 * pace.arithmetic
    size = read_of(read, int(n["sums"] or 0) or None)
    samples = int(n["samples"] or samples_for(size)) * (1 + len(scales))
    longest = int(n["lag"] or min(2 * size, 512))
    most = number_of_products(int(n["degree"]), longest)
    steps = longest + 100 + samples / SEQUENCES
    drive = steps * (pace.step(SEQUENCES) + (_UNCACHED * SEQUENCES * whole if whole > _CACHED else 0.0))
    if size <= QR:
        factors, products = 5e-10 * samples * size**2, most
    else:
        holds = pace.lags(_CHANCE, longest) >= longest
        factors, products = 9e-11 * samples * size**2 + 4e-10 * size**3, most if holds else min(most, _TRIED)
    return 0.05 + drive + pace.arithmetic * (factors + 1.4e-10 * samples * size * products) + 6e-9 * samples * products


def _points(poles: Poles, size: int) -> float:
    """Return about how many points the transform needs of a network that delays so much, and forgets after that."""
    if not 0 < poles.radius < 1:
        return 4 * size
    return min(max(4 * size, 2 * poles.delay + _ECHOES / -math.log(poles.radius)), LONGEST)


_COST = Cost(
    time={"P S^2": 5.2e-10, "P S M": 8e-11, "P M": 8e-9, "P": 5e-6},
    memory="P S",
    sizes={
        "P": lambda given: (
            (given["samples"] or samples_for(read_of(int(given["S"]), given["sums"])))
            * (1 + len(given["scales"] or ()))
        ),
        "M": lambda given: number_of_products(given["degree"], given["lag"] or min(2 * given["S"], 512)),
    },
    letters={"M": "products of past inputs"},
    paced=_paced,
)


@measure(
    "memory-capacity",
    kinds=("recurrent",),
    needs=(),
    matrices={"W": "matrix", "v": "input"},
    quick={"lag": 100},
    cost=_COST,
)
def memory_capacity(
    network: Any,
    *,
    degree: int = 1,
    lag: int | None = None,
    horizon: int | None = None,
    noise: float = 0.0,
    scale: float = 1.0,
    scales: tuple[float, ...] | None = None,
    direction: tuple[float, ...] | None = None,
    distribution: str = "uniform",
    read: str = "state",
    samples: int | None = None,
    washout: int | None = None,
    regularisation: float | None = None,
    threshold: bool = False,
    sums: int | None = None,
    exact: bool = True,
    linearised: bool = False,
    inputs: Any = None,
    seed: int = 0,
) -> MemoryCapacity:
    r"""Measure how much of its past input a network's state holds, for a linear readout.

    A white scalar input u drives the network. The capacity for a function z of its past is the share of the variance
    of z that the best linear readout of the state x(t) recovers,

    .. math:: C[z] = 1 - \min_w \frac{\langle (z(t) - w^\top x(t) - w_0)^2 \rangle}{\langle z(t)^2 \rangle},
        \qquad MC_k = C[u(t-k)]

    Summed over an orthonormal basis of functions (products of Legendre polynomials of past inputs, Hermite for normal
    inputs) it is at most the number of units N, and N for a network with fading memory and independent units.

    **Linear networks** (a pair of matrices, or a network whose step is affine) are computed exactly. With
    K = [v, W v, W^2 v, ..], MC_k is the leverage of column k of K, which depends on the eigenvalues that v reaches and
    on nothing else; an orthonormal basis of K's row space gives it without a covariance, whose condition number makes
    regressions lose memory (39 of 50 for an orthogonal matrix at radius 0.99). The total is the rank of K.

    **All others** are driven through their steps in float64; readouts are ridge regressions trained on three quarters
    of the sequences and scored on the fourth, in turn. The noise of a fitted readout is taken out, so that a target of
    which the states know nothing gets zero on average: single entries may be slightly negative.

    Parameters
    ----------
    network
        A recurrent network, or the pair (W, v) of x(t) = W x(t-1) + v u(t).
    degree
        Largest total degree of the products of past inputs; 1 is linear memory.
    lag
        Longest lag. None: exact curves run until 1e-12 of the total is left; estimates to twice the number of units,
        at most 512, for products of degree 2 or more as far as 4096 products of a degree reach.
    horizon
        Start from rest and read after this many inputs. None: the input has always been there; W must be stable.
    noise
        Variance of independent noise on every unit when it is read.
    scale
        Inputs are scale times a number uniform on [-1, 1], or standard normal.
    scales
        Scales at which the total is measured too: that of a nonlinear network depends on the scale of its input, that
        of a linear one is the rank of what inputs reach, at every scale.
    direction
        Vector along which the scalar input enters a network; None: its first channel. The other channels are silent.
    distribution
        Of the input: "uniform" or "gaussian".
    read
        What the readout sees of a network: "state" (h and c of an LSTM), or "output".
    samples
        States that are read in all; None: 8192, or 16 for every unit if that is more (8 beyond 1,024 units).
    washout
        Steps before the first state is read; at least `lag`. None: lag + 100.
    regularisation
        Square root of the ridge, as a share of the largest singular value of the standardised states. None: 1e-13 up to
        512 numbers in a state; beyond, that of 1e-13 to 1e-4 which predicts best.
    threshold
        Set estimates within four standard deviations of chance to zero, as Dambre et al. do; else they are unbiased.
        Of states of more than 512 numbers products are then tried from short lags on, until 256 in a row are zero.
    sums
        Read so many signed sums of the numbers in a state, each number in one of them, instead of all: a lower bound.
        None: all up to 4,096 numbers, 1,024 sums of more.
    exact
        Compute linear networks exactly; False: simulate them as any other.
    linearised
        Measure the network's linearisation at rest, the state to which silence leads: exact for every network.
    inputs
        Sequences of one's own, (time, sequences, input_size), in place of a white input. Then the curve has the share
        of u(t-k), the inputs along `direction`, that a readout recovers, for degree 1; lags of inputs that are not
        white tell of each other, and the sum of their shares may exceed N.
    seed
        Of the inputs.

    Returns
    -------
    MemoryCapacity
        With `.curve` (MC_k from k = 0 on), `.total`, `.by_degree` and more.

    Notes
    -----
    Cost of the exact value: O(N^3 + N^2 L) time for L lags, and up to 64 units (200 where the floats disagree with
    themselves) the exact characteristic polynomial, about O(N^4). Where the state falls apart into numbers or small
    blocks (`transition_blocks`) it is O(N L), and `retnet`, which hears the square of the input, is exact, too. Cost of
    an estimate: O(T N^2 + T N M) time for T samples and M products, O(T N) memory.

    Modes that only the rounding of the weights connects with the input do not count; weak couplings do.

    References
    ----------
    Jaeger (2001); White, Lee and Sompolinsky (2004); Dambre et al. (2012); Ballarin et al. (2024, 2025).

    Examples
    --------
    >>> import numpy as np
    >>> Q = np.linalg.qr(np.random.default_rng(0).normal(size=(50, 50)))[0]
    >>> memory_capacity((0.99 * Q, Q[0])).total
    50.0
    >>> memory_capacity((np.array([[0.5]]), np.array([1.0]))).curve[:3]
    array([0.75 , 0.1875 , 0.046875])
    """
    experiment = EstimateSettings(
        degree=degree,
        lag=lag,
        horizon=horizon,
        noise=noise,
        scale=scale,
        scales=scales,
        distribution=distribution,
        samples=samples,
        washout=washout,
        regularisation=regularisation,
        threshold=threshold,
        sums=sums,
        seed=seed,
    )
    choice("read", read, READS)
    matrices = pair(network)
    if matrices is not None:
        simulator, size = matrix_simulator(*matrices), len(matrices[0])
    else:
        dynamics = Dynamics.of(network, "memory_capacity", differentiable=False, inputs=inputs)
        size = dynamics.size
        if dynamics.inputs is not None:
            return _of_given(dynamics, experiment, direction)
        simulator = network_simulator(dynamics, direction, read)
        if exact and read == "state":
            found = block_capacity(dynamics, direction, experiment, linearised)
            if found is not None:
                return _of_parts(*found, size, experiment)
            matrices = linear_matrices(dynamics, direction, linearised)
    if linearised and not matrices:
        raise UserError(
            "memory_capacity with linearised=True needs exact=True, read='state' and at most "
            f"{MOST_LINEAR_UNITS} numbers in a state that does not fall apart, got {size}"
        )
    with few_threads(size):
        return _exact(*matrices, experiment) if exact and matrices else _estimated(simulator, experiment)


def _of_given(dynamics: Dynamics, asked: EstimateSettings, direction: Any) -> MemoryCapacity:
    """Return what is recovered of each past input under sequences of the user's."""
    with few_threads(dynamics.size):
        found = recovered(dynamics, asked, direction)
    nothing = np.zeros(0)
    return MemoryCapacity(
        status="estimate",
        digits=None,
        assumptions=(
            "the inputs are the sequences that were given",
            "lags of inputs that are not white tell of each other: their shares may sum to more than the units",
        ),
        cost="O(T N^2 + T N L) time for T samples and L lags, O(T N) memory",
        curve=found.curve,
        total=found.total,
        by_degree=np.array([found.total]),
        profile=found.curve[None],
        size=len(found.curve),  # a share is at most one
        rank=None,
        radius=None,
        stderr=found.stderr,
        chance=found.chance,
        scales=nothing,
        totals=nothing,
        totals_by_degree=np.zeros((0, 1)),
    )


def _of_parts(found: LinearCapacity, degree: int, size: int, asked: EstimateSettings) -> MemoryCapacity:
    """Return the capacity of a network whose state hears one polynomial of the input."""
    degrees = (np.arange(1, asked.degree + 1) == degree).astype(float)
    scales = np.array(asked.scales or (), dtype=float)
    return _result(found, degrees, size, scales, scales * 0 + found.total * degrees.sum())


def _exact(W: Float[np.ndarray, "n n"], v: Float[np.ndarray, " n"], asked: EstimateSettings) -> MemoryCapacity:
    found = _linear(W, v, asked, asked.scale)
    scales = np.array(asked.scales or (), dtype=float)
    totals = (
        np.array([_linear(W, v, asked, each).total for each in scales]) if asked.noise else scales * 0 + found.total
    )
    return _result(found, np.eye(asked.degree)[0], len(W), scales, totals)


def _result(
    found: LinearCapacity,
    degrees: Float[np.ndarray, " degrees"],
    size: int,
    scales: Float[np.ndarray, " scales"],
    totals: Float[np.ndarray, " scales"],
) -> MemoryCapacity:
    return MemoryCapacity(
        status="exact",
        digits=found.digits,
        assumptions=tuple(filter(None, ("the input is white", found.note))),
        cost="O(N^3 + N^2 L) time for L lags (O(N^4) for exact polynomials, N <= 64), O(N^2 + L) memory",
        curve=degrees[0] * found.curve,
        total=found.total * float(degrees.sum()),
        by_degree=found.total * degrees,
        profile=degrees[:, None] * found.curve,
        size=size,
        rank=found.rank,
        radius=found.radius,
        stderr=0.0,
        chance=0.0,
        scales=scales,
        totals=totals,
        totals_by_degree=totals[:, None] * degrees,
    )


def _linear(
    W: Float[np.ndarray, "n n"], v: Float[np.ndarray, " n"], asked: EstimateSettings, scale: float
) -> LinearCapacity:
    if asked.noise:
        driven = v * scale * math.sqrt(variance(asked.distribution))
        return noisy_capacity(W, driven, float(asked.noise), asked.lag, asked.horizon)
    if asked.horizon is not None:
        return finite_capacity(W, v, asked.horizon, asked.lag)
    return linear_capacity(W, v, asked.lag)


_UNTIL = f"products were tried from short lags on, until {CHUNK} in a row were chance; the others count as zero"


def _estimated(simulator: Simulator, asked: EstimateSettings) -> MemoryCapacity:
    found = estimate(simulator, asked, asked.scale)
    swept = [estimate(simulator, asked, float(each)) for each in asked.scales or ()]
    by_degree = [each.profile.sum(axis=1) for each in swept]
    unsettled = f"more would be added beyond lag {found.profile.shape[1] - 1}, where the curve has not reached chance"
    return MemoryCapacity(
        status="estimate",
        digits=None,
        assumptions=(
            f"the input is white, {asked.distribution}, of scale {asked.scale:g}",
            *(() if found.settled or asked.horizon is not None else (unsettled,)),
            *(() if found.searched else (_UNTIL,)),
            *_read_as(found),
        ),
        cost="O(T N^2 + T N M) time for T samples and M products, O(T N) memory",
        curve=found.profile[0],
        total=found.total,
        by_degree=found.profile.sum(axis=1),
        profile=found.profile,
        size=found.size,
        rank=None,
        radius=None,
        stderr=found.stderr,
        chance=found.chance,
        scales=np.array(asked.scales or (), dtype=float),
        totals=np.array([each.total for each in swept]),
        totals_by_degree=np.array(by_degree).reshape(len(swept), asked.degree),
        regularisation=found.regularisation,
        state_size=found.whole,
    )


def _read_as(found: Estimate) -> Iterator[str]:
    """Say what of a large state was read, and how."""
    if found.size < found.whole:
        yield f"a lower bound: {found.size:,} sums of the {found.whole:,} numbers in the state were read"
    if found.chosen:
        yield f"of five ridges the one that predicted best: {found.regularisation:g}, squared, of the largest square"
