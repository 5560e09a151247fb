"""What a claim is: a theorem, conjecture or erratum of the documents, with a check that evaluates it live."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from mnemoscope.core.errors import choice
from mnemoscope.core.registry import Registry

__all__ = ["CLAIMS", "STATUSES", "Claim", "Verdict", "claim"]

STATUSES = ("proved", "measured", "false")
"""``proved``: there is a proof, the check tries it on cases. ``measured``: a conjecture or an observation that held on
the cases tried. ``false``: false as published; the check shows a witness, and that the corrected statement holds."""


@dataclass(frozen=True)
class Verdict:
    """What evaluating a claim gave.

    Attributes
    ----------
    confirmed
        Whether the evaluation agrees with the claim's status: no exception among the cases of a true claim, a witness
        against a false one (and no exception to its correction).
    cases
        How many cases were tried.
    evidence
        The numbers, in one line; for a false claim the witness, concrete enough to be repeated by hand.
    """

    confirmed: bool
    cases: int
    evidence: str


@dataclass(frozen=True)
class Claim:
    """A statement of a document.

    Attributes
    ----------
    name
        By which it is checked: ``kerg-delay-line``.
    source
        Document and place: ``Kerg Prop. 3.4.1``.
    statement
        What the document claims, in our words, in one line.
    status
        One of `STATUSES`.
    correction
        What is right instead, for a false one.
    check
        Evaluates it on cases drawn from a seed.
    """

    name: str
    source: str
    statement: str
    status: str
    check: Callable[[int], Verdict]
    correction: str = ""


CLAIMS: Registry[Claim] = Registry("claim", "mnemoscope.claims", Claim)


def claim(
    name: str, source: str, statement: str, status: str, correction: str = ""
) -> Callable[[Callable[[int], Verdict]], Callable[[int], Verdict]]:
    """Return a decorator that files a check, ``seed -> Verdict``, as a claim."""
    choice("status", status, STATUSES)

    def file(check: Callable[[int], Verdict]) -> Callable[[int], Verdict]:
        CLAIMS.register(name)(Claim(name, source, statement, status, check, correction))
        return check

    return file
