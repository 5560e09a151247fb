"""Precision of a vector network's Fisher memory: float64 with a twin that shows its error, or extended precision.

Everything is computed twice, the second time from weights moved by a unit in the last place. Where the difference is
too large, extended precision changes to the coordinates that float64 believes to be white, exactly, and float64 whitens
there what is left; where that does not do either, all of it is computed in balls (`certified`).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from mnemoscope.core.errors import UserError
from mnemoscope.core.memory import allowance, require
from mnemoscope.measures.fisher.balls import Balls
from mnemoscope.measures.fisher.certified import (
    EXTENDED,
    LIMIT,
    change,
    compose,
    prove_stable,
    require_stable,
    whiten_precisely,
)
from mnemoscope.measures.fisher.conventions import TAIL
from mnemoscope.measures.fisher.white import (
    Coordinates,
    Whitened,
    curve,
    dyadic_sums,
    root_of_sum,
    stationary_curve,
    whiten,
)

__all__ = ["DOUBLE", "Measured", "Request", "vector_memory"]

DOUBLE = 53
"""Bits of float64's significand."""

Weights = Float[np.ndarray, "*shape"]

_UNIT = 2.0**-52
_CONTENT = 1e-11, 1e-9  # errors of the total and of single lags below which float64 needs no help
_HELPED = 1e-9, 1e-8  # errors that are accepted in almost white coordinates: what is left is a spectral radius near 1
_GAIN = 0.1  # of the error, in a round that is worth another one
_ROUNDS = 3  # of whitening again: one is enough unless float64 was lost altogether
_SAFETY = 10.0  # one twin shows the size of the error, not its largest value
_SHOWN = 1e-12  # lags below this share of the largest are not asked for digits of their own
_BYTES = 32  # per lag: the curve, its twin, and the parts that they are put together from


class Request(NamedTuple):
    """A network (for noise 1), the horizon, the length of the curve, and the bits, if that is told."""

    network: Coordinates
    horizon: int | None
    lags: int | None
    precision: int | None


class Measured(NamedTuple):
    """White coordinates, what follows from them, and its errors.

    Attributes
    ----------
    white, root, total, curve
        As computed; root^T root = sum_k B^kT B^k.
    error
        Of the total, relative; of the curve, relative to its largest value.
    lag_error
        Largest relative error of a J(k) that is not negligible.
    self_check
        |trace(J^s) - N| / N for noise 1.
    bits
        Of the arithmetic that whitened.
    """

    white: Whitened
    root: Float[np.ndarray, "n n"]
    total: float
    curve: Float[np.ndarray, " lags"]
    error: float
    lag_error: float
    self_check: float
    bits: int


def vector_memory(request: Request) -> Measured:
    """Whiten the network's noise in float64 or, where that leaves too few digits, in extended precision."""
    network, horizon, _, precision = request
    size = len(network.v)
    extended = size <= LIMIT if precision is None else precision > DOUBLE
    radius = 0.0 if horizon is not None else require_stable(network.W, extended)
    _require_memory(request, radius)
    found = _in_float64(request)
    if found is not None and (not extended or _within(found, _CONTENT)):
        return found
    if not extended:
        raise UserError(
            f"float64 cannot hold the covariance of this W (N={size}), which amplifies too much; precision={EXTENDED} "
            "computes in extended precision, and takes long"
        )
    if horizon is None:
        prove_stable(network.W)
    bits = precision or (2 * EXTENDED if found is None else EXTENDED)
    better = None if found is None else _helped(request, found, bits)
    return _precisely(request, bits) if better is None else better


def _within(found: Measured, limits: tuple[float, float]) -> bool:
    return found.error < limits[0] and found.lag_error < limits[1]


def _in_float64(request: Request) -> Measured | None:
    """Compute twice, the second time with the weights moved by a rounding error, and let the difference be the error.

    All roundings of the second run differ too, so that it shows what they did, and also what the weights' own do.
    """
    network, horizon, lags, _ = request
    white = whiten(network, horizon)
    root = None if white is None else root_of_sum(white.step.T, horizon, np.eye(len(network.v)))
    if white is None or root is None:
        return None
    image = root @ white.source
    total = float(image @ image)
    values = stationary_curve(white, root, total) if lags is None else curve(white, lags)
    check = _self_check(white, root)
    twin = whiten(Coordinates(*(_moved(part, seed) for seed, part in enumerate(network))), horizon)
    if twin is None or not math.isfinite(check):
        return Measured(white, root, total, values, math.inf, math.inf, check, DOUBLE)
    others = curve(twin, len(values))
    error, lag_error = _differences(values, others)
    whole = lags is None or lags == horizon
    total_error = _apart(values, others) if whole else _total_error(white, root, twin)
    error = max(error, total_error, check)
    return Measured(white, root, total, values, error, max(error, lag_error), check, DOUBLE)


