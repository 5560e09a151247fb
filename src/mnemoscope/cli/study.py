"""The commands ``study list``, ``show``, ``run`` and ``report``: published figures and theorems, run again."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mnemoscope.cli.terminal import FAILURE, Json, RecordCommands, console, print_json, quiet
from mnemoscope.core.errors import UserError

if TYPE_CHECKING:
    from mnemoscope.studies import Finding, Outcome, Study

__all__ = ["app"]

app = typer.Typer(cls=RecordCommands, add_completion=False, pretty_exceptions_enable=False, invoke_without_command=True)

Name = Annotated[str, typer.Argument(metavar="STUDY", help="A name of `mnemoscope study list`.")]
Scale = Annotated[str, typer.Option("--scale", help="smoke (seconds), laptop (minutes) or paper (as published).")]
Runs = Annotated[
    Path | None,
    typer.Option("--runs", metavar="FOLDER", help="Where runs live. Default: $MNEMOSCOPE_RUNS, else ./runs."),
]
Html = Annotated[Path | None, typer.Option("--html", metavar="FILE", help="Write the page of the study.")]
Export = Annotated[
    Path | None,
    typer.Option("--export", metavar="FOLDER", help="Write figures as SVG and PDF, tables as CSV and LaTeX."),
]
Minutes = Annotated[float | None, typer.Option("--minutes", help="Begin no new run after these; go on another time.")]


@app.callback()
def study(context: typer.Context) -> None:
    """Published results, run again."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


@app.command("list")
def list_studies(json: Json = False) -> None:
    """List the studies."""
    from mnemoscope.studies import STUDIES

    studies = [STUDIES[name]() for name in STUDIES]
    if json:
        print_json({"studies": [_facts(study) for study in studies]})
        return
    for study in studies:
        typer.echo(f"{study.name}: {study.title} ({study.source})")
        _fold(study.claim)
    typer.echo(f"{len(studies)} studies. Run one: mnemoscope study run NAME --scale laptop")


@app.command()
def show(name: Name, runs: Runs = None, json: Json = False) -> None:
    """Show what a study claims, its plan at every scale, and how much of it has been run."""
    from mnemoscope.studies import SCALES, collected, planned

    study = _study(name)
    plans = {scale: planned(study, scale) for scale in SCALES}
    done = {scale: len(collected(plan, runs)) for scale, plan in plans.items()}
    counts = {scale: {"runs": len(plan), "done": done[scale]} for scale, plan in plans.items()}
    if json:
        print_json(_facts(study) | {"scales": counts})
        return
    typer.echo(f"{study.name}: {study.title} ({study.source})")
    _fold(study.claim)
    for scale, words in SCALES.items():
        typer.echo(f"{scale:<7} {counts[scale]['runs']:>4} runs, {done[scale]} of them done; {words}")


@app.command()
def run(
    name: Name,
    scale: Scale = "laptop",
    minutes: Minutes = None,
    html: Html = None,
    runs: Runs = None,
    json: Json = False,
) -> None:
    """Run what has not been run yet of a study, and say what it found. A killed one goes on where it was."""
    from mnemoscope.cli.terminal import tracked
    from mnemoscope.core.files import writable
    from mnemoscope.studies import execute, planned

    study = _study(name)
    plan = planned(study, scale)
    if minutes is not None and not minutes > 0:
        raise UserError(f"--minutes must be a number above 0, got {minutes:g}")
    if html is not None:
        writable(html)
    outcomes = execute(plan, runs, minutes)
    done: list[Outcome] = []

    def work(_: Any) -> Outcome | None:
        with quiet():
            return next(outcomes, None)

    try:
        for _, outcome in tracked(plan, _label, work):
            if outcome is None:
                break
            done.append(outcome)
    except KeyboardInterrupt:
        typer.echo(f"interrupted after {len(done)} of {len(plan)} runs; the same command goes on", err=True)
        raise typer.Exit(FAILURE) from None
    _tell(study, done, scale, len(plan) - len(done), html, None, json)


@app.command()
def report(
    name: Name,
    scale: Scale = "laptop",
    html: Html = None,
    export: Export = None,
    runs: Runs = None,
    json: Json = False,
) -> None:
    """Say what the runs that are there show, and write the page; nothing is run."""
    from mnemoscope.studies import collected, planned

    study = _study(name)
    plan = planned(study, scale)
    done = collected(plan, runs)
    _tell(study, done, scale, len(plan) - len(done), html, export, json)


def _study(name: str) -> Study:
    from mnemoscope.studies import STUDIES

    return STUDIES[name]()


def _label(spec: Any) -> str:
    shown = ("network", "num_layers", "hidden_size", "M", "R", "T", "L", "seed")
    return " ".join(f"{key}={spec.settings[key]}" for key in shown if key in spec.settings)


def _tell(
    study: Study,
    done: list[Outcome],
    scale: str,
    missing: int,
    html: Path | None,
    export: Path | None,
    json: bool,
) -> None:
    from mnemoscope.report import export as write_files
    from mnemoscope.report import write
    from mnemoscope.studies import study_page

    if not done:
        raise UserError(f"no run of {study.name} at {scale} scale is there: mnemoscope study run {study.name}")
    finding = study.analyse(done, scale)
    page = study_page(study, finding, done, scale, missing)
    if html is not None:
        write(page, html)
    if export is not None:
        write_files(page, export)
    if json:
        print_json(_facts(study) | _found(finding, done, scale, missing))
        return
    typer.echo(f"{study.title} ({study.source}), {scale} scale: {finding.verdict}")
    for part in finding.parts:
        typer.echo(f"- {part.claim}: {part.verdict}")
        _fold(part.measured)
    if missing:
        typer.echo(f"{missing} of {missing + len(done)} runs are missing; the same command goes on with them")
    if html is not None:
        typer.echo(f"Page: {html}")


def _found(finding: Finding, done: list[Outcome], scale: str, missing: int) -> dict[str, Any]:
    return {
        "scale": scale,
        "verdict": finding.verdict,
        "parts": [{"claim": p.claim, "measured": p.measured, "verdict": p.verdict} for p in finding.parts],
        "caveats": list(finding.caveats),
        "runs": len(done),
        "missing": missing,
        "seconds": sum(outcome.seconds for outcome in done),
    }


def _facts(study: Study) -> dict[str, Any]:
    return {"name": study.name, "title": study.title, "source": study.source, "claim": study.claim}


def _fold(text: str) -> None:
    import textwrap

    width = max(40, min(console().width, 120))
    typer.echo("\n".join(textwrap.wrap(text, width, initial_indent="    ", subsequent_indent="    ")))
