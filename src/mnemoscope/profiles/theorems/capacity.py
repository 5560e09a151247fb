"""What is known of memory capacity before it is measured."""

from __future__ import annotations

import numpy as np

from mnemoscope.core.numbers import number
from mnemoscope.profiles.theorems.subject import Subject
from mnemoscope.profiles.theorems.table import Finding, theorem
from mnemoscope.theory.formulas.capacity import capacity_from_eigenvalues, controllability_rank

_MOST = 512
"""Numbers in a state up to which the exact rank is computed."""


@theorem(
    "capacity-bound",
    topic="capacity",
    applies=lambda s: s.recurrent,
    reference="dambre2012",
    claims=("capacity-bound",),
)
def bound(s: Subject) -> Finding:
    """Everything that linear readouts recover is at most the size of the state."""
    size = s.state_size or 0
    text = (
        f"All that linear readouts of its state recover of independent past inputs, linear and nonlinear together, "
        f"adds up to at most {number(size)}: the numbers in its state."
    )
    return Finding(text, size, "bound")


def _settles(s: Subject) -> bool:
    return s.linear and s.radius < 1 and (s.state_size or 0) <= _MOST


@theorem(
    "capacity-rank",
    topic="capacity",
    applies=_settles,
    reference="jaeger2001",
    claims=("capacity-rank", "capacity-by-regression"),
)
def rank(s: Subject) -> Finding:
    """The linear capacity of a linear network is the rank of its controllability matrix."""
    assert s.matrices is not None
    state, entry = s.matrices
    found = controllability_rank(state, entry[:, 0])
    text = (
        f"With these weights its linear memory capacity for the first input channel is exactly {found}: the rank of "
        f"[v, W v, W^2 v, ..], in exact arithmetic."
    )
    return Finding(text, found, "exact")


@theorem("capacity-linear-only", topic="capacity", applies=lambda s: s.linear, reference="dambre2012")
def linear_only(s: Subject) -> Finding:
    """The states of a linear network are orthogonal to every product of independent inputs."""
    text = (
        "Its nonlinear memory capacity is exactly 0: the states are linear in the inputs, and products of independent "
        "inputs are uncorrelated with them."
    )
    return Finding(text, 0.0, "exact")


@theorem(
    "capacity-eigenvalues",
    topic="capacity",
    applies=_settles,
    reference="white2004",
    claims=("capacity-eigenvalues",),
)
def from_eigenvalues(s: Subject) -> Finding:
    """How far a linear network remembers is decided by its eigenvalues alone."""
    size = s.state_size or 0
    curve = capacity_from_eigenvalues(s.eigenvalues, 4 * size + 64)
    kept = np.flatnonzero(curve >= 0.5)
    reach = int(kept[-1]) if len(kept) else -1
    until = f"up to lag {reach}" if len(kept) else "at no lag"
    text = (
        f"How much it recovers at each lag depends on its {size} eigenvalues alone, where the input reaches all of "
        f"them: at least half of an input's variance {until}, and {number(float(curve[0]))} of the present input's."
    )
    return Finding(text, reach, "exact")
