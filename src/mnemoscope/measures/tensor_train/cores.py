"""Tensor trains in exact arithmetic: cores checked, rounded, and reduced for the rank of a matricisation."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from itertools import pairwise
from math import prod
from typing import Any

import numpy as np
from torch import nn

from mnemoscope.core.arrays import non_negative
from mnemoscope.core.errors import Description, UserError, expected
from mnemoscope.core.memory import require
from mnemoscope.core.ring import PRIMES, Prime, checked
from mnemoscope.nn.networks.tt import TT

__all__ = ["tt_ranks"]

Cores = list[np.ndarray]
"""Of shapes (1, n_1, r_1), (r_1, n_2, r_2), .., (r_{d-1}, n_d, 1)."""

_BYTES = 64  # of an entry while it is eliminated: a residue, a Python integer on the way to flint, flint's own copy


def checked_cores(cores: Any, label: int = 0) -> Cores:
    """Return TT-cores, or those of one class of a TT network, each with three axes and chained.

    Parameters
    ----------
    cores
        First (n, r), inner (r, n, r), last (r, n), as arrays, tensors or lists; or a network `mnemoscope.nn.TT`.
    label
        The class whose tensor is taken from a network.
    """
    if isinstance(cores, nn.ParameterList):
        cores = list(cores)
    if isinstance(cores, nn.Module):
        if not isinstance(cores, TT):
            raise expected("cores", "a list of TT-cores or a TT network", Description(f"a {type(cores).__name__}"))
        cores = cores.tensor_cores(label)
    if not isinstance(cores, Sequence) or len(cores) < 2:
        raise expected("cores", "a list of at least two TT-cores", Description(_described(cores)))
    found = [_three_axes(core, k, len(cores)) for k, core in enumerate(cores)]
    for k, (left, right) in enumerate(pairwise(found), start=1):
        if left.shape[2] != right.shape[0]:
            raise UserError(
                f"cores must chain: core {k} ends in rank {left.shape[2]}, core {k + 1} has {right.shape[0]}"
            )
    return found


def entries(cores: Any) -> float:
    """Return how many entries the tensor of these cores has: an estimate, which nothing else depends on."""
    first, *inner = cores
    return float(len(first) * math.prod(core.shape[-2 if core.ndim == 3 else -1] for core in inner))


def bond_ceilings(shapes: Sequence[tuple[int, ...]]) -> list[int]:
    """Return what no TT-rank of cores of these shapes exceeds, bond by bond, the ends (1) included."""
    bonds = [1]
    for _, n, right in shapes:
        bonds.append(min(right, bonds[-1] * n))
    for k in range(len(shapes) - 1, 0, -1):
        bonds[k] = min(bonds[k], bonds[k + 1] * shapes[k][1])
    return bonds


def rank_ceiling(cores: Cores, rows: Collection[int]) -> int:
    """Return what no matricisation of tensors with cores of these shapes exceeds.

    Neighbours on the same side count as one mode; a mode is no larger than its two bonds together, and the rank no
    larger than the product of the bonds at which the side changes.
    """
    shapes = [core.shape for core in cores]
    bonds = bond_ceilings(shapes)
    changes = [0, *[k for k in range(1, len(cores)) if (k in rows) != (k - 1 in rows)], len(cores)]
    modes = {True: 1, False: 1}
    for start, end in pairwise(changes):
        size = prod(shapes[k][1] for k in range(start, end))
        modes[start in rows] *= min(size, bonds[start] * bonds[end])
    return min(modes[True], modes[False], prod(bonds[k] for k in changes[1:-1]))


def exact_tt_ranks(cores: Cores) -> tuple[int, ...]:
    """Return the exact ranks of all unfoldings, positions 1..k by k+1..d: the largest that two primes give."""
    first, second = (_bonds(Prime(p), cores) for p in PRIMES[:2])
    return tuple(max(pair) for pair in zip(first, second, strict=True))


def tt_ranks(cores: Any, tolerance: float = 1e-10, label: int = 0) -> tuple[int, ...]:
    """Return the TT-ranks that TT-SVD finds in float64.

    Parameters
    ----------
    cores
        TT-cores, or a TT network.
    tolerance
        The error allowed, as a share of the tensor's norm: each of the d-1 truncations takes its part.
    label
        The class of a network.

    Examples
    --------
    >>> import mnemoscope.theory.formulas.tensor_train as theory
    >>> tt_ranks(theory.attaining_cores(features=2, rank=4, length=6))
    (2, 1, 2, 1, 2)
    """
    allowed = non_negative("tolerance", tolerance)
    found = [core.astype(np.float64) for core in checked_cores(cores, label)]
    for k in range(len(found) - 1, 0, -1):  # from the right, so that each SVD sees the whole tensor's singular values
        left, n, right = found[k].shape
        q, upper = np.linalg.qr(_unit(found[k]).reshape(left, n * right).T)
        found[k] = q.T.reshape(-1, n, right)
        found[k - 1] = found[k - 1] @ upper.T
    carried, ranks = _unit(found[0]), []
    for core in found[1:]:
        values, basis = np.linalg.svd(carried.reshape(-1, carried.shape[2]), full_matrices=False)[1:]
        if not values.any():
            return (0,) * (len(found) - 1)
        tails = np.sqrt(np.cumsum(values[::-1] ** 2))[::-1]
        cut = max(allowed / np.sqrt(len(found) - 1), np.finfo(np.float64).eps * len(values)) * tails[0]
        rank = int((tails > cut).sum())
        ranks.append(rank)
        carried = np.tensordot(values[:rank, None] * basis[:rank], core, axes=1)
    return tuple(ranks)


def matricisation_rank(field: Prime, cores: Cores, rows: Collection[int]) -> int:
    """Return the rank modulo a prime of the tensor as a matrix, the positions `rows` (from 0) by all others.

    Rounding leaves the smallest bonds. Then each mode keeps its independent entries, neighbours on the same side
    become one mode, and where a bond is 1 the matrix is a Kronecker product, whose factors' ranks multiply. What
    remains is eliminated.
    """
    rounded = _rounded(field, [field.array(core) for core in cores])
    if rounded is None:
        return 0
    return prod(_segment_rank(field, segment) for segment in _segments(_groups(field, rounded, rows)))


def _bonds(field: Prime, cores: Cores) -> list[int]:
    rounded = _rounded(field, [field.array(core) for core in cores])
    return [0] * (len(cores) - 1) if rounded is None else [core.shape[2] for core in rounded[:-1]]


def _rounded(field: Prime, cores: Cores) -> Cores | None:
    """Return cores of the same tensor with its TT-ranks as bonds; None for the zero tensor."""
    found = list(cores)
    last = len(found) - 1
    # Left to right each unfolding keeps its pivot columns, and its echelon form goes on to the next core: left parts
    # are then independent. Right to left the same makes right parts independent, and bonds are the ranks.
    for k in range(last):
        left, n, right = found[k].shape
        flat = found[k].reshape(left * n, right)
        pivots, echelon = _echelon(field, flat)  # flat = flat[:, pivots] echelon
        found[k] = flat[:, pivots].reshape(left, n, len(pivots))
        found[k + 1] = _contract(field, echelon, found[k + 1])
        if not len(pivots):
            return None
    for k in range(last, 0, -1):
        left, n, right = found[k].shape
        pivots, echelon = _echelon(field, found[k].reshape(left, n * right).T)
        found[k] = found[k][pivots]
        found[k - 1] = field.matmul(found[k - 1], echelon.T)
        if not len(pivots):
            return None
    return found


def _contract(field: Prime, matrix: np.ndarray, core: np.ndarray) -> np.ndarray:
    return field.matmul(matrix, core.reshape(len(core), -1)).reshape(-1, *core.shape[1:])


def _echelon(field: Prime, matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the pivot columns and the non-zero rows of the reduced row echelon form."""
    import flint

    height, width = matrix.shape
    reduced, rank = flint.nmod_mat(height, width, matrix.ravel().tolist(), field.p).rref()
    entries = np.frompyfunc(int, 1, 1)(np.array(reduced.entries(), dtype=object))
    rows = entries.astype(np.uint64).reshape(matrix.shape)[:rank]
    return np.argmax(rows != 0, axis=1), rows


