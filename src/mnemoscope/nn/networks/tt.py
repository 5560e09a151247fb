"""tt: a tensor train as a classifier."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn

from mnemoscope.core.errors import UserError, choice
from mnemoscope.core.ring import Ring
from mnemoscope.nn.polynomial import TENSORS, bilinear
from mnemoscope.nn.registry import network
from mnemoscope.nn.tensor_classifier import TensorClassifier, normalised

__all__ = ["TT"]


@network(
    "tt",
    family="tensor",
    equations=(
        "score_y(x_1 .. x_d) = sum over i_1 .. i_d of W_y[i_1 .. i_d] f(x_1)_{i_1} .. f(x_d)_{i_d}",
        "W_y[i_1 .. i_d] = G_1[i_1, :] G_2[:, i_2, :] .. G_d[:, i_d, y], a product of matrices",
    ),
    state="",
    references=("khrulkov2018", "alkin2024", "oseledets2011"),
    notes=(
        "The cores are first (n x r), inner (d-2 x r x n x r; 1 x r x n x r where equal) and last (r x n x C).",
        "It is contracted from left to right with the power of two kept apart: no length overflows or underflows.",
        "The cores start so that the size of the product neither grows nor shrinks on average, whatever the length.",
    ),
)
class TT(TensorClassifier):
    """A tensor train: its score is the contraction of TT-cores with the features of d vectors.

    Parameters
    ----------
    length
        d, the number of vectors of an example, at least 2.
    cores
        ``"different"``: each position has its own core; ``"equal"``: the inner positions share one.
    """

    least_length: ClassVar[int] = 2

    def __init__(
        self,
        features: int,
        rank: int,
        length: int,
        classes: int,
        cores: str = "different",
        feature_map: nn.Module | dict[str, Any] | None = None,
        *,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
        generator: torch.Generator | None = None,
    ) -> None:
        self.cores = choice("cores", cores, ("different", "equal"))
        factory: dict[str, Any] = {"device": device, "dtype": dtype, "generator": generator}
        super().__init__(features, rank, length, classes, feature_map=feature_map, **factory)

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Return the shapes of the first, the inner and the last cores."""
        n, r, inner = self.features, self.rank, self.length - 2
        inner = min(inner, 1) if self.cores == "equal" else inner
        return {"first": (n, r), "inner": (inner, r, n, r), "last": (r, n, self.classes)}

    def deviation(self, name: str) -> float:
        """Return 1/sqrt(r E|f|^2), r the rank on the left, times what keeps the mean logarithm of |v| where it is."""
        left, right = (1 if name == "first" else self.rank), (self.classes if name == "last" else self.rank)
        half = torch.tensor(right / 2, dtype=torch.float64, device="cpu")  # read here, wherever the cores are
        drift = 0.5 * (float(torch.digamma(half)) - math.log(right / 2))
        return math.exp(-drift) / math.sqrt(left * self._mean_square())

    def contract(
        self, f: Float[Tensor, "batch length features"]
    ) -> tuple[Float[Tensor, "batch classes"], Float[Tensor, "batch 1"]]:
        """Contract from left to right, normalising after each core."""
        first, *rest = f.unbind(1)
        v, exponent = normalised(first @ self.first)
        for core, features in zip(self._rest(self.inner, self.last), rest, strict=True):
            v, more = normalised(bilinear(TENSORS, core, v, features))
            exponent = exponent + more
        return v, exponent

    def evaluate(self, ring: Ring, weights: dict[str, np.ndarray], features: np.ndarray) -> np.ndarray:
        """Return the scores, (batch, classes), of features (batch, length, n), all in a ring."""
        self._check_features(features)
        v = ring.matmul(features[:, 0], weights["first"])
        for k, core in enumerate(self._rest(weights["inner"], weights["last"]), start=1):
            v = bilinear(ring, core, v, features[:, k])
        return np.asarray(v)

    def tensor_cores(self, label: int = 0) -> list[Tensor]:
        """Return the cores of the tensor of one class: first (n, r), inner (r, n, r), last (r, n)."""
        if not 0 <= label < self.classes:
            raise UserError(f"label must be a whole number from 0 to {self.classes - 1}, got {label!r}")
        *inner, last = self._rest(self.inner, self.last)
        return [tensor.detach() for tensor in (self.first, *inner, last[:, :, label])]

    def _rest(self, inner: Any, last: Any) -> list[Any]:
        """Return the cores of positions 2 to d."""
        cores = list(inner)  # not one index at a time, whose gradients would each be as large as all cores
        return [*(cores * (self.length - 2) if self.cores == "equal" else cores), last]

    def extra_repr(self) -> str:
        """Sizes, and what is not at its default."""
        return super().extra_repr() + (', cores="equal"' if self.cores == "equal" else "")

    first: Tensor
    inner: Tensor
    last: Tensor
