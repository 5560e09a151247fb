"""Weighted finite automata: what a bilinear network of one layer is on words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mnemoscope.core.errors import UserError, expected

__all__ = ["WeightedAutomaton"]


@dataclass(frozen=True, eq=False)
class WeightedAutomaton:
    """The function of words ``f(w_1 .. w_k) = initial^T A_{w_1} .. A_{w_k} final``.

    Attributes
    ----------
    initial
        Weights of the states before the first letter, (states,).
    transitions
        A_w, one matrix for each letter, (letters, states, states).
    final
        What each state adds to the weight of a word that ends in it, (states, outputs), or (states,) for one output.
        Integers and fractions stay exact.

    Examples
    --------
    The parity of the letter 1, as a sign:

    >>> parity = WeightedAutomaton([1], [[[1]], [[-1]]], [1])
    >>> [int(parity.weight(word)[0]) for word in ((), (1,), (0, 1, 1), (1, 1, 1))]
    [1, -1, 1, -1]
    """

    initial: np.ndarray
    transitions: np.ndarray
    final: np.ndarray

    def __post_init__(self) -> None:
        initial, transitions, final = (_numbers(getattr(self, name), name) for name in self.__dataclass_fields__)
        if initial.ndim != 1 or not initial.size:
            raise expected("initial", "a vector of one weight for each state", initial.shape)
        n = len(initial)
        if transitions.ndim != 3 or not transitions.size or transitions.shape[1:] != (n, n):
            raise expected("transitions", f"of shape (letters, {n}, {n})", transitions.shape)
        final = final[:, None] if final.ndim == 1 else final
        if final.ndim != 2 or final.shape[0] != n or not final.size:
            raise expected("final", f"of shape ({n},) or ({n}, outputs)", final.shape)
        for name, value in (("initial", initial), ("transitions", transitions), ("final", final)):
            object.__setattr__(self, name, value)

    @property
    def states(self) -> int:
        """Number of states."""
        return len(self.initial)

    @property
    def letters(self) -> int:
        """Size of the alphabet."""
        return len(self.transitions)

    def weight(self, word: Sequence[int]) -> np.ndarray:
        """Return the weight of a word of letters 0, 1, ..: one number for each output."""
        row = self.initial
        for letter in word:
            if not 0 <= letter < self.letters:
                raise UserError(f"a letter must be a whole number from 0 to {self.letters - 1}, got {letter}")
            row = row @ self.transitions[letter]
        return np.asarray(row @ self.final)


def _numbers(values: Any, name: str) -> np.ndarray:
    found = np.asarray(values)
    if found.dtype.kind not in "iufO":
        raise expected(name, "an array of numbers", values)
    if found.dtype.kind == "f" and not np.isfinite(found).all():
        raise expected(name, "finite in every entry", values)
    return found
