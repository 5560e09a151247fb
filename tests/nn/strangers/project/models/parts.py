"""Parts that other files of the package import."""

import torch
from torch import nn


class Gate(nn.Module):
    def __init__(self, inputs, units):
        super().__init__()
        self.lin = nn.Linear(inputs + units, 2 * units)

    def forward(self, x, h):
        gate, new = self.lin(torch.cat([x, h], -1)).chunk(2, -1)
        return torch.sigmoid(gate) * h + (1 - torch.sigmoid(gate)) * torch.tanh(new)
