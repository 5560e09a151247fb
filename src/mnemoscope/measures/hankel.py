"""Hankel singular values of a linear network, and the smaller network that keeps the largest of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Inexact
from torch import nn

from mnemoscope.core.arrays import matrix, square
from mnemoscope.core.errors import Description, UserError, expected, positive_int
from mnemoscope.core.result import Result, result
from mnemoscope.measures.dynamics import Dynamics
from mnemoscope.measures.registry import Cost, measure
from mnemoscope.measures.trajectory import constant_jacobians, output_jacobians
from mnemoscope.nn.linear_system import LinearSystem

if TYPE_CHECKING:
    from mnemoscope.report import chart

__all__ = ["HankelValues", "balanced_truncation", "hankel_singular_values"]

Matrix = Inexact[np.ndarray, "rows columns"]

_WHAT = "hankel_singular_values"
_EPS = float(np.finfo(float).eps)
_DOUBLINGS = 50
"""Squarings of W after which a network that has not forgotten its start is taken never to do so: 2^50 steps."""


@result
class HankelValues(Result):
    """Singular values of the map from past inputs to future outputs.

    Attributes
    ----------
    values
        Of the map from the inputs before a step to the outputs from that step on, descending: entries C W^k U, k >= 1.
    gramian_values
        With k >= 0 in its entries, square roots of the eigenvalues of P Q: what `error_bound` and the truncation use.
    radius
        Spectral radius of W: the largest of its eigenvalues, never above what the norm of a power of it proves.
    """

    measure: ClassVar[str] = "hankel"
    references: ClassVar[tuple[str, ...]] = ("moore1981", "glover1984")

    values: Float[np.ndarray, " size"]
    gramian_values: Float[np.ndarray, " size"]
    radius: float

    def order(self, energy: float) -> int:
        """Return how many values hold this share of the sum of their squares."""
        if not 0 < energy < 1:
            raise expected("energy", "a share between 0 and 1", energy)
        shares = np.cumsum(self.values**2)
        return int(np.searchsorted(shares, energy * shares[-1]) + 1) if shares[-1] > 0 else 0

    def error_bound(self, order: int) -> float:
        """Return what no frequency of the truncated network's error exceeds: twice the sum of the values left out."""
        return float(2 * self.gramian_values[order:].sum())

    def __str__(self) -> str:
        largest = self.values[0] if len(self.values) else 0.0
        if largest == 0:
            return "no output depends on an input before its own step: all Hankel singular values are 0"
        kept = f"{self.order(0.99)} of {len(self.values)} values hold 99% of the energy, {self.order(0.999)} hold 99.9%"
        return f"largest Hankel singular value {largest:.8g}; {kept}"

    def plot(self) -> chart.Chart:
        """Draw the values; those below rounding are left out."""
        from mnemoscope.report import chart

        seen = self.values > self.values.max(initial=0.0) * _EPS
        series = {"value": (np.arange(1, len(self.values) + 1)[seen], self.values[seen])}
        return chart.lines(series, x="index i", y="Hankel singular value", title="Hankel singular values", log_y=True)


_COST = Cost(time={"S^3": 4e-8}, memory="S^2")


def _of_network(network: nn.Module | Dynamics) -> HankelValues:
    system = _system(network, _WHAT)
    return _found(system.W, system.U, system.C)


