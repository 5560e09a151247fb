"""Bytes of data files, read with care: compressed or not, never more than fits, nothing unpickled."""

from __future__ import annotations

import gzip
import io
import re
import struct
import zlib
from pathlib import Path

import numpy as np

__all__ = ["Damaged", "content", "idx_array", "pictures"]

LIMIT = 1 << 28
"""More bytes than any file of ours has: what claims to be larger is not read."""

_MOST = 10_000
"""More images than any folder of ours has."""

_MAGIC = {1: 2049, 3: 2051}
"""The first four bytes of an idx file of bytes, by its number of axes."""


class Damaged(Exception):
    """A file is not what it should be; the message says in what."""


def content(path: Path) -> bytes:
    """Return the bytes of a file, decompressed when it begins as gzip does."""
    try:
        with path.open("rb") as stream:
            packed = stream.read(LIMIT + 1)
        if packed[:2] == b"\x1f\x8b":
            with gzip.GzipFile(fileobj=io.BytesIO(packed)) as unpacked:
                packed = unpacked.read(LIMIT + 1)
    except EOFError:
        raise Damaged("the compressed file is cut off") from None
    except (zlib.error, gzip.BadGzipFile) as error:
        raise Damaged(f"the compressed file is damaged ({error})") from None
    except OSError as error:
        raise Damaged(error.strerror or str(error)) from None
    if len(packed) > LIMIT:
        raise Damaged(f"it has more than {LIMIT >> 20} MiB")
    return packed


def pictures(folder: Path) -> list[tuple[str, bytes]]:
    """Return names and bytes of the PNG files of a folder, numbers in their names in order: 2.png before 10.png."""
    try:
        names = [path.name for path in folder.iterdir() if path.suffix.lower() == ".png"]
    except OSError as error:
        raise Damaged(error.strerror or str(error)) from None
    if len(names) > _MOST:
        raise Damaged(f"it has more than {_MOST} images")
    return [(name, content(folder / name)) for name in sorted(names, key=_numbers_in_order)]


def _numbers_in_order(name: str) -> list[tuple[int, str]]:
    return [(int(part), "") if part.isdigit() else (0, part) for part in re.split(r"(\d+)", name)]


def idx_array(data: bytes, axes: int) -> np.ndarray:
    """Return the bytes of an idx file as an array of uint8 with `axes` axes.

    The format: a magic number and the length of each axis as big-endian int32, then the bytes, the last axis fastest.
    """
    head = 4 * (axes + 1)
    if len(data) < head:
        raise Damaged(f"an idx file has a head of {head} bytes, this one has {len(data)} in all")
    magic, *shape = struct.unpack(f">{axes + 1}I", data[:head])
    if magic != _MAGIC[axes]:
        raise Damaged(f"an idx file of {axes} ax{'i' if axes == 1 else 'e'}s begins with {_MAGIC[axes]}, got {magic}")
    wanted = int(np.prod([int(size) for size in shape], dtype=object))
    if wanted != len(data) - head:
        raise Damaged(f"its head announces {wanted} bytes, and {len(data) - head} follow")
    return np.frombuffer(data, dtype=np.uint8, offset=head).reshape(shape)
