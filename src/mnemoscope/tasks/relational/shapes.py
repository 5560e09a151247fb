"""A hundred shapes of our own, drawn by formula: every outline with every filling."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from functools import cache

import numpy as np
from jaxtyping import Bool, Float, UInt8

__all__ = ["SIDE", "drawn_shapes"]

SIDE = 32
"""Pixels of an image."""

_FINE = 8
"""Points of a pixel's side at which the shape is looked up; a pixel is their mean."""

Polar = Float[np.ndarray, "points points"]
Outline = Callable[[Polar, int], Polar]


@cache
def drawn_shapes() -> UInt8[np.ndarray, "100 32 32"]:
    """Return the images, black on white: 5 numbers of corners x 4 outlines x 5 fillings.

    Examples
    --------
    >>> drawn_shapes().shape, int(drawn_shapes().min()), int(drawn_shapes().max())
    ((100, 32, 32), 0, 255)
    """
    at = (np.arange(SIDE * _FINE) + 0.5) / (SIDE * _FINE / 2) - 1
    x, y = np.meshgrid(at, at)
    made = []
    for corners, (outline, turn), fill in itertools.product((3, 4, 5, 6, 8), _OUTLINES, _FILLINGS):
        angle = np.arctan2(y, x) + np.pi / 2 + turn
        # How far a point is from the centre, 1 on the outline: the same shape, smaller, is a level below 1.
        level = np.hypot(x, y) / outline(angle, corners)
        ink = fill(level, np.hypot(x, y), y).reshape(SIDE, _FINE, SIDE, _FINE).mean((1, 3))
        made.append(np.round(255 * (1 - ink)).astype(np.uint8))
    return np.stack(made)


def _to_corner(angle: Polar, corners: int) -> Polar:
    """Return the angle to the nearest corner, from 0 to pi / corners."""
    sector = 2 * np.pi / corners
    return np.abs((angle + sector / 2) % sector - sector / 2)


def _polygon(angle: Polar, corners: int) -> Polar:
    half = np.pi / corners
    found: Polar = 0.92 * np.cos(half) / np.cos(half - _to_corner(angle, corners))
    return found


def _star(angle: Polar, corners: int) -> Polar:
    outer, inner, half, at = 0.95, 0.4, np.pi / corners, _to_corner(angle, corners)
    found: Polar = outer * inner * np.sin(half) / (outer * np.sin(at) + inner * np.sin(half - at))
    return found


def _flower(angle: Polar, corners: int) -> Polar:
    found: Polar = 0.68 + 0.26 * np.cos(corners * angle)
    return found


def _gear(angle: Polar, corners: int) -> Polar:
    return np.where(np.cos(corners * angle) > 0, 0.92, 0.55)


_OUTLINES: tuple[tuple[Outline, float], ...] = ((_polygon, 0.0), (_star, 0.2), (_flower, 0.4), (_gear, 0.0))
"""With the angle by which each is turned."""

_FILLINGS: tuple[Callable[[Polar, Polar, Polar], Bool[np.ndarray, "points points"]], ...] = (
    lambda level, radius, y: level < 1,
    lambda level, radius, y: (level < 1) & (level > 0.72),
    lambda level, radius, y: (level < 1) & (radius > 0.3),
    lambda level, radius, y: ((level < 1) & (level > 0.78)) | (radius < 0.25),
    lambda level, radius, y: (level < 1) & (np.floor(8 * y) % 2 == 0),
)
"""Full, a ring, with a hole, a ring with a dot, in bars: from level, distance from the centre, and height."""
