"""Results of a section at one seed: as JSON, kept beside the page, and merged over seeds."""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from mnemoscope.core.errors import UserError
from mnemoscope.core.files import write_atomic
from mnemoscope.core.intervals import mean_interval
from mnemoscope.core.result import plain
from mnemoscope.profiles.section import Part, PartResult

__all__ = ["PROGRESS", "Store", "beside", "merge", "unit_of"]

Unit = dict[str, Any]

_NUMBERS = re.compile(r"[\d.,]*\d(?:e[+-]?\d+)?")


def unit_of(found: PartResult, seconds: float) -> Unit:
    """Return one seed's result as JSON holds it. NaN and infinity, which it does not, become None."""
    scalars = {
        name: {
            "value": _finite(each.value),
            "stderr": _finite(each.stderr),
            "unit": each.unit,
            "note": each.note or ("" if each.value is None or math.isfinite(each.value) else f"it is {each.value}"),
        }
        for name, each in found.scalars.items()
    }
    data = {name: _without_text(plain(value)) for name, value in found.data.items()}
    return {
        "status": "done",
        "reason": None,
        "seconds": seconds,
        "scalars": scalars,
        "data": data,
        "notes": list(found.notes),
    }


def merge(part: Part, units: Mapping[int, Unit], planned: int) -> Unit:
    """Return what a row says of a part, from its units by seed; empty units were never begun."""
    done = {seed: unit for seed, unit in units.items() if unit["status"] == "done"}
    others = {seed: unit for seed, unit in units.items() if unit["status"] != "done"}
    seconds = sum(unit["seconds"] for unit in units.values())
    if not done:
        unit = next(iter(others.values()), {"status": "stopped", "reason": "it was not begun"})
        return {"status": unit["status"], "reason": unit["reason"], "seconds": seconds, "data": {}, "scalars": {}}
    results = list(done.values())
    notes = [f"seed {seed}: {unit['reason']}" for seed, unit in others.items() if unit["status"] != "stopped"]
    if len(done) + len(notes) < planned:
        notes.append(f"measured at {len(done)} of {planned} seeds: there was no time for the others")
    return {
        "status": "done",
        "reason": None,
        "seconds": seconds,
        "seeds": list(done),
        "data": _merged_data(part, [unit["data"] for unit in results]),
        "scalars": {name: _merged_scalar([unit["scalars"].get(name) for unit in results]) for name in _names(results)},
        "notes": [*_said_once([note for unit in results for note in unit["notes"]]), *notes],
    }


def _said_once(notes: Sequence[str]) -> list[str]:
    """Return notes without those that differ from an earlier one in their numbers only, as those of seeds do."""
    found: dict[str, str] = {}
    for note in notes:
        found.setdefault(_NUMBERS.sub("#", note), note)
    return list(found.values())


def _names(results: Sequence[Unit]) -> list[str]:
    return list(dict.fromkeys(name for unit in results for name in unit["scalars"]))


def _merged_scalar(found: Sequence[dict[str, Any] | None]) -> dict[str, Any]:
    there = [each for each in found if each is not None]
    values = [each["value"] for each in there if each["value"] is not None]
    notes = list(dict.fromkeys(each["note"] for each in there if each["note"]))
    missing = len(found) - len(values)
    if values and missing:
        notes.append(f"without {missing} of {len(found)} seeds, where it has no finite value")
    mean = mean_interval(values, there[0]["stderr"]) if values else None
    return {
        "value": None if mean is None else mean.value,
        "lower": None if mean is None else mean.lower,
        "upper": None if mean is None else mean.upper,
        "seeds": [None if each is None else each["value"] for each in found],
        "unit": there[0]["unit"],
        "note": "; ".join(notes),
    }


def _merged_data(part: Part, found: Sequence[dict[str, Any]]) -> dict[str, Any]:
    merged = dict(found[0])
    for name in part.averaged:
        curves = [each[name] for each in found if isinstance(each.get(name), list)]
        if not curves:
            continue
        steps = [_column(curves, index) for index in range(min(map(len, curves)))]
        merged[name] = [None if step is None else step.value for step in steps]
        if len(curves) > 1:
            merged[f"{name}_lower"] = [None if step is None else step.lower for step in steps]
            merged[f"{name}_upper"] = [None if step is None else step.upper for step in steps]
    return merged


def _column(curves: Sequence[list[Any]], index: int) -> Any:
    values = [curve[index] for curve in curves if isinstance(curve[index], int | float)]
    return mean_interval(values) if values else None


def _finite(value: float | None) -> float | None:
    return None if value is None or not math.isfinite(value) else float(value)


def _without_text(value: Any) -> Any:
    """Return None for what `plain` writes as text because JSON has no number for it."""
    if isinstance(value, list):
        return [_without_text(each) for each in value]
    if isinstance(value, dict):
        return {name: _without_text(each) for name, each in value.items()}
    return None if value in ("nan", "inf", "-inf") else value


PROGRESS = "mnemoscope.progress/1"
"""The version of the file."""


def beside(page: str | os.PathLike[str]) -> Path:
    """Return where the results of a page are kept: ``out.html`` -> ``out.profile.json``."""
    path = Path(page)
    return path.with_name(f"{path.stem}.profile.json")


class Store:
    """What has been measured so far: for every network (by its fingerprint), part and seed.

    Parameters
    ----------
    path
        The file; None: nothing is kept.
    """

    def __init__(self, path: Path | None = None) -> None:
        self.path = path
        self.taken_up = 0
        self._known = {} if path is None else _read(path)
        self._now: dict[str, dict[str, dict[str, Unit]]] = {}

    @property
    def folder(self) -> Path | None:
        """Where parts that take long keep what they have so far; None: nowhere."""
        return None if self.path is None else self.path.with_suffix("").with_suffix(".training")

    def get(self, fingerprint: str, part: str, seed: int) -> Unit | None:
        """Return what is known of a part at a seed; it is then kept."""
        fresh = self._now.get(fingerprint, {}).get(part, {}).get(str(seed))
        if fresh is not None:
            return fresh
        found: Unit | None = self._known.get(fingerprint, {}).get(part, {}).get(str(seed))
        if found is not None:
            self.taken_up += 1
            self._file(fingerprint, part, seed, found)
        return found

    def put(self, fingerprint: str, part: str, seed: int, unit: Unit) -> None:
        """Keep one more result, on disk at once."""
        self._file(fingerprint, part, seed, unit)
        self.save()

    def save(self) -> None:
        """Write the file: whoever reads it sees the old one or the whole new one."""
        if self.path is None:
            return
        document = {"schema": PROGRESS, "networks": self._now}
        write_atomic(self.path, json.dumps(document, allow_nan=False).encode(), durable=False)

    def _file(self, fingerprint: str, part: str, seed: int, unit: Unit) -> None:
        self._now.setdefault(fingerprint, {}).setdefault(part, {})[str(seed)] = unit


def _read(path: Path) -> dict[str, Any]:
    if not path.is_file():
        return {}
    try:
        document = json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise UserError(
            f"{str(path)!r} is in the way of the results: {error}; move it, or name another page"
        ) from error
    if not isinstance(document, dict) or document.get("schema") != PROGRESS:
        raise UserError(f"{str(path)!r} is in the way of the results: it is not a file of them; move it")
    found: dict[str, Any] = document["networks"]
    return found
