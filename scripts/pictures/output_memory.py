"""Draw docs/measures/output-memory.svg: what the last output of three blocks tells of earlier inputs."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import nn

import mnemoscope as ms
from mnemoscope.report.chart import lines, save


class CausalConvolution(nn.Module):
    """(batch, time, features), eight steps wide."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.mix = nn.Conv1d(width, width, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Read the last eight inputs."""
        return self.mix(nn.functional.pad(x.transpose(1, 2), (7, 0))).transpose(1, 2)


class CausalAttention(nn.Module):
    """(batch, time, features), attention to all that came before."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.attend = nn.MultiheadAttention(width, 2, batch_first=True)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Attend."""
        mask = nn.Transformer.generate_square_subsequent_mask(x.shape[1]).to(x)
        found: torch.Tensor = self.attend(x, x, x, attn_mask=mask)[0]
        return found


class Fading(nn.Module):
    """(batch, time, features), a convolution with kernels that fade, each at a rate of its own."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.rates = nn.Parameter(torch.linspace(0.5, 0.98, width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Convolve by the discrete Fourier transform."""
        steps = x.shape[1]
        kernels = self.rates ** torch.arange(steps).to(x)[:, None]
        whole = torch.fft.rfft(x, 2 * steps, dim=1) * torch.fft.rfft(kernels, 2 * steps, dim=0)
        return torch.fft.irfft(whole, dim=1)[:, :steps]


def main() -> None:
    """Write the picture."""
    series = {}
    for cls in (CausalConvolution, CausalAttention, Fading):
        torch.manual_seed(0)
        found = ms.measures.output_memory(ms.adapt(cls(16), kind="sequence", input_size=16), horizon=64)
        print(cls.__name__, found)
        series[cls.__name__] = (range(1, 65), found.gradients.clip(1e-6))
    words = {"x": "lag k + 1 (steps; the present is 1)", "y": "norm of the derivative, g(k)"}
    picture = lines(series, **words, title="Gradients from the last output, 16 outputs", log_x=True, log_y=True)
    save(picture, Path(__file__).parents[2] / "docs/measures/output-memory.svg")


if __name__ == "__main__":
    main()
