"""Command ``cite``: the papers of networks, measures, tasks and claims, and Mnemoscope itself, as BibTeX."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from mnemoscope.cli.terminal import Json, print_json, quiet

if TYPE_CHECKING:
    from mnemoscope.core.references import Reference

__all__ = ["cite"]

Names = Annotated[
    list[str],
    typer.Argument(
        metavar="NAME",
        help="Names of networks, measures, tasks, environments and claims of `mnemoscope theory`; mnemoscope for "
        "Mnemoscope itself; or FILE.py:CLASS. This runs the file's code.",
        show_default=False,
    ),
]


def cite(names: Names, json: Json = False) -> None:
    """Print the BibTeX entries of what was used: networks, measures, tasks, environments, claims, Mnemoscope."""
    from mnemoscope.core.errors import UserError

    found: dict[str, Reference] = {}
    for name in names:
        with quiet():
            own = _works(name)
        if not own:
            raise UserError(f"{name} names no reference")
        found |= {entry.key: entry for entry in own}
    if json:
        entries = [{"key": entry.key, "text": entry.text, "bibtex": entry.bibtex()} for entry in found.values()]
        print_json({"network": names[0], "names": names, "references": entries})
    else:
        typer.echo("\n\n".join(entry.bibtex() for entry in found.values()))


def _works(name: str) -> list[Reference]:
    """Return the works of a name: of all that have it, since a task and a claim may be called alike."""
    from mnemoscope.cli.networks import facts
    from mnemoscope.core.errors import UserError, nearest
    from mnemoscope.core.references import reference, software
    from mnemoscope.measures import MEASURES
    from mnemoscope.nn.registry import NETWORKS
    from mnemoscope.tasks.control.registry import ENVIRONMENTS
    from mnemoscope.tasks.registry import TASKS
    from mnemoscope.theory.theorems import THEOREMS

    if name == "mnemoscope":
        return [software()]
    keys: list[str] = []
    if name in MEASURES:
        function = MEASURES[name].function
        keys += function.__globals__[function.__annotations__["return"]].references
    if name in TASKS:
        keys += TASKS[name].references
    if name in ENVIRONMENTS:  # which networks learn to act in by proximal policy optimisation
        keys += (*ENVIRONMENTS[name].references, "schulman2017", "schulman2016")
    if name in THEOREMS:
        keys += [THEOREMS[name].reference] if THEOREMS[name].reference else []
    tables = (NETWORKS, MEASURES, TASKS, ENVIRONMENTS, THEOREMS)
    if ":" not in name and not any(name in table for table in tables):
        near = nearest(name, [each for table in tables for each in table])
        hint = f"did you mean {near!r}?" if near else "a class is named as FILE.py:CLASS"
        raise UserError(f"there is no network, measure, task, environment or claim named {name!r}; {hint}")
    own = list(facts(name).references) if name in NETWORKS or ":" in name else []
    return [*own, *(reference(key) for key in dict.fromkeys(keys))]
