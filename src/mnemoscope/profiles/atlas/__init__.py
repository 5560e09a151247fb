"""Atlas: profiles of established networks at equal parameters, which every profile is set beside."""

from mnemoscope.profiles.atlas.builder import BUDGETS, REFERENCES, build
from mnemoscope.profiles.atlas.file import Atlas
from mnemoscope.profiles.atlas.references import load, rows_like

__all__ = ["BUDGETS", "REFERENCES", "Atlas", "build", "load", "rows_like"]
