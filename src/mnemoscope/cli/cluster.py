"""Option ``--ray [ADDRESS]``: work on a cluster, or on all cores of this machine."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mnemoscope.cli.device import DeviceCommand

if TYPE_CHECKING:
    from mnemoscope.machines.workers import Workers

__all__ = ["Cluster", "ClusterCommand", "workers_at"]

_OPTION = "--ray"
_ADDRESS = re.compile(r"auto|local|localhost|\d+(\.\d+){3}|(ray://)?[\w.\-\[\]]+:\d+")
"""What is no name of a study or of a network; without a port it is refused."""

Cluster = Annotated[
    str | None,
    typer.Option(
        _OPTION,
        metavar="[HOST:PORT]",
        help="Work on a Ray cluster; without an address on the one that runs here, else on all cores of this machine.",
    ),
]


class ClusterCommand(DeviceCommand):
    """A command whose option ``--ray`` may stand without an address."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Put in the usual address where none was typed."""
        whole = []
        for place, one in enumerate(args):
            whole.append(one)
            following = args[place + 1] if place + 1 < len(args) else ""
            if one == _OPTION and not _ADDRESS.fullmatch(following):
                whole.append("auto")
        return super().parse_args(ctx, whole)


@contextmanager
def workers_at(address: str | None, folder: Path | None = None) -> Iterator[Workers | None]:
    """Give the workers of a cluster; None where none was asked for.

    Parameters
    ----------
    folder
        Where runs live, which all machines have to see.
    """
    if address is None:
        yield None
        return
    from mnemoscope.machines.cluster import RayWorkers

    with RayWorkers(address, folder=folder) as workers:
        yield workers
