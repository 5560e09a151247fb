"""A package that imports everything it has."""

from .recurrent import Configured

__all__ = ["Configured"]
