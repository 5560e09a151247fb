"""Results of a section at one seed: as JSON, kept beside the page, and merged over seeds."""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NotRequired, TypedDict

from mnemoscope.core.errors import UserError
from mnemoscope.core.files import write_atomic
from mnemoscope.core.intervals import Interval, mean_interval
from mnemoscope.core.result import plain
from mnemoscope.profiles.quantity import Quantity
from mnemoscope.profiles.row import Estimate, SectionRow
from mnemoscope.profiles.section import Measurement, ProfileSection, Scalar

__all__ = ["PROGRESS", "SeedResult", "Store", "beside", "merge", "seed_result", "without_result"]

_NUMBERS = re.compile(r"[\d.,]*\d(?:e[+-]?\d+)?")


class SeedScalar(TypedDict):
    """One number at one seed, as JSON holds it."""

    value: float | None
    stderr: float | None
    unit: str
    note: str
    most: float | None
    at_least: NotRequired[str]


class SeedResult(TypedDict):
    """Result of a section at one seed, as JSON holds it: `SectionRow` without what only several seeds have."""

    status: str
    reason: str | None
    seconds: float
    scalars: dict[str, SeedScalar]
    data: dict[str, Any]
    notes: list[str]


def without_result(status: str, reason: str, seconds: float = 0.0) -> SeedResult:
    """Return what there is of a section that found nothing."""
    return {"status": status, "reason": reason, "seconds": seconds, "scalars": {}, "data": {}, "notes": []}


def seed_result(section: ProfileSection, found: Measurement, seconds: float) -> SeedResult:
    """Return what a section found at one seed. NaN and infinity, which JSON does not hold, become None."""
    return {
        "status": "done",
        "reason": None,
        "seconds": seconds,
        "scalars": {name: _seed_scalar(section.quantity(name), each) for name, each in found.scalars.items()},
        "data": {name: _without_text(plain(value)) for name, value in found.data.items()},
        "notes": list(found.notes),
    }


def _seed_scalar(quantity: Quantity, found: Scalar) -> SeedScalar:
    infinite = found.value is not None and not math.isfinite(found.value)
    kept: SeedScalar = {
        "value": _finite(found.value),
        "stderr": _finite(found.stderr),
        "unit": quantity.unit if found.unit is None else found.unit,
        "note": found.note or (f"it is {found.value}" if infinite else ""),
        "most": quantity.most if found.most is None else found.most,
    }
    return {**kept, "at_least": found.at_least} if found.at_least else kept


def merge(section: ProfileSection, found: Mapping[int, SeedResult], planned: int) -> SectionRow:
    """Return what a row says of a section, from its results by seed; none at all: it was never begun."""
    done = {seed: each for seed, each in found.items() if each["status"] == "done"}
    others = {seed: each for seed, each in found.items() if each["status"] != "done"}
    seconds = sum(each["seconds"] for each in found.values())
    if not done:
        first = next(iter(others.values()), without_result("stopped", "it was not begun"))
        return SectionRow(status=first["status"], reason=first["reason"], seconds=seconds)
    results = list(done.values())
    cut = [each for each in others.values() if each["status"] in ("stopped", "settled")]
    notes = [f"seed {seed}: {each['reason']}" for seed, each in others.items() if each not in cut]
    if len(done) + len(notes) < planned:
        calm = bool(cut) and all(each["status"] == "settled" for each in cut)
        why = cut[0]["reason"] if calm else "there was no time for the others; --minutes gives them more"
        notes.append(f"measured at {len(done)} of {planned} seeds: {why}")
    names = dict.fromkeys(name for each in results for name in each["scalars"])
    return SectionRow(
        version=section.version,
        seconds=seconds,
        seeds=tuple(done),
        data=_merged_data(section, [each["data"] for each in results]),
        scalars={
            name: _merged_scalar(section.quantity(name), [each["scalars"].get(name) for each in results])
            for name in names
        },
        notes=(*_said_once([note for each in results for note in each["notes"]]), *notes),
    )


def _said_once(notes: Sequence[str]) -> list[str]:
    """Return notes without those that differ from an earlier one in their numbers only, as those of seeds do."""
    found: dict[str, str] = {}
    for note in notes:
        found.setdefault(_NUMBERS.sub("#", note), note)
    return list(found.values())


