"""V = exp(A), A skew: all rotations, or all unitary matrices (expRNN)."""

from __future__ import annotations

import torch
from jaxtyping import Inexact
from torch import Tensor

from mnemoscope.nn.maps.base import is_orthogonal
from mnemoscope.nn.maps.functions import exponential
from mnemoscope.nn.maps.rebase import Rebased
from mnemoscope.nn.maps.skew import log_orthogonal

__all__ = ["Exponential"]


class Exponential(Rebased):
    """V = B exp(A), A skew, B a base point: the identity (static), or moved to V every `every` steps (dynamic).

    The dynamic form is the dynamic trivialisation of Lezcano-Casado (2019): after `every` steps of the optimiser
    B <- V, projected onto the orthogonal matrices, and A <- 0.
    """

    @property
    def set_name(self) -> str:  # type: ignore[override]
        """In words."""
        return "unitary" if self.field == "complex" else "orthogonal with determinant +1"

    def curve(self, skew: Inexact[Tensor, "n n"]) -> Inexact[Tensor, "n n"]:
        """Return exp(A)."""
        return exponential(skew)

    def inverse_curve(self, matrix: Inexact[Tensor, "n n"]) -> Inexact[Tensor, "n n"]:
        """Return log(V)."""
        return log_orthogonal(matrix)

    def contains(self, matrix: Inexact[Tensor, "n n"]) -> bool:
        """Whether V is orthogonal with determinant 1, or unitary."""
        return is_orthogonal(matrix) and (self.field == "complex" or bool(torch.linalg.det(matrix.double()) > 0))
