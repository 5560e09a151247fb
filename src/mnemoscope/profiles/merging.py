"""From what was found at each seed to what a row says of a part."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

from mnemoscope.core.intervals import mean_interval
from mnemoscope.core.result import plain
from mnemoscope.profiles.registry import Part, PartResult

__all__ = ["merge", "unit_of"]

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
