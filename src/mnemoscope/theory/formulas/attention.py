"""Gradients through attention: sums over paths by number of skips, and the laws for uniform and sparse attention.

The network is h_{t+1} = phi(V s_t + U x_{t+1} + b), s_t = h_t + c_t, c_t = sum_i alpha_{t,i} h_i, as in Kerg et al.
(2020). Steps are counted from 0 in arrays, so that ``attention[t, i]`` is the weight at step t on state i.
"""

from __future__ import annotations

import cmath
import math
from typing import Any

import numpy as np
from jaxtyping import Complex, Float

from mnemoscope.core.arrays import positive, square
from mnemoscope.core.errors import Description, UserError, expected, positive_int

__all__ = [
    "attention_matrix",
    "chain_attention",
    "path_sums",
    "sparse_attention_bound",
    "uniform_attention",
    "uniform_attention_constant",
    "uniform_attention_exponent",
    "uniform_attention_gradient",
]


def attention_matrix(name: str, value: Any) -> Float[np.ndarray, "T T"]:
    """Return `value` as weights of attention: square, lower triangular, not negative; else raise the standard error."""
    found = square(name, value)
    if found.min() < 0:
        raise expected(name, "made of weights of at least 0", Description(f"the entry {found.min():.6g}"))
    ahead = np.argwhere(np.triu(found, 1))
    if len(ahead):
        t, i = ahead[0]
        raise expected(
            name, "lower triangular: [t, i] is the weight at step t on state i <= t", Description(f"[{t}, {i}] != 0")
        )
    return found


def uniform_attention(length: int) -> Float[np.ndarray, "T T"]:
    """Return the weights 1/t on all t states so far.

    Examples
    --------
    >>> uniform_attention(2).tolist()
    [[1.0, 0.0], [0.5, 0.5]]
    """
    steps = np.arange(1, positive_int("length", length) + 1)
    return np.tril(np.ones((length, length))) / steps[:, None]


def chain_attention(kappa: int, depth: int, gap: int) -> Float[np.ndarray, "T T"]:
    """Return weights 1/kappa on kappa states at every step, whose only way around the recurrence is one long chain.

    The first kappa states are idle: every step attends to them alone, except one step each `gap` steps. That one
    puts one of its weights on the state `gap` steps before it (the state after the link below, for the links above
    the first). The chain leads from state kappa (from 0) to the last step through `depth` intermediate states.

    Parameters
    ----------
    kappa
        States that each step attends to.
    depth
        Intermediate states of the chain: it has depth + 1 links.
    gap
        Steps that a link spans.
    """
    kappa, gap = positive_int("kappa", kappa), positive_int("gap", gap)
    if isinstance(depth, bool) or not isinstance(depth, int) or depth < 0:
        raise expected("depth", "an integer of at least 0", depth)
    length = kappa + gap + 1 + depth * (gap + 1)
    weights = np.zeros((length, length))
    for step in range(length):
        weights[step, :kappa] = 1 / min(kappa, step + 1)
    weights[:kappa] = np.tril(weights[:kappa])
    for link in range(depth + 1):
        state = kappa + link * (gap + 1)
        weights[state + gap, kappa - 1] = 0.0
        weights[state + gap, state] = 1 / kappa
    return weights


def path_sums(
    direct: Float[np.ndarray, "K n n"], links: Float[np.ndarray, "K K n n"]
) -> Float[np.ndarray, "K skips n n"]:
    r"""Return the gradient along all paths with s links, for every lag k and every s.

    .. math::
        \xi_k(0) = E_k, \qquad \xi_k(s) = \sum_{j<k} F_{k,j} \xi_j(s-1), \qquad \sum_s \xi_k(s) = C_k
        = E_k + \sum_{j<k} F_{k,j} C_j

    This is Proposition B.1.7 of Kerg as a recursion: O(K^3 n^3) instead of 2^K products.

    Parameters
    ----------
    direct
        E_0 .. E_{K-1}: partial derivatives of s_{t+k} by h_t.
    links
        F_{k,j} for j < k: derivatives of s_{t+k} by s_{t+j} through h_{t+j+1}, and directly for j = k - 1.

    Returns
    -------
    ``[k, s]`` is the n x n matrix of lag k and s links (s Jacobians, s intermediate states, s + 1 skips).

    Examples
    --------
    >>> one = np.ones((3, 1, 1))
    >>> path_sums(one, np.ones((3, 3, 1, 1)))[2, :, 0, 0].tolist()
    [1.0, 2.0, 1.0]
    """
    e, f = np.asarray(direct, dtype=float), np.asarray(links, dtype=float)
    if e.ndim != 3 or e.shape[1] != e.shape[2]:
        raise expected("direct", "of shape (K, n, n)", e.shape)
    if f.shape != (len(e), *e.shape):
        raise expected("links", f"of shape {(len(e), *e.shape)}", f.shape)
    lags = len(e)
    sums = np.zeros((lags, lags, *e.shape[1:]))
    for k in range(lags):
        sums[k, 0] = e[k]
        if k:
            sums[k, 1:] = np.einsum("jab,jsbc->sac", f[k, :k], sums[:k, :-1])
    return sums


