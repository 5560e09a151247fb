"""Command ``check``: whether a network keeps the contract."""

from __future__ import annotations

import re
import warnings
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from mnemoscope.cli.profile import Hidden, InputSize, Layers, Set
from mnemoscope.cli.terminal import FAILURE, Json, console, error_console, print_json, quiet

if TYPE_CHECKING:
    from mnemoscope.testing import Report

__all__ = ["check"]

_RAISED = "; it raised "
_OFTEN = 5
"""Checks with one and the same error that are told as one."""

Factory = Annotated[
    str,
    typer.Argument(
        metavar="NETWORK",
        help="FILE.py:NAME of a class or of a function that builds the network, or a name of `mnemoscope networks`. "
        "This runs the file's code.",
    ),
]


Level = Annotated[
    str | None,
    typer.Option(
        "--level",
        help="contract: all of it; module: what a plain module can keep, however it is called: its numbers, causality, "
        "state, examples apart, gradients, saving. Default: module for a module that is not called like torch.nn.RNN, "
        "with what the contract asks besides.",
        show_default=False,
    ),
]


def check(
    network: Factory,
    hidden: Hidden = None,
    input_size: InputSize = None,
    layers: Layers = None,
    options: Set = None,
    level: Level = None,
    json: Json = False,
    *,
    about: dict[str, Any],
) -> None:
    """Check that a network keeps the contract of torch.nn.RNN, and more; your own networks too.

    All failures are listed, wrong numbers first. Of a module that is called otherwise than torch.nn.RNN its numbers are
    checked, and what it would need to stand in for torch.nn.RNN is said apart.
    """
    from mnemoscope.cli.options import named_values
    from mnemoscope.cli.profile import sizes_of

    own = sizes_of(hidden, input_size, layers, None, "recurrent")
    values = named_values(options or (), "--set")
    given = {**about, **own, **({"options": values} if values else {})}
    with quiet(), error_console().status(f"checking {network}"):
        report, besides = _reports(network, level, given)
    if json:
        failures = list(report.failed.values())
        results = {"passed": report.passed, "skipped": report.skipped, "failures": failures, "besides": besides}
        print_json({"network": network, "ok": not failures, "failure": next(iter(failures), None), **results})
    elif report.failed:
        from mnemoscope.testing.modules import MODULE_CHECKS

        # What is computed wrongly comes before what is only called otherwise.
        for name, sentence in sorted(report.failed.items(), key=lambda each: each[0] not in MODULE_CHECKS):
            typer.echo(f"failed{'' if name in MODULE_CHECKS else ' (form)'}: {sentence}", err=True)
        failed = f"{len(report.failed)} check{'' if len(report.failed) == 1 else 's'} failed"
        typer.echo(f"{report.network}: {failed}, {len(report.passed)} passed", err=True)
    else:
        _print_report(report)
        if besides:
            typer.echo(f"\nTo stand in for torch.nn.RNN it would also have to ({len(besides)}):")
            for sentence in besides:
                typer.echo(f"  {sentence}")
    if report.failed:
        raise typer.Exit(FAILURE)


def _reports(network: str, level: str | None, given: dict[str, Any]) -> tuple[Report, list[str]]:
    """Return what was checked, and of a plain module what the contract asks besides."""
    from mnemoscope.core.errors import UserError
    from mnemoscope.nn import NetworkSpec
    from mnemoscope.nn.registry import get

    factory = get(network)
    # With advice it is the adapted network that is checked, of which nobody can choose the sizes.
    contract = (lambda: NetworkSpec(network, **given).build()) if given else factory
    if level is not None or not _is_plain(factory):
        if level in (None, "contract"):
            return _report(contract), []
        return _report(factory, level=level, **given), []
    module = _report(factory, level="module", **given)
    try:
        whole = _report(factory)
    except UserError:  # it is not built like torch.nn.RNN
        return module, []
    if not whole.failed or "check_batched" in whole.passed:  # it is called like torch.nn.RNN, and meant to be
        return whole, []
    substance = {*module.passed, *module.skipped, *module.failed}
    besides = [text for name, text in whole.failed.items() if name not in substance]
    return module, [] if module.failed else _gathered(besides)


def _gathered(failures: Sequence[str]) -> list[str]:
    """Return what to change, each once; an error that many checks met stands first: it is called otherwise."""
    asked = dict.fromkeys(re.sub(r"^\S+ fails check_\w+: ", "", text) for text in failures)
    errors = Counter(reason for text in asked if (reason := text.partition(_RAISED)[2]))
    reason, times = errors.most_common(1)[0] if errors else ("", 0)
    if times < _OFTEN:
        return list(asked)
    call = f"be called as torch.nn.RNN is, forward(input, hx=None), which {times} checks do: it raised {reason}"
    return [call, *(text for text in asked if text.partition(_RAISED)[2] != reason)]


def _report(factory: Any, **more: Any) -> Report:
    from mnemoscope.testing import CheckFailed, check_network

    try:
        with warnings.catch_warnings():  # torch's, of layers of no input and of exports that a check makes
            warnings.simplefilter("ignore", UserWarning)
            return check_network(factory, **more)
    except CheckFailed as failure:
        if failure.report is None:
            raise
        return failure.report


def _is_plain(factory: Any) -> bool:
    """Whether it is a class of torch that knows nothing of Mnemoscope."""
    from torch import nn

    from mnemoscope.nn import Network

    return isinstance(factory, type) and issubclass(factory, nn.Module) and not issubclass(factory, Network)


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
