"""Command ``check``: whether a network keeps the contract."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from mnemoscope.cli.terminal import FAILURE, Json, console, error_console, print_json, quiet

if TYPE_CHECKING:
    from mnemoscope.testing import Report

__all__ = ["check"]

Factory = Annotated[
    str,
    typer.Argument(
        metavar="NETWORK",
        help="FILE.py:NAME of a class or of a function that builds the network, or a name of `mnemoscope networks`. "
        "This runs the file's code.",
    ),
]


Level = Annotated[
    str,
    typer.Option(
        "--level",
        help="contract: all of it; module: what a plain module can keep, however it is called: its numbers, causality, "
        "state, examples apart, gradients, saving.",
    ),
]


def check(network: Factory, level: Level = "contract", json: Json = False, *, about: dict[str, Any]) -> None:
    """Check that a network keeps the contract of torch.nn.RNN, and more; your own networks too.

    All failures are listed. A cell or a block that is not called like torch.nn.RNN is checked with --level module.
    """
    from mnemoscope.core.plugins import is_location
    from mnemoscope.nn import NetworkSpec
    from mnemoscope.nn.registry import get
    from mnemoscope.testing import CheckFailed, check_network

    try:
        with quiet(), error_console().status(f"checking {network}"):
            if level == "contract":
                # With advice it is the adapted network that is checked, of which nobody can choose the sizes.
                report = check_network((lambda: NetworkSpec(network, **about).build()) if about else get(network))
            else:
                report = check_network(get(network), level=level, **about)
    except CheckFailed as failure:
        if failure.report is None:
            raise
        report = failure.report
    if json:
        failures = list(report.failed.values())
        results = {"passed": report.passed, "skipped": report.skipped, "failures": failures}
        print_json({"network": network, "ok": not failures, "failure": next(iter(failures), None), **results})
    elif report.failed:
        for sentence in report.failed.values():
            typer.echo(f"failed: {sentence}", err=True)
        passed = f"{report.network}: {len(report.failed)} checks failed, {len(report.passed)} passed"
        plain = level == "contract" and is_location(network)
        typer.echo(f"{passed}{'; for a plain module: --level module' if plain else ''}", err=True)
    else:
        _print_report(report)
    if report.failed:
        raise typer.Exit(FAILURE)


def _print_report(report: Report) -> None:
    out = console()
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), show_header=False)
    table.add_column(no_wrap=True)
    table.add_column()
    for name in report.passed:
        table.add_row(name, "passed")
    for name, reason in report.skipped.items():
        table.add_row(name, f"skipped: {reason}")
    out.print(table)
    out.print()
    out.print(f"{report.network}: {len(report.passed)} checks passed, {len(report.skipped)} skipped")
