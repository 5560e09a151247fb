"""Signs for the symbols of tasks, as a person would write them."""

from __future__ import annotations

import string

__all__ = ["BLANK", "CUE", "letters", "numerals"]

BLANK = "·"
CUE = "▸"

_LETTERS = string.ascii_lowercase + string.ascii_uppercase


def letters(count: int) -> list[str]:
    """Return signs for `count` letters: a, b, .., Z, and numbers where the alphabet is not enough.

    Examples
    --------
    >>> letters(3)
    ['a', 'b', 'c']
    """
    return list(_LETTERS[:count]) if count <= len(_LETTERS) else numerals(count)


def numerals(count: int) -> list[str]:
    """Return the numbers from 0, all of one width."""
    width = len(str(count - 1))
    return [f"{number:0{width}d}" for number in range(count)]
