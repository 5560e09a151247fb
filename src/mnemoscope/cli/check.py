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


def check(network: Factory, json: Json = False, *, about: dict[str, Any]) -> None:
    """Check that a network keeps the contract of torch.nn.RNN, and more; your own networks too."""
    from mnemoscope.nn import NetworkSpec
    from mnemoscope.nn.registry import get
    from mnemoscope.testing import CheckFailed, check_network

    try:
        with quiet(), error_console().status(f"checking {network}"):
            # With advice it is the adapted network that is checked, of which nobody can choose the sizes.
            report = check_network((lambda: NetworkSpec(network, **about).build()) if about else get(network))
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
