"""The commands ``theory`` and ``theory check``: what the documents claim, and whether it holds, live."""

from __future__ import annotations

import time
from collections import Counter
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mnemoscope.cli.terminal import FAILURE, Json, console, print_json, quiet

if TYPE_CHECKING:
    from mnemoscope.studies.claims import Claim, Verdict

__all__ = ["app"]

WORDS = {"proved": "proved", "measured": "measured", "false": "false as published"}

Names = Annotated[
    list[str] | None, typer.Argument(metavar="[NAME]...", help="Names of claims; all when none is given.")
]
Every = Annotated[bool, typer.Option("--all", help="All claims, as without names.")]
Seed = Annotated[int, typer.Option("--seed", help="Draws the cases.")]

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, invoke_without_command=True)


@app.callback()
def theory(context: typer.Context, json: Json = False) -> None:
    """List the theorems, conjectures and errata of the documents with their status.

    proved: there is a proof, and the check tries it on cases. measured: it held on all cases tried. false as published:
    the check shows a witness against it, and that the correction holds. `mnemoscope theory check` evaluates them.
    """
    if context.invoked_subcommand is not None:
        return
    from mnemoscope.studies.claims import CLAIMS

    claims = [CLAIMS[name] for name in CLAIMS]
    if json:
        print_json({"claims": [_facts(claim) for claim in claims]})
        return
    for claim in claims:
        _print_claim(claim)
    counts = Counter(claim.status for claim in claims)
    typer.echo(f"{len(claims)} claims: " + ", ".join(f"{counts[status]} {word}" for status, word in WORDS.items()))
    typer.echo("Evaluate them: mnemoscope theory check [NAME]...")


@app.command()
def check(names: Names = None, every: Every = False, seed: Seed = 0, json: Json = False) -> None:
    """Evaluate claims live: cases, numbers, and a witness against each false one.

    The exit code is 1 when one of them is not confirmed.
    """
    from mnemoscope.cli.terminal import tracked
    from mnemoscope.core.errors import UserError
    from mnemoscope.studies.claims import CLAIMS

    if every and names:
        raise UserError(f"give names or --all, not both: got {names[0]!r} and --all")
    claims = [CLAIMS[name] for name in dict.fromkeys(names or CLAIMS.names())]
    checked = []
    for claim, (verdict, seconds) in tracked(claims, lambda claim: claim.name, partial(_evaluate, seed)):
        checked.append(_facts(claim) | _verdict_facts(verdict, seconds))
        if not json:
            _print_verdict(claim, verdict)
    unconfirmed = [one["name"] for one in checked if not one["confirmed"]]
    if json:
        print_json({"seed": seed, "claims": checked, "not_confirmed": unconfirmed})
    else:
        cases = sum(one["cases"] for one in checked)
        confirmed = len(checked) - len(unconfirmed)
        typer.echo(f"{confirmed} of {len(checked)} claims confirmed, on {cases:,} cases drawn with seed {seed}")
    if unconfirmed:
        raise typer.Exit(FAILURE)


def _evaluate(seed: int, claim: Claim) -> tuple[Verdict, float]:
    from mnemoscope.studies.claims import Verdict

    begin = time.perf_counter()
    try:
        with quiet():
            verdict = claim.check(seed)
    except Exception as error:  # a check that breaks confirms nothing, and must not lose the others
        reason = " ".join(str(error).split())
        verdict = Verdict(confirmed=False, cases=0, evidence=f"the check broke: {type(error).__name__}: {reason}")
    return verdict, time.perf_counter() - begin


def _facts(claim: Claim) -> dict[str, Any]:
    return {
        "name": claim.name,
        "source": claim.source,
        "status": claim.status,
        "statement": claim.statement,
        "correction": claim.correction,
    }


def _verdict_facts(verdict: Verdict, seconds: float) -> dict[str, Any]:
    return {
        "confirmed": bool(verdict.confirmed),
        "cases": int(verdict.cases),
        "evidence": verdict.evidence,
        "seconds": round(seconds, 3),
    }


def _print_claim(claim: Claim) -> None:
    typer.echo(f"{claim.name} ({claim.source}): {WORDS[claim.status]}")
    _print_folded(claim.statement)
    if claim.correction:
        _print_folded(f"Right: {claim.correction}")
    typer.echo()


def _print_verdict(claim: Claim, verdict: Verdict) -> None:
    found = "confirmed" if verdict.confirmed else "NOT CONFIRMED"
    cases = f"{verdict.cases:,} case{'' if verdict.cases == 1 else 's'}"
    typer.echo(f"{claim.name} ({claim.source}): {WORDS[claim.status]}, {found} on {cases}")
    _print_folded(f"Witness: {verdict.evidence}" if claim.status == "false" and verdict.confirmed else verdict.evidence)
    typer.echo()


def _print_folded(text: str) -> None:
    import textwrap

    width = max(40, min(console().width, 120))
    typer.echo("\n".join(textwrap.wrap(text, width, initial_indent="    ", subsequent_indent="    ")))
