"""Outcome of the checks: a failure, a skip with its reason, the report of all."""

from __future__ import annotations

from dataclasses import dataclass, field

__all__ = ["CheckFailed", "Report", "Skipped"]


class CheckFailed(AssertionError):
    """A network does not keep its contract. The message is one sentence that says what its author must change.

    That of `check_network` has a line for each check that failed, and ``report`` says what the others found.
    """

    def __init__(self, message: str, report: Report | None = None) -> None:
        super().__init__(message)
        self.report = report


class Skipped(Exception):
    """A check does not apply to a network. The message is the reason."""


@dataclass(frozen=True)
class Report:
    """What was checked of a network.

    Attributes
    ----------
    network
        Its name.
    passed
        Names of the checks that it passed.
    skipped
        Checks that do not apply to it, with the reason.
    failed
        Checks that it failed, with a sentence that says what its author must change.
    """

    network: str
    passed: list[str] = field(default_factory=list)
    skipped: dict[str, str] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        names = f" ({', '.join(self.skipped)})" if self.skipped else ""
        return f"{self.network}: {len(self.passed)} checks passed, {len(self.skipped)} skipped{names}"
