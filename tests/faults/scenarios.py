"""Commands that write records, run in processes forked from this one, and what is judged of how they end."""

import contextlib
import functools
import io
import itertools
import json
import os
import re
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import typer
from tests.faults.calls import Calls
from typer.testing import CliRunner

from mnemoscope import runs
from mnemoscope.cli.main import app
from mnemoscope.measures.cost import step
from mnemoscope.runs.folders import scan

SETTINGS = ("checkpoint_every=4", "log_every=2", "batch_size=3", "test_size=8", "validation_size=8", "lr=0.01")
TASK = ("--task-set", "length=4", "--task-set", "lag=1", "--task-set", "dimensions=2")

POPULATION = """
iterations = 8
seeds = [3, 4]
layout = "batched"
checkpoint_every = 4
batch_size = 3
test_size = 8
[network]
name = "rnn"
hidden_size = 3
[task]
name = "lag-copy"
length = 4
lag = 1
dimensions = 2
"""


@dataclass(frozen=True)
class Scenario:
    """A command, where its run is, and whether ``resume`` goes on with it.

    Attributes
    ----------
    arguments
        Of the command, in a folder of its own that is the current one.
    place
        The folder of its run; None: the one among the runs.
    resumes
        Whether ``mnemoscope resume`` takes it up; else only the same command does.
    files
        What it writes beside records, compared byte for byte.
    """

    name: str
    arguments: tuple[str, ...]
    place: str | None = None
    resumes: bool = True
    files: tuple[str, ...] = ()


def _train(*settings: str) -> tuple[str, ...]:
    return tuple(word for setting in settings for word in ("--train", setting))


SCENARIOS = {
    one.name: one
    for one in (
        Scenario(
            "fit", ("train", "scornn", "lag-copy", "--hidden", "3", "--iterations", "8", *TASK, *_train(*SETTINGS))
        ),
        Scenario("population", ("train", "population.toml")),
        Scenario(
            "capacity",
            (
                *("capacity", "rnn", "lag-copy", "--hidden", "3", "--grid", "1,2", "--seeds", "2", "--iterations", "4"),
                *(*TASK, "--folder", "search", *_train("layout=batched", *SETTINGS)),
            ),
            place="search",
        ),
        Scenario("study", ("study", "run", "ziv-theorem-1", "--scale", "smoke", "--runs", "runs"), resumes=False),
        Scenario(
            "profile",
            ("profile", "linear-rnn", "--hidden", "2", "--quick", "--seeds", "1", "--html", "page.html"),
            resumes=False,
            files=("page.html",),
        ),
        Scenario(
            "atlas",
            ("atlas", "build", "linear-rnn", "--budget", "16", "--which", "quick", "--out", "atlas.json"),
            resumes=False,
            files=("atlas.json",),
        ),
    )
}


@dataclass(frozen=True)
class Ended:
    """How a process ended: its exit code, and what it printed."""

    code: int
    out: str
    err: str


def command(folder: Path, arguments: tuple[str, ...], calls: Calls | None = None) -> Ended:
    """Run a command in a process forked from this one, in a folder that is its current one."""
    return forked(folder, lambda: _main().main(list(arguments), prog_name="mnemoscope"), calls)


@functools.cache
def _main() -> Any:
    return typer.main.get_command(app)


def warm(scenario: Scenario, folder: Path) -> None:
    """Run a command in this process once: processes forked from it then have what it imports and prepares."""
    before, os.environ["MNEMOSCOPE_RUNS"] = os.environ.get("MNEMOSCOPE_RUNS"), str(folder / "runs")
    try:
        with contextlib.chdir(prepared(folder)):
            assert CliRunner().invoke(app, [*scenario.arguments, "--json"], prog_name="mnemoscope").exit_code == 0
    finally:
        os.environ.pop("MNEMOSCOPE_RUNS") if before is None else os.environ.update(MNEMOSCOPE_RUNS=before)


def forked(folder: Path, work: Callable[[], Any], calls: Calls | None = None) -> Ended:
    """Do some work in a process forked from this one; it ends with its exit code, or with 70 for a traceback."""
    folder.mkdir(parents=True, exist_ok=True)
    out, err = (folder.with_name(f"{folder.name}.{name}") for name in ("out", "err"))
    child = os.fork()
    if child:
        _, status = os.waitpid(child, 0)
        return Ended(os.waitstatus_to_exitcode(status), out.read_text(), err.read_text())
    code = 70
    try:
        for number, path in ((1, out), (2, err)):
            os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)
        sys.stdout, sys.stderr = (  # with what Python itself does with letters that a terminal cannot show
            io.TextIOWrapper(io.FileIO(n, "w", closefd=False), errors=errors, write_through=True)
            for n, errors in ((1, "strict"), (2, "backslashreplace"))
        )
        os.chdir(folder)
        os.environ["MNEMOSCOPE_RUNS"] = str(folder / "runs")
        # The time of a step is the one number that no two runs share: a clock that every look moves on.
        step.time = SimpleNamespace(perf_counter=itertools.count(0.0, 1e-5).__next__)
        if calls is not None:
            calls.install()
        work()
        code = 0
    except SystemExit as leaving:
        code = leaving.code if isinstance(leaving.code, int) else 1
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)


