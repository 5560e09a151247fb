"""Scorecard in the terminal: coloured where somebody looks, plain in pipes, plain letters where others are missing."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from rich.text import Text as Styled

from mnemoscope.cli.terminal import console

if TYPE_CHECKING:
    from mnemoscope.profiles.profile import Profile

__all__ = ["print_scorecard"]

_STYLES = {
    "strong": "bold green",
    "weak": "bold red",
    "uncertain": "dim",
    "title": "bold",
    "best": "bold",
    "dim": "dim",
}
_PIPED = 100
"""Columns where the output is no terminal."""


def print_scorecard(found: Profile) -> None:
    """Print what was read, the verdict, and the scorecard, or the table of several networks."""
    from mnemoscope.profiles.summary import LEAST, plain, summary

    out = console()
    simple = not _has_letters()
    piped = not sys.stdout.isatty() and "COLUMNS" not in os.environ
    width = _PIPED if piped else out.width
    out.width = max(width, LEAST)
    for line in summary(found.page, found.comparison, width, simple=simple):
        text = Styled()
        for piece in line:
            text.append(plain(piece.text) if simple else piece.text, style=_STYLES.get(piece.tone, ""))
        text.rstrip()
        out.print(text, soft_wrap=True)
    for row in found.rows:
        for said in row.notices:
            out.print(f"note: {plain(said) if simple else said}", style="yellow")


def _has_letters() -> bool:
    """Whether the terminal's letters include those of a chart; LANG=C has none of them."""
    encoding = getattr(sys.stdout, "encoding", None) or "ascii"
    try:
        "\u2500\u25cf\u2501\u2212\u00d7\u207b".encode(encoding)
    except (UnicodeEncodeError, LookupError):
        return False
    return not any(os.environ.get(name, "").upper() in ("C", "POSIX") for name in _deciding())


def _deciding() -> tuple[str, ...]:
    """Return the variable that decides on letters: the first of three that is set."""
    return next(((name,) for name in ("LC_ALL", "LC_CTYPE", "LANG") if os.environ.get(name)), ())
