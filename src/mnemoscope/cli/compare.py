"""Command ``compare``: several networks side by side on one page, with their differences."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from mnemoscope.cli.profile import (
    Budget,
    Count,
    DryRun,
    Export,
    Fresh,
    Full,
    Hidden,
    Html,
    Inputs,
    InputSize,
    Layers,
    Parameters,
    Plan,
    ProfileOptions,
    Quick,
    Seed,
    Seeds,
    Set,
    Train,
)
from mnemoscope.cli.terminal import Force, Json

__all__ = ["compare"]

Networks = Annotated[
    list[str],
    typer.Argument(
        metavar="NETWORK",
        help="Names of `mnemoscope networks`, FILE.py:CLASS (this runs the file's code), or FILE.safetensors; each may "
        "have sizes and options of its own: lstm:hidden=32,layers=2.",
        show_default=False,
    ),
]


Transpose = Annotated[
    bool, typer.Option("--transpose", help="In the LaTeX table of --export, networks are rows instead of columns.")
]


def compare(
    networks: Networks,
    hidden: Hidden = None,
    input_size: InputSize = None,
    layers: Layers = None,
    parameters: Parameters = None,
    count: Count = "recurrent",
    options: Set = None,
    html: Html = None,
    export: Export = None,
    transpose: Transpose = False,
    force: Force = False,
    quick: Quick = False,
    fresh: Fresh = False,
    seed: Seed = 0,
    seeds: Seeds = None,
    train: Train = False,
    minutes: Budget = None,
    full: Full = False,
    inputs: Inputs = None,
    plan: Plan = None,
    dry_run: DryRun = False,
    json: Json = False,
    *,
    about: dict[str, Any],
) -> None:
    """Profile several networks side by side, with their differences and how sure these are.

    Sizes and --set are those of all networks that are built, unless one has its own. Marks are against the first
    network.
    """
    import shlex

    from mnemoscope.cli.options import named_values
    from mnemoscope.cli.profile import described, run_profile, sizes_of
    from mnemoscope.core.errors import Description, expected
    from mnemoscope.core.plugins import is_location
    from mnemoscope.nn.advice import about_words
    from mnemoscope.profiles.subject import size_words

    if len(networks) < 2:
        raise expected("compare", "given at least two networks", Description(" ".join(networks)))
    chosen = ProfileOptions(
        html, json, quick, fresh, seed, seeds, minutes, export, dry_run, train, force, transpose, full, inputs, plan
    )
    chosen.settings()
    sizes, values = sizes_of(hidden, input_size, layers, parameters, count), named_values(options or (), "--set")
    # Advice is for those that are not our own.
    specs = [
        described(name, chosen.sizes(sizes, name), values, about if is_location(name) else {}, several=True)
        for name in networks
    ]
    words = [*map(shlex.quote, networks), *size_words(sizes)]
    words += [f"--set {shlex.quote(text)}" for text in options or ()]
    words += about_words(about)
    run_profile(f"mnemoscope compare {' '.join(words)}", specs, chosen)
