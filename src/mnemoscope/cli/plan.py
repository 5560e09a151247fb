"""Command ``study plan``: what studies cost before they are run."""

from __future__ import annotations

import math
import os
import time
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mnemoscope.cli.terminal import Json, console, print_json, quiet, tracked
from mnemoscope.core.errors import UserError, positive_int

if TYPE_CHECKING:
    from mnemoscope.studies.machinery import Cost, Study

__all__ = ["plan"]

Cores = Annotated[
    int | None, typer.Option("--cores", metavar="N", help="Cores of all machines together. Default: those of this one.")
]
Minutes = Annotated[
    float, typer.Option("--minutes", help="Measure no more after these; other studies then have the declared cost.")
]


def plan(
    name: Annotated[str | None, typer.Argument(metavar="STUDY", help="A name of `mnemoscope study list`.")] = None,
    every: Annotated[bool, typer.Option("--all", help="All studies.")] = False,
    scale: Annotated[str, typer.Option("--scale", help="smoke, laptop or paper.")] = "paper",
    cores: Cores = None,
    minutes: Minutes = 10.0,
    json: Json = False,
) -> None:
    """Say what studies cost: core-hours by timed steps of their trainings, and the time on a number of cores.

    An estimate for cores like those of this machine, without early endings and without batched populations.
    Times of steps are kept in the folder of the runs; they are measured once.
    """
    from mnemoscope.studies import STUDIES
    from mnemoscope.studies.machinery import Estimates

    if (name is None) is not every:
        raise UserError("study plan takes the name of a study, or --all")
    if not minutes >= 0:
        raise UserError(f"--minutes must be a number of at least 0, got {minutes:g}")
    count = positive_int("--cores", cores if cores is not None else os.cpu_count() or 1)
    chosen = [STUDIES[one] for one in STUDIES] if name is None else [STUDIES[name]]
    chosen.sort(key=lambda study: -study.minutes.get(scale, 0.0))  # where time is short, it goes where the cost is
    estimates = Estimates(until=time.monotonic() + 60 * minutes)

    def work(study: Study) -> Cost:
        with quiet():
            return estimates.cost(study, scale)

    costs = [cost for _, cost in tracked(chosen, lambda study: study.name, work)][::-1]
    if json:
        print_json(
            {"scale": scale, "cores": count, "studies": [_document(c, count) for c in costs], **_whole(costs, count)}
        )
        return
    _print(costs, scale, count)


def _document(cost: Cost, cores: int) -> dict[str, Any]:
    from mnemoscope.studies.machinery import time_on

    seconds = list(cost.seconds.values())
    return {
        "name": cost.study,
        "runs": len(seconds),
        "core_hours": sum(seconds) / 3600,
        "hours": time_on(seconds, cores) / 3600,
        "longest_run_hours": max(seconds, default=0.0) / 3600,
        "source": cost.source,
        "reason": cost.reason,
    }


def _whole(costs: list[Cost], cores: int) -> dict[str, float]:
    """Return the cost of all studies together, in which a run that several ask for counts once."""
    from mnemoscope.studies.machinery import time_on

    runs = {name: seconds for cost in costs for name, seconds in cost.seconds.items()}
    timed = {name for cost in costs if cost.source == "measured" for name in cost.seconds}
    seconds = list(runs.values())
    return {
        "runs": len(runs),
        "core_hours": sum(seconds) / 3600,
        "core_hours_by_timed_steps": sum(runs[name] for name in timed) / 3600,
        "hours": time_on(seconds, cores) / 3600,
    }


def _print(costs: list[Cost], scale: str, cores: int) -> None:
    from rich.table import Table

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for title in ("study", "runs", "core-hours", f"on {cores} cores", "by"):
        table.add_column(title, justify="left" if title in ("study", "by") else "right", no_wrap=True)
    for cost in costs:
        one = _document(cost, cores)
        how = "timed steps" if cost.source == "measured" else "its declaration"
        by = f"{how}: {cost.reason}" if cost.reason else how
        table.add_row(cost.study, f"{one['runs']:,}", _hours(one["core_hours"]), _duration(one["hours"]), by)
    out = console(wide=True)
    out.print(table)
    whole = _whole(costs, cores)
    runs, hours = f"{whole['runs']:,} runs", f"{_hours(whole['core_hours'])} core-hours"
    declared = sum(cost.source != "measured" for cost in costs)
    typer.echo(f"In all at {scale} scale: {runs}, about {hours}, {_duration(whole['hours'])} on {cores} cores.")
    if declared:
        timed, others = _hours(whole["core_hours_by_timed_steps"]), f"{declared} of {len(costs)} studies"
        typer.echo(
            f"By timed steps: {timed} core-hours. {others} count as their files declare, which nobody has measured."
        )


def _hours(value: float) -> str:
    return f"{value:,.0f}" if value >= 10 else f"{value:.2g}" if value >= 0.01 else "< 0.01"


def _duration(hours: float) -> str:
    if hours >= 48:
        return f"{hours / 24:,.1f} days"
    if hours >= 1:
        return f"{hours:.1f} h"
    return f"{hours * 60:.0f} min" if hours * 60 >= 1 else f"{math.ceil(hours * 3600)} s"
