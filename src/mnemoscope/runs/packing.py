"""Packed runs: a finished run as one file, with everything that its folder holds and its parts' folders hold.

The file is a plain ZIP archive, not compressed, of fixed dates: the same folder gives the same bytes.
"""

from __future__ import annotations

import io
import os
import re
import zipfile
from pathlib import Path, PurePosixPath

from mnemoscope.core.files import make_folder, read_regular, write_atomic
from mnemoscope.core.memory import allowance, human
from mnemoscope.runs.errors import Damaged
from mnemoscope.runs.folders import CONFIG, LOCK
from mnemoscope.runs.record import Record, read_record

__all__ = ["ENDING", "pack", "unpack"]

ENDING = ".run.zip"
"""Of the names of packed runs."""

_EPOCH = (1980, 1, 1, 0, 0, 0)
_PART = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")
_PARTS = 12


def pack(folder: Path) -> bytes:
    """Return the file of a run that nobody writes."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as archive:
        for path in sorted(_files(folder)):
            name = path.relative_to(folder).as_posix()
            archive.writestr(zipfile.ZipInfo(name, _EPOCH), read_regular(path, follow=False))
    return out.getvalue()


def _files(folder: Path) -> list[Path]:
    """Return the files of a run and of the runs within it; links, locks and half-written files are left out."""
    found = []
    for above, folders, names in os.walk(folder):
        folders[:] = [one for one in folders if not one.startswith(".") and not (Path(above) / one).is_symlink()]
        paths = [Path(above) / one for one in names if one != LOCK and not one.startswith(".")]
        found += [path for path in paths if path.is_file() and not path.is_symlink()]
    return found


def unpack(data: bytes, folder: Path, name: str) -> Record:
    """Fill a new folder with a packed run, and return its record.

    A file that is no archive, is cut or altered, or whose names lead elsewhere is refused with one line; nothing is
    executed.

    Parameters
    ----------
    data
        Content of the file.
    folder
        Where nothing is yet. Rename it into its place, so that a run is there whole or not at all.
    name
        Of the file, for messages.
    """
    for part, content in _members(data, name).items():
        path = folder.joinpath(*part.parts)
        make_folder(path.parent)
        write_atomic(path, content, named_durably=False)
    record = read_record(folder, name.removesuffix(ENDING))
    if record.problems:
        raise Damaged(f"{name!r} is damaged: {record.problems[0]}")
    return record


def _members(data: bytes, name: str) -> dict[PurePosixPath, bytes]:
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            whole, most = sum(one.file_size for one in archive.infolist()), allowance()
            if whole > most:
                raise Damaged(f"{name!r} holds {human(whole)}, and at most {human(most)} are read")
            found = {_path(one, name): archive.read(one) for one in archive.infolist()}
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError, ValueError) as error:
        if isinstance(error, Damaged):
            raise
        raise Damaged(f"{name!r} is damaged, or no packed run: {' '.join(str(error).split())}") from None
    if PurePosixPath(CONFIG) not in found:
        raise Damaged(f"{name!r} is no packed run: it has no {CONFIG}")
    return found


def _path(member: zipfile.ZipInfo, name: str) -> PurePosixPath:
    parts = member.filename.split("/")
    if len(parts) > _PARTS or not all(_PART.fullmatch(part) for part in parts):
        raise Damaged(f"{name!r} is no packed run: it holds a file named {member.filename[:80]!r}")
    return PurePosixPath(*parts)
