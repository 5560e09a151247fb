"""Classifiers over a fixed number of vectors, made of a decomposed tensor."""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import Any, ClassVar

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from mnemoscope.core.errors import Description, expected, positive_int
from mnemoscope.core.ring import Ring
from mnemoscope.nn.declared import Layer
from mnemoscope.nn.feature_maps import FeatureMap, feature_map_from
from mnemoscope.nn.initialisers import normal
from mnemoscope.nn.network import Network
from mnemoscope.nn.once import Once
from mnemoscope.nn.polynomial import exact_weights

__all__ = ["TensorClassifier", "normalised"]


class TensorClassifier(Once):
    """A classifier ``(batch, length, input_size) -> (batch, classes)`` made of a decomposed tensor.

    Parameters
    ----------
    features
        n, numbers per vector after the feature map.
    rank
        r, of the decomposition.
    length
        d, the number of vectors of an example.
    classes
        C, the number of scores.
    feature_map
        A module ``(.., input_size) -> (.., n)``, such as `AffineReLU`, `Powers` or `RandomFeatures`, or the description
        ``{"name": "affine-relu", "input_size": .., "features": ..}`` of one; by default the vectors are the features.
    device, dtype
        Of the parameters.
    generator
        Draws the initial parameters; by default torch's global generator.

    Attributes
    ----------
    counted_at
        The sizes at which parameters are counted in lists.
    """

    batch_first = True
    polynomial: ClassVar[bool] = True
    counted_at: ClassVar[dict[str, int]] = {"features": 10, "rank": 64, "length": 16, "classes": 10}
    usual: ClassVar[dict[str, int]] = {"features": 3, "rank": 3, "length": 4, "classes": 2}
    least_length: ClassVar[int] = 1

    def __init__(
        self,
        features: int,
        rank: int,
        length: int,
        classes: int,
        *,
        feature_map: nn.Module | dict[str, Any] | None = None,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
        generator: torch.Generator | None = None,
    ) -> None:
        Network.__init__(self)  # the tensors of the decomposition are drawn by sizes that only now are known
        for name, value in (("features", features), ("rank", rank), ("length", length), ("classes", classes)):
            setattr(self, name, positive_int(name, value))
        if self.length < self.least_length:
            raise expected("length", f"at least {self.least_length}", length)
        self._begin(device, dtype, generator)
        made = feature_map_from(feature_map, generator)
        width = getattr(made, "features", self.features)
        if width != self.features:
            raise expected("features", f"{width}, as feature_map gives", features)
        self.add_module("feature_map", made)
        self._declare_layer(Layer(input_shape=(self.input_size,)))
        for name in self.shapes():
            self._initialisers[name](self.get_parameter(name), generator)
        if made is not None:
            made.to(device=device, dtype=dtype)

    features: int
    rank: int
    length: int
    classes: int
    feature_map: nn.Module | None

    def declare(self, layer: Layer) -> None:
        """Create the tensors of the decomposition."""
        for name, shape in self.shapes().items():
            self.parameter(name, *shape, init=normal(self.deviation(name)))

    @abstractmethod
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Return the shapes of the parameters by name."""

    @abstractmethod
    def deviation(self, name: str) -> float:
        """Return the standard deviation that a parameter is drawn with."""

    @abstractmethod
    def contract(
        self, f: Float[Tensor, "batch length features"]
    ) -> tuple[Float[Tensor, "batch classes"], Float[Tensor, "batch 1"]]:
        """Return m and e with scores ``m * 2^e``; e is a whole number that no gradient passes through."""

    @abstractmethod
    def evaluate(self, ring: Ring, weights: dict[str, np.ndarray], features: np.ndarray) -> np.ndarray:
        """Return the scores, (batch, classes), of features (batch, length, n), all in a ring."""

    @property
    def input_size(self) -> int:  # type: ignore[override]
        """Numbers per vector of the input."""
        return int(getattr(self.feature_map, "input_size", self.features))

    @property
    def output_size(self) -> int:  # type: ignore[override]
        """C."""
        return self.classes

    def reset_parameters(self, generator: torch.Generator | None = None) -> None:
        """Draw all parameters anew, those of one of our feature maps too."""
        if isinstance(self.feature_map, FeatureMap):
            self.feature_map.reset_parameters(generator)
        super().reset_parameters(generator)

    def run(
        self, x: Float[Tensor, "length batch input"], lengths: Int[Tensor, " batch"] | None
    ) -> Float[Tensor, "batch classes"]:
        """Return the scores of vectors in order of time; all examples are as long as the network."""
        return self.forward(x.transpose(0, 1))

    def forward(self, input: Any, lengths: Any = None) -> Float[Tensor, "batch classes"]:
        """Return the scores.

        Where the size of an example's scores is beyond the number type (they are products of d factors), it is held at
        the end of the range: their ratios, and so the decision, stay right. `log_scores` has no such limit.
        """
        scores, exponent = self._scores(input)
        limits = torch.finfo(scores.dtype)
        # The lower end leaves room for the digits of scores that are smaller than the largest.
        low, high = math.log2(limits.tiny) - math.log2(limits.eps), math.frexp(limits.max)[1] - 1
        return scores * torch.exp2(exponent.clamp(low, high)).to(scores.dtype)

    def log_scores(
        self, input: Float[Tensor, "batch length input"]
    ) -> tuple[Float[Tensor, "batch classes"], Float[Tensor, " batch"]]:
        """Return m and s, the scores being ``m exp(s)``: the largest |m| of an example is between 1 and 2."""
        scores, exponent = self._scores(input)
        return scores, exponent.squeeze(1) * math.log(2)

    def _scores(self, input: Tensor) -> tuple[Tensor, Tensor]:
        self._check_input(input)
        f = input if self.feature_map is None else self.feature_map(input)
        if f.shape != (*input.shape[:2], self.features):
            raise expected("what feature_map gives", f"of shape (.., {self.features})", tuple(f.shape))
        scores, exponent = self.contract(f)
        scores, more = normalised(scores)
        return scores, exponent + more

    def exact_weights(self, ring: Ring) -> dict[str, np.ndarray]:
        """Return the weights by the names of the parameters, each float as the exact number that it is."""
        return exact_weights(self, ring)

    @property
    def options(self) -> dict[str, Any]:
        """The arguments that build this network again, but for device, dtype and generator."""
        own = self.feature_map
        return super().options | ({"feature_map": own.description()} if isinstance(own, FeatureMap) else {})

    def extra_repr(self) -> str:
        """Sizes."""
        return f"{self.features}, {self.rank}, length={self.length}, classes={self.classes}"

    def _check_input(self, input: Any) -> None:
        if not isinstance(input, Tensor):
            raise expected("input", "a tensor", Description(type(input).__name__))
        if input.dim() != 3:
            raise expected("input", f"of shape (batch, {self.length}, {self.input_size})", tuple(input.shape))
        if input.shape[1] != self.length:
            raise expected("a sequence", f"as long as the network, d = {self.length} vectors", input.shape[1])
        if input.shape[2] != self.input_size:
            raise expected("the last axis of input", f"input_size = {self.input_size}", input.shape[2])
        own = self._like
        if input.dtype != own.dtype and not torch.is_autocast_enabled(input.device.type):
            raise expected("input", f"of the parameters' type {own.dtype}", input.dtype)
        self.require_filled(input)

    def _check_features(self, features: np.ndarray) -> None:
        if features.ndim != 3 or features.shape[1:] != (self.length, self.features):
            raise expected("features", f"of shape (batch, {self.length}, {self.features})", features.shape)

    def _mean_square(self) -> float:
        """E|f|^2: what the feature map says, else that of entries of mean square 1."""
        return float(getattr(self.feature_map, "mean_square", self.features))


def normalised(v: Float[Tensor, "*axes n"]) -> tuple[Float[Tensor, "*axes n"], Float[Tensor, "*axes 1"]]:
    """Return v / 2^e and e, a whole number with 1 <= max |v| / 2^e < 2 along the last axis; e = 0 where v is zero.

    To divide by a power of two is exact, and since v is 2^e times what is returned for any e, no gradient needs to
    pass through e.
    """
    largest = v.detach().abs().amax(dim=-1, keepdim=True)
    wide = torch.promote_types(v.dtype, torch.float32)
    exponent = torch.where(largest > 0, torch.floor(torch.log2(largest.to(wide))), 0.0)
    exponent = exponent.clamp(min=math.log2(torch.finfo(v.dtype).tiny))
    return v * torch.exp2(-exponent).to(v.dtype), exponent
