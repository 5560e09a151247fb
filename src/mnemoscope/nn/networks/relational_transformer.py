"""relational-transformer: one layer of self-attention over the panels, averaged."""

from __future__ import annotations

import math
from typing import Any, ClassVar, Unpack

import torch
from jaxtyping import Float
from torch import Tensor, nn

from mnemoscope.core.errors import expected
from mnemoscope.nn.declared import Layer
from mnemoscope.nn.networks.corelnet import attend
from mnemoscope.nn.registry import network
from mnemoscope.nn.relational import FEATURES, Relational, RelationalOptions, mlp

__all__ = ["RelationalTransformer", "sinusoids"]

_HEADS, _INNER = 8, 512


@network(
    "relational-transformer",
    family="relational",
    equations=(
        "x = z + p; u = norm(x + attention(x)); v = norm(norm(u + FFN(u)))",
        "y = MLP(mean of v over panels)",
    ),
    state="0",
    references=("vaswani2017", "kerg2022"),
)
class RelationalTransformer(Relational):
    """A transformer encoder of one layer over the panels: 8 heads, 512 units in between, sinusoidal positions.

    Parameters
    ----------
    symmetric
        Whether keys are queries, so that the attention's scores are (Q x_i)^T (Q x_j).
    """

    has_relations: ClassVar[bool] = True

    def __init__(
        self, panels: int, answers: int, *, symmetric: bool = False, **common: Unpack[RelationalOptions]
    ) -> None:
        if not isinstance(symmetric, bool):
            raise expected("symmetric", "true or false", symmetric)
        self.symmetric = symmetric
        super().__init__(panels, answers, **common)

    def declare(self, layer: Layer) -> None:
        """Add the layer and the MLP."""
        super().declare(layer)
        for name in ("queries", "values", "project") if self.symmetric else ("queries", "keys", "values", "project"):
            self.submodule(name, nn.Linear(FEATURES, FEATURES), full_name=name)
        self.submodule("feedforward", mlp(FEATURES, _INNER, FEATURES), full_name="feedforward")
        for name in ("norm_attention", "norm_feedforward", "norm"):
            self.submodule(name, nn.LayerNorm(FEATURES), full_name=name)
        self.submodule("decoder", mlp(FEATURES, 256, self.answers), full_name="decoder")

    def _attention(self, z: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return inputs with positions, what attention makes of them, and where it looked."""
        part: Any = self
        x = (z + sinusoids(*z.shape[::2]).to(z)[:, None]).transpose(0, 1)
        keys = part.queries if self.symmetric else part.keys
        found, where = attend(part.queries(x), keys(x), part.values(x), _HEADS)
        return x, part.project(found), where

    def reason(self, z: Float[Tensor, "panels batch features"]) -> Float[Tensor, "batch answers"]:
        """Return the MLP's scores of the mean over panels."""
        part: Any = self
        x, found, _ = self._attention(z)
        u = part.norm_attention(x + found)
        u = part.norm(part.norm_feedforward(u + part.feedforward(u)))
        scores: Tensor = part.decoder(u.mean(1))
        return scores

    def relations(self, z: Float[Tensor, "panels batch features"]) -> Float[Tensor, "batch panels panels"]:
        """Return where each panel looks, in the mean over heads."""
        return self._attention(z)[2].mean(1)


def sinusoids(steps: int, features: int) -> Float[Tensor, "steps features"]:
    """Return positions as sines and cosines in turn: sin(t / 10000^(2i/n)), cos(t / 10000^(2i/n)).

    Examples
    --------
    >>> sinusoids(3, 4)[0].tolist()
    [0.0, 1.0, 0.0, 1.0]
    """
    rates = torch.exp(-math.log(10_000) * torch.arange(0, features, 2, dtype=torch.float64, device="cpu") / features)
    angles = torch.arange(steps, device="cpu").unsqueeze(1) * rates
    return torch.stack([angles.sin(), angles.cos()], -1).flatten(1)
