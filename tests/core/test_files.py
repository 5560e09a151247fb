"""Atomic files: in which order things reach the disk, and what is left when a step fails."""

import os
from pathlib import Path

import pytest

from mnemoscope.core.files import Unwritable, writable, write_atomic


@pytest.fixture
def calls(monkeypatch):
    """The calls that matter for durability, in their order."""
    made = []
    write, replace = os.write, Path.replace

    def kind(descriptor):
        return "folder" if Path(f"/proc/self/fd/{descriptor}").is_dir() else "file"

    monkeypatch.setattr(os, "write", lambda fd, data: (made.append("write"), write(fd, data))[1])
    monkeypatch.setattr(os, "fsync", lambda fd: made.append(f"fsync {kind(fd)}"))
    monkeypatch.setattr(Path, "replace", lambda old, new: (made.append("rename"), replace(old, new))[1])
    return made


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="needs /proc to tell files from folders")
def test_a_file_is_on_the_disk_before_it_has_its_name(tmp_path, calls):
    write_atomic(tmp_path / "file", b"data")
    assert calls == ["write", "fsync file", "rename", "fsync folder"]
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_a_file_has_the_rights_of_any_other(tmp_path):
    mask = os.umask(0o027)
    try:
        assert write_atomic(tmp_path / "file", b"data").stat().st_mode & 0o777 == 0o640
    finally:
        os.umask(mask)


@pytest.mark.parametrize("step", ["write", "fsync", "rename"])
@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_what_fails_leaves_the_old_file(tmp_path, monkeypatch, step, error):
    path = tmp_path / "file"
    path.write_bytes(b"old")

    def fail(*_):
        raise error

    place, name = {"write": (os, "write"), "fsync": (os, "fsync"), "rename": (Path, "replace")}[step]
    monkeypatch.setattr(place, name, fail)
    with pytest.raises(Unwritable if isinstance(error, OSError) else KeyboardInterrupt):
        write_atomic(path, b"new")
    assert [one.name for one in tmp_path.iterdir()] == ["file"]
    assert path.read_bytes() == b"old"


def test_writes_that_take_only_a_part(tmp_path, monkeypatch):
    write = os.write
    monkeypatch.setattr(os, "write", lambda descriptor, data: write(descriptor, bytes(data[:3])))
    write_atomic(tmp_path / "file", b"0123456789")
    assert (tmp_path / "file").read_bytes() == b"0123456789"


def test_a_link_is_replaced_and_not_followed(tmp_path):
    (tmp_path / "precious").write_bytes(b"keep")
    (tmp_path / "file").symlink_to(tmp_path / "precious")
    write_atomic(tmp_path / "file", b"new")
    assert (tmp_path / "precious").read_bytes() == b"keep"
    assert (tmp_path / "file").read_bytes() == b"new"


def test_places_that_cannot_be_written(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    assert writable(tmp_path / "file") == tmp_path / "file"
    for path, why in (
        (tmp_path / "missing" / "x", "there is no folder '.*missing'"),
        (tmp_path / "file" / "x", "there is no folder '.*file'"),
        (tmp_path, "it is a folder"),
    ):
        with pytest.raises(Unwritable, match=f"cannot be written: {why}"):
            writable(path)
    monkeypatch.setattr(os, "access", lambda path, _: path == tmp_path)  # for root, everything can be written
    with pytest.raises(Unwritable, match=r"file' cannot be written: it is read-only"):
        writable(tmp_path / "file")
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(Unwritable, match=r"cannot be written: the folder '.*' is read-only"):
        writable(tmp_path / "new")
