"""The references beside a profile: from the table that ships with the package, or measured anew."""

from __future__ import annotations

from collections.abc import Sequence

from mnemoscope.nn import NetworkSpec
from mnemoscope.nn.parameters import count_parameters
from mnemoscope.profiles.rows import Row
from mnemoscope.profiles.settings import Settings

__all__ = ["about", "specs_like", "stored"]


def stored(row: Row, quick: bool) -> list[Row]:
    """Return the rows of the table at the number of parameters nearest to a network's."""
    from mnemoscope.profiles.atlas import references

    return references(int(row["network"]["parameters"]), quick=quick)


def specs_like(spec: NetworkSpec, settings: Settings) -> list[NetworkSpec]:
    """Return the networks of the table, at the sizes that have as many parameters as a network."""
    from mnemoscope.profiles.atlas import references

    network = spec.replace(seed=settings.seed).build()
    count, width = count_parameters(network), int(getattr(network, "input_size", 1))
    named = [row["network"] for row in references(count, quick=settings.quick)]
    return [
        NetworkSpec(each["name"], input_size=width, parameters=count, options=each["options"]).resolved()
        for each in named
    ]


def about(subjects: Sequence[Row], references: Sequence[Row], fresh: bool) -> str:
    """Say where the references come from, and how near their numbers of parameters are."""
    if not references:
        return "There are no references beside it."
    counts = sorted(row["network"]["parameters"] for row in references)
    between = f"{counts[0]:,} to {counts[-1]:,} parameters" if counts[0] != counts[-1] else f"{counts[0]:,} parameters"
    own = " and ".join(f"{row['network']['parameters']:,}" for row in subjects)
    if fresh:
        return f"The references were measured anew at equal parameters: {between}, against {own}."
    made = references[0]["environment"]
    return (
        f"The references are from the table that ships with Mnemoscope (version {made.get('mnemoscope', '?')}, "
        f"{made.get('date', '?')}), at the nearest number of parameters: {between}, against {own}."
    )
