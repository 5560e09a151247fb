"""Execution of a study's runs: each once, kept in the record, taken up again after an interruption."""

from __future__ import annotations

import json
import math
import os
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from mnemoscope import runs
from mnemoscope.core.errors import UserError
from mnemoscope.core.files import write_atomic
from mnemoscope.core.registry import Registry
from mnemoscope.machines import stop_asked
from mnemoscope.machines.merging import fetch
from mnemoscope.machines.workers import Tell, Workers
from mnemoscope.runs.indexing import note
from mnemoscope.runs.packing import ENDING, pack
from mnemoscope.runs.stores import open_store
from mnemoscope.studies.machinery.study import Outcome, RunSpec
from mnemoscope.training.populations import chosen_layout, usual_layout

__all__ = ["EXECUTORS", "Executor", "collected", "execute", "execute_one", "executor", "run_job", "run_name"]

_TOOK = "took.json"
"""In the folder of a run: what parts of it took that were interrupted."""

Executor = Callable[[Mapping[str, Any], Path], Mapping[str, Any]]
"""Runs the settings of one kind of run, in a folder of its own, and returns the summary, plain JSON."""

EXECUTORS: Registry[Executor] = Registry("kind of run", "mnemoscope.executors", object)


def executor(kind: str) -> Callable[[Executor], Executor]:
    """Return a decorator that registers what executes one kind of run."""
    return EXECUTORS.register(kind)


def execute(
    specs: Sequence[RunSpec],
    root: Path | None = None,
    minutes: float | None = None,
    workers: Workers | None = None,
    store: str | None = None,
) -> Iterator[Outcome]:
    """Run what has not been run yet, and give each outcome when it is there.

    Parameters
    ----------
    specs
        The runs, in order.
    root
        Where runs live; by default $MNEMOSCOPE_RUNS, else ./runs.
    minutes
        After these no new run begins; what is there is kept, and the same call goes on from there. So it does when a
        signal asks to stop: a training that is under way keeps a checkpoint, and nothing more is given.
    workers
        Who runs them, several at a time; then outcomes come in the order in which they are done. None: this process,
        one after the other.
    store
        For workers that do not see `root`: a folder or the URL of a store through which results come. Runs under way
        are then kept on each worker's own machine.
    """
    home = runs.root() if root is None else root
    until = math.inf if minutes is None else time.monotonic() + 60 * minutes
    if workers is not None:
        yield from _elsewhere(specs, home, until, workers, store)
        return
    for spec in specs:
        outcome = _kept(spec, home)
        if outcome is None:
            if stop_asked() or time.monotonic() > until:
                return
            try:
                outcome = _run(spec, home)
            except runs.OutOfBudget:
                return
        yield outcome


def _elsewhere(
    specs: Sequence[RunSpec], home: Path, until: float, workers: Workers, store: str | None
) -> Iterator[Outcome]:
    todo = {}
    through = None if store is None else open_store(store)
    for spec in specs:
        outcome = _kept(spec, home)
        if outcome is None and through is not None and fetch(through, run_name(spec), home):
            outcome = _kept(spec, home)
        if outcome is not None:
            yield outcome
        else:
            todo[spec.key] = spec  # a run that is asked for twice is run once
    listed = list(todo.values())
    common = {"root": str(home), "layout": chosen_layout(), "store": store}
    jobs = [
        {"kind": spec.kind, "module": EXECUTORS[spec.kind].__module__, "settings": dict(spec.settings), **common}
        for spec in listed
    ]
    try:
        for number, found in workers.run("mnemoscope.studies.machinery.execution:run_job", jobs, until=until):
            spec = listed[number]
            if through is not None:
                fetch(through, run_name(spec), home)
            note(home, home / run_name(spec))
            yield Outcome(spec, found["summary"], found["seconds"], found["processor_seconds"])
    except runs.OutOfBudget:
        return


def run_job(job: Mapping[str, Any], tell: Tell) -> dict[str, Any]:
    """Do one run for whoever drives many machines; return its outcome as JSON."""
    import_module(job["module"])  # which registers the kind, where a study has one of its own
    spec = RunSpec(job["kind"], job["settings"])
    home = Path(job["root"]) if job["store"] is None else runs.root() / "work"
    with usual_layout(job["layout"]):
        outcome = execute_one(spec, home)
    if job["store"] is not None:
        folder = home / run_name(spec)
        open_store(job["store"]).write(f"{folder.name}{ENDING}", pack(folder))
        shutil.rmtree(folder, ignore_errors=True)
    return {"summary": outcome.summary, "seconds": outcome.seconds, "processor_seconds": outcome.processor_seconds}


def execute_one(spec: RunSpec, root: Path) -> Outcome:
    """Return the outcome of one run, from the record where it is there; raise `OutOfBudget` when it has to stop."""
    return _kept(spec, root) or _run(spec, root)


def collected(specs: Sequence[RunSpec], root: Path | None = None) -> list[Outcome]:
    """Return the outcomes that the record has already."""
    home = runs.root() if root is None else root
    return [outcome for spec in specs if (outcome := _kept(spec, home)) is not None]


def run_name(spec: RunSpec) -> str:
    """Return the name of a run's folder."""
    return f"study-{spec.key}"


def _kept(spec: RunSpec, home: Path) -> Outcome | None:
    folder = home / run_name(spec)
    if not runs.is_run(folder):
        return None
    record = runs.load(folder)
    if record.status != "finished" or record.summary is None:
        return None
    summary = record.summary
    return Outcome(spec, summary["result"], summary.get("seconds"), summary.get("processor_seconds"))


def _run(spec: RunSpec, home: Path) -> Outcome:
    begin = time.monotonic(), _processor()
    with runs.open(spec.content, folder=home / run_name(spec), kind="study") as run:
        try:
            found = dict(EXECUTORS[spec.kind](spec.settings, run.folder))
        except UserError as error:
            run.fail(str(error))
            raise
        except runs.OutOfBudget:
            write_atomic(run.folder / _TOOK, json.dumps(_took(run.folder, *begin)).encode())
            raise
        took = _took(run.folder, *begin)
        run.finish({"result": found, **took})
    return Outcome(spec, found, **took)


def _took(folder: Path, clock: float, processor: float) -> dict[str, float]:
    """Return the seconds since a beginning, with those of parts of this run that were interrupted before."""
    kept = folder / _TOOK
    before = json.loads(kept.read_bytes()) if kept.exists() else {"seconds": 0.0, "processor_seconds": 0.0}
    now = {"seconds": time.monotonic() - clock, "processor_seconds": _processor() - processor}
    return {name: round(before[name] + seconds, 3) for name, seconds in now.items()}


def _processor() -> float:
    """Return the processor seconds of this process and of those that it started, which have ended."""
    return sum(os.times()[:4])
