"""Cautions of training about a network that may go wrong with it, before or while it does."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Sequence

from torch import Tensor
from torch.utils._pytree import tree_leaves

from mnemoscope.nn.first_order import FirstOrder
from mnemoscope.training.model import Model

__all__ = ["penalised", "size_of", "warn_of_growth"]

_WINDOWS = 16
"""Fewer windows of a text do not tell growth from chance."""


def penalised(model: Model, weights: Iterable[float]) -> bool:
    """Say whether the network's penalty goes into the loss; where it asks for it and all weights are 0, warn."""
    penalty = model.penalty()
    asked = penalty is not None and penalty.requires_grad
    if asked and not any(weights):
        warnings.warn(
            f"{_name(model)} asks for its penalty to be added to the loss, and penalty=0 leaves it out: its matrix may "
            "grow until training diverges",
            stacklevel=6,
        )
        return False
    return asked


def size_of(state: object) -> float:
    """Return the root mean square of the numbers of a state."""
    leaves = [leaf for leaf in tree_leaves(state) if isinstance(leaf, Tensor) and leaf.numel()]
    total = sum(float(leaf.abs().double().square().sum()) for leaf in leaves)
    return math.sqrt(total / max(sum(leaf.numel() for leaf in leaves), 1))


def warn_of_growth(model: Model, sizes: Sequence[float]) -> None:
    """Warn where a state that is carried over the windows of a text grew as a sum of as many terms does.

    Under an orthogonal V and a phi that keeps lengths |h|^2 grows by about the same at every step, so that the state is
    sqrt(K) times as large after K windows as after the first; half of that counts.
    """
    layer = model.layer
    if not isinstance(layer, FirstOrder) or layer.saturates or len(sizes) < _WINDOWS:
        return
    if sizes[-1] > sizes[0] * math.sqrt(len(sizes)) / 2:
        warnings.warn(
            f"the state of {_name(model)} is carried on from window to window and grows as long as the text goes on, "
            f"because {layer.nonlinearity} does not bound it; nonlinearity='tanh' does",
            stacklevel=2,
        )


def _name(model: Model) -> str:
    return type(model.layer).__name__.removeprefix("Parametrized")
