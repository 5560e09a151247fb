"""Shards of studies on the command line: one share, and the script that a scheduler runs for all."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from mnemoscope.cli.terminal import FAILURE, quiet, tracked
from mnemoscope.core.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mnemoscope.studies.machinery import RunSpec

__all__ = ["Folder", "Slurm", "TheShard", "print_script", "run_shard", "say_stopped"]

TheShard = Annotated[
    str | None,
    typer.Option("--shard", metavar="K/N", help="Only the K-th of N shares, as on the K-th of N machines."),
]
Folder = Annotated[
    str | None,
    typer.Option(
        "--folder",
        metavar="DIR",
        help="A folder or the URL of a store: with --shard where all shards put their results, with --ray the way of "
        "results from machines that do not see the folder of the runs.",
    ),
]
Slurm = Annotated[bool, typer.Option("--slurm", help="With --shard K/N: print a script for sbatch that runs all N.")]


def run_shard(
    name: str, scale: str, plan: Sequence[RunSpec], text: str, folder: str | None, minutes: float | None, json: bool
) -> dict[str, Any]:
    """Do a shard's share of a study or a search, and return what was done as a document."""
    from mnemoscope.machines import Shard, stop_asked
    from mnemoscope.studies.machinery import Share

    share = Share(name, scale, plan, Shard.parse(text), _given(folder))
    todo = share.missing()
    results = share.run(minutes)
    done = 0

    def work(_: Any) -> str | None:
        with quiet():
            return next(results, None)

    try:
        for _, run in tracked([*todo, None], lambda _: f"{name} {share.shard}", work):
            if run is None:
                break
            done += 1
    except KeyboardInterrupt:
        say_stopped(len(share.specs) - len(todo) + done, len(share.specs))
    missing = len(share.missing())
    if missing and stop_asked():
        say_stopped(len(share.specs) - missing, len(share.specs))
    if not json:
        there = f"{len(share.specs) - missing} of {len(share.specs)} runs are there, {done} of them run now"
        then = "; the same command goes on" if missing else ""
        typer.echo(f"{name} at {scale} scale, shard {share.shard}: {there}{then}")
    counts = {"runs": len(share.specs), "run_now": done, "missing": missing}
    return {"study": name, "scale": scale, "shard": str(share.shard), "folder": str(share.store), **counts}


def print_script(
    name: str | None, scale: str, shard: str, folder: str | None, changes: list[str] | None, layout: str | None
) -> None:
    """Print the script of an array that runs all shards."""
    from mnemoscope.core.devices import chosen_device
    from mnemoscope.machines import Shard, array_script
    from mnemoscope.runs.stores import is_url

    of = Shard.parse(shard).of
    place = _given(folder)
    if not is_url(place):
        from pathlib import Path

        place = str(Path(place).expanduser().absolute())
    what = [name] if name is not None else ["--all"]
    settings = [part for one in changes or () for part in ("--set", one)]
    settings += [] if layout is None else ["--layout", layout]
    device = chosen_device()
    settings += [] if device is None else ["--device", device]
    command = ["mnemoscope", "study", "run", *what, "--scale", scale, *settings, "--folder", place]
    script = array_script(name or "all-studies", command, ["mnemoscope", "runs", "merge", place], of)
    typer.echo(script, nl=False)


def _given(folder: str | None) -> str:
    if folder is None:
        raise UserError("--shard needs --folder DIR, which all shards have in common")
    return folder


def say_stopped(done: int, runs: int) -> NoReturn:
    """Say how far it came, and how to go on; leave."""
    typer.echo(f"interrupted after {done} of {runs} runs; the same command goes on", err=True)
    raise typer.Exit(FAILURE) from None
