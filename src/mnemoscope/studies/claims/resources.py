"""Claims on what networks cost: Kerg §4.7."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor, nn

import mnemoscope.nn as networks
from mnemoscope.measures.cost.network import resources
from mnemoscope.studies.claims.base import Verdict, claim

__all__: list[str] = []

_LENGTHS = (32, 64, 128, 256)


class _AttentiveRNN(nn.Module):
    """h_{t+1} = tanh(V s_t + U x_t), s_t = h_t + sum_i alpha_{t,i} h_i over all states so far, by softmax."""

    def __init__(self, input_size: int, hidden_size: int) -> None:
        super().__init__()
        self.input_size = input_size
        self.recurrent = nn.Linear(hidden_size, hidden_size)
        self.input = nn.Linear(input_size, hidden_size, bias=False)
        self.align = nn.Linear(hidden_size, hidden_size, bias=False)

    def forward(self, x: Float[Tensor, "batch time input"]) -> Float[Tensor, "batch time hidden"]:
        macro = x.new_zeros(x.shape[0], self.recurrent.in_features)
        states: list[Tensor] = []
        for x_t in x.unbind(1):
            h = torch.tanh(self.recurrent(macro) + self.input(x_t))
            states.append(h)
            past = torch.stack(states, dim=1)
            weights = torch.softmax(torch.einsum("bth,bh->bt", past, self.align(h)), dim=1)
            macro = h + torch.einsum("bt,bth->bh", weights, past)
        return torch.stack(states, dim=1)


@claim(
    "kerg-memory-growth",
    "Kerg §4.7, Fig 4.2",
    "Memory of training grows linearly with the length for an RNN and an LSTM, quadratically with full self-attention",
    "measured",
)
def memory_growth(seed: int) -> Verdict:
    """Fit the exponent of what autograd saves."""
    torch_seed = torch.Generator().manual_seed(seed)
    n = 16 + int(torch.randint(17, (), generator=torch_seed))
    linear = {"RNN": networks.RNN(2, n), "LSTM": networks.LSTM(2, n)}
    found = {name: resources(layer, lengths=_LENGTHS, repeats=1).exponent for name, layer in linear.items()}
    attentive = resources(_AttentiveRNN(2, n), lengths=_LENGTHS, repeats=1).exponent
    held = all(abs(value - 1) < 0.1 for value in found.values()) and abs(attentive - 2) < 0.15
    words = ", ".join(f"{name} T^{value:.2f}" for name, value in {**found, "attention": attentive}.items())
    return Verdict(held, 3, f"n = {n}, T = {_LENGTHS[0]}..{_LENGTHS[-1]}: {words}")
