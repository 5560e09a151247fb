"""One seed, many streams: each purpose of a run draws from a generator of its own."""

from __future__ import annotations

import hashlib

import torch

from mnemoscope.core.errors import expected

__all__ = ["check_seed", "seed_of", "stream"]


def seed_of(seed: int, purpose: str) -> int:
    """Return the seed of one purpose: the first 63 bits of the SHA-256 of both."""
    digest = hashlib.sha256(f"{seed}/{purpose}".encode()).digest()
    return int.from_bytes(digest[:8], "big") >> 1


def stream(seed: int, purpose: str) -> torch.Generator:
    """Return the generator of one purpose of a run.

    Purposes: ``"batches"`` to learn from, ``"validation"``, ``"test"``, ``"readout"`` (the weights around the layer),
    ``"layer"`` (where training draws its weights), ``"dropout"`` (what the network draws while it learns).

    Examples
    --------
    >>> int(torch.randint(100, (), generator=stream(0, "batches"))) == int(
    ...     torch.randint(100, (), generator=stream(0, "batches"))
    ... )
    True
    """
    return torch.Generator().manual_seed(seed_of(seed, purpose))


def check_seed(seed: object) -> int:
    """Return the seed, or raise the standard error unless it is a whole number that is not negative."""
    if isinstance(seed, bool) or not isinstance(seed, int) or seed < 0:
        raise expected("seed", "a whole number that is not negative", seed)
    return seed
