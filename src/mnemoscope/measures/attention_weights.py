"""Attention of a network to its own past: its weights, the states that matter, and how far dependencies reach."""

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
from mnemoscope.measures.registry import Cost, measure
from mnemoscope.nn.attention import Attentive

if TYPE_CHECKING:
    from mnemoscope.report.chart import Chart

__all__ = ["AttentionWeights", "attention"]

_CELLS = 60  # a side of the heat map


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

    def __str__(self) -> str:
        return (
            f"{self.relevant:.3g} relevant events in {len(self.weights)} steps; "
            f"dependency depth {self.depth:.3g}, kappa {self.kappa:.4g}"
        )

    def plot(self) -> Chart:
        """Draw the weights as a map; of a long sequence each cell is the largest of a block of them."""
        from mnemoscope.report.chart import heat_map

        first = np.arange(0, len(self.weights), -(-len(self.weights) // _CELLS))
        cells = np.maximum.reduceat(np.maximum.reduceat(self.weights, first, axis=0), first, axis=1)
        return heat_map(
            cells,
            x="state of step i",
            y="step t",
            value="weight",
            title=f"Attention to past states in layer {self.layer}",
            x_ticks=first.tolist(),
            y_ticks=first.tolist(),
        )


_COST = Cost(
    time={"B T^3": 1.5e-9, "T": 1e-3},
    memory="B T^2",
    sizes={"B": "trajectories", "T": "horizon"},
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
    scale: float = 1.0,
    inputs: Any = None,
    seed: int = 0,
) -> AttentionWeights:
    r"""Return the weights with which a network attends to its past states, and the dependencies that they carry.

    With alpha_{t,i} the weight at step t on h_i, in the mean over heads, of each trajectory:

    .. math::
        \text{events} = \{i : \max_{t > i} \alpha_{t,i} > \theta\}, \qquad
        \kappa = \max_t |\{i : \alpha_{t,i} > 0\}|, \qquad
        d_i = \min \{s : \alpha_{a_1,i}\, \alpha_{a_2,a_1+1} \cdots \alpha_{T,a_s+1} > \theta,\
        i \le a_1 < \dots < a_s < T\}

    where the recurrent way h_a -> s_a counts with 1 + alpha_{a,a}; the dependency depth is the largest d_i. A network
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
    scale
        Standard deviation of the Gaussian inputs.
    inputs
        Inputs (time, trajectories, input_size) in place of Gaussian ones, which then say horizon and trajectories.
    seed
        Of the inputs.

    Returns
    -------
    AttentionWeights

    References
    ----------
    Kerg et al. (2020), sections 4.4.1 and 4.5: relevant events, dependency depth and sparsity coefficient.

    Examples
    --------
    >>> import mnemoscope as ms
    >>> network = ms.nn.create("memrnn", input_size=2, hidden_size=8, generator=torch.Generator().manual_seed(0))
    >>> found = attention(network, horizon=20, trajectories=4)
    >>> found.kappa, found.weights.shape
    (20.0, (20, 20))
    """
    if not isinstance(network, Attentive):
        wanted = "one that attends to its past states, such as relrnn, memrnn or sab"
        raise expected("network", wanted, Description(type(network).__name__))
    limit = positive("threshold", threshold)
    if limit >= 1:
        raise expected("threshold", "below 1", threshold)
    x = _drawn(network, horizon, trajectories, scale, seed) if inputs is None else _given(network, inputs)
    matrices = _matrices(network, x, layer)
    depths = np.stack([dependency_depths(each, limit) for each in matrices])
    events = (np.tril(matrices, -1) > limit).any(axis=1)
    return AttentionWeights(
        status="estimate" if inputs is None else "exact",
        digits=None,
        assumptions=(
            f"{len(matrices)} trajectories" + (" of Gaussian inputs" if inputs is None else ""),
            "paths count weights of attention and the recurrent way, not the Jacobians between them",
        ),
        cost="O(B T m) time for m slots, then O(B T^2) for each intermediate state; O(B T^2) memory",
        layer=layer,
        weights=matrices.mean(axis=0),
        events=events.mean(axis=0),
        relevant=float(events.sum(axis=1).mean()),
        depths=depths.mean(axis=0),
        depth=float(depths.max(axis=1).mean()),
        kappa=float(np.mean([attention_kappa(each) for each in matrices])),
        threshold=limit,
    )


def _drawn(
    network: Attentive, horizon: int, trajectories: int, scale: float, seed: int
) -> Float[Tensor, "time batch ..."]:
    steps, batch = positive_int("horizon", horizon), positive_int("trajectories", trajectories)
    _require(network, steps, batch)
    generator = torch.Generator().manual_seed(seed)
    drawn = torch.randn(steps, batch, *network.input_shape, generator=generator, dtype=torch.float64)
    return positive("scale", scale) * drawn


def _given(network: Attentive, inputs: Any) -> Float[Tensor, "time batch ..."]:
    found = torch.as_tensor(inputs, dtype=torch.float64)
    shape = tuple(network.input_shape)
    if found.dim() != 2 + len(shape) or tuple(found.shape[2:]) != shape or not found.numel():
        wanted = ", ".join(str(size) for size in shape)
        raise expected("inputs", f"of shape (time, trajectories, {wanted})", tuple(found.shape))
    if not bool(found.isfinite().all()):
        raise expected("inputs", "finite", Description("NaN or infinity"))
    _require(network, *found.shape[:2])
    return found


def _require(network: Attentive, steps: int, batch: int) -> None:
    """Refuse weights that do not fit: one for each head, step and slot, and the table of all steps."""
    each = 8 * steps * steps * (network.heads + 2)
    require(
        f"attention over {steps} steps of {batch} trajectories",
        each * batch,
        f"trajectories={allowance() // each} would fit" if allowance() >= each else "a shorter horizon would fit",
    )


def _matrices(network: Attentive, x: Float[Tensor, "time batch ..."], layer: int) -> Float[np.ndarray, "batch T T"]:
    """Return the weights of each trajectory, while the network answers instead of learning."""
    like, training = next(network.parameters()), network.training
    x = x.to(like)
    network.eval()
    try:
        with torch.no_grad():
            found = network.attention(x.transpose(0, 1) if network.batch_first else x, layer=layer).matrix()
    finally:
        network.train(training)
    if not bool(found.isfinite().all()):
        raise UserError("the weights of attention are NaN or infinite; take a shorter horizon or smaller inputs")
    return np.asarray(found.double().cpu().numpy())
