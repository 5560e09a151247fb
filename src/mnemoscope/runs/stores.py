"""Places for files that many machines write: a shared folder, or an object store by its URL. No locks are taken."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

from mnemoscope.core.errors import UserError
from mnemoscope.core.files import Unwritable, make_folder, write_atomic
from mnemoscope.runs.errors import Damaged
from mnemoscope.runs.files import read_bytes

__all__ = ["FolderStore", "ObjectStore", "Store", "is_url", "open_store"]


_LOCAL = ("file://", "local://")
"""How fsspec calls files of this machine; renamed into their place they are safer than it writes them."""


class FolderStore:
    """Files of a folder, each the old or the new whole at any moment: written beside its place, and renamed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __str__(self) -> str:
        return str(self.folder)

    def names(self) -> list[str]:
        """Return the names of all files, sorted; half-written ones have none."""
        if not self.folder.is_dir():
            return []
        return sorted(e.name for e in os.scandir(self.folder) if not e.name.startswith(".") and e.is_file())

    def read(self, name: str) -> bytes:
        """Return what a file holds, or raise `Damaged`."""
        return read_bytes(self.folder / name)

    def write(self, name: str, data: bytes) -> None:
        """Write a file; one of that name is replaced."""
        make_folder(self.folder)
        write_atomic(self.folder / name, data)


class ObjectStore:
    """Objects below a URL that fsspec knows: ``s3://bucket/folder``, ``gs://..``, ``memory://..``.

    An object is put whole or not at all: that is what such stores promise.
    """

    def __init__(self, url: str) -> None:
        self.url = url.rstrip("/")
        self._files, self._path = _file_system(self.url)

    def __str__(self) -> str:
        return self.url

    def names(self) -> list[str]:
        """Return the names of all objects, sorted."""
        try:
            found = self._files.ls(self._path, detail=True)
        except FileNotFoundError:
            return []
        except Exception as error:  # every store has errors of its own
            raise UserError(f"{self.url!r} cannot be listed: {_line(error)}") from error
        return sorted(one["name"].rpartition("/")[2] for one in found if one["type"] == "file")

    def read(self, name: str) -> bytes:
        """Return what an object holds, or raise `Damaged`."""
        try:
            return bytes(self._files.cat_file(f"{self._path}/{name}"))
        except Exception as error:
            raise Damaged(f"'{self.url}/{name}' cannot be read: {_line(error)}") from error

    def write(self, name: str, data: bytes) -> None:
        """Put an object; one of that name is replaced."""
        try:
            self._files.pipe_file(f"{self._path}/{name}", data)
        except Exception as error:
            raise Unwritable(f"'{self.url}/{name}' cannot be written: {_line(error)}") from error


Store = FolderStore | ObjectStore


def is_url(place: str | os.PathLike[str]) -> bool:
    """Say whether a place is the URL of an object store, rather than a folder."""
    return re.match(r"[a-z][a-z0-9+.-]*://", str(place)) is not None and not str(place).startswith(_LOCAL)


def open_store(place: str | os.PathLike[str]) -> Store:
    """Return the store at a folder or a URL."""
    text = str(place)
    if is_url(text):
        return ObjectStore(text)
    if not text or "\0" in text:
        raise UserError(f"a folder must have a name without the character NUL, got {text!r}")
    for beginning in _LOCAL:
        text = text.removeprefix(beginning)
    return FolderStore(Path(text).expanduser().absolute())


def _file_system(url: str) -> tuple[Any, str]:
    from fsspec.core import url_to_fs

    try:
        files, path = url_to_fs(url)
    except ImportError as error:
        raise UserError(f"{url!r} needs a package that is not installed: {_line(error)}") from None
    except ValueError as error:
        raise UserError(f"{url!r} must be a folder or the URL of a store: {_line(error)}") from None
    return files, str(path).rstrip("/")


def _line(error: Exception) -> str:
    return " ".join(str(error).split())[:200] or type(error).__name__
