"""Checks of settings, in the one form of an error."""

from __future__ import annotations

from typing import Any

from mnemoscope.core.errors import UserError, expected

__all__ = ["at_least", "too_large", "true_or_false"]


def at_least(name: str, value: Any, least: int) -> int:
    """Return `value` as an int, or raise the standard error unless it is a whole number of `least` or more."""
    try:
        if isinstance(value, bool) or (number := value.__index__()) < least:
            raise ValueError
    except (AttributeError, ValueError):
        raise expected(name, f"a whole number of at least {least}", value) from None
    return int(number)


def too_large(name: str, value: int, most: int, why: str) -> UserError:
    """Build the error of a setting that another one limits."""
    return expected(name, f"at most {most} ({why})", value)


def true_or_false(name: str, value: Any) -> None:
    """Raise the standard error unless `value` is True or False."""
    if not isinstance(value, bool):
        raise expected(name, "true or false", value)
