"""Form of every error: what was wrong, what was expected, what came."""

from __future__ import annotations

import difflib
import operator
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

__all__ = [
    "Advised",
    "MnemoscopeError",
    "Overtime",
    "RecordWarning",
    "UserError",
    "choice",
    "expected",
    "nearest",
    "positive_int",
    "unknown",
]


class MnemoscopeError(Exception):
    """Base of every error that Mnemoscope raises on purpose."""


class UserError(MnemoscopeError, ValueError):
    """A mistake in what the caller gave. Its message is one line."""


class Overtime(UserError):
    """What took longer than it was allowed."""


class RecordWarning(UserWarning):
    """Something in a record of runs was damaged and could be made good without losing a number."""


class Advised(UserError):
    """A mistake that options mend which were tried: `flags` as they are typed, `python` as a call has them.

    `options` are those among them that a constructor takes, `advice` the others, by name.
    """

    def __init__(
        self,
        reason: str,
        flags: Sequence[str],
        python: str,
        options: Mapping[str, Any] | None = None,
        advice: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(f"{reason}; add {' '.join(flags)} (in Python {python})")
        self.reason, self.flags, self.python = reason, tuple(flags), python
        self.options, self.advice = dict(options or {}), dict(advice or {})

    def __reduce__(self) -> tuple[type[Advised], tuple[Any, ...]]:
        return type(self), (self.reason, self.flags, self.python, self.options, self.advice)


def expected(name: str, what: str, got: Any) -> UserError:
    """Build the standard error ``NAME must be WHAT, got GOT``.

    Examples
    --------
    >>> str(expected("hidden_size", "a positive integer", -3))
    'hidden_size must be a positive integer, got -3'
    """
    return UserError(f"{name} must be {what}, got {_one_line(got)}")


def positive_int(name: str, value: Any) -> int:
    """Return `value` as an int, or raise the standard error unless it is a whole number above zero."""
    try:
        number = None if isinstance(value, bool) else operator.index(value)
    except TypeError:
        number = None
    if number is None or number < 1:
        raise expected(name, "a positive integer", value)
    return number


def choice(name: str, value: Any, options: Iterable[str]) -> str:
    """Return `value` if it is one of `options`, or raise the standard error with the nearest of them."""
    names = list(options)
    if isinstance(value, str) and value in names:
        return value
    hint = f"; did you mean {near!r}?" if (near := nearest(value, names)) else ""
    raise UserError(f"{name} must be {' or '.join(map(repr, names))}, got {_one_line(value)}{hint}")


def unknown(problem: str, name: Any, options: Iterable[str], otherwise: str = "there are") -> UserError:
    """Build the error about a `name` that is none of `options`: with the nearest of them, else with all after a word.

    Examples
    --------
    >>> str(unknown("it has no setting 'delai'", "delai", ["delay", "symbols"]))
    "it has no setting 'delai'; did you mean 'delay'?"
    >>> str(unknown("it has no setting 'x'", "x", ["delay", "symbols"], "it has"))
    "it has no setting 'x'; it has delay, symbols"
    """
    names = list(options)
    near = nearest(name, names)
    hint = f"did you mean {near!r}?" if near else f"{otherwise} {', '.join(names)}"
    return UserError(f"{problem}; {hint}")


def nearest(name: Any, options: Iterable[str]) -> str | None:
    """Return the option most like `name`, or None when nothing is close.

    Examples
    --------
    >>> nearest("nnrn", ["rnn", "nnrnn", "lstm"])
    'nnrnn'
    """
    if not isinstance(name, str):
        return None
    folded = {option.casefold(): option for option in options}
    found = difflib.get_close_matches(name.casefold(), folded, n=1, cutoff=0.6)
    return folded[found[0]] if found else None


def _one_line(value: Any) -> str:
    if isinstance(value, Description):
        return str(value)
    text = " ".join(repr(value).split())
    return text if len(text) <= 120 else text[:117] + "..."


class Description(str):
    """Words that describe what came, printed as they are instead of quoted."""

    __slots__ = ()
