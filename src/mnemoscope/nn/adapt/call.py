"""Call of a foreign module, and the reading of what it returns."""

from __future__ import annotations

import dataclasses
import inspect
import re
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_map

from mnemoscope.nn.adapt.filling import Spread, flags_of, is_filled
from mnemoscope.nn.adapt.torch_kernels import PlainKernels
from mnemoscope.nn.ops.scan import transforming

__all__ = [
    "ABSENT",
    "ORDERS",
    "STEPS",
    "Call",
    "Key",
    "Signature",
    "arguments_of",
    "arranged",
    "is_output_name",
    "is_state_name",
    "parts",
    "pick",
    "shown",
]

Key = None | int | str | tuple[int, ...]
"""Where a part stands in a return: None is the whole, a tuple collects several parts."""

ABSENT: Any = inspect.Parameter.empty
"""In place of a state: none is given, and the module starts as it likes."""

ORDERS = {"TBD": (0, 1, 2), "BTD": (1, 0, 2), "BDT": (1, 2, 0), "TDB": (0, 2, 1), "DTB": (2, 0, 1), "DBT": (2, 1, 0)}
"""How the axes (time, batch, features) are turned for a module that reads them in another order."""

STEPS = {"1BD": 0, "B1D": 1}
"""Where a cell wants an axis of length 1 for the time."""

_STATE = re.compile(
    r"(?:^|_)(?:h|c|s|m|hs|cs|h[xyz]|hxs|cx|cxs|hc|hids?|hiddens?|states?|memory|mems?|memories|carry|caches?|key_values"
    r"|prev|previous|past)"
    r"(?:_?(?:0|t|n|prev|old|states?|params|init|last|in|out))*$",
    re.IGNORECASE,
)
_NO_STATE = re.compile(r"^(?:output|use|return|is|with|encoder|cross)_", re.IGNORECASE)
_NEVER_STATE = re.compile(
    r"mask|len|pos|index|target|label|context|key$|value$|query|tgt|src|^t$|^ts$|^dt$|time|washout", re.IGNORECASE
)
_INPUT = re.compile(r"x|xs|u|inp|inputs?|(?:x|u|inp|input)_?(?:t|n|k)", re.IGNORECASE)
_OUTPUTS = ("last_hidden_state", "output", "outputs", "out", "y", "logits", "prediction", "predictions")


