"""How many threads a measure of a small network is worth."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from threadpoolctl import threadpool_limits

__all__ = ["few_threads"]

_SMALL = 512
"""State size up to which threads wait for each other longer than they work: on a busy machine ten times as long."""


@contextmanager
def few_threads(size: int) -> Iterator[None]:
    """Run what is within on one thread, of torch and of NumPy, when states have at most 512 numbers."""
    if size > _SMALL:
        yield
        return
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with threadpool_limits(1, user_api="blas"):
            yield
    finally:
        torch.set_num_threads(before)
