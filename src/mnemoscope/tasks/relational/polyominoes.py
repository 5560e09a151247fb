"""Objects of the relational games: pentominoes, hexominoes and stripes, in 25 colours."""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from functools import cache

import numpy as np
import torch
from jaxtyping import Float, Int64
from torch import Tensor

__all__ = ["CELL", "COLOURS", "OBJECTS", "Objects", "luminance", "placements"]

CELL = 12
"""Pixels of a panel's side; an object covers pixels 1 to 9."""

_GRID, _BLOCK = 3, 3
"""An object is drawn on 3 x 3 squares of 3 x 3 pixels."""

COLOURS = torch.tensor([c for c in itertools.product((64, 144, 192), repeat=3) if c not in ((64,) * 3, (192,) * 3)])
"""25 colours: three levels of red, green and blue, without the darkest and the lightest grey."""


def luminance() -> Float[Tensor, " colours"]:
    """Return how light each colour is: 0.2126 R + 0.7152 G + 0.0722 B."""
    return COLOURS.double() @ torch.tensor([0.2126, 0.7152, 0.0722], dtype=torch.float64)


@cache
def placements(squares: int) -> tuple[tuple[np.ndarray, ...], ...]:
    """Return for every polyomino of that many squares that fits 3 x 3 all its places there, turned and mirrored.

    Examples
    --------
    >>> [len(placements(squares)) for squares in (5, 6)], [sum(map(len, placements(squares))) for squares in (5, 6)]
    ([8, 8], [49, 48])
    """
    families: dict[tuple[tuple[int, ...], bytes], list[np.ndarray]] = {}
    for chosen in itertools.combinations(range(_GRID * _GRID), squares):
        squared = np.zeros((_GRID, _GRID), dtype=bool)
        squared.flat[list(chosen)] = True
        if _connected(squared):
            families.setdefault(_shape(squared), []).append(squared)
    return tuple(tuple(families[shape]) for shape in sorted(families))


def _connected(squares: np.ndarray) -> bool:
    reached = np.zeros_like(squares)
    reached[tuple(np.argwhere(squares)[0])] = True
    for _ in range(squares.size):
        wider = np.pad(reached, 1)
        reached = (
            wider[1:-1, 1:-1] | wider[:-2, 1:-1] | wider[2:, 1:-1] | wider[1:-1, :-2] | wider[1:-1, 2:]
        ) & squares
    return bool((reached == squares).all())


def _shape(squares: np.ndarray) -> tuple[tuple[int, ...], bytes]:
    """Return what all turned, mirrored and moved copies share."""
    rows, columns = np.flatnonzero(squares.any(1)), np.flatnonzero(squares.any(0))
    tight = squares[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]
    turned = [np.rot90(side, turns) for side in (tight, tight[:, ::-1]) for turns in range(4)]
    return min((copy.shape, copy.tobytes()) for copy in turned)


class Objects(ABC):
    """A set of objects with two attributes each; an object is the number 25 first + colour."""

    @abstractmethod
    def draw(self, count: int, generator: torch.Generator | None) -> Int64[Tensor, " count"]:
        """Draw objects independently."""

    @abstractmethod
    def differing(
        self, objects: Int64[Tensor, " count"], generator: torch.Generator | None, kind: Tensor | None = None
    ) -> Int64[Tensor, " count"]:
        """Draw for every object one that differs from it.

        Parameters
        ----------
        kind
            In what: 0 shape, 1 colour, 2 both; by default a third each.
        """

    @abstractmethod
    def images(self) -> Float[Tensor, "objects 3 12 12"]:
        """Return the images of all objects, values / 255 on black."""


class Polyominoes(Objects):
    """Polyominoes of one colour: shapes are equally likely, and so are the places of a shape.

    Two objects have the same shape when they cover the same squares: a turned copy is another shape.
    """

    def __init__(self, squares: int) -> None:
        families = placements(squares)
        self.masks = torch.from_numpy(np.stack([mask for family in families for mask in family]))
        self.weights = torch.tensor([1 / len(family) for family in families for _ in family])

    def draw(self, count: int, generator: torch.Generator | None) -> Int64[Tensor, " count"]:
        """Draw shape, place and colour."""
        shape = torch.multinomial(self.weights, count, replacement=True, generator=generator)
        return len(COLOURS) * shape + torch.randint(len(COLOURS), (count,), generator=generator)

    def differing(
        self, objects: Int64[Tensor, " count"], generator: torch.Generator | None, kind: Tensor | None = None
    ) -> Int64[Tensor, " count"]:
        """Draw another shape, another colour, or both."""
        count, colours = len(objects), len(COLOURS)
        kind = torch.randint(3, (count,), generator=generator) if kind is None else kind
        shape, colour = objects // colours, objects % colours
        others = self.weights.repeat(count, 1).scatter_(1, shape.unsqueeze(1), 0.0)
        other_shape = torch.multinomial(others, 1, generator=generator).squeeze(1)
        other_colour = (colour + torch.randint(1, colours, (count,), generator=generator)) % colours
        return colours * torch.where(kind == 1, shape, other_shape) + torch.where(kind == 0, colour, other_colour)

    def images(self) -> Float[Tensor, "objects 3 12 12"]:
        """Return every shape in every colour."""
        blocks = self.masks.float().repeat_interleave(_BLOCK, 1).repeat_interleave(_BLOCK, 2)
        inked = blocks[:, None, None] * (COLOURS / 255)[None, :, :, None, None]
        return torch.nn.functional.pad(inked.flatten(0, 1), (1, 2, 1, 2))


class Stripes(Objects):
    """Squares of three vertical bands A, B, A, with two independent colours, which may be the same."""

    def draw(self, count: int, generator: torch.Generator | None) -> Int64[Tensor, " count"]:
        """Draw both colours."""
        return torch.randint(len(COLOURS) ** 2, (count,), generator=generator)

    def differing(
        self, objects: Int64[Tensor, " count"], generator: torch.Generator | None, kind: Tensor | None = None
    ) -> Int64[Tensor, " count"]:
        """Draw another pair of colours."""
        every = len(COLOURS) ** 2
        return (objects + torch.randint(1, every, (len(objects),), generator=generator)) % every

    def images(self) -> Float[Tensor, "objects 3 12 12"]:
        """Return every pair of colours."""
        outer = (COLOURS / 255)[:, None].expand(-1, len(COLOURS), -1)
        bands = torch.stack([outer, outer.transpose(0, 1), outer], -1).flatten(0, 1)
        square = bands.repeat_interleave(_BLOCK, -1).unsqueeze(-2).expand(-1, -1, _GRID * _BLOCK, -1)
        return torch.nn.functional.pad(square, (1, 2, 1, 2))


OBJECTS = {"pentominoes": lambda: Polyominoes(5), "hexominoes": lambda: Polyominoes(6), "stripes": Stripes}
"""The sets by name; call to build."""
