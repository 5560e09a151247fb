"""What whatever stores runs must do, for every kind of store: today a folder on this machine.

A store is a function that gives the place of a run by its name. Writers are processes forked from this one.
"""

import errno
import fcntl
import os
import shutil
import signal
import sqlite3
import time
import warnings

import pytest
import torch
from tests.faults.scenarios import forked

from mnemoscope import runs
from mnemoscope.core.errors import UserError

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork, which Windows does not have")

STORES = {"folder": lambda base: lambda name: base / "runs" / name}
STEPS = 6


@pytest.fixture(params=STORES)
def place(request, tmp_path):
    return STORES[request.param](tmp_path)


def work(folder, pause=0.0):
    """Do a small computation, or the rest of it: every number follows from the one before."""
    start = lambda: runs.Checkpoint(0, {"x": torch.zeros(3, dtype=torch.float64)}, {})  # noqa: E731
    with runs.open({"task": folder.name.partition("-")[0]}, folder=folder, start=start) as run:
        if run.finished:
            return
        found = run.first or run.latest()
        step, x = found.step, found.tensors["x"]
        while step < STEPS:
            step, x = step + 1, torch.cos(x + step)
            run.append({"step": step, "sum": float(x.sum())})
            if step % 2 == 0:
                run.checkpoint(step, {"x": x})
            time.sleep(pause)
        run.finish({"sum": float(x.sum())})


def judged(folder):
    record = runs.load(folder)
    return record.status, record.summary, list(record.metrics), record.latest().tensors["x"].tolist(), record.problems


def started(folder, pause):
    """Begin the work in a process of its own, and wait until its run is there and has lines."""
    child = os.fork()
    if child == 0:
        try:
            work(folder, pause)
        finally:
            os._exit(0)
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline and not (runs.is_run(folder) and runs.load(folder).metrics):
        time.sleep(0.01)
    return child


@pytest.fixture
def whole(place):
    work(place("one-whole"))
    return judged(place("one-whole"))


def test_many_writers_of_many_runs_do_not_disturb_each_other(place, whole, tmp_path):
    children = [started(place(f"one-{k}"), 0.0) for k in range(6)]
    for child in children:
        os.waitpid(child, 0)
    assert all(judged(place(f"one-{k}")) == whole for k in range(6))
    assert len(runs.index(place("one-0").parent)) == 7


def test_many_writers_of_one_run_are_one(place, whole, tmp_path):
    children = []
    for _ in range(6):
        child = os.fork()
        if child == 0:
            code = 3
            try:
                work(place("one-same"), 0.02)
                code = 0
            except UserError as error:
                code = 2 if "is in use by" in str(error) else 3
            finally:
                os._exit(code)
        children.append(child)
    codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
    assert 0 in codes
    assert set(codes) <= {0, 2}
    assert judged(place("one-same")) == whole


def test_a_dead_writer_is_noticed_and_its_run_taken_over(place, whole):
    child = started(place("one-dead"), 0.05)
    assert runs.load(place("one-dead")).status == "running"
    assert runs.load(place("one-dead")).owner == f"process {child}"
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    assert runs.load(place("one-dead")).status == "interrupted"
    work(place("one-dead"))
    assert judged(place("one-dead")) == whole


@pytest.mark.parametrize("way", [shutil.move, shutil.copytree])
def test_a_run_that_is_moved_or_copied_goes_on_there(place, whole, way):
    child = started(place("one-here"), 0.05)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    way(str(place("one-here")), str(place("one-there")))
    work(place("one-there"))
    assert judged(place("one-there")) == whole


def test_what_cannot_be_written_is_read_and_refused_in_one_line(place, whole, tmp_path):
    tmp_path.chmod(0o755)
    for folder, names, files in os.walk(tmp_path):
        for name in (*names, *files):
            os.chmod(os.path.join(folder, name), 0o555 if name in names else 0o444)  # noqa: PTH101, PTH118

    def as_an_ordinary_user():
        if os.getuid() == 0:
            for above in (tmp_path, *list(tmp_path.parents)[:-2]):
                above.chmod(0o755)
            os.setgid(65534)
            os.setuid(65534)
        warnings.simplefilter("ignore")
        assert judged(place("one-whole")) == whole
        assert [row["status"] for row in runs.index(place("x").parent)] == ["finished"]
        with pytest.raises(UserError, match="cannot be written: writing is not allowed there"):
            work(place("two-new"))

    ended = forked(tmp_path.with_name(f"{tmp_path.name}-user"), as_an_ordinary_user)
    assert ended.code == 0, ended.err


def test_a_file_system_without_locks_and_shared_memory_serves(place, whole, monkeypatch):
    """As network file systems do: no flock, no memory that is shared for SQLite's log."""

    def no_locks(*arguments):
        raise OSError(errno.ENOLCK, "No locks available")

    def no_memory(*arguments, **options):
        if arguments[0] != ":memory:":
            raise sqlite3.OperationalError("disk I/O error")
        return connect(*arguments, **options)

    connect = sqlite3.connect
    monkeypatch.setattr(fcntl, "flock", no_locks)
    monkeypatch.setattr(sqlite3, "connect", no_memory)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", runs.RecordWarning)
        work(place("one-remote"))
        assert judged(place("one-remote")) == whole
        assert len(runs.index(place("x").parent)) == 2


def test_a_reader_that_sees_files_late_sees_an_earlier_moment(place, whole, tmp_path):
    """Copies that are taken file by file, in any order, while a process writes: whatever is read of one is whole."""
    child = started(place("one-late"), 0.01)
    for number in range(10):
        copy = place(f"one-copy{number}")
        try:
            shutil.copytree(place("one-late"), copy)
        except (shutil.Error, OSError):
            continue  # a file was replaced under the copy, which then is not there
        if not runs.is_run(copy):
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", runs.RecordWarning)
            record = runs.load(copy)
            assert list(record.metrics) == whole[2][: len(record.metrics)]
            work(copy)
            assert judged(copy)[:4] == whole[:4]
    os.waitpid(child, 0)
