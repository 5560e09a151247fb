"""CP-rank of a tensor train between a proved lower and a fitted upper bound: the width of a shallow network."""

from __future__ import annotations

from functools import reduce
from math import prod
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from jaxtyping import Float, Int64

from mnemoscope.core.arrays import positive
from mnemoscope.core.errors import UserError, positive_int
from mnemoscope.core.memory import require
from mnemoscope.core.result import Result, result
from mnemoscope.measures.registry import Cost, measure
from mnemoscope.measures.tensor_train.cores import Cores, checked_cores, entries
from mnemoscope.measures.tensor_train.odd_even import best_partition, exact_matricisation_rank

if TYPE_CHECKING:
    from mnemoscope.report import chart

__all__ = ["CPRank", "cp_rank"]

Tensor = Float[np.ndarray, "..."]
Factors = list[np.ndarray]
"""One matrix (n_k, terms) for each position."""

_RIDGE = 1e-12  # of the largest eigenvalue: keeps the normal equations solvable where factors become parallel


@result
class CPRank(Result):
    """The interval that holds the CP-rank of a tensor, the width of the smallest shallow network with it.

    Attributes
    ----------
    lower
        The largest exact rank of a matricisation: proved.
    fitted
        The smallest number of terms with which alternating least squares met the tolerance; None where none did. It is
        an upper bound up to that tolerance: the border rank of a tensor can be smaller than its rank.
    upper
        What the sizes of the cores prove.
    rows
        The positions, from 0, of the rows of that matricisation.
    terms
        Numbers of terms that were fitted.
    errors
        The smallest relative error found with each.
    tolerance
        The relative error that counts as none.
    """

    measure: ClassVar[str] = "cp-rank"
    references: ClassVar[tuple[str, ...]] = ("alkin2024", "khrulkov2018")

    lower: int
    fitted: int | None
    upper: int
    rows: tuple[int, ...]
    terms: Int64[np.ndarray, " fits"]
    errors: Float[np.ndarray, " fits"]
    tolerance: float

    def __str__(self) -> str:
        fit = "no fit met the tolerance" if self.fitted is None else f"ALS needs {self.fitted}"
        return f"CP-rank between {self.lower} and {self.upper} (proved); {fit} at relative error {self.tolerance:.0e}"

    def plot(self) -> chart.Chart:
        """Draw the error of the fit by the number of terms."""
        from mnemoscope.report import chart

        floor = max(float(self.errors.min(initial=1.0)), 1e-16)
        return chart.lines(
            {
                "least squares": (self.terms, np.maximum(self.errors, 1e-16)),
                f"proved: at least {self.lower}": ([self.lower] * 2, [floor, 1.0]),
                f"tolerance {self.tolerance:.0e}": ([self.terms[0], self.terms[-1]], [self.tolerance] * 2),
            },
            x="width of the shallow network (terms)",
            y="relative error",
            title="CP-rank",
            log_y=True,
            points=True,
        )


_COST = Cost(
    time={"E K I R": 2e-9},
    memory="E",
    sizes={"E": lambda given: entries(given["cores"]), "K": "most", "I": "sweeps", "R": "restarts"},
    letters={"E": "entries of the tensor", "K": "terms", "I": "sweeps", "R": "restarts"},
)


@measure("cp-rank", kinds=("classifier",), matrices={"cores": "core"}, cost=_COST)
def cp_rank(
    cores: Any,
    label: int = 0,
    *,
    tolerance: float = 1e-6,
    sweeps: int = 300,
    restarts: int = 2,
    most: int = 64,
    seed: int = 0,
) -> CPRank:
    r"""Return bounds of the CP-rank of a tensor train.

    It is the least r with :math:`X = \sum_{a \le r} v_{1,a} \circ .. \circ v_{d,a}`: bounded below by the best
    matricisation, exactly; above by the sizes, and by alternating least squares with more and more terms from the lower
    bound on. The tensor is built: small d and n only.

    Parameters
    ----------
    cores
        TT-cores, or a TT network.
    label
        The class of a network.
    tolerance
        The relative error, in the Frobenius norm, that counts as none.
    sweeps
        Over all factors, at most, for each fit.
    restarts
        Fits from different starts for each number of terms.
    most
        Numbers of terms that are tried from the lower bound on.
    seed
        Draws the starts.

    Examples
    --------
    >>> from mnemoscope.theory.formulas.tensor_train import attaining_cores
    >>> found = cp_rank(attaining_cores(features=2, rank=3, length=4))
    >>> found.lower, found.fitted, found.upper
    (4, 4, 4)
    """
    found = checked_cores(cores, label)
    tolerance = positive("tolerance", tolerance)
    sweeps, restarts, most = (
        positive_int(name, value) for name, value in (("sweeps", sweeps), ("restarts", restarts), ("most", most))
    )
    tensor = _tensor(found)
    rows = best_partition(found)
    lower, _ = exact_matricisation_rank(found, rows)
    upper = max(lower, _ceiling(found)) if lower else 0
    terms, errors = [], []
    rng = np.random.default_rng(seed)
    factors: Factors | None = None
    for count in range(lower, min(upper, lower + most - 1) + 1):
        factors, error = _best_fit(tensor, count, tolerance, sweeps, restarts, rng, factors)
        terms.append(count)
        errors.append(error)
        if error <= tolerance:
            break
    return CPRank(
        status="bound",
        digits=None,
        assumptions=(
            "`fitted` is an upper bound up to the tolerance: the limit of tensors of lower rank is fitted too",
        ),
        cost="O(n^d R d) for each sweep, O(n^d) memory",
        lower=lower,
        fitted=terms[-1] if errors[-1] <= tolerance else None,
        upper=upper,
        rows=rows,
        terms=np.array(terms, dtype=np.int64),
        errors=np.array(errors),
        tolerance=tolerance,
    )


