"""Commands ``study list``, ``show``, ``run``, ``plan``, ``report``, ``gallery``: published results, run again."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mnemoscope.cli.cluster import Cluster, ClusterCommand, workers_at
from mnemoscope.cli.plan import plan
from mnemoscope.cli.shards import Folder, Slurm, TheShard, print_script, run_shard, say_stopped
from mnemoscope.cli.terminal import Force, Json, check_output, check_page, console, print_json, quiet
from mnemoscope.core.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Callable

    from mnemoscope.machines.workers import Workers
    from mnemoscope.studies.machinery import Finding, Outcome, Study

__all__ = ["app"]

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, invoke_without_command=True)

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
Save = Annotated[
    Path | None, typer.Option("--save", metavar="FOLDER", help="Write the result file, as the gallery holds it.")
]
Set = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="NAME=VALUE", help="Another setting of the scale than declared: iterations=1600."),
]
TheLayout = Annotated[
    str | None,
    typer.Option(
        "--layout",
        metavar="LAYOUT",
        help="How populations are computed, for the same bits everywhere: sequential or batched. Default: the fastest.",
    ),
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

    studies = [STUDIES[name] for name in STUDIES]
    if json:
        print_json({"studies": [_facts(study) for study in studies]})
        return
    for study in studies:
        typer.echo(f"{study.name}: {study.title} ({study.source})")
        _fold(study.claim)
    typer.echo(f"{len(studies)} studies. Run one: mnemoscope study run NAME --scale laptop")


@app.command()
def show(name: Name, runs: Runs = None, json: Json = False) -> None:
    """Show what a study claims, how that is judged, its plan at every scale, and how much of it has been run."""
    from mnemoscope.studies import SCALES
    from mnemoscope.studies.machinery import collected

    study = _study(name)
    plans = {scale: study.plan(scale) for scale in SCALES}
    done = {scale: len(collected(plan, runs)) for scale, plan in plans.items()}
    counts = {
        scale: {"runs": len(plan), "done": done[scale], "minutes": study.minutes.get(scale)}
        for scale, plan in plans.items()
    }
    if json:
        print_json(_facts(study) | {"scales": counts, "rules": [rule.words() for rule in study.rules]})
        return
    typer.echo(f"{study.name}: {study.title} ({study.source})")
    _fold(study.claim)
    for rule in study.rules:
        typer.echo(f"- {rule.claim}")
        _fold(rule.words())
    for scale, words in SCALES.items():
        cost = f", about {study.minutes[scale]:g} min" if scale in study.minutes else ""
        typer.echo(f"{scale:<7} {counts[scale]['runs']:>4} runs{cost}, {done[scale]} of them done; {words}")


@app.command(cls=ClusterCommand)
def run(
    name: Annotated[str | None, typer.Argument(metavar="STUDY", help="A name of `mnemoscope study list`.")] = None,
    every: Annotated[bool, typer.Option("--all", help="Run all studies, the cheapest first.")] = False,
    scale: Scale = "laptop",
    minutes: Minutes = None,
    changes: Set = None,
    html: Html = None,
    save: Save = None,
    shard: TheShard = None,
    folder: Folder = None,
    slurm: Slurm = False,
    ray: Cluster = None,
    layout: TheLayout = None,
    runs: Runs = None,
    force: Force = False,
    json: Json = False,
) -> None:
    """Run what has not been run yet of a study, and say what it found. A killed one goes on where it was.

    At SIGTERM or SIGUSR1 it keeps a checkpoint and ends. On many machines: docs/machines.md.
    """
    from mnemoscope.machines import stops_on_signals
    from mnemoscope.runs.folders import root
    from mnemoscope.training.populations import usual_layout

    _check_run(name, every, minutes, changes, html, save, force)
    chosen = _chosen(name, scale, changes)
    if shard is not None and ray is not None:
        raise UserError("--shard is for machines without a cluster, --ray for one: give either")
    if shard is None and (slurm or (folder is not None and ray is None)):
        raise UserError("--folder and --slurm go with --shard K/N")
    if shard is not None and (html is not None or save is not None or runs is not None):
        raise UserError("a shard says nothing of the whole: --html, --save and --runs are for `study report` later")
    if shard is not None and slurm:
        print_script(name, scale, shard, folder, changes, layout)
        return
    end = None if minutes is None else time.monotonic() + 60 * minutes
    documents = []
    with usual_layout(layout), stops_on_signals(), workers_at(ray, root(runs) if folder is None else None) as workers:
        for study in chosen:
            left = None if end is None else max((end - time.monotonic()) / 60, 1e-9)
            if shard is not None:
                documents.append(run_shard(study.name, scale, study.plan(scale), shard, folder, left, json))
            else:
                documents.append(_run_one(study, scale, left, html, save, runs, json, workers, folder))
    if json:
        print_json(documents[0] if name is not None else {"studies": documents})


def _check_run(
    name: str | None,
    every: bool,
    minutes: float | None,
    changes: list[str] | None,
    html: Path | None,
    save: Path | None,
    force: bool,
) -> None:
    """Raise before the work what does not go together."""
    from mnemoscope.core.files import writable

    if (name is None) is not every:
        raise UserError("study run takes the name of a study, or --all")
    if minutes is not None and not minutes > 0:
        raise UserError(f"--minutes must be a number above 0, got {minutes:g}")
    if html is not None:
        if every:
            raise UserError("--html is the page of one study; with --all, --save FOLDER keeps the results of all")
        writable(check_page(html))
        check_output(html, force)
    if changes and (every or save is not None):
        raise UserError("--set is for a look at one study; it goes with neither --all nor --save")


def _chosen(name: str | None, scale: str, changes: list[str] | None) -> list[Study]:
    """Return the studies to run, the cheapest first."""
    from mnemoscope.cli.options import named_values
    from mnemoscope.studies import STUDIES

    chosen = [STUDIES[one] for one in STUDIES] if name is None else [_study(name)]
    if changes:
        chosen = [study.changed(scale, named_values(changes, "--set")) for study in chosen]
    return sorted(chosen, key=lambda study: study.minutes.get(scale, 0.0))


def _run_one(
    study: Study,
    scale: str,
    minutes: float | None,
    html: Path | None,
    save: Path | None,
    runs: Path | None,
    json: bool,
    workers: Workers | None,
    store: str | None,
) -> dict[str, Any]:
    from mnemoscope.cli.terminal import tracked
    from mnemoscope.machines import stop_asked
    from mnemoscope.studies.machinery import execute

    plan = study.plan(scale)
    outcomes = execute(plan, runs, minutes, workers, store)
    done: list[Outcome] = []
    name = _label if workers is None else _several(study, workers)

    def work(_: Any) -> Outcome | None:
        with quiet():
            return next(outcomes, None)

    try:
        for _, outcome in tracked(plan, name, work):
            if outcome is None:
                break
            done.append(outcome)
    except KeyboardInterrupt:
        say_stopped(len(done), len(plan))
    if stop_asked():
        say_stopped(len(done), len(plan))
    if not done:
        typer.echo(f"{study.name}: no time was left for a run", err=True)
        return _facts(study) | {"scale": scale, "runs": 0, "missing": len(plan)}
    places = {spec.key: place for place, spec in enumerate(plan)}
    done.sort(key=lambda outcome: places[outcome.spec.key])
    return _tell(study, done, scale, len(plan) - len(done), html, None, save, json)


app.command()(plan)


@app.command()
def report(
    name: Name,
    scale: Scale = "laptop",
    html: Html = None,
    export: Export = None,
    save: Save = None,
    runs: Runs = None,
    force: Force = False,
    json: Json = False,
) -> None:
    """Say what the runs that are there show, and write the page; nothing is run."""
    from mnemoscope.studies.machinery import collected

    for place in (html, export):
        check_output(place, force)
    if html is not None:
        check_page(html)
    study = _study(name)
    plan = study.plan(scale)
    done = collected(plan, runs)
    if not done:
        raise UserError(f"no run of {study.name} at {scale} scale is there: mnemoscope study run {study.name}")
    found = _tell(study, done, scale, len(plan) - len(done), html, export, save, json)
    if json:
        print_json(found)


@app.command()
def gallery(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="Where result files are: docs/gallery.")],
    json: Json = False,
) -> None:
    """Draw the gallery from its result files: an overview, and a picture and a page for each study."""
    from mnemoscope.studies import STUDIES
    from mnemoscope.studies.machinery import draw_gallery

    if not folder.is_dir():
        raise UserError(f"there is no folder {str(folder)!r}")
    written = [str(path) for path in draw_gallery(folder, STUDIES.__getitem__)]
    if json:
        print_json({"files": written})
    else:
        typer.echo(f"{len(written)} files in {folder}")


def _study(name: str) -> Study:
    from mnemoscope.studies import STUDIES

    return STUDIES[name]


def _several(study: Study, workers: Workers) -> Callable[[Any], str]:
    """Return what a bar says while several runs are under way."""
    return lambda _: f"{study.name} on {workers.count} workers"


def _label(spec: Any) -> str:
    shown = [f"{key}={value}" for key, value in spec.settings.items() if isinstance(value, int | str)]
    return " ".join(shown[:6]) or spec.kind


def _tell(
    study: Study,
    done: list[Outcome],
    scale: str,
    missing: int,
    html: Path | None,
    export: Path | None,
    save: Path | None,
    json: bool,
) -> dict[str, Any]:
    """Say what the runs show, write what was asked for, and return it as a document."""
    from mnemoscope.report import export as write_files
    from mnemoscope.report import write
    from mnemoscope.studies.machinery import facts_of, save_result, study_page

    finding, facts = study.analyse(done, scale), facts_of(done)
    if save is not None and not missing:
        save_result(study, finding, scale, done, save)
    if html is not None or export is not None:
        page = study_page(study, finding, scale, facts, missing)
        if html is not None:
            write(page, html)
        if export is not None:
            write_files(page, export)
    if not json:
        _print(study, finding, scale, len(done), missing, html)
    return _facts(study) | _found(study, finding, done, scale, missing)


def _print(study: Study, finding: Finding, scale: str, done: int, missing: int, html: Path | None) -> None:
    typer.echo(f"{study.title} ({study.source}), {scale} scale: {finding.verdict}")
    for part in finding.parts:
        typer.echo(f"- {part.claim}: {part.verdict}")
        _fold(part.measured)
    if missing:
        typer.echo(f"{missing} of {missing + done} runs are missing; the same command goes on with them")
    if html is not None:
        typer.echo(f"Page: {html}")


def _found(study: Study, finding: Finding, done: list[Outcome], scale: str, missing: int) -> dict[str, Any]:
    return {
        "scale": scale,
        "verdict": finding.verdict,
        "parts": [
            {"claim": p.claim, "measured": p.measured, "verdict": p.verdict, "rule": p.rule} for p in finding.parts
        ],
        "caveats": list(study.caveats),
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