@measure(
    "hankel",
    kinds=("recurrent",),
    needs=("jacobian",),
    matrices={"W": "matrix", "U": "input", "C": "output"},
    of_network=_of_network,
    quick={},
    cost=_COST,
)
def hankel_singular_values(W: Any, U: Any = None, C: Any = None) -> HankelValues:
    r"""Find the singular values of a linear network's map from past inputs to future outputs.

    .. math::
        h_t = W h_{t-1} + U x_t, \quad y_t = C h_t, \qquad
        H = \big( C W^{m + j + 1} U \big)_{m, j \ge 0}, \quad \sigma_i(H)^2 = \lambda_i(P \, W^T Q W)

    with the Gramians P = sum_k W^k U U^T W^kT and Q = sum_k W^kT C^T C W^k, both sums from k = 0. They are limits of
    the singular values that `effective_state_size` finds at a step after a long past and before a long future. Factors
    of the Gramians, never the Gramians, are formed by doubling: [L, W^n L] has twice as many lags as L, and an
    orthogonal map makes it as narrow again.

    Parameters
    ----------
    W
        Recurrent matrix, S x S, with a spectral radius below 1; or a linear network, then without U and C. All three
        may be complex.
    U
        Input matrix, S x d, or a vector for one input; None: the identity.
    C
        Output matrix, o x S, or a vector for one output; None: the identity.

    Returns
    -------
    HankelValues

    References
    ----------
    Moore (1981); Glover (1984).

    Examples
    --------
    >>> found = hankel_singular_values([[0.5]], [[1.0]], [[1.0]])
    >>> f"{found.values[0]:.12f}", f"{0.5 / (1 - 0.5**2):.12f}"
    ('0.666666666667', '0.666666666667')
    """
    if isinstance(W, nn.Module | Dynamics):
        if U is not None or C is not None:
            raise UserError("U and C cannot be given with a network: it has its own")
        return _of_network(W)
    W = square("W", W, complex_too=True)
    U = np.eye(len(W)) if U is None else _fitting("U", U, rows=len(W))
    C = np.eye(len(W)) if C is None else _fitting("C", C, columns=len(W))
    return _found(W, U, C)


def _fitting(name: str, value: Any, rows: int | None = None, columns: int | None = None) -> Matrix:
    if np.ndim(value) == 1:
        value = np.asarray(value)[:, None] if columns is None else np.asarray(value)[None]
    found = matrix(name, value, complex_too=True)
    if rows is not None and found.shape[0] != rows:
        raise expected(name, f"a matrix of {rows} rows, as W has", Description(f"one of {found.shape[0]}"))
    if columns is not None and found.shape[1] != columns:
        raise expected(name, f"a matrix of {columns} columns, as W has", Description(f"one of {found.shape[1]}"))
    return found


def _found(W: Matrix, U: Matrix, C: Matrix) -> HankelValues:
    later = C @ W
    reach, radius = _factor(W, U)
    values = _singular_values(W, reach, later)
    # The same network in other coordinates has the same values: what differs is rounding.
    turn = np.linalg.qr(np.random.default_rng(0).standard_normal(W.shape))[0]
    turned = turn @ W @ turn.T
    again = _singular_values(turned, _factor(turned, turn @ U)[0], later @ turn.T)
    error = float(np.abs(values - again).max(initial=0.0)) / max(float(values.max(initial=0.0)), 1e-300)
    return HankelValues(
        status="exact",
        digits=int(np.clip(-np.log10(max(10 * error, 1e-15)), 0, 15)),
        assumptions=("digits are relative to the largest value, from two computations in different coordinates",),
        cost=str(_COST),
        values=values,
        gramian_values=_singular_values(W, reach, C),
        radius=radius,
    )


def _factor(W: Matrix, U: Matrix, what: str = _WHAT) -> tuple[Matrix, float]:
    """Return L with L L^H = sum_k W^k U U^H W^kH, and W's spectral radius.

    A power of W whose norm is below 1 proves that the radius is.
    """
    factor, power, radius = U, W, float(np.abs(np.linalg.eigvals(W)).max())
    for doubling in range(_DOUBLINGS):
        norm = float(np.linalg.norm(power, 2)) if np.isfinite(power).all() else np.inf
        radius = min(radius, norm ** (0.5**doubling))
        if norm > 1e100:
            break
        more = power @ factor
        if norm < 1 and np.linalg.norm(more) <= _EPS * np.linalg.norm(factor):
            return factor, radius
        factor = _narrowed(np.hstack([factor, more]))
        power = power @ power
    if radius < 1:
        raise UserError(f"{what} needs powers of W below 1e100, got larger ones (its spectral radius is {radius:.6g})")
    raise UserError(
        f"{what} needs a network that forgets, with a spectral radius below 1, got one of about {radius:.6g}"
    )


def _narrowed(factor: Matrix) -> Matrix:
    """Return a factor of the same L L^T with no more columns than rows."""
    rows, columns = factor.shape
    return factor if columns <= rows else np.asarray(np.linalg.qr(factor.conj().T, mode="r")).conj().T


def _singular_values(W: Matrix, reach: Matrix, seen: Matrix) -> Float[np.ndarray, " size"]:
    """Return the singular values of the map whose reachable states have the factor `reach`, as `seen` shows them."""
    observed, _ = _factor(W.conj().T, seen.conj().T)
    found = np.zeros(len(W))
    values = np.linalg.svd(observed.conj().T @ reach, compute_uv=False)
    found[: len(values)] = values[: len(W)]
    return found


