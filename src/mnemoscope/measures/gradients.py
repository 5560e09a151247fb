"""Norms of a loss's gradient, carried back through time and rescaled on its way so that no size is lost."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from mnemoscope.core.arrays import non_negative
from mnemoscope.core.errors import Description, UserError, choice, expected, positive_int
from mnemoscope.core.result import Result, result
from mnemoscope.measures.dynamics import Dynamics, few_threads
from mnemoscope.measures.growth import fit_growth
from mnemoscope.measures.registry import Cost, measure
from mnemoscope.measures.trajectory import Path, drive
from mnemoscope.nn.attention import Attentive

if TYPE_CHECKING:
    from mnemoscope.report import chart

__all__ = ["GradientNorms", "gradient_norms"]

_PROBES = 64

_CONSTANT = 1e-9
"""Standard deviation of an output, as a share of its root mean square, below which it is constant."""

_ENDS = ("states", "inputs")


class LossGradient(NamedTuple):
    """Gradient of a loss at the outputs and at the last state.

    Attributes
    ----------
    last
        The gradient at the last state that does not come by way of outputs.
    outputs
        The gradient at the output of every step; None: no loss looks at outputs.
    places
        Which number of the state each output is; None: outputs are no such numbers.
    said
        What is to be assumed, in words.
    """

    last: Float[Tensor, "batch size"]
    outputs: Float[Tensor, "time batch output"] | None
    places: Int[Tensor, " output"] | None
    said: tuple[str, ...]


def random_readout(path: Path, generator: torch.Generator) -> LossGradient:
    """Return the gradient of a random unit vector, one for each trajectory, read out of the last state."""
    flow = path.dynamics
    readout = torch.randn(path.inputs.shape[1], len(flow.read), generator=generator, dtype=torch.float64)
    readout = readout.to(**flow.factory)
    last = readout.new_zeros(len(readout), flow.size)
    last[:, flow.read] = readout / readout.norm(dim=1, keepdim=True)
    return LossGradient(last, None, None, ("the loss is a random unit vector read out of the last state",))


def output_spread(path: Path) -> LossGradient:
    r"""Return the gradient of how far the last output is from the mean, each unit in its own standard deviations.

    .. math:: L = \tfrac12 \sum_i (y_i(T) - \bar y_i)^2 / \sigma_i^2,

    scaled to norm one, with mean and deviation over time and trajectories, so that neither the scale nor the order of
    outputs matters; constant ones are left out.
    """
    flow, y = path.dynamics, _outputs(path).flatten(2)
    spread = y.flatten(0, 1).std(0, correction=0)
    moves = spread > _CONSTANT * y.square().mean((0, 1)).sqrt()
    if not bool(moves.any()):
        raise UserError("gradient_norms at the inputs needs outputs that move, and all are constant")
    far = torch.where(moves, (y[-1] - y.mean((0, 1))) / torch.where(moves, spread, 1.0), 0.0)
    whole = torch.zeros_like(y)
    whole[-1] = far / far.norm(dim=1, keepdim=True) / torch.where(moves, spread, 1.0)
    said = ("the loss is the last output's squared distance from its mean, each unit in its own standard deviations",)
    return LossGradient(torch.zeros_like(flow.flatten(path.states[-1])), whole, None, said)


def loss_gradient(path: Path, loss: Callable[[Tensor], Tensor]) -> LossGradient:
    """Return the gradient of a loss at all outputs."""
    flow = path.dynamics
    leaf = _outputs(path).clone().requires_grad_()
    value = loss(leaf)
    if not isinstance(value, Tensor) or value.numel() != 1 or not value.requires_grad:
        came = f"a tensor of shape {tuple(value.shape)}" if isinstance(value, Tensor) else type(value).__name__
        raise expected("loss(outputs)", "one number that depends on the outputs", Description(came))
    by_output = torch.autograd.grad(value.sum(), leaf)[0]
    if not bool(by_output.isfinite().all()):
        raise expected("the gradient of loss(outputs)", "finite", Description("NaN or infinity"))
    return LossGradient(torch.zeros_like(flow.flatten(path.states[-1])), by_output.flatten(2), _places(flow), ())


@torch.no_grad()
def _outputs(path: Path) -> Float[Tensor, "time batch *output"]:
    """Return the output of every step: read off the states, where it is a part of them."""
    flow, (x, state) = path.dynamics, (path.inputs[0], path.states[0])
    places = _places(flow)
    if places is not None:
        shape = flow.step(x, state)[0].shape
        return torch.stack([flow.flatten(after)[:, places].reshape(shape) for after in path.states[1:]])
    return torch.stack([flow.step(x, s)[0] for x, s in zip(path.inputs, path.states[:-1], strict=True)])


def _places(flow: Dynamics) -> Int[Tensor, " output"] | None:
    """Find which numbers of the state the outputs are, at states that occur: a network that gives out its state.

    They are the same two steps running: a memory that is a ring, or grows, has its newest state elsewhere at each.
    """
    generator = torch.Generator().manual_seed(0)
    state = flow.probe_states(_PROBES, generator)
    outputs, states = [], []
    with torch.no_grad():
        for _ in range(2):
            x = torch.randn(_PROBES, flow.input_size, generator=generator, dtype=torch.float64).to(**flow.factory)
            y, state = flow.step(x, state)
            outputs.append(y.flatten(1))
            states.append(flow.flatten(state))
    y, after = torch.cat(outputs), torch.cat(states)
    # Neighbours of the state, as most outputs are: units that are always zero could else be taken for each other.
    for first in range(after.shape[1] - y.shape[1] + 1):
        if torch.equal(after[:, first : first + y.shape[1]], y):
            return torch.arange(first, first + y.shape[1], device=after.device)
    free = torch.ones(after.shape[1], dtype=torch.bool, device=after.device)
    places = []
    for column in y.T:
        same = ((after == column[:, None]).all(0) & free).nonzero().flatten()
        if not len(same):
            return None
        places.append(int(same[0]))
        free[same[0]] = False
    return torch.tensor(places, device=after.device)


def backward_log_norms(path: Path, source: LossGradient) -> Float[np.ndarray, "lags batch"]:
    """Return ln of the gradient's norm at the last state, the one before it, .. the first, for every trajectory."""
    flow, carried, logs = path.dynamics, _Scaled.of(source.last), []
    network = flow.network
    watched: Any = network.watched if isinstance(network, Attentive) else partial(nullcontext, [])
    cells = _cells(flow) if isinstance(network, Attentive) else None
    for t in range(len(path.inputs), 0, -1):
        own = None if source.outputs is None else source.outputs[t - 1]
        given = carried if own is None else carried.beside(_Scaled.of(own))
        after, output = given.values[:, : flow.size], None if own is None else given.values[:, flow.size :]
        with watched() as made:
            before, _, *by_made = flow.pull_back(path.inputs[t - 1], path.states[t - 1], after, output, made)
        if cells is None:
            whole = carried if own is None else carried.plus(_Scaled.of(_at_state(path, t, own, source.places)))
            logs.append(whole.log_norm(flow.read))
        else:
            logs.append(torch.cat([*by_made, after[:, cells]], dim=1).norm(dim=1).log() + given.log)
        carried = _Scaled.of(before, given.log)
    logs.append(carried.log_norm(flow.read))
    return torch.stack(logs).cpu().numpy()


