"""The row: everything that was measured of one network, as plain JSON, and how it is read."""

from __future__ import annotations

from typing import Any

__all__ = ["SCHEMA", "Row", "data", "is_done", "key", "label", "part", "scalar", "value"]

SCHEMA = "mnemoscope.profile/1"
"""The version of a row."""

Row = dict[str, Any]
"""``{"schema", "label", "network", "settings", "environment", "parts": {NAME: {"status", "scalars", "data", ..}}}``;
on a page also ``"key"``, which no two rows share."""


def label(row: Row) -> str:
    """Return what a network is called in text."""
    return str(row["label"])


def key(row: Row) -> str:
    """Return what a network is called inside a page: its key there, else its label."""
    return str(row.get("key", row["label"]))


def part(row: Row, name: str) -> dict[str, Any]:
    """Return what became of a part; a part that is not in the row was not run."""
    found: dict[str, Any] = row["parts"].get(name) or {"status": "stopped", "reason": "it was not run"}
    return found


def is_done(row: Row, name: str) -> bool:
    """Say whether a part has results."""
    return bool(part(row, name)["status"] == "done")


def data(row: Row, name: str) -> dict[str, Any]:
    """Return the arrays of a part's charts; nothing when it has no results."""
    found: dict[str, Any] = part(row, name).get("data") or {}
    return found


def scalar(row: Row, name: str, entry: str) -> dict[str, Any] | None:
    """Return ``{"value", "lower", "upper", "seeds", "unit"}`` of one number, or None when it is not there."""
    found: dict[str, Any] | None = (part(row, name).get("scalars") or {}).get(entry)
    return found


def value(row: Row, name: str, entry: str) -> float | None:
    """Return one number, or None when it is not there."""
    found = scalar(row, name, entry)
    return None if found is None or found["value"] is None else float(found["value"])
