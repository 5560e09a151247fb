"""Values for what a forward needs besides input and state: time stamps, masks, positions."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import torch
from torch import Tensor

__all__ = ["Spread", "fillings", "flags_of"]

_USUAL: dict[str, tuple[Any, ...]] = {
    r"ts|dts?|delta_?ts?|deltas?|time_?spans?|elapsed(?:_time)?|time_?steps?|step_?(?:size|scale)|times?|timestamps?": (
        1.0,
    ),
    r"t|i|idx|index|steps?|pos(?:ition)?s?|position_ids?|offset|start_pos|washout|epoch|layer": (0,),
    r".*mask.*|.*len(?:gth)?s?|target.*|labels?|tgt|context|noise|.*bias": (None,),
    r"training|train|is_train(?:ing)?|teacher_forcing|reset|deterministic|causal": (False,),
    r"epsilon|eps|tau|temperature|temp|alpha|beta|gamma|scale": (1.0,),
}
_FLAGS = re.compile(
    r"return_?(?:(?:last|next|final|all|new|prev)_)*(?:states?|hiddens?|caches?|memory|memories|carry)", re.IGNORECASE
)
_MOST = 12


@dataclass(frozen=True)
class Spread:
    """A number for every example, or every step of it, made when the module is called.

    Attributes
    ----------
    value
        The number.
    form
        The shape, in letters: b and t for the axes of the input without its features, 1 for an axis of length one.
    """

    value: float
    form: str

    def like(self, x: Tensor) -> Tensor:
        """Return the tensor for an input as the module reads it, features last."""
        sizes = {"b": x.shape[0], "t": x.shape[-2], "1": 1}
        return torch.full([sizes[axis] for axis in self.form], float(self.value), dtype=x.dtype, device=x.device)

    def __repr__(self) -> str:
        return f"{self.value} ({self.form or 'a tensor'})"


def fillings(missing: Sequence[str], whole: bool) -> Iterator[dict[str, Any]]:
    """Yield values for arguments that have no default, likeliest first; nothing where one is not known."""
    if not missing:
        yield {}
        return
    options = [list(_values(name, whole)) for name in missing]
    for count, values in enumerate(product(*options)):
        if count < _MOST:
            yield dict(zip(missing, values, strict=True))


def _values(name: str, whole: bool) -> Iterator[Any]:
    for pattern, values in _USUAL.items():
        if re.fullmatch(pattern, name, re.IGNORECASE):
            for value in values:
                yield value
                if isinstance(value, float):
                    yield from (Spread(value, form) for form in ("", *(("bt", "bt1") if whole else ("b1", "b"))))
            return


def flags_of(defaults: Mapping[str, Any]) -> dict[str, bool]:
    """Return the switches among a forward's arguments that make it return its state, switched on."""
    return {name: True for name, default in defaults.items() if default is False and _FLAGS.fullmatch(name)}
