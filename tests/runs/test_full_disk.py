"""A full disk, a limit on sizes, a folder that may not be written: one line, and nothing that was there is lost."""

import ctypes
import os
import signal

import pytest
import torch

from mnemoscope import runs
from mnemoscope.core.errors import UserError

SPEC = {"task": "copy", "seed": 1}
RDONLY, REMOUNT = 1, 32


def mount(source, target, kind, flags, options):
    libc = ctypes.CDLL(None, use_errno=True)
    words = (one.encode() for one in (source, str(target), kind))
    if libc.mount(*words, flags, options.encode()):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


@pytest.fixture
def small_disk(tmp_path):
    """A file system of 512 kB; skipped where one may not be mounted."""
    folder = tmp_path / "disk"
    folder.mkdir()
    try:
        mount("tmpfs", folder, "tmpfs", 0, "size=512k")
    except (OSError, AttributeError) as error:
        pytest.skip(f"mounting a small tmpfs needs root: {error}")
    yield folder
    assert ctypes.CDLL(None).umount2(str(folder).encode(), 2) == 0


def fill(folder):
    """Leave no free byte."""
    with (folder / "ballast").open("wb", buffering=0) as stream:
        for size in (4096, 1):
            try:
                while True:
                    stream.write(bytes(size))
            except OSError:
                continue


def begun(folder):
    with runs.open(SPEC, folder=folder) as run:
        run.append({"step": 1, "loss": 1.0})
        run.checkpoint(1, {"w": torch.arange(100.0)}, {"at": 1})
    return folder


def go_on(folder, tensor, *, last=2, before=lambda: None):
    with runs.open(SPEC, folder=folder) as run:
        run.latest()
        for step in range(2, last + 1):
            run.append({"step": step, "loss": 1.0})
        before()
        run.checkpoint(last, {"w": tensor})


def check_whole(folder, lines):
    record = runs.load(folder)
    assert record.problems == ()
    assert record.metrics == [{"step": step, "loss": 1.0} for step in range(1, lines + 1)]
    assert torch.equal(record.latest().tensors["w"], torch.arange(100.0))
    return record


def test_a_checkpoint_that_does_not_fit(small_disk):
    folder = begun(small_disk / "run")
    with pytest.raises(UserError) as caught:
        go_on(folder, torch.zeros(1_000_000))
    words = str(caught.value)
    assert words.endswith("step-2.safetensors' cannot be written: the disk is full; free some space and try again")
    assert "\n" not in words
    record = check_whole(folder, 2)
    assert (record.status, record.reason) == ("failed", words)
    assert [path.name for path in folder.rglob("*.tmp")] == []
    with runs.open(SPEC, folder=folder) as run:
        assert run.latest().step == 1
        run.append({"step": 2, "loss": 1.0})
        run.finish()
    assert check_whole(folder, 2).status == "finished"


def test_a_disk_without_a_free_byte(small_disk):
    folder = begun(small_disk / "run")
    with pytest.raises(UserError, match="the disk is full"):
        go_on(folder, torch.zeros(1000), before=lambda: fill(small_disk))
    record = check_whole(folder, 2)
    assert record.status == "failed", "the status is written over itself, which takes no space"
    assert "the disk is full" in record.reason
    with pytest.warns(runs.RecordWarning, match="is in memory, since its file cannot be written"):
        assert runs.index(small_disk)[0]["status"] == "failed"
    (small_disk / "ballast").unlink()
    with runs.open(SPEC, folder=folder) as run:
        assert run.latest().step == 1
        run.append({"step": 2, "loss": 1.0})
        run.finish()
    assert check_whole(folder, 2).status == "finished"


def test_metrics_that_do_not_fit(small_disk):
    folder = begun(small_disk / "run")
    fill(small_disk)
    with pytest.raises(UserError, match="metrics.jsonl' cannot be written: the disk is full"):
        go_on(folder, torch.zeros(1), last=5000)
    record = runs.load(folder)
    assert record.status == "failed"
    assert record.metrics == [{"step": step, "loss": 1.0} for step in range(1, len(record.metrics) + 1)]
    check_whole(folder, len(record.metrics))


def test_a_new_run_on_a_full_disk(small_disk):
    fill(small_disk)
    with pytest.raises(UserError, match="the disk is full"):
        runs.open(SPEC, folder=small_disk / "run")
    (small_disk / "ballast").unlink()
    begun(small_disk / "run")
    check_whole(small_disk / "run", 1)


def test_a_disk_that_may_only_be_read(small_disk):
    folder = begun(small_disk / "run")
    runs.index(small_disk)
    mount("tmpfs", small_disk, "tmpfs", RDONLY | REMOUNT, "")
    with pytest.raises(UserError, match="cannot be written: writing is not allowed there"):
        runs.open(SPEC, folder=folder)
    with pytest.raises(UserError, match="cannot be written: writing is not allowed there"):
        runs.open(SPEC, folder=small_disk / "new")
    check_whole(folder, 1)
    with pytest.warns(runs.RecordWarning, match="is in memory, since its file cannot be written"):
        (row,) = runs.index(small_disk)
    assert (row["id"], row["status"], row["lines"]) == ("run", "interrupted", 1)


def test_a_folder_of_somebody_else(tmp_path):
    folder = tmp_path / "locked"
    folder.mkdir(mode=0o555)
    if os.access(folder, os.W_OK):
        pytest.skip("whoever runs this may write everywhere: root")
    with pytest.raises(UserError, match="writing is not allowed there"):
        runs.open(SPEC, folder=folder / "run")


def test_a_file_in_place_of_a_folder(tmp_path):
    (tmp_path / "runs").write_text("mine")
    for given in ({"root": tmp_path / "runs"}, {"folder": tmp_path / "runs"}, {"folder": tmp_path / "runs" / "deeper"}):
        with pytest.raises(UserError, match="must be a folder, and is a file|cannot be written"):
            runs.open(SPEC, **given)
    assert (tmp_path / "runs").read_text() == "mine"


def test_a_limit_on_the_size_of_files(tmp_path):
    resource = pytest.importorskip("resource", reason="Windows has no limits")
    folder = begun(tmp_path / "run")
    before, handler = resource.getrlimit(resource.RLIMIT_FSIZE), signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, before[1]))
    try:
        with pytest.raises(UserError, match="cannot be written: the limit on its size is reached; free some space"):
            go_on(folder, torch.zeros(10_000))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)
    assert check_whole(folder, 2).status == "failed"
