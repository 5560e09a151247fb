"""Atomic files: in which order things reach the disk, and what is left when a step fails."""

import os
from pathlib import Path

import pytest

from mnemoscope.core.errors import UserError
from mnemoscope.runs.document import read_document, write_document
from mnemoscope.runs.errors import Unwritable
from mnemoscope.runs.files import write_atomic


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


def test_a_document_says_when_its_checksum_does_not_hold(tmp_path):
    path = tmp_path / "one.json"
    checksum = write_document(path, {"a": [1, float("inf")], "b": "x"}, size=500)
    assert path.stat().st_size == 500
    assert read_document(path) == ({"a": [1, float("inf")], "b": "x"}, checksum)
    path.write_text(path.read_text().replace('"x"', '"y"'))
    with pytest.raises(UserError, match="does not match its checksum"):
        read_document(path)
    for junk, words in (("[]", "no format"), ("{}", "no format"), ('{"format": true}', "no format"), ("x", "not JSON")):
        path.write_text(junk)
        with pytest.raises(UserError, match=words):
            read_document(path)


def test_a_full_disk_leaves_room_for_the_status(tmp_path, monkeypatch):
    path = tmp_path / "status.json"
    write_document(path, {"state": "running"}, size=500)

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    write_document(path, {"state": "failed"}, size=500)
    assert read_document(path)[0] == {"state": "failed"}
    with pytest.raises(Unwritable, match="the disk is full"):
        write_document(path, {"state": "x" * 600}, size=500)
    assert read_document(path)[0] == {"state": "failed"}
