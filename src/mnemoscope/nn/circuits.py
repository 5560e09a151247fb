"""Shallow arithmetic circuits as tensor trains with equal cores, and back."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import torch
from jaxtyping import Float
from torch import Tensor

from mnemoscope.core.errors import UserError
from mnemoscope.nn.networks.tt import TT

if TYPE_CHECKING:
    from mnemoscope.nn.networks.rac import RAC

__all__ = ["rac_to_tt", "tt_to_rac"]

R = TypeVar("R", bound="RAC")
Terms = tuple[Tensor, Tensor, Tensor]
"""The factors A (r x R), B (n x R), C (m x R) of sum_R a o b o c, which makes a core r x n x m."""


@torch.no_grad()
def rac_to_tt(rac: RAC, length: int) -> TT:
    """Return the tensor train of a one-layer RAC, of the same rank.

    ``G_1 = (s_0 * W_I)^T``, ``G[j, d, k] = W_H[k, j] W_I[k, d]``, the last core summed with W_O over k; where the RAC
    gives out its units, W_O is the identity.
    """
    if rac.num_layers > 1 or rac.bidirectional:
        raise UserError(f"only a RAC of one layer and direction is a tensor train, got {rac!r}")
    w_in, w_hidden = rac.get_parameter("weight_ih_l0"), rac.get_parameter("weight_hh_l0")
    w_out = torch.eye(rac.hidden_size).to(w_in) if rac.readout_size is None else rac.get_parameter("weight_out")
    tt = TT(
        rac.input_size,
        rac.hidden_size,
        length,
        len(w_out),
        cores="equal",
        dtype=w_in.dtype,
        device=w_in.device,
        generator=torch.Generator(),  # what it draws is overwritten
    )
    core = torch.einsum("kj,kd->jdk", w_hidden, w_in)
    tt.first.copy_(rac.init_state(1, dtype=w_in.dtype)[0, 0] * w_in.mT)
    tt.inner.copy_(core.expand_as(tt.inner))
    tt.last.copy_(core @ w_out.mT)
    return tt


@torch.no_grad()
def tt_to_rac(cls: type[R], tt: TT) -> R:
    """Return a one-layer RAC whose output after `tt.length` steps is the score of a tensor train with equal cores."""
    if tt.cores != "equal" and tt.length > 3:
        raise UserError('only a tensor train with cores="equal" is a RAC, got cores="different"')
    if tt.feature_map is not None:
        raise UserError("only a tensor train without a feature map is a RAC; give the RAC its features instead")
    w_in, w_hidden, w_out = _of_one_rank(tt) or _wider(tt)
    rac = cls(
        tt.features,
        len(w_in),
        output_size=tt.classes,
        dtype=w_in.dtype,
        device=w_in.device,
        generator=torch.Generator(),  # what it draws is overwritten
    )
    rac.weight_ih_l0, rac.weight_hh_l0, rac.weight_out = w_in, w_hidden, w_out
    return rac


def _of_one_rank(tt: TT) -> tuple[Tensor, Tensor, Tensor] | None:
    """Return W_I, W_H, W_O where the cores have a RAC's form, G[j, d, k] = W_H[k, j] W_I[k, d], to rounding."""
    if len(tt.inner) == 0:
        return None
    w_in, core = tt.first.mT, tt.inner[0]
    squares = w_in.square().sum(1)
    w_hidden = torch.einsum("jdk,kd->kj", core, w_in) / torch.where(squares > 0, squares, 1.0)[:, None]
    built = torch.einsum("kj,kd->jdk", w_hidden, w_in)
    w_out = torch.linalg.lstsq(built.flatten(0, 1).double(), tt.last.flatten(0, 1).double(), driver="gelsd")
    last = built @ w_out.solution.to(built)
    tolerance = 100 * torch.finfo(core.dtype).eps
    for found, wanted in ((built, core), (last, tt.last)):
        if not bool((found - wanted).abs().max() <= tolerance * wanted.abs().max()):
            return None
    return w_in, w_hidden, w_out.solution.mT.to(w_in)


def _wider(tt: TT) -> tuple[Tensor, Tensor, Tensor]:
    """Return W_I, W_H, W_O of the RAC whose units are the products of the cores' CP decompositions.

    With the inner core sum a o b o c and the last one sum a' o b' o c', the units are c_t = (A^T v) * (B^T x_t), from
    which v_t = C c_t; l_t = (A'^T v) * (B'^T x_t), which W_O reads; and s_t, not zero at the first step only, which
    corrects v_1 = C c_1 + s_1 to G_1^T x_1.
    """
    sizes = (tt.rank, tt.features, tt.rank)
    a, b, c = _terms(tt.inner[0]) if len(tt.inner) else (tt.first.new_zeros(size, 0) for size in sizes)
    a_last, b_last, c_last = _terms(tt.last)
    start = tt.first.mT - c @ b.mT
    w_in = torch.cat([b.mT, start, b_last.mT])
    reads = torch.cat([c, torch.eye(tt.rank).to(c), c.new_zeros(tt.rank, b_last.shape[1])], dim=1)  # v from the units
    w_hidden = torch.cat([a.mT @ reads, reads.new_zeros(tt.rank, reads.shape[1]), a_last.mT @ reads])
    w_out = torch.cat([c.new_zeros(tt.classes, c.shape[1] + tt.rank), c_last], dim=1)
    return w_in, w_hidden, w_out


def _terms(core: Float[Tensor, "r n m"]) -> Terms:
    """Return an exact CP decomposition of a core: one term for each fibre along n or along m, whichever are fewer."""
    r, n, m = core.shape
    rows = torch.eye(r).to(core)
    if m < n:
        return (
            rows.repeat_interleave(m, dim=1),
            core.transpose(0, 1).reshape(n, r * m),
            torch.eye(m).to(core).repeat(1, r),
        )
    return rows.repeat_interleave(n, dim=1), torch.eye(n).to(core).repeat(1, r), core.reshape(r * n, m).mT
