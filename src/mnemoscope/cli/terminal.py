"""Terminal of every command: console, JSON, progress, warnings, mistakes in one line, and exit codes."""

from __future__ import annotations

import contextlib
import inspect
import io
import json
import os
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn, TypeVar

import typer
from rich.console import Console
from typer.core import TyperGroup

from mnemoscope.core.errors import Advised, RecordWarning, UserError, expected

if TYPE_CHECKING:
    from rich.progress import Progress

__all__ = [
    "FAILURE",
    "HELP",
    "MISTAKE",
    "Commands",
    "Force",
    "Json",
    "bare_flags",
    "check_output",
    "check_page",
    "console",
    "error_console",
    "flowing",
    "print_json",
    "quiet",
    "tracked",
]

HELP = ["-h", "--help"]
FAILURE = 1
MISTAKE = 2

T = TypeVar("T")
R = TypeVar("R")
C = TypeVar("C", bound=Any)

Json = Annotated[bool, typer.Option("--json", help="Print one JSON document instead, and nothing else.")]
Force = Annotated[bool, typer.Option("--force", help="Replace files that Mnemoscope did not write, too.")]

_UNLIMITED = 1000
_NARROWEST = 80
_LEAST = 20


def flowing(app: typer.Typer) -> typer.Typer:
    """Return an application whose help is folded by the terminal's width alone, not where docstrings are."""
    for one in (*app.registered_commands, app.registered_callback):
        if one is not None and one.callback is not None and not isinstance(one.help, str):
            paragraphs = inspect.cleandoc(one.callback.__doc__ or "").split("\n\n")
            one.help = "\n\n".join(" ".join(each.split()) for each in paragraphs)
    return app


def bare_flags(command: C) -> C:
    """Return a command whose help shows no value behind a flag: ``--json``, where Typer has ``--json <bool>``."""
    about_help = command.get_help_option(typer.Context(command, help_option_names=HELP))
    for parameter in (*command.params, about_help):
        if getattr(parameter, "is_flag", False):
            parameter.metavar = ""
    for one in getattr(command, "commands", {}).values():
        bare_flags(one)
    return command


def check_output(path: str | os.PathLike[str] | None, force: bool) -> None:
    """Raise before the work when a file is in the way that is not ours; of a folder, when it is not one we filled."""
    from mnemoscope.core.files import is_ours

    if path is None or force:
        return
    place = Path(path)
    if place.is_dir():
        written = (".svg", ".pdf", ".csv", ".tex", ".txt", ".bib")
        strange = not is_ours(place / "methods.txt") and any(one.suffix in written for one in place.iterdir())
    else:
        strange = place.is_file() and not is_ours(place)
    if strange:
        raise UserError(f"{str(path)!r} is there and was not written by Mnemoscope: give --force, or another name")


def check_page(path: str | os.PathLike[str]) -> Path:
    """Return the path of a page, or raise where its name says that it is something else."""
    if Path(path).suffix.lower() not in ("", ".html", ".htm"):
        what = "a file that ends in .html (a PDF: print the page from a browser)"
        raise expected("--html", what, os.fspath(path))
    return Path(path)


def console(*, wide: bool = False) -> Console:
    """Return a console on standard output.

    Parameters
    ----------
    wide
        For tables: at least 80 columns, since a cell that does not fit would be cut; and when the output is piped,
        never fold lines, so that each row stays one line to grep in.
    """
    out = Console(highlight=False, markup=False, emoji=False)
    out.width = max(out.width, _LEAST)
    if wide:
        piped = not sys.stdout.isatty() and "COLUMNS" not in os.environ
        out.width = _UNLIMITED if piped else max(out.width, _NARROWEST)
    return out


def error_console() -> Console:
    """Return a console on standard error, for progress."""
    return Console(stderr=True, highlight=False, markup=False, emoji=False)


def quiet() -> AbstractContextManager[object]:
    """Send what a user's code prints to standard error, so that standard output is the command's alone."""
    from mnemoscope.core.printed import aside

    return aside()


def print_json(document: dict[str, Any]) -> None:
    """Print one JSON document."""
    typer.echo(json.dumps(document, indent=2, allow_nan=False))


