"""Commands ``theory``, ``theory check`` and ``theory cite``: theorems, conjectures and errata, evaluated live."""

from __future__ import annotations

import time
from collections import Counter
from typing import TYPE_CHECKING, Annotated

import typer

from mnemoscope.cli.terminal import FAILURE, Json, console, print_json, quiet

if TYPE_CHECKING:
    from mnemoscope.theory.theorems import Theorem, Verdict

__all__ = ["app"]

Names = Annotated[list[str] | None, typer.Argument(metavar="NAME", help="Names of claims; all when none is given.")]
Cited = Annotated[list[str], typer.Argument(metavar="NAME", help="Names of claims.")]
Every = Annotated[bool, typer.Option("--all", help="All claims, as without names.")]
Seed = Annotated[int, typer.Option("--seed", help="Draws the cases.")]
Status = Annotated[str | None, typer.Option("--status", help="Only claims that are proved, measured or false.")]
Severity = Annotated[
    str | None,
    typer.Option(
        "--severity",
        help="Only errata that are a 'wrong result', 'wrong constant', 'missing condition' or 'misprint'; 'wrong' "
        "stands for the first two.",
    ),
]

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, invoke_without_command=True)


@app.callback()
def theory(context: typer.Context, status: Status = None, severity: Severity = None, json: Json = False) -> None:
    """List theorems, conjectures and errata with their source and status.

    proved: there is a proof, and the check tries it on cases. measured: it held on all cases tried. false as published:
    the check shows a witness against it, and that the correction holds. `mnemoscope theory check` evaluates them.
    """
    if context.invoked_subcommand is not None:
        return
    from mnemoscope.theory.theorems import STATUSES, claims

    found = claims(status, severity)
    if json:
        print_json({"claims": [claim.facts() for claim in found]})
        return
    for claim in found:
        typer.echo(str(claim))
        _print_folded(claim.statement)
        if claim.right:
            _print_folded(f"Right: {claim.right}")
        if claim.proof:
            _print_folded(f"Proof: {claim.proof}")
        _print_folded(f"Check: {claim.tested}")
        typer.echo()
    counts = Counter(claim.status for claim in found)
    words = ", ".join(f"{counts[key]} {word}" for key, word in STATUSES.items() if counts[key])
    typer.echo(f"{len(found)} claims: {words}" if found else "no claims of this kind")
    typer.echo("Evaluate them: mnemoscope theory check [NAME]...")


@app.command()
def check(names: Names = None, every: Every = False, seed: Seed = 0, json: Json = False) -> None:
    """Evaluate claims live: cases, numbers, and a witness against each false one.

    The exit code is 1 when one of them is not confirmed.
    """
    from mnemoscope.cli.terminal import tracked
    from mnemoscope.core.errors import UserError
    from mnemoscope.theory.theorems import THEOREMS

    if every and names:
        raise UserError(f"give names or --all, not both: got {names[0]!r} and --all")
    chosen = [THEOREMS[name] for name in dict.fromkeys(names or THEOREMS.names())]
    checked = []

    def evaluate(claim: Theorem) -> tuple[Verdict, float]:
        begin = time.perf_counter()
        with quiet():
            return claim.check(seed), time.perf_counter() - begin

    for claim, (verdict, seconds) in tracked(chosen, lambda claim: claim.name, evaluate):
        found = {"confirmed": verdict.confirmed, "cases": verdict.cases, "evidence": verdict.evidence}
        checked.append(claim.facts() | found | {"seconds": round(seconds, 3)})
        if not json:
            _print_verdict(claim, verdict)
    unconfirmed = [one["name"] for one in checked if not one["confirmed"]]
    if json:
        print_json({"seed": seed, "claims": checked, "not_confirmed": unconfirmed})
    else:
        cases = sum(one["cases"] for one in checked)
        confirmed = len(checked) - len(unconfirmed)
        drawn = f"{cases:,} case{'' if cases == 1 else 's'} drawn with seed {seed}"
        typer.echo(f"{confirmed} of {len(checked)} claims confirmed, on {drawn}")
    if unconfirmed:
        raise typer.Exit(FAILURE)


@app.command()
def cite(
    names: Annotated[list[str], typer.Argument(metavar="NAME", help="Names of claims.")], json: Json = False
) -> None:
    """Print the BibTeX entries of the papers that claims come from."""
    from mnemoscope.core.errors import UserError
    from mnemoscope.core.references import reference
    from mnemoscope.theory.theorems import THEOREMS

    chosen = [THEOREMS[name] for name in dict.fromkeys(names)]
    own = [claim.name for claim in chosen if not claim.reference]
    if own:
        raise UserError(f"{own[0]} is Mnemoscope's own result: there is no paper to cite")
    entries = [reference(key) for key in dict.fromkeys(claim.reference for claim in chosen)]
    if json:
        sources = [{"name": claim.name, "source": claim.source, "key": claim.reference} for claim in chosen]
        found = [{"key": entry.key, "text": entry.text, "bibtex": entry.bibtex()} for entry in entries]
        print_json({"claims": sources, "references": found})
    else:
        typer.echo("\n\n".join(entry.bibtex() for entry in entries))


def _print_verdict(claim: Theorem, verdict: Verdict) -> None:
    found = "confirmed" if verdict.confirmed else "NOT CONFIRMED"
    cases = f"{verdict.cases:,} case{'' if verdict.cases == 1 else 's'}"
    typer.echo(f"{claim}, {found} on {cases}")
    _print_folded(f"Witness: {verdict.evidence}" if claim.status == "false" and verdict.confirmed else verdict.evidence)
    typer.echo()


def _print_folded(text: str) -> None:
    import textwrap

    width = max(40, min(console().width, 120))
    typer.echo("\n".join(textwrap.wrap(text, width, initial_indent="    ", subsequent_indent="    ")))
