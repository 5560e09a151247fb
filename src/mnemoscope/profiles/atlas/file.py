"""File of the atlas: reading, writing, and the short form in which it keeps a row."""

from __future__ import annotations

import dataclasses
import json
import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from mnemoscope.core.errors import UserError
from mnemoscope.core.files import write_atomic
from mnemoscope.profiles.row import SCHEMA as ROW_SCHEMA
from mnemoscope.profiles.row import Estimate, Row, SectionRow

__all__ = ["LEFT_OUT", "SCHEMA", "SHIPPED", "VARIABLE", "Atlas", "read", "thinned", "where", "write"]

SCHEMA = "mnemoscope.atlas/1"
"""The version of the file."""

SHIPPED = Path(__file__).with_name("atlas.json")
"""The file that comes with the package."""

VARIABLE = "MNEMOSCOPE_ATLAS"
"""The environment variable that names another file."""


@dataclass(frozen=True)
class Atlas:
    """Contents of an atlas.

    Attributes
    ----------
    rows
        One per network, budget and depth of measuring, each with its ``"budget"`` and ``"environment"``.
    notes
        What was decided when it was built.
    path
        Where it was read.
    """

    rows: tuple[Row, ...]
    notes: tuple[str, ...]
    path: Path

    def budgets(self, quick: bool) -> list[int]:
        """Return the numbers of parameters at which there are rows."""
        return sorted({row.budget for row in self.rows if row.settings.quick is quick and row.budget is not None})

    def at(self, budget: int, quick: bool) -> list[Row]:
        """Return the rows of a budget."""
        return [row for row in self.rows if row.budget == budget and row.settings.quick is quick]


def where() -> Path:
    """Return the file in use: that of ``MNEMOSCOPE_ATLAS``, else the shipped one."""
    named = os.environ.get(VARIABLE)
    return Path(named) if named else SHIPPED


def read(path: Path | None = None) -> Atlas:
    """Read an atlas, or raise one line that says what is wrong with the file."""
    source = where() if path is None else path
    if not source.is_file():
        raise UserError(f"there is no atlas at {str(source)!r}; build it: mnemoscope atlas build --out {source}")
    try:
        document = json.loads(source.read_text())
    except (OSError, ValueError) as error:
        raise _broken(source, " ".join(str(error).split())) from error
    if not isinstance(document, dict) or document.get("schema") != SCHEMA:
        came = document.get("schema") if isinstance(document, dict) else type(document).__name__
        raise _broken(source, f"its schema must be {SCHEMA!r}, got {came!r}")
    try:
        environments = document["environments"]
        rows = tuple(_row(source, row, environments) for row in document["rows"])
        return Atlas(rows, tuple(map(str, document["notes"])), source)
    except (KeyError, TypeError, IndexError, AttributeError, ValueError) as error:
        raise _broken(source, f"{type(error).__name__}: {error}") from error


def write(path: Path, rows: Sequence[Row], notes: Sequence[str]) -> None:
    """Write an atlas: environments once, rows in their short form, one to a line."""
    environments: list[dict[str, Any]] = []
    lines = []
    for row in sorted(rows, key=lambda row: (row.settings.quick, row.budget or 0, row.label)):
        made = dict(row.environment)
        if made not in environments:
            environments.append(made)
        lines.append(_compact({**thinned(row), "environment": environments.index(made)}))
    head = f'"schema":{_compact(SCHEMA)},"notes":{_compact(list(notes))},"environments":{_compact(environments)}'
    body = ",\n".join(lines)
    write_atomic(path, f'{{{head},"rows":[\n{body}\n]}}\n'.encode())


def _row(source: Path, row: Any, environments: Any) -> Row:
    if row["schema"] != ROW_SCHEMA:
        raise _broken(source, f"its rows must be of schema {ROW_SCHEMA!r}, got {row['schema']!r}")
    if not isinstance(row["budget"], int) or not isinstance(row["settings"]["quick"], bool):
        raise TypeError("a row has no budget or no settings")
    return Row.from_dict({**row, "environment": environments[row["environment"]]})


def _compact(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), allow_nan=False)


def _broken(path: Path, why: str) -> UserError:
    return UserError(f"the atlas {str(path)!r} cannot be used: {why}; build it again: mnemoscope atlas build")


LEFT_OUT = ("theory", "parity")
"""Sections that pages show of the profiled networks alone."""

_TRAINED = ("trained", "generalisation", "ladder", "memories", "recall")
"""Sections that references have only where somebody trained them."""

_UNUSED = ("norms", "lengths", "memory", "work", "stderr", "ridge")
"""Lists of a section that no figure draws of references."""

_POINTS = 16
"""The longest list that is kept: points of a curve, eigenvalues, exponents."""

_VALUE, _SEED, _POINT = 6, 4, 4
"""Digits of a scalar with its interval, of one seed, and of a point of a curve."""

_KEPT = ("schema", "label", "network", "settings", "command", "budget", "environment")
_WORDS = 120
"""Letters of a note that are kept."""


def thinned(row: Row) -> dict[str, Any]:
    """Return a row without what no reference is asked for, its numbers rounded, its lists shortened.

    What has its default is left out; `Row.from_dict` puts it back.
    """
    whole = dataclasses.replace(row, network=dataclasses.replace(row.network, agreement=None)).to_dict()
    there = {name: each for name, each in row.sections.items() if each.status == "done" or name not in _TRAINED}
    sections = {name: _section(each) for name, each in there.items() if name not in LEFT_OUT}
    settings = {**whole["settings"], "digests": [digest[:8] for digest in row.settings.digests]}
    return {**{name: whole[name] for name in _KEPT if whole.get(name)}, "settings": settings, "parts": sections}


def _section(found: SectionRow) -> dict[str, Any]:
    kept = _changed(
        SectionRow(status=found.status, reason=found.reason, seeds=found.seeds, version=found.version), SectionRow()
    )
    data = {
        name: _list(value)
        for name, value in found.data.items()
        if name not in _UNUSED and not name.endswith(("_lower", "_upper"))  # bands: of subjects alone
    }
    return {**kept, "data": data, "scalars": {name: _scalar(each) for name, each in found.scalars.items()}}


def _scalar(found: Estimate) -> dict[str, Any]:
    short = {name: _rounded(value, _SEED if name == "seeds" else _VALUE) for name, value in found.to_dict().items()}
    return _changed(Estimate.from_dict({**short, "note": found.note[:_WORDS]}), Estimate())


def _changed(found: Estimate | SectionRow, usual: Estimate | SectionRow) -> dict[str, Any]:
    default = usual.to_dict()
    return {name: value for name, value in found.to_dict().items() if value != default[name]}


def _list(value: Any) -> Any:
    """Return what a chart draws; lists of one length are cut at the same places: curves still meet their lags."""
    short = _cut(value) if isinstance(value, list) and len(value) > _POINTS else value
    return _rounded(short, _POINT)


def _cut(values: list[Any]) -> list[Any]:
    chosen = np.unique(np.linspace(0, len(values) - 1, _POINTS).round().astype(int))
    return [values[index] for index in chosen]


def _rounded(value: Any, digits: int) -> Any:
    if isinstance(value, dict):
        return {name: _rounded(each, digits) for name, each in value.items()}
    if isinstance(value, list):
        return [_rounded(each, digits) for each in value]
    if not isinstance(value, float) or not math.isfinite(value):
        return value
    short = float(f"{value:.{digits - 1}e}")
    return int(short) if short == round(short) and abs(short) < 1e15 else short
