"""The command ``runs merge``: shards, and other folders of runs, put together."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from mnemoscope.cli.runs.options import printable
from mnemoscope.cli.terminal import FAILURE, Json, print_json

if TYPE_CHECKING:
    from mnemoscope.machines.merging import Merged

__all__ = ["merge"]

Sources = Annotated[
    list[str], typer.Argument(metavar="DIR", help="Folders of shards, folders of runs, or URLs of stores.")
]
Target = Annotated[
    str | None,
    typer.Option("--runs", metavar="DIR", help="The folder that gets them; else $MNEMOSCOPE_RUNS, else ./runs."),
]
Partial = Annotated[bool, typer.Option("--partial", help="Merge what is there although shards are missing.")]


def merge(
    context: typer.Context, sources: Sources, root: Target = None, partial: Partial = False, json: Json = False
) -> None:
    """Put the runs of shards, or of other folders of runs, together into one folder of runs.

    Nothing is removed from where it was. Done again, it changes nothing. A finished run takes the place of an
    unfinished one; one that has other numbers than its namesake is listed and left, and the exit code is then 1.
    """
    from mnemoscope.machines.merging import merge as put_together
    from mnemoscope.runs.folders import root as folder_of_runs

    base = folder_of_runs(root if root is not None else context.obj)
    merged = put_together(sources, base, partial=partial)
    if json:
        print_json({"root": str(base), **asdict(merged)})
    else:
        _print(merged, str(base))
    if merged.differing or merged.busy:
        raise typer.Exit(FAILURE)


def _print(merged: Merged, base: str) -> None:
    for line in merged.missing:
        typer.echo(f"missing: {printable(line)}")
    for line in merged.overlapping:
        typer.echo(f"overlapping: {printable(line)}")
    for name in merged.differing:
        typer.echo(f"left where it is: {printable(name)}, since the one in {base} is another or has other numbers")
    for name in merged.busy:
        typer.echo(f"left where it is: {printable(name)}, since a process is writing it; merge again when it is done")
    typer.echo(
        f"{base}: {len(merged.added)} runs added, {len(merged.replaced)} replaced by a further one, "
        f"{len(merged.kept)} there already"
    )
