"""Relational games: a question about objects in a grid of three by three panels."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from functools import cache
from typing import ClassVar, NamedTuple

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from mnemoscope.core.errors import choice
from mnemoscope.nn.panels import Panels
from mnemoscope.tasks.base import Evaluation
from mnemoscope.tasks.batch import place
from mnemoscope.tasks.registry import task
from mnemoscope.tasks.relational.base import Relational
from mnemoscope.tasks.relational.polyominoes import CELL, COLOURS, OBJECTS, Objects, luminance

__all__ = ["Between", "ColourShape", "Game", "LeftOf", "Occurs", "RowMatching", "Same", "XOccurs"]

_EMPTY = -1
_CELLS = 9
_LINES = torch.tensor(
    [[3, 4, 5], [3, 4, 5], [0, 1, 2], [6, 7, 8], [0, 3, 6], [1, 4, 7], [2, 5, 8], [0, 4, 8], [2, 4, 6]]
)
"""Three cells in a line; the middle row counts twice, as in the published samples."""

_ON_A_LINE = {"pentominoes": 0.78, "hexominoes": 0.78, "stripes": 0.53}
"""The share of the negatives of `between` whose objects are in a line, as in the published samples."""

_PATTERNS = ((0, 0, 0), (0, 0, 1), (0, 1, 0), (0, 1, 1), (0, 1, 2))


class Scene(NamedTuple):
    """Objects of every example, the object in each of its nine cells (-1 for none), and the answers."""

    objects: Int64[Tensor, "objects batch"]
    cells: Int64[Tensor, "cells batch"]
    answers: Int64[Tensor, " batch"]


@cache
def _objects(name: str) -> tuple[Objects, Float[Tensor, "objects 3 12 12"]]:
    made: Objects = OBJECTS[name]()
    return made, made.images()


@dataclass(frozen=True)
class Game(Relational):
    """A game on nine panels of 12 x 12 pixels, row by row, empty ones included. Answers are equally frequent.

    Training shows pentominoes; the tests show hexominoes and stripes.

    Parameters
    ----------
    part
        The objects: ``"train"`` for pentominoes, ``"hexominoes"`` or ``"stripes"``. `evaluations` gives the tests.
    """

    part: str = "train"

    difficulty: ClassVar[str] = ""
    rows: ClassVar[tuple[int, ...]] = (3, 3, 3)
    references: ClassVar[tuple[str, ...]] = ("kerg2022", "shanahan2020")
    tests: ClassVar[tuple[str, ...]] = ("hexominoes", "stripes")
    by_equality: ClassVar[bool] = True
    """Whether the answer depends on nothing but which shapes and colours are the same."""

    def __post_init__(self) -> None:
        """Check the settings."""
        choice("part", self.part, ("train", *self.tests))

    @property
    def steps(self) -> int:
        """The cells of the grid."""
        return _CELLS

    @property
    def input_shape(self) -> tuple[int, ...]:
        """A cell in three colours."""
        return (3, CELL, CELL)

    @property
    def output_size(self) -> int:
        """No and yes."""
        return 2

    @property
    def shown(self) -> str:
        """The name of the objects."""
        return "pentominoes" if self.part == "train" else self.part

    def evaluations(self) -> tuple[Evaluation, ...]:
        """Return the tests on objects that training did not show."""
        return tuple(Evaluation(test, replace(self, part=test)) for test in self.tests)

    @abstractmethod
    def scene(self, batch: int, objects: Objects, generator: torch.Generator | None) -> Scene:
        """Draw examples."""

    def panels(self, batch: int, generator: torch.Generator | None) -> tuple[Panels, Int64[Tensor, " batch"]]:
        """Draw examples, and show their objects."""
        where = place(generator)
        # A generator of another device seeds one here: the tables are small, and one seed gives one batch anywhere.
        here = generator if where.type == "cpu" else _moved(generator)
        scene = self.scene(batch, _objects(self.shown)[0], here)
        return _shown(scene, self.shown, where), scene.answers.to(where)

    def twice(self, batch: int, generator: torch.Generator | None) -> tuple[Panels, Panels, Int64[Tensor, " batch"]]:
        """Draw examples, and exchange all shapes for others and all colours for others, the same throughout."""
        if not self.by_equality:
            return super().twice(batch, generator)
        where = place(generator)
        here = generator if where.type == "cpu" else _moved(generator)
        objects, images = _objects(self.shown)
        scene = self.scene(batch, objects, here)
        colours = len(COLOURS)
        orders = [torch.rand(count, batch, generator=here).argsort(0) for count in (len(images) // colours, colours)]
        first, second = (order.gather(0, part) for order, part in zip(orders, _parts(scene.objects), strict=True))
        other = scene._replace(objects=colours * first + second)
        return _shown(scene, self.shown, where), _shown(other, self.shown, where), scene.answers.to(where)


def _parts(objects: Int64[Tensor, "objects batch"]) -> tuple[Tensor, Tensor]:
    return objects // len(COLOURS), objects % len(COLOURS)


def _shown(scene: Scene, name: str, where: torch.device) -> Panels:
    """Return the cells of scenes, each object's image once."""
    images = _objects(name)[1]
    batch = scene.cells.shape[1]
    blank = images.new_zeros(1, *images.shape[1:])
    number = 1 + scene.cells * batch + torch.arange(batch)
    index = torch.where(scene.cells == _EMPTY, 0, number)
    return Panels(torch.cat([blank, images[scene.objects.flatten()]]).to(where), index.to(where))


