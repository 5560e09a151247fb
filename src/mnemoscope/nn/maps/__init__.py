"""Maps from unconstrained parameters to the matrix between two hidden states, one set of matrices per file.

A map is imported when it is first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mnemoscope.nn.maps.base import Transition, gram_error
    from mnemoscope.nn.maps.cayley import ComplexScaledCayley, RebasedCayley, ScaledCayley
    from mnemoscope.nn.maps.exponential import Exponential
    from mnemoscope.nn.maps.factorised import Factorised
    from mnemoscope.nn.maps.fourier import Fourier
    from mnemoscope.nn.maps.givens import Givens
    from mnemoscope.nn.maps.householder import Householder
    from mnemoscope.nn.maps.schur import Schur

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

__all__ = [
    "ComplexScaledCayley",
    "Exponential",
    "Factorised",
    "Fourier",
    "Givens",
    "Householder",
    "RebasedCayley",
    "ScaledCayley",
    "Schur",
    "Transition",
    "gram_error",
]


def __getattr__(name: str) -> Any:
    if name not in _FILES:
        raise AttributeError(f"module 'mnemoscope.nn.maps' has no attribute {name!r}")
    return getattr(import_module(f"mnemoscope.nn.maps.{_FILES[name]}"), name)
