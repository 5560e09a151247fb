"""The command ``resume``: go on with a run that was interrupted."""

from __future__ import annotations

from typing import Annotated

import typer

from mnemoscope.cli.output import Json
from mnemoscope.cli.train import Plot, finish

__all__ = ["resume"]

Name = Annotated[
    str, typer.Argument(metavar="RUN", help="Its folder, its id (`mnemoscope runs` lists them), or a beginning of it.")
]
Data = Annotated[
    str | None, typer.Option("--data", metavar="FOLDER", help="The data of tasks that read files, else $MNEMOSCOPE_DATA.")
]
Device = Annotated[str | None, typer.Option("--device", help="Where to compute: cpu, cuda, ..", metavar="DEVICE")]


def resume(run: Name, data: Data = None, device: Device = None, plot: Plot = None, json: Json = False) -> None:
    """Go on with a training that was interrupted; the end is the same as if it had never stopped.

    A run that has ended is read from its record and printed again.
    """

    def work(show: bool | None) -> object:
        from mnemoscope.training import resume as go_on

        return go_on(run, data=data, device=device, progress=show)

    finish(work, plot, json)  # type: ignore[arg-type]
