"""What a verdict judges: one line per thing that a network can be good or bad at, and the number that decides it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

__all__ = ["AXES", "ENOUGH", "MAJORITY", "Axis"]

MAJORITY = 2 / 3
"""The share of the references that a network must clearly exceed, or be exceeded by, to be called good or bad."""

ENOUGH = 3
"""References without which nothing is called good or bad."""


@dataclass(frozen=True, kw_only=True)
class Axis:
    """One line of the table.

    Attributes
    ----------
    name
        What a network is good or bad at, in a few words: it follows "Good at" and "Bad at".
    part, scalar
        The number of a row that decides.
    better
        Which numbers are better: higher ones, lower ones, or those nearer to zero.
    says
        What the number means, with ``{value}`` in place of it.
    limit
        A key of ``row["network"]`` that the number cannot exceed, and what to call it; None: no such limit.
    margin
        For a number that is counted, not estimated: the share by which two must differ to be told apart. None: it is an
        estimate, and its interval decides.
    least
        What the number cannot be below, to which a shown interval is cut; None: no such limit.
    weights
        Whether the number depends on the weights, so that training may change it.
    """

    name: str
    part: str
    scalar: str
    better: Literal["higher", "lower", "zero"]
    says: str
    limit: tuple[str, str] | None = None
    margin: float | None = None
    least: float | None = 0.0
    weights: bool = True


AXES = (
    Axis(
        name="plain memory of many inputs",
        part="capacity",
        scalar="linear",
        better="higher",
        says="a linear readout of its state recovers {value} past inputs in all",
        limit=("state_size", "the numbers in its state"),
    ),
    Axis(
        name="memory of products of inputs",
        part="capacity",
        scalar="nonlinear",
        better="higher",
        says="a linear readout recovers {value} products of two or three past inputs",
        limit=("state_size", "the numbers in its state"),
    ),
    Axis(
        name="remembering under noise",
        part="fisher",
        scalar="total",
        better="higher",
        says="with noise of variance 1 on every unit its state holds a Fisher information of {value} about the past",
    ),
    Axis(
        name="remembering for long",
        part="fisher",
        scalar="half_life",
        better="higher",
        says="half of its Fisher information is about inputs at most {value} steps old",
    ),
    Axis(
        name="letting gradients through",
        part="gradients",
        scalar="rate",
        better="zero",
        says="a gradient changes by {value} nats per step on its way back",
        least=None,
    ),
    Axis(
        name="tying the start of a sequence to its end",
        part="separation",
        scalar="soft_8",
        better="higher",
        says="its output after 8 steps is a sum of about {value} products of a function of the first half and one of "
        "the second (soft separation rank)",
    ),
    Axis(
        name="cost per step",
        part="card",
        scalar="multiply_adds",
        better="lower",
        says="a step takes {value} multiply-adds",
        margin=0.1,
        weights=False,
    ),
)
"""The table of what is judged."""
