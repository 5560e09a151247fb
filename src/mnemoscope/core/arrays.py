"""Real arrays and numbers of callers and of files, as float64 NumPy, checked once, with one form of error."""

from __future__ import annotations

import math
import os
import warnings
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float, Inexact

from mnemoscope.core.errors import Description, UserError, expected
from mnemoscope.core.files import read_regular
from mnemoscope.core.memory import allowance, require

__all__ = ["ARRAYS", "matrix", "non_negative", "positive", "read_array", "square", "vector"]

ARRAYS = (".npy", ".npz", ".csv", ".tsv", ".txt")
"""What `read_array` reads, by the file's ending."""

_OVERHEAD = 20
"""Bytes of memory that a letter of a text file takes at most, while it is read."""


def matrix(name: str, value: Any, *, complex_too: bool = False) -> Inexact[np.ndarray, "rows columns"]:
    """Return `value` as a float64 (or complex128) matrix without NaN or infinities, or raise the standard error."""
    found = _array(name, value, complex_too)
    if found.ndim != 2 or 0 in found.shape:
        raise expected(name, "a matrix", Description(f"an array of shape {found.shape}"))
    return found


def square(name: str, value: Any, size: int | None = None, *, complex_too: bool = False) -> Inexact[np.ndarray, "n n"]:
    """Return `value` as a square float64 matrix (of the given size; or a complex one), or raise the standard error."""
    found = _array(name, value, complex_too)
    if found.ndim != 2 or found.shape[0] != found.shape[1] or found.size == 0:
        raise expected(name, "a square matrix", Description(f"an array of shape {found.shape}"))
    if size is not None and found.shape[0] != size:
        raise expected(name, f"of shape ({size}, {size})", found.shape)
    return found


def vector(name: str, value: Any, size: int | None = None) -> Float[np.ndarray, " n"]:
    """Return `value` as a float64 vector (of the given size); one row or one column counts as a vector."""
    found = _array(name, value)
    if found.ndim == 2 and 1 in found.shape:
        found = found.reshape(-1)
    if found.ndim != 1 or found.size == 0:
        raise expected(name, "a vector", Description(f"an array of shape {found.shape}"))
    if size is not None and found.shape[0] != size:
        raise expected(name, f"of length {size}", found.shape[0])
    return found


def positive(name: str, value: Any) -> float:
    """Return `value` as a float above zero, or raise the standard error."""
    found = _number(value)
    if found is None or not found > 0:
        raise expected(name, "a positive number", value)
    return found


def non_negative(name: str, value: Any) -> float:
    """Return `value` as a float of at least zero, or raise the standard error."""
    found = _number(value)
    if found is None or not found >= 0:
        raise expected(name, "a number of at least 0", value)
    return found


def _number(value: Any) -> float | None:
    if isinstance(value, bool | str):
        return None
    try:
        found = float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return found if math.isfinite(found) else None


def _array(name: str, value: Any, complex_too: bool = False) -> np.ndarray:
    try:
        found = np.array(_from_torch(value) if hasattr(value, "detach") else value)
        if found.dtype.kind not in ("biufc" if complex_too else "biuf"):
            raise TypeError
        found = found.astype(_wide(found))
    except (TypeError, ValueError, RuntimeError, OverflowError):
        raise expected(name, f"an array of {'' if complex_too else 'real '}numbers", value) from None
    if not np.isfinite(found).all():
        bad = int(np.size(found) - np.isfinite(found).sum())
        raise UserError(f"{name} must be finite, got {bad} NaN or infinite of {found.size} entries")
    return found


def _wide(found: np.ndarray) -> type[np.inexact[Any]]:
    return np.complex128 if found.dtype.kind == "c" else np.float64


def _from_torch(tensor: Any) -> np.ndarray:
    """Return a tensor as an array: torch need not be imported for this. NumPy has no bfloat16."""
    plain = tensor.detach().to_dense().cpu().resolve_conj().resolve_neg()
    found: np.ndarray = (plain.double() if plain.is_floating_point() else plain).numpy()
    return found


