"""What the commands ``profile`` and ``compare`` share: their options, the progress, and what they print."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mnemoscope.cli.profile_output import print_plan, print_profile, progress
from mnemoscope.cli.terminal import FAILURE, print_json, quiet

if TYPE_CHECKING:
    from mnemoscope.nn import NetworkSpec
    from mnemoscope.profiles.profile import Profile
    from mnemoscope.profiles.settings import Settings

__all__ = ["Asked", "Budget", "DryRun", "Export", "Fresh", "Hidden", "Html", "InputSize", "Layers", "Quick", "Seed"]
__all__ += ["Seeds", "Set", "Train", "check", "run", "sizes_of"]

_PANEL = "The network"
_WORK = "The work"
_MINUTES = 10.0
"""Of training, where none are given."""

Hidden = Annotated[int | None, typer.Option("--hidden", help="Hidden size n. Default: 64.", rich_help_panel=_PANEL)]
InputSize = Annotated[
    int | None,
    typer.Option("--input-size", help="Numbers per step of the input, d. Default: 1.", rich_help_panel=_PANEL),
]
Layers = Annotated[int | None, typer.Option("--layers", help="Layers. Default: 1.", rich_help_panel=_PANEL)]
Set = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        "--option",
        metavar="NAME=VALUE",
        help="An argument of the network's constructor, as in rank=8; may be repeated.",
        rich_help_panel=_PANEL,
    ),
]
Html = Annotated[
    str | None,
    typer.Option(
        "--html", metavar="PATH", help="Where the page goes; by default into this folder, with --json nowhere."
    ),
]
Export = Annotated[
    str | None,
    typer.Option(
        "--export", metavar="FOLDER", help="Write figures (SVG, PDF), tables (CSV, LaTeX), methods and BibTeX there."
    ),
]
Quick = Annotated[bool, typer.Option("--quick", help="A first look within seconds.", rich_help_panel=_WORK)]
Fresh = Annotated[
    bool,
    typer.Option(
        "--fresh", help="Measure the references too, at equal parameters; takes minutes.", rich_help_panel=_WORK
    ),
]
Seed = Annotated[int, typer.Option("--seed", help="The first seed, of weights and inputs.", rich_help_panel=_WORK)]
Seeds = Annotated[
    int | None,
    typer.Option(
        "--seeds",
        help="How many sets of weights. Default: 5, with --quick 3.",
        rich_help_panel=_WORK,
        show_default=False,
    ),
]
Budget = Annotated[
    float | None,
    typer.Option(
        "--minutes",
        "--budget",
        metavar="MINUTES",
        help="Time to measure in; with --train, to train in.",
        rich_help_panel=_WORK,
    ),
]
Train = Annotated[
    bool,
    typer.Option(
        "--train",
        help="Also train it on five tasks, for --minutes in all. Default: 10 minutes.",
        rich_help_panel=_WORK,
    ),
]
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Say what would be measured and how long it takes.", rich_help_panel=_WORK)
]


@dataclass(frozen=True)
class Asked:
    """What was typed besides the networks."""

    html: str | None
    json: bool
    quick: bool
    fresh: bool
    seed: int
    seeds: int | None
    minutes: float | None
    export: str | None
    dry_run: bool
    train: bool = False

    def settings(self) -> Settings:
        """Return what it means, or raise one line about a number that cannot be."""
        from mnemoscope.core.errors import expected, positive_int
        from mnemoscope.profiles.settings import Settings

        if self.minutes is not None and not self.minutes > 0:
            raise expected("--minutes", "above zero", self.minutes)
        if self.seeds is not None:
            positive_int("--seeds", self.seeds)
        if self.seed < 0:
            raise expected("--seed", "a whole number of at least 0", self.seed)
        budget = None if self.minutes is None or self.train else 60 * self.minutes
        train_minutes = (self.minutes or _MINUTES) if self.train else None
        return Settings(quick=self.quick, seed=self.seed, seeds=self.seeds, budget=budget, train_minutes=train_minutes)

    def page(self, name: str) -> Path | None:
        """Return where the page goes: as it was typed, or into this folder under the network's name."""
        if self.html is not None:
            return Path(self.html)
        slug = "".join(c if c.isalnum() or c in "-." else "-" for c in name).strip("-.") or "network"
        return None if self.json else Path(f"{slug}.html")

    def words(self) -> str:
        """Return the options as they are typed, without the budget: to go on or to make the page again."""
        found = ["--quick"] if self.quick else []
        found += ["--fresh"] if self.fresh else []
        found += [f"--seed {self.seed}"] if self.seed else []
        found += [f"--seeds {self.seeds}"] if self.seeds is not None else []
        found += [f"--train --minutes {self.minutes or _MINUTES:g}"] if self.train else []
        return " ".join(found)


def sizes_of(hidden: int | None, input_size: int | None, layers: int | None) -> dict[str, int]:
    """Return the sizes that were given, as constructors name them, or raise about one that is none."""
    from mnemoscope.core.errors import positive_int

    given = {"hidden_size": ("--hidden", hidden), "input_size": ("--input-size", input_size)}
    given["num_layers"] = ("--layers", layers)
    return {name: positive_int(flag, value) for name, (flag, value) in given.items() if value is not None}


def run(what: str, specs: Sequence[NetworkSpec], asked: Asked) -> None:
    """Profile networks and print what was found; `what` is the command with its networks, as it is typed."""
    from mnemoscope.profiles.profile import Work
    from mnemoscope.profiles.results import Store, beside

    settings = asked.settings()
    page = asked.page(" vs ".join(spec.label for spec in specs))
    check(page, asked.export)
    command = " ".join(
        part for part in (what, asked.words(), f"--html {shlex.quote(str(page))}" if page else "") if part
    )
    store = Store(None if page is None else beside(page))
    with quiet():
        work = Work(specs, settings, store, fresh=asked.fresh)
    runner = work.runner
    if asked.dry_run:
        print_plan(runner, asked.json)
        return
    with quiet(), progress(runner) as watch:
        rows = runner.run(watch)
    found = work.finish(rows, command)
    written = _written(found, page, asked.export)
    if asked.json:
        print_json(found.to_dict())
    else:
        print_profile(found, store.taken_up, page, written)
    if runner.interrupted:
        kept = "what is there was kept" if page is not None else "nothing was kept, as there is no --html"
        typer.echo(f"interrupted; {kept}. {'Go on' if page is not None else 'Begin again'} with: {command}", err=True)
    elif runner.stopped and not asked.json:
        typer.echo(f"the time was used up before the end. Go on with: {command}", err=True)
    if found.failed or runner.interrupted:
        raise typer.Exit(FAILURE)


def check(page: Path | None, folder: str | None) -> None:
    """Raise before the work, not after it, when what it makes could not be written."""
    from mnemoscope.core.errors import UserError
    from mnemoscope.core.files import writable
    from mnemoscope.profiles.results import beside

    if page is not None:
        writable(page)
        writable(beside(page))
    if folder is not None:
        there = Path(folder)
        if there.exists() and not there.is_dir():
            raise UserError(f"--export needs a folder, and {folder!r} is a file")
        writable((there if there.is_dir() else there.parent) / "methods.txt")


def _written(found: Profile, page: Path | None, folder: str | None) -> int:
    if page is not None:
        found.to_html(page)
    return len(found.export(folder)) if folder is not None else 0
