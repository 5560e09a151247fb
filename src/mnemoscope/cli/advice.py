"""Options by which every command takes advice on a stranger's module."""

from __future__ import annotations

import functools
import inspect
import shlex
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from mnemoscope.core.errors import Advised

__all__ = ["ADVICE_OPTIONS", "about_of", "advised", "command_with"]

_PANEL = "How your module is called, where that is not found out"


def _option(flag: str, metavar: str, help: str, several: bool = False) -> tuple[Any, None]:
    kind = list[str] | None if several else str | None
    option = typer.Option(flag, metavar=metavar, help=help, rich_help_panel=_PANEL, show_default=False)
    return Annotated[kind, option], None


ADVICE_OPTIONS: dict[str, tuple[Any, None]] = {
    "kind": _option("--kind", "KIND", "cell, recurrent (whole sequences and a state) or sequence (no state)."),
    "state": _option("--state", "NAME,..|N", "Arguments that take the state; or its place in what is returned."),
    "layout": _option("--layout", "AXES", "Axes that it reads: bth, tbh, bht; of a cell 1bh or b1h."),
    "keyword": _option("--keyword", "NAME=VALUE", "A further argument of forward; may be repeated.", several=True),
    "init": _option("--init", "METHOD", "The method that gives the first state, such as init_hidden."),
    "method": _option("--method", "METHOD", "What is called instead of forward, such as step."),
    "output": _option("--output", "N|NAME", "Where the output stands in what is returned; with --matrix a file, of C."),
    "length": _option("--length", "N", "A number of steps that it takes, where it does not take every one."),
    "part": _option("--part", "NAME", "The module inside that is meant, such as rnn.cell."),
    "stub": _option("--stub", "PACKAGE", "An empty module stands in for it; may be repeated.", several=True),
    "weights": _option("--weights", "FILE", "Trained weights: safetensors, or a state_dict that torch.save wrote."),
}
"""Annotation and default of each option."""


def about_of(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return what was typed as arguments of `mnemoscope.nn.NetworkSpec`: advice and weights, where there are any."""
    found = {"advice": _advice(given), "weights": given.get("weights")}
    return {name: value for name, value in found.items() if value}


def _advice(given: Mapping[str, Any]) -> dict[str, Any]:
    from mnemoscope.cli.options import named_values, plain_value, size_of

    found = {name: value for name in ADVICE_OPTIONS if (value := given.get(name)) not in (None, [], ())}
    if not found:
        return {}
    advice: dict[str, Any] = {name: found[name] for name in ("kind", "layout", "method", "part") if name in found}
    if "state" in found:
        parts = tuple(found["state"].split(","))
        places = all(part.isdigit() for part in parts)
        value = tuple(map(int, parts)) if places else parts
        advice["state" if places else "state_name"] = value[0] if len(value) == 1 else value
    if "output" in found:
        advice["output"] = plain_value(found["output"])
    if "init" in found:
        advice["init_state"] = found["init"]
    if "length" in found:
        advice["length"] = size_of("--length", found["length"])
    if "keyword" in found:
        advice["keywords"] = named_values(found["keyword"], "--keyword")
    if "stub" in found:
        from mnemoscope.core.standins import stand_in

        advice["stub"] = tuple(found["stub"])
        for package in advice["stub"]:
            stand_in(package)  # before anything is imported that could import it
    return advice


def advised(command: Callable[..., None]) -> Callable[..., None]:
    """Return a command that also takes the options of advice, and gets them as `about`."""
    signature = inspect.signature(command, eval_str=True)

    @functools.wraps(command)
    def run(**given: Any) -> None:
        own = {name: given.pop(name) for name in ADVICE_OPTIONS}
        command(**given, about=about_of(own))

    own = [p.replace(kind=p.KEYWORD_ONLY) for p in signature.parameters.values() if p.name != "about"]
    more = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
        for name, (annotation, default) in ADVICE_OPTIONS.items()
    ]
    del run.__wrapped__
    vars(run)["__signature__"] = inspect.Signature([*own, *more])  # where typer looks for the options
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in (*own, *more)}
    return run


def command_with(words: Sequence[str], error: Advised) -> str:
    """Return the command line that was typed with the options that mend an error.

    Examples
    --------
    >>> from mnemoscope.core.errors import Advised
    >>> command_with(["profile", "a.py:Net", "--kind", "cell"], Advised("", ["--kind", "sequence"], ""))
    'mnemoscope profile a.py:Net --kind sequence'
    """
    kept, replaced = list(words), set(error.flags[::2]) - {"--set", "--keyword", "--stub"}
    for flag in replaced:
        while flag in kept:
            place = kept.index(flag)
            del kept[place : place + 2]
        kept = [word for word in kept if not word.startswith(f"{flag}=")]
    return " ".join(["mnemoscope", *map(shlex.quote, kept), *error.flags])