def _cells(flow: Dynamics) -> Int[Tensor, " units"]:
    """Return the places in the flat state of the cells of an attentive network's LSTM cores."""
    like = flow.start(1)
    places = flow.unflatten(torch.arange(flow.size, **flow.factory).unsqueeze(0), like)
    cells = [part.flatten() for layer in places for part in layer.carried]
    return torch.cat(cells).long() if cells else torch.zeros(0, dtype=torch.int64, device=flow.factory["device"])


def input_log_norms(path: Path, source: LossGradient) -> Float[np.ndarray, "lags batch"]:
    """Return ln of the gradient's norm at the last input, the one before it, .. the first, for every trajectory."""
    flow, logs = path.dynamics, []
    carried = _Scaled.of(source.last)
    for t in range(len(path.inputs), 0, -1):
        own = None if source.outputs is None else source.outputs[t - 1]
        given = carried if own is None else carried.beside(_Scaled.of(own))
        after, output = given.values[:, : flow.size], None if own is None else given.values[:, flow.size :]
        before, at_input = flow.pull_back(path.inputs[t - 1], path.states[t - 1], after, output)
        logs.append(at_input.norm(dim=1).log() + given.log)
        carried = _Scaled.of(before, given.log)
    return torch.stack(logs).cpu().numpy()


