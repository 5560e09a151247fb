"""What is known of gradients through attention over past states."""

from __future__ import annotations

import numpy as np

from mnemoscope.core.numbers import number
from mnemoscope.profiles.theorems.subject import Subject
from mnemoscope.profiles.theorems.table import Finding, theorem
from mnemoscope.theory.formulas.attention import uniform_attention_exponent


def _square(s: Subject) -> bool:
    """Whether it is an attentive network with one recurrent matrix whose eigenvalues lie inside the unit disc."""
    if s.family != "attention" or getattr(s.module, "weight_hh_l0", None) is None:
        return False
    rows, columns = s.V.shape
    return bool(rows == columns and np.abs(np.linalg.eigvals(s.V)).max() < 1)


@theorem(
    "attention-uniform",
    topic="gradients",
    applies=_square,
    reference="kerg2020",
    claims=(
        "kerg-attention-paths",
        "kerg-uniform-attention-growth",
        "kerg-uniform-attention-bound",
        "kerg-uniform-attention-depth",
    ),
)
def uniform(s: Subject) -> Finding:
    """T^(Re(lambda / (1 - lambda)) - 1) for the eigenvalue that lets most through."""
    powers = [uniform_attention_exponent(complex(value)) for value in np.linalg.eigvals(s.V)]
    value = max(powers)
    inside = int(sum(power >= -1 for power in powers))
    text = (
        f"Under uniform attention, and linear, the gradient from T steps back to a state grows as T^{number(value)} "
        f"with these weights; {inside} of {len(powers)} eigenvalues keep it at least of order 1/T (those with "
        f"|lambda - 1/2| <= 1/2)."
    )
    return Finding(text, value, "exact")
