"""All checks of a network, and the function that runs them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from mnemoscope.core.errors import choice, unknown
from mnemoscope.nn import Network
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
from mnemoscope.testing.modules import MODULE_CHECKS, adapted, check_reading
from mnemoscope.testing.report import CheckFailed, Report, Skipped
from mnemoscope.testing.stateless import STATELESS_CHECKS, StatelessSubject, is_stateless
from mnemoscope.testing.subject import Factory, Subject, class_of

__all__ = ["CHECKS", "LEVELS", "check_network", "checks_of", "require_known"]

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


LEVELS = ("contract", "module")
"""What is asked: the whole contract, or of a plain module what it computes."""


def checks_of(factory: Factory | str, level: str = "contract", **about: Any) -> tuple[Subject, list[Check]]:
    """Return the network as checks use it, and the checks of its kind on a level.

    Parameters
    ----------
    factory
        What builds the network; on the level of modules also ``file.py:Class``.
    level
        One of `LEVELS`.
    about
        On the level of modules: advice and weights, as `mnemoscope.nn.NetworkSpec` takes them.
    """
    plain = choice("level", level, LEVELS) == "module"
    own = class_of(factory)
    is_ours = own is not None and issubclass(own, Network) and not about
    made: Any = adapted(factory, about) if plain and not is_ours else factory
    stateless = is_stateless(made)
    subject: Subject = (StatelessSubject if stateless else Subject)(made)
    checks = STATELESS_CHECKS if stateless else CHECKS
    if not plain:
        return subject, list(checks)
    try:
        check_reading(subject)
    except CheckFailed:  # every other check would fail with the same sentence
        return subject, [check_reading]
    return subject, [check_reading, *(check for check in checks if check.__name__ in MODULE_CHECKS)]


def check_network(factory: Factory, *, skip: Iterable[str] = (), level: str = "contract", **about: Any) -> Report:
    """Check that a network keeps the contract of its kind, or that a plain module computes what it should.

    Parameters
    ----------
    factory
        A class, or a function ``(input_size, hidden_size, **options)``, that builds the network; or a function
        without arguments, for which the checks of sizes and options are skipped. Networks that say that they have no
        state have checks of their own, `STATELESS_CHECKS`; tensor classifiers are called as
        ``factory(features=, rank=, length=, classes=)``.
    skip
        Names of checks to leave out.
    level
        ``"contract"``: all of it. ``"module"``: what a plain module can keep however it is called, which is found out
        as `mnemoscope.adapt` does: its numbers, causality, state, examples apart, gradients, saving.
    about
        On the level of modules: ``advice`` and ``weights``, as `mnemoscope.nn.NetworkSpec` takes them.

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
    left_out = set(skip)
    require_known(left_out)
    subject, checks = checks_of(factory, level, **about)
    report, cause = Report(subject.name), None
    for check in checks:
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
    known = [check.__name__ for check in (check_reading, *CHECKS, *STATELESS_CHECKS)]
    for name in names:
        if name not in known:
            raise unknown(f"there is no check {name!r}", name, known)
