"""Commands ``networks`` and ``show``: the list of networks, and one of them in full."""

from __future__ import annotations

import dataclasses
import textwrap
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from mnemoscope.cli.terminal import Json, console, print_json, quiet
from mnemoscope.core import docs

if TYPE_CHECKING:
    from torch import nn

    from mnemoscope.core.references import Reference

__all__ = ["Network", "networks", "show"]

Network = Annotated[
    str,
    typer.Argument(
        metavar="NETWORK", help="A name of `mnemoscope networks`, or FILE.py:CLASS. This runs the file's code."
    ),
]
Kind = Annotated[
    str | None, typer.Option("--kind", help="Only networks of this kind: recurrent, sequence, classifier, relational.")
]


SIZES = {"input_size": 10, "hidden_size": 64}
"""The sizes at which parameters are counted, with one layer, unless the class has `counted_at`."""


def networks(kind: Kind = None, json: Json = False) -> None:
    """List all networks: family, kind, size of the state, parameters, reference."""
    found = all_facts(kind)
    if json:
        sizes = {**SIZES, "num_layers": 1}
        print_json({"networks": [one.overview() for one in found], "parameters_counted_at": sizes})
        return
    out = console(wide=True)
    narrow = out.width < 100
    table = Table(box=None, pad_edge=False, padding=(0, 1 if narrow else 2, 0, 0), header_style="bold")
    for title in ("name", "family") if narrow else ("name", "family", "kind"):  # `show` says the kind
        table.add_column(title, no_wrap=True, overflow="fold")
    table.add_column("state", max_width=14 if narrow else None)
    table.add_column("params", justify="right", no_wrap=True)
    table.add_column("reference", overflow="fold")
    for one in found:
        count = "" if one.parameters is None else f"{one.parameters:,}"
        called = [] if narrow else [one.kind or ""]
        table.add_row(one.name, one.family or "", *called, one.state or "", count, one.cited)
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
    with quiet():
        found = facts(network)
    if json:
        print_json(found.to_dict() | {"citations": [entry.text for entry in found.references]})
    else:
        _print_facts(console(), found)


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
    lines = []
    if found.state:
        lines.append(f"state: {found.state} real numbers per layer, n = hidden_size")
    if found.parameters is not None:
        layers = ", one layer" if found.counted_at == SIZES else ""
        lines.append(f"parameters: {found.parameters:,} with {_listed(found.counted_at)}{layers}")
    return lines


def _other_sizes(found: Iterable[Facts]) -> list[str]:
    """Return which networks are counted at other sizes than the rest, and at which."""
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


def _print_argument(out: Console, argument: docs.Argument) -> None:
    written = f": {argument.type}" if argument.type else ""
    default = "" if argument.default is docs.REQUIRED else f" = {argument.default!r}"
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


@dataclass(frozen=True)
class Facts:
    """Facts of a network from its card, its docstrings and one instance; None and empty where it has none."""

    name: str
    class_name: str
    family: str | None
    kind: str | None
    state: str | None
    parameters: int | None
    counted_at: dict[str, int]
    summary: str
    equations: tuple[str, ...]
    arguments: tuple[docs.Argument, ...]
    notes: tuple[str, ...]
    reference_keys: tuple[str, ...]

    @property
    def references(self) -> list[Reference]:
        """The references of its card; a key that the bibliography does not have is an error."""
        from mnemoscope.core.errors import UserError
        from mnemoscope.core.references import REFERENCES

        missing = [key for key in self.reference_keys if key not in REFERENCES]
        if missing:
            raise UserError(f"{self.name} cites {missing[0]!r}, which mnemoscope.core.references.REFERENCES lacks")
        return [REFERENCES[key] for key in self.reference_keys]

    @property
    def cited(self) -> str:
        """Its defining reference in short form, or its bare key, or an empty string."""
        from mnemoscope.core.references import REFERENCES

        key = next(iter(self.reference_keys), "")
        return REFERENCES[key].short if key in REFERENCES else key

    def overview(self) -> dict[str, Any]:
        """Return the row of the list of networks, ready for JSON."""
        return {
            "name": self.name,
            "class": self.class_name,
            "family": self.family,
            "kind": self.kind,
            "state": self.state,
            "parameters": self.parameters,
            "references": list(self.reference_keys),
        }

    def to_dict(self) -> dict[str, Any]:
        """Return everything, ready for JSON."""
        return self.overview() | {
            "summary": self.summary,
            "equations": list(self.equations),
            "arguments": [_argument_dict(argument) for argument in self.arguments],
            "notes": list(self.notes),
        }


def all_facts(kind: str | None = None) -> list[Facts]:
    """Return the facts of all networks, or of those of one kind, by family and name."""
    from mnemoscope.nn.registry import names

    found = [facts(name) for name in names(kind)]
    return sorted(found, key=lambda one: (one.family or "~", one.name))


def facts(name: str) -> Facts:
    """Gather the facts of a network by its registry name, or from ``file.py:Class`` (which runs the file)."""
    from mnemoscope.nn.registry import card

    cls = network_class(name)
    own = card(cls)
    return Facts(
        name=own.name if own else name,
        class_name=cls.__qualname__,
        family=own.family if own else None,
        kind=getattr(cls, "kind", None),
        state=own.state if own else None,
        parameters=_count_parameters(cls),
        counted_at=_sizes_of(cls),
        summary=docs.summary(cls),
        equations=own.equations if own else (),
        arguments=tuple(_arguments(cls)),
        notes=own.notes if own else (),
        reference_keys=own.references if own else (),
    )


def network_class(name: str) -> type[nn.Module]:
    """Return the class of a network, or raise when `name` leads to something else."""
    from torch import nn

    from mnemoscope.core.errors import expected
    from mnemoscope.nn.registry import get

    found = get(name)
    if not isinstance(found, type) or not issubclass(found, nn.Module):
        raise expected(name, "a class derived from torch.nn.Module", found)
    return found


def _sizes_of(cls: type[nn.Module]) -> dict[str, int]:
    return dict(getattr(cls, "counted_at", SIZES))


def _count_parameters(cls: type[nn.Module]) -> int | None:
    try:
        return sum(p.numel() for p in cls(**_sizes_of(cls)).parameters())
    except Exception:  # a network of strangers may take other arguments, or fail as it likes: then there is no number
        return None


def _arguments(cls: type[nn.Module]) -> list[docs.Argument]:
    from mnemoscope.nn import Network
    from mnemoscope.nn.options import option_defaults

    accepted = option_defaults(cls) if issubclass(cls, Network) and cls.declares else None
    # Where the default depends on the class, the constructor says None and the class says `NAME_default`.
    return [
        dataclasses.replace(argument, default=getattr(cls, f"{argument.name}_default", None))
        if argument.default is None
        else argument
        for argument in docs.arguments(cls, accepted)
    ]


def _argument_dict(argument: docs.Argument) -> dict[str, Any]:
    required = argument.default is docs.REQUIRED
    default = None if required else argument.default
    plain = default is None or isinstance(default, bool | int | float | str)
    return {
        "name": argument.name,
        "type": argument.type,
        "required": required and not argument.name.startswith("*"),
        "default": default if plain else repr(default),
        "meaning": argument.meaning,
    }
