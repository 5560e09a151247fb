"""Base of the relational tasks: abstract problems in letters, a split of the symbols, and the panels that show them."""

from __future__ import annotations

import math
import os
from abc import abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import ClassVar, NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Int64
from torch import Tensor

from mnemoscope.core.errors import UserError, choice, expected
from mnemoscope.nn.panels import Panels
from mnemoscope.tasks.base import Evaluation, Task
from mnemoscope.tasks.batch import Batch, at_the_end, place
from mnemoscope.tasks.checks import at_least
from mnemoscope.tasks.relational.shapes import SIDE
from mnemoscope.tasks.relational.symbols import SOURCES, SYMBOLS, available, symbols

__all__ = [
    "ColouredTask",
    "Problems",
    "Relational",
    "SymbolTask",
    "chosen",
    "coloured",
    "colours",
    "compact",
    "letters_of",
    "tabulate",
]

_ROW = 4
"""Panels side by side in a picture, at most."""

_COLOURS = 100


class Problems(NamedTuple):
    """Abstract problems: the letter that stands at each panel, and the answer.

    Letters 0, 1, .. stand for distinct symbols, which are chosen anew for every example.
    """

    letters: Int64[Tensor, "panels problems"]
    answers: Int64[Tensor, " problems"]


class Relational(Task):
    """A question about the relations between images: T panels in, one of K answers out, at the last panel.

    Inputs are `Panels`; the loss is the cross entropy, ln K for whoever guesses; the score is the accuracy.
    """

    kind: ClassVar[str] = "relational"
    naive: ClassVar[str] = "ln K"
    references: ClassVar[tuple[str, ...]] = ("kerg2022",)
    rows: ClassVar[tuple[int, ...]]
    """Panels of each row of a picture."""

    part: str

    @property
    def input_size(self) -> int:
        """Numbers of an image."""
        return math.prod(self.input_shape)

    @property
    def baseline(self) -> float:
        """The logarithm of the number of answers, which are equally frequent."""
        return math.log(self.output_size)

    @abstractmethod
    def panels(self, batch: int, generator: torch.Generator | None) -> tuple[Panels, Int64[Tensor, " batch"]]:
        """Draw examples: their panels and their answers."""

    def draw(self, batch: int, generator: torch.Generator | None) -> Batch:
        """Draw fresh examples."""
        return _examples(*self.panels(batch, generator))

    def sample_twice(self, batch: int, generator: torch.Generator | None = None) -> tuple[Batch, Batch]:
        """Draw examples, and the same again with all objects exchanged for others: every relation stays."""
        first, second, answers = self.twice(batch, generator)
        return _examples(first, answers), _examples(second, answers)

    def twice(self, batch: int, generator: torch.Generator | None) -> tuple[Panels, Panels, Int64[Tensor, " batch"]]:
        """Draw examples with two choices of objects each."""
        raise UserError(f"the task {self.name} asks for more than which objects are the same: they cannot be exchanged")

    def pictures(self, batch: Batch, which: int = 0) -> dict[str, Float[np.ndarray, "rows columns *rgb"]]:
        """Return the panels in the order of their steps, row below row, under the answer."""
        images = batch.inputs.take(slice(which, which + 1)).dense()[:, 0].cpu()
        lines: list[Tensor] = []
        for row in images.split(list(self.rows)):
            lines += row.split(_ROW)
        return {f"answer {int(batch.targets[which])}": _page(lines)}


def _examples(panels: Panels, answers: Int64[Tensor, " batch"]) -> Batch:
    return at_the_end(panels.index, answers)._replace(inputs=panels)


def _page(lines: Sequence[Float[Tensor, "panels channels height width"]]) -> np.ndarray:
    """Return lines of images below each other, one pixel apart: the ink of black on white, colours otherwise."""
    grey = all(bool((line == line[:, :1]).all()) for line in lines) and lines[0].shape[-1] == SIDE
    shown = [1 - line[:, :1] for line in lines] if grey else list(lines)
    channels, height, width = shown[0].shape[1:]
    columns = max(map(len, shown))
    page = torch.full((channels, len(shown) * (height + 1) - 1, columns * (width + 1) - 1), 0.0 if grey else 1.0)
    for down, line in enumerate(shown):
        for across, image in enumerate(line):
            top, left = down * (height + 1), across * (width + 1)
            page[:, top : top + height, left : left + width] = image
    return page[0].numpy() if grey else page.permute(1, 2, 0).numpy()


