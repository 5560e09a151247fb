"""HiPPO-LegS, the matrix that remembers a function by Legendre polynomials, in coordinates where it is nearly diagonal.

    A_kj = -sqrt((2k+1)(2j+1)) for k > j, -(k+1) for k = j, 0 above;   B_k = sqrt(2k+1);   P_k = sqrt(k + 1/2)

A + P P^T = -1/2 I + (skew) is normal, so that in its unitary eigenvectors V the matrix is diag(Lambda) - (V* P)(V* P)*.
Eigenvalues come in conjugate pairs, of which one of each is kept.
"""

from __future__ import annotations

import torch
from jaxtyping import Complex, Float
from torch import Tensor

__all__ = ["legs", "legs_matrix"]


def legs_matrix(order: int) -> tuple[Float[Tensor, "N N"], Float[Tensor, " N"], Float[Tensor, " N"]]:
    """Return A, B and P in float64."""
    k = torch.arange(order, dtype=torch.float64)
    b = torch.sqrt(2 * k + 1)
    return -torch.tril(b[:, None] * b, -1) - torch.diag(k + 1), b, torch.sqrt(k + 0.5)


def legs(order: int) -> tuple[Complex[Tensor, " modes"], Complex[Tensor, " modes"], Complex[Tensor, " modes"]]:
    """Return Lambda, V* P and V* B of the eigenvalues with positive imaginary part, the lowest frequency first."""
    a, b, p = legs_matrix(order)
    normal = a + p[:, None] * p
    skew = (normal - normal.mT) / 2
    frequencies, vectors = torch.linalg.eigh(-1j * skew.to(torch.complex128))
    upper, adjoint = frequencies[order // 2 :], vectors[:, order // 2 :].mH
    rates = torch.complex(torch.full_like(upper, -0.5), upper)
    return rates, adjoint @ p.to(torch.complex128), adjoint @ b.to(torch.complex128)
