"""Common parts of Ziv's studies: how networks are trained there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["BATCH", "ziv_training"]

BATCH = 128


def ziv_training(scale: Mapping[str, Any], network: str = "scornn", **more: Any) -> dict[str, Any]:
    """Return the settings of a training as the thesis has them, as far as a scale keeps them.

    RMSprop with decay 0.9, fresh batches of 128, the gradient of a recurrent matrix scaled where an entry exceeds 10,
    the recurrent rate a tenth; of the rates validation chooses; after 11 validations without an improvement by 1e-3
    (when copying, times the share of steps that are scored) rates fall to a tenth, once, then training ends.

    Parameters
    ----------
    scale
        With ``iterations``, ``rates``, ``seeds``, ``validate_every``, ``held_out`` (validation and test sequences).
    network
        Its name.
    more
        Further settings of the run, the task among them.
    """
    threshold = "scored" if more.get("task") == "copying" else 1e-3
    schedule = {"checks": 11, "threshold": threshold, "factor": 0.1, "drops": 1}
    found = {"network": network, "optimizer": "rmsprop", "alpha": 0.9, "batch_size": BATCH, "clip_largest": 10.0}
    found |= {"schedule": schedule, "rates": list(scale["rates"]), "iterations": scale["iterations"]}
    found |= {"seeds": list(range(scale["seeds"])), "validate_every": scale["validate_every"]}
    validation, test = scale["held_out"]
    return found | {"validation_size": validation, "test_size": test} | more
