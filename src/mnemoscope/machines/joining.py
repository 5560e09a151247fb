"""Ways into a Ray cluster: the one that is meant is joined, or one line says why it cannot be."""

from __future__ import annotations

import contextlib
import logging
import os
import re
import signal
import socket
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from mnemoscope.core.errors import UserError, expected
from mnemoscope.machines.stopping import SIGNALS

__all__ = ["join", "one_line", "ray_module"]

_REACHED = 5.0
"""Seconds within which a cluster has to answer."""

_LONG = 300

_TOKEN = "~/.ray/auth_token"
"""A cluster that is started where this file is asks for it, but a process that joins it has to be told to send it."""


def ray_module() -> Any:
    """Return Ray, set up for us, or raise one line where it is not installed."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    os.environ.setdefault("RAY_worker_niceness", "0")  # Ray's own 15 leaves them nothing on a machine that others use
    if "ray" not in sys.modules and Path(_TOKEN).expanduser().is_file():  # Ray reads the variable when it is imported
        os.environ.setdefault("RAY_AUTH_MODE", "token")
    try:
        import ray
    except ImportError:
        raise UserError("--ray needs Ray, which is not installed: pip install 'mnemoscope[ray]'") from None
    return ray


def join(ray: Any, address: str) -> None:
    """Join a cluster, or raise one line that says why that cannot be."""
    _check_reachable(address)
    before = {number: signal.getsignal(number) for number in SIGNALS}
    options: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.CRITICAL, "include_dashboard": None}
    try:
        with _aside() as said:
            try:
                ray.init(address=None if address == "auto" else address, ignore_reinit_error=True, **options)
            except Exception as error:
                raise _refused(address, str(error), said) from None
    finally:
        if threading.current_thread() is threading.main_thread():  # Ray takes them for itself
            for number, handler in before.items():
                signal.signal(number, handler)


def _refused(address: str, words: str, said: IO[str]) -> UserError:
    """Return the one line for a cluster that cannot be joined; why that is may be in what Ray has said alone."""
    if "ersion mismatch" in words or "were started with" in words:
        return UserError(f"the Ray cluster at {address!r} has other versions: {_flat(words)}")
    said.seek(0)
    if "InvalidAuthToken" in said.read():
        how = "give both sides the same token, RAY_AUTH_MODE=token and RAY_AUTH_TOKEN_PATH"
        return UserError(f"the Ray cluster at {address!r} asks for a token that is missing or another one here: {how}")
    return UserError(f"no Ray cluster answers at {address!r}: {_flat(words)}; start one there by `ray start --head`")


@contextlib.contextmanager
def _aside() -> Iterator[IO[str]]:
    """Keep what Ray says in a file instead of on the terminal, also what it writes past Python."""
    sys.stderr.flush()
    kept = os.dup(2)
    try:
        with tempfile.TemporaryFile("w+") as said, contextlib.redirect_stderr(said):
            os.dup2(said.fileno(), 2)
            try:
                yield said
            finally:
                os.dup2(kept, 2)
    finally:
        os.close(kept)


def _check_reachable(address: str) -> None:
    """Raise when nobody listens at an address; Ray itself would try for many minutes."""
    if address == "auto":
        address = os.environ.get("RAY_ADDRESS", "auto")
    if address in ("auto", "local"):
        return
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if not host or not port.isdigit():
        raise expected("the address of a Ray cluster", "HOST:PORT, auto or local", address)
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=_REACHED).close()
    except (OSError, OverflowError) as error:
        words = f"no Ray cluster answers at {address!r} ({one_line(error)})"
        raise UserError(f"{words}: start one there by `ray start --head`, and name its HOST:PORT") from None


def one_line(error: Exception) -> str:
    """Return what an error says, in one line."""
    return _flat(str(error)) or type(error).__name__


def _flat(words: str) -> str:
    """Return words in one line without colours; of many the first and the last, where an error's reason stands."""
    plain = " ".join(re.sub(r"\x1b\[[0-9;]*m", "", words).split())
    return plain if len(plain) <= _LONG else f"{plain[: _LONG // 2]} .. {plain[-_LONG // 2 :]}"
