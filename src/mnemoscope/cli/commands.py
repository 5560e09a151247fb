"""Commands that are made when they are asked for, from a table of arguments."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import typer
from rich.markup import escape

from mnemoscope.core.errors import UserError

__all__ = ["make_command"]


def make_command(
    name: str, run: Callable[..., None], parameters: dict[str, tuple[Any, Any]], help: str, surplus: str | None = None
) -> Any:
    """Return a command whose arguments are `parameters`: for each its annotation, as Typer reads it, and default.

    Parameters
    ----------
    name
        As which it is typed.
    run
        Called with the arguments by name.
    help
        What ``--help`` says before the arguments; no markup.
    surplus
        What is said when more is typed than the arguments; by default which words are too many.
    """

    def call(context: typer.Context, **given: Any) -> None:
        if context.args:
            raise UserError(str(surplus))
        run(**given)

    keyword = inspect.Parameter.KEYWORD_ONLY
    signature = [inspect.Parameter("context", keyword, annotation=typer.Context)]
    signature += [
        inspect.Parameter(argument, keyword, default=default, annotation=annotation)
        for argument, (annotation, default) in parameters.items()
    ]
    call.__signature__ = inspect.Signature(signature)  # type: ignore[attr-defined]
    call.__annotations__ = {parameter.name: parameter.annotation for parameter in signature}
    app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    app.command(name, help=escape(help), context_settings={"allow_extra_args": surplus is not None})(call)
    return typer.main.get_command(app)