class System(NamedTuple):
    """Matrices of a linear network h_t = W h_{t-1} + U x_t + b, y_t = C h_t + D x_t + c."""

    W: Matrix
    U: Matrix
    C: Matrix
    D: Matrix
    b: Float[np.ndarray, " size"]
    c: Float[np.ndarray, " output"]


def _system(network: nn.Module | Dynamics, what: str) -> System:
    """Return the matrices of a linear network, or say that it is none."""
    dynamics = Dynamics.of(network, what)
    found = constant_jacobians(dynamics)
    if found is None:
        raise UserError(
            f"{what} needs a network that is linear in its state and inputs; "
            "effective_state_size is the same question for any network"
        )
    W, U = found.state[0].cpu().numpy(), found.input[0].cpu().numpy()
    silence, rest = torch.zeros(1, dynamics.input_size, **dynamics.factory), dynamics.start(1)
    later, feed = (part[0].cpu().numpy() for part in output_jacobians(dynamics, silence, rest))
    still = dynamics.unflatten(torch.zeros(1, len(W), **dynamics.factory), rest)
    with torch.no_grad():
        output, state = dynamics.step(silence, still)
    b, y = dynamics.flatten(state)[0].cpu().numpy(), output.flatten().cpu().numpy()
    C = _solved(np.hstack([W, U]), np.hstack([later, feed]))
    C = _solved(W, later) if C is None else C
    if C is None:  # outputs that read a part of the old state which the new one has lost: it is carried one step on
        size, none = len(W), np.zeros
        W, U = np.block([[W, none((size, size))], [np.eye(size), none((size, size))]]), np.vstack([U, none(U.shape)])
        C, b = np.hstack([none(later.shape), later]), np.concatenate([b, none(size)])
    D = feed - C @ U
    return System(W, U, C, np.where(np.abs(D) < 1e-12 * max(1.0, np.abs(feed).max()), 0.0, D), b, y - C @ b)


def _solved(given: Matrix, wanted: Matrix) -> Matrix | None:
    """Return C with C given = wanted, or None where there is none."""
    found: Matrix = np.linalg.lstsq(given.T, wanted.T, rcond=None)[0].T
    return (
        found if np.allclose(found @ given, wanted, rtol=1e-9, atol=1e-10 * np.abs(wanted).max(initial=0.0)) else None
    )


def balanced_truncation(network: nn.Module | Dynamics, order: int) -> LinearSystem:
    r"""Return the linear network of fewer units that keeps the largest Hankel singular values of another.

    .. math::
        P = L L^T, \; Q = M M^T, \; M^T L = X \Sigma Y^T, \qquad
        W_r = \Sigma_r^{-1/2} X_r^T M^T \, W \, L Y_r \Sigma_r^{-1/2}

    and U, C likewise; what goes from an input straight to its output stays. At no frequency does what inputs do to
    outputs differ by more than twice the sum of the values left out (`HankelValues.error_bound`); what a constant bias
    does to the state is carried over and not covered by it.

    Parameters
    ----------
    network
        A linear network with a spectral radius below 1.
    order
        Units to keep, at most as many values as are above rounding.

    Examples
    --------
    >>> import torch, mnemoscope as ms
    >>> wide = ms.nn.LinearSystem(1, 8, output_size=1, generator=torch.Generator().manual_seed(0))
    >>> ms.measures.balanced_truncation(wide, 3).hidden_size
    3
    """
    order = positive_int("order", order)
    W, U, C, D, b, c = _system(network, "balanced_truncation")
    reach, observed = (_factor(*each, "balanced_truncation")[0] for each in ((W, U), (W.T, C.T)))
    left, values, right = np.linalg.svd(observed.T @ reach)
    most = int((values > len(W) * _EPS * values.max(initial=0.0)).sum())
    if not most:
        raise UserError("balanced_truncation needs outputs that depend on inputs, and those of this network do not")
    if order > most:
        raise expected("order", f"at most {most}, the Hankel singular values above rounding", order)
    root = np.sqrt(values[:order])
    into, back = (left[:, :order] / root).T @ observed.T, reach @ (right[:order].T / root)
    more = {"D": D, "offset": c} if D.any() or np.abs(c).max() > 1e-12 else {}
    return LinearSystem.of(into @ W @ back, into @ U, C @ back, into @ b, **more)
