"""Device that a command computes on: networks that are built from words are put there."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import torch

from mnemoscope.core.errors import Description, expected

__all__ = ["check_device", "chosen_device", "computing_on"]

_CHOSEN: ContextVar[str | None] = ContextVar("device", default=None)


def check_device(device: Any) -> str:
    """Return the name of a device, or raise one line unless this machine can compute on it."""
    try:
        made = torch.device(device)
        torch.empty(0, device=made)
        if made.type == "meta":
            raise TypeError("it holds no numbers")
    except (RuntimeError, TypeError, AssertionError) as error:
        reason = " ".join(str(error).split())[:120]
        raise expected(
            "device", "a device of this machine, such as 'cpu'", Description(f"{device!r} ({reason})")
        ) from None
    return str(made)


def chosen_device() -> str | None:
    """Return the device that was chosen for what is built and trained now; None: where it is."""
    return _CHOSEN.get()


@contextmanager
def computing_on(device: str | None) -> Iterator[None]:
    """Compute on a device: networks built from descriptions are moved there, trainings happen there.

    Weights are drawn on the processor all the same: one seed gives one network, whatever the device.

    Examples
    --------
    >>> import mnemoscope as ms
    >>> with computing_on("cpu"):
    ...     ms.nn.NetworkSpec("rnn", input_size=2, hidden_size=3).build().weight_hh_l0.device
    device(type='cpu')
    """
    before = _CHOSEN.set(None if device is None else check_device(device))
    try:
        yield
    finally:
        _CHOSEN.reset(before)
