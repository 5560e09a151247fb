"""From a stranger's module to a network: advice followed, what was understood said in a sentence, remedies tried.

`mnemoscope.nn.adapt` reads a module. This is what stands around it wherever a network is built from a description:
the part that is meant, the line "read as ..", and, where reading fails, the one option that was tried and works.
"""

from __future__ import annotations

import shlex
import statistics
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

import torch
from torch import nn

from mnemoscope.core.errors import Advised, Overtime, UserError, expected
from mnemoscope.core.loading import stranger
from mnemoscope.nn.adapt import adapt
from mnemoscope.nn.adapt.plan import Unusable
from mnemoscope.nn.advice import adapt_arguments, typed_advice

__all__ = ["understood"]

_SECONDS = 60
"""After which trying a module out is given up."""
_CALLS = 7000
"""Calls of a module in a first look at one seed."""

_PARTS = 8
"""Modules inside that are tried."""


def understood(
    module: nn.Module,
    advice: Mapping[str, Any],
    notes: tuple[str, ...] = (),
    input_size: Any = None,
    name: str | None = None,
    where: str | None = None,
) -> Any:
    """Return a module as a network, with what was done for it among its guesses.

    Parameters
    ----------
    module
        The module.
    advice
        What the user said of it.
    notes
        What was done to build it, in plain words.
    input_size
        The width of its input, where its constructor was told one.
    name
        What it is called in errors.
    where
        What a command calls it, ``FILE.py:CLASS``, where one can.

    Raises
    ------
    Advised
        When it cannot be read, and other advice, which was tried, can mend that.
    """
    inner = _part(module, advice.get("part"))
    name = name or type(module).__name__
    try:
        with _Watch(inner) as watch, stranger(f"trying {name} out", _SECONDS):
            network = _adapted(inner, advice, input_size)
    except Overtime as error:
        raise Overtime(f"{error}{watch}") from None
    except UserError as error:
        raise _remedied(module, advice, input_size, where, error) from error
    if hasattr(network, "guesses"):
        done = (*_said(advice), *notes)
        network.guesses = (*network.guesses, *done)
        network.reading = "; ".join([network.reading, *done])
    return network


class _Watch:
    """Seconds of the calls of a module, and of its copies, which have the same hooks (TorchScript takes none)."""

    def __init__(self, module: nn.Module) -> None:
        self.seconds: list[float] = []
        begun: list[float] = []

        def begins(*_: Any) -> None:
            begun.append(time.perf_counter())

        def ends(*_: Any) -> None:
            self.seconds.append(time.perf_counter() - begun.pop())

        self._marks: tuple[Any, ...] = ()
        if not isinstance(module, torch.jit.ScriptModule):
            self._marks = module.register_forward_pre_hook(begins), module.register_forward_hook(ends)

    def __enter__(self) -> _Watch:
        return self

    def __exit__(self, *_: object) -> None:
        for mark in self._marks:
            mark.remove()

    def __str__(self) -> str:
        if not self.seconds:
            return ""
        each = statistics.median(self.seconds)
        return (
            f": a call of it takes {each:.2g} s, and one seed of a first look makes some {_CALLS:,}, which would take "
            f"{_CALLS * each / 3600:.1f} hours; a smaller or faster one can be measured"
        )


def _adapted(module: nn.Module, advice: Mapping[str, Any], input_size: Any) -> Any:
    """Adapt a module; the width that its constructor was told is tried before others."""
    given = adapt_arguments(advice)
    if isinstance(input_size, int):
        with suppress(UserError):
            return adapt(module, input_size=input_size, **given)
    return adapt(module, **given)


def _part(module: nn.Module, name: str | None) -> nn.Module:
    """Return the module inside that is meant."""
    if name is None:
        return module
    try:
        return module.get_submodule(name)
    except AttributeError:
        known = ", ".join(name for name, _ in module.named_children()) or "it has none"
        raise expected("part", f"a module inside {type(module).__name__}: {known}", name) from None


def _said(advice: Mapping[str, Any]) -> Iterator[str]:
    if "part" in advice:
        yield f"its part {advice['part']} is measured alone"
    for package in advice.get("stub", ()):
        yield f"an empty module stands in for {package}"


def _remedied(
    module: nn.Module, advice: Mapping[str, Any], input_size: Any, where: str | None, error: UserError
) -> UserError:
    """Return the error with the first advice that works; as it is where none does."""
    reason = str(error).split("; call")[0]
    for remedy in _remedies(module, advice, whole=not isinstance(error, Unusable)):
        with suppress(UserError), stranger("trying it out", _SECONDS):
            tried = {**advice, **remedy}
            found = _adapted(_part(module, tried.get("part")), tried, input_size)
            if "part" not in remedy or _remembers(found):
                return Advised(reason, typed_advice(remedy), f"advice={remedy!r}", advice=remedy)
    if isinstance(error, Unusable) or where is None:
        return error
    return UserError(f"{error}; or mnemoscope adapt {shlex.quote(where)} --write my_adapter.py, two lines to fill in")


def _remembers(network: Any) -> bool:
    """Whether a part that would be measured alone has a memory: a matrix between two others has none."""
    return network.kind == "recurrent" or not any("its own step only" in guess for guess in network.guesses)


def _remedies(module: nn.Module, advice: Mapping[str, Any], *, whole: bool) -> Iterator[dict[str, Any]]:
    """Yield advice that may help; what cannot be used as a `whole` may have a part that can."""
    kinds = [kind for kind in ("recurrent", "cell", "sequence") if kind != advice.get("kind")]
    if "kind" not in advice and whole:
        yield from ({"kind": kind} for kind in kinds)
    parts = [(name, part) for name, part in module.named_modules() if name and any(True for _ in part.parameters())]
    if "part" not in advice:
        # A recurrent network inside, of which the module returns the last answer, or that it wraps otherwise.
        named = [
            name for name, part in parts if "cell" in name.lower() or isinstance(part, nn.RNNBase | nn.RNNCellBase)
        ]
        own = [name for name, part in parts if not type(part).__module__.startswith("torch.")]
        yield from ({"part": name} for name in list(dict.fromkeys([*named, *own]))[:_PARTS])
    if "kind" in advice:
        yield from ({"kind": kind} for kind in kinds)
