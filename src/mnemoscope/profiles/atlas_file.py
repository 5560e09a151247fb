"""The file of the atlas: read with care, written so that nobody ever sees half of it."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mnemoscope.core.errors import UserError
from mnemoscope.core.files import write_atomic
from mnemoscope.profiles.atlas_thin import widened
from mnemoscope.profiles.rows import SCHEMA as ROW_SCHEMA
from mnemoscope.profiles.rows import Row

__all__ = ["SCHEMA", "SHIPPED", "VARIABLE", "Atlas", "read", "where", "write"]

SCHEMA = "mnemoscope.atlas/1"
"""The version of the file."""

SHIPPED = Path(__file__).with_name("atlas.json")
"""The file that comes with the package."""

VARIABLE = "MNEMOSCOPE_ATLAS"
"""The environment variable that names another file."""


@dataclass(frozen=True)
class Atlas:
    """What the file holds.

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
        return sorted({row["budget"] for row in self.rows if row["settings"]["quick"] is quick})

    def at(self, budget: int, quick: bool) -> list[Row]:
        """Return the rows of a budget."""
        return [row for row in self.rows if row["budget"] == budget and row["settings"]["quick"] is quick]


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
    """Write an atlas: environments once, rows compactly, one to a line."""
    environments: list[dict[str, Any]] = []
    lines = []
    for row in sorted(rows, key=lambda row: (row["settings"]["quick"], row["budget"], row["label"])):
        made = row["environment"]
        if made not in environments:
            environments.append(made)
        lines.append(_compact({**row, "environment": environments.index(made)}))
    head = f'"schema":{_compact(SCHEMA)},"notes":{_compact(list(notes))},"environments":{_compact(environments)}'
    body = ",\n".join(lines)
    write_atomic(path, f'{{{head},"rows":[\n{body}\n]}}\n'.encode())


def _row(source: Path, row: Any, environments: Any) -> Row:
    if row["schema"] != ROW_SCHEMA:
        raise _broken(source, f"its rows must be of schema {ROW_SCHEMA!r}, got {row['schema']!r}")
    if not isinstance(row["budget"], int) or not isinstance(row["settings"]["quick"], bool):
        raise TypeError("a row has no budget or no settings")
    return widened({**row, "environment": environments[row["environment"]]})


def _compact(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), allow_nan=False)


def _broken(path: Path, why: str) -> UserError:
    return UserError(f"the atlas {str(path)!r} cannot be used: {why}; build it again: mnemoscope atlas build")