def _total_error(white: Whitened, root: Float[np.ndarray, "n n"], twin: Whitened) -> float:
    """Return the error of the total of an infinite horizon, of which the curve is only the beginning."""
    other = root_of_sum(twin.step.T, None, np.eye(len(twin.source)))
    if other is None:
        return math.inf
    a, b = dyadic_sums(white, root), dyadic_sums(twin, other)
    longer = max(len(a), len(b))
    return _apart(np.pad(a, (0, longer - len(a))), np.pad(b, (0, longer - len(b))))


def _helped(request: Request, found: Measured, bits: int) -> Measured | None:
    """Change to the coordinates that float64 believes to be white, exactly, and whiten there what is left to whiten.

    Only the change needs extended precision: in almost white coordinates float64 loses little. None where that fails.
    """
    lower: Balls | None = None
    for _ in range(_ROUNDS):
        lower = compose(lower, found.white.lower, bits)
        nearer = change(request.network, lower, bits)
        again = None if nearer is None else _in_float64(request._replace(network=nearer))
        if again is None:
            return None
        stuck = _within(again, _HELPED) and again.error > _GAIN * found.error
        found = again._replace(bits=bits)
        if stuck or _within(found, _CONTENT):
            return found
    return found if _within(found, _HELPED) else None


def _precisely(request: Request, bits: int) -> Measured:
    """Whiten in extended precision: only the steps of the curve are left to float64, and only they have a twin."""
    network, horizon, lags, _ = request
    (white, root, total), bits = whiten_precisely(network, horizon, bits)
    values = stationary_curve(white, root, total) if lags is None else curve(white, lags)
    twin = white._replace(step=_moved(white.step, 1), source=_moved(white.source, 2))
    error, lag_error = _differences(values, curve(twin, len(values)))
    return Measured(white, root, total, values, error, lag_error, _self_check(white, root), bits)


def _differences(a: Float[np.ndarray, " lags"], b: Float[np.ndarray, " lags"]) -> tuple[float, float]:
    """Return the error of a curve relative to its largest value, and the largest relative error of its values."""
    if not (np.isfinite(a).all() and np.isfinite(b).all()):
        return math.inf, math.inf
    largest = float(a.max())
    if largest == 0:
        return 0.0, 0.0
    apart = np.abs(a - b)
    counted = a >= _SHOWN * largest
    return _SAFETY * float(apart.max()) / largest, _SAFETY * float((apart[counted] / a[counted]).max())


def _apart(a: Float[np.ndarray, " parts"], b: Float[np.ndarray, " parts"]) -> float:
    """Return the error of a sum as the sum of its parts' errors, which luck cannot make small."""
    whole = float(np.abs(a).sum())
    return _SAFETY * float(np.abs(a - b).sum()) / whole if whole else 0.0


def _moved(values: Weights, seed: int) -> Weights:
    """Return the values, each moved up or down by a unit in the last place; zeros stay."""
    signs = np.random.default_rng(seed).choice([-_UNIT, _UNIT], size=values.shape)
    moved: Weights = values * (1 + signs)
    return moved


def _self_check(white: Whitened, root: Float[np.ndarray, "n n"]) -> float:
    size = len(white.source)
    factor = root @ white.inverse
    return abs(float(np.einsum("ij,ij->", factor, factor)) - size) / size


def _require_memory(request: Request, radius: float) -> None:
    size, lags = len(request.network.v), request.lags
    fitting = max(1, allowance() // _BYTES)
    if lags is not None:
        name = "lags" if request.horizon is None else "horizon"
        require(f"a curve of {lags} lags", _BYTES * lags, f"{name}={fitting} would fit")
        return
    wanted = size if radius == 0 else max(size, math.ceil(math.log(TAIL) / (2 * math.log(radius))))
    require(
        f"a curve of {wanted:.3g} lags (spectral radius {radius:.12g})",
        _BYTES * wanted,
        f"lags={fitting} would fit, and leave the total as it is",
    )
