"""Command ``profile``: the memory profile of one network, in the terminal and as a page."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mnemoscope.cli.terminal import FAILURE, Force, Json, check_output, check_page, print_json, quiet

if TYPE_CHECKING:
    from mnemoscope.nn import NetworkSpec
    from mnemoscope.profiles.profile import Profile
    from mnemoscope.profiles.profiling import Profiling
    from mnemoscope.profiles.settings import Settings

__all__ = [
    "Budget",
    "Count",
    "DryRun",
    "Export",
    "Fresh",
    "Full",
    "Hidden",
    "Html",
    "InputSize",
    "Inputs",
    "Layers",
    "Parameters",
    "Plan",
    "ProfileOptions",
    "Quick",
    "Seed",
    "Seeds",
    "Set",
    "Train",
    "described",
    "profile",
    "run_profile",
    "sizes_of",
]

_PANEL = "The network"
_WORK = "The work"
_MINUTES = 10.0
"""Of training, where none are given."""

Hidden = Annotated[
    str | None,
    typer.Option("--hidden", metavar="N|N,N", help="Hidden size n. Default: 64.", rich_help_panel=_PANEL),
]
InputSize = Annotated[
    str | None,
    typer.Option(
        "--input-size", metavar="N|N,N", help="Numbers per step of the input, d. Default: 1.", rich_help_panel=_PANEL
    ),
]
Parameters = Annotated[
    int | None,
    typer.Option("--parameters", help="Instead of --hidden: so many, as --count says.", rich_help_panel=_PANEL),
]
Count = Annotated[
    str,
    typer.Option(
        "--count",
        help="What --parameters counts: recurrent (nearest size), all or published (largest within).",
        rich_help_panel=_PANEL,
    ),
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
        help="How many sets of weights. Default: 3; with --minutes or --full 5.",
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
        help="Time to measure in (default: 1 to 2, by the size of the state); with --train, to train in.",
        rich_help_panel=_WORK,
    ),
]
Full = Annotated[bool, typer.Option("--full", help="Measure as long as it takes.", rich_help_panel=_WORK)]
Inputs = Annotated[
    str | None,
    typer.Option(
        "--inputs",
        metavar="FILE.npy",
        help="Sequences of your own that drive every measure: (time, sequences, inputs), or (time, inputs) of one.",
        rich_help_panel=_WORK,
    ),
]
Plan = Annotated[
    str | None,
    typer.Option(
        "--plan",
        metavar="FILE",
        help="Measure what this file says, whatever time that takes; a file that is not there is written.",
        rich_help_panel=_WORK,
    ),
]
Train = Annotated[
    bool,
    typer.Option(
        "--train",
        help="Also train it for --minutes (default 10): five tasks 4/7, ladder, memories and recall 1/7 each.",
        rich_help_panel=_WORK,
    ),
]
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Say what would be measured and how long it takes.", rich_help_panel=_WORK)
]


Sizes = Annotated[
    str | None,
    typer.Option(
        "--sizes", metavar="N,N,..", help="Several hidden sizes: how its numbers grow.", rich_help_panel=_PANEL
    ),
]
Networks = Annotated[
    list[str],
    typer.Argument(
        metavar="NETWORK",
        help="A name of `mnemoscope networks`, FILE.py:CLASS (this runs the file's code), FILE.safetensors, or a RUN "
        "of `mnemoscope runs list`.",
        show_default=False,
    ),
]
Trust = Annotated[
    bool, typer.Option("--trust", help="Run the code that the record of a RUN names.", rich_help_panel=_WORK)
]


def profile(
    networks: Networks,
    hidden: Hidden = None,
    sizes: Sizes = None,
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
    full: Full = False,
    inputs: Inputs = None,
    plan: Plan = None,
    dry_run: DryRun = False,
    trust: Trust = False,
    json: Json = False,
    *,
    about: dict[str, Any],
) -> None:
    """Measure what a network remembers, beside established networks with as many parameters.

    Gives a summary here, and one HTML page. A name or a class is measured with freshly initialised weights at several
    seeds, a saved network with its own, the network of a run before and after training. Results are kept beside the
    page and taken up again after an interruption.
    """
    from mnemoscope.cli.options import named_values
    from mnemoscope.core.errors import UserError
    from mnemoscope.profiles.learned import names_run
    from mnemoscope.profiles.subject import network_words

    if len(networks) > 1:
        raise UserError(f"profile takes one network; several: mnemoscope compare {' '.join(networks)}")
    chosen = ProfileOptions(
        html, json, quick, fresh, seed, seeds, minutes, export, dry_run, train, force, False, full, inputs, plan
    )
    chosen.settings()
    given = sizes_of(hidden, input_size, layers, parameters, count)
    if names_run(networks[0]):
        if given or sizes or options or about or train:
            raise UserError("the network of a run has its sizes and options: profile takes none beside it, nor --train")
        _profile_run(networks[0], chosen, trust)
        return
    spec = described(networks[0], chosen.sizes(given, networks[0]), named_values(options or (), "--set"), about)
    specs = [spec] if sizes is None else [spec.replace(hidden_size=size) for size in _several(sizes, spec)]
    grown = "" if sizes is None else f" --sizes {sizes}"
    run_profile(f"mnemoscope profile {network_words(spec, sized=sizes is None)}{grown}", specs, chosen)


def _profile_run(run: str, chosen: ProfileOptions, trust: bool) -> None:
    """Profile the network of a run before and after its training, side by side."""
    from mnemoscope.profiles.learned import before_and_after

    specs, seed = before_and_after(run, trust=trust)
    trusted = " --trust" if trust else ""
    run_profile(f"mnemoscope profile {shlex.quote(run)}{trusted}", specs, replace(chosen, seed=seed))


def _several(sizes: str, spec: NetworkSpec) -> list[int]:
    """Return several hidden sizes, or raise about what is none."""
    from mnemoscope.core.errors import UserError, expected

    if spec.trained or "hidden_size" in spec.arguments or spec.parameters is not None:
        raise UserError("--sizes needs a network that is built, and neither --hidden nor --parameters beside it")
    found = [int(each) for each in sizes.split(",") if each.strip().isdigit()]
    if len(found) != len(sizes.split(",")) or len(set(found)) < 2 or min(found) < 1:
        raise expected("--sizes", "at least two positive integers, such as 16,32,64", sizes)
    return sorted(set(found))


_OWN = re.compile(r"(?P<network>.+?):(?P<own>[A-Za-z_][\w-]*=[^,]*(?:,[A-Za-z_][\w-]*=[^,]*)*)")
_SIZES = {"hidden": "hidden_size", "input-size": "input_size", "layers": "num_layers", "parameters": "parameters"}


def described(
    network: str,
    sizes: Mapping[str, Any],
    options: Mapping[str, Any],
    about: Mapping[str, Any],
    *,
    several: bool = False,
) -> NetworkSpec:
    """Return the network of a word such as ``lstm:hidden=32,layers=2``: its own sizes come before those of all.

    One of `several` that has weights of its own keeps its sizes. `about` is what is said of a module by hand.
    """
    from mnemoscope.cli.options import named_values, size_of
    from mnemoscope.nn import NetworkSpec

    own = _OWN.fullmatch(network)
    if own is None:
        bare = NetworkSpec(network, **about)
        return bare if bare.trained and several else bare.replace(**sizes, options=options)
    typed = dict(each.split("=", 1) for each in own["own"].split(","))
    mine = {_SIZES[name]: size_of(name, value) for name, value in typed.items() if name in _SIZES}
    rest = named_values([f"{name}={value}" for name, value in typed.items() if name not in _SIZES], "its options")
    # A size of its own takes the place of a number of parameters for all, and the other way round.
    clash = {"hidden_size": ("parameters", "count"), "parameters": ("hidden_size",)}
    dropped = {each for name in mine for each in clash.get(name, ())}
    kept = {name: value for name, value in sizes.items() if name not in dropped}
    return NetworkSpec(own["network"], **about).replace(**{**kept, **mine}, options={**options, **rest})


@dataclass(frozen=True)
class ProfileOptions:
    """Options of ``profile`` and ``compare`` besides the networks, as they were typed."""

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
    force: bool = False
    transpose: bool = False
    full: bool = False
    inputs: str | None = None
    plan: str | None = None

    def settings(self) -> Settings:
        """Return what it means, or raise one line about a number that cannot be."""
        from mnemoscope.core.arrays import read_array
        from mnemoscope.core.errors import expected, positive_int
        from mnemoscope.profiles.crew import cores
        from mnemoscope.profiles.settings import Settings

        if self.minutes is not None and not 0 < self.minutes < float("inf"):
            raise expected("--minutes", "a number above 0 (--full: as long as it takes)", self.minutes)
        if self.seeds is not None:
            positive_int("--seeds", self.seeds)
        if self.seed < 0:
            raise expected("--seed", "a whole number of at least 0", self.seed)
        budget = None if self.minutes is None or self.train else 60 * self.minutes
        train_minutes = (self.minutes or _MINUTES) if self.train else None
        return Settings(
            self.quick,
            self.seed,
            self.seeds,
            budget,
            train_minutes,
            bounded=not self.full,
            inputs=None if self.inputs is None else read_array(self.inputs),
            inputs_file=self.inputs or "",
            processes=cores(),
        )

    def sizes(self, sizes: Mapping[str, Any], network: str) -> dict[str, Any]:
        """Return sizes with the width of given sequences, for a network that is built and has no other."""
        from mnemoscope.nn import NetworkSpec
        from mnemoscope.profiles.profile import width_of

        if self.inputs is None or "input_size" in sizes or NetworkSpec(network.partition(":hidden")[0]).saved:
            return dict(sizes)
        return {**sizes, "input_size": width_of(self.settings().inputs)}

    def page(self, name: str) -> Path | None:
        """Return where the page goes: as it was typed, or into this folder under the network's name."""
        if self.html is not None:
            return check_page(self.html)
        slug = "".join(c if c.isalnum() or c in "-." else "-" for c in name).strip("-.") or "network"
        return None if self.json else Path(f"{slug}.html")

    def words(self, *, budget: bool = True) -> str:
        """Return the options as they are typed: to make the page again; without the `budget`, to go on."""
        found = ["--quick"] if self.quick else []
        found += ["--fresh"] if self.fresh else []
        found += [f"--seed {self.seed}"] if self.seed else []
        found += [f"--seeds {self.seeds}"] if self.seeds is not None else []
        found += ["--full"] if self.full else []
        found += [f"--inputs {shlex.quote(self.inputs)}"] if self.inputs is not None else []
        found += [f"--plan {shlex.quote(self.plan)}"] if self.plan is not None else []
        found += [f"--train --minutes {self.minutes or _MINUTES:g}"] if self.train else []
        found += [f"--minutes {self.minutes:g}"] if budget and self.minutes is not None and not self.train else []
        return " ".join(found)