@dataclass(frozen=True)
class SymbolTask(Relational):
    """A relational task on 100 symbols, of which training sees only some.

    Parameters
    ----------
    held_out
        m, the symbols that only the test shows; 0 shares all of them on purpose.
    split
        Which random split of the symbols.
    part
        ``"train"`` or ``"test"``: whose symbols and rules are drawn. `evaluations` gives the test.
    images
        ``"files"``, the user's images in the data folder; ``"own"``, shapes that we draw; by default the first where
        they are.
    data
        The data folder; by default that of MNEMOSCOPE_DATA.
    """

    held_out: int = 95
    split: int = 0
    part: str = "train"
    images: str = "auto"
    data: str | None = field(default=None, compare=False)

    difficulty: ClassVar[str] = "held_out"
    dataset: ClassVar[str | None] = "symbols"

    def __post_init__(self) -> None:
        """Check the settings."""
        choice("part", self.part, ("train", "test"))
        at_least("split", self.split, 0)
        if self.data is not None and not isinstance(self.data, str | os.PathLike):
            raise expected("data", "the path of a folder", self.data)
        if choice("images", self.images, ("auto", *SOURCES)) == "auto":
            # Settings are recorded: they must say which images these were.
            object.__setattr__(self, "images", available(self.data))
        least, most = self.needed["test"], SYMBOLS - self.needed["train"]
        if not (at_least("held_out", self.held_out, 0) == 0 or least <= self.held_out <= most):
            between = f"0, or from {least} to {most}, so that both parts have symbols enough"
            raise expected("held_out", between, self.held_out)

    @property
    @abstractmethod
    def needed(self) -> dict[str, int]:
        """Distinct symbols of one example, by part."""

    @property
    def input_shape(self) -> tuple[int, ...]:
        """An image in three channels."""
        return (3, SIDE, SIDE)

    @property
    def steps(self) -> int:
        """The panels."""
        return sum(self.rows)

    def limits(self, axis: str | None = None) -> tuple[int, int | None]:
        """Both parts must have the symbols of an example."""
        self._axis(axis)
        least = self.needed["test"]
        return (0 if least == 1 else least), SYMBOLS - self.needed["train"]

    def evaluations(self) -> tuple[Evaluation, ...]:
        """Return the test on the symbols, and by the rules, that training did not see."""
        return (Evaluation(f"held_out={self.held_out}", replace(self, part="test")),)

    def pool(self) -> Int64[Tensor, " symbols"]:
        """Return the numbers of the symbols of this part."""
        order = torch.randperm(SYMBOLS, generator=torch.Generator().manual_seed(self.split))
        if not self.held_out:
            return order
        kept = SYMBOLS - self.held_out
        return order[:kept] if self.part == "train" else order[kept:]

    @abstractmethod
    def problems(self, batch: int, generator: torch.Generator | None) -> Problems:
        """Draw abstract problems."""

    def panels(self, batch: int, generator: torch.Generator | None) -> tuple[Panels, Int64[Tensor, " batch"]]:
        """Draw problems, and show them."""
        letters, answers = self.problems(batch, generator)
        return self.show(letters, generator), answers

    def twice(self, batch: int, generator: torch.Generator | None) -> tuple[Panels, Panels, Int64[Tensor, " batch"]]:
        """Draw problems, and show each by two choices of symbols."""
        letters, answers = self.problems(batch, generator)
        return self.show(letters, generator), self.show(letters, generator), answers

    def show(self, letters: Int64[Tensor, "panels batch"], generator: torch.Generator | None) -> Panels:
        """Show the letters of problems by distinct symbols."""
        images = symbols(self.images, self.data).to(place(generator))[self.pool()]
        return compact(Panels(images, self.distinct(letters.shape[1], generator).gather(0, letters)))

    def distinct(self, batch: int, generator: torch.Generator | None) -> Int64[Tensor, "letters batch"]:
        """Draw for every example the symbols that its letters stand for, by their number in the pool."""
        count = SYMBOLS if not self.held_out else SYMBOLS - self.held_out if self.part == "train" else self.held_out
        order = torch.rand(count, batch, generator=generator, device=place(generator))
        return order.topk(self.needed[self.part], 0).indices


@dataclass(frozen=True)
class ColouredTask(SymbolTask):
    """One of the four basic relational tasks, plain or with a colour on every panel that says nothing of the answer.

    Parameters
    ----------
    colour
        ``"none"``, or ``"spurious"``: every panel is multiplied by one of 100 fixed colours, drawn anew for each panel;
        training and test share them.
    """

    colour: str = "none"

    def __post_init__(self) -> None:
        """Check the settings."""
        super().__post_init__()
        choice("colour", self.colour, ("none", "spurious"))

    def show(self, letters: Int64[Tensor, "panels batch"], generator: torch.Generator | None) -> Panels:
        """Show problems, coloured where that is asked for."""
        panels = super().show(letters, generator)
        return panels if self.colour == "none" else coloured(panels, generator)


def compact(panels: Panels) -> Panels:
    """Return the panels with no more images than places to show them; their number depends on sizes only."""
    if panels.index.numel() >= len(panels.images):
        return panels
    places = torch.arange(panels.index.numel(), device=panels.index.device)
    return Panels(panels.images[panels.index.flatten()], places.view_as(panels.index))


@cache
def colours() -> Float[Tensor, "100 3"]:
    """Return the fixed colours, uniform in the cube, that training and test share."""
    return torch.rand(_COLOURS, 3, generator=torch.Generator().manual_seed(0))


def coloured(panels: Panels, generator: torch.Generator | None) -> Panels:
    """Return the panels with a random colour each, which says nothing of the answer."""
    index = panels.index
    chosen = torch.randint(_COLOURS, index.shape, generator=generator, device=index.device)
    tints = colours().to(index.device)[chosen.flatten()]
    places = torch.arange(index.numel(), device=index.device)
    return Panels(panels.images[index.flatten()] * tints[:, :, None, None], places.view_as(index))


def letters_of(pattern: str, first: int = 0) -> list[int]:
    """Return the letters of a pattern as numbers.

    Examples
    --------
    >>> letters_of("ABA"), letters_of("ABA", 2)
    ([0, 1, 0], [2, 3, 2])
    """
    return [first + ord(letter) - ord("A") for letter in pattern]


def tabulate(rows: Iterable[tuple[Sequence[int], int]]) -> Problems:
    """Return problems, each given as its letters and its answer, as a table."""
    letters, answers = zip(*rows, strict=True)
    return Problems(torch.tensor(letters).T.contiguous(), torch.tensor(answers))


def chosen(table: Problems, batch: int, generator: torch.Generator | None) -> Problems:
    """Draw problems of a table, all equally likely."""
    where = place(generator)
    which = torch.randint(len(table.answers), (batch,), generator=generator, device=where)
    return Problems(table.letters.to(where)[:, which], table.answers.to(where)[which])