def _merged_scalar(quantity: Quantity, found: Sequence[SeedScalar | None]) -> Estimate:
    there = [each for each in found if each is not None]
    values = [each["value"] for each in there if each["value"] is not None]
    notes = list(dict.fromkeys(each["note"] for each in there if each["note"]))
    missing = len(found) - len(values)
    if values and missing:  # the mean of the rest would be of those seeds that happen to have one
        notes.append(f"it has no finite value at {missing} of {len(found)} seeds")
    limits = {"least": quantity.least, "most": there[0].get("most")}
    mean = mean_interval(values, there[0]["stderr"], **limits) if values and not missing else None
    # A mean with one censored value in it is at least so large, and nothing is known of how much larger.
    cut = "" if mean is None else next((each["at_least"] for each in there if each.get("at_least")), "")
    return Estimate(
        value=None if mean is None else mean.value,
        lower=None if mean is None or cut else mean.lower,
        upper=None if mean is None or cut else mean.upper,
        at_least=cut,
        seeds=tuple(None if each is None else each["value"] for each in found),
        unit=there[0]["unit"],
        note="; ".join(notes),
    )


def _merged_data(section: ProfileSection, found: Sequence[dict[str, Any]]) -> dict[str, Any]:
    merged = dict(found[0])
    for name in section.averaged:
        curves = [each[name] for each in found if isinstance(each.get(name), list)]
        if not curves:
            continue
        share = name in section.shares
        steps = [_column(curves, index, share) for index in range(min(map(len, curves)))]
        merged[name] = [None if step is None else step.value for step in steps]
        if len(curves) > 1:
            merged[f"{name}_lower"] = [None if step is None else step.lower for step in steps]
            merged[f"{name}_upper"] = [None if step is None else step.upper for step in steps]
    return merged


def _column(curves: Sequence[list[Any]], index: int, share: bool) -> Interval | None:
    values = [curve[index] for curve in curves if isinstance(curve[index], int | float)]
    if not values:
        return None
    # A curve that is above zero at every seed has a band above zero: on a logarithmic axis it would fall off the chart.
    found = mean_interval(values, least=0.0 if min(values) > 0 else None)
    if not share or found.lower is None or found.upper is None:
        return found
    return Interval(found.value, max(found.lower, min(0.0, *values)), min(found.upper, max(1.0, *values)))


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
    """Results so far, beside the page: for every network (by its fingerprint), section and seed.

    Parameters
    ----------
    path
        The file; None: nothing is kept.
    """

    def __init__(self, path: Path | None = None) -> None:
        self.path = path
        self.taken_up = 0
        self._known = {} if path is None else _read(path)
        self._now: dict[str, dict[str, dict[str, SeedResult]]] = {}

    @property
    def folder(self) -> Path | None:
        """Folder in which sections that take long keep what they have so far; None: nowhere."""
        return None if self.path is None else self.path.with_suffix("").with_suffix(".training")

    def get(self, fingerprint: str, section: str, seed: int) -> SeedResult | None:
        """Return what is known of a section at a seed; it is then kept."""
        fresh = self._now.get(fingerprint, {}).get(section, {}).get(str(seed))
        if fresh is not None:
            return fresh
        found: SeedResult | None = self._known.get(fingerprint, {}).get(section, {}).get(str(seed))
        if found is not None:
            self.taken_up += 1
            self._file(fingerprint, section, seed, found)
        return found

    def put(self, fingerprint: str, section: str, seed: int, result: SeedResult) -> None:
        """Keep one more result, on disk at once."""
        self._file(fingerprint, section, seed, result)
        self.save()

    def save(self) -> None:
        """Write the file: whoever reads it sees the old one or the whole new one."""
        if self.path is None:
            return
        document = {"schema": PROGRESS, "networks": self._now}
        write_atomic(self.path, json.dumps(document, allow_nan=False).encode(), durable=False)

    def _file(self, fingerprint: str, section: str, seed: int, result: SeedResult) -> None:
        self._now.setdefault(fingerprint, {}).setdefault(section, {})[str(seed)] = result


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
