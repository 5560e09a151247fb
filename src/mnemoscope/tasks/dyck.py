"""Dyck languages: brackets within brackets, and the one that would close now."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

import numpy as np
import torch
from jaxtyping import Int64

from mnemoscope.core.errors import positive_int
from mnemoscope.tasks.automaton import run_automaton
from mnemoscope.tasks.base import Task
from mnemoscope.tasks.batch import Batch, all_steps, one_hot, place
from mnemoscope.tasks.registry import task

__all__ = ["Dyck"]

_BRACKETS = ("()", "[]", "{}", "<>")


@task("dyck")
@dataclass(frozen=True)
class Dyck(Task):
    """Say at every step which bracket would close now: Dyck-(k, m), k kinds of brackets, depth at most m.

    The next symbol is uniform over those that are valid: each of the k opening brackets while fewer than m are open,
    and the closing bracket of the last open one. One-hot, 2k inputs: the k opening brackets, then the k closing ones.
    The answer is the kind of the last open bracket, or class k when none is open; all steps count. The baseline is the
    entropy of the answers' distribution over all steps, computed from the Markov chain of the depth; the score is the
    accuracy.

    Parameters
    ----------
    depth
        m, how many brackets can be open at once.
    kinds
        k.
    length
        Steps of a sequence.

    Notes
    -----
    A sequence is a prefix of a word and need not end closed; the default sizes are ours [o].
    """

    depth: int = 4
    kinds: int = 2
    length: int = 64

    difficulty: ClassVar[str] = "depth"
    axes: ClassVar[tuple[str, ...]] = ("depth", "kinds", "length")
    naive: ClassVar[str] = "entropy of the answers"
    baseline_is: ClassVar[str] = "by frequencies alone"
    references: ClassVar[tuple[str, ...]] = ("hewitt2020",)

    def __post_init__(self) -> None:
        """Check the settings."""
        for name in self.axes:
            positive_int(name, getattr(self, name))

    @property
    def steps(self) -> int:
        """The length."""
        return self.length

    @property
    def input_size(self) -> int:
        """Opening and closing brackets: 2k."""
        return 2 * self.kinds

    @property
    def output_size(self) -> int:
        """The kinds, and none: k + 1."""
        return self.kinds + 1

    @property
    def baseline(self) -> float:
        """H(q) + (1 - q) ln k, where q is the probability that no bracket is open, over all steps."""
        return _entropy(closed_probability(self.depth, self.kinds, self.length), self.kinds)

    @property
    def memoryless(self) -> float:
        """P(a bracket closes) (H(q') + (1 - q') ln k), q' the probability that none is open after one has closed.

        An opening bracket is its own answer; after a closing one the kind of the next is uniform.
        """
        chances = _depths(self.depth, self.kinds, self.length)
        # Each step opens or closes one bracket, and as many are open at the end as were opened and not closed.
        closing = (1 - float(chances[-1] @ np.arange(self.depth + 1)) / self.length) / 2
        if closing == 0:
            return 0.0
        return closing * _entropy(float(chances[:, 0].mean()) / closing, self.kinds)

    def draw(self, batch: int, generator: torch.Generator | None) -> Batch:
        """Draw fresh sequences."""
        where, k = place(generator), self.kinds
        shape = (self.length, batch)
        # 0..k-1: open; k: close. Where only one of the two is valid the walk of the depth does that one, and the kind
        # is uniform all the same: it is drawn on its own.
        choices = torch.randint(k + 1, shape, generator=generator, device=where)
        kinds = torch.randint(k, shape, generator=generator, device=where)
        tokens, answers = _brackets((choices == k).cpu().numpy(), kinds.cpu().numpy(), k, self.depth)
        return all_steps(one_hot(torch.from_numpy(tokens).to(where), 2 * k), torch.from_numpy(answers).to(where))

    def glyphs(self) -> tuple[list[str], list[str]]:
        """Brackets, or numbered ones where there are more kinds than brackets; what would close."""
        if self.kinds <= len(_BRACKETS):
            opening, closing = ([pair[side] for pair in _BRACKETS[: self.kinds]] for side in (0, 1))
        else:
            opening, closing = ([f"{sign}{kind}" for kind in range(self.kinds)] for sign in "()")
        return opening + closing, [*closing, "·"]


def _brackets(closes: np.ndarray, kinds: np.ndarray, k: int, m: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the symbols and the kinds that would close (k for none) of random walks; all (time, batch)."""
    depth = run_automaton(_walk(m), closes.astype(np.int64), start=0)
    opens = np.diff(depth, axis=0, prepend=0) > 0
    last = _last_open(kinds, opens, depth)
    before = np.concatenate([np.zeros_like(last[:1]), last[:-1]])
    return np.where(opens, kinds, before + k), np.where(depth > 0, last, k)


def _walk(depth: int) -> Int64[np.ndarray, "2 states"]:
    """Return the next depth by what was chosen (0 open, 1 close) and the depth, with walls at both ends."""
    states = np.arange(depth + 1)
    opened, closed = states + 1, states - 1
    opened[-1], closed[0] = depth - 1, 1
    return np.stack([opened, closed])


def _last_open(
    kinds: Int64[np.ndarray, "time batch"], opens: np.ndarray, depth: Int64[np.ndarray, "time batch"]
) -> Int64[np.ndarray, "time batch"]:
    """Return the kind of the innermost open bracket after every step; anything where none is open.

    At depth d it is what the latest opening bracket that led to depth d opened. So the steps are sorted by depth,
    those of one depth by time; there every closing step repeats what the step before it says.
    """
    steps, batch = depth.shape
    # Whole numbers of two bytes and less are sorted by radix; a stable sort keeps the order of time.
    small = np.ascontiguousarray(depth.T, dtype=np.int8 if depth.max() < 128 else np.int16)
    order = np.argsort(small, axis=1, kind="stable")
    order += steps * np.arange(batch)[:, None]  # as places in a flat array, one sequence after the other
    places = np.where(opens.T.ravel()[order], np.arange(steps), 0)
    latest = np.maximum.accumulate(places, axis=1) + steps * np.arange(batch)[:, None]
    found = np.empty(steps * batch, dtype=kinds.dtype)
    found[order] = kinds.T.ravel()[order.ravel()[latest]]
    return found.reshape(batch, steps).T


@lru_cache(maxsize=64)
def closed_probability(depth: int, kinds: int, length: int) -> float:
    """Return the probability that no bracket is open, averaged over the steps of a sequence."""
    return float(_depths(depth, kinds, length)[:, 0].mean())


def _entropy(closed: float, kinds: int) -> float:
    """Return the entropy of an answer that is "none" with this probability, and else one of the kinds."""
    parts = [closed] + [(1 - closed) / kinds] * kinds
    return -sum(part * math.log(part) for part in parts if part > 0)


def _depths(depth: int, kinds: int, length: int) -> np.ndarray:
    """Return the probabilities of the depths after every step, (length, depth + 1)."""
    up = kinds / (kinds + 1)
    step = np.zeros((depth + 1, depth + 1))
    for level in range(depth + 1):
        opening = 1.0 if level == 0 else 0.0 if level == depth else up
        if level < depth:
            step[level, level + 1] = opening
        if level > 0:
            step[level, level - 1] = 1 - opening
    chances = np.eye(depth + 1)[0]
    found = np.empty((length, depth + 1))
    for t in range(length):
        found[t] = chances = chances @ step
    return found
