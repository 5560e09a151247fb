"""Trials of a foreign module on a copy: small calls, of which the module itself keeps no trace."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from copy import deepcopy
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_map

from mnemoscope.core.errors import Description, UserError, expected
from mnemoscope.core.loading import where_in
from mnemoscope.nn.adapt.call import ABSENT, Call, Key, Signature, arranged, shown
from mnemoscope.nn.adapt.causality import Run
from mnemoscope.nn.adapt.state import Filled, Made, counterpart, is_tensors

__all__ = ["Advice", "CallFailed", "Invoke", "Probe", "call_text", "keep_computed", "one_line", "undisturbed"]

_BATCHES = (11, 13, 17, 19, 23, 29, 31)
_TIMES = (5, 7, 9, 10, 14, 15, 21)


Invoke = Callable[[nn.Module, Tensor], Tensor]
"""Gives the output of a module, (time, batch, output), for an input (time, batch, input)."""


class CallFailed(Exception):
    """The module raised `reason`, one line, when it was called on an input of `shape`.

    It says little of the module where the state was a guess as well.
    """

    def __init__(self, error: Exception, shape: tuple[int, ...] = (), cls: type | None = None) -> None:
        reason = one_line(error) + ("" if cls is None else where_in(error, cls))
        super().__init__(reason)
        self.reason, self.shape, self.state_guessed = reason, shape, False


@dataclass(frozen=True)
class Advice:
    """What the user said of the module; None: to be guessed. See `mnemoscope.adapt`."""

    kind: str | None = None
    input_size: int | None = None
    batch_first: bool | None = None
    layout: str | None = None
    method: str | None = None
    init_state: Callable[..., Any] | str | None = None
    state_name: tuple[str, ...] | None = None
    output: Key = None
    state: Key = None
    length: int | None = None
    keywords: Mapping[str, Any] = field(default_factory=dict)


class Probe:
    """A copy of a module in eval mode, with inputs whose axes cannot be confused.

    Attributes
    ----------
    name
        The class of the module.
    module
        The copy.
    advice
        What the user said.
    batch, time
        Sizes that no weight of the module has.
    state_first
        Whether the first of two arguments is tried as the state.
    """

    def __init__(self, module: nn.Module, advice: Advice) -> None:
        self.name, self.state_first = type(module).__name__, False
        self.advice = advice
        self.module = _copy(module).eval()
        first = next((p for p in _tensors(module) if p.is_floating_point() or p.is_complex()), torch.zeros(()))
        self.device, self.dtype = first.device, _real(first)
        self.generator = torch.Generator().manual_seed(0)
        sizes = {size for p in _tensors(module) for size in p.shape} | {advice.input_size, advice.length}
        self.batch = next((size for size in _BATCHES if size not in sizes), 37)
        self.time = advice.length or next((size for size in _TIMES if size not in sizes), 25)

    @property
    def orders(self) -> list[str]:
        """The orders of axes in which the module could read sequences: the one that it states, else both."""
        if self.advice.layout is not None:
            return [self.advice.layout]
        stated = getattr(self.module, "batch_first", None)
        if isinstance(stated, bool):
            return ["BTD" if stated else "TBD"]
        return ["TBD", "BTD"] if self.advice.batch_first is False else ["BTD", "TBD"]

    @property
    def signature(self) -> Signature:
        """What the arguments of the module's forward say, or of the method that the user named."""
        advice = self.advice
        return Signature.of(self.module, advice.state_name, advice.keywords, advice.method, self.state_first)

    def normal(self, *shape: int) -> Tensor:
        """Draw a standard normal input."""
        return torch.randn(shape, generator=self.generator, dtype=torch.float64).to(self.device, self.dtype)

    def call(self, call: Call, x: Tensor, state: Any = ABSENT) -> Any:
        """Call the module on copies, and turn whatever it raises into one line."""
        given = state if state is ABSENT else tree_map(_clone, state)
        try:
            return call.returned(self.module, x.clone(), given)
        except Exception as error:  # the module's own forward may raise anything
            shape = tuple(arranged(x, call.order).shape if call.order else x.shape)
            raise CallFailed(error, shape, type(self.module)) from error

    def begin(self, start: Any, batch: int | None = None) -> Any:
        """Return the state that a start gives; what is no start stands for itself."""
        if not isinstance(start, Filled | Made):
            return start
        try:
            state = start(self.module, batch or self.batch, self.device, self.dtype)
        except Exception as error:  # a method or function that makes the first state may raise anything
            if self.advice.init_state is None:
                raise CallFailed(error) from error
            raise expected("init_state", "a function of the batch size", Description(one_line(error))) from error
        if not is_tensors(state):
            raise expected("the initial state", f"tensors for {self.batch} examples", Description(shown(state)))
        return state

    def runs(self, invoke: Invoke, x: Tensor) -> list[Run]:
        """Return functions from inputs to outputs: the module as it is, and with its parameters a little moved.

        A block whose last matrix starts at zero shows what it depends on only when that has moved. Both are in
        double precision where the module can, so that no dependence hides in rounding.
        """
        return [self._run(invoke, x, scale) for scale in (0.0, 0.1)]

    def _run(self, invoke: Invoke, x: Tensor, scale: float) -> Run:
        for dtype in (torch.float64, self.dtype):
            run = partial(_cast, invoke, self.moved(scale, dtype), dtype)
            with suppress(Exception):  # its forward may insist on its own precision and raise anything, or overflow
                if bool(run(x).isfinite().all()):
                    return run
        return partial(invoke, self.module)

    def moved(self, scale: float, dtype: torch.dtype) -> nn.Module:
        """Return a copy in another precision, with normal noise of this size in every trainable parameter."""
        module = _copy(self.module)
        # Unlike Module.to, this keeps complex parameters complex.
        module._apply(lambda tensor: tensor.to(counterpart(tensor.dtype, dtype)))  # type: ignore[no-untyped-call]
        for parameter in module.parameters():
            if parameter.requires_grad and parameter.is_floating_point():
                noise = torch.randn(parameter.shape, generator=self.generator, dtype=torch.float64)
                parameter.add_(scale * noise.to(parameter) / max(parameter.shape[1:], default=1) ** 0.5)
        return module