def _at_state(path: Path, t: int, own: Float[Tensor, "batch output"], places: Int[Tensor, " output"] | None) -> Tensor:
    """Return the gradient at the state after step t that comes by way of the output of that step."""
    flow = path.dynamics
    found = own.new_zeros(own.shape[0], flow.size)
    if not bool(own.any()):
        return found
    if places is not None:
        return found.index_add(1, places, own)
    # y = o(h'), both known as functions of (h, x): the gradient g at h' solves dh'/d(h,x)^T g = dy/d(h,x)^T c.
    x, state = path.inputs[t - 1], path.states[t - 1]
    by_output = torch.cat(flow.pull_back(x, state, found, own), dim=1)
    jacobians = flow.jacobians(x, state)
    columns = torch.cat([jacobians.state, jacobians.input], dim=2).mT
    solved: Tensor = (torch.linalg.pinv(columns) @ by_output.unsqueeze(2)).squeeze(2)
    return solved


class _Scaled(NamedTuple):
    """Rows ``values * exp(log)``, each with its own scale; the values of every row have norm one, or are zero."""

    values: Float[Tensor, "batch size"]
    log: Float[Tensor, " batch"]

    @classmethod
    def of(cls, values: Tensor, log: Tensor | float = 0.0) -> _Scaled:
        """Take the norm of each row out of it."""
        norm = values.norm(dim=1)
        return cls(values / torch.where(norm > 0, norm, 1.0).unsqueeze(1), norm.log() + log)

    def plus(self, other: _Scaled) -> _Scaled:
        """Return the sum."""
        joint = self._joint(other)
        return _Scaled.of(self._at(joint) + other._at(joint), joint)

    def beside(self, other: _Scaled) -> _Scaled:
        """Return the rows of both, one after the other, at one scale."""
        joint = self._joint(other)
        return _Scaled(torch.cat([self._at(joint), other._at(joint)], dim=1), joint)

    def log_norm(self, places: Int[Tensor, " units"]) -> Float[Tensor, " batch"]:
        """Return ln of the norm of each row, of the units that are read out."""
        logs: Tensor = self.values[:, places].norm(dim=1).log() + self.log
        return logs

    def _joint(self, other: _Scaled) -> Tensor:
        larger = torch.maximum(self.log, other.log)
        return torch.where(larger.isneginf(), 0.0, larger)

    def _at(self, log: Tensor) -> Tensor:
        return self.values * (self.log - log).exp().unsqueeze(1)


_WHAT = "gradient_norms"


