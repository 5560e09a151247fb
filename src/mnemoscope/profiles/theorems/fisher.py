"""What is known of Fisher memory before it is measured. The noise on every unit has variance 1 throughout."""

from __future__ import annotations

import numpy as np

from mnemoscope.core.errors import UserError
from mnemoscope.core.numbers import number
from mnemoscope.profiles.theorems.subject import Subject
from mnemoscope.profiles.theorems.table import Finding, theorem
from mnemoscope.theory.formulas.fisher import amplification_bound, delay_line_curve, triangular_fisher_bounds

_LAG = 10


def _gentle(s: Subject) -> bool:
    """Whether no input moves the state by more than the U's do: linear, or real layers with slopes of at most 1."""
    return s.linear or (s.first_order and not s.complex)


@theorem(
    "fisher-total-bound",
    topic="fisher",
    applies=_gentle,
    reference="ganguli2008",
    claims=("kerg-fisher-trace", "kerg-fisher-trajectory", "kerg-fisher-input-noise"),
)
def total_bound(s: Subject) -> Finding:
    r"""Trace(J^s) = N: along any trajectory sum_k tr(P_k^T C^-1 P_k) = tr(C^-1 C), so J_tot <= N max \|b_t\|^2."""
    size = s.state_size or 0
    value = size * s.input_norm**2
    text = (
        f"Its total Fisher memory is at most N b^2 = {number(size)} x {number(s.input_norm**2)} = {number(value)} for "
        f"every unit input: one moves the state by at most b = {number(s.input_norm)}, and summed over all directions "
        f"of a state of N numbers the total is N, at noise 1."
    )
    return Finding(text, value, "bound")


@theorem(
    "fisher-normal",
    topic="fisher",
    applies=lambda s: s.linear and s.layers == 1 and s.normal,
    reference="ganguli2008",
    claims=("kerg-fisher-normal",),
)
def normal(s: Subject) -> Finding:
    """For a normal matrix the total is the squared length of the input vector, at any horizon."""
    value = s.input_norm**2
    kept = "" if s.stays_orthogonal else " as these weights are; training may leave it"
    text = (
        f"Its recurrent matrix is normal{kept}, so its total Fisher memory is exactly |U u|^2, {number(value)} for the "
        f"best unit input, at any horizon: it only spreads over lags what one step takes in."
    )
    return Finding(text, value, "exact")


@theorem(
    "fisher-amplification",
    topic="fisher",
    applies=lambda s: s.linear,
    reference="ganguli2008",
    claims=("kerg-amplification-bound", "kerg-delay-line-optimal"),
)
def amplified(s: Subject) -> Finding:
    r"""J(k) <= 1 / sum_{m<=k} 1/A_m, and A_m <= \|\|W^m B\|\|^2 for every unit direction."""
    assert s.matrices is not None
    state, signal = s.matrices
    gains = []
    for _ in range(_LAG + 1):
        gains.append(float(np.linalg.norm(signal, 2)) ** 2)
        signal = state @ signal
    value = float(amplification_bound(gains)[-1])
    text = (
        f"An input of {_LAG} steps ago is amplified to at most |W^{_LAG} U|^2 = {number(gains[-1])}, so its Fisher "
        f"memory is at most {number(value)}; a delay line with the same amplification would reach that."
    )
    return Finding(text, value, "bound")


def _is_delay_line(s: Subject) -> bool:
    if not (s.linear and s.layers == 1 and s.first_order and s.n > 1) or np.iscomplexobj(s.V):
        return False
    below = s.V.diagonal(-1)
    shift = np.diag(below, -1)
    return bool(below[0] > 0 and np.array_equal(s.V, shift) and np.ptp(below) == 0 and not s.U[1:].any())


@theorem(
    "fisher-delay-line",
    topic="fisher",
    applies=_is_delay_line,
    reference="ganguli2008",
    claims=("kerg-delay-line", "kerg-delay-line-total", "kerg-no-interference"),
)
def delay(s: Subject) -> Finding:
    """A delay line has its curve in closed form."""
    gain = float(s.V[1, 0]) ** 2
    value = float(delay_line_curve(s.n, gain).sum()) * s.input_norm**2
    text = (
        f"It is a delay line of {s.n} units with gain a = {number(gain)}: J(k) = a^k (a - 1) / (a^(k+1) - 1) |U|^2 for "
        f"k < {s.n}, zero beyond, without interference between lags; in total {number(value)}."
    )
    return Finding(text, value, "exact")


def _is_triangular(s: Subject) -> bool:
    if not (s.linear and s.layers == 1 and s.first_order) or _is_delay_line(s) or s.U[1:].any():
        return False
    try:
        triangular_fisher_bounds(s.V)
    except (UserError, ValueError):
        return False
    return True


@theorem(
    "fisher-triangular",
    topic="fisher",
    applies=_is_triangular,
    reference="kerg2019",
    claims=("kerg-proposition-3.4.1", "sharper-triangular-bound", "kerg-alpha"),
)
def triangular(s: Subject) -> Finding:
    """Feed-forward chains with shortcuts remember at least so much."""
    bounds = triangular_fisher_bounds(s.V)
    value = float(bounds.sharper.sum()) * s.input_norm**2
    text = (
        f"Its recurrent matrix is strictly lower triangular with one weight along the sub-diagonal, so its total "
        f"Fisher memory is at least {number(value)} (Proposition 3.4.1, corrected, gives "
        f"{number(float(bounds.corrected.sum()) * s.input_norm**2)})."
    )
    return Finding(text, value, "bound")
