"""Allowance of memory: the bytes that one computation may take, asked before it takes them."""

from __future__ import annotations

import math
import os
from fractions import Fraction

import psutil

from mnemoscope.core.errors import UserError, expected

__all__ = ["VARIABLE", "allowance", "human", "require"]

VARIABLE = "MNEMOSCOPE_MEMORY"
"""The environment variable that sets the allowance, in gigabytes."""


def allowance() -> int:
    """Return the bytes that one computation may take: `MNEMOSCOPE_MEMORY` gigabytes, else half of what is free."""
    told = os.environ.get(VARIABLE)
    if told is None:
        return int(psutil.virtual_memory().available) // 2
    try:
        gigabytes = float(told)
    except ValueError:
        gigabytes = 0.0
    if not 0 < gigabytes < math.inf:
        raise expected(VARIABLE, "a positive number of gigabytes", told)
    return int(Fraction(gigabytes) * 2**30)


def require(what: str, needed: int, fits: str) -> None:
    """Raise unless `needed` bytes are allowed. `fits` says what would fit: ``"horizon=4096 would fit"``."""
    allowed = allowance()
    if needed > allowed:
        raise UserError(
            f"{what} needs {human(needed)} of memory, {human(allowed)} are allowed ({VARIABLE} sets this); {fits}"
        )


def human(size: int) -> str:
    """Return a number of bytes in words.

    Examples
    --------
    >>> human(3 * 2**29)
    '1.5 GB'
    """
    value = float(size)
    for unit in ("bytes", "kB", "MB", "GB", "TB"):
        if round(value, 1) < 1024 or unit == "TB":
            break
        value /= 1024
    return f"{value:.0f} {unit}" if unit == "bytes" else f"{value:.1f} {unit}"
