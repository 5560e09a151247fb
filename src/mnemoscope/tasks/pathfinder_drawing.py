"""Pictures of dashed paths, many at once: random walks in a square, put together where they do not touch.

A dash has two or three pixels and is followed by an empty one; from dash to dash the direction turns by at most 0.4
radians. Paths are walked alone, all of a batch at once. Which of them keep clear of each other is one product of
matrices: pixels of paths times pixels of widened paths. Positions and directions are real numbers; a step goes one
pixel along the longer axis, so that gaps stay open.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int64
from torch import Tensor

from mnemoscope.tasks.batch import place

__all__ = ["TURN", "Pictures", "draw_pictures"]

TURN = 0.4
"""Largest turn from one dash to the next, in radians."""

_TURNS, _AHEAD = 6, 4
"""Turns that are tried for a dash, and dashes for which some way on must stay within the square."""

_PIXELS = 4
"""Of a dash at most, with the gap behind it."""

_NEAR = 0.25
"""By how many pixels the distances of the two possible pairs of discs may differ."""


class Pictures(NamedTuple):
    """Pictures (count, side, side) of 0 and 1; whether the discs end one path; the distance of their centres."""

    ink: Float[Tensor, "count side side"]
    same: Int64[Tensor, " count"]
    distance: Float[Tensor, " count"]


class _Paths(NamedTuple):
    """Paths: their ink, what others must keep clear of (gaps and places of discs too), and their two ends."""

    ink: Float[Tensor, "count pixels"]
    taken: Float[Tensor, "count pixels"]
    ends: Int64[Tensor, "count 2"]

    def take(self, which: Tensor) -> _Paths:
        """Return some of them."""
        return _Paths(*(part[which] for part in self))


def draw_pictures(count: int, side: int, dashes: int, distractors: int, generator: torch.Generator | None) -> Pictures:
    """Walk so many pairs of long paths, and return the pictures that come of them.

    Of the four ends of two long paths two pairs are looked for that are equally far apart, one on the same path and one
    on different paths; a coin says which pair gets the discs. So neither the amount of ink nor the distance of the
    discs tells the class.
    """
    where = place(generator)
    long = torch.full((2 * count,), dashes, device=where)
    paths = _walk(long, side, True, generator)
    half = len(paths.ends) // 2
    first, second = paths.take(torch.arange(half, device=where)), paths.take(torch.arange(half, 2 * half, device=where))
    if not half:
        none = torch.zeros(0, device=where)
        return Pictures(none.view(0, side, side), none.long(), none)
    clear = _widened(first.taken, side) @ second.taken.T == 0
    partner = _partners(clear & (_differences(first.ends[:, None], second.ends, side) < _NEAR).any(-1), generator)
    first, second = first.take(partner >= 0), second.take(partner[partner >= 0])
    pairs, same = _discs(first.ends, second.ends, side, generator)
    ink, taken = first.ink + second.ink, first.taken + second.taken
    ink = _add_distractors(ink, taken, side, dashes, distractors, generator)
    discs = torch.zeros_like(ink).scatter_(1, pairs, 1.0)
    picture = torch.maximum(ink.clamp(max=1.0), _widened(discs, side))
    return Pictures(picture.view(-1, side, side), same.long(), _distance(pairs, side))


def _walk(lengths: Int64[Tensor, " count"], side: int, discs: bool, generator: torch.Generator | None) -> _Paths:
    """Walk paths of so many dashes within a square, and return those that end well; `discs`: with room at both ends."""
    count, where = len(lengths), lengths.device

    def uniform(*shape: int) -> Tensor:
        return torch.rand(*shape, generator=generator, device=where)

    edge = 2.0 if discs else 1.0
    at = edge + (side - 1 - 2 * edge) * uniform(count, 2)
    angle = 2 * math.pi * uniform(count)
    steps = torch.arange(_PIXELS, device=where)
    pixels = torch.zeros(count, 0, dtype=torch.int64, device=where)
    marks = torch.zeros(count, 0, 2, device=where)
    last = torch.zeros(count, dtype=torch.int64, device=where)
    for dash in range(int(lengths.max())):
        active, left = dash < lengths, lengths - dash - 1
        turned = angle[:, None] + TURN * _turns(uniform(len(at), _TURNS)) * (dash > 0)
        size = torch.randint(2, 4, (len(at), 1), generator=generator, device=where)
        goes = _direction(turned)
        margin = torch.where(left == 0, edge, 1.0)[:, None]
        fits = _is_within(at[:, None] + (size[..., None] - 1) * goes, side, margin)
        fits &= _has_a_way(at[:, None] + (size[..., None] + 1) * goes, turned, left, side)
        angle = turned.gather(1, fits.long().argmax(1, keepdim=True)).squeeze(1)
        goes = _direction(angle)
        cells = (at[:, None] + steps[:, None] * goes[:, None]).round().long().clamp(0, side - 1)
        new = cells[..., 0] * side + cells[..., 1]
        apart = _is_apart(new, pixels[:, : max(dash - 1, 0) * _PIXELS], side)
        is_ink, is_path = steps < size, steps < size + (left > 0)[:, None]
        pixels = torch.cat([pixels, new], 1)
        marks = torch.cat([marks, torch.stack([is_ink, is_path], -1) & active[:, None, None]], 1)
        last = torch.where(active, new.gather(1, size - 1).squeeze(1), last)
        at = at + (size + 1) * goes
        alive = ~active | (fits.any(1) & apart)
        at, angle, pixels, marks, last, lengths = (part[alive] for part in (at, angle, pixels, marks, last, lengths))
    ends = torch.stack([pixels[:, 0], last], 1)
    blank = torch.zeros(len(at), side * side, device=where)
    ink, taken = (blank.scatter_reduce(1, pixels, marks[..., which], "amax") for which in range(2))
    if discs:
        taken = torch.maximum(taken, _widened(blank.scatter(1, ends, 1.0), side))
    return _Paths(ink, taken, ends)


def _turns(random: Float[Tensor, "count turns"]) -> Float[Tensor, "count turns"]:
    """Return turns between -1 and 1, the last two of them -1 and 1: where nothing else fits."""
    turns = 2 * random - 1
    sign = turns[:, :1].sign()
    return torch.cat([turns[:, :-2], sign, -sign], 1)


def _direction(angle: Float[Tensor, "*more"]) -> Float[Tensor, "*more 2"]:
    """Return steps of one pixel along the longer axis."""
    goes = torch.stack([angle.sin(), angle.cos()], -1)
    return goes / goes.abs().amax(-1, keepdim=True)


def _is_within(at: Float[Tensor, "*more 2"], side: int, edge: Tensor | float) -> Bool[Tensor, "*more"]:
    edges = edge[..., None] if isinstance(edge, Tensor) else edge
    return ((at >= edges - 0.4) & (at <= side - 1 - edges + 0.4)).all(-1)


def _has_a_way(at: Tensor, angle: Tensor, left: Int64[Tensor, " count"], side: int) -> Bool[Tensor, "count turns"]:
    """Return whether the next dashes stay within the square when they go straight, or turn as much as they can."""
    found = torch.zeros_like(angle, dtype=torch.bool)
    for turn in (-TURN, 0.0, TURN):
        now, inside = at, torch.ones_like(found)
        for ahead in range(1, _AHEAD + 1):
            goes = _direction(angle + ahead * turn)
            inside &= _is_within(now + 2 * goes, side, 2.0) | (left < ahead)[:, None]
            now = now + 3.5 * goes
        found |= inside
    return found


def _is_apart(new: Int64[Tensor, "count few"], old: Int64[Tensor, "count many"], side: int) -> Bool[Tensor, " count"]:
    """Return whether no new pixel of a path touches an old one."""
    rows = (new[:, :, None] // side - old[:, None] // side).abs()
    columns = (new[:, :, None] % side - old[:, None] % side).abs()
    return ~((rows <= 1) & (columns <= 1)).flatten(1).any(1)


def _partners(fits: Bool[Tensor, "first second"], generator: torch.Generator | None) -> Int64[Tensor, " first"]:
    """Return for every first path a second one that fits and is nobody else's; -1 where none is left."""
    partner = torch.full((len(fits),), -1, device=fits.device)
    free = torch.ones(fits.shape[1], dtype=torch.bool, device=fits.device)
    ranks = torch.rand(fits.shape, generator=generator, device=fits.device)
    numbers = torch.arange(len(fits), device=fits.device)
    for _ in range(8):
        asked = ranks.masked_fill(~fits | ~free, -1.0).masked_fill((partner >= 0)[:, None], -1.0)
        best, wanted = asked.max(1)
        wants = best >= 0
        # Of those who want the same one, the last gets it.
        winner = torch.full_like(free, -1, dtype=torch.int64)
        winner = winner.scatter_reduce(0, wanted[wants], numbers[wants], "amax")
        taken = winner >= 0
        partner[winner[taken]] = taken.nonzero().squeeze(1)
        free &= ~taken
    return partner


