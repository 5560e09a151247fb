"""Maps from unconstrained parameters to the matrix between two hidden states, one set of matrices per file.

A map is imported when it is first used.
"""

from typing import TYPE_CHECKING

from mnemoscope.core.lazy import lazy

if TYPE_CHECKING:
    from mnemoscope.nn.maps.base import *
    from mnemoscope.nn.maps.cayley import *
    from mnemoscope.nn.maps.exponential import *
    from mnemoscope.nn.maps.factorised import *
    from mnemoscope.nn.maps.fourier import *
    from mnemoscope.nn.maps.givens import *
    from mnemoscope.nn.maps.householder import *
    from mnemoscope.nn.maps.schur import *

_FILES = {
    "ComplexScaledCayley": "cayley",
    "Exponential": "exponential",
    "Factorised": "factorised",
    "Fourier": "fourier",
    "Givens": "givens",
    "Householder": "householder",
    "RebasedCayley": "cayley",
    "ScaledCayley": "cayley",
    "Schur": "schur",
    "Transition": "base",
    "gram_error": "base",
}

__all__ = list(_FILES)

__getattr__ = lazy(__name__, _FILES)
