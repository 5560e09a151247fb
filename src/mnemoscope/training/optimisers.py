"""RMSprop, Adam and AdamW as a few operations on one vector, of one network or of many stacked ones with own rates.

All gradients are copied into one vector; its state is as long; the parameters take their parts of the update at the
end. `torch.optim` does the same arithmetic parameter by parameter, and knows no rates per member of a population.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor

__all__ = ["OPTIMISERS", "Adam", "AdamW", "Clipping", "Optimiser", "RMSprop"]


class Optimiser(ABC):
    """What moves parameters by their gradients.

    Parameters
    ----------
    parameters
        Of one network; or stacked, the members of a population along the first axis.
    rates
        For each parameter its learning rate; of stacked ones a vector, one per member.
    """

    factor: float
    """What all rates are multiplied by at this step: what a schedule says."""

    names: ClassVar[tuple[str, ...]]
    """Of the vectors that it keeps from step to step."""

    def __init__(self, parameters: Sequence[Tensor], rates: Sequence[float | Tensor]) -> None:
        self.parameters = list(parameters)
        self.factor = 1.0
        first = self.parameters[0]
        size = sum(p.numel() for p in self.parameters)
        self.gradient = torch.zeros(size, dtype=first.dtype, device=first.device)
        self.update = torch.empty_like(self.gradient)
        self.state = {name: torch.zeros_like(self.gradient) for name in self.names}
        self.gradients, self._updates = self.split(self.gradient), self.split(self.update)
        self.set_rates(rates)

    def split(self, flat: Tensor) -> list[Tensor]:
        """Return the parts of a vector in the shapes of the parameters."""
        parts = torch.split(flat, [p.numel() for p in self.parameters])
        return [part.view(p.shape) for part, p in zip(parts, self.parameters, strict=True)]

    def set_rates(self, rates: Sequence[float | Tensor]) -> None:
        """Change the learning rates."""
        first = rates[0]
        if isinstance(first, float) and all(rate == first for rate in rates):
            self.rate: float | Tensor = first
            return
        flat = torch.empty_like(self.gradient)
        for part, rate in zip(self.split(flat), rates, strict=True):
            part.copy_(rate.view(-1, *[1] * (part.dim() - 1))) if isinstance(rate, Tensor) else part.fill_(rate)
        self.rate = flat

    @torch.no_grad()
    def take(self, gradients: Sequence[Tensor | None]) -> None:
        """Take the gradients, in the order of the parameters; that of one that the loss does not touch is zero."""
        pairs = zip(gradients, self.gradients, strict=True)
        torch.cat([(torch.zeros_like(own) if g is None else g).reshape(-1) for g, own in pairs], out=self.gradient)

    @torch.no_grad()
    def step(self) -> None:
        """Move the parameters by what was taken."""
        self.direct()
        self.update.mul_(self.rate).mul_(-self.factor)
        torch._foreach_add_(self.parameters, self._updates)

    @abstractmethod
    def direct(self) -> None:
        """Write into `update` where to go, before the rate."""

    def tensors(self) -> dict[str, Tensor]:
        """Return what it keeps from step to step."""
        return dict(self.state)

    def load(self, tensors: Mapping[str, Tensor]) -> None:
        """Take over what `tensors` returned."""
        for name, own in self.state.items():
            own.copy_(tensors[name])

    def kept(self, parameters: Sequence[Tensor], rates: Sequence[float | Tensor], members: Tensor) -> Optimiser:
        """Return the optimiser of some of the members, whose stacked parameters are given."""
        twin = type(self)(parameters, rates, **self.settings())
        for name, flat in self.state.items():
            twin.state[name].copy_(torch.cat([part[members].reshape(-1) for part in self.split(flat)]))
        return twin

    @abstractmethod
    def settings(self) -> dict[str, Any]:
        """Return its arguments beside parameters and rates."""


class RMSprop(Optimiser):
    """v <- alpha v + (1 - alpha) g^2, p <- p - lr g / (sqrt(v) + eps); with momentum p <- p - lr m, m summing up."""

    names = ("square",)

    def __init__(
        self,
        parameters: Sequence[Tensor],
        rates: Sequence[float | Tensor],
        *,
        alpha: float = 0.99,
        eps: float = 1e-8,
        momentum: float = 0.0,
    ) -> None:
        self.alpha, self.eps, self.momentum = alpha, eps, momentum
        super().__init__(parameters, rates)
        if momentum:
            self.state["momentum"] = torch.zeros_like(self.gradient)

    def direct(self) -> None:
        """Write the direction."""
        g, square, update = self.gradient, self.state["square"], self.update
        square.mul_(self.alpha).addcmul_(g, g, value=1 - self.alpha)
        torch.sqrt(square, out=update)
        update.add_(self.eps)
        torch.div(g, update, out=update)
        if self.momentum:
            update.copy_(self.state["momentum"].mul_(self.momentum).add_(update))

    def settings(self) -> dict[str, Any]:
        """Return alpha, eps and momentum."""
        return {"alpha": self.alpha, "eps": self.eps, "momentum": self.momentum}


class Adam(Optimiser):
    """m and v average g and g^2 with weights beta; p <- p - lr m' / (sqrt(v') + eps), ' corrected for the start."""

    names = ("mean", "square")

    def __init__(
        self,
        parameters: Sequence[Tensor],
        rates: Sequence[float | Tensor],
        *,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
    ) -> None:
        self.betas, self.eps = betas, eps
        super().__init__(parameters, rates)
        self.state["steps"] = torch.zeros((), dtype=torch.int64)

    def direct(self) -> None:
        """Write the direction."""
        g, mean, square, update = self.gradient, self.state["mean"], self.state["square"], self.update
        first, second = self.betas
        mean.lerp_(g, 1 - first)
        square.mul_(second).addcmul_(g, g, value=1 - second)
        steps = int(self.state["steps"].add_(1))
        torch.sqrt(square, out=update)
        update.div_((1 - second**steps) ** 0.5).add_(self.eps)
        torch.div(mean, update, out=update).div_(1 - first**steps)

    def kept(self, parameters: Sequence[Tensor], rates: Sequence[float | Tensor], members: Tensor) -> Optimiser:
        """Return the optimiser of some of the members; all have made as many steps."""
        steps = self.state.pop("steps")
        twin = super().kept(parameters, rates, members)
        self.state["steps"], twin.state["steps"] = steps, steps.clone()
        return twin

    def settings(self) -> dict[str, Any]:
        """Return betas and eps."""
        return {"betas": self.betas, "eps": self.eps}


