"""Feature maps: what turns each vector of a sequence into the features that a tensor classifier contracts."""

from __future__ import annotations

import inspect
import math
from abc import ABC, abstractmethod
from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from mnemoscope.core.errors import choice, expected, positive_int

__all__ = ["FEATURE_MAPS", "AffineReLU", "FeatureMap", "Powers", "RandomFeatures", "feature_map_from"]

FEATURE_MAPS: dict[str, type[FeatureMap]] = {}
"""The feature maps by name."""


class FeatureMap(nn.Module, ABC):
    """A map of vectors, the same at every position: ``(.., input_size) -> (.., features)``.

    Attributes
    ----------
    mean_square
        E|f(x)|^2 at the start for inputs of the size that the map is meant for; classifiers draw their weights by it.
    """

    name: ClassVar[str]
    input_size: int
    features: int
    mean_square: float

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        FEATURE_MAPS[cls.name] = cls

    @property
    @abstractmethod
    def options(self) -> dict[str, Any]:
        """The arguments that build this map again, but for its random numbers."""

    def description(self) -> dict[str, Any]:
        """Return name and options in plain words, from which `feature_map_from` builds it."""
        return {"name": self.name, **self.options}

    def reset_parameters(self, generator: torch.Generator | None = None) -> None:
        """Draw what is drawn anew; nothing for a map without parameters."""

    def extra_repr(self) -> str:
        """The arguments."""
        return ", ".join(f"{name}={value!r}" for name, value in self.options.items())


class AffineReLU(FeatureMap):
    """``relu(W x + b)``, learned. b starts as ones, so that a zero vector does not make all products zero.

    Parameters
    ----------
    input_size
        Numbers per vector.
    features
        Numbers per vector after the map.
    generator
        Draws W; by default torch's global generator.
    """

    name = "affine-relu"

    def __init__(self, input_size: int, features: int, *, generator: torch.Generator | None = None) -> None:
        super().__init__()
        self.input_size, self.features = positive_int("input_size", input_size), positive_int("features", features)
        self.weight = nn.Parameter(torch.empty(self.features, self.input_size))
        self.bias = nn.Parameter(torch.empty(self.features))
        # relu(1 + z)^2 of a standard normal z has the mean 2 Phi(1) + phi(1).
        self.mean_square = self.features * (1 + math.erf(math.sqrt(0.5)) + math.exp(-0.5) / math.sqrt(2 * math.pi))
        self.reset_parameters(generator)

    @torch.no_grad()
    def reset_parameters(self, generator: torch.Generator | None = None) -> None:
        """Draw W from U(-sqrt(3/d), sqrt(3/d)) and set b to ones."""
        bound = math.sqrt(3 / self.input_size)
        nn.init.uniform_(self.weight, -bound, bound, generator=generator)
        nn.init.ones_(self.bias)

    @property
    def options(self) -> dict[str, Any]:
        """Sizes."""
        return {"input_size": self.input_size, "features": self.features}

    def forward(self, x: Float[Tensor, "*axes input"]) -> Float[Tensor, "*axes features"]:
        """Return the features."""
        return F.relu(F.linear(x, self.weight, self.bias))


class Powers(FeatureMap):
    """1 and the powers ``x_i, x_i^2, .., x_i^degree`` of every entry, for entries in [-1, 1].

    Parameters
    ----------
    input_size
        Numbers per vector; there are 1 + input_size * degree features.
    degree
        The highest power.
    """

    name = "polynomial"

    def __init__(self, input_size: int, degree: int) -> None:
        super().__init__()
        self.input_size, self.degree = positive_int("input_size", input_size), positive_int("degree", degree)
        self.features = 1 + self.input_size * self.degree
        self.mean_square = 1 + self.input_size * sum(1 / (2 * k + 1) for k in range(1, self.degree + 1))

    @property
    def options(self) -> dict[str, Any]:
        """Size and degree."""
        return {"input_size": self.input_size, "degree": self.degree}

    def forward(self, x: Float[Tensor, "*axes input"]) -> Float[Tensor, "*axes features"]:
        """Return the features: 1, first powers, second powers, ..."""
        powers = [torch.ones_like(x[..., :1])]
        power = x
        for _ in range(self.degree):
            powers.append(power)
            power = power * x
        return torch.cat(powers, dim=-1)


class RandomFeatures(FeatureMap):
    """Random Fourier features ``sqrt(2/n) cos(W x + b)``, drawn once and never learned.

    Their dot products estimate the Gaussian kernel ``exp(-|x - y|^2 / (2 bandwidth^2))``.

    Parameters
    ----------
    input_size
        Numbers per vector.
    features
        Numbers per vector after the map, n.
    bandwidth
        Of the Gaussian kernel.
    generator
        Draws W and b; by default torch's global generator.
    """

    name = "random"
    weight: Tensor
    bias: Tensor

    def __init__(
        self, input_size: int, features: int, *, bandwidth: float = 1.0, generator: torch.Generator | None = None
    ) -> None:
        super().__init__()
        self.input_size, self.features = positive_int("input_size", input_size), positive_int("features", features)
        if isinstance(bandwidth, bool) or not isinstance(bandwidth, int | float) or not 0 < bandwidth < math.inf:
            raise expected("bandwidth", "a positive number", bandwidth)
        self.bandwidth, self.mean_square = float(bandwidth), 1.0
        self.register_buffer("weight", torch.empty(self.features, self.input_size))
        self.register_buffer("bias", torch.empty(self.features))
        self.reset_parameters(generator)

    @torch.no_grad()
    def reset_parameters(self, generator: torch.Generator | None = None) -> None:
        """Draw W from N(0, 1/bandwidth^2) and b from U(0, 2 pi)."""
        nn.init.normal_(self.weight, 0.0, 1 / self.bandwidth, generator=generator)
        nn.init.uniform_(self.bias, 0.0, 2 * math.pi, generator=generator)

    @property
    def options(self) -> dict[str, Any]:
        """Sizes and bandwidth."""
        return {"input_size": self.input_size, "features": self.features, "bandwidth": self.bandwidth}

    def forward(self, x: Float[Tensor, "*axes input"]) -> Float[Tensor, "*axes features"]:
        """Return the features."""
        return math.sqrt(2 / self.features) * torch.cos(F.linear(x, self.weight, self.bias))


def feature_map_from(given: Any, generator: torch.Generator | None = None) -> nn.Module | None:
    """Return a feature map: a module as it is, or what ``{"name": "affine-relu", "input_size": 4, ..}`` describes."""
    if given is None or isinstance(given, nn.Module):
        return given
    if not isinstance(given, dict) or "name" not in given:
        raise expected("feature_map", 'a torch module, None, or {"name": .., "input_size": .., ..}', given)
    cls: Any = FEATURE_MAPS[choice("the name of feature_map", given["name"], FEATURE_MAPS)]
    options = {name: value for name, value in given.items() if name != "name"}
    options |= {"generator": generator} if "generator" in inspect.signature(cls).parameters else {}
    try:
        built: nn.Module = cls(**options)
    except TypeError as error:
        raise expected("feature_map", f"described by the arguments of {cls.__name__} ({error})", given) from None
    return built
