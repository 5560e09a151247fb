"""Command ``measure all``: every measure that applies to a network, one after the other."""

from __future__ import annotations

import textwrap
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Annotated, Any

import typer

from mnemoscope.cli.advice import ADVICE_OPTIONS, about_of
from mnemoscope.cli.measure.application import (
    LINEAR,
    Source,
    apply_to_network,
    linear_files,
    network_function,
    network_parameters,
    reason_against,
)
from mnemoscope.cli.options import make_command
from mnemoscope.cli.terminal import FAILURE, Json, console, print_json, quiet, tracked
from mnemoscope.core.errors import UserError
from mnemoscope.core.result import Result
from mnemoscope.measures import Measure, get, names

__all__ = ["all_command"]

Quick = Annotated[bool, typer.Option("--quick", help="The quick set: a first look within seconds.")]
_NAMES = 22
"""Width of the column of names."""

Seed = Annotated[int, typer.Option("--seed", help="Draws the weights of a network that is built, and all else.")]


def all_command(name: str) -> Any:
    """Return the command."""
    files = {
        flag: (Annotated[str | None, typer.Option(f"--{flag}", metavar="FILE", help=meaning)], None)
        for flag, meaning in LINEAR.items()
    }
    parameters = {
        **network_parameters(),
        **files,
        "quick": (Quick, False),
        "seed": (Seed, 0),
        "json": (Json, False),
    }
    words = "Run every measure that applies to a network, and say why the others do not."
    return make_command(name, _run_all, parameters, words)


@dataclass
class _Results:
    """Results, times and failures of the measures, by name."""

    by_name: dict[str, Result] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    skipped: dict[str, str] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)


def _run_all(*, quick: bool, json: bool, option: list[str] | None, **given: Any) -> None:
    files = linear_files({flag: [path] for flag in LINEAR if (path := given.pop(flag)) is not None}, given)
    about = about_of({name: given.pop(name, None) for name in ADVICE_OPTIONS})
    source = Source(files=files, option=tuple(option or ()), about=about, **given)
    if (source.network is None) == (not files):
        raise UserError("measure all needs a network: its name or file, or --matrix and --input; one of the two")
    with quiet():
        network = source.build()
    results = _Results()
    for name in _measured(network, source.seed, quick, results):
        if not json:
            _print_named(name, str(results.by_name[name]))
    if json:
        print_json(_document(source, quick, results))
    else:
        _print_rest(results)
    if results.failed:
        raise typer.Exit(FAILURE)


def _measured(network: Any, seed: int, quick: bool, results: _Results) -> Iterator[str]:
    """Run what applies, and give each name when its result is there."""
    entries = [get(name) for name in names()]
    natives = {entry.function: entry.name for entry in entries}
    todo = []
    for entry in entries:
        reason = _reason(entry, network, natives, quick)
        if reason is None:
            todo.append(entry)
        else:
            results.skipped[entry.name] = reason
    attempts = tracked(todo, lambda entry: entry.name, partial(_try, network, seed, quick, results))
    for entry, _ in attempts:
        if entry.name in results.by_name:
            yield entry.name


def _reason(entry: Measure, network: Any, natives: dict[Any, str], quick: bool) -> str | None:
    same = natives.get(network_function(entry))
    if network_function(entry) is not entry.function and same is not None:
        return f"for a network it is the same as {same}"
    against = reason_against(entry, network, entry.quick or {})
    if against is None and quick and entry.quick is None:
        return "it is not part of the quick set"
    return against


def _try(network: Any, seed: int, quick: bool, results: _Results, entry: Measure) -> None:
    begin = time.perf_counter()
    try:
        with quiet():
            found = apply_to_network(entry, network, seed, (entry.quick or {}) if quick else {})
            str(found)
    except UserError as error:
        results.skipped[entry.name] = " ".join(str(error).split())
    except Exception as error:  # one that fails must not lose the others
        results.failed[entry.name] = f"{type(error).__name__}: {' '.join(str(error).split())}"
    else:
        results.by_name[entry.name] = found
        results.seconds[entry.name] = time.perf_counter() - begin


def _document(source: Source, quick: bool, results: _Results) -> dict[str, Any]:
    return {
        "network": source.label,
        "quick": quick,
        "seed": source.seed,
        "results": {name: found.to_dict() for name, found in results.by_name.items()},
        "seconds": results.seconds,
        "skipped": results.skipped,
        "failed": results.failed,
    }


def _print_rest(results: _Results) -> None:
    for title, rows in (("Does not apply", results.skipped), ("Failed", results.failed)):
        if rows:
            typer.echo(f"\n{title}")
        for name, reason in sorted(rows.items()):
            _print_named(name, reason)
    total = sum(results.seconds.values())
    counts = f"{len(results.by_name)} measures in {total:.1f} s"
    typer.echo(f"\n{counts}; {len(results.skipped)} do not apply, {len(results.failed)} failed")


def _print_named(name: str, text: str) -> None:
    width = max(60, min(console().width, 120))
    lines = textwrap.wrap(text, width, initial_indent=f"{name:<{_NAMES}} ", subsequent_indent=" " * (_NAMES + 1))
    typer.echo("\n".join(lines))
