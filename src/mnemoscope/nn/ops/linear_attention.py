"""Linear attention with decays, S_t = diag(exp g_t) S_{t-1} + k_t v_t^T and o_t = S_t^T q_t, chunk by chunk.

With c_i = g_1 + .. + g_i inside a chunk that starts from S,

    o_i = sum_{j <= i} (q_i . exp(c_i - c_j) k_j) v_j + S^T (exp(c_i) q_i),
    S'  = exp(c_C) S + sum_j (exp(c_C - c_j) k_j) v_j^T:

matrix products over all chunks at once, and a linear scan from chunk to chunk. Decays are given as logarithms, and
only differences c_i - c_j with j <= i are exponentiated, so that no gate, however small, overflows in float32. One
decay for a head (retnet, mamba2, mlstm) multiplies the matrix of products q_i . k_j; one for each key (gla, hgrn2)
is applied by halves (`Decays`). The naive twin is `naive_linear_attention`.
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor

from mnemoscope.nn.ops.linear_scan import linear_scan
from mnemoscope.nn.ops.scan import mask_of, scan

__all__ = ["Chunks", "Decays", "linear_attention", "naive_linear_attention"]

_CHUNKS = (16, 64)
"""Least and most steps in a chunk, powers of two: half as many as a value has numbers, so that the products within a
chunk and those with its state take about as long."""

_BLOCK = 8
"""Steps of a block, in which a decay may be undone: at most 4 of less than e^-20 in float32."""


def linear_attention(
    queries: Tensor,
    keys: Tensor,
    values: Tensor,
    log_decay: Tensor,
    start: Tensor | None = None,
    lengths: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Return o_1 .. o_T and the last state.

    Parameters
    ----------
    queries, keys
        q and k, (T, B, heads, d_k).
    values
        v, (T, B, heads, d_v).
    log_decay
        g, not positive, (T, B, heads, 1) or (T, B, heads, d_k); without the axes in front when it never changes.
    start
        S_0, (B, heads, d_k, d_v); by default zeros.
    lengths
        Where the sequences end, descending; after that outputs are zero and the state stays. None: all are full.

    Axes of size one broadcast: keys that all heads share have one head.
    """
    cut = Chunks(values, lengths)
    q, k, v, decays = cut.split(queries), cut.split(keys, ended=0.0), cut.split(values), Decays(cut.decay(log_decay))
    whole = torch.exp(decays.since[..., -1:, :])
    states, last = linear_scan((k * decays.rest).mT @ v, whole.mT, start)
    first = torch.zeros_like(states[0]) if start is None else start.expand_as(states[0])
    carried = (q * torch.exp(decays.since)) @ torch.cat([first[None], states[:-1]])
    return cut.join(decays.products(q, k) @ v + carried), last


