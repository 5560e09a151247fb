"""Command ``resume``: go on with a run that was interrupted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from mnemoscope.cli.terminal import Force, Json
from mnemoscope.cli.train import Plot, finish

if TYPE_CHECKING:
    from mnemoscope.training import Capacity, Ladder, Remembering, Run

__all__ = ["resume"]

Name = Annotated[
    str, typer.Argument(metavar="RUN", help="Its folder, its id (`mnemoscope runs` lists them), or a beginning of it.")
]
Data = Annotated[
    str | None,
    typer.Option("--data", metavar="FOLDER", help="The data of tasks that read files, else $MNEMOSCOPE_DATA."),
]
Device = Annotated[str | None, typer.Option("--device", help="Where to compute: cpu, cuda, ..", metavar="DEVICE")]

Trust = Annotated[bool, typer.Option("--trust", help="Run the code of the file that a network FILE.py:CLASS names.")]


def resume(
    run: Name,
    data: Data = None,
    device: Device = None,
    trust: Trust = False,
    plot: Plot = None,
    force: Force = False,
    json: Json = False,
) -> None:
    """Go on with a training, a capacity, a ladder or `remember` that was interrupted, as if it had never stopped.

    A run that has ended is read from its record and printed again.
    """

    def work(show: bool | None) -> Run | list[Run] | Capacity | Ladder | Remembering:
        from mnemoscope.training import resume as go_on

        return go_on(run, data=data, device=device, progress=show, trust=trust)

    finish(work, plot, force, json)