def sizes_of(
    hidden: str | None, input_size: str | None, layers: int | None, parameters: int | None, count: str
) -> dict[str, Any]:
    """Return the sizes that were given, as `NetworkSpec` names them, or raise about one that is none."""
    from mnemoscope.cli.options import size_of

    given = {
        "hidden_size": ("--hidden", hidden),
        "input_size": ("--input-size", input_size),
        "num_layers": ("--layers", layers),
        "parameters": ("--parameters", parameters),
    }
    found = {name: size_of(flag, value) for name, (flag, value) in given.items() if value is not None}
    return found if parameters is None else {**found, "count": count}


def run_profile(what: str, specs: Sequence[NetworkSpec], chosen: ProfileOptions) -> None:
    """Profile networks and print what was found; `what` is the command with its networks, as it is typed."""
    from mnemoscope.cli.progress import print_plan, shown_progress
    from mnemoscope.profiles.profiling import Profiling

    settings = chosen.settings()
    page = chosen.page(" vs ".join(spec.label for spec in specs))
    _check_folder(chosen.export)
    if not chosen.dry_run:
        for place in (page, chosen.export):
            check_output(place, chosen.force)
    place = f"--html {shlex.quote(str(page))}" if page else ""
    command, on = (
        " ".join(word for word in (what, chosen.words(budget=budget), place) if word) for budget in (True, False)
    )
    with quiet():
        work = Profiling(specs, settings, html=page, fresh=chosen.fresh, plan=chosen.plan)
    runner = work.runner
    if chosen.dry_run:
        print_plan(work, chosen.json)
        return
    with quiet(), shown_progress(work, chosen.json) as shown:
        found = work.run(command, shown)
    written = len(found.export(chosen.export, transpose=chosen.transpose)) if chosen.export is not None else 0
    if chosen.json:
        print_json(found.to_dict())
    else:
        _print_profile(found, runner.store.taken_up, page, written)
    if runner.interrupted:
        kept = "what is there was kept" if page is not None else "nothing was kept, as there is no --html"
        typer.echo(f"interrupted; {kept}. {'Go on' if page is not None else 'Begin again'} with: {on}", err=True)
    elif runner.stopped and not chosen.json:
        typer.echo(f"the time was used up before the end{_needed(work)}. Go on with: {on}", err=True)
    if found.failed or runner.interrupted:
        raise typer.Exit(FAILURE)


def _needed(work: Profiling) -> str:
    """Say what one seed of every part would take, where that was too much."""
    seconds, budget = work.runner.one_seed(), work.runner.budget or 0.0
    return "" if seconds <= budget else f"; what is left of one seed takes about {seconds:.0f} s (--minutes)"


def _check_folder(folder: str | None) -> None:
    """Raise before the work, not after it, when figures and tables could not be written there."""
    from mnemoscope.core.errors import UserError
    from mnemoscope.core.files import writable

    if folder is not None:
        there = Path(folder)
        if there.exists() and not there.is_dir():
            raise UserError(f"--export needs a folder, and {folder!r} is a file")
        writable((there if there.is_dir() else there.parent) / "methods.txt")


def _print_profile(found: Profile, taken_up: int, page: Path | None, written: int) -> None:
    """Print the scorecard, and what was written."""
    from mnemoscope.cli.scorecard import print_scorecard

    print_scorecard(found)
    ends = [f"page: {page}"] if page is not None else []
    ends += [f"{taken_up} results taken up from an earlier run"] if taken_up else []
    ends += [f"{written} files for a paper written"] if written else []
    if ends:
        typer.echo("; ".join(ends))
