"""Who is who in a chart for a paper."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mnemoscope.report.page import Entry
from mnemoscope.report.palette import Look, looks

__all__ = ["Named", "Shown", "named"]


@dataclass(frozen=True)
class Named:
    """A network's name, look and part in a chart."""

    name: str
    look: Look
    subject: bool


Shown = Mapping[str, Named]
"""Networks by their keys."""


def named(entries: Sequence[Entry]) -> Shown:
    """Return name and look of every network, by its key."""
    styles = looks(entries)
    return {
        entry.key: Named(entry.label, look, entry.role == "subject")
        for entry, look in zip(entries, styles, strict=True)
    }