def _moved(generator: torch.Generator | None) -> torch.Generator:
    assert generator is not None
    seed = torch.randint(2**62, (1,), generator=generator, device=generator.device)
    return torch.Generator().manual_seed(int(seed))


def _answers(count: int, batch: int, generator: torch.Generator | None) -> Int64[Tensor, " batch"]:
    return torch.randint(count, (batch,), generator=generator)


def _places(count: int, batch: int, generator: torch.Generator | None) -> Int64[Tensor, "count batch"]:
    """Return distinct cells."""
    return torch.rand(_CELLS, batch, generator=generator).topk(count, 0).indices


def _grid(places: Int64[Tensor, "count batch"], objects: Int64[Tensor, "count batch"]) -> Int64[Tensor, "9 batch"]:
    """Return the cells with objects, by their numbers, at their places."""
    return torch.full((_CELLS, places.shape[1]), _EMPTY).scatter_(0, places, objects)


def _pair(
    objects: Objects, answers: Tensor, same: int, kind: Tensor | None, generator: torch.Generator | None
) -> Scene:
    """Return two objects anywhere, equal where the answer is `same`."""
    batch = len(answers)
    first = objects.draw(batch, generator)
    second = objects.differing(first, generator, kind)
    numbers = torch.stack([torch.zeros_like(answers), (answers != same).long()])
    return Scene(torch.stack([first, second]), _grid(_places(2, batch, generator), numbers), answers)


@task("games-same")
@dataclass(frozen=True)
class Same(Game):
    """Say whether two objects, anywhere, are the same (1) or not (0).

    Two objects differ in shape, in colour or in both, a third each [o]; a turned copy is another shape. Stripes differ
    in a colour or in both.
    """

    def scene(self, batch: int, objects: Objects, generator: torch.Generator | None) -> Scene:
        """Draw two objects."""
        return _pair(objects, _answers(2, batch, generator), 1, None, generator)


