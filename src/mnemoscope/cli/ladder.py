"""Command ``ladder``: how long a trained network follows groups and brackets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from mnemoscope.cli.capacity import Folder, Hidden, Minutes, Parameters, Seed, Seeds, Set, Training
from mnemoscope.cli.terminal import FAILURE, Force, Json, check_output, console, print_json, quiet

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["ladder"]

NetworkName = Annotated[
    str,
    typer.Argument(
        metavar="NETWORK", help="A name of `mnemoscope networks`, or FILE.py:CLASS (this runs the file's code)."
    ),
]
Layers = Annotated[int, typer.Option("--layers", help="Layers. Default: 1.", show_default=False)]
Rungs = Annotated[
    str | None,
    typer.Option("--rungs", metavar="NAMES", help="Of Z2,Z3,Z60,S3,A5,S5,dyck; default: all.", show_default=False),
]
Steps = Annotated[
    int, typer.Option("--steps", help="Steps of the sequences in training. Default: 16.", show_default=False)
]
Factor = Annotated[
    int, typer.Option("--factor", help="How many times longer the tests are. Default: 8.", show_default=False)
]
Depth = Annotated[
    int, typer.Option("--depth", help="Most brackets open at once, m of Dyck-(2, m). Default: 4.", show_default=False)
]
Criterion = Annotated[
    float, typer.Option("--criterion", help="The accuracy that solves a length. Default: 0.99.", show_default=False)
]
Iterations = Annotated[int, typer.Option("--iterations", help="Of one training. Default: 5000.", show_default=False)]
Plot = Annotated[str | None, typer.Option("--plot", metavar="PATH", help="Draw it: .svg, .png, .pdf, .html.")]


def ladder(
    network: NetworkName,
    rungs: Rungs = None,
    steps: Steps = 16,
    factor: Factor = 8,
    depth: Depth = 4,
    hidden: Hidden = None,
    layers: Layers = 1,
    parameters: Parameters = None,
    options: Set = None,
    criterion: Criterion = 0.99,
    seeds: Seeds = 3,
    seed: Seed = 0,
    iterations: Iterations = 5000,
    minutes: Minutes = None,
    folder: Folder = None,
    training: Training = None,
    plot: Plot = None,
    force: Force = False,
    json: Json = False,
    *,
    about: dict[str, Any],
) -> None:
    """Train a network to track groups and brackets at one length, and test it at up to eight times that.

    The rungs: Z2 (parity), Z3, Z60, S3, A5, S5 and Dyck-(2, m). `mnemoscope measure tracking NETWORK` says before any
    training which of them its transitions rule out.
    """
    from mnemoscope import training as rooms
    from mnemoscope.cli.options import named_values
    from mnemoscope.core.plugins import is_location
    from mnemoscope.report import chart
    from mnemoscope.training.capacities.inputs import checked_seeds
    from mnemoscope.training.ladders import RUNGS

    if plot is not None:
        chart.check_path(plot)
        check_output(plot, force)
    spec = spec_of(network, hidden, layers, parameters, options, about if is_location(network) else {})

    def tell(line: Mapping[str, Any]) -> None:
        typer.echo(f"{line['part']}: solved to {', '.join(map(str, line['solved']))} steps", err=True)

    with stopped(folder), quiet():
        found = rooms.ladder(
            spec,
            rungs=RUNGS if rungs is None else [each.strip() for each in rungs.split(",")],
            length=steps,
            factor=factor,
            depth=depth,
            criterion=criterion,
            seeds=[seed + k for k in checked_seeds(seeds)],
            iterations=iterations,
            minutes=minutes,
            folder=folder,
            on_rung=None if json else tell,
            **named_values(training or (), "--train"),
        )
    show(found, plot, json)


def spec_of(
    network: str,
    hidden: int | None,
    layers: int,
    parameters: int | None,
    options: list[str] | None,
    about: Mapping[str, Any],
) -> Any:
    """Return the description of a network that was typed."""
    from mnemoscope.cli.options import named_values
    from mnemoscope.cli.profile import described
    from mnemoscope.core.errors import positive_int

    sizes: dict[str, Any] = {} if hidden is None else {"hidden_size": hidden}
    sizes |= {} if parameters is None else {"parameters": parameters}
    sizes |= {"num_layers": layers} if positive_int("--layers", layers) > 1 else {}
    return described(network, sizes, named_values(options or (), "--set"), about)


class stopped:  # noqa: N801 - used as a word in a with statement
    """Say how to go on when somebody interrupts."""

    def __init__(self, folder: Any) -> None:
        self.folder = folder

    def __enter__(self) -> None:
        """Begin."""

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """End with exit code 1 where it was interrupted."""
        if kind is not None and issubclass(kind, KeyboardInterrupt):
            on = "the same command goes on" if self.folder is not None else "give --folder to be able to go on"
            typer.echo(f"interrupted; {on}", err=True)
            raise typer.Exit(FAILURE) from None


def show(found: Any, plot: str | None, json: bool) -> None:
    """Draw and print a result."""
    from mnemoscope.report import chart

    if plot is not None:
        chart.save(found.plot(), plot)
    if json:
        print_json(found.to_dict())
    else:
        console().print(str(found), style="bold", soft_wrap=True)
