"""Maps from unconstrained parameters to the matrix between two hidden states, one set of matrices per file."""

from mnemoscope.nn.maps.base import Transition, gram_error
from mnemoscope.nn.maps.cayley import ComplexScaledCayley, RebasedCayley, ScaledCayley
from mnemoscope.nn.maps.exponential import Exponential
from mnemoscope.nn.maps.factorised import Factorised
from mnemoscope.nn.maps.fourier import Fourier
from mnemoscope.nn.maps.givens import Givens
from mnemoscope.nn.maps.householder import Householder
from mnemoscope.nn.maps.schur import Schur

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
