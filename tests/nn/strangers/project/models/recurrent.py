"""Networks of a package with relative imports, built from configurations."""

from dataclasses import dataclass

from torch import nn

from .parts import Gate


@dataclass
class GateConfig:
    d_input: int
    d_model: int
    n_layer: int = 1
    dropout: float = 0.0


class Configured(nn.Module):
    def __init__(self, config: GateConfig):
        super().__init__()
        self.config, self.gate = config, Gate(config.d_input, config.d_model)

    def forward(self, x, h=None):
        h = x.new_zeros(len(x), self.config.d_model) if h is None else h
        return self.gate(x, h)


class Namespace(nn.Module):
    """Reads what it needs of the arguments of a script."""

    def __init__(self, args):
        super().__init__()
        self.hidden = args.hidden_size
        self.gate = Gate(args.input_size, args.hidden_size)

    def forward(self, x, h=None):
        h = x.new_zeros(len(x), self.hidden) if h is None else h
        return self.gate(x, h)
