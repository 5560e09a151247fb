"""Where runs live and what they are called."""

from __future__ import annotations

import os
import re
import unicodedata
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mnemoscope.core.errors import UserError
from mnemoscope.runs.canonical import canonical, digest

__all__ = ["ENVIRONMENT_VARIABLE", "find", "folder_name", "identity", "label", "root", "spec_hash"]

ENVIRONMENT_VARIABLE = "MNEMOSCOPE_RUNS"

_HASH = 16
_WORD = 24


def root(given: str | os.PathLike[str] | None = None) -> Path:
    """Return the folder that holds the runs: the one given, else ``$MNEMOSCOPE_RUNS``, else ``./runs``."""
    chosen = given or os.environ.get(ENVIRONMENT_VARIABLE) or "runs"
    path = Path(chosen).expanduser()
    if "\0" in str(path):
        raise UserError("a folder's name must be without the character NUL")
    return path.absolute()


def spec_hash(spec: Mapping[str, Any]) -> str:
    """Return 16 hexadecimal digits that stand for a configuration.

    They are the first of the SHA-256 of its canonical JSON: keys sorted, no spaces, floats as Python's shortest
    form. Equal configurations have equal hashes on every machine, in whatever order they were written.

    Examples
    --------
    >>> spec_hash({"task": "copy", "lr": 0.1}) == spec_hash({"lr": 0.1, "task": "copy"})
    True
    """
    return digest(canonical(spec, "spec"))[:_HASH]


def label(spec: Mapping[str, Any], key: str) -> str | None:
    """Return the name that a configuration gives under `key`: itself if it is text, else its own ``name``."""
    value = spec.get(key)
    if isinstance(value, Mapping):
        value = value.get("name")
    return value if isinstance(value, str) else None


def folder_name(spec: Mapping[str, Any], kind: str) -> str:
    """Return the name of a run's folder: hash, kind, task, network.

    Only letters, digits and hyphens of ASCII get in, so that no name in a configuration leads out of the root.

    Examples
    --------
    >>> folder_name({"task": "../../etc", "network": "nnrnn"}, "fit")[16:]
    '-fit-etc-nnrnn'
    """
    words = (kind, label(spec, "task"), label(spec, "network"))
    return "-".join([spec_hash(spec), *filter(None, (_word(word or "") for word in words))])


def _word(text: str) -> str:
    ascii_only = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode()
    return re.sub(r"[^a-z0-9]+", "-", ascii_only.lower()).strip("-")[:_WORD].strip("-")


def identity(folder: Path, base: Path) -> str:
    """Return the id of a run: its folder's path below the root, else its folder's name."""
    try:
        return folder.relative_to(base).as_posix()
    except ValueError:
        return folder.name or str(folder)


def find(name: str | os.PathLike[str], where: str | os.PathLike[str] | None = None) -> Path:
    """Return the folder of the run that `name` means.

    Parameters
    ----------
    name
        The run's id, a beginning of it that only one run has, or the path of its folder.
    where
        The folder that holds the runs; see `root`.
    """
    from mnemoscope.runs.layout import is_run
    from mnemoscope.runs.scan import scan

    text = os.fspath(name)
    base = root(where)
    if not text or "\0" in text:
        raise UserError(f"a run must be named by its id, a beginning of it, or its folder, got {text!r}")
    ids = [one.id for one in scan(base)]
    if text in ids:
        return base / text
    if (os.sep in text or text in (".", "..")) and is_run(Path(text).absolute()):
        return Path(text).absolute()
    matching = [one for one in ids if _begins(one, text)]
    if len(matching) == 1:
        return base / matching[0]
    if is_run(Path(text).absolute()) and not matching:
        return Path(text).absolute()
    if not matching:
        raise UserError(f"no run in {str(base)!r} begins with {text!r}; `mnemoscope runs` lists the {len(ids)} there")
    few = ", ".join(matching[:4]) + (", ..." if len(matching) > 4 else "")
    raise UserError(f"{text!r} is the beginning of {len(matching)} runs: {few}")


def _begins(name: str, text: str) -> bool:
    """Say whether text is the beginning of an id, part by part: ``3fa9/level`` is one of ``3fa9c2d1/level-8``."""
    parts, given = name.split("/"), text.rstrip("/").split("/")
    return len(parts) == len(given) and all(part.startswith(one) for part, one in zip(parts, given, strict=True))
