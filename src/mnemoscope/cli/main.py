"""Command ``mnemoscope``. Importing it costs neither torch nor any room: commands import what they need."""

from __future__ import annotations

from typing import Annotated

import typer

from mnemoscope import __version__
from mnemoscope.cli.adapt import adapt
from mnemoscope.cli.advice import advised
from mnemoscope.cli.atlas import app as atlas
from mnemoscope.cli.capacity import capacity
from mnemoscope.cli.check import check
from mnemoscope.cli.cite import cite
from mnemoscope.cli.cluster import ClusterCommand
from mnemoscope.cli.compare import compare
from mnemoscope.cli.data import data
from mnemoscope.cli.ladder import ladder
from mnemoscope.cli.measure.command import app as measure
from mnemoscope.cli.networks import networks, show
from mnemoscope.cli.parity import parity
from mnemoscope.cli.profile import profile
from mnemoscope.cli.recall import recall
from mnemoscope.cli.remember import remember
from mnemoscope.cli.resume import resume
from mnemoscope.cli.runs.application import app as runs
from mnemoscope.cli.search import search
from mnemoscope.cli.study import app as study
from mnemoscope.cli.tasks import app as task
from mnemoscope.cli.tasks import tasks
from mnemoscope.cli.terminal import HELP, Commands, flowing
from mnemoscope.cli.theory import app as theory
from mnemoscope.cli.train import train

__all__ = ["app"]

app = typer.Typer(
    cls=Commands,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": HELP},
)
for command in (profile, compare, parity, adapt, check, train, capacity, ladder, remember, recall):
    app.command(cls=ClusterCommand)(advised(command))
for plain in (networks, show, cite, tasks, data, resume):
    app.command()(plain)
app.command(cls=ClusterCommand)(search)
groups = {"measure": measure, "theory": theory, "task": task, "runs": runs, "study": study, "atlas": atlas}
for name, group in groups.items():
    app.add_typer(flowing(group), name=name)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"mnemoscope {__version__}")
        raise typer.Exit


Version = Annotated[bool, typer.Option("--version", help="Print the version.", callback=_print_version, is_eager=True)]


@app.callback(invoke_without_command=True)
def mnemoscope(context: typer.Context, version: Version = False) -> None:
    """See how much a recurrent network can remember and express.

    NETWORK is a name from the list of networks, or FILE.py:CLASS or package.module:CLASS for one of your own.
    Every command takes --json. Exit codes: 0 success, 2 a mistake in what was given, 1 any other failure.
    """
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


flowing(app)