def _groups(field: Prime, cores: Cores, rows: Collection[int]) -> list[tuple[bool, np.ndarray]]:
    """Return the modes, neighbours on one side joined, each with its independent entries only, and their sides."""
    found: list[tuple[bool, np.ndarray]] = []
    for k, core in enumerate(cores):
        side = k in rows
        if found and found[-1][0] == side:
            before = found.pop()[1]
            joined = field.matmul(before.reshape(-1, before.shape[2]), core.reshape(len(core), -1))
            core = joined.reshape(len(before), -1, core.shape[2])
        # Entries of a mode that are combinations of others add no rows or columns to the rank.
        independent, _ = _echelon(field, np.moveaxis(core, 1, 2).reshape(-1, core.shape[1]))
        found.append((side, core[:, independent]))
    return found


def _segments(groups: list[tuple[bool, np.ndarray]]) -> list[list[tuple[bool, np.ndarray]]]:
    found: list[list[tuple[bool, np.ndarray]]] = [[]]
    for group in groups:
        # At a bond of 1 the tensor is an outer product, and the matrix a Kronecker product.
        if group[1].shape[0] == 1 and found[-1]:
            found.append([])
        found[-1].append(group)
    return found


def _segment_rank(field: Prime, segment: list[tuple[bool, np.ndarray]]) -> int:
    """Return the rank of one Kronecker factor: 1 for one mode, the bond for two, else by elimination."""
    if len(segment) < 3:
        return int(segment[0][1].shape[2])
    sizes = [prod(core.shape[1] for side, core in segment if side is which) for which in (True, False)]
    fits = f"a tensor of which about {len(segment) - 2} modes change sides, or smaller modes, might fit"
    require(f"the rank of a {sizes[0]} x {sizes[1]} matricisation", _BYTES * prod(sizes), fits)
    grid = field.ones((1, 1, 1))  # rows, columns, bond
    for side, core in segment:
        left, n, right = core.shape
        rows, columns, _ = grid.shape
        product = field.matmul(grid.reshape(-1, left), core.reshape(left, n * right)).reshape(rows, columns, n, right)
        grid = (product.swapaxes(1, 2) if side else product).reshape(
            rows * (n if side else 1), columns * (1 if side else n), right
        )
    return field.rank(np.ascontiguousarray(grid[:, :, 0]))


def _unit(array: np.ndarray) -> np.ndarray:
    largest = np.abs(array).max()
    return array / largest if largest > 0 else array


def _three_axes(core: Any, k: int, length: int) -> np.ndarray:
    what = "(n, r)" if k == 0 else "(r, n)" if k == length - 1 else "(r, n, r)"
    try:
        found = checked(core)
    except ValueError as error:
        raise UserError(f"core {k + 1}: {error}") from None
    if found.ndim == 2 and k in (0, length - 1):
        found = found[None] if k == 0 else found[:, :, None]
    ends = (k == 0 and found.shape[0] != 1) or (k == length - 1 and found.shape[-1] != 1) if found.ndim == 3 else True
    if ends or 0 in found.shape:
        raise expected(f"core {k + 1}", f"of shape {what}, no size zero", np.shape(core))
    return found


def _described(cores: Any) -> str:
    return f"a list of {len(cores)}" if isinstance(cores, Sequence) else f"a {type(cores).__name__}"
