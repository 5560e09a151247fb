"""The pictures of a training and of capacities."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from mnemoscope.report import chart

if TYPE_CHECKING:
    from mnemoscope.training.capacity_result import Capacity
    from mnemoscope.training.run import Run

__all__ = ["draw_capacities", "draw_losses"]


def draw_losses(run: Run) -> chart.Chart:
    """Draw the losses of a run against the step, with that of the best answer without memory."""
    steps = run.metrics.column("step") if run.metrics else np.zeros(0)
    series: dict[str, Any] = {}
    for name, words in (("loss", "training"), ("validation_loss", "validation")):
        if name in run.metrics.names():
            values = run.metrics.column(name).astype(float)
            series[words] = (steps[np.isfinite(values)], values[np.isfinite(values)])
    ends = (float(steps.min(initial=0)), float(steps.max(initial=1)))
    series["without memory"] = (ends, (run.baseline, run.baseline))
    title = f"{run.task.name}: {'failed' if run.status == 'failed' else f'score {run.score:.4g}'}"
    return chart.lines(series, x="steps of the optimiser", y="loss", title=title, log_y=True)


def draw_capacities(found: Sequence[Capacity]) -> chart.Chart:
    """Draw the success rates of networks on one task against its difficulty, with their intervals."""
    first, several = found[0], len(found) > 1
    names = {f"{one.network}: {one.limit}" if several else one.network: one for one in found}
    return chart.lines(
        {name: (one.levels, one.curve) for name, one in names.items()},
        bands={name: (one.lower, one.upper) for name, one in names.items()},
        x=first.axis,
        y=f"share of seeds that master it, of {len(first.seeds)}",
        title=f"Capacity on {first.task}" if several else f"{first.network} on {first.task}: {first.limit}",
        marks=True,
    )
