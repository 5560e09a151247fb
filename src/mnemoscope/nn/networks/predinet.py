"""predinet: heads that each pick two panels, and compare them in a few learned directions."""

from __future__ import annotations

from typing import Any, ClassVar

import torch
from jaxtyping import Float
from torch import Tensor, nn

from mnemoscope.nn.declared import Layer
from mnemoscope.nn.networks.relation_network import tagged
from mnemoscope.nn.registry import network
from mnemoscope.nn.relational import FEATURES, Relational, mlp

__all__ = ["PrediNet"]

_HEADS, _KEY, _RELATIONS = 32, 16, 16


@network(
    "predinet",
    family="relational",
    equations=(
        "x_t = [z_t, t]; k_t = K x_t; q_h = Q_h [x_1, .., x_T], q'_h = Q'_h [x_1, .., x_T]",
        "e_h = sum_t softmax_t(q_h . k_t) x_t, e'_h alike; d_h = S (e_h - e'_h)",
        "y = MLP([d_h, index of e_h, index of e'_h] of all heads)",
    ),
    state="0",
    references=("shanahan2020", "kerg2022"),
)
class PrediNet(Relational):
    """A network of propositions: 32 heads, keys of 16 numbers, 16 relations, an MLP of 8 units."""

    has_relations: ClassVar[bool] = True

    def declare(self, layer: Layer) -> None:
        """Add queries, keys, relations and the MLP."""
        super().declare(layer)
        width = FEATURES + 1
        for name in ("first", "second"):
            self.submodule(name, nn.Linear(self.panels * width, _HEADS * _KEY, bias=False), full_name=name)
        self.submodule("keys", nn.Linear(width, _KEY, bias=False), full_name="keys")
        self.submodule("compare", nn.Linear(width, _RELATIONS, bias=False), full_name="compare")
        self.submodule("decoder", mlp(_HEADS * (_RELATIONS + 2), 8, self.answers), full_name="decoder")

    def _picked(self, z: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return panels with their index, and where the heads look for both of theirs: (batch, heads, panels)."""
        part: Any = self
        x = tagged(z).transpose(0, 1)
        keys = part.keys(x)
        where = [
            (side(x.flatten(1)).view(len(x), _HEADS, _KEY) @ keys.mT).softmax(-1) for side in (part.first, part.second)
        ]
        return x, where[0], where[1]

    def reason(self, z: Float[Tensor, "panels batch features"]) -> Float[Tensor, "batch answers"]:
        """Return the MLP's scores of what the heads found."""
        part: Any = self
        x, first, second = self._picked(z)
        one, other = first @ x, second @ x
        found = torch.cat([part.compare(one) - part.compare(other), one[..., -1:], other[..., -1:]], -1)
        scores: Tensor = part.decoder(found.flatten(1))
        return scores

    def relations(self, z: Float[Tensor, "panels batch features"]) -> Float[Tensor, "batch panels panels"]:
        """Return how often heads compare panel i (as the first) with panel j: the mean of both attentions' products."""
        _, first, second = self._picked(z)
        return torch.einsum("bhi,bhj->bij", first, second) / _HEADS
