"""Whether something must follow each step of the optimiser."""

from __future__ import annotations

from torch import nn

from mnemoscope.nn.maps.base import Transition
from mnemoscope.training.model import Model

__all__ = ["needs_after_step"]


def needs_after_step(model: Model) -> bool:
    """Say whether something follows a step of the optimiser; a map whose base never moves asks for nothing."""
    layer = model.layer
    transitions = getattr(layer, "_transitions", None)
    if transitions is None:
        return hasattr(layer, "after_step")
    return any(_follows(module) for transition, _ in transitions() for module in transition.modules())


def _follows(module: nn.Module) -> bool:
    own = getattr(type(module), "after_step", Transition.after_step)
    return own is not Transition.after_step and getattr(module, "every", 0) is not None