def read_array(path: str | os.PathLike[str], *, complex_too: bool = False) -> np.ndarray:
    """Return the array of real numbers in a file, or raise one line that says what is wrong with the file.

    ``.npy`` is NumPy's own format, ``.npz`` an archive with one array; ``.csv``, ``.tsv`` and ``.txt`` are text, one
    row a line, separated by commas, tabs or spaces, with at most one line of titles.
    """
    file = Path(path)
    if file.suffix.lower() not in ARRAYS:
        raise expected("an array's file", f"named {', '.join(ARRAYS)}", str(file))
    if not file.is_file():
        what = "is a folder" if file.is_dir() else "is not a regular file" if file.exists() else "does not exist"
        raise UserError(f"the file {str(file)!r} {what}")
    read = {".npy": _load, ".npz": _load_archive}.get(file.suffix.lower(), _parse)
    try:
        found = read(file)
    except UserError:
        raise
    except (OSError, MemoryError) as error:
        raise UserError(f"{str(file)!r} cannot be read: {error}") from error
    except Exception as error:  # a file that lies can make zipfile and NumPy raise almost anything
        raise UserError(f"{str(file)!r} is not an array: {_reason(error)}") from error
    return _checked(file, found, complex_too)


def _load(file: Path) -> np.ndarray:
    with file.open("rb") as stream:
        if stream.read(2) == b"PK":
            return _load_archive(file)
        stream.seek(0)
        return _read_npy(stream, file.stat().st_size)


def _load_archive(file: Path) -> np.ndarray:
    with zipfile.ZipFile(file) as archive:
        members = archive.infolist()
        if len(members) != 1:
            names = ", ".join(one.filename.removesuffix(".npy") for one in members)
            raise UserError(f"{str(file)!r} must hold one array, got {names or 'none'}")
        with archive.open(members[0]) as stream:
            return _read_npy(stream, members[0].file_size)


def _read_npy(stream: Any, size: int) -> np.ndarray:
    """Return the array in a stream of `size` bytes, whose header is believed only if as many bytes follow it."""
    start = stream.read(6)
    if start != b"\x93NUMPY":
        raise ValueError("it does not begin as a file of NumPy does")
    version = tuple(stream.read(2))
    readers = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
    if version not in readers:
        raise ValueError(f"its version {'.'.join(map(str, version))} is not one of plain numbers")
    shape, fortran, dtype = readers[version](stream)
    if dtype.hasobject:  # a pickle can run any code when it is loaded
        raise ValueError("pickled")
    needed, rest = math.prod(shape) * dtype.itemsize, size - stream.tell()
    if min(shape, default=0) < 0 or needed > rest:
        raise ValueError(f"its header tells of {needed:,} bytes, and {rest:,} follow")
    require(f"an array of shape {shape}", needed, "a smaller one would fit")
    flat = np.frombuffer(stream.read(needed), dtype=dtype)
    return flat.reshape(shape, order="F" if fortran else "C")


def _parse(file: Path) -> np.ndarray:
    lines = [line.strip() for line in _text(file).splitlines()]
    rows = [line for line in lines if line and not line.startswith("#")]
    if not rows:
        raise ValueError("it is empty")
    separator = next((mark for mark in (",", ";", "\t") if mark in rows[0]), None)
    if _is_title(rows[0], separator):
        rows = rows[1:]
    table = [_numbers(row, separator, number) for number, row in enumerate(rows, start=1)]
    widths = {len(row) for row in table}
    if len(widths) > 1:
        raise ValueError(f"its rows have different lengths, from {min(widths)} to {max(widths)} numbers")
    if not table:
        raise ValueError("it has titles and no numbers")
    return np.array(table)


def _text(file: Path) -> str:
    # A number takes a few letters, and as a Python object, in a list, thirty bytes.
    return read_regular(file, allowance() // _OVERHEAD).decode("utf-8-sig")


def _is_title(row: str, separator: str | None) -> bool:
    """Say whether no cell of a row is a number."""
    for cell in row.split(separator):
        try:
            float(cell)
        except ValueError:
            continue
        return False
    return True


def _numbers(row: str, separator: str | None, number: int) -> list[float]:
    try:
        return [float(cell) for cell in row.split(separator)]
    except ValueError as error:
        raise ValueError(f"row {number}: {error}") from None


def _checked(file: Path, found: np.ndarray, complex_too: bool) -> np.ndarray:
    if found.dtype.kind not in ("biufc" if complex_too else "biuf"):
        raise expected(str(file), "an array of real numbers", Description(f"numbers of type {found.dtype}"))
    if found.size == 0:
        raise expected(str(file), "an array with numbers", Description(f"an array of shape {found.shape}"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a float beyond the range becomes infinite, and whoever uses it says so
        return found.astype(_wide(found))


def _reason(error: Exception) -> str:
    words = " ".join(str(error).split())
    if "allow_pickle" in words or "pickled" in words:
        return "it holds pickled objects, which could run code and are never loaded"
    return words or type(error).__name__
