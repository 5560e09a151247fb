"""Findings about a foreign module, and the checks that it must pass."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor
from torch.utils._pytree import tree_leaves, tree_map

from mnemoscope.core.errors import Description, UserError, expected
from mnemoscope.nn.adapt.call import ABSENT, Call, Key, is_output_name, is_state_name, parts, shown
from mnemoscope.nn.adapt.causality import Causality, causality, mixes
from mnemoscope.nn.adapt.probe import Invoke, Probe, call_text
from mnemoscope.nn.adapt.state import Layout, Start

__all__ = [
    "Plan",
    "Unusable",
    "check_causality",
    "check_examples",
    "check_numbers",
    "check_state",
    "close",
    "output_key",
    "placed_output",
    "writes",
]

_LONG = 24


class Unusable(UserError):
    """It is clear how the module is called, and something else is wrong with it."""


@dataclass(frozen=True)
class Plan:
    """How a module is to be used.

    Attributes
    ----------
    call
        How it is called.
    input_size, output_size
        Numbers per step.
    guesses
        What was guessed, in plain words.
    causality
        What a check found; None where a module reads single steps.
    start, layout
        Of the state, where there is one.
    length
        The only number of steps that the user says it takes.
    unread
        Why the state that it seems to have was left alone; empty where there is none.
    unusual
        Whether another plan is to be preferred, since this one finds things where nobody puts them.
    """

    call: Call
    input_size: int
    output_size: int
    guesses: tuple[str, ...]
    causality: Causality | None = None
    start: Start | None = None
    layout: Layout | None = None
    unusual: bool = False
    length: int | None = None
    unread: str = ""


def output_key(probe: Probe, returned: Any, order: str | None, taken: Key = None) -> Key:
    """Return where the output stands: a tensor with an entry for every example and step.

    Parameters
    ----------
    taken
        Where the state stands, if that is known.
    """
    sizes = {"T": probe.time, "B": probe.batch, "D": "features"}
    wanted = [sizes[axis] for axis in order or "BD"]
    if isinstance(returned, Tensor) and _fits(returned, wanted) and probe.advice.output in (None, 0):
        return None
    beside = taken if isinstance(taken, tuple) else (taken,)
    fits: list[Key] = [key for key, value in parts(returned).items() if key not in beside and _fits(value, wanted)]
    advice = probe.advice.output
    if advice in fits or (advice is None and fits):
        return min(fits, key=lambda key: (key != advice, not is_output_name(key), is_state_name(key)))
    what = f"a tensor of shape ({', '.join(map(str, wanted))})"
    if advice is not None:
        raise UserError(f"output must name {what} among what {probe.name} returns, got {advice!r} of {shown(returned)}")
    which = "step" if order else "example"
    raise UserError(f"{probe.name} must return one output per {which}, {what}, got {shown(returned)}")


def placed_output(probe: Probe, call: Call, returned: Any) -> Call:
    """Return the call of a module over sequences with the place of its output, and its axes where these are others."""
    try:
        return replace(call, output=output_key(probe, returned, call.order))
    except UserError:
        for order in ("TBD", "BTD", "BDT") if probe.advice.layout is None else ():
            with suppress(UserError):
                return replace(call, output=output_key(probe, returned, order), output_order=order)
        raise


def _fits(value: Any, wanted: list[Any]) -> bool:
    if not isinstance(value, Tensor) or not (value.is_floating_point() or value.is_complex()):
        return False
    least = max(axis for axis, size in enumerate(wanted) if size != "features") + 1
    sizes = zip(value.shape, wanted, strict=False)
    return value.dim() >= least and all(want in ("features", size) for size, want in sizes)


def check_numbers(probe: Probe, call: Call, x: Tensor, state: Any = ABSENT) -> None:
    """Refuse a module whose output is not finite, or not the same when it is asked again."""
    y = call.output_of(probe.call(call, x, state))
    if not bool(y.isfinite().all()):
        raise Unusable(
            f"{probe.name} must return finite numbers for a standard normal input, got NaN or infinity; "
            "are its parameters initialised?"
        )
    if not close(call.output_of(probe.call(call, x, state)), y):
        raise Unusable(
            f"{probe.name} must give one output for one input in eval mode, got two that differ; "
            "take out its random numbers or what it keeps between calls"
        )


def writes(probe: Probe, call: Call, x: Tensor, start: Start) -> bool:
    """Whether a module changes its input or its state in place, and has to be given copies."""
    given = x.clone(), probe.begin(start)
    kept = [leaf.clone() for leaf in tree_leaves(given)]
    call.returned(probe.module, *given)
    return len(tree_leaves(given)) != len(kept) or not close(tree_leaves(given), kept)


def check_state(probe: Probe, call: Call, x: Tensor, start: Start) -> None:
    """Refuse a module for which the state makes no difference."""
    state = probe.begin(start)
    other = tree_map(lambda leaf: leaf + 1 if leaf.is_floating_point() or leaf.is_complex() else leaf, state)
    modules = (probe.module, probe.moved(0.1, probe.dtype))
    if all(close(call(module, x, state), call(module, x, other)) for module in modules):
        raise UserError(
            f"{probe.name} must depend on its state, got the same for two states; call {call_text(kind='sequence')}"
        )


def check_examples(probe: Probe, invoke: Invoke, x: Tensor) -> None:
    """Refuse a module in which the examples of a batch affect one another."""
    if any(mixes(run, x, probe.normal(*x.shape), axis=1) for run in probe.runs(invoke, x)):
        raise Unusable(f"{probe.name} must treat the examples of a batch one by one, got outputs that depend on others")


def check_causality(probe: Probe, invoke: Invoke, input_size: int) -> Causality:
    """Find whether any output depends on later inputs, on long sequences where the module takes them."""
    for steps in [probe.advice.length] if probe.advice.length else [_LONG, probe.time]:
        x, other = probe.normal(steps, 1, input_size), probe.normal(steps, 1, input_size)
        try:
            found = [causality(run, x, other) for run in probe.runs(invoke, x.expand(-1, steps - 1, -1))]
        except Exception:  # the module's own forward may raise anything at a length that it does not take
            continue
        return next((each for each in found if not each.causal), max(found, key=lambda each: each.remembers))
    raise expected("length", "a number of steps that the module takes", Description(f"{probe.time}, which fails"))


def close(a: Any, b: Any) -> bool:
    """Whether two pytrees of tensors have the same numbers but for rounding, measured by the largest of them."""
    return all(_close(x, y) for x, y in zip(tree_leaves(a), tree_leaves(b), strict=True))


def _close(x: Tensor, y: Tensor) -> bool:
    if x.shape != y.shape or not (x.is_floating_point() or x.is_complex()):
        return torch.equal(x, y)
    slack = torch.finfo(x.dtype).eps ** 0.6 * float(x.abs().amax())
    return torch.allclose(x, y, rtol=0.0, atol=slack)
