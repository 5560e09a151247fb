"""ListOps: nested lists of digits under minimum, maximum, median and sum, to be evaluated."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import ClassVar, NamedTuple

import numpy as np
import torch
from jaxtyping import Bool, Int64, UInt8
from torch import Tensor

from mnemoscope.core.errors import UserError, expected
from mnemoscope.core.seeds import seed_of
from mnemoscope.tasks.base import Task
from mnemoscope.tasks.batch import Batch, Splits, place
from mnemoscope.tasks.checks import at_least
from mnemoscope.tasks.listops_chances import OPERATOR, answer_chances, length_chances
from mnemoscope.tasks.registry import task

__all__ = ["ListOps"]

_SYMBOLS = (*"0123456789", "[MIN", "[MAX", "[MED", "[SM", "]", "·")
_CLOSE, _PADDING = 14, 15
_MULTIPLE = 64
"""Sequences are padded to a multiple of it: those of 2,000 symbols to 2,048."""

_RAREST = 1e-7
"""Chance of a list to have an allowed length, below which none is looked for."""

_MOST = 1 << 14
"""Lists that are grown at once."""


@task("listops")
@dataclass(frozen=True)
class ListOps(Task):
    """Evaluate a nested list in prefix form: ``[MAX 4 3 [MIN 2 3 ] 1 ]`` is 4.

    A list has an operator, MIN, MAX, MED (the median, rounded down) or SM (the sum modulo 10), and 2 to `arguments`
    arguments, their number uniform; an argument is a list with probability 1/4, below depth `depth` always a digit.
    Lists with more than `shortest` and fewer than `longest` symbols are kept. Inputs are the numbers of 15 symbols, to
    embed, and of the padding; one of ten digits is asked for at the end. The digits are not equally frequent: the
    baseline is the entropy of their exact distribution. The score is the accuracy.

    Parameters
    ----------
    longest
        Symbols that a list must stay below.
    shortest
        Symbols that a list must exceed.
    depth
        Levels of the tree; those of the last are digits.
    arguments
        Most arguments of an operator.

    Notes
    -----
    96,000 / 2,000 / 2,000 sequences, none of them twice, as in the Long Range Arena; fresh batches as an option. Whole
    levels of many trees are grown at once and those of another length are dropped, so that the distribution is exact.
    """

    longest: int = 2000
    shortest: int = 500
    depth: int = 10
    arguments: int = 10

    difficulty: ClassVar[str] = "longest"
    naive: ClassVar[str] = "entropy of the answers"
    references: ClassVar[tuple[str, ...]] = ("nangia2018", "tay2021")
    embedding_size: ClassVar[int] = 128
    sizes: ClassVar[tuple[int, int, int]] = (96_000, 2_000, 2_000)

    def __post_init__(self) -> None:
        """Check the settings."""
        at_least("shortest", self.shortest, 0)
        at_least("depth", self.depth, 2)
        at_least("arguments", self.arguments, 2)
        least = self.limits()[0]
        if at_least("longest", self.longest, 1) < least:
            raise expected("longest", f"at least {least} (two more than shortest)", self.longest)

    def limits(self, axis: str | None = None) -> tuple[int, int | None]:
        """The shortest list, ``[MAX 1 2 ]``, has four symbols."""
        self._axis(axis)
        return max(self.shortest + 2, 5), None

    @property
    def steps(self) -> int:
        """Symbols of the longest list, with padding."""
        return -(-self.longest // _MULTIPLE) * _MULTIPLE

    @property
    def input_size(self) -> int:
        """The symbols, and padding."""
        return len(_SYMBOLS)

    @property
    def output_size(self) -> int:
        """The digits."""
        return 10

    @property
    def embedding(self) -> int:
        """The symbols, and padding."""
        return len(_SYMBOLS)

    @property
    def baseline(self) -> float:
        """The entropy of the answers."""
        shares = self.answers()
        return float(-(shares[shares > 0] * np.log(shares[shares > 0])).sum())

    def answers(self) -> np.ndarray:
        """Return the probability of each answer, exactly."""
        self.chance()
        return answer_chances(self.shortest, self.longest, self.depth, self.arguments)

    def chance(self) -> float:
        """Return the probability that a list has an allowed length, or raise where there is hardly any."""
        found = float(length_chances(self.longest, self.depth, self.arguments)[self.shortest + 1 :].sum())
        if found < _RAREST:
            raise UserError(
                f"lists of depth {self.depth} with up to {self.arguments} arguments hardly ever have more than "
                f"{self.shortest} and fewer than {self.longest} symbols (probability {found:.1g}): change one of these"
            )
        return found

    def draw(self, batch: int, generator: torch.Generator | None) -> Batch:
        """Draw fresh sequences."""
        tokens, lengths, answers = self._lists(batch, generator)
        return _batch(tokens.long(), lengths, answers)

    def splits(self, seed: int = 0) -> Splits:
        """Return 96,000 lists to train, 2,000 to validate and 2,000 to test; a seed gives the same ones."""
        return _sets(self, seed, self.sizes)

    def glyphs(self) -> tuple[list[str], list[str]]:
        """The symbols as they are written."""
        return list(_SYMBOLS), list(_SYMBOLS[:10])

    def _lists(self, count: int, generator: torch.Generator | None) -> tuple[Tensor, Tensor, Tensor]:
        """Return symbols (time, count) as bytes, lengths and answers of lists of allowed lengths."""
        chance, where = self.chance(), place(generator)
        found = []
        left = count
        while left > 0:
            trees = int(min(1.1 * left / chance + 16, _MOST))
            levels = _grow(trees, self.depth, self.arguments, self.longest, generator)
            kept = _allowed(levels, self.shortest, self.longest, trees)
            levels = _only(levels, kept.nonzero().squeeze(1)[:left], trees)
            found.append(_written(levels, len(levels[0].tree), self.steps, where))
            left -= len(levels[0].tree)
        tokens, lengths, answers = (torch.cat(parts) for parts in zip(*found, strict=True))
        return tokens.T, lengths, answers


@lru_cache(maxsize=2)
def _sets(own: ListOps, seed: int, sizes: tuple[int, int, int]) -> Splits:
    """Draw three sets without a list that is there twice; kept, since each run of a population asks for them."""
    # Not the seed itself: fresh batches of the same seed would repeat the training set.
    generator = torch.Generator().manual_seed(seed_of(seed, f"{own.name} splits"))
    parts = (torch.empty(0, own.steps, dtype=torch.uint8), *(torch.empty(0, dtype=torch.int64) for _ in range(2)))
    while (known := len(parts[0])) < sum(sizes):
        tokens, lengths, answers = own._lists(sum(sizes) - known, generator)
        parts = tuple(torch.cat(pair) for pair in zip(parts, (tokens.T, lengths, answers), strict=True))
        first = _first_of_each(parts[0])
        if len(first) == known:
            raise UserError(
                f"there are no {sum(sizes)} different lists of fewer than {own.longest} symbols: raise longest, or "
                "take data='fresh'"
            )
        parts = tuple(part[first] for part in parts)
    bounds = np.cumsum([0, *sizes])
    sets = [tuple(part[a:b] for part in parts) for a, b in pairwise(bounds)]
    return Splits(*(_batch(tokens.T, lengths, answers) for tokens, lengths, answers in sets))


def _first_of_each(rows: UInt8[Tensor, "count time"]) -> Int64[Tensor, " different"]:
    """Return where rows occur for the first time, in order; rows are known by a hash of 64 bits."""
    weights = torch.randint(-(1 << 62), 1 << 62, (rows.shape[1],), generator=torch.Generator().manual_seed(1))
    parts = (rows[first : first + 4096] for first in range(0, len(rows), 4096))  # as numbers all would be eight times
    hashes = torch.cat([(part.long() * (2 * weights + 1)).sum(1) for part in parts])
    _, inverse = torch.unique(hashes, return_inverse=True)
    places = torch.full((int(inverse.max()) + 1,), len(rows)).scatter_reduce(
        0, inverse, torch.arange(len(rows)), "amin"
    )
    return places.sort().values


def _batch(tokens: Tensor, lengths: Int64[Tensor, " count"], answers: Int64[Tensor, " count"]) -> Batch:
    mask = torch.zeros(tokens.shape, dtype=torch.bool, device=tokens.device)
    mask.scatter_(0, (lengths - 1).unsqueeze(0), True)
    return Batch(tokens, answers, mask, lengths)


class _Level(NamedTuple):
    """Nodes of many trees at one depth, siblings side by side.

    `parent` counts the lists of the level above; `symbol` is a digit, or 10 to 13 for an operator.
    """

    tree: Int64[Tensor, " nodes"]
    parent: Int64[Tensor, " nodes"]
    symbol: Int64[Tensor, " nodes"]

    @property
    def lists(self) -> Bool[Tensor, " nodes"]:
        """Which of them are lists."""
        return self.symbol > 9


def _grow(trees: int, depth: int, arguments: int, longest: int, generator: torch.Generator | None) -> list[_Level]:
    """Grow trees whose root is a list, level by level; a tree that has become too long does not grow on."""
    where = place(generator)

    def drawn(low: int, high: int, count: int) -> Tensor:
        return torch.randint(low, high, (count,), generator=generator, device=where)

    tree = torch.arange(trees, device=where)
    levels = [_Level(tree, tree, drawn(10, 14, trees))]
    symbols = torch.full((trees,), 2, device=where)
    for level in range(2, depth + 1):
        above = levels[-1]
        grows = above.tree[above.lists]
        children = drawn(2, arguments + 1, len(grows))
        children = torch.where(symbols[grows] < longest, children, torch.zeros_like(children))
        parent = torch.arange(len(grows), device=where).repeat_interleave(children)
        tree = grows[parent]
        symbol = drawn(0, 10, len(parent))
        if level < depth:
            lists = torch.rand(len(parent), generator=generator, device=where) < OPERATOR
            symbol = torch.where(lists, drawn(10, 14, len(parent)), symbol)
        levels.append(_Level(tree, parent, symbol))
        symbols += torch.bincount(tree, minlength=trees) + torch.bincount(tree[symbol > 9], minlength=trees)
    return levels


def _allowed(levels: list[_Level], shortest: int, longest: int, trees: int) -> Bool[Tensor, " trees"]:
    """Return which trees have an allowed number of symbols; every list has one more than its operator."""
    symbols = sum(
        torch.bincount(level.tree, minlength=trees) + torch.bincount(level.tree[level.lists], minlength=trees)
        for level in levels
    )
    assert isinstance(symbols, Tensor)
    return (symbols > shortest) & (symbols < longest)


def _only(levels: list[_Level], chosen: Int64[Tensor, " chosen"], trees: int) -> list[_Level]:
    """Return the levels with nothing but the nodes of some trees, which are numbered anew."""
    number = torch.full((trees,), -1, device=chosen.device)
    number[chosen] = torch.arange(len(chosen), device=chosen.device)
    found, renamed = [], number
    for level in levels:
        stays = number[level.tree] >= 0
        found.append(_Level(number[level.tree[stays]], renamed[level.parent[stays]], level.symbol[stays]))
        renamed = stays[level.lists].long().cumsum(0) - 1
    return found


def _written(levels: list[_Level], trees: int, steps: int, where: torch.device) -> tuple[Tensor, Tensor, Tensor]:
    """Return the symbols of trees in prefix form, (trees, steps), their lengths and their values."""
    values, sizes = [level.symbol for level in levels], [torch.ones_like(level.symbol) for level in levels]
    for depth in range(len(levels) - 1, 0, -1):
        above, parent = levels[depth - 1], levels[depth].parent
        lists = above.lists.nonzero().squeeze(1)
        counts = torch.bincount(10 * parent + values[depth], minlength=10 * len(lists)).view(-1, 10)
        values[depth - 1] = values[depth - 1].scatter(0, lists, _evaluated(above.symbol[lists], counts))
        within = torch.zeros(len(lists), dtype=torch.int64, device=where).index_add_(0, parent, sizes[depth])
        sizes[depth - 1] = sizes[depth - 1].scatter(0, lists, within + 2)
    tokens = torch.full((trees, steps), _PADDING, dtype=torch.uint8, device=where)
    starts = torch.zeros(trees, dtype=torch.int64, device=where)
    for depth, level in enumerate(levels):
        if depth:
            # A child begins where the one before it ends, the first behind its parent's operator.
            before = sizes[depth].cumsum(0) - sizes[depth]
            first = torch.ones_like(level.parent, dtype=torch.bool)
            first[1:] = level.parent[1:] != level.parent[:-1]
            origin = before[first][level.parent]
            starts = (starts[levels[depth - 1].lists] + 1)[level.parent] + before - origin
        tokens[level.tree, starts] = level.symbol.to(torch.uint8)
        lists = level.lists
        tokens[level.tree[lists], (starts + sizes[depth] - 1)[lists]] = _CLOSE
    return tokens, sizes[0], values[0]


def _evaluated(operators: Int64[Tensor, " lists"], counts: Int64[Tensor, "lists 10"]) -> Int64[Tensor, " lists"]:
    """Return the values of lists from how often each digit is among their arguments."""
    below = counts.cumsum(1)
    number = below[:, -1:]

    def at(rank: Tensor) -> Tensor:
        """Return the digit of a rank, counted from 0."""
        return (below <= rank).sum(1)

    median = (at((number - 1) // 2) + at(number // 2)) // 2
    total = (counts * torch.arange(10, device=counts.device)).sum(1) % 10
    choices = torch.stack([at(torch.zeros_like(number)), at(number - 1), median, total])
    return choices.gather(0, (operators - 10).unsqueeze(0)).squeeze(0)