@result
class GradientNorms(Result):
    """Norms of the gradient at the states of a trajectory, from its end back to its beginning.

    Attributes
    ----------
    norms
        ``norms[k]`` is ``||dL/dh_{T-k}||`` (at inputs ``||dL/dx_{T-k}||``), k = 0, 1, ..: the geometric mean over the
        trajectories in which it is not zero; 0 where float64 cannot hold it, which `log_norms` can.
    log_norms
        Their natural logarithms; minus infinity where the gradient is exactly zero in all trajectories.
    spread
        Standard deviation of the logarithm over trajectories.
    vanished
        Share of the trajectories in which the gradient is exactly zero, by lag.
    rate
        Slope of ln norm per step back: below zero gradients vanish, above they explode.
    order
        p of the best power law k^p.
    law
        The law that fits better: ``"exponential"``, ``"polynomial"``; ``"constant"`` when nothing changes and
        ``"vanished"`` when the gradient is zero after a few steps.
    misfit_exponential, misfit_polynomial
        Root mean square distance of ln norm from the two laws.
    """

    measure: ClassVar[str] = "gradients"
    references: ClassVar[tuple[str, ...]] = ("pascanu2013", "kerg2019")

    norms: Float[np.ndarray, " lags"]
    log_norms: Float[np.ndarray, " lags"]
    spread: Float[np.ndarray, " lags"]
    vanished: Float[np.ndarray, " lags"]
    rate: float
    order: float
    law: str
    misfit_exponential: float
    misfit_polynomial: float

    def __str__(self) -> str:
        says = {
            "exponential": f"exponential, rate {self.rate:.6g} per step back",
            "polynomial": f"polynomial, order {self.order:.4g} in the lag",
            "constant": "constant",
            "vanished": "exactly zero after a few steps",
        }
        return f"gradient over {len(self.norms) - 1} steps back: {says[self.law]}"

    def plot(self) -> chart.Chart:
        """Draw log10 of the norm by lag, with a band of one standard deviation over trajectories."""
        from mnemoscope.report import chart

        lags, ten = np.arange(len(self.norms), dtype=float), math.log(10)
        middle = self.log_norms
        low, high = (middle - self.spread) / ten, (middle + self.spread) / ten
        return chart.lines(
            {"mean": (lags, middle / ten)},
            bands={"mean": (low, high)},
            x="steps back from the end, k",
            y="log10 of the gradient norm |dL/dh(T-k)|",
            title=f"Gradients: {self.law}",
        )


_COST = Cost(
    time={"B T S^2": 4e-10, "T": 2.5e-4},
    memory="B T S",
    sizes={"T": "horizon", "B": "trajectories"},
    paced=lambda n, pace: n["T"] * (pace.step(n["B"]) + pace.pull(n["B"])),
)