def tracked(items: Iterable[T], name: Callable[[T], str], work: Callable[[T], R]) -> Iterator[tuple[T, R]]:
    """Give each item with what `work` makes of it. Meanwhile a bar shows its name, and about how long is left."""
    todo = list(items)
    bar = _bar()
    task = bar.add_task("", total=len(todo))
    for item in todo:
        bar.update(task, description=name(item))
        with bar:
            made = work(item)
        bar.advance(task)
        yield item, made


def _bar() -> Progress:
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    out = error_console()
    return Progress(
        *columns,
        TimeRemainingColumn(),
        console=out,
        transient=True,
        disable=not out.is_terminal,
        redirect_stdout=False,  # what is printed on standard output belongs there
        redirect_stderr=False,
    )


@contextlib.contextmanager
def _shown_warnings() -> Iterator[None]:
    """Print each warning of the record once, as ``warning: ...``, when it comes."""
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


class Commands(TyperGroup):
    """A group of commands that ends with 0 for success, 2 for a user's mistake, 1 for the rest.

    A mistake is one line on standard error. An error that nobody foresaw keeps its traceback.
    """

    def main(self, *args: Any, **options: Any) -> NoReturn:
        """Run the command that the arguments name, and leave with its exit code."""
        options["standalone_mode"] = False
        bare_flags(self)
        if isinstance(sys.stdout, io.TextIOWrapper):
            sys.stdout.reconfigure(errors="replace")  # a terminal without the letters of a name still gets the rest
        if sys.stdout is None:
            sys.exit(_say("standard output is closed", FAILURE))
        try:
            with _shown_warnings():
                code = super().main(*args, **options)
            sys.stdout.flush()
            if code not in (None, 0, FAILURE, MISTAKE):  # what Typer makes of Ctrl-C
                code = _say("interrupted", FAILURE)
        except Advised as error:
            from mnemoscope.cli.advice import command_with

            typed = options.get("args") or (args[0] if args and args[0] is not None else sys.argv[1:])
            code = _say(f"{error.reason}; this works: {command_with(list(typed), error)}", MISTAKE)
        except BaseException as error:
            code = _code_of(error)
        sys.exit(code if isinstance(code, int) else 0)


def _code_of(error: BaseException) -> int:
    """Say in one line what ended a command, and return its exit code; raise again what nobody foresaw."""
    if isinstance(error, UserError):
        return _say(str(error), MISTAKE)
    if isinstance(error, typer.TyperException):
        context: Any = getattr(error, "ctx", None) if type(error).__name__ == "MissingParameter" else None
        usage = "" if context is None else f" {context.get_usage()}"
        return _say(error.format_message() + usage, error.exit_code)
    if isinstance(error, OSError):
        return _output_failed(error)
    if isinstance(error, SystemExit):
        # Rich leaves so when its reader is gone; nobody else but code that was given does.
        left = isinstance(error.__context__, BrokenPipeError)
        return FAILURE if left else _say("the given code ended the program (sys.exit)", FAILURE)
    if isinstance(error, KeyboardInterrupt):
        return _say("interrupted", FAILURE)
    if not isinstance(error, Exception):
        return _say(f"the given code raised {type(error).__name__}: {error}", FAILURE)
    words = _too_much(error)
    if words is None:
        raise error
    return _say(words, FAILURE)


def _output_failed(error: OSError) -> int:
    # What is still buffered must not be flushed at exit.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    if isinstance(error, BrokenPipeError):  # the reader has seen enough (`| head`)
        return FAILURE
    what = "the output cannot be written" if error.filename is None else "a file cannot be used"
    return _say(f"{what}: {error}", FAILURE)


def _too_much(error: Exception) -> str | None:
    """Return the line for a size beyond the memory or beyond numbers, which torch tells by words alone; else None."""
    words = str(error)
    if isinstance(error, MemoryError) or "can't allocate memory" in words:
        return "not enough memory for this size: choose a smaller one"
    if isinstance(error, OverflowError) or "verflow" in words:
        return "a number is too large to compute with: choose a smaller one"
    return None


def _say(message: str, code: int) -> int:
    typer.echo(f"error: {' '.join(message.split())}", err=True)
    return code
