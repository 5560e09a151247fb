"""Small groups as multiplication tables."""

from __future__ import annotations

import itertools
import re
from functools import cache

import numpy as np

from mnemoscope.core.errors import expected

__all__ = ["group_size", "multiplication_table"]


def group_size(name: str) -> int:
    """Return the number of elements of a group.

    Examples
    --------
    >>> group_size("A5")
    60
    """
    return len(multiplication_table(name))


@cache
def multiplication_table(name: str) -> np.ndarray:
    """Return the table of a group: entry (a, b) is the number of the product a b; element 0 is the identity.

    For permutations, a b means: first b, then a.
    """
    cyclic = re.fullmatch(r"Z([1-9]\d{0,3})", name) if isinstance(name, str) else None
    if cyclic and 2 <= int(cyclic[1]) <= 1000:
        numbers = np.arange(int(cyclic[1]))
        return (numbers[:, None] + numbers) % len(numbers)
    permutations = {"S3": (3, False), "A5": (5, True), "S5": (5, False)}
    if name not in permutations:
        raise expected("group", "Z2, Z3, .., Z1000, S3, A5 or S5", name)
    return _permutation_table(*permutations[name])


def _permutation_table(letters: int, only_even: bool) -> np.ndarray:
    elements = np.array([p for p in itertools.permutations(range(letters)) if not only_even or _is_even(p)])
    products = elements[:, elements]  # products[a, b, i] = a(b(i))
    weights = letters ** np.arange(letters)
    number = {int(code): index for index, code in enumerate(elements @ weights)}
    table: np.ndarray = np.vectorize(number.__getitem__)(products @ weights)
    return table


def _is_even(permutation: tuple[int, ...]) -> bool:
    return sum(a > b for a, b in itertools.combinations(permutation, 2)) % 2 == 0