@dataclass(frozen=True)
class Call:
    """One way to call a module.

    Attributes
    ----------
    input_name
        The keyword of the input; None: it is the first argument.
    state_names
        The keyword of the state; several take its parts one by one; none: it is the second argument.
    output, state
        Where they stand in what the module returns.
    order
        The axes in which the module reads sequences, a key of `ORDERS`; None: it reads single steps.
    keywords
        What else it is given at every call.
    method
        What is called; None: the module itself.
    output_order
        The axes in which it returns sequences, where they are others than those in which it reads them.
    copies
        Whether it writes into the state that it gets, and has to be given a copy.
    prefixes
        Whether it answers once, after the last step, so that its output at a step is its answer to what came before.
    """

    input_name: str | None = None
    state_names: tuple[str, ...] = ()
    output: Key = None
    state: Key = None
    order: str | None = None
    keywords: Mapping[str, Any] = field(default_factory=dict)
    method: str | None = None
    output_order: str | None = None
    copies: bool = False
    prefixes: bool = False

    @property
    def whole(self) -> bool:
        """Whether it reads whole sequences rather than single steps."""
        return self.order is not None and self.order not in STEPS

    def returned(self, module: nn.Module, x: Tensor, state: Any = ABSENT) -> Any:
        """Call the module on ``(batch, input)``, or on ``(time, batch, input)`` where it reads sequences."""
        x = x if self.order is None else arranged(x, self.order)
        if self.copies and state is not ABSENT:
            x, state = x.clone(), tree_map(lambda leaf: leaf.clone() if isinstance(leaf, Tensor) else leaf, state)
        arguments = [] if self.input_name else [x]
        named = {n: v.like(x) if isinstance(v, Spread) else v for n, v in self.keywords.items()}
        named |= {self.input_name: x} if self.input_name else {}
        if state is not ABSENT and not self.state_names:
            arguments.append(state)
        elif state is not ABSENT and len(self.state_names) == 1:
            named[self.state_names[0]] = state
        elif state is not ABSENT:
            each = [None] * len(self.state_names) if state is None else state
            named |= dict(zip(self.state_names, each, strict=True))
        with PlainKernels() if transforming() else nullcontext():
            return getattr(module, self.method or "__call__")(*arguments, **named)

    def output_of(self, returned: Any) -> Tensor:
        """Return the output as ``(batch, output)`` or ``(time, batch, output)`` real numbers."""
        y: Tensor = pick(returned, self.output)
        order = self.output_order or self.order
        if order in STEPS:
            y, order = y.squeeze(STEPS[order]) if y.dim() > 2 and y.shape[STEPS[order]] == 1 else y, None
        axes = 1 if order is None else 2
        if order is not None:
            turned = ORDERS[order]
            y = y.movedim(tuple(range(y.dim()))[: len(turned)], turned[: y.dim()])
        y = y.flatten(axes) if y.dim() > axes else y.unsqueeze(-1)
        return torch.cat([y.real, y.imag], dim=-1) if y.is_complex() else y

    def outputs(self, module: nn.Module, x: Tensor) -> Tensor:
        """Return the outputs (time, batch, output) of a module that is called without a state."""
        if not self.prefixes:
            return self.output_of(self.returned(module, x))
        return torch.stack([self.answer(module, x[: t + 1]) for t in range(len(x))])

    def answer(self, module: nn.Module, x: Tensor) -> Tensor:
        """Return the one answer (batch, output) to whole sequences, of a module that gives no other."""
        found: Tensor = pick(self.returned(module, x), self.output)
        return found.flatten(1)

    def state_of(self, returned: Any) -> Any:
        """Return the state as the module gives it."""
        return pick(returned, self.state)

    def __call__(self, module: nn.Module, x: Tensor, state: Any = ABSENT) -> tuple[Tensor, Any]:
        """Call the module and return its output and its state."""
        returned = self.returned(module, x, state)
        return self.output_of(returned), self.state_of(returned)


def arranged(x: Tensor, order: str) -> Tensor:
    """Return (time, batch, features), or (batch, features) of one step, with the axes that a module reads."""
    return x.unsqueeze(STEPS[order]) if order in STEPS else x.permute(ORDERS[order])


def pick(returned: Any, key: Key) -> Any:
    """Return the part of a return that stands at `key`."""
    if key is None:
        return returned
    if isinstance(key, tuple):
        return tuple(returned[i] for i in key)
    if isinstance(key, str) and not isinstance(returned, Mapping):
        return getattr(returned, key)
    return returned[key]


def parts(returned: Any) -> dict[Any, Any]:
    """Return what a return is made of, by name or by place; nothing for a tensor."""
    if isinstance(returned, Tensor | str | bytes):
        return {}
    if isinstance(returned, Mapping):
        return dict(returned)
    if isinstance(returned, tuple | list):
        return dict(zip(getattr(returned, "_fields", range(len(returned))), returned, strict=True))
    if dataclasses.is_dataclass(returned):
        return {each.name: getattr(returned, each.name) for each in dataclasses.fields(returned)}
    return dict(getattr(returned, "__dict__", {}))


def shown(returned: Any) -> str:
    """Describe a return in a few words."""
    if isinstance(returned, Tensor):
        return f"a tensor of shape {tuple(returned.shape)}"
    found = parts(returned)
    if not found:
        return f"{type(returned).__name__} {returned!r}" if isinstance(returned, str | int | float) else repr(returned)
    named = (f"{key}: {shown(value)}" if isinstance(key, str) else shown(value) for key, value in found.items())
    return " ".join(f"a {type(returned).__name__} of ({', '.join(named)})".split())


