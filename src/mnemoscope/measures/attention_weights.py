"""Attention of a network to its own past: its weights, the states that matter, and the ways that gradients take."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from mnemoscope.core.arrays import positive
from mnemoscope.core.errors import Description, UserError, expected, positive_int
from mnemoscope.core.memory import allowance, require
from mnemoscope.core.result import Result, result
from mnemoscope.measures.gradient_paths import attention_kappa, dependency_depths
from mnemoscope.measures.gradient_skips import gradients_by_skips
from mnemoscope.measures.inputs import answering, arranged, input_sequences
from mnemoscope.measures.registry import Cost, measure
from mnemoscope.nn.attention import Attentive

if TYPE_CHECKING:
    from mnemoscope.report.chart import Chart

__all__ = ["AttentionWeights", "attention"]

_CELLS = 60  # a side of the heat map
_FLOOR = 1e-8  # of the largest part: smaller ones are not drawn


@result
class AttentionWeights(Result):
    """Result of `attention`. All numbers are means over trajectories.

    Attributes
    ----------
    layer
        The layer whose attention it is.
    weights
        ``[t, i]`` is the weight at step t on the state of step i.
    events
        Share of trajectories in which the state of step i is a relevant event: a later step gives it more than the
        threshold.
    relevant
        Relevant events of a trajectory.
    depths
        Dependency depth from the state of step i to the last step.
    depth
        The largest of a trajectory's depths.
    kappa
        The most states that one step attends to.
    threshold
        Weights, and products of weights along a path, above it count as relevant.
    parts
        ``[t, s]``: size of the part of ds_T/dh_t that passes s states (s + 1 skips), xi(s); in the last column all that
        passes more.
    gradients
        Size of the whole ds_T/dh_t.
    shares
        Share of each part in the sum of their sizes, for the first state.
    """

    measure: ClassVar[str] = "attention"
    references: ClassVar[tuple[str, ...]] = ("kerg2020",)

    layer: int
    weights: Float[np.ndarray, "T T"]
    events: Float[np.ndarray, " T"]
    relevant: float
    depths: Float[np.ndarray, " T"]
    depth: float
    kappa: float
    threshold: float
    parts: Float[np.ndarray, "T S"]
    gradients: Float[np.ndarray, " T"]
    shares: Float[np.ndarray, " S"]

    def __str__(self) -> str:
        most = int(np.argmax(self.shares))
        return (
            f"{self.relevant:.3g} relevant events in {len(self.weights)} steps; "
            f"dependency depth {self.depth:.3g}, kappa {self.kappa:.4g}; "
            f"{self.shares[most]:.2g} of the gradient of the first state passes {most} states"
        )

    def plot(self) -> Chart:
        """Draw the weights as a map, the events and depths by step, and the parts of the gradient.

        Of a long sequence each cell of the map is the largest of a block of weights.
        """
        from mnemoscope.report.chart import beside, heat_map, lines

        steps = np.arange(len(self.weights))
        first = np.arange(0, len(steps), -(-len(steps) // _CELLS))
        cells = np.maximum.reduceat(np.maximum.reduceat(self.weights, first, axis=0), first, axis=1)
        weights = heat_map(
            cells,
            x="state of step i",
            y="step t",
            value="weight",
            title=f"Attention to past states in layer {self.layer}",
            x_ticks=first.tolist(),
            y_ticks=first.tolist(),
        )
        events = lines(
            {"relevant events": (steps, self.events)},
            x="state of step i",
            y="share of trajectories",
            title=f"Relevant events: a later weight above {self.threshold:g}",
        )
        depths = lines(
            {"dependency depth": (steps, self.depths)},
            x="state of step i",
            y="states on the way",
            title=f"Dependency depth; kappa = {self.kappa:.4g}",
        )
        return beside(weights, events, depths, self._drawn_parts())

    def _drawn_parts(self) -> Chart:
        from mnemoscope.report.chart import lines

        length, floor = len(self.gradients), float(self.parts.max()) * _FLOOR
        used = 1 + int(np.flatnonzero((self.parts > floor).any(axis=0)).max(initial=0))
        chosen = sorted({0, length // 2})
        passed = np.arange(used)
        return lines(
            {
                f"{length - 1 - t} steps back": (passed, np.where(parts > floor, parts, np.nan))
                for t in chosen
                for parts in [self.parts[t, :used]]
            },
            x="states passed s",
            y="size of xi(s)",
            title="Gradient by the states that it passes",
            log_y=True,
            points=True,
        )


_COST = Cost(
    time={"B T^3": 1.5e-9, "T": 1e-3, "B D K T S": 3e-9},
    memory="B D K T S",
    sizes={"B": "trajectories", "T": "horizon", "D": lambda given: given["directions"] or given["S"], "K": "skips"},
    letters={"D": "directions", "K": "parts of the gradient"},
)


@measure(
    "attention",
    kinds=("recurrent",),
    needs=("attention",),
    quick={"trajectories": 4, "horizon": 40},
    cost=_COST,
)
def attention(
    network: Any,
    *,
    horizon: int = 60,
    trajectories: int = 16,
    layer: int = 0,
    threshold: float = 0.1,
    skips: int = 60,
    directions: int | None = 1,
    scale: float = 1.0,
    inputs: Any = None,
    seed: int = 0,
) -> AttentionWeights:
    r"""Return the weights with which a network attends to its past states, and what they do to its gradients.

    With alpha_{t,i} the weight at step t on h_i, in the mean over heads, of each trajectory:

    .. math::
        \text{events} = \{i : \max_{t > i} \alpha_{t,i} > \theta\}, \qquad
        \kappa = \max_t |\{i : \alpha_{t,i} > 0\}|, \qquad
        d_i = \min \{s : \alpha_{a_1,i}\, \alpha_{a_2,a_1+1} \cdots \alpha_{T,a_s+1} > \theta,\
        i \le a_1 < \dots < a_s < T\}

    where the recurrent way h_a -> s_a counts with 1 + alpha_{a,a}; the dependency depth is the largest d_i.
    The gradient

    .. math::
        \frac{ds_T}{dh_t} = \sum_s \xi_t(s)

    is divided by how many states it passes, as `mnemoscope.measures.gradient_skips` says, with the derivatives of the
    weights and of the nonlinearities; sizes are Frobenius norms, in the root mean square over trajectories. A network
    whose memory grows takes the sequence's length as its capacity where it has none.

    Parameters
    ----------
    network
        A network with ``attention(x)``, trained or not: relrnn, rellstm, memrnn, memlstm, sab.
    horizon
        Steps, T.
    trajectories
        Trajectories to average over.
    layer
        Which layer's attention; of two directions the one that reads forward.
    threshold
        theta, below 1: what a weight, or a product of weights along a path, must exceed.
    skips
        Parts of the gradient that pass up to so many states are told apart; those that pass more stand together.
    directions
        Random directions of s_T for each trajectory, from which the norms are estimated; None: all, which is exact.
    scale
        Standard deviation of the Gaussian inputs.
    inputs
        Inputs (time, trajectories, input_size) in place of Gaussian ones, which then say horizon and trajectories.
    seed
        Of the inputs and directions.

    Returns
    -------
    AttentionWeights

    References
    ----------
    Kerg et al. (2020), sections 4.4.1 and 4.5: relevant events, dependency depth and sparsity coefficient;
    Propositions 1 and B.1.12: the gradient by paths.

    Examples
    --------
    >>> import mnemoscope as ms
    >>> network = ms.nn.create("memrnn", input_size=2, hidden_size=8, generator=torch.Generator().manual_seed(0))
    >>> found = attention(network, horizon=20, trajectories=4)
    >>> found.kappa, found.weights.shape, found.parts.shape
    (20.0, (20, 20), (20, 20))
    """
    if not isinstance(network, Attentive):
        wanted = "one that attends to its past states, such as relrnn, memrnn or sab"
        raise expected("network", wanted, Description(type(network).__name__))
    limit = positive("threshold", threshold)
    if limit >= 1:
        raise expected("threshold", "below 1", threshold)
    if directions is not None:
        positive_int("directions", directions)
    if isinstance(skips, bool) or not isinstance(skips, int) or skips < 0:
        raise expected("skips", "an integer of at least 0", skips)
    x = input_sequences(network, horizon, trajectories, scale, inputs, seed)
    _require(network, *x.shape[:2])
    with answering(network):
        matrices = _matrices(network, x, layer)
        parts, gradients = _gradients(network, x, layer, min(skips, len(x) - 1), directions, seed)
    depths = np.stack([dependency_depths(each, limit) for each in matrices])
    events = (np.tril(matrices, -1) > limit).any(axis=1)
    return AttentionWeights(
        status="estimate" if inputs is None or directions is not None else "exact",
        digits=None,
        assumptions=(
            f"{len(matrices)} trajectories" + (" of Gaussian inputs" if inputs is None else ""),
            "paths of the depth count weights of attention and the recurrent way, not the Jacobians between them",
            "all directions of the last macro-state" if directions is None else f"{directions} random directions of it",
        ),
        cost="O(B T m) time for m slots, O(B T^2) for each intermediate state, O(D K B T m n) for D directions and K "
        "parts of the gradient",
        layer=layer,
        weights=matrices.mean(axis=0),
        events=events.mean(axis=0),
        relevant=float(events.sum(axis=1).mean()),
        depths=depths.mean(axis=0),
        depth=float(depths.max(axis=1).mean()),
        kappa=float(np.mean([attention_kappa(each) for each in matrices])),
        threshold=limit,
        parts=parts,
        gradients=gradients,
        shares=parts[0] / (parts[0].sum() or 1.0),
    )


def _require(network: Attentive, steps: int, batch: int) -> None:
    """Refuse weights that do not fit: one for each head, step and slot, and the table of all steps."""
    each = 8 * steps * steps * (network.heads + 2)
    require(
        f"attention over {steps} steps of {batch} trajectories",
        each * batch,
        f"trajectories={allowance() // each} would fit" if allowance() >= each else "a shorter horizon would fit",
    )


def _matrices(network: Attentive, x: Float[Tensor, "time batch ..."], layer: int) -> Float[np.ndarray, "batch T T"]:
    """Return the weights of each trajectory."""
    with torch.no_grad():
        found = network.attention(arranged(network, x), layer=layer).matrix()
    if not bool(found.isfinite().all()):
        raise UserError("the weights of attention are NaN or infinite; take a shorter horizon or smaller inputs")
    return np.asarray(found.double().cpu().numpy())


def _gradients(
    network: Attentive, x: Float[Tensor, "time batch ..."], layer: int, skips: int, directions: int | None, seed: int
) -> tuple[Float[np.ndarray, "T S"], Float[np.ndarray, " T"]]:
    """Return the sizes of the parts and of the whole, a few trajectories at a time."""
    (steps, batch), width = x.shape[:2], network.macro_size
    generator = torch.Generator().manual_seed(seed + 1)
    ways = width if directions is None else directions
    each = 8 * (skips + 1) * ways * (steps + 2 * (network._slots_for(steps) + 2)) * width
    what = f"the gradient of {steps} steps in {skips + 1} parts by {ways} directions"
    require(what, each, "fewer skips, fewer directions or a shorter horizon would fit")
    together = max(1, int(min(batch, allowance() // 4 // each)))
    parts, whole = np.zeros((steps, skips + 1)), np.zeros(steps)
    for some in torch.split(x, together, 1):
        shape = (ways, some.shape[1], width)
        if directions is None:
            g = torch.eye(width).unsqueeze(1).expand(shape)
        else:
            g = torch.randn(shape, generator=generator, dtype=torch.float64) / ways**0.5
        g = g.to(next(network.parameters()))
        found = gradients_by_skips(network, arranged(network, some), g, skips=skips, layer=layer).double().cpu()
        parts += found.square().sum((2, 3, 4)).numpy()
        whole += found.sum(1).square().sum((1, 2, 3)).numpy()
    return np.sqrt(parts / batch), np.sqrt(whole / batch)
