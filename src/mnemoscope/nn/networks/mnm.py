"""mnm: a controller whose memory is a network, written to by changing its weights."""

from __future__ import annotations

from typing import Any, ClassVar

import torch
from jaxtyping import Float
from torch import Tensor, nn

from mnemoscope.nn.declared import Layer
from mnemoscope.nn.registry import network
from mnemoscope.nn.relational import FEATURES, Relational

__all__ = ["MNM"]

_LAYERS = 3


class FastWeights(nn.Module):
    """Weights that the memory of every example begins with: drawn, and never trained."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("start", torch.empty(_LAYERS, FEATURES, FEATURES))

    start: Tensor

    def reset_parameters(self) -> None:
        """Draw them, uniform on +-1/sqrt(128)."""
        nn.init.uniform_(self.start, -(FEATURES**-0.5), FEATURES**-0.5)


@network(
    "mnm",
    family="relational",
    equations=(
        "h_t = LSTM([z_t, r_{t-1}], h_{t-1}); k, v, q, u = tanh(A h_t + a); b = sigmoid(B u + c)",
        "f(x) = W_3 tanh(W_2 tanh(W_1 x)); W_l -= (2/128) (o_l - (D v + d)_l) (b i_l)^T at the key k",
        "r_t = f(q); y = E (F [h, r] + e) + g; loss + mean (f(k) - v)^2",
    ),
    state="0",
    references=("munkhdalai2019", "kerg2022"),
)
class MNM(Relational):
    """Metalearned neural memory: T + 1 steps, of which the last has no panel.

    The memory f is three 128 x 128 matrices of every example's own. Its layer l, with input i_l and output o_l (tanh
    taken for the first two [o]) at the write key, moves towards a target that the value gives. What f misses of the
    value after that is added to the loss, by `penalty`.
    """

    adds_loss: ClassVar[bool] = True

    def declare(self, layer: Layer) -> None:
        """Add controller, memory and readout."""
        super().declare(layer)
        self.submodule("controller", nn.LSTMCell(2 * FEATURES, FEATURES), full_name="controller")
        self.submodule("interface", nn.Linear(FEATURES, 4 * FEATURES), full_name="interface")
        self.submodule("rate", nn.Linear(FEATURES, 1), full_name="rate")
        self.submodule("targets", nn.Linear(FEATURES, _LAYERS * FEATURES), full_name="targets")
        self.submodule("memory", FastWeights(), full_name="memory")
        self.submodule("join", nn.Linear(2 * FEATURES, FEATURES), full_name="join")
        self.submodule("readout", nn.Linear(FEATURES, self.answers), full_name="readout")

    def reason(self, z: Float[Tensor, "panels batch features"]) -> Float[Tensor, "batch answers"]:
        """Write and read, panel after panel; answer after one step more."""
        part: Any = self
        panels, batch = z.shape[:2]
        h = c = read = z.new_zeros(batch, FEATURES)
        weights = [w.expand(batch, -1, -1) for w in part.memory.start]
        missed = []
        for t in range(panels + 1):
            seen = z[t] if t < panels else torch.zeros_like(z[0])
            h, c = part.controller(torch.cat([seen, read], 1), (h, c))
            write, value, ask, u = part.interface(h).tanh().chunk(4, 1)
            weights = _written(weights, write, part.targets(value).chunk(_LAYERS, 1), part.rate(u).sigmoid())
            missed.append((_recall(weights, write)[-1] - value).square().mean())
            read = _recall(weights, ask)[-1]
        self.note(torch.stack(missed).mean())
        scores: Tensor = part.readout(part.join(torch.cat([h, read], 1)))
        return scores


def _recall(
    weights: list[Float[Tensor, "batch out in"]], key: Float[Tensor, "batch in"]
) -> list[Float[Tensor, "batch out"]]:
    """Return what every layer of a memory gives at a key; the last is what it recalls."""
    found, x = [], key
    for number, w in enumerate(weights):
        x = torch.einsum("boi,bi->bo", w, x)
        x = x if number == _LAYERS - 1 else x.tanh()
        found.append(x)
    return found


def _written(
    weights: list[Tensor], key: Tensor, targets: tuple[Tensor, ...], rate: Float[Tensor, "batch 1"]
) -> list[Tensor]:
    """Return the memory after every layer has moved, at once, towards its target."""
    outputs = _recall(weights, key)
    inputs = [key, *outputs[:-1]]
    return [
        w - 2 / FEATURES * torch.einsum("bo,bi->boi", out - target, rate * given)
        for w, out, target, given in zip(weights, outputs, targets, inputs, strict=True)
    ]