def naive_linear_attention(
    queries: Tensor,
    keys: Tensor,
    values: Tensor,
    log_decay: Tensor,
    start: Tensor | None = None,
    lengths: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Return the same by the definition."""
    decay = every_step(log_decay, values).exp()

    def step(now: tuple[Tensor, ...], state: Tensor) -> tuple[Tensor, Tensor]:
        q, k, v, a = now
        state = a[..., None] * state + k[..., None] * v[..., None, :]
        return (q[..., None] * state).sum(-2), state

    start = zero_state(keys, values) if start is None else start
    return scan(step, (queries, keys, values, decay), start, mask_of(lengths, values))


class Chunks:
    """The cut of sequences into chunks, (T, B, heads, d) to (chunks, B, heads, steps, d), padded at the end.

    Parameters
    ----------
    like
        Values of the sequences, for their sizes.
    lengths
        As in `linear_attention`.
    """

    def __init__(self, like: Tensor, lengths: Tensor | None) -> None:
        self.like = like
        self.steps = len(like)
        least, most = _CHUNKS
        wanted = min(most, max(least, 1 << (like.shape[-1] // 2).bit_length() - 1)) if like.shape[-1] > 1 else least
        self.size = min(wanted, 1 << max(0, self.steps - 1).bit_length())
        mask = mask_of(lengths, like)
        self.alive = None if mask is None else mask[..., None, None]

    def split(self, tensor: Tensor, ended: float | None = None) -> Tensor:
        """Return the chunks of a tensor, whose steps after a sequence's end become `ended` if it is given."""
        if ended is not None and self.alive is not None:
            tensor = torch.where(self.alive, tensor, ended)
        padding = -self.steps % self.size
        tensor = F.pad(tensor, (0, 0) * (tensor.dim() - 1) + (0, padding)) if padding else tensor
        return torch.unflatten(tensor, 0, (-1, self.size)).movedim(1, -2).contiguous()

    def decay(self, log_decay: Tensor) -> Tensor:
        """Return the chunks of logarithms of decays, zero after a sequence's end."""
        return self.split(every_step(log_decay, self.like), ended=0.0)

    def join(self, chunks: Tensor) -> Tensor:
        """Return (T, B, heads, d) from chunks, zero after a sequence's end."""
        whole = chunks.movedim(-2, 1).flatten(0, 1)[: self.steps]
        return whole if self.alive is None else torch.where(self.alive, whole, 0.0)


class Decays:
    """Products of vectors under the decays between their steps, for all chunks at once.

    Attributes
    ----------
    since
        c_i = g_1 + .. + g_i, from the start of the chunk to the end of step i.
    rest
        exp(c_C - c_i), the decay from there to the end of the chunk.
    """

    def __init__(self, log_decay: Tensor) -> None:
        self.log_decay = log_decay
        self.since = log_decay.cumsum(-2)
        self.rest = torch.exp(self.since[..., -1:, :] - self.since)
        self.shared = log_decay.shape[-1] == 1
        self.factors = _lower(self.since - self.since.mT, -torch.inf).exp() if self.shared else None

    def products(self, rows: Tensor, columns: Tensor) -> Tensor:
        """Return the lower triangle of sum_d r_id exp(c_id - c_jd) k_jd, (.., C, C)."""
        if self.factors is not None:
            return (rows @ columns.mT) * self.factors
        return _halved(rows, columns, self.log_decay, self.since)


def _halved(rows: Tensor, columns: Tensor, log_decay: Tensor, since: Tensor) -> Tensor:
    """Return the products by halves.

    Below the diagonal i in the second half and j in the first meet in the middle m, exp(c_i - c_m) exp(c_m - c_j), and
    both factors are at most one. The halves on the diagonal are cut again, down to blocks.
    """
    size = rows.shape[-2]
    if size <= _BLOCK:
        return _block(rows, columns, log_decay)
    parts = [torch.unflatten(tensor, -2, (2, size // 2)) for tensor in (rows, columns, log_decay, since)]
    (upper_left, lower_right), ((_, r), (k, _), _, (ck, cr)) = _halved(*parts).unbind(-3), [p.unbind(-3) for p in parts]
    middle = ck[..., -1:, :].detach()  # it cancels
    cross = (r * torch.exp(cr - middle)) @ (k * torch.exp(middle - ck)).mT
    return torch.cat([F.pad(upper_left, (0, size // 2)), torch.cat([cross, lower_right], -1)], -2)


def _block(rows: Tensor, columns: Tensor, log_decay: Tensor) -> Tensor:
    """Return the products of a block.

    Here exp(c_m - c_j) may exceed one, and would overflow under decays of nearly zero: they are raised to a value that
    does not change a sum in this type of numbers.
    """
    least = math.log(torch.finfo(rows.dtype).eps) - 4
    since = log_decay.clamp(min=least).cumsum(-2)
    size = rows.shape[-2]
    offset = since - since[..., (size - 1) // 2, None, :].detach()
    return _lower((rows * torch.exp(offset)) @ (columns * torch.exp(-offset)).mT, 0.0)


def _lower(matrix: Tensor, above: float) -> Tensor:
    """Return a matrix with its upper triangle, without the diagonal, set to a value."""
    size = matrix.shape[-1]
    return torch.where(torch.ones(size, size, dtype=torch.bool, device=matrix.device).tril(), matrix, above)


def every_step(log_decay: Tensor, like: Tensor) -> Tensor:
    """Return decays that never change as decays of every step."""
    missing = like.dim() - log_decay.dim()
    whole = log_decay.reshape(*[1] * missing, *log_decay.shape)
    return whole.expand(len(like), *whole.shape[1:])


def zero_state(keys: Tensor, values: Tensor) -> Tensor:
    """Return zeros of shape (B, heads, d_k, d_v)."""
    return torch.zeros_like(keys[0, ..., :, None] * values[0, ..., None, :])
