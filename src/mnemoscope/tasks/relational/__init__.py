"""Relational tasks: questions about how images relate, answered for images that training never showed."""

from typing import TYPE_CHECKING

from mnemoscope.core.lazy import lazy
from mnemoscope.tasks.registry import TABLE
from mnemoscope.tasks.relational.base import Problems, Relational, SymbolTask

if TYPE_CHECKING:
    from mnemoscope.tasks.relational.comparison import *
    from mnemoscope.tasks.relational.distribution import *
    from mnemoscope.tasks.relational.games import *
    from mnemoscope.tasks.relational.identity_rules import *
    from mnemoscope.tasks.relational.matching import *
    from mnemoscope.tasks.relational.same_different import *

_PLACES = [place.removeprefix("relational.") for place in TABLE.values() if place.startswith("relational.")]
_HOMES = {"Game": "games"} | {cls: file for file, _, cls in (place.partition(":") for place in _PLACES)}

__all__ = ["Problems", "Relational", "SymbolTask"]

__getattr__ = lazy(__name__, _HOMES)


def __dir__() -> list[str]:
    return sorted([*__all__, *_HOMES])
