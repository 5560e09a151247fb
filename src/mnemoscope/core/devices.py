"""Device that a command computes on: networks that are built from words are put there.

It is kept in the environment variable MNEMOSCOPE_DEVICE, so that processes that are started inherit it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

from mnemoscope.core.errors import Description, expected

__all__ = ["VARIABLE", "check_device", "chosen_device", "computing_on"]

VARIABLE = "MNEMOSCOPE_DEVICE"


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
    named = os.environ.get(VARIABLE)
    return check_device(named) if named else None


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
    wanted = None if device is None else check_device(device)
    before = os.environ.pop(VARIABLE, None)
    if wanted is not None:
        os.environ[VARIABLE] = wanted
    try:
        yield
    finally:
        os.environ.pop(VARIABLE, None)
        if before is not None:
            os.environ[VARIABLE] = before
