"""Finite groups as permutations: orders of elements, what commutes, what is solvable."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterable
from functools import cache
from typing import NamedTuple

import numpy as np

from mnemoscope.core.errors import expected

__all__ = ["GroupFacts", "derived_subgroup", "end_of_derived_series", "generated_group", "group_facts", "group_of"]

Permutation = tuple[int, ...]


class GroupFacts(NamedTuple):
    """What decides which recurrences track a group.

    Attributes
    ----------
    size
        Elements.
    orders
        Orders of its elements, ascending, each once.
    abelian
        Whether all elements commute.
    solvable
        Whether its derived series ends at the identity.
    """

    size: int
    orders: tuple[int, ...]
    abelian: bool
    solvable: bool


@cache
def group_facts(name: str) -> GroupFacts:
    """Return the facts of a group, from its elements.

    Parameters
    ----------
    name
        ``"Zk"``, ``"Sn"`` or ``"An"``, n from 2 to 5.

    Examples
    --------
    >>> group_facts("S3")
    GroupFacts(size=6, orders=(1, 2, 3), abelian=False, solvable=True)
    """
    group = group_of(name)
    orders = {_order(element) for element in group}
    return GroupFacts(
        len(group), tuple(sorted(orders)), len(derived_subgroup(group)) == 1, end_of_derived_series(group) == 1
    )


def group_of(name: str) -> frozenset[Permutation]:
    """Return the elements of ``"Zk"``, ``"Sn"`` or ``"An"`` as permutations."""
    found = re.fullmatch(r"(Z)([1-9]\d{0,2})|([SA])([2-5])", name) if isinstance(name, str) else None
    if found is None:
        raise expected("group", "Z1 to Z999, S2 to S5 or A2 to A5", name)
    if found[1]:
        return generated_group([tuple((i + 1) % int(found[2]) for i in range(int(found[2])))])
    every = frozenset(itertools.permutations(range(int(found[4]))))
    return every if found[3] == "S" else frozenset(each for each in every if _even(each))


def generated_group(generators: Iterable[Permutation]) -> frozenset[Permutation]:
    """Return the group that some permutations of the same things generate."""
    generators = list(generators)
    found = {tuple(range(len(generators[0])))}
    fresh = set(found)
    while fresh:
        fresh = {_product(a, b) for a in fresh for b in generators} - found
        found |= fresh
    return frozenset(found)


def derived_subgroup(group: frozenset[Permutation]) -> frozenset[Permutation]:
    """Return the subgroup that the commutators generate."""
    inverse = {a: tuple(int(i) for i in np.argsort(a)) for a in group}
    commutators = {_product(_product(a, b), _product(inverse[a], inverse[b])) for a in group for b in group}
    return generated_group(sorted(commutators))


def end_of_derived_series(group: frozenset[Permutation]) -> int:
    """Return the size of the group at which taking commutators changes nothing any more: 1 of a solvable one."""
    while True:
        smaller = derived_subgroup(group)
        if len(smaller) == len(group):
            return len(group)
        group = smaller


def _product(a: Permutation, b: Permutation) -> Permutation:
    return tuple(a[i] for i in b)


def _order(element: Permutation) -> int:
    """Return the least common multiple of the lengths of its cycles."""
    left, found = set(range(len(element))), 1
    while left:
        start = place = left.pop()
        length = 1
        while (place := element[place]) != start:
            left.discard(place)
            length += 1
        found = math.lcm(found, length)
    return found


def _even(element: Permutation) -> bool:
    return sum(a > b for a, b in itertools.combinations(element, 2)) % 2 == 0
