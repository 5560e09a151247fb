"""Networks, settings and trainings of Matrix's section 6, shared by its studies."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mnemoscope.studies.machinery.study import RunSpec

__all__ = ["COUNTS", "SIZES", "matrix_runs"]

SIZES: dict[tuple[str, str], dict[str, Any]] = {
    ("MatNTM", "matrix-copy"): {"network": "matntm", "hidden_size": [15, 15], "num_layers": 3},
    ("MatNTM", "matrix-recall"): {"network": "matntm", "hidden_size": [20, 20], "num_layers": 4},
    ("MatrixRNN", "matrix-copy"): {"network": "matrixrnn", "hidden_size": [[15, 15], [15, 15], [5, 5]]},
    ("MatrixRNN", "matrix-recall"): {"network": "matrixrnn", "hidden_size": [[20, 20], [20, 20], [20, 20], [5, 5]]},
}
"""Networks by name and task: units as published; the last state of MatrixRNN is its answer, which the counts show."""

COUNTS = {("MatNTM", "matrix-copy"): 4121, ("MatNTM", "matrix-recall"): 7946,
          ("MatrixRNN", "matrix-copy"): 2175, ("MatrixRNN", "matrix-recall"): 5675}  # fmt: skip
"""Published numbers of parameters."""

_PUBLISHED = {"matrix-copy": {"lr": 1e-4, "clip_value": 10.0}, "matrix-recall": {"lr": 8e-5, "clip_value": 20.0}}


def matrix_runs(task: str, scale: Mapping[str, Any]) -> list[RunSpec]:
    """Return a training of both networks on a task, with looks at the memory and at harder sequences.

    Parameters
    ----------
    task
        ``"matrix-copy"`` or ``"matrix-recall"``.
    scale
        ``iterations``, ``seeds``, ``task_settings``, ``validate_every``, ``memory`` (slots); ``rate`` where Adam
        is used at it instead of the published RMSprop; ``levels`` at which the trained network is tested.
    """
    axis = "longest" if task == "matrix-copy" else "item_length"
    shown = scale["task_settings"]["longest" if task == "matrix-copy" else "items"]
    course = {name: scale[name] for name in ("iterations", "validate_every")}
    course |= {"validation_size": scale["tests"], "test_size": scale["tests"], "batch_size": 16}
    course |= {"seeds": list(range(scale["seeds"])), "task": task, "task_settings": dict(scale["task_settings"])}
    course |= _PUBLISHED[task] | {"optimizer": "rmsprop", "momentum": 0.9}
    if "rate" in scale:
        course |= {"optimizer": "adam", "lr": scale["rate"], "momentum": 0.0}
    longer = {"longer": {"axis": axis, "levels": list(scale["levels"]), "sequences": scale["tests"]}}
    machine = {"memory": [scale["memory"], 6, 6], "output_nonlinearity": "identity"}
    return [
        RunSpec("fit", {**SIZES["MatNTM", task], "options": machine, "readout": "none", **course,
                        "looks": {**longer, "heads": {"length": shown}}}),
        RunSpec("fit", {**SIZES["MatrixRNN", task], "readout": "probability", **course, "looks": longer}),
    ]  # fmt: skip
