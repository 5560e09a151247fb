"""Relations between the effective state-size, the Start-End separation rank and the Hankel rank."""

from __future__ import annotations

import numpy as np
import torch

from mnemoscope import measures, nn
from mnemoscope.core.numbers import number
from mnemoscope.theory.theorems.base import Instance, Verdict, theorem
from mnemoscope.theory.theorems.draw import general
from mnemoscope.theory.theorems.view import NetworkView


@theorem("state-size-and-hankel-rank", "parnichkun2025", "")
def hankel_limit(seed: int) -> Verdict:
    """The singular values of a linear network's effective state-size tend to its Hankel singular values.

    After a long past and before a long future they are equal, and the rank is the order of the smallest linear network
    that does the same: at most the numbers in the state.

    Check: six random systems, two of them with units that no input reaches or no output sees: singular values of the
    operator's block over 160 steps against the Hankel values, ranks against the order of the reachable, seen part.
    """
    draw = np.random.default_rng(seed)
    gaps, ranks = [], []
    for n, idle in ((3, 0), (4, 0), (5, 0), (6, 0), (5, 2), (6, 3)):
        W, U, C = general(draw, n, 0.6), draw.normal(size=(n, 1)), draw.normal(size=(1, n))
        W[n - idle :, : n - idle] = 0
        U[n - idle :] = 0
        layer = nn.LinearSystem.of(W, U, C, np.zeros(n))
        found = measures.effective_state_size(layer, horizon=160, trajectories=1, cuts=3, tolerance=1e-11)
        exact = measures.hankel_singular_values(W, U, C).values
        gaps.append(float(np.abs(found.singular_values[:n] - exact[: len(found.singular_values)]).max() / exact[0]))
        ranks.append(found.total == n - idle)
    return Verdict(
        max(gaps) < 1e-8 and all(ranks),
        len(gaps),
        f"singular values agree to {max(gaps):.0e}; {sum(ranks)} of {len(ranks)} ranks are those of the used part",
    )


@theorem("state-size-and-separation-rank", "", "")
def separation(seed: int) -> Verdict:
    """The Start-End separation rank of a linear network is 2 at most, its effective state-size may be all n.

    The one asks of how many products of a function of the start and a function of the end the output is the sum, the
    other how many directions of the state carry inputs to outputs. Products raise the one and not the other.

    Proof: separation-linear, and the rank of C W^k U over all lags, which is n where all is reached and seen.

    Check: linear networks of 2 to 6 units over 4 steps, with all their units in use; and a RAC of 4 units, whose
    separation rank is above 2 while at most 4 directions carry its inputs.
    """
    ranks, used = [], []
    for n in range(2, 7):
        layer = nn.LinearRNN(1, n, generator=torch.Generator().manual_seed(seed + n), dtype=torch.float64)
        ranks.append(measures.separation_rank(layer, 4, templates=3).rank)
        found = measures.effective_state_size(layer, horizon=60, trajectories=1, tolerance=1e-10)
        used.append(int(found.total))
    product = nn.RAC(4, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
    apart = measures.separation_rank(product, 4).rank
    carried = measures.effective_state_size(product, horizon=12, trajectories=1, washout=0).total
    return Verdict(
        max(ranks) <= 2 and used == [2, 3, 4, 5, 6] and apart > 2 and carried <= 4,
        len(ranks) + 1,
        f"linear networks of 2 to 6 units: separation ranks {ranks}, state sizes {used}; a RAC of 4 units has "
        f"separation rank {apart} and uses {carried:.3g} directions",
    )


@hankel_limit.about("state", lambda s: s.linear and bool(s.state_size))
def _(s: NetworkView) -> Instance:
    text = (
        f"Up to {number(s.state_size)} directions of its state, as many as it has Hankel singular values above zero, "
        "carry past inputs to future outputs; a Start-End separation rank of 2 at most says nothing against that."
    )
    return Instance(text, s.state_size, "bound")
