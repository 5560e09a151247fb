"""Files are written whole or not at all, and one line says why not."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.report.sample import page

from mnemoscope.core.errors import UserError
from mnemoscope.report import export, write
from mnemoscope.report.files import write_whole


def test_a_page_is_written_whole_over_an_older_one(tmp_path):
    file = tmp_path / "page.html"
    file.write_text("old")
    assert write(page(), file) == file
    assert file.read_text().endswith("</html>\n") or file.read_text().endswith("</html>")
    assert list(tmp_path.iterdir()) == [file]
    assert file.stat().st_mode & 0o777 == 0o666 & ~_umask()


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


@pytest.mark.parametrize("step", ["replace", "chmod"])
def test_what_was_there_stays_when_writing_fails(tmp_path, monkeypatch, step):
    file = tmp_path / "page.html"
    file.write_text("old")

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, step, full)
    with pytest.raises(UserError, match="page.html' cannot be written: No space left on device"):
        write_whole(file, b"new")
    assert file.read_text() == "old"
    assert list(tmp_path.iterdir()) == [file]  # nothing half-written stays behind


def test_places_that_cannot_be_written(tmp_path, monkeypatch):
    with pytest.raises(UserError, match=r"cannot be written: there is no folder '.*missing'"):
        write(page(), tmp_path / "missing" / "page.html")
    with pytest.raises(UserError, match="cannot be written: it is a folder"):
        write(page(), tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match=r"cannot be written: there is no folder '.*file'"):
        write(page(), tmp_path / "file" / "page.html")
    with pytest.raises(UserError, match=r"the folder '.*file.deeper' cannot be made: Not a directory"):
        export(page(), tmp_path / "file" / "deeper")
    with pytest.raises(UserError, match=r"the folder '.*file' cannot be made: File exists"):
        export(page(), tmp_path / "file")
    monkeypatch.setattr(os, "access", lambda *_: False)  # for root, every folder can be written to
    with pytest.raises(UserError, match=r"cannot be written: the folder '.*' is read-only"):
        write(page(), tmp_path / "page.html")