def prepared(folder: Path) -> Path:
    """Return a folder with the files that the commands read."""
    folder.mkdir(parents=True)
    (folder / "population.toml").write_text(POPULATION)
    return folder


def number_of_calls(scenario: Scenario, folder: Path) -> int:
    """Run a command with every call counted, and return how many there were."""
    prepared(folder)
    counted = folder.with_name(f"{folder.name}.count")

    def work() -> None:
        calls = Calls(folder).install()
        with contextlib.suppress(SystemExit):
            _main().main([*scenario.arguments, "--json"], prog_name="mnemoscope")
        counted.write_text(str(len(calls.names)))

    ended = forked(folder, work)
    assert ended.code == 0, ended.err
    return int(counted.read_text())


def run_folder(scenario: Scenario, folder: Path) -> Path | None:
    """Return the folder of the run of a command, if it exists."""
    if scenario.place is not None:
        return folder / scenario.place if runs.is_run(folder / scenario.place) else None
    found = [one.folder for one in scan(folder / "runs") if one.parent is None]
    return found[0] if found else None


def go_on(scenario: Scenario, folder: Path, *, by_resume: bool) -> Ended:
    """Go on with a command that was interrupted: by ``resume`` where there is a run, else by the same command again."""
    place = run_folder(scenario, folder) if by_resume and scenario.resumes else None
    again = scenario.arguments if place is None else ("resume", str(place))
    return command(folder, (*again, "--json"), Calls(folder))


_VOLATILE = re.compile(
    r"seconds|date|created|updated|environment|duration|budget_left|_microseconds|minutes|cost_|timing|^measured$"
)


def stable(value: Any, folder: Path) -> Any:
    """Return a document without times and what is said of this call alone, and with the names of folders replaced."""
    if isinstance(value, dict):
        return {key: stable(one, folder) for key, one in value.items() if not _VOLATILE.search(key)}
    if isinstance(value, list):
        return [stable(one, folder) for one in value]
    return value.replace(str(folder), "*") if isinstance(value, str) else value


def recorded(folder: Path) -> dict[str, Any]:
    """Return everything that records are judged by: status, summary, every line, weights by their bits."""
    found = {}
    for one in scan(folder):
        record = runs.load(one.folder)
        last = record.latest()
        found[str(one.folder.relative_to(folder))] = {
            "status": record.status,
            "problems": list(record.problems),
            "summary": stable(record.summary, folder),
            "metrics": stable(list(record.metrics), folder),
            "step": None if last is None else last.step,
            "state": None if last is None else last.state,
            "tensors": None
            if last is None
            else {name: (str(t.dtype), tuple(t.shape), t.numpy().tobytes()) for name, t in last.tensors.items()},
        }
    return found


@dataclass(frozen=True)
class Reference:
    """How a command ends that nothing interrupts."""

    printed: Any
    records: dict[str, Any]
    files: dict[str, bytes]
    calls: int


def reference(scenario: Scenario, folder: Path) -> Reference:
    """Run a command without a fault."""
    warm(scenario, folder / "warm")
    calls = number_of_calls(scenario, folder / "counted")
    place = prepared(folder / "whole")
    ended = command(place, (*scenario.arguments, "--json"), Calls(place))
    assert ended.code == 0, ended.err
    return Reference(stable(json.loads(ended.out), place), recorded(place), written(scenario, place), calls)


def written(scenario: Scenario, folder: Path) -> dict[str, bytes]:
    """Return the bytes of every file that a command writes beside records."""
    return {name: (folder / name).read_bytes() for name in scenario.files}


def check_equal(scenario: Scenario, folder: Path, ended: Ended, wanted: Reference) -> None:
    """Check that a command ended as one that nothing interrupted: what it printed, its files, and every record."""
    assert ended.code == 0, ended.err
    assert "Traceback" not in ended.err, ended.err
    assert stable(json.loads(ended.out), folder) == wanted.printed
    for name, data in written(scenario, folder).items():
        assert data == wanted.files[name], name
    found = recorded(folder)
    assert found.keys() == wanted.records.keys()
    for name, one in found.items():
        assert one == wanted.records[name], name
