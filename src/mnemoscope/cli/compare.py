"""Command ``compare``: several networks side by side on one page, with their differences."""

from __future__ import annotations

from typing import Annotated

import typer

from mnemoscope.cli.profile import (
    Budget,
    Count,
    DryRun,
    Export,
    Fresh,
    Hidden,
    Html,
    InputSize,
    Layers,
    Parameters,
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
        metavar="NETWORK NETWORK ..",
        help="Names of `mnemoscope networks`, FILE.py:CLASS (this runs the file's code), or FILE.safetensors.",
        show_default=False,
    ),
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
    force: Force = False,
    quick: Quick = False,
    fresh: Fresh = False,
    seed: Seed = 0,
    seeds: Seeds = None,
    train: Train = False,
    minutes: Budget = None,
    dry_run: DryRun = False,
    json: Json = False,
) -> None:
    """Profile several networks side by side, with their differences and how sure these are.

    Sizes and --set are those of all networks that are built. Differences are to the first network: Welch intervals over
    independent seeds, or paired ones where every seed draws the same weights for both.
    """
    import shlex

    from mnemoscope.cli.options import named_values
    from mnemoscope.cli.profile import run_profile, sizes_of
    from mnemoscope.core.errors import Description, expected
    from mnemoscope.nn import NetworkSpec
    from mnemoscope.profiles.subject import size_words

    if len(networks) < 2:
        raise expected("compare", "given at least two networks", Description(" ".join(networks)))
    chosen = ProfileOptions(html, json, quick, fresh, seed, seeds, minutes, export, dry_run, train, force)
    chosen.settings()
    sizes, values = sizes_of(hidden, input_size, layers, parameters, count), named_values(options or (), "--set")
    bare = [NetworkSpec(name) for name in networks]
    specs = [each if each.trained else each.replace(**sizes, options=values) for each in bare]
    words = [*map(shlex.quote, networks), *size_words(sizes)]
    words += [f"--set {shlex.quote(text)}" for text in options or ()]
    run_profile(f"mnemoscope compare {' '.join(words)}", specs, chosen)