class AdamW(Adam):
    """Adam with decoupled decay: p <- p - lr (m' / (sqrt(v') + eps) + decay p), for the parameters that decay."""

    def __init__(
        self,
        parameters: Sequence[Tensor],
        rates: Sequence[float | Tensor],
        *,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        decays: Sequence[bool] | None = None,
    ) -> None:
        self.weight_decay = weight_decay
        self.decays = [True] * len(parameters) if decays is None else list(decays)
        super().__init__(parameters, rates, betas=betas, eps=eps)

    def direct(self) -> None:
        """Write the direction, with what decays."""
        super().direct()
        if self.weight_decay and any(self.decays):
            pairs = zip(self._updates, self.parameters, self.decays, strict=True)
            updates, parameters = zip(*((u, p) for u, p, decays in pairs if decays), strict=True)
            torch._foreach_add_(updates, parameters, alpha=self.weight_decay)

    def settings(self) -> dict[str, Any]:
        """Return betas, eps, the decay and what it applies to."""
        return {**super().settings(), "weight_decay": self.weight_decay, "decays": self.decays}


OPTIMISERS: dict[str, type[Optimiser]] = {"rmsprop": RMSprop, "adam": Adam, "adamw": AdamW}

_TINY = 1e-6
"""As torch.nn.utils.clip_grad_norm_ adds it to the norm."""


@dataclass(frozen=True)
class Clipping:
    """What is done to gradients before a step.

    Attributes
    ----------
    norm
        g <- g min(1, norm / |g|), |g| over all parameters of a network.
    value
        Every entry is held within +-value.
    largest
        The gradient of each recurrent matrix is scaled when its largest entry exceeds this.
    """

    norm: float | None = None
    value: float | None = None
    largest: float | None = None

    @torch.no_grad()
    def __call__(self, optimiser: Optimiser, recurrent: list[int], members: int | None) -> None:
        """Clip what the optimiser has taken, in place.

        Parameters
        ----------
        recurrent
            Which of the parameters are those of recurrent matrices.
        members
            How many networks are stacked; None for one that is not.
        """
        if self.value is not None:
            optimiser.gradient.clamp_(-self.value, self.value)
        if self.largest is not None:
            for i in recurrent:
                part = optimiser.gradients[i]
                top = part.abs().max() if members is None else _rows(part).abs().amax(1)
                _scale(part, self.largest / top.clamp_min(self.largest))
        if self.norm is not None:
            if members is None:
                optimiser.gradient.mul_((self.norm / (optimiser.gradient.norm() + _TINY)).clamp_max(1.0))
                return
            squares = torch.stack([_rows(part).square().sum(1) for part in optimiser.gradients])
            factor = (self.norm / (squares.sum(0).sqrt() + _TINY)).clamp_max(1.0)
            for part in optimiser.gradients:
                _scale(part, factor)


def _rows(part: Tensor) -> Tensor:
    return part.reshape(len(part), -1)


def _scale(part: Tensor, factor: Tensor) -> None:
    part.mul_(factor if factor.dim() == 0 else factor.view(-1, *[1] * (part.dim() - 1)))
