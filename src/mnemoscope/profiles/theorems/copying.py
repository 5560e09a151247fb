"""How far back linear networks can copy, and with how many parameters."""

from __future__ import annotations

import math

from mnemoscope.core.numbers import number
from mnemoscope.profiles.theorems.subject import Subject
from mnemoscope.profiles.theorems.table import Finding, theorem
from mnemoscope.theory.formulas.copying import copy_frontier, copy_limit, copy_parameters, critical_width

_SYMBOLS = 10
"""Of the copy task that the documents use."""
_MOST = 4096
"""The longest lag for which the cheapest network is looked for."""


def _linear_layers(s: Subject) -> bool:
    return s.first_order and s.linear and not s.complex


def _free(s: Subject) -> bool:
    return _linear_layers(s) and s.map is None


@theorem(
    "copy-limit",
    topic="copying",
    applies=lambda s: _linear_layers(s) and s.n >= s.d,
    reference="lizaire2026",
    claims=("depth-theorem-1", "depth-copy-all-inputs", "depth-lemma-2-component"),
)
def limit(s: Subject) -> Finding:
    """The longest lag: p d <= L (n - d)."""
    lag = copy_limit(s.n, s.layers, s.d)
    one = "" if s.d == 1 else f" (one input alone: {number(s.layers * (s.n - 1))})"
    room = f"p d <= L (n - d) = {s.layers} x ({s.n} - {s.d}) = {number(s.layers * (s.n - s.d))}"
    if s.map is None:
        text = f"The best weights of its size copy all {s.d} inputs {number(lag)} steps back, no further: {room}{one}."
        return Finding(text, lag, "exact")
    text = f"No weights of its size copy all {s.d} inputs more than {number(lag)} steps back: {room}{one}."
    return Finding(text, lag, "bound")


@theorem(
    "copy-nothing-whole",
    topic="copying",
    applies=lambda s: _linear_layers(s) and s.n < s.d,
    reference="lizaire2026",
    claims=("depth-copy-all-inputs",),
)
def nothing(s: Subject) -> Finding:
    """Fewer units than inputs copy nothing whole."""
    text = f"With fewer units ({s.n}) than inputs ({s.d}) it cannot copy all inputs, not even the present ones."
    return Finding(text, None, "exact")


def _has_frontier(s: Subject) -> bool:
    return _free(s) and s.n >= s.d and 1 <= copy_limit(s.n, s.layers, s.d) <= _MOST


@theorem(
    "copy-parameters",
    topic="copying",
    applies=_has_frontier,
    reference="lizaire2026",
    claims=("depth-theorem-2", "depth-theorem-2-sketch", "depth-cheapest-network"),
)
def cheapest(s: Subject) -> Finding:
    """What the same lag costs at other depths."""
    lag = copy_limit(s.n, s.layers, s.d)
    n, layers, parameters = copy_frontier(lag, s.d)[0]
    own = copy_parameters(s.n, s.layers, s.d)
    text = (
        f"To copy {number(lag)} steps back it has {number(own)} parameters; {layers} layers of {n} units would do it "
        f"with {number(parameters)}, the fewest of all depths (in theory: so deep a linear network is hard to train)."
    )
    return Finding(text, parameters, "exact")


@theorem(
    "copy-critical-width",
    topic="copying",
    applies=lambda s: _free(s) and s.layers > 1 and s.d == 1,
    reference="lizaire2026",
    claims=("depth-critical-width",),
)
def critical(s: Subject) -> Finding:
    """From which width on depth pays."""
    width = critical_width(s.layers, s.layers - 1)
    pays = "it does" if s.n > width else "it does not"
    text = (
        f"{s.layers} layers copy their longest lag with fewer parameters than {s.layers - 1} when they are wider than "
        f"{number(width)} units: here, with {s.n}, {pays}."
    )
    return Finding(text, width, "exact")


@theorem(
    "copy-clocks",
    topic="copying",
    applies=lambda s: _free(s) and s.layers == 1 and s.n >= 3 and s.d >= 3,
    reference="henaff2016",
)
def clocks(s: Subject) -> Finding:
    """Henaff's solution: clocks that meet again after the delay, with interference of random phases."""
    blocks = (s.n - 1) // 2
    value = math.sqrt((_SYMBOLS - 1) / (2 * blocks))
    text = (
        f"There are weights, {blocks} rotations that all return after T + {_SYMBOLS} steps, with which it solves the "
        f"copy task of {_SYMBOLS} symbols at any delay T; the other symbols disturb a score of 1 by a standard "
        f"deviation of {number(value)}, which falls as 1/sqrt(n)."
    )
    return Finding(text, value, "exact")
