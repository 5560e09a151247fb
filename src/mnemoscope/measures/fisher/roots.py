"""Networks of many units that talk to each other, from a square root of the covariance of what is seen of them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy.linalg
from jaxtyping import Float, Inexact

from mnemoscope.measures.fisher.part import BLOCK
from mnemoscope.measures.fisher.power import (
    Dense,
    Kronecker,
    Power,
    adjoint,
    sum_of_products,
    sum_of_squares,
    triangle,
)

__all__ = ["Roots", "exact_roots", "published_roots"]

_EPS = float(np.finfo(float).eps)


class Roots:
    """Networks of many units, as `Part`.

    Parameters
    ----------
    step
        One step of the state.
    sources
        Where the signal enters, one row per network.
    inputs
        On how many leading numbers of the state the noise acts.
    whiten
        For each observation a matrix L with L* L the inverse covariance of the leading numbers that are seen.
    information
        For each observation sum_k P^k* L* L P^k, on the whole state.
    rounding
        The relative error that rounding may have brought into `whiten`.
    lawful
        Whether the covariance is that of the network, so that trace(J^s) is the number of observed units.
    """

    def __init__(
        self,
        step: Power,
        sources: Inexact[np.ndarray, "batch n"],
        inputs: int,
        whiten: Sequence[Inexact[np.ndarray, "batch seen seen"]],
        information: Sequence[Inexact[np.ndarray, "batch n n"]],
        rounding: float,
        *,
        lawful: bool = True,
    ) -> None:
        self.work = float(len(sources) * sources.shape[1] ** 2)
        self._inputs, self._whiten, self._information = inputs, whiten, information
        self._rounding, self._lawful = rounding, lawful
        self._lags, self._ahead = sources[:, :, None], step

    def advance(self, count: int) -> Float[np.ndarray, "observed count"]:
        """Return the information about the next lags."""
        while self._lags.shape[2] < BLOCK:
            self._lags = np.concatenate([self._lags, self._ahead.apply(self._lags)], axis=2)
            self._ahead = self._ahead.times(self._ahead)
        now = self._lags[:, :, :count]
        found = [(np.abs(white @ now[:, : white.shape[1]]) ** 2).sum(axis=(0, 1)) for white in self._whiten]
        self._lags = self._ahead.apply(self._lags)
        return np.stack(found)

    def tail(self) -> Float[np.ndarray, " observed"]:
        """Return what the lags to come hold."""
        next_lag = self._lags[:, :, :1]
        return np.array([(next_lag.conj() * (held @ next_lag)).real.sum() for held in self._information])

    def defect(self) -> float:
        """Return how far trace(J^s) is from the number of observed units."""
        if not self._lawful:
            return 0.0
        pairs = zip(self._information, self._whiten, strict=True)
        return max(float(np.abs(self._trace(held) / white.shape[1] - 1).max()) for held, white in pairs)

    def error(self) -> float:
        """Return the larger of what the condition of the root lets one fear and what the trace shows.

        The factors were found on networks whose truth is known from ball arithmetic: the trace alone is up to four
        digits too hopeful, since errors of both signs cancel in it.
        """
        return max(10 * self._rounding, 30 * self.defect(), 16 * _EPS)

    def _trace(self, held: Inexact[np.ndarray, "batch n n"]) -> Float[np.ndarray, " batch"]:
        found: np.ndarray = np.diagonal(held, axis1=1, axis2=2)[:, : self._inputs].real.sum(axis=1)
        return found

    def spatial(self) -> Inexact[np.ndarray, "batch n n"]:
        """Return J^s on the units that the noise reaches."""
        return self._information[0][:, : self._inputs, : self._inputs]


def exact_roots(
    step: Kronecker | Dense,
    sources: Inexact[np.ndarray, "batch n"],
    inputs: int,
    observed: Sequence[int],
    horizon: int | None,
    *,
    squared: bool,
) -> Roots:
    """Return networks with noise on their first `inputs` numbers, of which the first `observed` are seen.

    `squared` forms the covariance instead of its root: faster, with half the digits.
    """
    size = sources.shape[1]
    start = np.broadcast_to(np.eye(inputs, size, dtype=sources.dtype), (len(sources), inputs, size))
    if squared:
        root = _cholesky(sum_of_products(adjoint(start) @ start, step.adjoint(), horizon))
    else:
        root = sum_of_squares(start, step.adjoint(), horizon)
    roots = [root if seen == size else triangle(root[:, :, :seen]) for seen in observed]
    whiten = [_inverse_adjoint(one) for one in roots]
    condition = max(_scaled_condition(*pair) for pair in zip(roots, whiten, strict=True))
    information = [_information(white, step, size, horizon, squared) for white in whiten]
    # What a covariance loses is the square of what its root loses.
    return Roots(step, sources, inputs, whiten, information, _EPS * (condition**2 if squared else condition))


def published_roots(
    a: Inexact[np.ndarray, "batch v v"],
    b: Inexact[np.ndarray, "batch u u"],
    sources: Inexact[np.ndarray, "batch n"],
    horizon: int | None,
) -> Roots:
    """Return networks whose covariance is taken for (sum_k A^k A^k*) kron (sum_k B^k B^k*), as Eq. 9 has it."""
    across, along = (
        sum_of_squares(np.broadcast_to(np.eye(one.shape[1]), one.shape), Dense(adjoint(one)), horizon) for one in (a, b)
    )
    whiten = _kronecker(_inverse_adjoint(across), _inverse_adjoint(along))
    condition = max(_scaled_condition(root, _inverse_adjoint(root)) for root in (across, along))
    size, step = sources.shape[1], Kronecker(a, b)
    information = _information(whiten, step, size, horizon, squared=True)
    return Roots(step, sources, size, [whiten], [information], 2 * _EPS * condition, lawful=False)


def _information(
    white: Inexact[np.ndarray, "batch seen seen"],
    step: Kronecker | Dense,
    size: int,
    horizon: int | None,
    squared: bool,
) -> Inexact[np.ndarray, "batch n n"]:
    """Return sum_k P^k* C^-1 P^k: what all lags together say about a source, C the covariance of what is seen."""
    rows = np.concatenate([white, np.zeros((*white.shape[:2], size - white.shape[2]), white.dtype)], axis=2)
    if squared:
        return sum_of_products(adjoint(rows) @ rows, step, horizon)
    root = sum_of_squares(rows, step, horizon)
    found: np.ndarray = adjoint(root) @ root
    return found


def _cholesky(covariance: Inexact[np.ndarray, "batch n n"]) -> Inexact[np.ndarray, "batch n n"]:
    try:
        return adjoint(np.linalg.cholesky(covariance))
    except np.linalg.LinAlgError as error:
        raise ArithmeticError("the covariance is not positive in float64") from error


def _inverse_adjoint(root: Inexact[np.ndarray, "batch n n"]) -> Inexact[np.ndarray, "batch n n"]:
    (invert,) = scipy.linalg.get_lapack_funcs(("trtri",), (root,))
    inverses, codes = zip(*(invert(one) for one in root), strict=True)
    if any(codes):
        raise ArithmeticError("the covariance is singular in float64")
    return adjoint(np.stack(inverses))


def _scaled_condition(root: Inexact[np.ndarray, "batch n n"], white: Inexact[np.ndarray, "batch n n"]) -> float:
    """Return the largest condition number of the roots with their columns brought to length 1."""
    lengths = np.linalg.norm(root, axis=1)
    scaled = np.linalg.norm(root / lengths[:, None, :], axis=(1, 2))
    inverse = np.linalg.norm(white * lengths[:, None, :], axis=(1, 2))
    return float((scaled * inverse / np.sqrt(root.shape[2])).max())


def _kronecker(
    a: Inexact[np.ndarray, "batch v v"], b: Inexact[np.ndarray, "batch u u"]
) -> Inexact[np.ndarray, "batch n n"]:
    size = a.shape[1] * b.shape[1]
    found: np.ndarray = np.einsum("gij,gkl->gikjl", a, b).reshape(len(a), size, size)
    return found
