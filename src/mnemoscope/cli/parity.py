"""Command ``parity``: whether two implementations of a network are one function."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from mnemoscope.cli.profile import Hidden, InputSize, Layers, Seed
from mnemoscope.cli.terminal import FAILURE, Json, console, error_console, print_json, quiet

__all__ = ["parity"]

First = Annotated[str, typer.Argument(metavar="A", help="A name of `mnemoscope networks`, or FILE.py:CLASS.")]
Second = Annotated[str, typer.Argument(metavar="B", help="Likewise; a copy of it gets the weights of A.")]
Map = Annotated[
    str | None,
    typer.Option("--map", metavar="FILE.json", help='Names of B to names of A: {"W_f": "weight_ih_l0[8:16]"}.'),
]
Steps = Annotated[int, typer.Option("--steps", help="Length of the sequences.")]


def parity(
    first: First,
    second: Second,
    hidden: Hidden = None,
    input_size: InputSize = None,
    layers: Layers = None,
    map: Map = None,
    steps: Steps = 64,
    seed: Seed = 0,
    json: Json = False,
    *,
    about: dict[str, Any],
) -> None:
    """Compare two implementations after putting A's weights into a copy of B, and say in which gate they differ.

    Exit code 0 when they agree, 1 when they differ.
    """
    from mnemoscope.cli.profile import described, sizes_of
    from mnemoscope.core.plugins import is_location
    from mnemoscope.measures import reference_parity

    sizes = sizes_of(hidden, input_size, layers, None, "recurrent")
    mapping = None if map is None else _read(map)
    with quiet(), error_console().status(f"comparing {first} and {second}"):
        one, other = (
            described(name, sizes, {}, about if is_location(name) else {}, several=True).replace(seed=seed).build()
            for name in (first, second)
        )
        found = reference_parity(one, other, mapping=mapping, steps=steps, seed=seed)
    if json:
        print_json(found.to_dict())
    else:
        console().print(str(found), style="bold")
        for gate, share in sorted(found.remaining.items(), key=lambda pair: pair[1]):
            console().print(f"{gate} silenced: {share:.0%} of the difference stays")
    if not found.agree:
        raise typer.Exit(FAILURE)


def _read(path: str) -> dict[str, str]:
    import json
    from pathlib import Path

    from mnemoscope.core.errors import UserError, expected

    try:
        found = json.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UserError(f"--map must be a JSON file, got {path}: {str(error).splitlines()[0]}") from error
    if not isinstance(found, dict) or not all(isinstance(each, str) for each in found.values()):
        raise expected("--map", "an object from names to names", path)
    return found
