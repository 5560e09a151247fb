"""cp: a canonical decomposition as a classifier, the shallow rival of the tensor train."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn

from mnemoscope.core.ring import Ring
from mnemoscope.nn.registry import network
from mnemoscope.nn.tensor_classifier import TensorClassifier, normalised

__all__ = ["CP"]

# exp(-E ln |z|) of a standard normal z: E ln |z| = -(Euler's constant + ln 2) / 2.
_LOG_NEUTRAL = math.exp((0.5772156649015329 + math.log(2)) / 2)


@network(
    "cp",
    family="tensor",
    equations=("score_y(x_1 .. x_d) = sum_a W_O[y, a] prod_k <v_{k,a}, f(x_k)>",),
    state="",
    references=("cohen2016", "khrulkov2018"),
    notes=(
        "factors (d x n x r) holds the v_{k,a}, weight_out (C x r) the weights of the products.",
        "Products are taken with the power of two kept apart: no length overflows or underflows.",
        "The factors start so that the logarithm of a product has the mean zero, whatever the length.",
    ),
)
class CP(TensorClassifier):
    """A canonical decomposition: its score is a weighted sum of r products over the d vectors."""

    def __init__(
        self,
        features: int,
        rank: int,
        length: int,
        classes: int,
        feature_map: nn.Module | dict[str, Any] | None = None,
        *,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
        generator: torch.Generator | None = None,
    ) -> None:
        factory: dict[str, Any] = {"device": device, "dtype": dtype, "generator": generator}
        super().__init__(features, rank, length, classes, feature_map=feature_map, **factory)

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Return the shapes of the factors and of the weights of the products."""
        return {"factors": (self.length, self.features, self.rank), "weight_out": (self.classes, self.rank)}

    def deviation(self, name: str) -> float:
        """Return what makes the mean of ln |<v, f>| zero, and 1/sqrt(r) for the weights of the products."""
        return _LOG_NEUTRAL / math.sqrt(self._mean_square()) if name == "factors" else 1 / math.sqrt(self.rank)

    def contract(
        self, f: Float[Tensor, "batch length features"]
    ) -> tuple[Float[Tensor, "batch classes"], Float[Tensor, "batch 1"]]:
        """Multiply halves, halves of these and so on, each product normalised by itself."""
        parts, exponent = _normalised_each(f.transpose(0, 1) @ self.factors)
        while len(parts) > 1:
            for _ in range(3):  # products of up to eight numbers of [1, 2) are below 2^8: within every type's range
                parts = _halved(parts)
            parts, more = _normalised_each(parts)
            exponent = exponent + more
        lowest = exponent.new_tensor(-math.inf)
        largest = torch.where(parts[0] != 0, exponent, lowest).amax(dim=-1, keepdim=True)
        largest = torch.where(largest > lowest, largest, 0.0)
        terms = parts[0] * torch.exp2(exponent - largest).to(parts.dtype)
        return terms @ self.weight_out.mT, largest

    def evaluate(self, ring: Ring, weights: dict[str, np.ndarray], features: np.ndarray) -> np.ndarray:
        """Return the scores, (batch, classes), of features (batch, length, n), all in a ring."""
        self._check_features(features)
        product = ring.ones((len(features), self.rank))
        for k, factor in enumerate(weights["factors"]):
            product = ring.mul(product, ring.matmul(features[:, k], factor))
        return ring.matmul(product, weights["weight_out"].T)

    factors: Tensor
    weight_out: Tensor


def _normalised_each(
    parts: Float[Tensor, "length batch rank"],
) -> tuple[Float[Tensor, "length batch rank"], Float[Tensor, "batch rank"]]:
    """Normalise every number by itself, and add up the exponents of those that are to be multiplied."""
    scaled, exponent = normalised(parts.unsqueeze(-1))
    return scaled.squeeze(-1), exponent.squeeze(-1).sum(0)


def _halved(parts: Float[Tensor, "length batch rank"]) -> Float[Tensor, "half batch rank"]:
    """Multiply the first half with the second; of an odd number the last stays as it is."""
    half = len(parts) // 2
    product = parts[:half] * parts[half : 2 * half]
    return torch.cat([product, parts[2 * half :]]) if len(parts) % 2 else product
