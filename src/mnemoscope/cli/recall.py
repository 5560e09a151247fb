"""Command ``recall``: how many key-value pairs a network learns to recall, beside the bits of its state."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from mnemoscope.cli.capacity import Folder, Hidden, Minutes, Parameters, Seed, Seeds, Set, Training
from mnemoscope.cli.ladder import Iterations, Layers, NetworkName, Plot, show, spec_of, stopped
from mnemoscope.cli.terminal import Force, Json, check_output, quiet

__all__ = ["recall"]

Variants = Annotated[
    str | None,
    typer.Option(
        "--variants",
        metavar="NAMES",
        help="Of mqar,mqar-forgetting,mqar-compositional; default: all.",
        show_default=False,
    ),
]
Vocabulary = Annotated[
    int, typer.Option("--vocabulary", help="Keys and values together, even. Default: 64.", show_default=False)
]
Steps = Annotated[int, typer.Option("--steps", help="Steps of a sequence. Default: 96.", show_default=False)]
Criterion = Annotated[
    float, typer.Option("--criterion", help="The accuracy that masters a level. Default: 0.99.", show_default=False)
]


def recall(
    network: NetworkName,
    variants: Variants = None,
    vocabulary: Vocabulary = 64,
    steps: Steps = 96,
    hidden: Hidden = None,
    layers: Layers = 1,
    parameters: Parameters = None,
    options: Set = None,
    criterion: Criterion = 0.99,
    seeds: Seeds = 3,
    seed: Seed = 0,
    iterations: Iterations = 2000,
    minutes: Minutes = None,
    folder: Folder = None,
    training: Training = None,
    plot: Plot = None,
    force: Force = False,
    json: Json = False,
    *,
    about: dict[str, Any],
) -> None:
    """Find how many key-value pairs a network learns to recall: plainly, with values replaced, over two links.

    Their bits stand beside those of its state, which it cannot exceed.
    """
    from mnemoscope import training as rooms
    from mnemoscope.cli.options import named_values
    from mnemoscope.core.plugins import is_location
    from mnemoscope.report import chart
    from mnemoscope.training.capacities.inputs import checked_seeds
    from mnemoscope.training.recalls import VARIANTS

    if plot is not None:
        chart.check_path(plot)
        check_output(plot, force)
    spec = spec_of(network, hidden, layers, parameters, options, about if is_location(network) else {})
    with stopped(folder), quiet():
        found = rooms.recall(
            spec,
            variants=VARIANTS if variants is None else [each.strip() for each in variants.split(",")],
            vocabulary=vocabulary,
            length=steps,
            criterion=criterion,
            seeds=[seed + k for k in checked_seeds(seeds)],
            iterations=iterations,
            minutes=minutes,
            folder=folder,
            **named_values(training or (), "--train"),
        )
    show(found, plot, json)
