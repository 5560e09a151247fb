"""Linear attention that corrects what it holds (delta rules), chunk by chunk in WY form.

The delta rule of rate beta moves what is stored under a key towards a new value (deltanet, gated-deltanet):

    S_t = exp(g_t) (I - beta_t k_t k_t^T) S_{t-1} + beta_t k_t v_t^T,   o_t = S_t^T q_t,

which is linear attention to corrected values w_t = v_t - exp(g_t) S_{t-1}^T k_t. Inside a chunk that starts from S,
with c_i = g_1 + .. + g_i, these follow from a triangular system: with A_ij = beta_j k_i . exp(c_i - c_j) k_j, j < i,

    (I + A) w = v - (exp(c) k) S   =>   w = U - W S,

so that a chunk is an affine map of S; all maps are computed at once, and only applied in order. `rank_one_update` does
the same where what is read, a_t, and where it is written, b_t, are vectors of their own (rwkv7). Each has its naive
twin beside it.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from mnemoscope.nn.ops.linear_attention import Chunks, Decays, every_step, zero_state
from mnemoscope.nn.ops.scan import mask_of, scan

__all__ = ["delta_rule", "naive_delta_rule", "naive_rank_one_update", "rank_one_update"]


def delta_rule(
    queries: Tensor,
    keys: Tensor,
    values: Tensor,
    log_decay: Tensor,
    rates: Tensor,
    start: Tensor | None = None,
    lengths: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Return o_1 .. o_T and the last state.

    Parameters
    ----------
    queries, keys, values, log_decay, start, lengths
        As in `mnemoscope.nn.ops.linear_attention.linear_attention`; one decay for a head, (T, B, heads, 1).
    rates
        beta, (T, B, heads, 1).
    """
    cut = Chunks(values, lengths)
    q, k, v, decays = cut.split(queries), cut.split(keys), cut.split(values), Decays(cut.decay(log_decay))
    written = k * cut.split(rates, ended=0.0)
    system = decays.products(k, written).tril(-1)  # its diagonal is taken for ones
    solved = _solve(system, torch.cat([v, k * torch.exp(decays.since)], -1))
    sizes = [v.shape[-1], k.shape[-1]]
    read_u, read_w = torch.split(decays.products(q, written) @ solved, sizes, -1)
    left_u, left_w = torch.split((written * decays.rest).mT @ solved, sizes, -1)
    return _apply(cut, _kept(decays, k) - left_w, left_u, q * torch.exp(decays.since) - read_w, read_u, start)


def naive_delta_rule(
    queries: Tensor,
    keys: Tensor,
    values: Tensor,
    log_decay: Tensor,
    rates: Tensor,
    start: Tensor | None = None,
    lengths: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Return the same by the definition."""
    written, decay = rates * keys, every_step(log_decay, values)
    feedback = -decay.exp() * written
    return naive_rank_one_update(queries, written, values, decay, keys, feedback, start, lengths)


def rank_one_update(
    queries: Tensor,
    keys: Tensor,
    values: Tensor,
    log_decay: Tensor,
    lookup: Tensor,
    feedback: Tensor,
    start: Tensor | None = None,
    lengths: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Return o_t = S_t^T q_t of S_t = diag(exp g_t) S_{t-1} + b_t (S_{t-1}^T a_t)^T + k_t v_t^T, and the last state.

    Parameters
    ----------
    queries, keys, values, log_decay, start, lengths
        As in `mnemoscope.nn.ops.linear_attention.linear_attention`.
    lookup
        a, (T, B, heads, d_k): where the state is read before it is updated.
    feedback
        b, (T, B, heads, d_k): where what was read is written.
    """
    cut = Chunks(values, lengths)
    q, a, v, decays = cut.split(queries), cut.split(lookup), cut.split(values), Decays(cut.decay(log_decay))
    k, b = cut.split(keys, ended=0.0), cut.split(feedback, ended=0.0)
    # a_i reads the state before step i: it stands in row i - 1 of the products, which are then moved down again.
    early = _shift(a, -1)
    before = _shift(torch.exp(decays.since) - 1, 1) + 1
    right = torch.cat([_shift(decays.products(early, k), 1) @ v, a * before], -1)
    solved = _solve(-_shift(decays.products(early, b), 1), right)
    sizes = [v.shape[-1], a.shape[-1]]
    read_u, read_w = torch.split(decays.products(q, b) @ solved, sizes, -1)
    left_u, left_w = torch.split((b * decays.rest).mT @ solved, sizes, -1)
    shifts, own = left_u + (k * decays.rest).mT @ v, read_u + decays.products(q, k) @ v
    return _apply(cut, _kept(decays, a) + left_w, shifts, q * torch.exp(decays.since) + read_w, own, start)


def naive_rank_one_update(
    queries: Tensor,
    keys: Tensor,
    values: Tensor,
    log_decay: Tensor,
    lookup: Tensor,
    feedback: Tensor,
    start: Tensor | None = None,
    lengths: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Return the same by the definition."""
    decay = every_step(log_decay, values).exp()

    def step(now: tuple[Tensor, ...], state: Tensor) -> tuple[Tensor, Tensor]:
        q, k, v, g, a, b = now
        u = (a[..., None] * state).sum(-2)
        state = g[..., None] * state + b[..., None] * u[..., None, :] + k[..., None] * v[..., None, :]
        return (q[..., None] * state).sum(-2), state

    start = zero_state(keys, values) if start is None else start
    return scan(step, (queries, keys, values, decay, lookup, feedback), start, mask_of(lengths, values))


def _solve(system: Tensor, right: Tensor) -> Tensor:
    solved: Tensor = torch.linalg.solve_triangular(system, right, upper=False, unitriangular=True)
    return solved


def _shift(rows: Tensor, by: int) -> Tensor:
    """Return (.., C, d) with its rows moved down by one, or up; a row of zeros comes in."""
    moved = rows[..., :-1, :] if by == 1 else rows[..., 1:, :]
    return F.pad(moved, (0, 0, 1, 0) if by == 1 else (0, 0, 0, 1))


def _kept(decays: Decays, keys: Tensor) -> Tensor:
    """Return what a chunk's decays alone make of the state: a diagonal matrix."""
    whole = torch.exp(decays.since[..., -1, :])
    return torch.diag_embed(whole.expand(*whole.shape[:-1], keys.shape[-1]))


def _apply(
    cut: Chunks, turns: Tensor, shifts: Tensor, reads: Tensor, own: Tensor, start: Tensor | None
) -> tuple[Tensor, Tensor]:
    """Run S' = M S + N from chunk to chunk; the outputs of a chunk are P + Q S."""
    states = [torch.zeros_like(shifts[0]) if start is None else start.expand_as(shifts[0])]
    for turn, shift in zip(turns.unbind(0), shifts.unbind(0), strict=True):
        states.append(shift + turn @ states[-1])
    return cut.join(own + reads @ torch.stack(states[:-1])), states[-1]
