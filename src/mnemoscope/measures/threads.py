"""How many threads a measure of a small network is worth."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch

__all__ = ["few_threads"]

_SMALL = 512
"""State size up to which threads wait for each other longer than they work: on a busy machine ten times as long."""


@contextmanager
def few_threads(size: int) -> Iterator[None]:
    """Run what is within on one thread of torch when states have at most 512 numbers, and set it back afterwards."""
    before = torch.get_num_threads()
    if size <= _SMALL:
        torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
