"""All checks of a network, and the function that runs them."""

from __future__ import annotations

from collections.abc import Iterable

from mnemoscope.core.errors import UserError, nearest
from mnemoscope.testing import (
    errors,
    gradients,
    modes,
    packing,
    precision,
    randomness,
    sequences,
    shapes,
    storage,
    swapping,
    training,
    transforms,
)
from mnemoscope.testing.checking import Check
from mnemoscope.testing.report import CheckFailed, Report, Skipped
from mnemoscope.testing.stateless import STATELESS_CHECKS, StatelessSubject, is_stateless
from mnemoscope.testing.subject import Factory, Subject

__all__ = ["CHECKS", "check_network", "require_known"]

_THEMES = (
    shapes,
    sequences,
    modes,
    packing,
    gradients,
    precision,
    randomness,
    training,
    storage,
    swapping,
    transforms,
    errors,
)

CHECKS: list[Check] = [value for theme in _THEMES for name, value in vars(theme).items() if name.startswith("check_")]
"""All checks, the plainest first."""


def check_network(factory: Factory, *, skip: Iterable[str] = ()) -> Report:
    """Check that a network keeps the contract of its kind.

    Parameters
    ----------
    factory
        A class, or a function ``(input_size, hidden_size, **options)``, that builds the network; or a function
        without arguments, for which the checks of sizes and options are skipped. Networks that say that they have no
        state have checks of their own, `STATELESS_CHECKS`; tensor classifiers are called as
        ``factory(features=, rank=, length=, classes=)``.
    skip
        Names of checks to leave out.

    Returns
    -------
    What passed, and what was skipped with the reason.

    Raises
    ------
    CheckFailed
        After all checks, where some failed: a line for each, one sentence that says what the network's author must
        change; its ``report`` has all that was found.

    Examples
    --------
    >>> import mnemoscope as ms
    >>> print(check_network(lambda: ms.nn.GRU(3, 4), skip=("check_compile",)))  # doctest: +ELLIPSIS
    <lambda>: ... checks passed, ... skipped (...)
    """
    stateless = is_stateless(factory)
    subject, left_out = (StatelessSubject if stateless else Subject)(factory), set(skip)
    require_known(left_out)
    report, cause = Report(subject.name), None
    for check in STATELESS_CHECKS if stateless else CHECKS:
        if check.__name__ in left_out:
            report.skipped[check.__name__] = "the caller asked for it"
            continue
        try:
            check(subject)
        except Skipped as reason:
            report.skipped[check.__name__] = str(reason)
        except CheckFailed as failure:
            report.failed[check.__name__] = str(failure)
            cause = cause or failure.__cause__
        else:
            report.passed.append(check.__name__)
    if report.failed:
        raise CheckFailed("\n".join(report.failed.values()), report) from cause
    return report


def require_known(names: Iterable[str]) -> None:
    """Raise one line, with the nearest name, unless all of `names` are checks."""
    known = [check.__name__ for check in (*CHECKS, *STATELESS_CHECKS)]
    for name in names:
        if name not in known:
            near = nearest(name, known)
            raise UserError(f"there is no check {name!r}" + (f"; did you mean {near!r}?" if near else ""))
