"""Moduli of eigenvalues, with what rounding may have done to them."""

from __future__ import annotations

import numpy as np
import scipy.linalg
from jaxtyping import Float

__all__ = ["log_moduli"]


def log_moduli(matrix: Float[np.ndarray, "n n"]) -> tuple[Float[np.ndarray, " n"], Float[np.ndarray, " n"]]:
    """Return ln |eigenvalues|, the largest first, and a bound of the rounding error of each.

    The error of a simple eigenvalue is the rounding error of the matrix over |y^H x|, its left and right unit
    eigenvectors; of a multiple one without enough eigenvectors it has no bound in these terms, and is stated as
    infinite. A triangular matrix shows its eigenvalues on its diagonal, without error.
    """
    if not np.tril(matrix, -1).any() or not np.triu(matrix, 1).any():
        values, errors = np.diagonal(matrix), np.zeros(len(matrix))
    else:
        values, left, right = scipy.linalg.eig(matrix, left=True, right=True)
        with np.errstate(divide="ignore"):
            errors = np.finfo(float).eps * np.linalg.norm(matrix) / np.abs(np.sum(left.conj() * right, axis=0))
    moduli = np.abs(values)
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.log(moduli)
        relative = np.where(errors == 0, 0.0, errors / moduli)
    order = np.argsort(-logs, kind="stable")
    return logs[order], relative[order]
