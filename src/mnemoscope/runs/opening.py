"""Opening a run: a new folder, or one that is there and goes on."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from mnemoscope.core.environment import differences, environment
from mnemoscope.core.errors import UserError, choice, expected, positive_int
from mnemoscope.core.files import make_folder
from mnemoscope.runs import names
from mnemoscope.runs.canonical import canonical, returned
from mnemoscope.runs.compare import flat_differences
from mnemoscope.runs.document import read_document, write_document
from mnemoscope.runs.errors import Damaged, warn
from mnemoscope.runs.layout import CHECKPOINTS, CONFIG, ENVIRONMENT, LOCK, METRICS, is_run
from mnemoscope.runs.lock import Held, Lock
from mnemoscope.runs.run import Run
from mnemoscope.runs.status import Status, now, read_status, write_status

__all__ = ["KINDS", "open"]

KINDS = ("fit", "population", "capacity", "study")


def open(  # noqa: A001 - runs.open is to a run what open is to a file
    spec: Mapping[str, Any],
    *,
    folder: str | os.PathLike[str] | None = None,
    root: str | os.PathLike[str] | None = None,
    kind: str = "fit",
    resume: bool = True,
    keep: int = 2,
) -> Run:
    """Open the run of a configuration and lock it: the one that is there, or a new one.

    Parameters
    ----------
    spec
        The configuration, JSON: everything that the numbers depend on. ``task``, ``network`` (text, or a mapping with a
        ``name``) and ``seed`` are what `mnemoscope runs` lists.
    folder
        The run's folder. None: one in `root` that is named by the content of the configuration, so that the same
        configuration finds it again.
    root
        The folder that holds the runs; None: ``$MNEMOSCOPE_RUNS``, else ``./runs``.
    kind
        ``"fit"``, ``"population"``, ``"capacity"`` or ``"study"``.
    resume
        Whether to go on with a run that is there. False: a new folder beside it; with `folder` given, an error.
    keep
        How many checkpoints are kept.

    Returns
    -------
    Run
        A context manager, locked for this process.
    """
    if not isinstance(spec, Mapping):
        raise expected("spec", "a mapping", spec)
    config = {"kind": choice("kind", kind, KINDS), "spec": returned(spec, "spec")}
    keep = positive_int("keep", keep)
    base = names.root(root)
    path = _chosen(base, folder, config, resume)
    make_folder(path)
    name = names.identity(path, base)
    lock = Lock(path / LOCK)
    try:
        lock.acquire()
    except Held as held:
        raise UserError(f"run {name} is in use by {held.owner}: wait until it ends, or end it") from None
    try:
        there = is_run(path)
        if there and not resume:
            raise UserError(f"folder must be one without a run when resume is False, got {str(path)!r}")
        known = _reopen(path, name, config) if there else _create(path, config)
        home = base if path.is_relative_to(base) else None
        return Run(path, id=name, kind=kind, lock=lock, home=home, resumed=there, keep=keep, **known)
    except BaseException:
        lock.release()
        raise


def _chosen(base: Path, folder: str | os.PathLike[str] | None, config: dict[str, Any], resume: bool) -> Path:
    if folder is not None:
        path = Path(folder).expanduser()
        if "\0" in str(path):
            raise UserError("a folder's name must be without the character NUL")
        return path.resolve()
    make_folder(base.resolve())
    first = base / names.folder_name(config["spec"], config["kind"])
    if resume or not os.path.lexists(first):
        return first
    numbered = (base / f"{first.name}-{number}" for number in range(2, 10**6))
    return next(path for path in numbered if not os.path.lexists(path))


def _create(path: Path, config: dict[str, Any]) -> dict[str, Any]:
    """Write the documents of a new run; the configuration last, since its presence makes the folder a run."""
    if os.path.lexists(path / METRICS) or os.path.lexists(path / CHECKPOINTS):
        raise Damaged(f"{str(path / CONFIG)!r} is missing, while the rest of the run is there; nothing was changed")
    found = environment()
    write_document(path / ENVIRONMENT, found, named_durably=False)
    status = write_status(path, Status().with_session([]))
    key = write_document(path / CONFIG, config | {"created": now()})
    return {"spec": config["spec"], "environment": found, "key": key, "status": status, "changes": []}


def _reopen(path: Path, name: str, config: dict[str, Any]) -> dict[str, Any]:
    before, key = read_document(path / CONFIG)
    _check_same(name, before, config)
    try:
        found, _ = read_document(path / ENVIRONMENT)
    except Damaged as error:
        warn(f"{error}; what run {name} began on is unknown")
        found = {}
    status = _status(path, name)
    changes = differences(found, environment()) if found and status.state != "finished" else []
    if changes:
        warn(f"run {name} goes on in another environment, and its last digits may differ: {'; '.join(changes)}")
    return {"spec": before["spec"], "environment": found, "key": key, "status": status, "changes": changes}


def _status(path: Path, name: str) -> Status:
    try:
        status = read_status(path)
    except Damaged as error:
        warn(f"{error}; run {name} goes on from its latest checkpoint")
        return Status(state="interrupted")
    # We hold the lock: whoever wrote that it was running is gone.
    return replace(status, state="interrupted") if status.state == "running" else status


def _check_same(name: str, before: dict[str, Any], config: dict[str, Any]) -> None:
    old, new = ({"kind": one["kind"], **one["spec"]} for one in (before, config))
    if canonical(old) == canonical(new):
        return
    parts = [f"{key} is {a} there and {b} here" for key, a, b in flat_differences(old, new)]
    more = f" and {len(parts) - 3} more" if len(parts) > 3 else ""
    raise UserError(f"run {name} has another configuration: {'; '.join(parts[:3])}{more}")
