"""Base of all problems, tasks and environments alike: a name, settings, and what makes them harder."""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

from mnemoscope.core.errors import UserError, choice

__all__ = ["Problem"]

P = TypeVar("P", bound="Problem")


@dataclass(frozen=True)
class Problem(ABC):
    """Something to be solved: a frozen dataclass whose fields are its settings.

    Attributes
    ----------
    name
        Under which it is registered.
    references
        Keys of the bibliography.
    kind
        What is asked for.
    metric
        The score in words.
    baseline_is
        Whose loss the baseline is, in two or three words.
    difficulty
        The setting that makes it harder as it grows; empty where there is none.
    axes
        All settings of which that can be said, when there are more than this one.
    dataset
        The files that it reads (a name of `mnemoscope data`), or None.
    """

    name: ClassVar[str]
    references: ClassVar[tuple[str, ...]] = ()
    kind: ClassVar[str]
    metric: ClassVar[str]
    baseline_is: ClassVar[str] = "without memory"
    difficulty: ClassVar[str]
    axes: ClassVar[tuple[str, ...]] = ()
    dataset: ClassVar[str | None] = None

    @property
    @abstractmethod
    def baseline(self) -> float:
        """The loss of the best answer, or the best policy, without memory."""

    def limits(self, axis: str | None = None) -> tuple[int, int | None]:
        """Return the least and the largest value of an axis with all other settings as they are; None: no end."""
        self._axis(axis)
        return 1, None

    def harder(self: P, value: int, axis: str | None = None) -> P:
        """Return the problem with another value on its difficulty axis.

        Examples
        --------
        >>> import mnemoscope as ms
        >>> ms.tasks.create("copy").harder(500)
        Copy(delay=500)
        """
        return dataclasses.replace(self, **{self._axis(axis): value})

    def settings(self) -> dict[str, Any]:
        """Return what makes it what it is, ready for JSON; the folder of the data is not among it."""
        return {field.name: getattr(self, field.name) for field in dataclasses.fields(self) if field.compare}

    def _axis(self, axis: str | None) -> str:
        if not self.difficulty:
            raise UserError(f"{self.name} has no setting that makes it harder step by step")
        return self.difficulty if axis is None else choice("axis", axis, self.axes or (self.difficulty,))
