"""Fisher memory of any recurrent network: the information of its noisy state about an input, by lag."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn

from mnemoscope.core import memory
from mnemoscope.core.arrays import non_negative, vector
from mnemoscope.core.errors import UserError, expected, positive_int
from mnemoscope.core.result import Result, result
from mnemoscope.measures.blocks import Blocks, blocks_of
from mnemoscope.measures.dynamics import Dynamics, Jacobians, few_threads
from mnemoscope.measures.fisher.conventions import trusted_digits
from mnemoscope.measures.fisher.krylov import krylov_information, shortfall, window
from mnemoscope.measures.fisher.linearised import BLOCK, SETTLED, Propagated, best_direction, information, propagate
from mnemoscope.measures.fisher.noise import Noise, check_noise, white, with_activity
from mnemoscope.measures.fisher.structured import Driven, block_memory
from mnemoscope.measures.fisher.vector import FisherMemory, fisher_memory
from mnemoscope.measures.registry import Cost, measure
from mnemoscope.measures.spectral.eigenvalues import spectral_radius
from mnemoscope.measures.tangent import Tangents
from mnemoscope.measures.trajectory import Path, affine, constant_jacobians, drive

if TYPE_CHECKING:
    from mnemoscope.report import chart

__all__ = ["NetworkFisherMemory", "network_fisher_memory"]


@result
class NetworkFisherMemory(Result):
    """Fisher memory of a network along driven trajectories.

    Attributes
    ----------
    curve
        J(k): information about the input k steps ago, averaged over trajectories.
    total
        Its sum over all lags.
    stderr
        Standard error of the total over trajectories; zero for a linear network, where all are alike.
    curve_stderr
        Standard error of each J(k).
    direction
        The unit input direction along which the signal enters.
    totals
        The total of each trajectory.
    horizon
        Steps, which is also the number of noise terms and of lags.
    settled
        Whether a longer horizon would change nothing that can be seen.
    tail
        The share of the information about the noise that lies beyond the horizon, estimated; infinite where it does
        not fall.
    linear
        Whether the Jacobians are the same everywhere, so that nothing was linearised.
    noise
        Variance of the noise on every unit at every step; ``"relative"`` or ``"mixture"`` where units have their own.
    size
        Units with noise, N: no unit input direction can have a total above N |B|^2 / noise.
    missing
        Of a large state, by what share the total may be larger: it was met in a subspace, which gives a lower bound.
        Zero where the whole covariance was inverted.
    """

    measure: ClassVar[str] = "network-fisher"
    references: ClassVar[tuple[str, ...]] = ("ganguli2008",)

    curve: Float[np.ndarray, " lags"]
    total: float
    stderr: float
    curve_stderr: Float[np.ndarray, " lags"]
    direction: Float[np.ndarray, " input"]
    totals: Float[np.ndarray, " trajectories"]
    horizon: int
    settled: bool
    tail: float
    linear: bool
    noise: float | str
    size: int
    missing: float = 0.0

    @property
    def half_life(self) -> int | None:
        """The lag by which half of the total is reached; at least that unless `settled`. None of nothing."""
        if not self.total > NOTHING:
            return None
        reached = np.flatnonzero(np.cumsum(self.curve) >= self.total / 2)
        return int(reached[0]) if len(reached) else len(self.curve) - 1

    def __str__(self) -> str:
        spread = "" if self.linear else f" ± {self.stderr:.2g}"
        spread += f" (at most {self.missing:.1%} more)" if self.missing else ""
        end = "settled" if self.settled else "not settled"
        return f"Fisher memory {self.total:.8g}{spread} over {self.horizon} lags ({end}), {self.size} noisy units"

    def plot(self) -> chart.Chart:
        """Draw the curve with its band of one standard error, as far as it can be seen."""
        from mnemoscope.report import chart

        high = np.flatnonzero(self.curve > 1e-3 * self.curve.max(initial=0))
        lags = np.arange((int(high[-1]) if len(high) else 0) + 1)
        mean, error = self.curve[lags], np.nan_to_num(self.curve_stderr[lags])
        return chart.lines(
            {"J(k)": (lags, mean)},
            bands={"J(k)": (np.maximum(mean - error, 0), mean + error)},
            x="lag k (steps)",
            y="Fisher information J(k)",
            title=f"Fisher memory, total {self.total:.4g}" + ("" if self.linear else f" ± {self.stderr:.2g}"),
        )


NOTHING = 1e-12
"""Information below which nothing can be said of how it is spread: the states are zero but for rounding."""

DENSE = 512
"""Numbers in a state up to which the whole covariance is formed."""

_COST = Cost(
    time={"B T S^2 M": 2.5e-10, "B T": 5e-5},
    memory="B T S d",
    sizes={
        "T": "horizon longest",
        "B": "trajectories",
        "M": lambda given: given["S"] if given["S"] <= DENSE else min(given["S"], 48 * given["krylov"]),
    },
    letters={"M": "directions, S of them up to S = 512"},
)


@measure(
    "network-fisher",
    kinds=("recurrent",),
    needs=("jacobian",),
    quick={"trajectories": 4, "longest": 128, "washout": 32},
    cost=_COST,
)
def network_fisher_memory(
    network: nn.Module | Dynamics,
    direction: tuple[float, ...] | None = None,
    *,
    noise: float | str = 1.0,
    horizon: int | None = None,
    longest: int = 1000,
    trajectories: int = 8,
    krylov: int = 12,
    tolerance: float = 1e-3,
    scale: float = 1.0,
    washout: int = 100,
    seed: int = 0,
    device: str | None = None,
) -> NetworkFisherMemory:
    r"""Return the Fisher information that the noisy state of any recurrent network holds about its past inputs.

    Noise of variance :math:`\epsilon` is on every unit of the state (`readout_state`: h and c of an LSTM) after every
    step, and a signal s enters along the input direction u,

    .. math::
        h_t = f(h_{t-1}, x_t + u s_t) + z_t, \quad z_t \sim N(0, \epsilon I).

    Along a trajectory under inputs x, and linearised around it, the state at its end is Gaussian, and tells of s_{T-k}

    .. math::
        J(k) = b_{T-k}^\top P_k^\top C^{-1} P_k b_{T-k}, \quad
        C = \epsilon \sum_{k<T} P_k P_k^\top, \quad P_k = A_T A_{T-1} \cdots A_{T-k+1},

    with :math:`A_t = \partial f / \partial h` and :math:`b_t = (\partial f / \partial x) u` at step t, averaged over
    trajectories. For a linear network this is `fisher_memory` of its matrices.

    Rescaling a unit, which changes no function, changes the information under noise of one variance.
    ``noise="relative"`` gives each unit noise of its own variance along the trajectory (both parts of a complex unit as
    one, constant units left out), so that neither rescaling nor permuting units changes anything. It rewards
    redundant units, whose independent noise averages out; ``noise="mixture"``, 0.9 of the covariance of the states
    and 0.1 of that, does not.

    Beyond 512 numbers in the state C is never formed: it is met in the block Krylov space of the signals, which grows
    until a block adds less than `tolerance`. That is a lower bound; `missing` says by what share it may be larger, from
    what the last blocks added.

    Parameters
    ----------
    network
        A recurrent network, or any module that `mnemoscope.adapt` understands.
    direction
        u, the input direction of the signal, as it is (it need not be a unit vector); None: the unit vector with the
        largest total.
    noise
        Variance of the noise on every unit, or ``"relative"``, or ``"mixture"``.
    horizon
        Steps with noise and signal; None: as many as the curve needs to settle, `longest` at most.
    longest
        Steps that a network may take to settle.
    trajectories
        Trajectories to average over.
    krylov, tolerance
        Of a large state: most blocks of the subspace, and the share of the total below which the gain of one ends it.
    scale
        Standard deviation of the Gaussian inputs that drive the network.
    washout
        Steps before the first that counts; between one and two times as many are taken.
    seed
        Of inputs and phases.
    device
        Where to compute; None: where the network is.

    Returns
    -------
    NetworkFisherMemory
        With ``.curve``, ``.total`` and ``.stderr``.

    Notes
    -----
    Cost: O(trajectories T S^3) time for S numbers in the state, and O(trajectories T S d) memory for d inputs; beyond
    S = 512 O(trajectories T S^2) time for each of some tens to hundreds of directions. Networks
    whose state falls apart (`transition_blocks`: diagonal recurrences, linear attention, delta rules) take
    O(trajectories T (G m^3 + S (m + d))) for G groups of m rows.

    References
    ----------
    Ganguli, Huh and Sompolinsky (2008), for linear networks.

    Examples
    --------
    >>> import torch, mnemoscope as ms
    >>> from mnemoscope.measures.fisher.network import network_fisher_memory
    >>> layer = ms.nn.LinearRNN(1, 3, bias=False)
    >>> layer.weight_hh_l0 = torch.diag(torch.ones(2), -1)  # a delay line
    >>> layer.weight_ih_l0 = torch.tensor([[1.0], [0.0], [0.0]])
    >>> print(network_fisher_memory(layer).curve.round(6))
    [1.       0.5      0.333333]
    """
    kind = check_noise(noise)
    positive_int("krylov", krylov)
    steps = positive_int("longest", longest) if horizon is None else positive_int("horizon", horizon)
    count, spread = positive_int("trajectories", trajectories), non_negative("scale", scale)
    before = 0 if washout == 0 else positive_int("washout", washout)
    flow = Dynamics.of(network, WHAT, device=device)
    along = None if direction is None else _direction(direction, flow.input_size)
    with few_threads(flow.size):
        blocks = None if isinstance(kind, str) else blocks_of(flow)
        if blocks is not None and not isinstance(kind, str):
            return _of_blocks(blocks, along, kind, horizon, steps, Driven(count, spread, before, seed))
        fixed = constant_jacobians(flow) if flow.size <= DENSE else None
        if fixed is not None and not isinstance(kind, str):
            return linear_memory(fixed, flow.readout(), along, kind, horizon, steps)
        if flow.size <= DENSE:
            _require_memory(flow, steps, count)
            _COST.require_end(WHAT, S=flow.size, T=steps, B=count, M=flow.size)
        linear = fixed is not None or (flow.size > DENSE and affine(flow))
        generator = torch.Generator().manual_seed(seed)
        path = drive(
            flow,
            steps=steps,
            trajectories=1 if linear and not isinstance(kind, str) else count,
            scale=spread,
            washout=before,
            generator=generator,
        )
        shape = with_activity(path, kind) if isinstance(kind, str) else white(flow.readout())
        asked = _Asked(path, shape, along, kind, horizon, steps, linear)
        if flow.size > DENSE and Tangents(path, keep=False).pushes:
            return _by_subspace(asked, krylov, tolerance, generator)
        if fixed is not None and shape.everywhere:
            eye = torch.eye(flow.size).to(shape.scale)
            exact = linear_memory(shape.white_jacobians(fixed), eye, along, 1.0, horizon, steps)
            return replace(exact, noise=kind)
        return _by_covariance(asked)


@dataclass(frozen=True)
class _Asked:
    """What is asked of a network: along which path, under which noise, about which direction and window."""

    path: Path
    shape: Noise
    direction: Float[np.ndarray, " input"] | None
    noise: float | str
    horizon: int | None
    steps: int
    linear: bool

    @property
    def level(self) -> float:
        """What the information under noise of variance one is divided by."""
        return 1.0 if isinstance(self.noise, str) else self.noise


def _by_covariance(asked: _Asked) -> NetworkFisherMemory:
    """Form the whole covariance, and invert it."""
    path, shape = asked.path, asked.shape
    flow, count = path.dynamics, path.inputs.shape[1]
    jacobians: Iterable[Jacobians] = path.backwards(BLOCK)
    rows, entry = shape.rows, None
    if isinstance(asked.noise, str) and shape.everywhere:
        jacobians = map(shape.white_jacobians, jacobians)
    elif isinstance(asked.noise, str):
        rows = shape.read(torch.eye(flow.size).to(rows)).mT
        entry = shape.enter(torch.eye(shape.units).to(rows)).mT
    found = propagate(jacobians, rows, count, until_settled=asked.horizon is None, entry=entry)
    if asked.horizon is not None:
        _require_digits(found)
    answers = found.answers()
    along = best_direction(answers) if asked.direction is None else asked.direction
    return _estimate(information(answers, along) / asked.level, along, asked.noise, found, found.units)


def _by_subspace(asked: _Asked, blocks: int, tolerance: float, generator: torch.Generator) -> NetworkFisherMemory:
    """Meet the covariance in a subspace that grows."""
    size, count = asked.path.dynamics.size, asked.path.inputs.shape[1]
    lags, tail = window(asked.path, asked.shape, generator, until_settled=asked.horizon is None)
    _COST.require_end(WHAT, S=size, T=lags, B=count, M=48 * blocks)
    found = krylov_information(asked.path, asked.shape, lags, blocks=blocks, tolerance=tolerance)
    along = best_direction(found.answers) if asked.direction is None else asked.direction
    curves = information(found.answers, along) / asked.level
    totals = curves.sum(0)
    smaller = [information(each, along).sum(0).mean() / asked.level for each in found.smaller]
    missing = 0.0 if found.whole else shortfall([*smaller, float(totals.mean())])
    bound = f"a lower bound, from {found.blocks} blocks of directions of a state of {size} numbers"
    return NetworkFisherMemory(
        status="estimate",
        digits=None,
        assumptions=(
            _SMALL_NOISE,
            *unsettled(tail),
            f"{bound}: by the last blocks, at most {missing:.1g} of it is missing",
        ),
        cost=str(_COST),
        curve=curves.mean(1),
        total=float(totals.mean()),
        stderr=0.0 if count == 1 and asked.linear else float(_stderr(totals)),
        curve_stderr=_stderr(curves),
        direction=along,
        totals=totals,
        horizon=len(curves),
        settled=tail < SETTLED,
        tail=tail,
        linear=asked.linear,
        noise=asked.noise,
        size=asked.shape.units,
        missing=missing,
    )


_SMALL_NOISE = "the noise is so small that the network is linear within it"


def _direction(value: object, size: int) -> Float[np.ndarray, " input"]:
    found = vector("direction", value, size)
    if not found.any():
        raise expected("direction", "a vector that is not zero", found.tolist())
    return found


def _require_memory(flow: Dynamics, steps: int, trajectories: int) -> None:
    size = flow.size
    per_step = 16 * trajectories * size * flow.input_size
    working = 8 * trajectories * size * size * (4 * BLOCK)
    fits = max(0, memory.allowance() - working) // per_step
    memory.require(
        f"{WHAT} over {steps} steps and {trajectories} trajectories of {size} numbers",
        steps * per_step + working,
        f"horizon={fits} would fit" if fits else "fewer trajectories would fit",
    )


def _require_digits(found: Propagated) -> None:
    if found.error >= 1 or not found.finite:
        raise UserError(
            f"disturbances of this network grow so much within {len(found.signals)} steps that no digit of its memory "
            f"is left; horizon={found.trusted} would leave six"
        )


def _of_blocks(
    blocks: Blocks,
    direction: Float[np.ndarray, " input"] | None,
    noise: float,
    horizon: int | None,
    steps: int,
    driven: Driven,
) -> NetworkFisherMemory:
    """Return the memory of a network whose state falls apart, by its parts."""
    if blocks.constant and horizon is None:
        _radius(blocks.constant[0])
    found = block_memory(blocks, steps, driven, until_settled=horizon is None)
    along = found.best_direction() if direction is None else direction
    curves, size = found.information(along) / noise, blocks.flow.size
    if not found.linear:
        if horizon is not None:
            _require_digits(found.noise)
        return _estimate(curves, along, noise, found.noise, size)
    digits = trusted_digits(found.noise.error)
    return _result(curves[:, 0], float(curves.sum()), along, noise, found.noise.tail, digits, size)


def _estimate(
    curves: Float[np.ndarray, "lags trajectories"],
    direction: Float[np.ndarray, " input"],
    noise: float | str,
    found: Propagated,
    size: int,
) -> NetworkFisherMemory:
    totals = curves.sum(0)
    return NetworkFisherMemory(
        status="estimate",
        digits=None,
        assumptions=(
            _SMALL_NOISE,
            *unsettled(found.tail),
            *rounded(found.error),
        ),
        cost=str(_COST),
        curve=curves.mean(1),
        total=float(totals.mean()),
        stderr=float(_stderr(totals)),
        curve_stderr=_stderr(curves),
        direction=direction,
        totals=totals,
        horizon=len(curves),
        settled=found.tail < SETTLED,
        tail=found.tail,
        linear=False,
        noise=noise,
        size=size,
    )


def _stderr(values: Float[np.ndarray, "*lags trajectories"]) -> Float[np.ndarray, "*lags"]:
    """Return the standard error of the mean over trajectories; NaN of one alone, which says nothing of its error."""
    count = values.shape[-1]
    if count == 1:
        return np.full(values.shape[:-1], np.nan)
    found: np.ndarray = values.std(-1, ddof=1) / math.sqrt(count)
    return found


WHAT = "network_fisher_memory"

_ROUNDING = 1e-5
"""By how much the spectral radius of an orthogonal matrix in single precision may exceed one."""

_ENOUGH = 1e-10
"""The rounding error up to which the sum over lags is taken as it is, without looking for a better one."""


def linear_memory(
    fixed: Jacobians,
    readout: Float[Tensor, "units size"],
    direction: Float[np.ndarray, " input"] | None,
    noise: float,
    horizon: int | None,
    steps: int,
) -> NetworkFisherMemory:
    """Return the memory of h = A h + B u s + z; `steps` are the horizon, or the longest one where that is None."""
    whole = readout.shape[0] == readout.shape[1]
    if horizon is None:
        radius = _radius(fixed.state)
        settles = -math.log(1e-12) < -2 * steps * math.log(max(radius, 1e-300))
        if whole:
            span = None if settles else steps
            return _of_matrices(fixed, direction, noise, span, 0.0 if settles else math.inf)
    found = propagate(_repeat(fixed, steps), readout, 1, until_settled=horizon is None)
    if found.error > _ENOUGH and whole:
        span = len(found.signals) if horizon is None else horizon
        return _of_matrices(fixed, direction, noise, span, found.tail)
    answers = found.answers()
    along = best_direction(answers) if direction is None else direction
    curve = information(answers, along)[:, 0] / noise
    return _result(curve, float(curve.sum()), along, noise, found.tail, trusted_digits(found.error), found.units)


def _radius(matrices: Float[Tensor, "*many n n"]) -> float:
    radius = float(torch.linalg.eigvals(matrices).abs().max())
    if radius > 1 - _ROUNDING:  # eigenvalues of strongly non-normal matrices are wrong in floats: exact ones decide
        radius = max(spectral_radius(each.cpu().numpy()) for each in matrices.reshape(-1, *matrices.shape[-2:]))
    if radius > 1 + _ROUNDING:
        raise UserError(
            f"{WHAT} needs a stable network for an unlimited horizon, got a linear one of spectral radius "
            f"{radius:.6g}; give a horizon, such as horizon=100"
        )
    return radius


def _of_matrices(
    fixed: Jacobians, direction: Float[np.ndarray, " input"] | None, noise: float, horizon: int | None, tail: float
) -> NetworkFisherMemory:
    """Ask the vector measure, which sums in closed form and in extended precision where that is needed."""
    recurrent, entry = (part[0].cpu().numpy() for part in (fixed.state, fixed.input))

    def of(along: Float[np.ndarray, " input"]) -> FisherMemory:
        return fisher_memory(recurrent, entry @ along, noise=noise, horizon=horizon, matrix_lags=1)

    if direction is None:
        direction = np.ones(1)
        if entry.shape[1] > 1:
            _, vectors = np.linalg.eigh(entry.T @ of(np.eye(entry.shape[1])[0]).spatial @ entry)
            direction = vectors[:, -1] * np.sign(vectors[np.abs(vectors[:, -1]).argmax(), -1])
    found = of(direction)
    return _result(found.curve, found.total, direction, noise, tail, found.digits, len(recurrent))


def _repeat(fixed: Jacobians, steps: int) -> Iterator[Jacobians]:
    for first in range(0, steps, BLOCK):
        count = min(BLOCK, steps - first)
        yield Jacobians(*(part.expand(count, *part.shape) for part in (fixed.state, fixed.input)))


def _result(
    curve: Float[np.ndarray, " lags"],
    total: float,
    direction: Float[np.ndarray, " input"],
    noise: float,
    tail: float,
    digits: int | None,
    size: int,
) -> NetworkFisherMemory:
    same = "the Jacobians, which were the same at all states that were tried, are the same everywhere"
    return NetworkFisherMemory(
        status="exact",
        digits=digits,
        assumptions=(same, *unsettled(tail)),
        cost=str(_COST),
        curve=curve,
        total=total,
        stderr=0.0,
        curve_stderr=np.zeros_like(curve),
        direction=direction,
        totals=np.array([total]),
        horizon=len(curve),
        settled=tail < SETTLED,
        tail=tail,
        linear=True,
        noise=noise,
        size=size,
    )


def unsettled(tail: float) -> tuple[str, ...]:
    """Say what lies beyond the horizon, if anything does."""
    if tail < SETTLED:
        return ()
    share = "does not fall" if math.isinf(tail) else f"has a share of about {tail:.2g}"
    return (f"the curve is that of this horizon, and not settled: what older noise adds {share}",)


def rounded(error: float) -> tuple[str, ...]:
    """Say what rounding may have done, if that is more than a statistical error would hide."""
    if error < 1e-8:
        return ()
    return (f"rounding may have changed the numbers by a share of up to {min(error, 1.0):.1g}, as disturbances grow",)
