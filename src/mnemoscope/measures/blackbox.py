"""Networks from outside: whole sequences in, outputs out, of whatever kind, and their Jacobians by plain autograd."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from mnemoscope.core.errors import Description, UserError, expected
from mnemoscope.measures.dynamics import Dynamics, double_attributes, in_double_precision
from mnemoscope.nn.recurrent import Recurrent
from mnemoscope.nn.sequence import SequenceNetwork

__all__ = ["Blackbox"]

_NUMBERS = 2**20
"""Inputs and outputs of the sequences that are run in one call."""


@dataclass(frozen=True)
class Blackbox:
    """A network that is asked for its outputs on whole sequences, and for nothing else.

    The last output of a sequence has no future, so that a network that reads the future can be asked for it as well.

    Attributes
    ----------
    network
        A copy in eval mode without gradients of its parameters: in float64 where it runs so, else in its own precision.
    factory
        Device and type of its inputs.
    """

    network: Recurrent | SequenceNetwork
    factory: dict[str, Any]

    @classmethod
    def of(cls, network: nn.Module | Dynamics, what: str) -> Blackbox:
        """Prepare a network of kind recurrent or sequence; `what` is the measure, as errors name it."""
        if isinstance(network, Dynamics):
            return cls(network.network, network.factory)
        if not isinstance(network, nn.Module):
            raise expected("network", "a torch.nn.Module", Description(f"a {type(network).__name__}"))
        adapted: Any = network
        if not isinstance(network, Recurrent | SequenceNetwork):
            from mnemoscope.nn.adapt import adapt  # only strangers need it

            adapted = adapt(network)
        if not isinstance(adapted, Recurrent | SequenceNetwork):
            raise UserError(f"{what} needs a network of kind 'recurrent' or 'sequence', got {type(network).__name__}")
        own = copy.deepcopy(adapted).eval().requires_grad_(False)
        like = next((p for p in own.parameters() if p.is_floating_point()), torch.zeros(()))
        for double in (True, False):
            twin = copy.deepcopy(own) if double else own
            if double:
                apply: Any = twin._apply  # Module.double leaves complex parameters in single precision
                apply(in_double_precision)
                double_attributes(twin)
            found = cls(twin, {"device": like.device, "dtype": torch.float64 if double else like.dtype})
            try:
                found.outputs(torch.zeros(found.steps or 3, 2, twin.input_size, dtype=torch.float64))
            except Exception:  # a stranger's forward may insist on its own precision, and raise anything
                continue
            return found
        raise UserError(f"{what} needs a network that runs whole sequences, and {type(network).__name__} fails on one")

    @property
    def input_size(self) -> int:
        """Numbers per step of the input."""
        return self.network.input_size

    @property
    def steps(self) -> int | None:
        """The only number of steps that it takes; None: it takes every one."""
        return getattr(self.network, "fixed_length", None)

    def runs(self, steps: int) -> bool:
        """Whether it takes sequences of so many steps: a table of positions may end before."""
        try:
            with torch.no_grad():
                self.last(torch.zeros(steps, 1, self.input_size, dtype=torch.float64))
        except Exception:  # a stranger's forward may raise anything at a length that it does not take
            return False
        return True

    def outputs(self, x: Float[Tensor, "time batch input"]) -> Float[Tensor, "time batch output"]:
        """Return the outputs at every step."""
        x = x.to(**self.factory)
        if isinstance(self.network, SequenceNetwork):
            return self.network.run(x, None).flatten(2)
        found: Tensor = self.network(x.transpose(0, 1) if self.network.batch_first else x)[0]
        return (found.transpose(0, 1) if self.network.batch_first else found).flatten(2)

    def last(self, x: Float[Tensor, "time batch input"]) -> Float[Tensor, "batch output"]:
        """Return the outputs at the last step."""
        if isinstance(self.network, SequenceNetwork):
            return self.network.last(x.to(**self.factory)).flatten(1)
        return self.outputs(x)[-1]

    @torch.no_grad()
    def answers(self, x: Float[Tensor, "time batch input"]) -> Float[Tensor, "batch output"]:
        """Return the outputs at the last step in float64, some sequences after the others."""
        at_once = max(1, _NUMBERS // (len(x) * (x.shape[2] + self.network.output_size)))
        return torch.cat([self.last(part).double() for part in torch.split(x, at_once, dim=1)])

    def jacobian(
        self, x: Float[Tensor, "time batch input"], units: list[int]
    ) -> Float[Tensor, "batch units time input"]:
        """Return the derivatives of these outputs at the last step by all inputs.

        Each output is differentiated in a copy of its sequence: a stranger's code need not take torch.func.
        """
        time, batch, width = x.shape
        at_once = max(1, _NUMBERS // (time * batch * (width + self.network.output_size)))
        found = []
        for first in range(0, len(units), at_once):
            some = units[first : first + at_once]
            given = x.to(**self.factory).repeat(1, len(some), 1).requires_grad_()
            with torch.enable_grad():
                y = self.last(given)
                picked = y[torch.arange(len(y)), torch.tensor(some).repeat_interleave(batch)].sum()
                if not picked.requires_grad:
                    raise UserError("derivatives of outputs by inputs are needed, and autograd finds none")
                grad = torch.autograd.grad(picked, given, materialize_grads=True, allow_unused=True)[0]
            found.append(grad.double().reshape(time, len(some), batch, width))
        return torch.cat(found, dim=1).permute(2, 1, 0, 3)
