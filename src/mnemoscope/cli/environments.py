"""Environments in the commands ``tasks`` and ``task show``: a list of them, and the facts of one."""

from __future__ import annotations

import math
import textwrap
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from mnemoscope.tasks.control import Environment

__all__ = ["all_environments", "environment_overview", "print_environment", "print_environments"]


def all_environments() -> list[dict[str, Any]]:
    """Return what the list says of every environment at its default settings; of one whose engine is missing, why."""
    from mnemoscope.core.docs import summary
    from mnemoscope.core.errors import UserError
    from mnemoscope.tasks import control

    found = []
    for name in control.names():
        try:
            found.append(environment_overview(control.create(name)))
        except UserError as error:
            found.append({"name": name, "summary": summary(control.get(name)), "missing": str(error)})
    return found


def environment_overview(environment: Environment) -> dict[str, Any]:
    """Return what is known of an environment; None for what nobody knows."""
    from mnemoscope.core.docs import summary
    from mnemoscope.core.references import reference

    known = {"optimum": environment.optimum, "memoryless": environment.memoryless}
    return {
        "name": environment.name,
        "summary": summary(type(environment)),
        "settings": environment.settings(),
        "kind": environment.kind,
        "steps": environment.steps,
        "input_size": environment.input_size,
        "actions": environment.actions,
        "difficulty": environment.difficulty,
        "axes": list(environment.axes or filter(None, (environment.difficulty,))),
        "metric": environment.metric,
        **{name: value if math.isfinite(value) else None for name, value in known.items()},
        "tests": [trial.label for trial in environment.trials()],
        "references": list(environment.references),
        "cited": [reference(key).short for key in environment.references],
    }


def print_environments(out: Console, found: list[dict[str, Any]]) -> None:
    """Print the list of environments."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    table.add_column("environment", no_wrap=True, overflow="fold")
    for title in ("harder by", "optimum", "without memory", "score", "reference"):
        table.add_column(title, overflow="fold", justify="right" if title in ("optimum", "without memory") else "left")
    for one in found:
        if "missing" in one:
            table.add_row(one["name"], "", "", "", "not installed: pip install 'mnemoscope[control]'", "")
            continue
        numbers = ["" if one[name] is None else f"{one[name]:.4g}" for name in ("optimum", "memoryless")]
        table.add_row(one["name"], ", ".join(one["axes"]), *numbers, one["metric"], "; ".join(one["cited"]))
    out.print(table)
    out.print()
    out.print(
        f"{len(found)} environments, in which a network acts: mnemoscope train lstm t-maze. optimum, without memory: "
        "mean returns of the best policies with and without it, at the default settings."
    )


def print_environment(out: Console, environment: Environment) -> None:
    """Print what an environment is."""
    facts = environment_overview(environment)
    out.print(Text(environment.name, "bold"), soft_wrap=True)
    for line in textwrap.wrap(facts["summary"], min(out.width, 120)):
        out.print(line, soft_wrap=True)
    out.print()
    told = {
        "settings": ", ".join(f"{name} = {value}" for name, value in facts["settings"].items()),
        "size": f"{facts['steps']} steps at most, {facts['input_size']} inputs, {facts['actions']} actions",
        "harder by": ", ".join(facts["axes"]) or "nothing that can be set step by step",
        "optimum": "nobody knows" if facts["optimum"] is None else f"{facts['optimum']:.4g}",
        "no memory": "nobody knows" if facts["memoryless"] is None else f"{facts['memoryless']:.4g}",
        "score": facts["metric"],
        "tested in": ", ".join(facts["tests"]),
        "reference": "; ".join(facts["cited"]),
    }
    for name, value in told.items():
        out.print(f"{name:<11}{value}", soft_wrap=True)
