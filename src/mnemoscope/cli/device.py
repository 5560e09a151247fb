"""Option ``--device`` of every command that builds networks."""

from __future__ import annotations

from functools import cache
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

__all__ = ["DeviceCommand"]


class DeviceCommand(TyperCommand):
    """A command that computes where ``--device`` says: what it calls need not know of it."""

    def __init__(self, *args: Any, params: list[Any] | None = None, **more: Any) -> None:
        own = list(params or [])
        known = any("--device" in parameter.opts for parameter in own)
        super().__init__(*args, params=own if known else [*own, _option()], **more)


def _choose(context: typer.Context, value: str | None) -> None:
    if value is not None:
        from mnemoscope.core.devices import computing_on

        context.with_resource(computing_on(value))


Device = Annotated[
    str | None,
    typer.Option(
        "--device", metavar="DEVICE", help="Where to compute: cpu, cuda, ..", callback=_choose, expose_value=False
    ),
]


def _template(device: Device = None) -> None:
    """Have a device."""


@cache
def _option() -> Any:
    """Return the option as typer makes it of a command that has it."""
    app = typer.Typer(add_completion=False)
    app.command()(_template)
    return next(one for one in typer.main.get_command(app).params if "--device" in one.opts)
