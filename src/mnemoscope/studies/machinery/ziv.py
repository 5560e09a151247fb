"""Common parts of Ziv's studies: how networks are trained there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["BATCH", "early", "limits", "ziv_training"]

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


def early(given: Mapping[str, Any], found: Mapping[str, Any]) -> list[float]:
    """Return the score of every seed after a quarter of the iterations; a training that ended before keeps its last."""
    before = [place for place, step in enumerate(found["curve_steps"]) if step <= given["iterations"] / 4]
    return [curve[min(before[-1] if before else 0, len(curve) - 1)] for curve in found["curve_score"]]


def limits(given: Mapping[str, Any], found: Mapping[str, Any]) -> list[int | None]:
    """Return the hardest level that each seed masters of those that were tried; None where it masters none."""
    tried = {int(level): scores for level, scores in found["levels"].items()}
    good = [
        [level for level, scores in tried.items() if (scores[seed] or 0.0) > given["criterion"]]
        for seed in range(len(given["seeds"]))
    ]
    return [max(levels, default=None) for levels in good]
