"""Values for what a forward needs besides input and state: time stamps, masks, positions."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import torch
from torch import Tensor

__all__ = ["Spread", "fillings", "flags_of", "is_filled"]

_USUAL: dict[str, tuple[Any, ...]] = {
    r"ts|dts?|delta_?ts?|deltas?|time_?spans?|elapsed(?:_time)?|time_?steps?|step_?(?:size|scale)|times|timestamps?": (
        1.0,
    ),
    r"t|n|i|idx|index|steps?|pos(?:ition)?s?|position_ids?|offset|start_pos|washout|epoch|layer|time": (0,),
    r".*mask.*": (None, "ones"),
    r".*len(?:gth)?s?|lens": (None, "lengths"),
    r"target.*|labels?|tgt|context|noise|.*bias": (None,),
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
        The shape, in letters: b and t for the axes of the input without its features, d for these, 1 for an axis of
        length one; ``"lengths"``: the number of steps, a whole number, for every example.
    """

    value: float
    form: str

    def like(self, x: Tensor) -> Tensor:
        """Return the tensor for an input as the module reads it, features last."""
        if self.form == "lengths":
            return torch.full((x.shape[0],), x.shape[-2], dtype=torch.int64)
        sizes = {"b": x.shape[0], "t": x.shape[-2], "1": 1, "d": x.shape[-1]}
        return torch.full([sizes[axis] for axis in self.form], float(self.value), dtype=x.dtype, device=x.device)

    def __repr__(self) -> str:
        return f"{self.value} ({self.form or 'a tensor'})"


def fillings(missing: Sequence[str], whole: bool) -> Iterator[dict[str, Any]]:
    """Yield values for arguments that have no default, likeliest first; nothing where one is not known."""
    if not missing:
        yield {}
        return
    # Several that are tensors mostly have one shape.
    combined = sorted(product(*(_values(name, whole) for name in missing)), key=_shapes)
    yield from (dict(zip(missing, values, strict=True)) for values in combined[:_MOST])


def _shapes(values: Sequence[Any]) -> int:
    return len({each.form if isinstance(each, Spread) else "" for each in values})


def _values(name: str, whole: bool) -> Iterator[Any]:
    for pattern, values in _USUAL.items():
        if re.fullmatch(pattern, name, re.IGNORECASE):
            for value in values:
                if value == "lengths":
                    yield from [Spread(1.0, "lengths")] if whole else []
                elif value == "ones":
                    yield from (Spread(1.0, form) for form in (("bt", "btd") if whole else ("b1", "bd")))
                else:
                    yield value
                if isinstance(value, float):
                    forms = ("bt", "bt1", "btd") if whole else ("b1", "b", "bd")
                    yield from (Spread(value, form) for form in ("", *forms))
            return


def is_filled(name: str) -> bool:
    """Whether an argument of this name has a usual value.

    Examples
    --------
    >>> [name for name in ("Delta", "timespans", "hx", "attention_mask", "memory") if is_filled(name)]
    ['Delta', 'timespans', 'attention_mask']
    """
    return any(re.fullmatch(pattern, name, re.IGNORECASE) for pattern in _USUAL)


def flags_of(defaults: Mapping[str, Any]) -> dict[str, bool]:
    """Return the switches among a forward's arguments that make it return its state, switched on."""
    return {name: True for name, default in defaults.items() if default is False and _FLAGS.fullmatch(name)}