@task("games-between")
@dataclass(frozen=True)
class Between(Game):
    """Say whether three objects are in a line, the outer two the same and the middle one different (1), or not (0).

    The middle row is drawn twice as often as the other seven lines. Of the negatives 78% are in a line with outer
    objects that differ in shape, in colour or in both (53% of stripes); the others are anywhere else, of any objects.
    """

    def scene(self, batch: int, objects: Objects, generator: torch.Generator | None) -> Scene:
        """Draw three objects."""
        answers = _answers(2, batch, generator)
        outer, middle = objects.draw(batch, generator), objects.draw(batch, generator)
        middle = torch.where(middle == outer, objects.differing(outer, generator), middle)
        last = objects.differing(outer, generator)
        line = _LINES[torch.randint(len(_LINES), (batch,), generator=generator)].T
        numbers = torch.stack([torch.zeros_like(answers), torch.ones_like(answers), 2 * (answers == 0).long()])
        apart = (answers == 0) & (torch.rand(batch, generator=generator) >= _ON_A_LINE[self.shown])
        elsewhere = _off_lines()[:, torch.randint(_off_lines().shape[1], (batch,), generator=generator)]
        last = torch.where(apart, objects.draw(batch, generator), last)
        places = torch.where(apart, elsewhere, line)
        return Scene(torch.stack([outer, middle, last]), _grid(places, numbers), answers)


@cache
def _off_lines() -> Int64[Tensor, "3 places"]:
    every = torch.combinations(torch.arange(_CELLS), 3)
    lines = {tuple(line) for line in _LINES.tolist()}
    return torch.tensor([cells for cells in every.tolist() if tuple(cells) not in lines]).T


def _top_and_bottom(batch: int, bottom: Tensor, generator: torch.Generator | None) -> Int64[Tensor, "9 batch"]:
    """Return object 0 anywhere in the top row, and three objects, by their numbers, in the bottom row."""
    top = torch.randint(3, (1, batch), generator=generator)
    places = torch.cat([top, torch.tensor([[6], [7], [8]]).expand(-1, batch)])
    return _grid(places, torch.cat([torch.zeros(1, batch, dtype=torch.long), bottom]))


def _shuffled(numbers: Tensor, generator: torch.Generator | None) -> Tensor:
    order = torch.rand(numbers.shape, generator=generator).argsort(0)
    return numbers.gather(0, order)


@task("games-occurs")
@dataclass(frozen=True)
class Occurs(Game):
    """Say whether the object of the top row occurs among the three of the bottom row (1) or not (0).

    In positives exactly one of the three is the same; the others differ from it in shape, colour or both [o].
    """

    def scene(self, batch: int, objects: Objects, generator: torch.Generator | None) -> Scene:
        """Draw four objects."""
        answers = _answers(2, batch, generator)
        top = objects.draw(batch, generator)
        others = [objects.differing(top, generator) for _ in range(3)]
        ones = torch.ones_like(answers)
        bottom = torch.stack([1 - answers, 2 * ones, 3 * ones])
        cells = _top_and_bottom(batch, _shuffled(bottom, generator), generator)
        return Scene(torch.stack([top, *others]), cells, answers)


@task("games-xoccurs")
@dataclass(frozen=True)
class XOccurs(Game):
    """Say whether exactly one object of the bottom row is that of the top row and the other two differ (1), or not (0).

    Half of the negatives lack the object of the top row; in the other half it occurs, and the other two are the same
    [o].
    """

    def scene(self, batch: int, objects: Objects, generator: torch.Generator | None) -> Scene:
        """Draw four objects."""
        answers = _answers(2, batch, generator)
        top = objects.draw(batch, generator)
        second = objects.differing(top, generator)
        third = _apart(objects, [top, second], generator)
        fourth = _apart(objects, [top, second, third], generator)
        # Object 0 occurs and 1, 2 differ; 1, 2, 3; or 0 and twice 1.
        rows = torch.tensor([[0, 1, 2], [1, 2, 3], [0, 1, 1]])
        broken = torch.randint(1, 3, (batch,), generator=generator)
        bottom = rows[torch.where(answers == 1, 0, broken)].T
        cells = _top_and_bottom(batch, _shuffled(bottom, generator), generator)
        return Scene(torch.stack([top, second, third, fourth]), cells, answers)


