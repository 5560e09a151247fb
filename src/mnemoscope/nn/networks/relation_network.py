"""relation-network: a learned function of every pair of panels, summed."""

from __future__ import annotations

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from mnemoscope.nn.declared import Layer
from mnemoscope.nn.registry import network
from mnemoscope.nn.relational import FEATURES, Relational, mlp

__all__ = ["RelationNetwork", "tagged"]


@network(
    "relation-network",
    family="relational",
    equations=("y = f(sum_{i,j} g([z_i, i], [z_j, j]))",),
    state="0",
    references=("santoro2017", "kerg2022"),
)
class RelationNetwork(Relational):
    """A relation network: g of all ordered pairs of panels, each with its index, and f of their sum."""

    def declare(self, layer: Layer) -> None:
        """Add g and f."""
        super().declare(layer)
        pair = mlp(2 * (FEATURES + 1), 512, 256)
        pair.append(torch.nn.ReLU())
        self.submodule("pair", pair, full_name="pair")
        self.submodule("decoder", mlp(256, 256, self.answers), full_name="decoder")

    def reason(self, z: Float[Tensor, "panels batch features"]) -> Float[Tensor, "batch answers"]:
        """Return f of the sum of g over pairs."""
        part: Any = self
        x = tagged(z)
        shape = (len(x), *x.shape)
        pairs = torch.cat([x.unsqueeze(1).expand(shape), x.unsqueeze(0).expand(shape)], -1)
        scores: Tensor = part.decoder(part.pair(pairs).sum((0, 1)))
        return scores


def tagged(z: Float[Tensor, "panels batch features"]) -> Float[Tensor, "panels batch more"]:
    """Return the features of every panel with the panel's index, from 0, behind them."""
    index = torch.arange(len(z), device=z.device, dtype=z.dtype)
    return torch.cat([z, index[:, None, None].expand(-1, z.shape[1], 1)], -1)
