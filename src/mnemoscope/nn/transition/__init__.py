"""Maps from unconstrained parameters to the matrix between two hidden states, one set of matrices per file."""

from mnemoscope.nn.transition.base import Transition, gram_error
from mnemoscope.nn.transition.cayley import ComplexScaledCayley, RebasedCayley, ScaledCayley
from mnemoscope.nn.transition.exponential import Exponential
from mnemoscope.nn.transition.factorised import Factorised
from mnemoscope.nn.transition.fourier import Fourier
from mnemoscope.nn.transition.givens import Givens
from mnemoscope.nn.transition.householder import Householder
from mnemoscope.nn.transition.schur import Schur

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
