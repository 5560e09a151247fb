"""Environment of a computation: versions, threads, machine, commit. Equal numbers, bit for bit, need an equal one."""

from __future__ import annotations

import datetime
import functools
import importlib.metadata
import os
import platform
import re
import sys
from pathlib import Path
from typing import Any

import mnemoscope
from mnemoscope.core.files import read_regular

__all__ = ["differences", "environment", "environment_facts"]

_PACKAGES = ("torch", "numpy", "safetensors", "scipy")
_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "CUBLAS_WORKSPACE_CONFIG")
_LINKS = 5
_LINE, _PACKED = 4096, 2**26
_NUMBERS = ("versions", "threads", "machine")


def environment() -> dict[str, Any]:
    """Return what the numbers of this process may depend on."""
    return {
        "versions": _versions(),
        "threads": _threads(),
        "machine": _machine(),
        "commit": {"mnemoscope": _commit(str(Path(mnemoscope.__file__).parent)), "here": _commit(_here())},
        "command": sys.argv[:],
    }


def environment_facts() -> dict[str, Any]:
    """Return the environment in the few words that a page prints: versions, threads, machine and date."""
    threads = _threads()
    return {
        **{name: version for name, version in _versions().items() if name != "safetensors"},
        **({"threads": threads["torch_threads"]} if "torch_threads" in threads else {}),
        "machine": f"{platform.system()} {platform.machine()}",
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
    }


def differences(before: dict[str, Any], now: dict[str, Any]) -> list[str]:
    """Return what may change the numbers since, as ``torch: 2.12.0 before, 2.13.0 now``."""
    lines = []
    for part in _NUMBERS:
        old, new = before.get(part, {}), now.get(part, {})
        keys = dict.fromkeys([*old, *new])
        lines += [
            f"{key.replace('_', ' ')}: {old.get(key)} before, {new.get(key)} now"
            for key in keys
            if old.get(key) != new.get(key) and key != "host"
        ]
    return lines


@functools.cache
def _versions() -> dict[str, str]:
    found = {"mnemoscope": mnemoscope.__version__, "python": platform.python_version()}
    for name in _PACKAGES:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def _threads() -> dict[str, Any]:
    found: dict[str, Any] = {name: os.environ[name] for name in _VARIABLES if name in os.environ}
    torch = sys.modules.get("torch")  # a run without torch depends on none of its settings
    if torch is not None:
        found["torch_threads"] = torch.get_num_threads()
        found["default_dtype"] = str(torch.get_default_dtype()).removeprefix("torch.")
        found["deterministic"] = torch.are_deterministic_algorithms_enabled()
    return found


@functools.cache
def _machine() -> dict[str, Any]:
    return {
        "system": f"{platform.system()} {platform.release()}",
        "processor": _processor(),
        "cores": os.cpu_count(),
        "host": platform.node(),
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    models = (line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    return next(models, platform.machine())  # platform.processor would start a process


def _here() -> str:
    try:
        return str(Path.cwd())
    except OSError:  # the folder was removed under us
        return ""


@functools.cache
def _commit(folder: str) -> str | None:
    """Return the commit that is checked out in a folder, read from the files of ``.git``.

    Git itself is never run: a repository can name programs (``core.fsmonitor``, filters, hooks) that ``git status``
    starts, and a folder that somebody looks at must not run code. So nothing is said of changed files.
    """
    if not folder:
        return None
    try:
        git = next(found for one in (Path(folder), *Path(folder).parents) if (found := _git_folder(one)) is not None)
        head = _line(git / "HEAD")
        for _ in range(_LINKS):
            if not head.startswith("ref: "):
                break
            head = _reference(git, head.removeprefix("ref: "))
    except (OSError, ValueError, StopIteration):
        return None
    return head if re.fullmatch(r"[0-9a-f]{40}|[0-9a-f]{64}", head) else None


def _git_folder(folder: Path) -> Path | None:
    """Return the repository's own folder for a work tree; of a linked one, ``.git`` is a file that names it."""
    found = folder / ".git"
    if found.is_dir():
        return found
    return folder / _line(found).removeprefix("gitdir: ") if found.is_file() else None


def _reference(git: Path, name: str) -> str:
    """Return what a reference holds: in its file, or in the list of packed ones; linked work trees share both."""
    if not re.fullmatch(r"refs/[^\0]+", name) or ".." in name:
        raise ValueError(name)
    shared = git / _line(git / "commondir") if (git / "commondir").is_file() else git
    for home in (git, shared):
        if (home / name).is_file():
            return _line(home / name)
    packed = read_regular(shared / "packed-refs", limit=_PACKED).decode("utf-8", "replace")
    return next(line[: -len(name) - 1] for line in packed.splitlines() if line.endswith(f" {name}"))


def _line(path: Path) -> str:
    return read_regular(path, limit=_LINE).decode("utf-8", "replace").strip()
