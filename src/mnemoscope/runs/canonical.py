"""JSON in one form: strict, exact for every float, and the same text for the same value."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from typing import Any

from mnemoscope.core.errors import UserError

__all__ = ["canonical", "decode", "digest", "normal", "returned"]

MARK = "$float"
_SPECIAL = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}
_DEPTH = 100

_compact = json.JSONEncoder(sort_keys=True, separators=(",", ":"), allow_nan=False, ensure_ascii=True).encode


def canonical(value: Any, name: str = "value") -> str:
    """Return the canonical JSON of a value: sorted keys, no spaces, ASCII; see `normal` for what it may hold."""
    return _compact(normal(value, name))


def digest(text: str | bytes) -> str:
    """Return the SHA-256 of a text, in hexadecimal digits."""
    return hashlib.sha256(text.encode() if isinstance(text, str) else text).hexdigest()


def normal(value: Any, name: str = "value", depth: int = 0) -> Any:
    """Return a value as strict JSON holds it, or raise the one line that says which part is not JSON.

    Text, whole numbers, floats, truth values, None, lists, tuples (which become lists) and mappings from text.
    Floats that JSON has no word for become ``{"$float": "nan"}``, ``"inf"`` or ``"-inf"``; `decode` undoes it.
    """
    if value is None or isinstance(value, bool | str):
        return _text(value, name) if isinstance(value, str) else value
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        number = float(value)
        return number if math.isfinite(number) else {MARK: str(number)}
    if depth > _DEPTH:
        raise UserError(f"{name[:60]}... must be JSON of at most {_DEPTH} levels")
    if isinstance(value, list | tuple):
        return [normal(entry, f"{name}[{number}]", depth + 1) for number, entry in enumerate(value)]
    if isinstance(value, Mapping):
        return {_key(key, name): normal(entry, f"{name}.{key}", depth + 1) for key, entry in value.items()}
    raise UserError(f"{_short(name)} must be JSON (text, numbers, lists, mappings), got a {type(value).__name__}")


def returned(value: Any, name: str = "value") -> Any:
    """Return a value as it comes back when it was written and read."""
    return _restore(normal(value, name))


def decode(text: str | bytes) -> Any:
    """Return the value of JSON that `canonical` or a metrics line wrote. Raises ValueError on anything else."""
    try:
        value = json.loads(text, parse_constant=_refuse)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    mark = MARK if isinstance(text, str) else MARK.encode()
    return _restore(value) if mark in text else value  # type: ignore[operator]


def _restore(value: Any) -> Any:
    if isinstance(value, list):
        return [_restore(entry) for entry in value]
    if isinstance(value, dict):
        if len(value) == 1 and value.get(MARK).__class__ is str and value[MARK] in _SPECIAL:
            return _SPECIAL[value[MARK]]
        return {key: _restore(entry) for key, entry in value.items()}
    return value


def _refuse(word: str) -> Any:
    raise ValueError(f"{word} is not JSON")


def _key(key: Any, name: str) -> str:
    if not isinstance(key, str):
        raise UserError(f"the keys of {_short(name)} must be text, got {key!r}")
    return _text(key, name)


def _text(value: str, name: str) -> str:
    try:
        value.encode()
    except UnicodeEncodeError:
        raise UserError(f"{_short(name)} must be text in Unicode, got a lone surrogate") from None
    return str(value)


def _short(name: str) -> str:
    line = " ".join(name.split())
    return line if len(line) <= 80 else line[:77] + "..."
