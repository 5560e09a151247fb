"""Command ``measure``: one command for every measure of the table, made when it is asked for."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table
from typer.core import TyperGroup

from mnemoscope.cli.advice import about_of
from mnemoscope.cli.terminal import Force, Json, check_output, console, error_console, print_json, quiet

if TYPE_CHECKING:
    from mnemoscope.core.result import Result
    from mnemoscope.measures import Measure

__all__ = ["app"]

ALL = "all"

Seed = Annotated[
    int,
    typer.Option("--seed", help="Draws the weights of a network that is built, and the measure's random numbers."),
]
Plot = Annotated[
    str | None, typer.Option("--plot", metavar="PATH", help="Draw it: .svg, .png, .pdf, .html or .json (Vega-Lite).")
]
Quick = Annotated[bool, typer.Option("--quick", help="Less work for a first look: fewer or shorter runs.")]


class Measures(TyperGroup):
    """The group of measures. Torch is imported when the first of them is asked for."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names of all measures, and the one for all of them."""
        from mnemoscope.measures import names

        return [ALL, *names()]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return the command of a measure, or raise with the nearest name."""
        if cmd_name == ALL:
            from mnemoscope.cli.measure.all import all_command

            return all_command(ALL)
        from mnemoscope.measures import get

        return _command(get(cmd_name))


app = typer.Typer(cls=Measures, add_completion=False, pretty_exceptions_enable=False, invoke_without_command=True)


@app.callback()
def measure(context: typer.Context, json: Json = False) -> None:
    """Measure a network or matrices: Fisher memory, capacity, gradients, spectrum, resources.

    `mnemoscope measure NAME --help` shows what a measure takes. `mnemoscope measure all NETWORK` takes all that apply.
    """
    if context.invoked_subcommand is not None:
        return
    if json:
        print_json({"measures": [_overview(name) for name in _names()]})
    else:
        typer.echo(context.get_help())


def _names() -> list[str]:
    from mnemoscope.measures import names

    return names()


def _overview(name: str) -> dict[str, Any]:
    from mnemoscope.cli.measure.application import measure_options, network_function
    from mnemoscope.core.docs import function_summary
    from mnemoscope.measures import get

    entry = get(name)
    return {
        "name": name,
        "summary": function_summary(entry.function),
        "kinds": list(entry.kinds) if network_function(entry) else [],
        "needs": list(entry.needs),
        "matrices": list(entry.matrices.values()),
        "options": [option.flag for option in measure_options(entry).values()],
        "quick": entry.quick is not None,
    }


def _command(entry: Measure) -> Any:
    from mnemoscope.cli.measure.application import (
        LINEAR,
        measure_options,
        network_function,
        network_parameters,
        no_network,
        run_parameters,
        takes_runs,
    )
    from mnemoscope.cli.options import make_command
    from mnemoscope.core.docs import function_summary

    of_networks = network_function(entry) is not None
    taken = run_parameters if takes_runs(entry) else network_parameters
    parameters = taken() if of_networks else {}
    parameters |= {flag: _file(flag, meaning) for flag, meaning in _flags(entry, LINEAR).items()}
    parameters |= {option.name: (option.annotation, None) for option in measure_options(entry).values()}
    if _has_chance(entry):
        parameters["seed"] = (Seed, 0)
    if entry.quick is not None:
        parameters["quick"] = (Quick, False)
    parameters |= {"plot": (Plot, None), "force": (Force, False), "json": (Json, False)}
    surplus = None if of_networks else no_network(entry)
    return make_command(entry.name, partial(_run, entry), parameters, function_summary(entry.function), surplus)


def _flags(entry: Measure, linear: dict[str, str]) -> dict[str, str]:
    """Return the options that take files, with what they mean."""
    from mnemoscope.cli.measure.application import takes_nothing
    from mnemoscope.core.docs import function_arguments

    if not entry.matrices:
        return {} if takes_nothing(entry) else linear
    meanings = {argument.name: argument.meaning for argument in function_arguments(entry.function)}
    return {flag: meanings.get(name, "") for name, flag in entry.matrices.items()}


def _file(flag: str, meaning: str) -> tuple[Any, Any]:
    from rich.markup import escape

    words = escape(f"{meaning} A file .npy, .npz, .csv, .tsv or .txt.")
    option = typer.Option(f"--{flag}", metavar="FILE", help=words, rich_help_panel="Matrices from files")
    return Annotated[list[str] | None, option], None


def _has_chance(entry: Measure) -> bool:
    from mnemoscope.cli.measure.application import network_function, takes_runs
    from mnemoscope.core.docs import function_arguments

    own = any(argument.name == "seed" for argument in function_arguments(entry.function))
    return own or (network_function(entry) is not None and not takes_runs(entry))


def _run(
    entry: Measure, *, json: bool, plot: str | None, force: bool = False, quick: bool = False, **given: Any
) -> None:
    from mnemoscope.cli.measure.application import LINEAR, Source, apply, linear_files, measure_options
    from mnemoscope.report import chart

    if plot is not None:
        chart.check_path(plot)
        check_output(plot, force)
    flags = _flags(entry, LINEAR)
    files = linear_files({flag: given.pop(flag) for flag in flags if given.get(flag)}, given)
    options = {name: option for name, option in measure_options(entry).items() if given.get(name) is not None}
    values = {name: option.value(given.pop(name)) for name, option in options.items()}  # before advice of that name
    if quick:
        values = {**(entry.quick or {}), **values}
    if values.get("inputs") is not None and given.get("input_size") is None:
        shape: Any = getattr(values["inputs"], "shape", ())
        given["input_size"] = str(shape[-1] if len(shape) > 1 else 1)
    source = Source(files=files, **_source_facts(given))
    with quiet(), error_console().status(f"{entry.name} of {source.label}"):
        found = apply(entry, source, values)
        if plot is not None:
            chart.save(found.plot(), plot)
    if json:
        print_json(found.to_dict())
    else:
        _print_result(found, plot)


def _source_facts(given: dict[str, Any]) -> dict[str, Any]:
    names = ("network", "hidden", "input_size", "layers", "parameters", "count", "seed")
    found = {name: given[name] for name in names if name in given}
    return found | {"option": tuple(given.get("option") or ()), "about": about_of(given)}


def _print_result(found: Result, plot: str | None) -> None:
    out = console()
    out.print(str(found), style="bold")
    for rows in (found.facts(), found.provenance() | ({} if plot is None else {"picture": plot})):
        table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), show_header=False)
        table.add_column(no_wrap=True)
        table.add_column(overflow="fold")
        for name, value in rows.items():
            table.add_row(name, value)
        if rows:
            out.print()
            out.print(table)
