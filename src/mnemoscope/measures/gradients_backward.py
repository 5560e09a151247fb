"""The gradient of a loss carried back through time, rescaled on its way so that no size is lost."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from mnemoscope.core.errors import Description, expected
from mnemoscope.measures.dynamics import Transition
from mnemoscope.measures.trajectory import Path

__all__ = ["Source", "go_back", "of_loss", "random_readout"]

_PROBES = 64


class Source(NamedTuple):
    """Where the gradient comes from.

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


def random_readout(path: Path, generator: torch.Generator) -> Source:
    """Return the gradient of a random unit vector, one for each trajectory, read out of the last state."""
    units = path.transition.readout()
    readout = torch.randn(path.inputs.shape[1], units.shape[0], generator=generator, dtype=torch.float64).to(units)
    last = readout / readout.norm(dim=1, keepdim=True) @ units
    return Source(last, None, None, ("the loss is a random unit vector read out of the last state",))


def of_loss(path: Path, loss: Callable[[Tensor], Tensor]) -> Source:
    """Return the gradient of a loss at all outputs."""
    flow = path.transition
    with torch.no_grad():
        outputs = torch.stack([flow.step(x, s)[0] for x, s in zip(path.inputs, path.states[:-1], strict=True)])
    leaf = outputs.clone().requires_grad_()
    value = loss(leaf)
    if not isinstance(value, Tensor) or value.numel() != 1 or not value.requires_grad:
        came = f"a tensor of shape {tuple(value.shape)}" if isinstance(value, Tensor) else type(value).__name__
        raise expected("loss(outputs)", "one number that depends on the outputs", Description(came))
    by_output = torch.autograd.grad(value.sum(), leaf)[0]
    if not bool(by_output.isfinite().all()):
        raise expected("the gradient of loss(outputs)", "finite", Description("NaN or infinity"))
    return Source(torch.zeros_like(flow.flatten(path.states[-1])), by_output, _places(flow), ())


def _places(flow: Transition) -> Int[Tensor, " output"] | None:
    """Find which numbers of the state the outputs are, at random states: a network that gives out its state."""
    generator = torch.Generator().manual_seed(0)
    like = flow.start(_PROBES)
    flat = flow.flatten(like)
    flat = flat + torch.randn(flat.shape, generator=generator, dtype=torch.float64).to(flat)
    x = torch.randn(_PROBES, flow.input_size, generator=generator, dtype=torch.float64).to(flat)
    with torch.no_grad():
        y, state = flow.step(x, flow.network.unflatten_state(flat, like))
    after = flow.flatten(state)
    free = torch.ones(after.shape[1], dtype=torch.bool, device=after.device)
    places = []
    for column in y.T:
        same = ((after == column[:, None]).all(0) & free).nonzero().flatten()
        if not len(same):
            return None
        places.append(int(same[0]))
        free[same[0]] = False
    return torch.tensor(places, device=after.device)


def go_back(path: Path, source: Source) -> Float[np.ndarray, "lags batch"]:
    """Return ln of the gradient's norm at the last state, the one before it, .. the first, for every trajectory."""
    flow, units = path.transition, path.transition.readout()
    carried, logs = _Scaled.of(source.last), []
    for t in range(len(path.inputs), 0, -1):
        own = None if source.outputs is None else source.outputs[t - 1]
        whole = carried if own is None else carried.plus(_Scaled.of(_at_state(path, t, own, source.places)))
        logs.append(whole.log_norm(units))
        given = carried if own is None else carried.beside(_Scaled.of(own))
        after, output = given.values[:, : flow.size], None if own is None else given.values[:, flow.size :]
        before, _ = flow.pull_back(path.inputs[t - 1], path.states[t - 1], after, output)
        carried = _Scaled.of(before, given.log)
    logs.append(carried.log_norm(units))
    return torch.stack(logs).cpu().numpy()


def _at_state(path: Path, t: int, own: Float[Tensor, "batch output"], places: Int[Tensor, " output"] | None) -> Tensor:
    """Return the gradient at the state after step t that comes by way of the output of that step."""
    flow = path.transition
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

    def log_norm(self, units: Float[Tensor, "units size"]) -> Float[Tensor, " batch"]:
        """Return ln of the norm of each row, of the units that are read out."""
        logs: Tensor = (self.values @ units.T).norm(dim=1).log() + self.log
        return logs

    def _joint(self, other: _Scaled) -> Tensor:
        larger = torch.maximum(self.log, other.log)
        return torch.where(larger.isneginf(), 0.0, larger)

    def _at(self, log: Tensor) -> Tensor:
        return self.values * (self.log - log).exp().unsqueeze(1)
