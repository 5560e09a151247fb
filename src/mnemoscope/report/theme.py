"""The page's colours, light and dark, as CSS."""

from __future__ import annotations

from collections.abc import Sequence

from mnemoscope.report.palette import Look

__all__ = ["DARK", "LIGHT", "colours"]

LIGHT = {
    "ground": "#fcfbf9",
    "raised": "#f1efea",
    "tip": "#ffffff",
    "ink": "#16181d",
    "soft": "#565b66",
    "faint": "#a9adb5",
    "line": "#e2dfd8",
    "grid": "#eae7e1",
    "rule": "#a5a8ae",
    "tint": "#f9e9e1",
    "good": "#0b6b43",
    "bad": "#a3241b",
    "focus": "#1657c4",
}
DARK = {
    "ground": "#111318",
    "raised": "#1e2128",
    "tip": "#1b1e25",
    "ink": "#f1f2f4",
    "soft": "#a8aebb",
    "faint": "#5f6572",
    "line": "#2b2f38",
    "grid": "#23272f",
    "rule": "#666c78",
    "tint": "#31221c",
    "good": "#5fd3a0",
    "bad": "#ff938a",
    "focus": "#7fb2ff",
}


def colours(looks: Sequence[Look]) -> str:
    """Return the rules that name every colour: by the system's theme, the reader's choice, light on paper."""
    light = _rule(LIGHT | {"accent": _accent(looks).light} | {f"c{i}": look.light for i, look in enumerate(looks)})
    dark = _rule(DARK | {"accent": _accent(looks).dark} | {f"c{i}": look.dark for i, look in enumerate(looks)})
    networks = "".join(f".c{i}{{--c:var(--c{i})}}" for i in range(len(looks)))
    return (
        f":root,[data-theme=light]{{color-scheme:light;{light}}}"
        f"@media(prefers-color-scheme:dark){{:root:not([data-theme=light]){{color-scheme:dark;{dark}}}}}"
        f":root[data-theme=dark]{{color-scheme:dark;{dark}}}"
        f"@media print{{:root:root:root{{color-scheme:light;{light}--ground:#ffffff;}}}}"
        f"{networks}.pulse{{stroke:var(--accent)}}"
    )


def _accent(looks: Sequence[Look]) -> Look:
    return next(iter(looks), Look(LIGHT["ink"], DARK["ink"], "", ""))


def _rule(values: dict[str, str]) -> str:
    return "".join(f"--{name}:{value};" for name, value in values.items())