def uniform_attention_exponent(eigenvalue: complex) -> float:
    r"""Return the power of T by which \|ds_T/dh_t\| grows under uniform attention, for V = lambda, \|lambda\| < 1.

    .. math:: \left|\frac{ds_T}{dh_t}\right| \sim c\, T^{\,\mathrm{Re}\,\frac{\lambda}{1 - \lambda} - 1}

    Kerg (B.1.258) prints lambda - 1. It is at least -1, the published lower bound, exactly when
    \|lambda - 1/2\| <= 1/2.

    Examples
    --------
    >>> [round(uniform_attention_exponent(x), 6) for x in (0.5, 0.8, -0.5, 0.0)]
    [0.0, 3.0, -1.333333, -1.0]
    """
    value = _inside_disc(eigenvalue)
    return (value / (1 - value)).real - 1


def uniform_attention_constant(eigenvalue: complex, start: int = 1) -> complex:
    r"""Return the c of ds_T/dh_t ~ c T^(lambda/(1 - lambda) - 1) under uniform attention.

    .. math::
        c = \frac{(1-\lambda)^{-1-q}}{\Gamma(p)}\, (t-1)\, B(t-1, p)\; {}_2F_1(1-q, t-1; t-1+p; \lambda),
        \qquad p = \frac{1}{1-\lambda}, \quad q = \frac{1 - 2\lambda}{1-\lambda}

    with 1 in place of everything from (t-1) on at t = 1. With G_T = 1 + lambda sum_{j<T} ds_j/dh_t the recursion is
    T G_{T+1} = ((1 + lambda) T + lambda) G_T - lambda T G_{T-1}; its generating function solves a linear equation of
    first order, whose solution at t = 1 is x (1-x)^-p (1 - lambda x)^-q, and its singularity at 1 gives the law.

    Parameters
    ----------
    eigenvalue
        lambda, of modulus below 1.
    start
        t, the step of the state, counted from 1.

    Examples
    --------
    >>> round(abs(uniform_attention_constant(0.5)), 12)
    2.0
    """
    import flint

    value, t = _inside_disc(eigenvalue), positive_int("start", start)
    one, lam = flint.acb(1), flint.acb(value.real, value.imag)
    p, q = one / (one - lam), (one - 2 * lam) / (one - lam)
    found = (one - lam).pow(-one - q) * p.rgamma()
    if t > 1:
        beta = flint.acb(t).gamma() * p.gamma() * (p + (t - 1)).rgamma()
        found *= beta * lam.hypgeom_2f1(one - q, flint.acb(t - 1), p + (t - 1))
    return complex(found.real.mid(), found.imag.mid())


def uniform_attention_gradient(eigenvalue: complex, lags: int, start: int = 1) -> Complex[np.ndarray, " lags"]:
    """Return ds_{t+k}/dh_t for k = 0 .. lags - 1 under uniform attention, V = lambda: exact, in O(lags) steps.

    Parameters
    ----------
    eigenvalue
        lambda.
    lags
        How many.
    start
        t, the step of the state, counted from 1.

    Examples
    --------
    >>> uniform_attention_gradient(0.5, 4).real.tolist()
    [2.0, 2.0, 2.0, 2.0]
    """
    t, total = positive_int("start", start), complex(eigenvalue)
    if not cmath.isfinite(total):
        raise expected("eigenvalue", "a finite number", eigenvalue)
    found = np.empty(positive_int("lags", lags), dtype=complex)
    value, before, reached = total, complex(0), complex(1)  # reached: 1 + lambda times the sum of all gradients so far
    for k in range(len(found)):
        before = (1.0 if k == 0 else value * before) + reached / (t + k)
        reached += value * before
        found[k] = before
    return found


def sparse_attention_bound(kappa: int, depth: int, eigenvalue: float) -> float:
    r"""Return a lower bound of \|ds_T/dh_t\| under kappa-sparse uniform attention with dependency depth d.

    .. math:: \left|\frac{ds_T}{dh_t}\right| \ge \min_{s \le d} \frac{\lambda^s}{\kappa^{s+1}}
        = \frac{\lambda^d}{\kappa^{d+1}} \quad (\lambda \le \kappa)

    A chain through d intermediate states has d + 1 skips, each of weight 1/kappa at least, and passes V d times. For
    a real positive eigenvalue of a normal V no path cancels another, so the bound holds at every length. Kerg (B.1.285)
    prints 1/kappa^d and no lambda.

    Parameters
    ----------
    kappa
        States that each step attends to, at most.
    depth
        d, the fewest intermediate states on a chain of attended states, at most.
    eigenvalue
        lambda > 0.

    Examples
    --------
    >>> sparse_attention_bound(4, 1, 0.5)
    0.03125
    """
    kappa, value = positive_int("kappa", kappa), positive("eigenvalue", eigenvalue)
    if isinstance(depth, bool) or not isinstance(depth, int) or depth < 0:
        raise expected("depth", "an integer of at least 0", depth)
    return min(1.0, (value / kappa) ** depth) / kappa


def _inside_disc(eigenvalue: complex) -> complex:
    try:
        value = complex(eigenvalue)
    except (TypeError, ValueError):
        raise expected("eigenvalue", "a number", eigenvalue) from None
    modulus = abs(value)
    if not modulus < 1 or math.isnan(modulus):
        raise UserError(
            f"the law of uniform attention needs an eigenvalue inside the unit disc, got modulus {modulus:.6g}"
        )
    return value
