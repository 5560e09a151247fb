"""Running maximum under decays, m_t = max(g_t + m_{t-1}, i_t): the linear recurrence of the max-plus numbers.

Gates that are exponentials are kept in range by it (mlstm): exp(i_t - m_t) and exp(g_t + m_{t-1} - m_t) are at most
one. Inside a chunk that starts from m, with c_t = g_1 + .. + g_t, m_t = c_t + max(m, max_{s <= t} (i_s - c_s)): two
cumulative operations over all chunks at once. The sums start anew in every chunk, so that they keep their digits in
float32. The naive twin is `naive_max_scan`.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from mnemoscope.nn.ops.scan import mask_of, scan

__all__ = ["max_scan", "naive_max_scan"]

_CHUNK = 64


def max_scan(inputs: Tensor, decay: Tensor, start: Tensor, lengths: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """Return m_1 .. m_T and the last state.

    Parameters
    ----------
    inputs
        i, (T, B, ..).
    decay
        g, of the same shape.
    start
        m_0, (B, ..).
    lengths
        Where the sequences end, descending; after that outputs are zero and the state stays. None: all are full.
    """
    mask = mask_of(lengths, inputs)
    if mask is not None:
        mask = mask.reshape(*mask.shape, *[1] * (inputs.dim() - 2))
        inputs, decay = torch.where(mask, inputs, -torch.inf), torch.where(mask, decay, 0.0)
    steps, padding = len(inputs), (0, 0) * (inputs.dim() - 1) + (0, -len(inputs) % _CHUNK)
    i, g = F.pad(inputs, padding, value=-torch.inf), F.pad(decay, padding)
    c = torch.unflatten(g, 0, (-1, _CHUNK)).cumsum(1)
    highest = (torch.unflatten(i, 0, (-1, _CHUNK)) - c).cummax(1).values
    starts = [start]
    for total, top in zip(c[:, -1].unbind(0), highest[:, -1].unbind(0), strict=True):
        starts.append(total + torch.maximum(starts[-1], top))
    outputs = (c + torch.maximum(torch.stack(starts[:-1])[:, None], highest)).flatten(0, 1)[:steps]
    return outputs if mask is None else torch.where(mask, outputs, 0.0), starts[-1]


def naive_max_scan(
    inputs: Tensor, decay: Tensor, start: Tensor, lengths: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """Return the same by the definition."""

    def step(now: tuple[Tensor, Tensor], m: Tensor) -> tuple[Tensor, Tensor]:
        m = torch.maximum(now[1] + m, now[0])
        return m, m

    return scan(step, (inputs, decay), start, mask_of(lengths, inputs))
