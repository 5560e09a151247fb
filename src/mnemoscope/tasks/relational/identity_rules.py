"""Identity rules: the symbol that gives the second row the pattern of the first."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

import torch

from mnemoscope.core.errors import Description, choice, expected
from mnemoscope.tasks.registry import task
from mnemoscope.tasks.relational.base import ColouredTask, Problems, SymbolTask, chosen, letters_of, tabulate

__all__ = [
    "IdentityRules",
    "IdentityRules4",
    "IdentityRules4Flipped",
    "IdentityRules4FlippedMissing",
    "IdentityRules4Missing",
]

_RULES = ("AAA", "ABA", "ABB")
_TWO = ("AAAA", "ABAA", "AABA", "BAAA", "ABBA", "ABAB", "AABB")
_THREE = ("ABCA", "BACA", "BCAA")


@lru_cache(maxsize=16)
def _table(rules: tuple[str, ...], letters: int) -> Problems:
    """Return every rule with every order of the choices; a row has up to `letters` symbols, and all are choices."""
    rows = []
    for rule, order in itertools.product(rules, itertools.permutations(range(2 * letters))):
        second = letters_of(rule, letters)
        rows.append(([*letters_of(rule), *second[:-1], *order], order.index(second[-1])))
    return tabulate(rows)


@task("identity-rules")
@dataclass(frozen=True)
class IdentityRules(ColouredTask):
    """Say which of four choices completes the second row by the rule of the first: AAA, ABA or ABB, a third each.

    Nine panels: a row of three; two of a row with new symbols; the four symbols, shuffled, as choices.
    """

    rows: ClassVar[tuple[int, ...]] = (3, 2, 4)

    @property
    def needed(self) -> dict[str, int]:
        """Four."""
        return {"train": 4, "test": 4}

    @property
    def output_size(self) -> int:
        """The choices."""
        return 4

    def problems(self, batch: int, generator: torch.Generator | None) -> Problems:
        """Draw a rule, and shuffle the choices."""
        return chosen(_table(_RULES, 2), batch, generator)


@task("identity-rules-4")
@dataclass(frozen=True)
class IdentityRules4(SymbolTask):
    """Say which of six choices completes the second row of four by the rule of the first; the test has other rules.

    13 panels: a row of four; three of a row with new symbols; the six symbols, shuffled, as choices. Training has the
    rules AAAA, ABAA, AABA, BAAA, ABBA, ABAB and AABB; the test ABCA, BACA and BCAA.

    Parameters
    ----------
    missing
        Rules that training leaves out.
    """

    held_out: int = 94
    missing: tuple[str, ...] = ()

    rows: ClassVar[tuple[int, ...]] = (4, 3, 6)
    rules: ClassVar[dict[str, tuple[str, ...]]] = {"train": _TWO, "test": _THREE}

    def __post_init__(self) -> None:
        """Check the settings."""
        super().__post_init__()
        given = (self.missing,) if isinstance(self.missing, str) else self.missing
        if not isinstance(given, tuple | list):
            raise expected("missing", "rules", self.missing)
        object.__setattr__(
            self, "missing", tuple(choice("a rule of missing", one, self.rules["train"]) for one in given)
        )
        if not self._rules("train"):
            raise expected("missing", "fewer rules than training has", Description("all of them"))

    @property
    def needed(self) -> dict[str, int]:
        """Six."""
        return {"train": 6, "test": 6}

    @property
    def output_size(self) -> int:
        """The choices."""
        return 6

    def problems(self, batch: int, generator: torch.Generator | None) -> Problems:
        """Draw a rule, and shuffle the choices."""
        return chosen(_table(self._rules(self.part), 3), batch, generator)

    def _rules(self, part: str) -> tuple[str, ...]:
        kept = self.rules[part]
        return tuple(rule for rule in kept if part == "test" or rule not in self.missing)


@task("identity-rules-4-missing")
@dataclass(frozen=True)
class IdentityRules4Missing(IdentityRules4):
    """`identity-rules-4` whose training lacks ABAA and ABAB, from which the rules of the test could be put together."""

    missing: tuple[str, ...] = ("ABAA", "ABAB")


@task("identity-rules-4-flipped")
@dataclass(frozen=True)
class IdentityRules4Flipped(IdentityRules4):
    """`identity-rules-4` with the rules of training and test swapped."""

    rules: ClassVar[dict[str, tuple[str, ...]]] = {"train": _THREE, "test": _TWO}


@task("identity-rules-4-flipped-missing")
@dataclass(frozen=True)
class IdentityRules4FlippedMissing(IdentityRules4Flipped):
    """`identity-rules-4-flipped` whose training lacks ABCA."""

    missing: tuple[str, ...] = ("ABCA",)