def cp_als(
    tensor: Tensor,
    terms: int,
    sweeps: int,
    tolerance: float,
    rng: np.random.Generator,
    start: Factors | None = None,
) -> tuple[Factors, float]:
    """Fit a sum of `terms` products by alternating least squares; return the factors and the relative error.

    Each factor in turn solves its normal equations, whose matrix is the entrywise product of the other factors' Gram
    matrices; columns are kept at length one but for those of the last factor. It starts from random factors, or from
    those of a smaller fit and random terms beside them.
    """
    d = tensor.ndim
    factors = [rng.standard_normal((n, terms)) for n in tensor.shape]
    for k, known in enumerate(start or []):
        factors[k][:, : known.shape[1]] = known
    norm = float(np.linalg.norm(tensor))
    unfolded = [np.moveaxis(tensor, k, 0).reshape(n, -1) for k, n in enumerate(tensor.shape)]
    error = 1.0
    for _ in range(sweeps):
        for k in range(d):
            others = [_columns_to_one(factors[j]) for j in range(d) if j != k]
            gram = reduce(np.multiply, [each.T @ each for each in others])
            gram = gram + _RIDGE * np.linalg.norm(gram, 2) * np.eye(terms)
            factors[k] = np.linalg.solve(gram, (unfolded[k] @ _khatri_rao(others)).T).T
        last = unfolded[-1] - factors[-1] @ _khatri_rao([_columns_to_one(f) for f in factors[:-1]]).T
        error, before = float(np.linalg.norm(last)) / norm, error
        if error <= tolerance or abs(before - error) <= 1e-9 * error:
            break
    return [*map(_columns_to_one, factors[:-1]), factors[-1]], error


def _best_fit(
    tensor: Tensor,
    terms: int,
    tolerance: float,
    sweeps: int,
    restarts: int,
    rng: np.random.Generator,
    smaller: Factors | None,
) -> tuple[Factors, float]:
    """Return the best of several fits; the first goes on from the smaller one, so that errors fall with the terms."""
    if terms == 0:
        return [np.zeros((n, 0)) for n in tensor.shape], 0.0
    best, least = cp_als(tensor, terms, sweeps, tolerance, rng, smaller)
    for _ in range(restarts - 1):
        if least <= tolerance:
            break
        found, error = cp_als(tensor, terms, sweeps, tolerance, rng)
        best, least = (found, error) if error < least else (best, least)
    return best, least


def _columns_to_one(factor: np.ndarray) -> np.ndarray:
    lengths = np.linalg.norm(factor, axis=0)
    return np.asarray(factor / np.where(lengths > 0, lengths, 1.0))


def _khatri_rao(factors: list[np.ndarray]) -> np.ndarray:
    """Return the matrix whose columns are the products of the factors' columns, the first factor slowest."""
    return reduce(lambda a, b: (a[:, None] * b[None]).reshape(-1, a.shape[1]), factors)


def _ceiling(cores: Cores) -> int:
    """Return the smaller of two decompositions that always exist: over all bonds, or over all modes but the largest.

    Bonds and modes count with their exact ranks, which may be smaller than the cores are wide.
    """
    bonds = [exact_matricisation_rank(cores, tuple(range(k)))[0] for k in range(1, len(cores))]
    modes = [exact_matricisation_rank(cores, (k,))[0] for k in range(len(cores))]
    return int(min(prod(bonds), prod(modes) // max(*modes, 1)))


def _tensor(cores: Cores) -> Tensor:
    sizes = [core.shape[1] for core in cores]
    require(f"a tensor of order {len(sizes)}", 8 * 4 * prod(sizes), "fewer or smaller cores would fit")
    found = np.ones((1, 1))
    for core in cores:
        found = np.tensordot(found, core.astype(np.float64), axes=1).reshape(-1, core.shape[2])
    tensor = found.reshape(sizes)
    largest = np.abs(tensor).max()
    if not np.isfinite(largest):
        raise UserError("cp_rank needs a tensor within the range of float64, and this one overflows")
    return tensor / largest if largest > 0 else tensor
