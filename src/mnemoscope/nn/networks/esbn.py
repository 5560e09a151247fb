"""esbn: a controller that binds keys of its own to panels, and sees the keys of similar panels only."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Unpack

import torch
from jaxtyping import Float
from torch import Tensor, nn

from mnemoscope.nn.declared import Layer
from mnemoscope.nn.networks.corelnet import SimilarityNetwork
from mnemoscope.nn.networks.relational_lstm import build_core, checked_core
from mnemoscope.nn.registry import network
from mnemoscope.nn.relational import FEATURES, RelationalOptions

__all__ = ["ESBN"]

_KEY = 256


@network(
    "esbn",
    family="relational",
    equations=(
        "h_t = LSTM(r_{t-1}, h_{t-1}); k_t = relu(A h_t + a); g_t = sigmoid(b . h_t + c)",
        "w = softmax_{s<t}(z_t . z_s); c_s = sigmoid(gain z_t . z_s + bias)",
        "r_t = g_t sum_{s<t} w_s [k_s, c_s]; y = C h_{T+1} + d",
    ),
    state="0",
    references=("webb2021", "kerg2022"),
    notes=("What a controller carries within a call is no state: an example is answered as a whole.",),
)
class ESBN(SimilarityNetwork):
    """The Emergent Symbol Binding Network: T + 1 steps, of which the last has no panel.

    Parameters
    ----------
    core
        The controller: any recurrent network of the registry.
    hidden_size
        Its units.
    core_options
        Its further options.
    """

    def __init__(
        self,
        panels: int,
        answers: int,
        *,
        core: str = "lstm",
        hidden_size: int = 512,
        core_options: Mapping[str, Any] | None = None,
        asymmetric: bool = False,
        asymmetric_on: str = "normalised",
        cat: bool = False,
        **common: Unpack[RelationalOptions],
    ) -> None:
        self.core, self.hidden_size, self.core_options = checked_core(core, hidden_size, core_options)
        super().__init__(panels, answers, asymmetric=asymmetric, asymmetric_on=asymmetric_on, cat=cat, **common)

    def declare(self, layer: Layer) -> None:
        """Add the controller, what it writes and says, and the confidence."""
        super().declare(layer)
        inputs = _KEY + 1 + (FEATURES if self.cat else 0)
        core = build_core(self.core, inputs, self.hidden_size, self.core_options)
        self.submodule("controller", core, full_name="controller")
        for name, outputs in (("key", _KEY), ("gate", 1), ("readout", self.answers)):
            self.submodule(name, nn.Linear(core.output_size, outputs), full_name=name)
        self.parameter("gain", 1, init=lambda tensor, _: nn.init.ones_(tensor), full_name="gain")
        self.parameter("bias", 1, init=lambda tensor, _: nn.init.zeros_(tensor), full_name="bias")

    def reason(self, z: Float[Tensor, "panels batch features"]) -> Float[Tensor, "batch answers"]:
        """Read, then write, panel after panel; answer after one step more."""
        part: Any = self
        panels, batch = z.shape[:2]
        similar, plain = self.similarities(z), self.compared(z)[0]
        step, state = part.controller.stepper(), part.controller.init_state(batch, device=z.device, dtype=z.dtype)
        read = z.new_zeros(batch, _KEY + 1)
        keys: list[Tensor] = []
        for t in range(panels + 1):
            seen = plain[t] if t < panels else torch.zeros_like(plain[0])
            h, state = step(torch.cat([read, seen], 1) if self.cat else read, state)
            if t == panels:
                break
            if keys:
                scores = similar[:, t, :t]
                confidence = (part.gain * scores + part.bias).sigmoid()
                bound = torch.cat([torch.stack(keys, 1), confidence.unsqueeze(-1)], -1)
                read = part.gate(h).sigmoid() * torch.einsum("bs,bsk->bk", scores.softmax(-1), bound)
            keys.append(part.key(h).relu())
        answers: Tensor = part.readout(h)
        return answers

    def relations(self, z: Float[Tensor, "panels batch features"]) -> Float[Tensor, "batch panels panels"]:
        """Return the weights with which each panel reads the earlier ones; the first reads nothing."""
        panels = len(z)
        behind = torch.ones(panels, panels, dtype=torch.bool, device=z.device).tril(-1)
        lowest = torch.finfo(z.dtype).min
        weights = self.similarities(z).masked_fill(~behind, lowest).softmax(-1)
        return weights.masked_fill(~behind, 0.0)
