"""What a study is: a published figure, table or theorem as a plan of runs, an analysis and its figures."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, TypeVar

from mnemoscope.core.errors import choice
from mnemoscope.core.registry import Registry
from mnemoscope.report import Entry, Headline, Section
from mnemoscope.runs import spec_hash

__all__ = ["SCALES", "STUDIES", "VERDICTS", "Finding", "Outcome", "Part", "RunSpec", "Study", "study"]

SCALES = {
    "smoke": "seconds: shows that it runs, says nothing of the claim",
    "laptop": "minutes on two cores",
    "paper": "as published, or beyond",
}
"""How large a study is run, and what that takes."""

VERDICTS = ("reproduced", "trend reproduced at smaller scale", "not reproduced", "published value wrong")
"""What a study can find of a published claim."""

S = TypeVar("S", bound="type[Study]")


@dataclass(frozen=True)
class RunSpec:
    """One run of a study: its kind, which says who executes it, and its settings, plain JSON.

    Runs are known by the hash of their content: two studies that ask for the same run share it.
    """

    kind: str
    settings: Mapping[str, Any]

    @property
    def content(self) -> dict[str, Any]:
        """The whole as one document."""
        return {"kind": self.kind, **self.settings}

    @property
    def key(self) -> str:
        """The hash of the content."""
        return spec_hash(self.content)


@dataclass(frozen=True)
class Outcome:
    """What a run gave: its summary, and how long it took."""

    spec: RunSpec
    summary: Mapping[str, Any]
    seconds: float


@dataclass(frozen=True, kw_only=True)
class Part:
    """One published statement beside what was measured.

    Attributes
    ----------
    claim
        What the document says, in our words.
    measured
        What came out, with its numbers.
    verdict
        One of `VERDICTS`.
    """

    claim: str
    measured: str
    verdict: str

    def __post_init__(self) -> None:
        choice("verdict", self.verdict, VERDICTS)


@dataclass(frozen=True, kw_only=True)
class Finding:
    """What the runs of a study say together.

    Attributes
    ----------
    parts
        Claim by claim; the first is the one that the study is about.
    headlines
        The few numbers at the top of its page.
    data
        What the figures need.
    caveats
        What a reader must know before believing it.
    """

    parts: tuple[Part, ...]
    headlines: tuple[Headline, ...]
    data: Mapping[str, Any] = field(default_factory=dict)
    caveats: tuple[str, ...] = ()

    @property
    def verdict(self) -> str:
        """Of the study's own claim."""
        return self.parts[0].verdict


class Study(ABC):
    """A published figure, table or theorem, declared once and run at three scales.

    Attributes
    ----------
    name
        Its registry name: ``depth-fig-6``.
    title
        What it shows, in a few words.
    source
        Document and place.
    claim
        What the document shows there, in our words.
    references
        Keys of the bibliography.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    source: ClassVar[str]
    claim: ClassVar[str]
    references: ClassVar[tuple[str, ...]] = ()

    @abstractmethod
    def plan(self, scale: str) -> list[RunSpec]:
        """Return the runs, cheapest first."""

    @abstractmethod
    def analyse(self, outcomes: Sequence[Outcome], scale: str) -> Finding:
        """Return what the runs say of the claim; some runs may be missing."""

    @abstractmethod
    def entries(self, finding: Finding) -> list[Entry]:
        """Return what the charts compare."""

    @abstractmethod
    def draw(self, finding: Finding, command: str) -> list[Section]:
        """Return the figures and tables; `command` is what computes them again."""

    @abstractmethod
    def methods(self, scale: str) -> str:
        """Return how it was run at this scale, as a paragraph for a paper, with what differs from the document."""


STUDIES: Registry[type[Study]] = Registry("study", "mnemoscope.studies")


def study(name: str) -> Callable[[S], S]:
    """Return a class decorator that registers a study under `name`."""

    def file(cls: S) -> S:
        cls.name = name
        STUDIES.register(name)(cls)
        return cls

    return file
