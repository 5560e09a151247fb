"""Draw docs/measures/resources.svg: memory of training and time of a step, with a state and without."""

from __future__ import annotations

import sys
from pathlib import Path

import torch
from torch import Tensor, nn

import mnemoscope as ms
from mnemoscope.measures.cost.network import resources
from mnemoscope.report import chart

FOLDER = Path(__file__).parents[2] / "docs" / "measures"
LENGTHS = (64, 128, 256, 512, 1024)


class Attention(nn.Module):
    """Causal self-attention, written out: every step looks at all before it."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.input_size = size
        self.projections = nn.Linear(size, 3 * size)

    def forward(self, x: Tensor) -> Tensor:
        """Return the attended values, (batch, time, size)."""
        query, key, value = self.projections(x).chunk(3, dim=-1)
        later = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).triu(1)
        scores = (query @ key.mT).masked_fill(later, -torch.inf)
        return torch.softmax(scores / x.shape[-1] ** 0.5, dim=-1) @ value


def main() -> None:
    """Measure and draw; another ending than .svg may be named."""
    torch.manual_seed(0)
    networks: dict[str, nn.Module] = {
        "attention": Attention(64),
        "lstm": ms.nn.LSTM(64, 64),
        "rnn": ms.nn.RNN(64, 64),
        "rnn, checkpointed": ms.nn.RNN(64, 64, checkpoint_every=32),
    }
    found = {name: resources(network, lengths=LENGTHS) for name, network in networks.items()}
    memory = chart.lines(
        {f"{name}: T^{one.exponent:.2f}": (one.lengths, one.memory / 2**20) for name, one in found.items()},
        x="sequence length T (steps)",
        y="saved for the backward pass (MB)",
        title="Memory of training, n = 64",
        log_x=True,
        log_y=True,
        points=True,
    )
    times = chart.lines(
        {
            f"{name}, {quantile}": (found[name].lengths, 1e6 * getattr(found[name], f"step_{quantile}"))
            for name in ("attention", "lstm")
            for quantile in ("p50", "p99")
        },
        x="steps so far T",
        y="time of one step (µs)",
        title="Streaming: a state against reading again",
        log_x=True,
        log_y=True,
        points=True,
    )
    chart.save(chart.beside(memory, times), FOLDER / f"resources{sys.argv[1] if len(sys.argv) > 1 else '.svg'}")


if __name__ == "__main__":
    main()
