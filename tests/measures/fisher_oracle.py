"""Fisher memory by its definition, in exact or very high precision: the covariance is formed and inverted."""

from typing import NamedTuple

import flint
import numpy as np


class Truth(NamedTuple):
    curve: np.ndarray
    total: float
    spatial: np.ndarray


def truth(W, v, lags: int, horizon: int | None = None, bits: int = 600) -> Truth:
    """Return J(k), the total and J^s for noise 1, summed as they are written, at a precision beyond what is needed."""
    W, v = np.asarray(W, dtype=float), np.asarray(v, dtype=float)
    with flint.ctx.workprec(bits):
        transition = flint.arb_mat(W.tolist())
        if horizon is None:
            covariance, powers = _doubled(transition)
        else:
            covariance, powers = _added(transition, horizon)
        inverse = covariance.inv(nonstop=True)
        signal = flint.arb_mat([[x] for x in v.tolist()])
        curve = []
        for _ in range(lags):
            curve.append(float((signal.transpose() * (inverse * signal))[0, 0]))
            signal = transition * signal
        spatial = inverse
        if horizon is None:
            for power in powers:
                spatial = spatial + power.transpose() * spatial * power
        else:
            spatial = sum((p.transpose() * inverse * p for p in powers[1:]), inverse)
        source = flint.arb_mat([[x] for x in v.tolist()])
        total = (source.transpose() * spatial * source)[0, 0]
        if v.any() and total.rel_accuracy_bits() < 60:
            return truth(W, v, lags, horizon, 2 * bits)
        return Truth(np.array(curve), float(total), _floats(spatial))


def _doubled(transition):
    """Sum over 2^j terms until the next power is below 1e-80."""
    total, power, powers = _identity(transition.nrows()), transition, []
    while True:
        total = total + power * total * power.transpose()
        powers.append(power)
        if all(abs(entry) < 1e-80 for entry in power.entries()):
            return total, powers
        power = power * power


def _added(transition, terms):
    power = total = _identity(transition.nrows())
    powers = [power]
    for _ in range(terms - 1):
        power = transition * power
        powers.append(power)
        total = total + power * power.transpose()
    return total, powers


def _identity(size):
    return flint.arb_mat(np.eye(size).tolist())


def _floats(matrix):
    return np.array([float(entry) for entry in matrix.entries()]).reshape(matrix.nrows(), matrix.ncols())
