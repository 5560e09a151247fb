"""Shards: the same split of the same work on every machine, without a word between them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from mnemoscope.core.errors import expected

__all__ = ["Shard", "split"]

T = TypeVar("T")


@dataclass(frozen=True, order=True)
class Shard:
    """One share of a whole: `number`, from 1 on, `of` so many."""

    of: int
    number: int

    @classmethod
    def parse(cls, text: str) -> Shard:
        """Return the shard of a text.

        Examples
        --------
        >>> print(Shard.parse("3/64"))
        3/64
        """
        found = re.fullmatch(r"\s*(\d{1,6})\s*/\s*(\d{1,6})\s*", text)
        shard = cls(int(found[2]), int(found[1])) if found else None
        if shard is None or not 1 <= shard.number <= shard.of:
            raise expected("a shard", "K/N with K from 1 to N, as in 3/64", text)
        return shard

    def __str__(self) -> str:
        return f"{self.number}/{self.of}"

    @property
    def label(self) -> str:
        """Its name in those of files, in which shards of a whole stand in order.

        Examples
        --------
        >>> Shard.parse("3/64").label
        'shard-03-of-64'
        """
        return f"shard-{self.number:0{len(str(self.of))}d}-of-{self.of}"


def split(items: Sequence[T], shard: Shard) -> list[T]:
    """Return a shard's share: every `of`-th item, from its number on.

    Where items are in the order of their cost, as runs of a study are, shares cost about as much as each other.

    Examples
    --------
    >>> split("abcdefg", Shard.parse("2/3"))
    ['b', 'e']
    """
    return list(items[shard.number - 1 :: shard.of])
