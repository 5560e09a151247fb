"""Page as one HTML file that needs nothing else: no network, no font, no library."""

from __future__ import annotations

import base64
import hashlib
import os
import re
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from mnemoscope.core.files import writable, write_atomic
from mnemoscope.core.numbers import number
from mnemoscope.core.references import REFERENCES, software
from mnemoscope.report.check import check, references
from mnemoscope.report.data import embedded, page_data
from mnemoscope.report.page import Page, Section, Statement
from mnemoscope.report.palette import colours, looks

if TYPE_CHECKING:
    import jinja2

__all__ = ["bibtex", "render", "write"]

_SCRIPTS = ("dom", "scale", "curves", "ends", "ranked", "bars", "plane", "heatmap", "save", "figure", "page")
_EDGE = 3.0
"""Percent of a line of the scorecard on either side that stay free, so that no dot is cut."""
_TONES = {"good": "In its favour", "bad": "Against it", "neutral": "Worth knowing"}


def render(page: Page) -> str:
    """Return the page as HTML.

    Every text is escaped, and the only scripts and styles that a browser will run are those whose hash stands in the
    page's own policy, so that nothing in a network's name can become one.
    """
    import markupsafe

    check(page)
    style = colours(looks(page.entries)) + _template("page.css")
    early = _template("early.js")
    script = '(() => {\n"use strict";\n' + "\n".join(_template(f"{name}.js") for name in _SCRIPTS) + "})();\n"
    works = {key: REFERENCES[key] for key in references(page)}
    first = next((each for section in page.sections for each in section.figures if each.name == page.first), None)
    text = (
        _environment()
        .get_template("page.html.j2")
        .render(
            page=page,
            policy=_policy([early, script], style),
            style=markupsafe.Markup(style),
            early=markupsafe.Markup(early),
            script=markupsafe.Markup(script),
            data=markupsafe.Markup(embedded(page_data(page))),
            card=bool(page.scores or page.table),
            tones=_tones(page.verdict),
            first=first,
            first_section=next((s.name for s in page.sections if first in s.figures), ""),
            labels={entry.key: entry.label for entry in page.entries},
            percent=lambda place: f"{_EDGE + place * (100 - 2 * _EDGE):.2f}%",
            told_of=_told,
            titles={section.name: section.title for section in page.sections},
            works=works,
            bibtex=bibtex(page),
            number=number,
            minus=_minus,
        )
    )
    return text.encode("utf-8", "replace").decode()  # half of a surrogate pair has no place in a file


def write(page: Page, path: str | os.PathLike[str]) -> Path:
    """Write the page to a file, whole or not at all; one line says why where it cannot be written."""
    file = writable(path)
    return write_atomic(file, render(page).encode())


def bibtex(page: Page) -> str:
    """Return the BibTeX entries of Mnemoscope and of all works that a page names."""
    return "\n\n".join(each.bibtex() for each in (software(), *(REFERENCES[key] for key in references(page)))) + "\n"


class _Told(NamedTuple):
    """What stands once below a section: how its numbers were found, what it cites, and the commands."""

    ways: list[str]
    works: list[str]
    commands: str


def _told(section: Section) -> _Told:
    ways = list(dict.fromkeys(figure.how for figure in section.figures if figure.how))
    works = list(dict.fromkeys(key for figure in section.figures for key in figure.references))
    lines = dict.fromkeys(line for figure in section.figures for line in figure.command.split("\n") if line)
    return _Told(ways, works, "\n".join(lines))


def _tones(verdict: tuple[Statement, ...]) -> list[tuple[str, str, list[Statement]]]:
    groups = (
        (tone, title, [one for one in verdict if one.tone == tone and not one.lead]) for tone, title in _TONES.items()
    )
    return [group for group in groups if group[2]]


def _minus(text: str) -> str:
    """Return a number in words with the sign that is as wide as a digit."""
    return re.sub(r"^-(?=[\d.])", "\u2212", text)


def _environment() -> jinja2.Environment:
    import jinja2

    return jinja2.Environment(
        loader=jinja2.FunctionLoader(_template),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def _template(name: str) -> str:
    return (files("mnemoscope.report") / "templates" / name).read_text(encoding="utf-8")


def _policy(scripts: list[str], style: str) -> str:
    """Return what a browser may load for the page: its own scripts and style by their hashes, and pictures it made."""
    run = " ".join(_hash(script) for script in scripts)
    return (
        f"default-src 'none'; script-src {run}; style-src {_hash(style)}; img-src data: blob:; "
        "base-uri 'none'; form-action 'none'"
    )


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
