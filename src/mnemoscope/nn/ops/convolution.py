"""Causal convolution with long kernels, y_t = sum_{s=0}^{t} K_s x_{t-s}, by the fast Fourier transform.

A time-invariant linear network is one: K_s = C A^s B. The transform is taken over twice the length, so that the end
does not come round to the beginning. The naive twin is `naive_convolution`.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from mnemoscope.nn.ops.scan import mask_of

__all__ = ["convolution", "naive_convolution"]


def convolution(inputs: Tensor, kernel: Tensor, lengths: Tensor | None = None) -> Tensor:
    """Return y_1 .. y_T.

    Parameters
    ----------
    inputs
        x, (T, B, n), real or complex.
    kernel
        K, (T, n) or longer: one for each unit, real or complex.
    lengths
        Where the sequences end, descending; after that outputs are zero. None: all are full.
    """
    steps = len(inputs)
    if not inputs.numel():  # the transform of nothing is an error
        return inputs * kernel[:steps, None]
    size = _fast_length(2 * steps - 1)
    x, k = inputs.movedim(0, -1).contiguous(), kernel[:steps].mT.contiguous()  # strided transforms are slow
    if x.is_complex() or k.is_complex():
        product = torch.fft.fft(x, size) * torch.fft.fft(k, size)
        outputs = torch.fft.ifft(product, size)
    else:
        outputs = torch.fft.irfft(torch.fft.rfft(x, size) * torch.fft.rfft(k, size), size)
    return _end(outputs[..., :steps].movedim(-1, 0), lengths)


def naive_convolution(inputs: Tensor, kernel: Tensor, lengths: Tensor | None = None) -> Tensor:
    """Return the same by the definition."""
    outputs = [sum(kernel[s] * inputs[t - s] for s in range(t + 1)) for t in range(len(inputs))]
    return _end(torch.stack([torch.as_tensor(y) for y in outputs]), lengths)


def _fast_length(least: int) -> int:
    """Return the smallest number from there on of the form 2^a, 3 2^a or 5 2^a, whose transforms are fast."""
    return min(factor << max(0, math.ceil(math.log2(least / factor))) for factor in (1, 3, 5))


def _end(outputs: Tensor, lengths: Tensor | None) -> Tensor:
    mask = mask_of(lengths, outputs)
    return outputs if mask is None else torch.where(mask[..., None], outputs, 0.0)