def is_output_name(name: Any) -> bool:
    """Whether a part of this name is an output by custom."""
    return name in _OUTPUTS


def is_state_name(name: Any) -> bool:
    """Whether an argument or a part of this name is a state by custom.

    Examples
    --------
    >>> [name for name in ("hx", "h_prev", "past_key_values", "mask", "use_cache", "lengths") if is_state_name(name)]
    ['hx', 'h_prev', 'past_key_values']
    """
    return isinstance(name, str) and bool(_STATE.search(name)) and not _NO_STATE.search(name)


def arguments_of(module: nn.Module, method: str | None = None) -> list[inspect.Parameter]:
    """Return the arguments of a module's forward, or those of a function that takes any where they are hidden."""
    try:
        return list(inspect.signature(getattr(module, method or "forward")).parameters.values())
    except (AttributeError, TypeError, ValueError):
        return list(inspect.signature(lambda *_, **__: None).parameters.values())


@dataclass(frozen=True)
class Signature:
    """What the arguments of a module's forward say.

    Attributes
    ----------
    input_name
        The keyword of the input, where it is not the first argument.
    states
        The ways in which a state could be given, likeliest first: see `Call.state_names`. None: there is no way.
    required
        Whether forward cannot be called without a state.
    missing
        Arguments without a default that are neither input nor state.
    keywords
        What it is given at every call.
    flags
        Switches that make it return its state.
    """

    input_name: str | None
    states: tuple[tuple[str, ...], ...]
    required: bool
    missing: tuple[str, ...]
    keywords: Mapping[str, Any] = field(default_factory=dict)
    flags: Mapping[str, bool] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        module: nn.Module,
        state_name: tuple[str, ...] | None,
        keywords: Mapping[str, Any],
        method: str | None = None,
        state_first: bool = False,
    ) -> Signature:
        """Read the signature; `state_name`, `keywords` and `method` are what the user said.

        With `state_first` the first of two arguments is taken for the state whatever they are called.
        """
        found = arguments_of(module, method)
        plain = [p for p in found if p.kind in (p.POSITIONAL_OR_KEYWORD, p.POSITIONAL_ONLY, p.KEYWORD_ONLY)]
        plain = [p for p in plain if p.name not in keywords]
        if any(p.kind is p.VAR_POSITIONAL for p in found) and len(plain) < 2:
            return cls(None, (state_name or (),), False, (), keywords)
        flags = flags_of({p.name: p.default for p in plain})
        embeds = next((p.name for p in plain if p.name == "inputs_embeds"), None)
        named = len(plain) > 1 and is_state_name(plain[0].name) and bool(_INPUT.fullmatch(plain[1].name))
        if named or (state_first and len(plain) > 1):
            embeds = plain[1].name  # the state comes first
        rest = [p for p in plain[0 if embeds else 1 :] if p.name != embeds]
        needed = [p.name for p in rest if p.default is p.empty]
        statelike = [p.name for p in rest if is_state_name(p.name) and not isinstance(p.default, bool)]
        other = [n for n in needed if not _NEVER_STATE.search(n) and not is_filled(n)]
        required = list(state_name or ()) or [n for n in needed if n in statelike] or other
        missing = tuple(n for n in needed if n not in required)
        if required:
            return cls(embeds, (tuple(required),), bool(set(required) & set(needed)), missing, keywords, flags)
        # Several optional ones are the parts of one state (h=None, c=None) before one of them is the whole; and
        # where none is called so, the second argument may still be one.
        together = [tuple(statelike)] if len(statelike) > 1 else []
        second = [p.name for p in rest[:1] if p.default is None and not _NEVER_STATE.search(p.name)]
        return cls(embeds, (*together, *((name,) for name in statelike or second)), False, missing, keywords, flags)
