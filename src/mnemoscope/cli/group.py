"""How every command ends: one line for a user's mistake, one exit code per outcome."""

from __future__ import annotations

import io
import os
import sys
from typing import Any, NoReturn

import typer
from typer.core import TyperGroup

from mnemoscope.core.errors import UserError

__all__ = ["FAILURE", "MISTAKE", "Commands"]

FAILURE = 1
MISTAKE = 2


class Commands(TyperGroup):
    """A group of commands that ends with 0 for success, 2 for a user's mistake, 1 for the rest.

    A mistake is one line on standard error. An error that nobody foresaw keeps its traceback.
    """

    def main(self, *args: Any, **options: Any) -> NoReturn:
        """Run the command that the arguments name, and leave with its exit code."""
        options["standalone_mode"] = False
        if isinstance(sys.stdout, io.TextIOWrapper):
            sys.stdout.reconfigure(errors="replace")  # a terminal without the letters of a name still gets the rest
        if sys.stdout is None:
            sys.exit(_say("standard output is closed", FAILURE))
        try:
            code = super().main(*args, **options)
            sys.stdout.flush()
        except UserError as error:
            code = _say(str(error), MISTAKE)
        except typer.TyperException as error:
            code = _say(error.format_message(), error.exit_code)
        except BrokenPipeError:
            # The reader has seen enough (`| head`). What is still buffered must not be flushed at exit.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            code = FAILURE
        except OSError as error:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            what = "the output cannot be written" if error.filename is None else "a file cannot be used"
            code = _say(f"{what}: {error}", FAILURE)
        except (MemoryError, RuntimeError) as error:
            if not _is_lack_of_memory(error):
                raise
            code = _say("not enough memory for this size: choose a smaller one", FAILURE)
        except SystemExit as leaving:
            # Rich leaves so when its reader is gone; nobody else but code that was given does.
            left = isinstance(leaving.__context__, BrokenPipeError)
            code = FAILURE if left else _say("the given code ended the program (sys.exit)", FAILURE)
        sys.exit(code if isinstance(code, int) else 0)


def _is_lack_of_memory(error: Exception) -> bool:
    """Say whether an allocation failed; torch's is a RuntimeError that only its words tell from others."""
    return isinstance(error, MemoryError) or "can't allocate memory" in str(error)


def _say(message: str, code: int) -> int:
    typer.echo(f"error: {' '.join(message.split())}", err=True)
    return code
