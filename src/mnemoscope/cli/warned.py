"""Warnings of the record as a person reads them: one line on standard error."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator
from typing import Any

import typer
from typer.core import TyperGroup

__all__ = ["Warned", "warned"]


@contextlib.contextmanager
def warned() -> Iterator[None]:
    """Print each warning of the record once, as ``warning: ...``, when it comes."""
    from mnemoscope.runs.errors import RecordWarning

    with warnings.catch_warnings():
        show = warnings.showwarning

        def tell(message: Warning | str, category: type[Warning], *rest: Any, **options: Any) -> None:
            if issubclass(category, RecordWarning):
                typer.echo(f"warning: {message}", err=True)
            else:
                show(message, category, *rest, **options)

        warnings.simplefilter("once", RecordWarning)
        warnings.showwarning = tell
        yield


class Warned(TyperGroup):
    """A group of commands whose warnings are one line each."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command that was named."""
        with warned():
            return super().invoke(ctx)
