"""A reference's row as the atlas keeps it: what charts, tables and the verdict need, in few digits."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from mnemoscope.profiles.rows import Row

__all__ = ["thinned", "widened"]

_LEFT_OUT = ("theory",)
"""Parts that pages show of the profiled networks alone."""

_UNUSED = ("norms", "lengths", "memory", "work", "stderr")
"""Lists of a part that no chart draws of references."""

_POINTS = 16
"""The longest list that is kept: points of a curve, eigenvalues, exponents."""

_VALUE, _SEED, _POINT, _BAND = 6, 4, 4, 3
"""Digits of a scalar with its interval, of one seed, of a point of a curve, and of the band around it."""

_SCALAR: dict[str, Any] = {"value": None, "lower": None, "upper": None, "seeds": [], "unit": "", "note": ""}
_PART: dict[str, Any] = {
    "status": "done",
    "reason": None,
    "seconds": 0.0,
    "seeds": [],
    "data": {},
    "scalars": {},
    "notes": [],
    "command": "",
    "commands": {},
}
_ROW: dict[str, Any] = {"notices": []}
_WORDS = 120
"""Letters of a note that are kept."""


def thinned(row: Row) -> Row:
    """Return a row without what no reference is asked for, its numbers rounded, its lists shortened.

    What is empty is left out; `widened` puts it back.
    """
    there = {name: part for name, part in row["parts"].items() if part["status"] != "not applicable"}
    parts = {name: _part(part) for name, part in there.items() if name not in _LEFT_OUT}
    kept = {name: row[name] for name in ("schema", "label", "network", "settings", "command") if row.get(name)}
    settings = {**row["settings"], "digests": [digest[:8] for digest in row["settings"].get("digests", ())]}
    return {**kept, "settings": settings, "parts": parts}


def widened(row: Row) -> Row:
    """Return a row of the atlas with everything that a row has."""
    parts = {name: _widened_part(part) for name, part in row["parts"].items()}
    return {**_ROW, **row, "parts": parts}


def _widened_part(part: dict[str, Any]) -> dict[str, Any]:
    whole = {**_PART, **part}
    whole["scalars"] = {name: {**_SCALAR, **scalar} for name, scalar in whole["scalars"].items()}
    return whole


def _part(part: dict[str, Any]) -> dict[str, Any]:
    kept = {name: part[name] for name in ("status", "reason", "seeds") if part.get(name, _PART[name]) != _PART[name]}
    data = {name: _list(name, value) for name, value in (part.get("data") or {}).items() if name not in _UNUSED}
    scalars = {name: _scalar(value) for name, value in (part.get("scalars") or {}).items()}
    return {**kept, "data": data, "scalars": scalars}


def _scalar(scalar: dict[str, Any]) -> dict[str, Any]:
    found = {name: _rounded(value, _SEED if name == "seeds" else _VALUE) for name, value in scalar.items()}
    found["note"] = str(found.get("note") or "")[:_WORDS]
    return {name: value for name, value in found.items() if value != _SCALAR.get(name)}


def _list(name: str, value: Any) -> Any:
    """Return what a chart draws; lists of one length are cut at the same places: curves still meet their lags."""
    short = _cut(value) if isinstance(value, list) and len(value) > _POINTS else value
    return _rounded(short, _BAND if name.endswith(("_lower", "_upper")) else _POINT)


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
