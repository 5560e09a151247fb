"""The command ``runs gc``: cleaning up, with a question first."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from mnemoscope.cli.runs.options import Root, Some, chosen_rows, printable, size_text, where_runs_are
from mnemoscope.cli.terminal import Json, print_json

if TYPE_CHECKING:
    from mnemoscope.runs.cleaning import Removal

__all__ = ["gc"]

Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]
Dry = Annotated[bool, typer.Option("--dry-run", help="Only say what would be removed.")]
Older = Annotated[bool, typer.Option("--older", help="Checkpoints but the newest and the best.")]
Weights = Annotated[bool, typer.Option("--weights", help="All checkpoints of finished runs.")]
Failed = Annotated[bool, typer.Option("--failed", help="Failed runs, wholly.")]
Interrupted = Annotated[bool, typer.Option("--interrupted", help="Interrupted runs, wholly.")]
Before = Annotated[str | None, typer.Option("--before", help="Only runs begun before: 30d ago, or a date.")]


def gc(
    context: typer.Context,
    runs: Some = None,
    older: Older = False,
    weights: Weights = False,
    failed: Failed = False,
    interrupted: Interrupted = False,
    before: Before = None,
    dry_run: Dry = False,
    yes: Yes = False,
    root: Root = None,
    json: Json = False,
) -> None:
    """Clean up: leftovers of killed processes and damaged files, and what you choose. Asks first.

    A run that is being written is never touched, nor are files that are not of the record.
    """
    from mnemoscope.core.errors import UserError
    from mnemoscope.runs.cleaning import Choices, plan

    base = where_runs_are(context, root)
    rows = chosen_rows(base, runs, {"before": before})
    removals = plan(base, rows, Choices(older=older, weights=weights, failed=failed, interrupted=interrupted))
    if not json:
        _print_plan(removals)
    asked = bool(removals) and not (dry_run or yes)
    if asked and (json or not _is_answerable()):
        raise UserError("nothing was removed: give --yes to remove it without a question, or --dry-run")
    if asked and not typer.confirm("Remove this?"):
        typer.echo("Nothing was removed.")
        return
    freed, skipped = (0, []) if dry_run else _remove(removals)
    if json:
        listed = [{"run": one.run, "what": one.what, "files": len(one.files), "bytes": one.bytes} for one in removals]
        print_json({"planned": listed, "removed": not dry_run, "freed": freed, "skipped": skipped})
        return
    for line in skipped:
        typer.echo(f"warning: {line}", err=True)
    if removals and not dry_run:
        typer.echo(f"{size_text(freed)} freed.")


def _is_answerable() -> bool:
    return sys.stdin.isatty()


def _print_plan(removals: list[Removal]) -> None:
    if not removals:
        typer.echo("There is nothing to remove.")
        return
    for one in removals:
        count = f"{len(one.files)} file{'' if len(one.files) == 1 else 's'}"
        typer.echo(f"{printable(one.run)} ({one.status}): {one.what}, {count}, {size_text(one.bytes)}")
    typer.echo(f"{size_text(sum(one.bytes for one in removals))} in all.")


def _remove(removals: list[Removal]) -> tuple[int, list[str]]:
    from mnemoscope.core.errors import UserError
    from mnemoscope.runs.cleaning import execute

    freed, skipped = 0, []
    for one in removals:
        try:
            freed += execute(one)
        except UserError as error:
            skipped.append(str(error))
    return freed, skipped