@measure("gradients", kinds=("recurrent",), needs=("jacobian",), quick={"trajectories": 8, "horizon": 200}, cost=_COST)
def gradient_norms(
    network: nn.Module | Dynamics,
    *,
    loss: Callable[[Tensor], Tensor] | None = None,
    horizon: int = 200,
    trajectories: int = 16,
    scale: float = 1.0,
    washout: int = 0,
    inputs: Any = None,
    at: str = "states",
    seed: int = 0,
    device: str | None = None,
) -> GradientNorms:
    r"""Return the norms of dL/dh_t along driven trajectories, by the number of steps back from the end.

    .. math::
        \frac{dL}{dh_{t-1}} = A_t^\top \frac{dL}{dh_t} + \frac{\partial L}{\partial y_{t-1}}
        \frac{\partial y_{t-1}}{\partial h_{t-1}}, \quad A_t = \frac{\partial h_t}{\partial h_{t-1}},

    h the flat `readout_state`. The gradient is rescaled on its way, so that neither a norm of 1e-3000 nor one of 1e3000
    is lost; the fit says whether it changes exponentially or polynomially with the lag.

    Of a network that attends to its past states h is the state as its core made it (and the cell of an LSTM core),
    and the derivative the total one: h also acts through its copies in the memory.

    Parameters
    ----------
    network
        A recurrent network, or any module that `mnemoscope.adapt` understands.
    loss
        A function of the outputs (time, trajectories, output) that returns one number, the sum or mean over
        trajectories; None: a random unit vector read out of the last state, one for each trajectory.
    horizon
        Steps back, T.
    trajectories
        Trajectories to average over.
    scale
        Standard deviation of the Gaussian inputs.
    washout
        Steps before the first that counts; 0: from the network's initial state.
    inputs
        Inputs (time, trajectories, input_size) in place of Gaussian ones, which then say horizon and trajectories.
    at
        Where the gradient is looked at: "states", or "inputs", dL/dx_t. There the loss is by default how far the
        last output is from its mean, in standard deviations of each unit, so that nothing depends on scale or order of
        units: those that no output reads, or no input reaches, do not count.
    seed
        Of inputs and readouts.
    device
        Where to compute; None: where the network is.

    Returns
    -------
    GradientNorms
        With ``.norms``, ``.rate`` and the law that fits better.

    Notes
    -----
    Cost: one step and one pullback of it per step, O(trajectories T S^2) for S numbers in the state.

    References
    ----------
    Pascanu, Mikolov and Bengio (2013); Kerg et al. (2019), Proposition 3.4.2, for polynomial growth.

    Examples
    --------
    >>> import torch, mnemoscope as ms
    >>> from mnemoscope.measures.gradients import gradient_norms
    >>> layer = ms.nn.LinearRNN(1, 4, init="random")
    >>> layer.weight_hh_l0 = 0.5 * layer.weight_hh_l0
    >>> found = gradient_norms(layer, horizon=2000, trajectories=2)
    >>> print(found)
    gradient over 2000 steps back: exponential, rate -0.693147 per step back
    """
    choice("at", at, _ENDS)
    flow = Dynamics.of(network, _WHAT, device=device)
    generator = torch.Generator().manual_seed(seed)
    given = None if inputs is None else _inputs(inputs, flow)
    steps = positive_int("horizon", horizon) if given is None else given.shape[0]
    count = positive_int("trajectories", trajectories) if given is None else given.shape[1]
    before = 0 if washout == 0 else positive_int("washout", washout)
    flow = flow.with_room(2 * before + steps)
    _COST.require_end(_WHAT, S=flow.size, T=steps, B=count)
    with few_threads(flow.size):
        path = drive(
            flow,
            steps=steps,
            trajectories=count,
            scale=non_negative("scale", scale),
            washout=before,
            generator=generator,
            inputs=given,
        )
        if at == "inputs":
            source = output_spread(path) if loss is None else loss_gradient(path, loss)
            return _finish(input_log_norms(path, source), source)
        source = random_readout(path, generator) if loss is None else loss_gradient(path, loss)
        return _finish(backward_log_norms(path, source), source)


def _inputs(value: Any, flow: Dynamics) -> Float[Tensor, "time batch input"]:
    found = torch.as_tensor(value).detach().to(**flow.factory)
    if found.dim() != 3 or found.shape[2] != flow.input_size or 0 in found.shape:
        raise expected("inputs", f"of shape (time, trajectories, {flow.input_size})", tuple(found.shape))
    if not bool(found.isfinite().all()):
        raise expected("inputs", "finite", Description("NaN or infinity"))
    return found


def _finish(logs: Float[np.ndarray, "lags trajectories"], source: LossGradient) -> GradientNorms:
    if np.isneginf(logs).all():
        raise expected("loss(outputs)", "a number that changes with the outputs", Description("a gradient of zero"))
    alive = np.isfinite(logs)
    count = alive.sum(1)
    some = np.maximum(count, 1)
    known = np.where(alive, logs, 0.0)
    mean = np.where(count, known.sum(1) / some, -np.inf)
    spread = np.sqrt(np.where(alive, (known - np.where(count, mean, 0.0)[:, None]) ** 2, 0.0).sum(1) / some)
    growth = fit_growth(mean)
    return GradientNorms(
        status="exact" if logs.shape[1] == 1 else "estimate",
        digits=None,
        assumptions=source.said,
        cost=str(_COST),
        norms=np.exp(mean),
        log_norms=mean,
        spread=spread,
        vanished=1 - count / logs.shape[1],
        **growth._asdict(),
    )
