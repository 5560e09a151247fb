"""Causal convolution with long kernels, y_t = sum_{s=0}^{t} K_s x_{t-s}, by the fast Fourier transform.

A time-invariant linear network is one: K_s = C A^s B. The transform is taken over twice the length, so that the end
does not come round to the beginning. The naive twin is `naive_convolution`. Kernels of diagonal networks are sums of
exponentials, K_l = Re sum_m w_m exp(l z_m): `exponential_sums`.
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor

from mnemoscope.nn.ops.linear_scan import linear_scan
from mnemoscope.nn.ops.scan import mask_of

__all__ = ["align_ends", "convolution", "exponential_sums", "last_exponentials", "naive_convolution"]


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
    x, k = inputs.movedim(0, -1), kernel[:steps].mT.contiguous()
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


def exponential_sums(rates: Tensor, weights: Tensor, steps: int) -> Tensor:
    """Return Re sum_m w_m exp(l z_m) for l = 0 .. steps - 1, of shape (.., steps), from z and w of shape (.., modes).

    With l = i r + j, exp(l z) = exp(i r z) exp(j z): two tables of about sqrt(steps) rows, and a product of them.
    """
    width = _row_length(steps)
    height = -(-steps // width)
    fine = torch.exp(rates[..., None] * torch.arange(width, device=rates.device))
    coarse = weights[..., None] * torch.exp(rates[..., None] * (width * torch.arange(height, device=rates.device)))
    left = torch.cat([coarse.real, -coarse.imag], -2).mT
    return (left @ torch.cat([fine.real, fine.imag], -2)).flatten(-2)[..., :steps]


def last_exponentials(
    inputs: Tensor, rates: Tensor, weights: Tensor, start: Tensor | None = None, lengths: Tensor | None = None
) -> Tensor:
    """Return the last state of x_t = exp(z) x_{t-1} + w u_t, (B, n, modes), from u of shape (T, B, n) and z and w.

    Steps are taken in rows of about sqrt(T): a product for each row, and a linear scan over the rows.
    """
    width = _row_length(len(inputs))
    missing = -len(inputs) % width
    u = F.pad(align_ends(inputs, lengths), (0, 0, 0, 0, missing, 0))
    rows = u.reshape(len(u) // width, width, *u.shape[1:]).permute(3, 1, 0, 2).flatten(-2)  # n, width, rows x batch
    powers = torch.exp(rates[..., None] * torch.arange(width - 1, -1, -1, device=u.device)) * weights[..., None]
    parts = torch.complex(powers.real @ rows, powers.imag @ rows).reshape(*rates.shape, len(u) // width, u.shape[1])
    last = linear_scan(parts.permute(2, 3, 0, 1), torch.exp(rates * width))[1]
    if start is None:
        return last
    ends = torch.tensor([len(inputs)]) if lengths is None else lengths
    return last + torch.exp(rates * ends.to(u.device)[:, None, None]) * start


def align_ends(inputs: Tensor, lengths: Tensor | None) -> Tensor:
    """Return sequences (T, B, ..) moved to the end of time, with zeros before, so that all end at the last step."""
    if lengths is None:
        return inputs
    index = torch.arange(len(inputs), device=inputs.device)[:, None] - (len(inputs) - lengths.to(inputs.device))
    index = index.reshape(*index.shape, *[1] * (inputs.dim() - 2))
    moved = inputs.gather(0, index.clamp(min=0).expand(inputs.shape))
    return torch.where(index >= 0, moved, 0.0)


def _row_length(steps: int) -> int:
    """Return a power of two near the root of the number of steps."""
    return 1 << (max(0, steps - 1).bit_length() + 1) // 2


def _fast_length(least: int) -> int:
    """Return the smallest number from there on of the form 2^a, 3 2^a or 5 2^a, whose transforms are fast."""
    return min(factor << max(0, math.ceil(math.log2(least / factor))) for factor in (1, 3, 5))


def _end(outputs: Tensor, lengths: Tensor | None) -> Tensor:
    mask = mask_of(lengths, outputs)
    return outputs if mask is None else torch.where(mask[..., None], outputs, 0.0)
