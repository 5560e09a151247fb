"""Environment of a computation: versions, threads, machine, commit. Equal numbers, bit for bit, need an equal one."""

from __future__ import annotations

import datetime
import functools
import importlib.metadata
import os
import platform
import subprocess
import sys
from pathlib import Path
from typing import Any

import mnemoscope

__all__ = ["differences", "environment", "environment_facts"]

_PACKAGES = ("torch", "numpy", "safetensors", "scipy")
_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "CUBLAS_WORKSPACE_CONFIG")
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
    return next(models, platform.processor() or platform.machine())


def _here() -> str:
    try:
        return str(Path.cwd())
    except OSError:  # the folder was removed under us
        return ""


@functools.cache
def _commit(folder: str) -> str | None:
    """Return the commit that is checked out in a folder, with ``+`` behind it when tracked files were changed since."""
    if not folder:
        return None
    git = ["git", "-C", folder]
    try:
        head = _output([*git, "rev-parse", "HEAD"])
        return head + "+" if _output([*git, "status", "--porcelain", "--untracked-files=no"]) else head
    except (OSError, subprocess.SubprocessError):
        return None


def _output(command: list[str]) -> str:
    quiet = os.environ | {"GIT_OPTIONAL_LOCKS": "0"}
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=5, env=quiet)
    return done.stdout.strip()
