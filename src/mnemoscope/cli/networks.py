"""The commands ``networks``, ``show`` and ``cite``: which networks there are, and what they are."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from mnemoscope.cli.output import Json, console, print_json, quiet

if TYPE_CHECKING:
    from mnemoscope.cli.facts import Facts
    from mnemoscope.core.docs import Argument

__all__ = ["Network", "cite", "networks", "show"]

Network = Annotated[
    str,
    typer.Argument(
        metavar="NETWORK", help="A name of `mnemoscope networks`, or FILE.py:CLASS. This runs the file's code."
    ),
]
Kind = Annotated[
    str | None, typer.Option("--kind", help="Only networks of this kind: recurrent, sequence, classifier, relational.")
]


def networks(kind: Kind = None, json: Json = False) -> None:
    """List all networks: family, kind, size of the state, parameters, reference."""
    from mnemoscope.cli.facts import SIZES, all_facts

    found = all_facts(kind)
    if json:
        sizes = {**SIZES, "num_layers": 1}
        print_json({"networks": [one.overview() for one in found], "parameters_counted_at": sizes})
        return
    out = console(wide=True)
    narrow = out.width < 100
    table = Table(box=None, pad_edge=False, padding=(0, 1 if narrow else 2, 0, 0), header_style="bold")
    for title in ("name", "family", "kind"):
        table.add_column(title, no_wrap=True, overflow="fold")
    table.add_column("state", max_width=14 if narrow else None)
    table.add_column("params", justify="right", no_wrap=True)
    table.add_column("reference")
    for one in found:
        count = "" if one.parameters is None else f"{one.parameters:,}"
        table.add_row(one.name, one.family or "", one.kind or "", one.state or "", count, one.cited)
    out.print(table)
    size, width = SIZES["hidden_size"], SIZES["input_size"]
    out.print()
    out.print(f"{len(found)} networks. state: real numbers per layer, n = hidden_size.")
    out.print(f"params: parameters of one layer with hidden_size = {size} and input_size = {width}.")
    for line in _other_sizes(found):
        out.print(f"params of {line}.")
    out.print("More on one of them: mnemoscope show NAME")


def show(network: Network, json: Json = False) -> None:
    """Show one network: equations, arguments and their meaning, notes, references."""
    from mnemoscope.cli.facts import facts

    with quiet():
        found = facts(network)
    if json:
        print_json(found.to_dict() | {"citations": [entry.text for entry in found.references]})
    else:
        _print_facts(console(), found)


def cite(network: Network, json: Json = False) -> None:
    """Print the BibTeX entries of the papers that define a network."""
    from mnemoscope.cli.facts import facts
    from mnemoscope.core.errors import UserError

    with quiet():
        found = facts(network)
    if not found.references:
        raise UserError(f"{found.name} names no reference")
    if json:
        entries = [{"key": entry.key, "text": entry.text, "bibtex": entry.bibtex()} for entry in found.references]
        print_json({"network": found.name, "references": entries})
    else:
        typer.echo("\n\n".join(entry.bibtex() for entry in found.references))


def _print_facts(out: Console, found: Facts) -> None:
    kinds = ", ".join(part for part in (found.family, found.kind) if part)
    _print_line(out, found.name, f" ({kinds})" if kinds else "")
    _print_folded(out, found.summary)
    _print_part(out, "Equations", found.equations)
    _print_part(out, "Size", _sizes(found))
    if found.arguments:
        _print_title(out, f"Arguments of {found.class_name}")
        for argument in found.arguments:
            _print_argument(out, argument)
    _print_part(out, "Notes", found.notes)
    _print_part(out, "References", [entry.text for entry in found.references])


def _sizes(found: Facts) -> list[str]:
    from mnemoscope.cli.facts import SIZES

    lines = []
    if found.state:
        lines.append(f"state: {found.state} real numbers per layer, n = hidden_size")
    if found.parameters is not None:
        layers = ", one layer" if found.counted_at == SIZES else ""
        lines.append(f"parameters: {found.parameters:,} with {_listed(found.counted_at)}{layers}")
    return lines


def _other_sizes(found: Iterable[Facts]) -> list[str]:
    """Return which networks are counted at other sizes than the rest, and at which."""
    from mnemoscope.cli.facts import SIZES

    groups: dict[str, list[str]] = {}
    for one in found:
        if one.counted_at != SIZES:
            groups.setdefault(_listed(one.counted_at), []).append(one.name)
    return [f"{', '.join(names)}: with {sizes}" for sizes, names in groups.items()]


def _listed(sizes: dict[str, int]) -> str:
    return ", ".join(f"{name} = {value}" for name, value in sizes.items())


def _print_part(out: Console, title: str, lines: Iterable[str]) -> None:
    for number, line in enumerate(lines):
        if number == 0:
            _print_title(out, title)
        _print_folded(out, line, indent="  ", hang="    ")


def _print_title(out: Console, title: str) -> None:
    out.print()
    _print_line(out, title)


def _print_argument(out: Console, argument: Argument) -> None:
    from mnemoscope.core.docs import REQUIRED

    written = f": {argument.type}" if argument.type else ""
    default = "" if argument.default is REQUIRED else f" = {argument.default!r}"
    _print_line(out, f"  {argument.name}", written + default)
    _print_folded(out, argument.meaning, indent="      ", hang="      ")


def _print_line(out: Console, strong: str, plain: str = "") -> None:
    out.print(Text.assemble((strong, "bold"), plain), soft_wrap=True)


def _print_folded(out: Console, text: str, indent: str = "", hang: str = "") -> None:
    width = min(out.width, 120)
    lines = textwrap.wrap(
        text, width, initial_indent=indent, subsequent_indent=hang, break_long_words=False, break_on_hyphens=False
    )
    for line in lines:
        out.print(line, soft_wrap=True)
