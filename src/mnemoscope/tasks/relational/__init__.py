"""Relational tasks: questions about how images relate, answered for images that training never showed."""

from mnemoscope.tasks.relational.base import Problems, Relational, SymbolTask
from mnemoscope.tasks.relational.comparison import Comparison, TransitiveComparison
from mnemoscope.tasks.relational.distribution import Distribution3, DistributionN, RestrictedDistributionN
from mnemoscope.tasks.relational.games import (
    Between,
    ColourShape,
    Game,
    LeftOf,
    Occurs,
    RowMatching,
    Same,
    XOccurs,
)
from mnemoscope.tasks.relational.identity_rules import (
    IdentityRules,
    IdentityRules4,
    IdentityRules4Flipped,
    IdentityRules4FlippedMissing,
    IdentityRules4Missing,
)
from mnemoscope.tasks.relational.matching import RMTS, RMTS3
from mnemoscope.tasks.relational.same_different import SameDifferent, SameDifferent6, SeparatedInputs

__all__ = [
    "RMTS",
    "RMTS3",
    "Between",
    "ColourShape",
    "Comparison",
    "Distribution3",
    "DistributionN",
    "Game",
    "IdentityRules",
    "IdentityRules4",
    "IdentityRules4Flipped",
    "IdentityRules4FlippedMissing",
    "IdentityRules4Missing",
    "LeftOf",
    "Occurs",
    "Problems",
    "Relational",
    "RestrictedDistributionN",
    "RowMatching",
    "Same",
    "SameDifferent",
    "SameDifferent6",
    "SeparatedInputs",
    "SymbolTask",
    "TransitiveComparison",
    "XOccurs",
]
