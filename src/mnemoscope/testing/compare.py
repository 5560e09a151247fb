"""Comparisons that fail with a sentence."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.utils._pytree import tree_flatten

from mnemoscope.testing.checking import brief
from mnemoscope.testing.report import CheckFailed

__all__ = ["require", "require_close", "require_refusal", "require_same"]

TOLERANCE = {torch.float64: 1e-9, torch.float32: 1e-4, torch.bfloat16: 0.1}
"""Largest difference between two ways to the same numbers, relative to the largest of them and to 1."""


def require(condition: bool, sentence: str) -> None:
    """Fail with `sentence` unless `condition` holds."""
    if not condition:
        raise CheckFailed(sentence)


def require_close(left: Any, right: Any, sentence: str, *, tolerance: float | None = None) -> None:
    """Fail with `sentence` unless two pytrees of tensors have one structure, equal shapes and nearly equal values."""
    for a, b in _pairs(left, right, sentence):
        if a.numel() == 0:
            continue
        bound = TOLERANCE[_real(b)] if tolerance is None else tolerance
        wide = torch.complex128 if a.is_complex() else torch.float64
        difference = (a.to(wide) - b.to(wide)).abs().max().item()
        if not difference <= bound * max(1.0, b.to(wide).abs().max().item()):
            raise CheckFailed(f"{sentence}; they differ by {difference:.2g}")


def require_same(left: Any, right: Any, sentence: str) -> None:
    """Fail with `sentence` unless two pytrees of tensors are equal bit for bit, in type too."""
    for a, b in _pairs(left, right, sentence):
        if a.dtype != b.dtype:
            raise CheckFailed(f"{sentence}; one is {a.dtype}, the other {b.dtype}")
        if not torch.equal(a, b):
            raise CheckFailed(f"{sentence}; they are not equal")


def require_refusal(
    call: Callable[[], Any], what: str, *words: Any, kinds: tuple[type[Exception], ...] = (ValueError,)
) -> None:
    """Fail unless `call` raises one line, a ValueError, that holds all of `words`.

    Parameters
    ----------
    what
        The mistake, as it ends the sentence ``raise a ValueError of one line for ...``.
    """
    kind = " or a ".join(kind.__name__ for kind in kinds)
    listed = " and ".join(repr(str(word)) for word in words)
    wanted = f"raise a {kind} of one line that names {listed} for {what}" if words else f"raise a {kind} for {what}"
    try:
        call()
    except kinds as error:
        message = str(error)
        require("\n" not in message.strip(), f"{wanted}; its message has several lines: {brief(error)}")
        missing = [str(word) for word in words if str(word) not in message]
        require(not missing, f"{wanted}; its message is {message!r}")
    except Exception as error:
        raise CheckFailed(f"{wanted}; it raised {brief(error)}") from error
    else:
        raise CheckFailed(f"{wanted}; it raised nothing")


def _pairs(left: Any, right: Any, sentence: str) -> list[tuple[Tensor, Tensor]]:
    leaves, spec = tree_flatten(left)
    others, other_spec = tree_flatten(right)
    if spec != other_spec or not all(isinstance(leaf, Tensor) for leaf in (*leaves, *others)):
        raise CheckFailed(f"{sentence}; their structure differs")
    for a, b in zip(leaves, others, strict=True):
        if a.shape != b.shape:
            raise CheckFailed(f"{sentence}; one has shape {tuple(a.shape)}, the other {tuple(b.shape)}")
    return [(a.detach(), b.detach()) for a, b in zip(leaves, others, strict=True)]


def _real(tensor: Tensor) -> torch.dtype:
    dtype = tensor.real.dtype if tensor.is_complex() else tensor.dtype
    return dtype if dtype in TOLERANCE else torch.float64
