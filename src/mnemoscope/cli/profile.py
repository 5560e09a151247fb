"""The command ``profile``: the memory profile of one network, in the terminal and as a page."""

from __future__ import annotations

from typing import Annotated

import typer

from mnemoscope.cli.profiling import (
    Asked,
    Budget,
    DryRun,
    Export,
    Fresh,
    Hidden,
    Html,
    InputSize,
    Layers,
    Quick,
    Seed,
    Seeds,
    Set,
    Train,
)
from mnemoscope.cli.terminal import Json

__all__ = ["profile"]

Network = Annotated[
    str,
    typer.Argument(
        metavar="NETWORK",
        help="A name of `mnemoscope networks`, FILE.py:CLASS (this runs the file's code), or FILE.safetensors.",
        show_default=False,
    ),
]


def profile(
    network: Network,
    hidden: Hidden = None,
    input_size: InputSize = None,
    layers: Layers = None,
    options: Set = None,
    html: Html = None,
    export: Export = None,
    quick: Quick = False,
    fresh: Fresh = False,
    seed: Seed = 0,
    seeds: Seeds = None,
    train: Train = False,
    minutes: Budget = None,
    dry_run: DryRun = False,
    json: Json = False,
) -> None:
    """Measure what a network remembers, beside established networks with as many parameters.

    Gives a summary here, and one HTML page. A name or a class is measured with freshly initialised weights at several
    seeds, a saved network with its own. Results are kept beside the page and taken up again after an interruption.
    """
    from mnemoscope.cli.options import named_values
    from mnemoscope.cli.profiling import run, sizes_of
    from mnemoscope.nn import NetworkSpec
    from mnemoscope.profiles.subject import network_words

    asked = Asked(html, json, quick, fresh, seed, seeds, minutes, export, dry_run, train)
    asked.settings()
    sizes = sizes_of(hidden, input_size, layers)
    spec = NetworkSpec(network, options=named_values(options or (), "--set")).replace(**sizes)
    run(f"mnemoscope profile {network_words(spec)}", [spec], asked)
