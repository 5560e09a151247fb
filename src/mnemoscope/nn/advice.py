"""Advice on how a stranger's module is called: as arguments of `mnemoscope.adapt`, as options that are typed.

All commands and `NetworkSpec` share it. Its entries are those of `mnemoscope.adapt`, and two that come before it:
``part``, the module inside that is meant, and ``stub``, packages for which an empty module stands in.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any

from mnemoscope.core.errors import expected, unknown

__all__ = ["ADVICE", "about_words", "adapt_arguments", "checked_advice", "typed_advice"]

ADVICE = {
    "kind": "--kind",
    "layout": "--layout",
    "state_name": "--state",
    "state": "--state",
    "output": "--output",
    "init_state": "--init",
    "method": "--method",
    "keywords": "--keyword",
    "length": "--length",
    "part": "--part",
    "stub": "--stub",
}
"""What can be said of a module, and the option that says it."""

_BEFORE = ("part", "stub")


def checked_advice(given: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return advice with lists as tuples and without what is None, or raise for an entry that there is not."""
    found = {}
    for name, value in (given or {}).items():
        if name not in ADVICE:
            raise unknown(f"there is no advice {name!r}", name, ADVICE)
        if value is not None and value not in ((), [], {}):
            found[name] = tuple(value) if isinstance(value, list) else value
    for name in ("method", "part"):
        if not isinstance(found.get(name, ""), str):
            raise expected(name, "a name", found[name])
    if not all(isinstance(package, str) for package in found.get("stub", ())):
        raise expected("stub", "names of packages", found["stub"])
    return found


def adapt_arguments(advice: Mapping[str, Any]) -> dict[str, Any]:
    """Return what of the advice is for `mnemoscope.adapt`."""
    return {name: value for name, value in advice.items() if name not in _BEFORE}


def about_words(about: Mapping[str, Any]) -> list[str]:
    """Return the words that are typed for advice and weights."""
    weights = about.get("weights")
    return [*typed_advice(about.get("advice") or {}), *(["--weights", shlex.quote(weights)] if weights else [])]


def typed_advice(advice: Mapping[str, Any]) -> list[str]:
    """Return advice as the words that are typed for it.

    Examples
    --------
    >>> typed_advice({"kind": "cell", "state_name": ("hy", "hz"), "keywords": {"ts": 1.0}, "output": 0})
    ['--kind', 'cell', '--state', 'hy,hz', '--keyword', 'ts=1.0', '--output', '0']
    """
    words: list[str] = []
    for name, value in advice.items():
        flag = ADVICE[name]
        if name == "keywords":
            each = [f"{key}={_typed(one)}" for key, one in value.items()]
        elif name == "stub":
            each = list(value)
        else:
            each = [",".join(map(str, value)) if isinstance(value, tuple) else str(value)]
        for text in each:
            words += [flag, shlex.quote(text)]
    return words


def _typed(value: Any) -> str:
    return value if isinstance(value, str) else repr(value)
