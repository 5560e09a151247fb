"""What recurrences track: groups that their transitions rule out, histories that they confuse, networks that do not."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

from mnemoscope.core.arrays import matrix, square
from mnemoscope.core.errors import UserError, expected, positive_int
from mnemoscope.theory.formulas.degree import diagonal_tensor
from mnemoscope.theory.formulas.groups import GroupFacts, group_facts

__all__ = [
    "LADDER",
    "Ruling",
    "TransitionFacts",
    "confused_difference",
    "parity_weights",
    "product_tracker",
    "rule_out_groups",
]

LADDER = ("Z2", "Z3", "Z60", "S3", "A5", "S5")
"""Groups of the ladder, from parity to a group that is not solvable."""


class TransitionFacts(NamedTuple):
    """What is known of the transitions A of layers h_t = A(x_t) h_{t-1} + b(x_t).

    Attributes
    ----------
    real
        Whether all their eigenvalues are real.
    non_negative
        Whether these are of at least 0 as well, or, where they are not, of moduli below a number below 1.
    fixed
        Whether A is the same at every input.
    commuting
        Whether the transitions of a layer commute: those that are diagonal in one basis do.
    layers
        Layers, one reading the other's outputs.
    passive
        Whether each part of the state has transitions that are the same at every input, or is a real number that is
        multiplied by numbers of at least 0.
    """

    real: bool
    non_negative: bool
    fixed: bool
    commuting: bool
    layers: int
    passive: bool = False


class Ruling(NamedTuple):
    """A group that transitions cannot track, the theorem that says so, and why in a few words."""

    group: str
    theorem: str
    because: str


class _Rule(NamedTuple):
    theorem: str
    because: str
    applies: Callable[[TransitionFacts], bool]
    forbids: Callable[[GroupFacts], bool]


_RULES = (
    _Rule(
        "tracking-positive-eigenvalues",
        "eigenvalues are real and not negative, or fade, so that outputs end constant when an element repeats",
        lambda a: a.non_negative,
        lambda g: g.size > 1,
    ),
    _Rule(
        "tracking-fixed-transitions",
        "transitions do not depend on the input, so that bounded states can be brought together",
        lambda a: a.fixed,
        lambda g: g.size > 1,
    ),
    _Rule(
        "tracking-mixed-layers",
        "transitions do not depend on the input, or are never negative: bounded states can be brought together",
        lambda a: a.passive,
        lambda g: g.size > 1,
    ),
    _Rule(
        "tracking-real-eigenvalues",
        "products of the transitions have real eigenvalues, and periods that are powers of 2",
        lambda a: a.real and a.commuting,
        lambda g: any(order & (order - 1) for order in g.orders),
    ),
    _Rule(
        "tracking-one-real-layer",
        "eigenvalues of the one layer are real: a repeated element has a period of at most 2",
        lambda a: a.real and a.layers == 1,
        lambda g: max(g.orders) > 2,
    ),
    _Rule(
        "tracking-commuting-layer",
        "transitions of the one layer commute, and the elements of the group do not",
        lambda a: a.commuting and a.layers == 1,
        lambda g: not g.abelian,
    ),
    _Rule(
        "tracking-solvable",
        "transitions commute, and the group is not solvable (unless TC^0 = NC^1)",
        lambda a: a.commuting,
        lambda g: not g.solvable,
    ),
)


def rule_out_groups(facts: TransitionFacts, groups: tuple[str, ...] = LADDER) -> tuple[Ruling, ...]:
    """Return the groups that layers with such transitions track at no weights, each with the strongest theorem.

    One element of the group comes at each step, states are bounded and read with finite precision, and lengths are not
    bounded. A network that is nonlinear in its state has no such transitions: nothing is ruled out for it.

    Examples
    --------
    >>> diagonal = TransitionFacts(real=True, non_negative=False, fixed=False, commuting=True, layers=2)
    >>> [ruling.group for ruling in rule_out_groups(diagonal)]
    ['Z3', 'Z60', 'S3', 'A5', 'S5']
    """
    found = []
    for name in groups:
        group = group_facts(name)
        rule = next((each for each in _RULES if each.applies(facts) and each.forbids(group)), None)
        if rule is not None:
            found.append(Ruling(name, rule.theorem, rule.because))
    return tuple(found)


def confused_difference(U: Any, V: Any, steps: int) -> np.ndarray:
    r"""Return a difference of histories that a linear recurrence cannot see, as exact fractions, largest entry 1.

    The state :math:`h_t = V h_{t-1} + U x_t + b` is [V^(t-1) U, .., U] times the inputs, plus what does not depend on
    them. With n < d t units that matrix has a null vector: two histories that differ by it lead to the same state, and
    so to the same outputs, then and ever after, whatever phi is applied on the way up.

    Parameters
    ----------
    U, V
        Input and recurrent matrix, their floats taken as the exact rational values that they are.
    steps
        t; n < d t suffices, fewer steps may do.

    Returns
    -------
    Array (steps, d) of `fractions.Fraction`.

    Examples
    --------
    >>> confused_difference([[1.0]], [[0.5]], 2).tolist()
    [[Fraction(1, 1)], [Fraction(-1, 2)]]
    """
    import flint

    v = square("V", V)
    u = matrix("U", U)
    if len(u) != len(v):
        raise expected("U", f"of {len(v)} rows, as V", u.shape)
    n, d, t = len(v), u.shape[1], positive_int("steps", steps)
    power, recurrent = _rational(u), _rational(v)
    blocks = []
    for _ in range(t):
        blocks.append(power.tolist())
        power = recurrent * power
    # The newest inputs first: they are the pivots, and the null vector starts as late as it can.
    rows = [[entry for block in blocks for entry in block[i]] for i in range(n)]
    echelon, rank = flint.fmpq_mat(rows).rref()
    pivots = [next(j for j in range(d * t) if echelon[i, j] != 0) for i in range(rank)]
    free = next((j for j in range(d * t) if j not in pivots), None)
    if free is None:
        raise UserError(f"{n} units tell apart all histories of {t} steps of {d} inputs; take steps > {n // d}")
    found = [Fraction(0)] * (d * t)
    found[free] = Fraction(1)
    for i, pivot in enumerate(pivots):
        found[pivot] = -Fraction(int(echelon[i, free].p), int(echelon[i, free].q))
    largest = max(found, key=abs)
    difference = np.empty(d * t, dtype=object)
    difference[:] = [entry / largest for entry in found]
    return difference.reshape(t, d)[::-1]


def product_tracker(input_size: int) -> dict[str, Float[np.ndarray, " ..."]]:
    """Return weights of a `2rnn` without biases and nonlinearity that multiplies its inputs: A_ijk = 1 if i = j = k.

    From a state of ones h_t = x_1 * .. * x_t, entry by entry: parity, for inputs of -1 and 1.

    Parameters
    ----------
    input_size
        d, which is the hidden size too.

    Examples
    --------
    >>> product_tracker(1)["weight_bilinear_l0"].tolist()
    [[[1.0]]]
    """
    d = positive_int("input_size", input_size)
    zero = np.zeros((d, d))
    return {"weight_bilinear_l0": diagonal_tensor(d, d), "weight_ih_l0": zero, "weight_hh_l0": zero.copy()}


def parity_weights(input_size: int) -> dict[str, Float[np.ndarray, " ..."]]:
    """Return the weights of a linear 2RNN with n = d units whose h_t + 1 is the parity of signs, at any length.

    The parity x_1 * .. * x_t of each channel is p_t = p_{t-1} * x_t from p_0 = 1. A 2RNN starts from zero, so
    h = p - 1: h_t = h_{t-1} * x_t + x_t - 1, that is A = delta, U = I, V = 0, b = -1. (A BIRNN, which starts from ones,
    needs A alone.)

    Parameters
    ----------
    input_size
        d, the number of channels.

    Examples
    --------
    >>> sorted(parity_weights(5))
    ['bias_l0', 'weight_bilinear_l0', 'weight_hh_l0', 'weight_ih_l0']
    """
    d = positive_int("input_size", input_size)
    return {
        "weight_bilinear_l0": diagonal_tensor(d, d),
        "weight_ih_l0": np.eye(d),
        "weight_hh_l0": np.zeros((d, d)),
        "bias_l0": -np.ones(d),
    }


def _rational(values: np.ndarray) -> Any:
    import flint

    return flint.fmpq_mat([[flint.fmpq(*float(entry).as_integer_ratio()) for entry in row] for row in values])