def _apart(objects: Objects, others: list[Tensor], generator: torch.Generator | None) -> Int64[Tensor, " batch"]:
    """Draw objects that differ from the first of some others as usual, and are none of the rest."""
    found = objects.differing(others[0], generator)
    while bool((again := torch.stack([found == other for other in others]).any(0)).any()):
        found = torch.where(again, objects.differing(others[0], generator), found)
    return found


@task("games-row-matching")
@dataclass(frozen=True)
class RowMatching(Game):
    """Say whether the top and the bottom row have the same pattern, of AAA, AAB, ABA, ABB and ABC (1), or not (0).

    The rows have objects of their own; patterns are equally likely.
    """

    def scene(self, batch: int, objects: Objects, generator: torch.Generator | None) -> Scene:
        """Draw two rows of three objects."""
        answers = _answers(2, batch, generator)
        patterns, count = torch.tensor(_PATTERNS), len(_PATTERNS)
        top = torch.randint(count, (batch,), generator=generator)
        other = (top + torch.randint(1, count, (batch,), generator=generator)) % count
        bottom = torch.where(answers == 1, top, other)
        numbers = torch.cat([patterns[top].T, 3 + patterns[bottom].T])
        places = torch.tensor([0, 1, 2, 6, 7, 8]).unsqueeze(1).expand(-1, batch)
        found: list[Tensor] = []
        for _ in range(2):
            first = objects.draw(batch, generator)
            second = objects.differing(first, generator)
            found += [first, second, _apart(objects, [first, second], generator)]
        return Scene(torch.stack(found), _grid(places, numbers), answers)


@task("games-colour-shape")
@dataclass(frozen=True)
class ColourShape(Game):
    """Say in what two objects agree: colour and shape (0), colour only (1), shape only (2), neither (3)."""

    tests: ClassVar[tuple[str, ...]] = ("hexominoes",)

    @property
    def output_size(self) -> int:
        """The four cases."""
        return 4

    def scene(self, batch: int, objects: Objects, generator: torch.Generator | None) -> Scene:
        """Draw two objects."""
        answers = _answers(4, batch, generator)
        return _pair(objects, answers, 0, (answers - 1).clamp(0), generator)


@task("games-left-of")
@dataclass(frozen=True)
class LeftOf(Game):
    """Say whether the darker of two objects is further to the left (1) or not (0); in one column: whether it is lower.

    Dark and light is by the luminance 0.2126 R + 0.7152 G + 0.0722 B, which always differs.
    """

    tests: ClassVar[tuple[str, ...]] = ("hexominoes",)
    by_equality: ClassVar[bool] = False

    def scene(self, batch: int, objects: Objects, generator: torch.Generator | None) -> Scene:
        """Draw two objects, and put the darker one where the answer wants it."""
        answers = _answers(2, batch, generator)
        light, colours = luminance(), len(COLOURS)
        darker, lighter = _by_luminance()
        pair = torch.randint(len(darker), (batch,), generator=generator)
        shapes = objects.draw(2 * batch, generator).view(2, batch) // colours
        found = shapes * colours + torch.stack([darker[pair], lighter[pair]])
        assert bool((light[found[0] % colours] < light[found[1] % colours]).all())
        places = _places(2, batch, generator)
        # First the cell that is further to the left, in one column the lower one.
        rank = 3 * (places % 3) - places // 3
        ordered = places.gather(0, rank.argsort(0))
        numbers = torch.stack([1 - answers, answers])
        return Scene(found, _grid(ordered, numbers), answers)


@cache
def _by_luminance() -> tuple[Int64[Tensor, " pairs"], Int64[Tensor, " pairs"]]:
    """Return all pairs of colours, darker and lighter."""
    light = luminance()
    darker, lighter = (light[:, None] < light[None, :] - 1e-9).nonzero(as_tuple=True)
    return darker, lighter