def keep_computed(module: nn.Module, memo: dict[int, Any]) -> None:
    """Let `copy.deepcopy` with this memo pass the computed tensors that torch.nn.utils.weight_norm and others keep."""
    for part in module.modules():
        for value in vars(part).values():
            if isinstance(value, Tensor) and not value.is_leaf:
                memo.setdefault(id(value), value.detach().clone())


@contextmanager
def undisturbed(module: nn.Module) -> Iterator[None]:
    """Leave no trace in torch: no graph, the random numbers as they were, no warnings of the module's."""
    devices = sorted({p.device.index or 0 for p in _tensors(module) if p.device.type == "cuda"})
    with torch.no_grad(), torch.random.fork_rng(devices), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def call_text(**arguments: Any) -> str:
    """Write a call of `mnemoscope.adapt`; a value of ``...`` is for the user to fill in.

    Examples
    --------
    >>> call_text(kind="sequence", input_size=...)
    'ms.adapt(module, kind="sequence", input_size=...)'
    """
    arguments = dict(sorted(arguments.items(), key=lambda item: item[0] != "kind"))
    values = ("..." if v is ... else f'"{v}"' if name == "kind" else str(v) for name, v in arguments.items())
    named = (f"{name}={value}" for name, value in zip(arguments, values, strict=True))
    return f"ms.adapt({', '.join(['module', *named])})"


def one_line(error: BaseException) -> str:
    """Return an exception as one short line."""
    text = f"{type(error).__name__}: {' '.join(str(error).split())}" if str(error) else type(error).__name__
    return text if len(text) <= 160 else text[:157] + "..."


def _copy(module: nn.Module) -> nn.Module:
    memo: dict[int, Any] = {}
    keep_computed(module, memo)
    try:
        return deepcopy(module, memo)
    except Exception as error:  # what the module holds may have a __deepcopy__ or __reduce__ that raises anything
        name = type(module).__name__
        raise UserError(f"{name} must allow copy.deepcopy, on which it is tried out, got {one_line(error)}") from None


def _clone(leaf: Any) -> Any:
    return leaf.clone() if isinstance(leaf, Tensor) else leaf


def _cast(invoke: Invoke, module: nn.Module, dtype: torch.dtype, x: Tensor) -> Tensor:
    return invoke(module, x.to(dtype))


def _real(tensor: Tensor) -> torch.dtype:
    return tensor.dtype.to_real() if tensor.is_complex() else tensor.dtype


def _tensors(module: nn.Module) -> list[Tensor]:
    return [*module.parameters(), *module.buffers()]
