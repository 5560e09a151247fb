"""Opening of a run: a new folder, or one that is there and goes on."""

from __future__ import annotations

import errno
import glob
import os
import secrets
import shutil
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mnemoscope.core.environment import differences, environment
from mnemoscope.core.errors import UserError, choice, expected, positive_int
from mnemoscope.core.files import TEMPORARY, Unwritable, make_folder, sync_folder, write_atomic, write_failure
from mnemoscope.runs import folders
from mnemoscope.runs.checkpoints import Checkpoint, CheckpointFolder, checked_tensors, steps
from mnemoscope.runs.documents import canonical, checksum, normal, read_document, returned, write_document
from mnemoscope.runs.errors import Damaged, InUse, warn
from mnemoscope.runs.files import size
from mnemoscope.runs.folders import CHECKPOINTS, CONFIG, ENVIRONMENT, LOCK, METRICS, STATUS, is_run
from mnemoscope.runs.lock import Held, Lock, patience
from mnemoscope.runs.metrics import chain_start
from mnemoscope.runs.recorder import Recorder
from mnemoscope.runs.status import Status, now, read_status, write_status
from mnemoscope.runs.tables import flat_differences

if TYPE_CHECKING:
    pass

__all__ = ["KINDS", "open"]


_ATTEMPTS = 5
KINDS = ("fit", "population", "capacity", "ladder", "remembering", "study")


def open(  # noqa: A001 - runs.open is to a run what open is to a file
    spec: Mapping[str, Any],
    *,
    folder: str | os.PathLike[str] | None = None,
    root: str | os.PathLike[str] | None = None,
    kind: str = "fit",
    start: Callable[[], Checkpoint] | None = None,
    resume: bool = True,
    keep: int | None = None,
) -> Recorder:
    """Open the run of a configuration and lock it: the one that is there, or a new one.

    A new run comes into being in one act, with its checkpoint of step 0: a folder beside its place is filled and then
    renamed. Whoever is killed before that leaves no run; whoever is killed later leaves one that can go on.

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
        ``"fit"``, ``"population"``, ``"capacity"``, ``"ladder"``, ``"remembering"`` or ``"study"``.
    start
        Called for a new run only: the checkpoint that it begins with.
    resume
        Whether to go on with a run that is there. False: a new folder beside it; with `folder` given, an error.
    keep
        How many of the newest checkpoints are kept; None: as many as the run kept so far, 2 where it is new.

    Returns
    -------
    Recorder
        A context manager, locked for this process.
    """
    if not isinstance(spec, Mapping):
        raise expected("spec", "a mapping", spec)
    config = {"kind": choice("kind", kind, KINDS), "spec": returned(spec, "spec")}
    keep = None if keep is None else positive_int("keep", keep)
    base = folders.root(root)
    path = _chosen(base, folder, config, resume)
    name = folders.identity(path, base)
    opened = _begin_elsewhere(path, name, config, start) if _is_free(path) else None
    lock, known, there = _open_in_place(path, name, config, start, resume) if opened is None else opened
    home = base if path.is_relative_to(base) else None
    try:
        return Recorder(path, id=name, kind=kind, lock=lock, home=home, resumed=there, keep=keep, **known)
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
    first = base / folders.folder_name(config["spec"], config["kind"])
    if resume or not os.path.lexists(first):
        return first
    numbered = (base / f"{first.name}-{number}" for number in range(2, 10**6))
    return next(path for path in numbered if not os.path.lexists(path))


_Opened = tuple[Lock, dict[str, Any], bool]
"""A lock, what is known of the run, and whether it was there before."""


def _is_free(path: Path) -> bool:
    """Say whether a folder can be renamed to a path: nothing is there, or an empty folder."""
    if os.name == "nt":  # where a folder with an open file, the lock, cannot be renamed
        return False
    return not os.path.lexists(path) or (path.is_dir() and not path.is_symlink() and not any(path.iterdir()))


