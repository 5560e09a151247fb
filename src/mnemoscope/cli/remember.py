"""Command ``remember``: how long a trained network really remembers."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from mnemoscope.cli.capacity import Data, Folder, Hidden, Minutes, Parameters, Seed, Seeds, Set, TaskSet
from mnemoscope.cli.capacity import Training as TrainingSettings
from mnemoscope.cli.ladder import Iterations, Layers, Plot, show, spec_of, stopped
from mnemoscope.cli.resume import Trust
from mnemoscope.cli.terminal import Force, Json, check_output, quiet
from mnemoscope.core.errors import UserError

__all__ = ["remember"]

NetworkOrRun = Annotated[
    str,
    typer.Argument(
        metavar="NETWORK|RUN",
        help="A name of `mnemoscope networks`, FILE.py:CLASS (this runs the file's code), or a run that was recorded.",
    ),
]
TaskName = Annotated[
    str | None,
    typer.Argument(metavar="TASK", help="One with a length or a delay. Default: copying.", show_default=False),
]
Examples = Annotated[int, typer.Option("--examples", help="Sequences of every test. Default: 128.", show_default=False)]


def remember(
    network: NetworkOrRun,
    task: TaskName = None,
    hidden: Hidden = None,
    layers: Layers = 1,
    parameters: Parameters = None,
    options: Set = None,
    task_settings: TaskSet = None,
    seeds: Seeds = 3,
    seed: Seed = 0,
    iterations: Iterations = 2000,
    examples: Examples = 128,
    minutes: Minutes = None,
    folder: Folder = None,
    data: Data = None,
    training: TrainingSettings = None,
    trust: Trust = False,
    plot: Plot = None,
    force: Force = False,
    json: Json = False,
    *,
    about: dict[str, Any],
) -> None:
    """Say how long a trained network really remembers: longer sequences, forgetting curve, effective remembrance.

    A network is trained first, several seeds; a run that was recorded is taken as it is.
    """
    from mnemoscope import tasks
    from mnemoscope import training as rooms
    from mnemoscope.cli.options import named_values
    from mnemoscope.core.plugins import is_location
    from mnemoscope.profiles.learned import names_run
    from mnemoscope.report import chart
    from mnemoscope.training.capacities.inputs import checked_seeds

    if plot is not None:
        chart.check_path(plot)
        check_output(plot, force)
    if names_run(network):
        if task is not None or hidden is not None or parameters is not None or options or training or task_settings:
            raise UserError("a run has its network and its task: remember takes neither beside it")
        with quiet():
            ended = rooms.resume(network, data=data, progress=False, trust=trust)
        if not isinstance(ended, rooms.Run) and not isinstance(ended, list):
            raise UserError(f"remember needs a training (fit or population), got a search: {network}")
        show(rooms.remembering_of(ended, examples=examples), plot, json)
        return
    settings = named_values(task_settings or (), "--task-set") | ({} if data is None else {"data": data})
    chosen = tasks.create(task or "copying", **settings)
    spec = spec_of(network, hidden, layers, parameters, options, about if is_location(network) else {})
    with stopped(folder), quiet():
        found = rooms.remembering(
            spec,
            chosen,
            seeds=[seed + k for k in checked_seeds(seeds)],
            iterations=iterations,
            examples=examples,
            minutes=minutes,
            folder=folder,
            **named_values(training or (), "--train"),
        )
    show(found, plot, json)