def _add_distractors(
    ink: Tensor, taken: Tensor, side: int, dashes: int, distractors: int, generator: torch.Generator | None
) -> Float[Tensor, "count pixels"]:
    """Return the ink of pictures with short paths added: as many as drawn, fewer where no more fit."""
    count, where = len(ink), ink.device
    if not count or not distractors:
        return ink
    wanted = torch.randint(max(distractors - 2, 0), distractors + 1, (count,), generator=generator, device=where)
    for number in range(distractors):
        lengths = torch.randint(2, (max(count, 256),), generator=generator, device=where) + max(dashes // 3, 1)
        short = _walk(lengths, side, False, generator)
        fits = taken @ _widened(short.taken, side).T == 0
        ranks = torch.rand(fits.shape, generator=generator, device=where).masked_fill(~fits, -1.0)
        best, chosen = ranks.max(1)
        added = ((best >= 0) & (number < wanted))[:, None]
        ink, taken = (old + new[chosen] * added for old, new in ((ink, short.ink), (taken, short.taken)))
    return ink


def _widened(pixels: Float[Tensor, "count pixels"], side: int) -> Float[Tensor, "count pixels"]:
    """Return what is within a distance of 1.5 pixels of something: squares of three."""
    return F.max_pool2d(pixels.view(-1, 1, side, side), 3, 1, 1).flatten(1)


def _pairs(first: Int64[Tensor, "*many 2"], second: Int64[Tensor, "*many 2"]) -> Int64[Tensor, "*many 6 2"]:
    """Return the pairs of ends: the first path's, the second's, and four with one of each."""
    first, second = first + torch.zeros_like(second), second + torch.zeros_like(first)
    crossing = [torch.stack([first[..., i], second[..., j]], -1) for i in range(2) for j in range(2)]
    return torch.stack([first, second, *crossing], -2)


def _differences(first: Tensor, second: Tensor, side: int) -> Float[Tensor, "*many 8"]:
    """Return by how much each pair on one path and each on different paths differ in distance."""
    apart = _distance(_pairs(first, second), side)
    return (apart[..., :2, None] - apart[..., None, 2:]).abs().flatten(-2)


def _discs(
    first: Int64[Tensor, "count 2"], second: Int64[Tensor, "count 2"], side: int, generator: torch.Generator | None
) -> tuple[Int64[Tensor, "count 2"], Bool[Tensor, " count"]]:
    """Return the centres of discs, and whether they end one path: a coin between pairs that are equally far apart."""
    count, where = len(first), first.device
    far = _differences(first, second, side) >= _NEAR
    chosen = torch.rand(count, 8, generator=generator, device=where).masked_fill(far, -1.0).argmax(1)
    same = torch.randint(2, (count,), generator=generator, device=where).bool()
    number = torch.where(same, chosen // 4, 2 + chosen % 4)
    return _pairs(first, second)[torch.arange(count, device=where), number], same


def _distance(pairs: Int64[Tensor, "*count 2"], side: int) -> Float[Tensor, "*count"]:
    rows, columns = pairs // side, pairs % side
    return torch.hypot((rows[..., 0] - rows[..., 1]).float(), (columns[..., 0] - columns[..., 1]).float())