def _begin_elsewhere(
    path: Path, name: str, config: dict[str, Any], start: Callable[[], Checkpoint] | None
) -> _Opened | None:
    """Make a run in a folder beside its place, and rename that; None when another process was faster."""
    above = next(one for one in path.parents if one.exists())
    make_folder(path.parent)
    _remove_abandoned(path, name)
    first = None if start is None else start()
    temporary, lock = _locked_folder(path)
    try:
        known = _create(temporary, config, first)
        try:
            temporary.rename(path)
            for one in path.parents:  # the new names, up to a folder that was there before
                sync_folder(one)
                if one == above:
                    break
        except OSError as error:
            if error.errno not in (errno.EEXIST, errno.ENOTEMPTY, errno.ENOTDIR):
                raise write_failure(path, error) from error
            lock.release()
            shutil.rmtree(temporary, ignore_errors=True)
            return None
    except BaseException:
        lock.release()
        shutil.rmtree(temporary, ignore_errors=True)
        raise
    return lock, known, False


def _locked_folder(path: Path) -> tuple[Path, Lock]:
    """Make a folder beside a path, and lock it; until it is locked, another process may take it for abandoned."""
    for attempt in range(_ATTEMPTS):
        temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}{TEMPORARY}")
        make_folder(temporary)
        lock = Lock(temporary / LOCK)
        try:
            lock.acquire()
        except (Held, Unwritable):
            shutil.rmtree(temporary, ignore_errors=True)
            if attempt == _ATTEMPTS - 1:
                raise
            continue
        return temporary, lock
    raise AssertionError


def _remove_abandoned(path: Path, name: str) -> None:
    """Remove what processes left that were killed while they began this run: folders whose locks nobody holds."""
    for old in path.parent.glob(f".{glob.escape(path.name)}.*{TEMPORARY}"):
        if not old.is_dir() or old.is_symlink():
            continue
        lock = Lock(old / LOCK)
        try:
            lock.acquire(patience=0)
        except (Held, Unwritable):
            continue
        shutil.rmtree(old, ignore_errors=True)
        lock.release()
        warn(f"run {name} was killed before it came into being: it is begun anew")


def _open_in_place(
    path: Path, name: str, config: dict[str, Any], start: Callable[[], Checkpoint] | None, resume: bool
) -> _Opened:
    """Open a run that is there, or begin one in a folder that holds other files."""
    make_folder(path)
    lock = Lock(path / LOCK)
    try:
        lock.acquire(patience())
    except Held as held:
        raise InUse(f"run {name} is in use by {held.owner}: wait until it ends, or end it") from None
    try:
        if is_run(path):
            if not resume:
                raise UserError(f"folder must be one without a run when resume is False, got {str(path)!r}")
            return lock, _reopen(path, name, config), True
        _check_unbegun(path, name)
        return lock, _create(path, config, None if start is None else start()), False
    except BaseException:
        lock.release()
        raise


def _check_unbegun(path: Path, name: str) -> None:
    """Raise when a folder holds more of a run than a process leaves that is killed while it begins one."""
    if size(path / METRICS) or any(steps(path / CHECKPOINTS)):
        raise Damaged(f"{str(path / CONFIG)!r} is missing, while the rest of the run is there; nothing was changed")
    if any(os.path.lexists(path / one) for one in (ENVIRONMENT, STATUS, METRICS, CHECKPOINTS)):
        warn(f"run {name} was killed before it came into being: it is begun anew")


def _create(path: Path, config: dict[str, Any], first: Checkpoint | None) -> dict[str, Any]:
    """Write the files of a new run; the configuration last, since its presence makes the folder a run."""
    found = environment()
    config = config | {"created": now()}
    key = checksum(config, CONFIG)
    write_document(path / ENVIRONMENT, found, named_durably=False)
    status = Status(checkpoint=None if first is None else first.step).with_session([])
    status = write_status(path, status, named_durably=False)
    write_atomic(path / METRICS, b"", named_durably=False)
    if first is not None:
        whole = Checkpoint(first.step, checked_tensors(first.tensors), normal(first.state, "state"))
        CheckpointFolder(path / CHECKPOINTS, key).write(whole, chain_start(key), best=False)
    write_document(path / CONFIG, config)
    return {"spec": config["spec"], "environment": found, "key": key, "status": status, "changes": [], "first": first}


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
