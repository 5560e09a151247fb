"""State-tracking witness: two histories that a network confuses, beside the second-order network that does not."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, NamedTuple

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn

from mnemoscope.core.errors import UserError, positive_int
from mnemoscope.core.result import Result, result
from mnemoscope.measures.dynamics import Dynamics
from mnemoscope.measures.registry import Cost, measure
from mnemoscope.nn.first_order import FirstOrder
from mnemoscope.nn.networks.second_order import SecondOrderRNN
from mnemoscope.nn.recurrent import Recurrent
from mnemoscope.theory.formulas.tracking import product_tracker

if TYPE_CHECKING:
    from mnemoscope.report import chart

__all__ = ["StateTrackingWitness", "state_tracking_witness"]

_PATIENCE = 12
_CLOSE = 1e-14


class HistoryPair(NamedTuple):
    """Two histories, of which the second has a zero where the first has 1 or -1."""

    history: Float[Tensor, "time input"]
    twin: Float[Tensor, "time input"]


def final_states(system: Dynamics, histories: Float[Tensor, "time batch input"]) -> Float[Tensor, "batch size"]:
    """Return the flat states after histories from the start."""
    return system.flatten(system.drive(histories, system.start(histories.shape[1]))[-1])


def invisible_pair(system: Dynamics, history: Float[Tensor, "time input"]) -> tuple[HistoryPair | None, int]:
    """Return two histories that a state which is affine in its inputs cannot tell apart, and the map's numerical rank.

    The difference is the least one that turns an entry of `history` into zero; None when there is none at all.
    """
    size = history.numel()
    impulses = torch.eye(size, **system.factory).reshape(size, *history.shape).transpose(0, 1)
    nothing = torch.zeros_like(impulses[:, :1])
    states = final_states(system, torch.cat([nothing, impulses], dim=1))
    response = (states[1:] - states[0]).mT
    _, values, right = torch.linalg.svd(response)
    cut = values.max() * max(response.shape) * torch.finfo(response.dtype).eps
    rank = int((values > cut).sum())
    null = right[max(rank, min(response.shape)) :] if response.shape[0] < size else right[rank:]
    if len(null) == 0:
        return None, rank
    visible = null.square().sum(dim=0)  # how much of each single entry lies in the null space
    entry = int(visible.argmax())
    difference = -history.reshape(-1)[entry] * (null.mT @ null[:, entry]) / visible[entry]
    twin = history.reshape(-1) + difference
    twin[entry] = 0.0
    return HistoryPair(history, twin.reshape(history.shape)), rank


def search_pair(system: Dynamics, history: Float[Tensor, "time input"], iterations: int) -> HistoryPair:
    """Return a history whose first entry is zero and that leads to nearly the same state: Levenberg and Marquardt."""
    goal = final_states(system, history[:, None])[0]
    free = torch.ones(history.numel(), dtype=torch.bool, device=history.device)
    free[0] = False
    twin = history.clone()
    twin.view(-1)[0] = 0.0
    damping, failed, left = 1e-3, 0, final_states(system, twin[:, None])[0] - goal
    while iterations and failed < _PATIENCE and bool(left.norm() > _CLOSE * goal.norm()):
        left_vectors, values, right = torch.linalg.svd(_sensitivity(system, twin)[:, free], full_matrices=False)
        failed = 0
        while failed < _PATIENCE:
            weight = values / (values.square() + damping * values.square().max() + 1e-300)
            trial = twin.clone()
            trial.view(-1)[free] -= right.mT @ (weight * (left_vectors.mT @ left))
            new = final_states(system, trial[:, None])[0] - goal
            if bool(new.norm() < left.norm()):
                twin, left, damping = trial, new, damping / 10
                break
            damping, failed = damping * 5, failed + 1
        iterations -= 1
    return HistoryPair(history, twin)


def _sensitivity(system: Dynamics, history: Float[Tensor, "time input"]) -> Float[Tensor, "size inputs"]:
    """Return the derivative of the last state by all inputs: one batch of Jacobians, chained from the end."""
    states = system.drive(history[:, None], system.start(1))[:-1]
    jacobians = system.jacobians(history, system.join(states))
    chain, blocks = torch.eye(system.size, **system.factory), []
    for state, entry in zip(jacobians.state.flip(0), jacobians.input.flip(0), strict=True):
        blocks.append(chain @ entry)
        chain = chain @ state
    return torch.cat(blocks[::-1], dim=1)


_WHAT = "state_tracking_witness"
_LONGEST = 64
_DRAWS = 32
_EQUAL = 1e-9


@result
class StateTrackingWitness(Result):
    """Two histories that lead a network to the same state, or nearly, and a second-order network to different ones.

    Attributes
    ----------
    history, twin
        The two; the first is made of 1 and -1, the second has a zero in it.
    proved
        Whether the network provably has such a pair for want of units: its state is affine in the inputs, and has
        fewer numbers than they.
    gap
        Distance of the two states, as a share of the mean distance that a random difference of the same size makes.
    distance
        Of the two states.
    tracker_gap
        Largest difference of the second-order network's two answers: 1 at least.
    distances, tracker_distances
        Of the two states after each step, the same inputs following both histories from step `horizon` on.
    outputs, tracker_outputs
        Of both networks after both histories: one row for each history.
    horizon
        Steps of a history.
    rank
        Of the map from histories to states, where it is affine; None for others.
    state_size, input_size
        Numbers in the state, and in one input.
    """

    measure: ClassVar[str] = "state-tracking-witness"
    references: ClassVar[tuple[str, ...]] = ("lizaire2026",)

    history: Float[np.ndarray, "time input"]
    twin: Float[np.ndarray, "time input"]
    proved: bool
    gap: float
    distance: float
    tracker_gap: float
    distances: Float[np.ndarray, " steps"]
    tracker_distances: Float[np.ndarray, " steps"]
    outputs: Float[np.ndarray, "2 output"]
    tracker_outputs: Float[np.ndarray, "2 input"]
    horizon: int
    rank: int | None
    state_size: int
    input_size: int

    def __str__(self) -> str:
        words = ((_EQUAL, "confused"), (1e-3, "nearly confused"))
        how = next((word for most, word in words if self.gap <= most), "not confused")
        return (
            f"two histories of {self.horizon} steps are {'provably confused' if self.proved else how}: "
            f"states {self.gap:.2g} of a random difference apart ({self.state_size} numbers in the state), "
            f"answers of the 2RNN {self.tracker_gap:.3g} apart"
        )

    def plot(self) -> chart.Chart:
        """Draw both histories (the input in which the 2RNN sees them differ most), and the distances of the states."""
        from mnemoscope.report import chart

        shown = int(np.abs(np.subtract(*self.tracker_outputs)).argmax())
        steps = np.arange(1, self.horizon + 1)
        which = f" {shown}" if self.input_size > 1 else ""
        histories = chart.lines(
            {"first": (steps, self.history[:, shown]), "second": (steps, self.twin[:, shown])},
            x="step",
            y=f"input{which}",
            title="Two histories",
            points=True,
        )
        later = np.arange(1, len(self.distances) + 1)
        floor = np.finfo(np.float64).eps / 8  # equal states have no place on a log axis
        distances = chart.lines(
            {
                "2RNN": (later, np.maximum(self.tracker_distances, floor)),
                "this network": (later, np.maximum(self.distances, floor)),
            },
            x="step",
            y="distance of the two states",
            title=f"The same inputs follow after step {self.horizon}",
            log_y=True,
        )
        return chart.beside(histories, distances)


_COST = Cost(
    time={"I R T S^3": 1e-10, "I R T": 5e-5},
    memory="T S^2",
    sizes={
        "T": lambda given: given["horizon"] or min(_LONGEST, given["S"] // given["d"] + 2),
        "I": "iterations",
        "R": "restarts",
    },
    letters={"I": "iterations of a search", "R": "searches"},
)


@measure("state-tracking-witness", kinds=("recurrent",), needs=("jacobian",), cost=_COST)
def state_tracking_witness(
    network: nn.Module,
    horizon: int | None = None,
    after: int = 8,
    *,
    iterations: int = 30,
    restarts: int = 3,
    seed: int = 0,
) -> StateTrackingWitness:
    r"""Return two histories that a network confuses and a second-order network tells apart.

    Where the state is affine in the inputs (a linear network of any depth, or one layer with ``activation="depth"``),

    .. math::
        h_t = [V^{t-1} U, .., V U, U] \, (x_1, .., x_t) + \text{const},

    and as soon as it has fewer numbers than the history, S < d t, two histories that differ by a null vector lead to
    the same state, and to the same outputs ever after. The first history here is made of 1 and -1, the second is the
    nearest with a zero in it: to the one the second-order network h_t = x_t * h_{t-1}, h_0 = 1, answers 1 or -1, to
    the other 0.

    For any other network such a pair is searched by Levenberg and Marquardt's method, from several histories.

    Parameters
    ----------
    network
        A recurrent network, or a module that `mnemoscope.adapt` understands.
    horizon
        Steps t of a history; None: the first with S < d t, for networks that are searched at most 64.
    after
        Steps that follow both histories, with the same inputs.
    iterations
        Steps of a search.
    restarts
        Searches at most, of which the best is kept.
    seed
        Draws the histories and what follows.

    References
    ----------
    Lizaire et al., On the Role of Depth in the Expressivity of RNNs, Theorem 5 and Lemma 4.

    Examples
    --------
    >>> import torch, mnemoscope as ms
    >>> layer = ms.nn.RNN(1, 4, activation="depth", generator=torch.Generator().manual_seed(0))
    >>> found = state_tracking_witness(layer)
    >>> found.horizon, found.proved, found.gap < 1e-12, found.tracker_gap
    (5, True, True, 1.0)
    """
    system = Dynamics.of(network, _WHAT)
    size, d = system.network.state_size, system.input_size
    if size is None:
        name = type(system.original).__name__
        raise UserError(f"{_WHAT} needs a state of fixed size, got {name}, whose state grows")
    affine = _affine(system.network)
    needed = size // d + 1
    steps = (needed if affine else min(needed + 1, _LONGEST)) if horizon is None else positive_int("horizon", horizon)
    draw = torch.Generator().manual_seed(seed)
    rank: int | None = None
    if affine:
        found, rank = invisible_pair(system, _signs(draw, system, steps, d))
        if found is None:
            raise UserError(
                f"{_WHAT} needs more steps: a state of {size} numbers tells apart all histories of {steps} steps of "
                f"{d} inputs; horizon={needed} is enough"
            )
    else:
        starts = [_signs(draw, system, steps, d) for _ in range(positive_int("restarts", restarts))]
        found = _best(system, starts, positive_int("iterations", iterations), seed)
    return _witness(system, found, affine and size < d * steps, rank, _after(after), seed)


def _best(system: Dynamics, starts: list[Tensor], iterations: int, seed: int) -> HistoryPair:
    """Search from one history after the other, until two states are equal for all that float64 can say."""
    best = search_pair(system, starts[0], iterations)
    for start in starts[1:]:
        if _gap(system, best, seed)[0] <= _EQUAL:
            break
        pair = search_pair(system, start, iterations)
        best = min(best, pair, key=lambda each: _gap(system, each, seed)[0])
    return best


def _affine(network: Recurrent) -> bool:
    """Tell whether the state is an affine function of the inputs."""
    if not isinstance(network, FirstOrder):
        return False
    return network.nonlinearity == "identity" or (network.activation == "depth" and network.num_layers == 1)


def _after(after: int) -> int:
    return 0 if after == 0 and not isinstance(after, bool) else positive_int("after", after)


def _signs(draw: torch.Generator, system: Dynamics, *shape: int) -> Tensor:
    return (2.0 * torch.randint(0, 2, shape, generator=draw) - 1).to(**system.factory)


def _gap(system: Dynamics, pair: HistoryPair, seed: int) -> tuple[float, float]:
    """Return the distance of the two states: as a share of what random differences of that size make, and itself."""
    draw = torch.Generator().manual_seed(seed)
    noise = torch.randn(_DRAWS, *pair.history.shape, generator=draw, dtype=torch.float64).to(pair.history)
    noise *= (pair.twin - pair.history).norm() / noise.flatten(1).norm(dim=1)[:, None, None]
    others = pair.history[:, None] + noise.transpose(0, 1)
    states = final_states(system, torch.cat([pair.history[:, None], pair.twin[:, None], others], dim=1))
    distances = (states[1:] - states[0]).norm(dim=1)
    distance, typical = float(distances[0]), float(distances[1:].mean())
    return (distance / typical if typical > 0 else 0.0), distance


def _witness(
    system: Dynamics, pair: HistoryPair, proved: bool, rank: int | None, after: int, seed: int
) -> StateTrackingWitness:
    steps, d = pair.history.shape
    draw = torch.Generator().manual_seed(seed + 1)
    follow = _signs(draw, system, after, d)[:, None].expand(-1, 2, -1)
    inputs = torch.cat([torch.stack(pair, dim=1), follow])
    states = system.drive(inputs, system.start(2))
    outputs = system.step(inputs[steps - 1], states[steps - 1])[0]
    tracked = _tracker(d)(inputs.cpu().double(), torch.ones(1, 2, d, dtype=torch.float64))[0].detach()
    gap, distance = _gap(system, pair, seed)
    flat = torch.stack([system.flatten(state) for state in states[1:]])
    return StateTrackingWitness(
        status="exact" if proved else "estimate",
        digits=None,
        assumptions=_assumptions(proved),
        cost="O(S (d t)^2) time for an affine state, else O(t S^3) for an iteration; O(t S^2) memory",
        history=pair.history.cpu().numpy(),
        twin=pair.twin.cpu().numpy(),
        proved=proved,
        gap=gap,
        distance=distance,
        tracker_gap=float((tracked[steps - 1, 0] - tracked[steps - 1, 1]).abs().max()),
        distances=(flat[:, 0] - flat[:, 1]).norm(dim=1).cpu().numpy(),
        tracker_distances=(tracked[:, 0] - tracked[:, 1]).norm(dim=1).numpy(),
        outputs=outputs.detach().cpu().numpy(),
        tracker_outputs=tracked[steps - 1].numpy(),
        horizon=steps,
        rank=rank,
        state_size=system.size,
        input_size=d,
    )


def _tracker(input_size: int) -> SecondOrderRNN:
    network = SecondOrderRNN(input_size, input_size, nonlinearity="identity", bias=False, dtype=torch.float64)
    network.load_state_dict({name: torch.as_tensor(value) for name, value in product_tracker(input_size).items()})
    return network


def _assumptions(proved: bool) -> tuple[str, ...]:
    if proved:
        return ("inputs are real numbers", "the distance is the rounding of float64: the pair exists by dimension")
    return ("inputs are real numbers", "a search proves nothing where it fails, and shows one pair where it succeeds")
