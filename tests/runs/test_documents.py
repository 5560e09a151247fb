"""Documents of a record: checksum, format, and a disk that is full."""

from pathlib import Path

import pytest

from mnemoscope.core.errors import UserError
from mnemoscope.core.files import Unwritable
from mnemoscope.runs.documents import read_document, write_document


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
